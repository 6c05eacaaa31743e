// Summary, parts of the time, calls, critical path, histograms, parameters.
"use strict";

const runs = data.runs;
const isPair = runs.length === 2;
const run = runs[0];
const LETTERS = ["A", "B"];

function facts(parent, rows) {
  const lines = rows.map(([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "mono" }, value)));
  parent.append(element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...lines))));
}

// The run time as a stair: a step for each cost, from where those before it end.
function showRunTimeParts(box) {
  if (!data.runTimeParts) return;
  let end = 0;
  const steps = data.runTimeParts.map(({ name, time_s }) => ({ name, added: time_s, from: end, to: (end += time_s) }));
  const bar = ({ added }) => ({ value: Math.abs(added), itemStyle: { color: added < 0 ? data.colours.runs[0] : data.colours.series[0] } });
  chart(box, "What the run time is made of", 40 + 26 * steps.length, (colours) => ({
    ...stacked(colours, steps.map(({ name }) => name), [{ name: "before", values: steps.map(({ from, to }) => Math.min(from, to)), colour: "transparent" }, { name: "adds", values: steps.map(bar) }], { format: seconds, axis: null }),
    legend: { show: false },
    tooltip: tooltip(colours, ([point]) => {
      const { name, added, to } = steps[point.dataIndex];
      return `<b>${escaped(name)}</b> adds ${seconds(added)}, ${percent(added, run.simulated_time_s)}, to ${seconds(to)}`;
    }, { trigger: "axis", axisPointer: { type: "shadow" } }),
  }));
}

function showSummary() {
  const box = section("summary", "Summary");
  const items = [
    ["simulated time", seconds(run.simulated_time_s)], ["ranks", count(run.ranks)], ["actions", count(run.actions)], ["messages", count(run.messages)],
    ["sent in them", bytes(run.message_bytes)],
  ];
  const total = run.breakdown?.total;
  if (total) items.push(["of all time computes", percent(total.compute_s, total.time_s)], ["waits for other ranks", percent(total.waiting_s, total.time_s)]);
  if (run.imbalance) items.push(["imbalance of computation", percent(run.imbalance.compute)]);
  const path = run.critical_path;
  if (path) items.push(["of the critical path computes", percent(path.parts.compute_ps, path.time_ps)]);
  const [first, ...more] = data.verdict;
  if (first) box.append(element("p", { id: "verdict" }, element("b", {}, first), " ", more.join(" ")));
  showRunTimeParts(box);
  cards(box, items);
  const { trace, platform, model, preset } = run.parameters;
  facts(box, [["trace", trace], ["platform", platform], ["model", `${model}, preset ${preset}`], ["digest", run.digest]]);
  for (const warning of run.warnings) box.append(element("p", { class: "warning" }, warning));
}

const callColumns = (total) => [
  { name: "call", value: (call) => call.action },
  { name: "count", value: (call) => call.count, text: count },
  { name: "time of all ranks", value: (call) => call.time_s, text: (time) => seconds(time) },
  { name: "share", value: (call) => call.time_s / total, text: (part) => percent(part) },
  ...["transfer", "waiting"].map((part) => ({ name: part, value: (call) => call[`${part}_s`], text: (time) => (time ? seconds(time) : "") })),
];

function showTime() {
  const box = section("time", "Where the time goes");
  const breakdown = run.breakdown;
  if (!breakdown) {
    box.append(element("p", { class: "note" }, "Replay with ", element("code", {}, "analysis.waits = true"), " to see what ranks wait for, and each rank by itself."));
    const total = sum(run.time_by_action.map((action) => action.time_s));
    table(box, callColumns(total).slice(0, 4), run.time_by_action, { sorted: 2 });
    return;
  }
  const { total, calls } = breakdown;
  const parts = occurring([total]);
  // Means are times on the axis of the run, which sums over ranks are not.
  const mean = (time) => time / run.ranks;
  chart(box, "What the time of a rank is for, on average", 70 + 26 * parts.length, (colours) => ({
    ...stacked(colours, parts.map((part) => part.name), [{ name: "time", values: parts.map((part) => ({ value: mean(total[`${part.key}_s`]), itemStyle: { color: part.colour } })) }], { format: seconds, axis: "simulated time, mean of all ranks" }),
    tooltip: tooltip(colours, ([point]) => `<b>${escaped(point.name)}</b>: ${seconds(point.value)}, ${percent(point.value, mean(total.time_s))}<br>${escaped(parts[point.dataIndex].hint)}`, { trigger: "axis" }),
  }));
  box.append(element("details", {}, element("summary", {}, "What the words mean"), words(parts)));
  const drawn = calls.filter((call) => call.time_s > 0).sort((one, other) => other.time_s - one.time_s).slice(0, 12);
  chart(box, "The same by kind of call", 90 + 26 * drawn.length, (colours) =>
    stacked(colours, drawn.map((call) => call.action), parts.map((part) => ({ ...part, values: drawn.map((call) => mean(call[`${part.key}_s`])) })), { format: seconds, axis: "simulated time, mean of all ranks" }));
  table(box, callColumns(total.time_s), calls, { sorted: 2 });
}

function showWaits() {
  const total = run.breakdown?.total;
  const states = WAITS.filter((part) => total?.[`${part.key}_s`] > 0);
  if (!states.length) return;
  const box = section("waits", "Waiting for others", "Scalasca's wait states: the other side was not there.");
  box.append(words(states));
  const columns = [
    { name: "call", value: (call) => call.action },
    { name: "waiting", value: (call) => call.waiting_s, text: (time) => seconds(time) },
    { name: "of its time", value: (call) => call.waiting_s / call.time_s, text: (part) => percent(part) },
    ...states.map((state) => ({ name: state.name, title: state.hint, value: (call) => call[`${state.key}_s`], text: (time) => (time ? seconds(time) : "") })),
  ];
  table(box, columns, run.breakdown.calls.filter((call) => call.waiting_s > 0), { sorted: 1 });
}

const PATH_COLOURS = new Map(data.pathParts);
function showPath() {
  const path = run.critical_path;
  if (!path) return;
  const note = `The chain of causes that ends last, on rank ${path.rank}: it passes from one rank to another ${count(path.hops)} times. What is not on it can be slower without making the run longer.`;
  const box = section("path", "Critical path", note);
  const parts = Object.entries(path.parts).filter(([, time]) => time > 0).map(([name, time]) => ({ name: name.replace("_ps", ""), values: [time] }));
  for (const part of parts) part.colour = PATH_COLOURS.get(part.name);
  chart(box, "What the path is made of", 130, (colours) => stacked(colours, ["path"], parts, { format: (time) => picos(time), axis: null }));
  if (path.segments.length) {
    const steps = path.segments.flatMap(({ from_ps, to_ps, rank }) => [[from_ps, rank], [to_ps, rank]]);
    chart(box, "Where the path is", 240, (colours) => ({
      grid: { left: 24, right: 24, top: 12, bottom: 34, containLabel: true },
      tooltip: tooltip(colours, ([point]) => `rank ${point.value[1]} at ${picos(point.value[0])}`, { trigger: "axis" }),
      xAxis: valueAxis(colours, "simulated time", (time) => picos(time, 3), { max: "dataMax" }),
      yAxis: valueAxis(colours, "rank", (rank) => rank, { max: Math.max(1, run.ranks - 1), minInterval: 1, nameGap: 44 }),
      dataZoom: [{ type: "inside" }],
      series: [{ type: "line", symbol: "none", data: steps, lineStyle: { width: 1.5, color: data.colours.runs[0] }, sampling: null }],
    }));
  }
  const share = (part) => percent(part, path.time_ps);
  const sides = element("div", { class: "side" }, element("div"), element("div"));
  box.append(sides);
  const time = { name: "time on the path", value: (row) => row.time_ps, text: (time) => picos(time) };
  const part = { name: "share", value: (row) => row.time_ps, text: share };
  table(sides.children[0], [{ name: "call", value: (row) => row.call }, time, part], path.calls.filter((call) => call.time_ps), { sorted: 1 });
  table(sides.children[1], [{ name: "rank", value: (row) => row.rank }, time, part], path.ranks, { sorted: 1, chosen: (row) => selectRank(row.rank) });
}

// Counts by equal steps of the logarithm, four for each decade.
function bins({ values, counts }) {
  const place = (value) => (value > 0 ? Math.floor(4 * Math.log10(value) + 1e-9) : null);
  const places = values.map(place);
  const used = places.filter((at) => at !== null);
  if (!used.length) return { names: [], totals: [] };
  const first = Math.min(...used);
  const totals = Array(Math.max(...used) - first + 1).fill(0);
  places.forEach((at, index) => { if (at !== null) totals[at - first] += counts[index]; });
  return { first, totals };
}

function showHistograms() {
  const found = run.histograms;
  if (!found) return;
  const box = section("histograms", "Messages and waits");
  const rows = [
    ["size of messages", found.message_bytes, bytes], ["time of messages, from the send to the arrival", found.latency_ps, picos], ["waits for others", found.waiting_ps, picos],
  ];
  const fields = [["least", "min"], ["median", "p50"], ["90 %", "p90"], ["99 %", "p99"], ["most", "max"]];
  const columns = [
    { name: "quantity", value: ([name]) => name }, { name: "count", value: ([, histogram]) => histogram.count, text: count },
    ...fields.map(([name, key]) => ({ name, value: ([, histogram]) => histogram[key], text: (value, [, , format]) => format(value) })),
  ];
  table(box, columns, rows);
  for (const [name, histogram, format] of rows) {
    const { first, totals } = bins(histogram);
    if (!totals.length) continue;
    const edge = (at) => format(10 ** ((first + at) / 4), 2);
    chart(box, name[0].toUpperCase() + name.slice(1), 220, (colours) => ({
      ...stacked(colours, totals.map((_, at) => edge(at)), [{ name: "count", colour: data.colours.runs[0], values: totals }], { format: count, axis: "count", upright: true, label: "from" }),
      tooltip: tooltip(colours, ([point]) => `${edge(point.dataIndex)} to ${edge(point.dataIndex + 1)}: <b>${count(point.value)}</b>`, { trigger: "axis" }),
    }));
  }
}

function showParameters() {
  const box = section("parameters", "Parameters", "Everything that can change the result.");
  const rows = [...flat(run.parameters)];
  table(box, [{ name: "parameter", value: ([key]) => key }, { name: "value", value: ([, value]) => value }], rows, { filters: true });
}
