// The difference between two runs.
"use strict";

const OTHER = runs[1];
// A column of values of both runs, and of the change from the first to the second.
const pairOf = (name, of, text) => [
  { name: `${name} A`, value: (row) => of(row, 0), text },
  { name: `${name} B`, value: (row) => of(row, 1), text },
  { name: "change", title: "of B against A", value: (row) => of(row, 1) - of(row, 0), text: (_, row) => change(of(row, 1), of(row, 0)) },
];

function showDifference() {
  const box = section("summary", "Summary");
  const [a, b] = runs.map((report) => report.simulated_time_s);
  cards(box, [["A, simulated time", seconds(a)], ["B, simulated time", seconds(b)], ["B against A", change(b, a)]]);
  const [shorter, longer] = a <= b ? ["A", "B"] : ["B", "A"];
  const verdict = a === b ? "Both take equally long." : `${shorter} is shorter: ${longer} takes ${seconds(Math.abs(b - a))} longer, ${Number((Math.max(a, b) / Math.min(a, b)).toPrecision(4))} times as long.`;
  box.append(element("p", {}, verdict, run.digest === OTHER.digest ? " All results of all ranks are the same." : ""));
  facts(box, runs.map(({ parameters: { trace, platform, model, preset } }, index) => [LETTERS[index], `${trace} on ${platform}, ${model}, preset ${preset}`]));
  const rows = [
    ["simulated time", "simulated_time_s", seconds], ["ranks", "ranks", count], ["actions", "actions", count], ["messages", "messages", count], ["sent in them", "message_bytes", bytes],
  ];
  table(box, [
    { name: "quantity", value: ([name]) => name }, ...LETTERS.map((name, index) => ({ name, value: ([, key]) => runs[index][key], text: (value, [, , format]) => format(value) })),
    { name: "change", value: ([, key]) => OTHER[key] - run[key], text: (_, [, key]) => change(OTHER[key], run[key]) },
  ], rows);
  data.unlike.forEach((warning) => box.append(element("p", { class: "warning" }, warning)));
  runs.forEach((report, index) => report.warnings.forEach((warning) => box.append(element("p", { class: "warning" }, `${LETTERS[index]}: ${warning}`))));
}

// Parameters that differ: what determines others comes first.
function showChangedParameters() {
  const [a, b] = runs.map((report) => flat(report.parameters));
  const first = ["trace", "platform", "hosts", "model", "preset", "mpi.collectives"];
  const place = (key) => (first.includes(key) ? first.indexOf(key) : first.length);
  const keys = [...new Set([...a.keys(), ...b.keys()])].filter((key) => a.get(key) !== b.get(key)).sort((one, other) => place(one) - place(other));
  const box = section("parameters", "Parameters that differ");
  if (!keys.length) {
    box.append(element("p", {}, "None: both runs have the same parameters."));
    return;
  }
  table(box, [{ name: "parameter", value: (key) => key }, { name: "A", value: (key) => a.get(key) ?? "-" }, { name: "B", value: (key) => b.get(key) ?? "-" }], keys, { filters: false });
}

function showChangedTimes() {
  const [one, other] = runs.map((report) => report.breakdown);
  if (!one || !other) return;
  const box = section("time", "Where the time goes");
  const parts = occurring([one.total, other.total]);
  chart(box, "What the time of a rank is for, on average", 150, (colours) =>
    stacked(colours, LETTERS, parts.map((part) => ({ ...part, values: runs.map((report) => report.breakdown.total[`${part.key}_s`] / report.ranks) })), { format: seconds, axis: "simulated time, mean of all ranks" }));
  table(box, [{ name: "part", value: (part) => part.name }, ...pairOf("", (part, index) => runs[index].breakdown.total[`${part.key}_s`], (time) => seconds(time))], parts, { filters: false });
  box.append(element("details", {}, element("summary", {}, "What the words mean"), words(parts)));
  const calls = [...new Set(runs.flatMap((report) => report.breakdown.calls.map((call) => call.action)))];
  const of = (action, index, key) => runs[index].breakdown.calls.find((call) => call.action === action)?.[key] || 0;
  box.append(element("h3", {}, "Calls"));
  table(box, [
    { name: "call", value: (action) => action }, ...pairOf("time", (action, index) => of(action, index, "time_s"), (time) => seconds(time)),
    ...pairOf("waiting", (action, index) => of(action, index, "waiting_s"), (time) => seconds(time)),
  ], calls, { sorted: 1 });
}

function showChangedRanks() {
  const [one, other] = runs.map((report) => report.breakdown);
  if (!one || !other || run.ranks !== OTHER.ranks) return;
  const box = section("ranks", "Ranks", "Blue where B takes less, red where it takes more.");
  const parts = occurring([one.total, other.total]);
  const metrics = [
    { name: "waiting", of: (rank, index) => waited(runs[index].breakdown, rank) }, { name: "end", of: (rank, index) => runs[index].breakdown.ranks.end_ps[rank] },
    ...parts.map((part) => ({ name: part.name, of: (rank, index) => column(runs[index].breakdown, part)[rank] })),
  ];
  let metric = metrics[0];
  const difference = (rank) => metric.of(rank, 1) - metric.of(rank, 0);
  const sign = (time) => `${time > 0 ? "+" : ""}${picos(time)}`;
  box.append(element("div", { class: "controls" }, choice("Change of", metrics.map(({ name }) => name), (index) => { metric = metrics[index]; map.redraw(); })));
  const map = chart(box, "B less A, a cell for each rank", 380, (colours) => rankMap(colours, difference, { format: sign, scale: "diverging" }));
  const all = Array.from({ length: run.ranks }, (_, rank) => rank);
  const two = metrics.slice(0, 2).flatMap(({ name, of }) => pairOf(name, of, (time) => picos(time)));
  table(box, [{ name: "rank", value: (rank) => rank }, ...two], all, { sorted: 3 });
}

function showChangedPath() {
  const paths = runs.map((report) => report.critical_path);
  if (!paths[0] || !paths[1]) return;
  const box = section("path", "Critical path");
  const parts = Object.keys(paths[0].parts).filter((key) => paths.some((path) => path.parts[key]));
  table(box, [{ name: "part", value: (key) => key.replace("_ps", "") }, ...pairOf("", (key, index) => paths[index].parts[key], (time) => picos(time))], parts, { filters: false });
}
