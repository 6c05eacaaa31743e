// Why two runs differ: a waterfall of causes, the first event that differs, and the critical paths.
"use strict";

const { found, words: [runs, shares, first], caveat } = data;
const causes = found.causes.map((cause, index) => ({ ...cause, share: shares[index] }));
const [one, other] = found.runs.map((run) => run.simulated_time_ps);
const signedPicos = (time) => `${time > 0 ? "+" : ""}${picos(time)}`;

// Bars from the first run to the second one, each at the height that the causes before it have reached.
function waterfall(colours, width) {
  let reached = one;
  const steps = causes.map((cause) => {
    const from = reached;
    reached += cause.time_ps;
    return { name: cause.name, from, to: reached };
  });
  const bars = [{ name: "first run", from: 0, to: one }, ...steps, { name: "second run", from: 0, to: other }];
  const colour = (bar, index) => (index === 0 || index === bars.length - 1 ? data.colours.series[0] : bar.to > bar.from ? data.colours.runs[1] : data.colours.runs[0]);
  const cut = (name) => (width < 600 && name.length > 14 ? `${name.slice(0, 13)}...` : name);
  const names = bars.map((bar) => bar.name);
  const hint = ([point]) => {
    const { name, from, to } = bars[point.dataIndex];
    return from ? `<b>${escaped(name)}</b>: ${signedPicos(to - from)}, from ${picos(from)} to ${picos(to)}` : `<b>${escaped(name)}</b>: ${picos(to)}`;
  };
  const stack = (values, more) => ({ type: "bar", stack: "all", barMaxWidth: 26, data: values, ...more });
  return {
    grid: { left: 8, right: 24, top: 8, bottom: 34, containLabel: true },
    tooltip: tooltip(colours, hint, { trigger: "axis", axisPointer: { type: "shadow" } }),
    xAxis: valueAxis(colours, "run time", picos),
    yAxis: nameAxis(colours, names, { inverse: true, axisLabel: { formatter: cut } }),
    series: [
      stack(bars.map(({ from, to }) => Math.min(from, to)), { itemStyle: { color: "transparent" }, silent: true }),
      stack(bars.map((bar, index) => ({ value: Math.abs(bar.to - bar.from), itemStyle: { color: colour(bar, index) } }))),
    ],
  };
}

function showCauses() {
  const box = section("causes", "Causes", caveat);
  box.append(...found.warnings.map((warning) => element("p", { class: "warning" }, warning)));
  box.append(element("p", {}, `First run: ${runs[0]}.`), element("p", {}, `Second run: ${runs[1]}.`));
  cards(box, [["difference", signedPicos(found.difference_ps)], ["replays", count(found.replays)], ...(found.contention_ps === null ? [] : [["of it by contention", signedPicos(found.contention_ps)]])]);
  if (causes.length) chart(box, "From the first run to the second one", 90 + 30 * (causes.length + 2), waterfall);
  const time = (name, title, of) => ({ name, title, value: of, text: (value) => (value === null ? "-" : signedPicos(value)) });
  table(box, [
    { name: "cause", value: (cause) => cause.name },
    time("part", "mean, over all orders of the changes, of what the change adds", (cause) => cause.time_ps),
    { name: "share", value: (cause) => cause.time_ps / (found.difference_ps || 1), text: (_, cause) => cause.share },
    ...(found.contention_ps === null ? [] : [time("by contention", "the part that is not there without contention", (cause) => cause.contention_ps)]),
    time("alone", "what the change alone adds to the first run", (cause) => cause.alone_ps),
    time("as the last", "what the change adds when all others are made", (cause) => cause.last_ps),
    ...(found.sampled_orders === null ? [] : [{ name: "error", value: (cause) => cause.error_ps, text: (error) => `± ${picos(error)}` }]),
  ], causes, { all: true, filters: false });
  if (found.sampled_orders !== null) box.append(element("p", { class: "note" }, `${found.sampled_orders} orders of the changes were sampled.`));
}

function showPaths() {
  const box = section("paths", "From the first difference to the end");
  if (found.not_compared) box.append(element("p", { class: "note" }, `${found.not_compared}.`));
  if (first) box.append(element("p", {}, `${first[0].toUpperCase()}${first.slice(1)}.`));
  if (!found.paths) return;
  const { parts, calls, sites, links, steps } = found.paths;
  const named = (name) => name || "(no call site)";
  const columns = (name) => [
    { name, value: (part) => named(part.name) }, { name: "first run", value: (part) => part.one_ps, text: (time) => picos(time) }, { name: "second run", value: (part) => part.other_ps, text: (time) => picos(time) },
    { name: "change", value: (part) => part.other_ps - part.one_ps, text: signedPicos },
  ];
  const bars = ["first run", "second run"];
  chart(box, "Critical paths", 150, (colours) => stacked(colours, bars, parts.map((part, index) => ({ name: part.name, colour: data.colours.series[index % data.colours.series.length], values: [part.one_ps, part.other_ps] })), { format: picos, axis: "time on the path" }));
  table(box, columns("part"), parts, { all: true, filters: false });
  table(box, columns("call"), calls, { filters: false });
  box.append(element("h3", {}, "From there to the end, by call site"));
  table(box, columns("call site"), sites, { filters: false });
  if (links.length) {
    box.append(element("h3", {}, "Links by which the chains pass from rank to rank"));
    table(box, [
      { name: "link", value: (link) => link.name }, { name: "first run", title: "steps of its chain over the link", value: (link) => link.one, text: count }, { name: "second run", title: "steps of its chain over the link", value: (link) => link.other, text: count },
    ], links, { filters: false });
  }
  box.append(element("h3", {}, "Chain of causes of the second run"), element("p", { class: "note" }, "A sample: shorter stays on ranks are left out. A link is the narrowest one on the route of the message by which the chain comes to the rank."));
  table(box, [
    { name: "from", value: (step) => step.from_ps, text: (time) => picos(time, 6) }, { name: "to", value: (step) => step.to_ps, text: (time) => picos(time, 6) }, { name: "rank", value: (step) => step.rank },
    { name: "call", value: (step) => step.action ?? "-" }, { name: "call site", value: (step) => step.site ?? "-" }, { name: "by link", value: (step) => step.link ?? "-" },
  ], steps, { filters: false });
}

for (const show of [showCauses, showPaths]) show();
