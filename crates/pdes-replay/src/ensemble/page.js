// The runs of an ensemble: measures, the distribution of their times, and a table.
"use strict";

const { ensemble } = data;
const done = ensemble.runs.filter((run) => run.time_s !== null && run.ended_by === null);

const overview = section("summary", "Summary");
cards(overview, [
  ["runs", count(ensemble.runs.length)], ["replays", count(ensemble.replays)], ["without failures", seconds(ensemble.without_failures_s)],
  ...(ensemble.times === null ? [] : [
    ["mean", `${seconds(ensemble.times.mean_s)} ± ${seconds(ensemble.times.confidence_s)}`], ["median", seconds(ensemble.times.median_s)],
    ["5 % and 95 %", `${seconds(ensemble.times.p5_s)}, ${seconds(ensemble.times.p95_s)}`],
  ]),
  ...(ensemble.expected_s === null ? [] : [["expected (Daly)", seconds(ensemble.expected_s)]]),
  ...(ensemble.ended ? [["ended by a failure", count(ensemble.ended)]] : []),
  ...(ensemble.failed ? [["without a result", count(ensemble.failed)]] : []),
]);
for (const [what, run] of [["shortest", ensemble.best], ["longest", ensemble.worst]]) {
  if (run) overview.append(element("p", {}, `The ${what} run takes ${seconds(run.time_s)}: ${run.name}, with `, element("code", {}, run.setting), "."));
}

// Numbers of runs in equal intervals of time.
function showTimes() {
  if (!done.length) return;
  const box = section("times", "Times of the runs", "Runs that a failure has ended, and those without a result, are left out.");
  const [least, most] = done.reduce(([least, most], run) => [Math.min(least, run.time_s), Math.max(most, run.time_s)], [Infinity, 0]);
  const bins = most > least ? Math.min(40, Math.max(5, Math.round(2 * Math.cbrt(done.length)))) : 1;
  const width = (most - least) / bins || most || 1;
  const numbers = Array(bins).fill(0);
  for (const run of done) numbers[Math.min(bins - 1, Math.floor((run.time_s - least) / width))] += 1;
  const label = (bin) => `${seconds(least + bin * width)} to ${seconds(least + (bin + 1) * width)}`;
  chart(box, "Number of runs by time", 300, (colours) => ({
    grid: { left: 28, right: 24, top: 12, bottom: 34, containLabel: true },
    tooltip: tooltip(colours, ([bar]) => `${label(bar.dataIndex)}: ${count(bar.value)} runs`, { trigger: "axis" }),
    xAxis: nameAxis(colours, numbers.map((_, bin) => seconds(least + (bin + 0.5) * width, 3)), { name: "time", nameGap: 28 }),
    yAxis: valueAxis(colours, "runs", count, { nameGap: 40, minInterval: 1 }),
    series: [{ type: "bar", barCategoryGap: "4%", data: numbers }],
  }));
}
showTimes();

const all = section("runs", "Runs");
const result = (run) => run.error ?? (run.ended_by === null ? "" : `ended: ${run.ended_by}`);
table(all, [
  { name: "run", value: (run) => run.name }, { name: "time", value: (run) => run.time_s ?? 0, text: (time) => (time ? seconds(time) : "-") },
  { name: "failures", value: (run) => run.failures, text: count }, { name: "lost", value: (run) => run.lost_s, text: (lost) => seconds(lost) },
  { name: "result", value: result },
], ensemble.runs, { sorted: 1 });
