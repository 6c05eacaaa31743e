// What a better machine would save: prices, and run times over single parameters.
"use strict";

const { found, words, caveat } = data;
const prices = found.prices.map((price, index) => ({ ...price, name: words[index][0], note: words[index][1] }));
const saving = prices.filter((price) => price.saved_s > 0);
const money = found.currency !== null;

function showPrices() {
  const box = section("prices", "What one percent less would save", caveat);
  box.append(...found.warnings.map((warning) => element("p", { class: "warning" }, warning)));
  cards(box, [["run time", seconds(found.simulated_time_s)], ["replays", count(found.replays)]]);
  if (saving.length) {
    const bars = [{ name: "saved", colour: data.colours.runs[0], values: saving.map((price) => price.saved_s) }];
    chart(box, "Time saved by one percent less of a parameter", 70 + 26 * saving.length, (colours, width) =>
      stacked(colours, saving.map((price) => price.name), bars, { format: seconds, axis: "time saved", shorten: width < 600 ? 18 : 44 }));
  }
  table(box, [
    { name: "parameter", value: (price) => price.name }, { name: "number", title: "of links or hosts", value: (price) => price.count, text: count },
    { name: "saves", title: "with one percent less", value: (price) => price.saved_s, text: (time, price) => (price.method === "one_sided" ? [time, price.lost_s].sort((one, other) => one - other).map((end) => seconds(end)).join(" to ") : seconds(time)) },
    { name: "of the run", value: (price) => price.saved_s / (found.simulated_time_s || 1), text: (part) => `${(100 * part).toFixed(4)} %` },
    ...(money ? [
      { name: `cost [${found.currency}]`, title: "of one percent less", value: (price) => price.cost, text: (cost) => (cost === null ? "-" : count(cost)) },
      { name: `saves per ${found.currency}`, value: (price) => price.saved_s_per_cost, text: (time) => (time === null ? "-" : seconds(time)) },
    ] : []),
    { name: "note", value: (price) => price.note, cell: () => ({ style: "white-space:nowrap" }) },
  ], prices, { all: true, filters: false });
}

// Curves whose slopes change, or that rise.
function showCurves() {
  const curved = prices.filter(({ curve }) => curve && curve[0].time_s !== curve[curve.length - 1].time_s);
  if (!curved.length) return;
  const box = section("curves", "Run time over a parameter");
  const exact = "These are lines between the points, exactly: at a point, another chain of causes becomes the longest.";
  const sample = "With contention the run time is no line between points: these are single runs.";
  const shown = element("div");
  const show = (price) => {
    const knee = price.knee && (price.knee[0] === price.knee[1] ? ` The knee is at x ${price.knee[0].toPrecision(4)}` : ` The knee is between x ${price.knee.map((factor) => factor.toPrecision(4)).join(" and x ")}`);
    shown.replaceChildren(element("p", {}, `${price.method === "exact" ? exact : sample}${knee ? `${knee}: less of the parameter saves little, more costs much.` : ""}`));
    chart(shown, `Run time over ${price.name}`, 360, (colours) => ({
      grid: { left: 24, right: 24, top: 16, bottom: 34, containLabel: true },
      tooltip: tooltip(colours, ({ value }) => `x ${value[0].toPrecision(5)}: ${seconds(value[1], 6)}`, { trigger: "item" }),
      xAxis: valueAxis(colours, "factor", (value) => value, { scale: true }),
      yAxis: valueAxis(colours, "run time", seconds, { nameGap: 66, scale: true }),
      series: [{ type: "line", name: price.name, data: price.curve.map((point) => [point.factor, point.time_s]), symbolSize: 8 }],
    }));
    const pieces = price.curve.slice(1).map((to, index) => ({ from: price.curve[index], to, slope: (to.time_s - price.curve[index].time_s) / (to.factor - price.curve[index].factor) }));
    if (price.limits) table(shown, [
      { name: "more time", value: (limit) => limit.more_time, text: (part) => `${(100 * part).toFixed(0)} %` }, { name: "up to a factor of", value: (limit) => limit.factor, text: (factor) => (factor === null ? "beyond the curve" : factor.toPrecision(5)) },
    ], price.limits, { filters: false });
    if (price.method === "exact") table(shown, [
      { name: "from", value: ({ from }) => from.factor, text: (factor) => `x ${factor.toPrecision(5)}` }, { name: "to", value: ({ to }) => to.factor, text: (factor) => `x ${factor.toPrecision(5)}` },
      { name: "one percent", value: ({ slope }) => slope / 100, text: (time) => seconds(time) },
    ], pieces, { filters: false });
  };
  box.append(element("div", { class: "controls" }, choice("Parameter", curved.map((price) => price.name), (index) => show(curved[index]))), shown);
  show(curved[0]);
}

for (const show of [showPrices, showCurves]) show();
