// The runs of a sweep: times, times over numbers, times against costs.
"use strict";

const { axes, varying, positions, rows } = data;
const done = rows.map((row, index) => ({ ...row, index, found: row.result.Ok })).filter((row) => row.found);
// Of many axes each value has its name.
const labelOf = (row, without = -1) => varying.filter((axis) => axis !== without).map((axis) => (varying.length > 2 ? `${axes[axis]} ${row.labels[axis]}` : row.labels[axis])).join(", ");
const mostBars = 60;
const mostLines = 12;
const timeOf = (row) => row.found.simulated_time_s;
const best = done.reduce((least, row) => (least && timeOf(least) <= timeOf(row) ? least : row), null);

function showTimes() {
  const box = section("times", "Simulated time");
  const leftOut = rows.filter((row) => row.is_left_out).length;
  const failed = rows.length - leftOut - done.length;
  const shortest = best ? ` The shortest simulated time is ${seconds(timeOf(best))}, with ${labelOf(best)}.` : "";
  const others = leftOut ? ` ${leftOut} combinations are left out.` : "";
  box.append(element("p", {}, `${rows.length - leftOut} runs${failed ? `, ${failed} of which failed` : ""}.${shortest}${others}`));
  if (!best) return;
  const shown = done.length > mostBars ? [...done].sort((one, other) => timeOf(one) - timeOf(other)).slice(0, mostBars) : done;
  const mean = (row) => row.found.compute_s / Math.max(1, row.found.ranks);
  const parts = [
    { name: "computation", hint: "mean time of a rank in computations", colour: data.colours.series[0], values: shown.map(mean) },
    { name: "the rest", hint: "messages, waiting, collectives", colour: data.colours.runs[0], values: shown.map((row) => Math.max(0, timeOf(row) - mean(row))) },
  ];
  // The title names the axes, in their order.
  const names = shown.map((row) => varying.map((axis) => row.labels[axis]).join(" · "));
  const which = shown.length < done.length ? `, the shortest ${mostBars}` : "";
  chart(box, `Simulated time by ${varying.map((axis) => axes[axis]).join(", ")}${which}`, 110 + 24 * shown.length, (colours, width) =>
    stacked(colours, names, parts, { format: seconds, axis: "simulated time", shorten: width < 600 ? 18 : 44 }));
}

// The time over an axis whose values are numbers, with a line for each combination of the others.
function showLines() {
  for (const axis of varying) {
    const places = positions[axis];
    if (!done.length || !places) continue;
    // Labels with units are at their values, and stand at the ticks.
    const label = new Map(done.map((row) => [places[row.index], row.labels[axis]]));
    const lines = new Map();
    for (const row of done) {
      const name = labelOf(row, axis) || "simulated time";
      if (!lines.has(name)) lines.set(name, []);
      lines.get(name).push([places[row.index], timeOf(row)]);
    }
    let series = [...lines].map(([name, points]) => ({ type: "line", name, data: points, symbolSize: 8 }));
    if (lines.size > mostLines) {
      const all = [...lines].flatMap(([name, points]) => points.map((point) => [...point, name]));
      const shortest = new Map();
      for (const point of all) if (point[1] < (shortest.get(point[0])?.[1] ?? Infinity)) shortest.set(point[0], point);
      series = [
        { type: "line", name: "shortest", data: [...shortest.values()], symbolSize: 8 },
        { type: "scatter", name: "all runs", data: all, symbolSize: 4, color: data.colours.series[6] },
      ];
    }
    for (const { data: points } of series) points.sort((one, other) => one[0] - other[0]);
    const names = series.map(({ name }) => name);
    const box = section(`over-${axis}`, `Over ${axes[axis]}`);
    chart(box, `Simulated time over ${axes[axis]}`, 360, (colours) => ({
      legend: legend(colours, names),
      grid: { left: 44, right: 24, top: legendHeight(colours, names), bottom: 34, containLabel: true },
      tooltip: tooltip(colours, ({ seriesName, value }) => `<b>${escaped(value[2] ?? seriesName)}</b><br>${escaped(axes[axis])} ${escaped(label.get(value[0]))}: ${seconds(value[1])}`, { trigger: "item" }),
      xAxis: valueAxis(colours, axes[axis], (value) => label.get(value) ?? "", { scale: true, axisLabel: { ...axisStyle(colours).axisLabel, customValues: [...label.keys()], formatter: (value) => label.get(value) ?? "" }, axisTick: { customValues: [...label.keys()] } }),
      yAxis: valueAxis(colours, "simulated time", seconds, { nameGap: 66 }),
      series,
    }));
  }
}

// The times over two axes, a cell for each run.
function showMap() {
  if (varying.length !== 2 || !done.length) return;
  const [columns, lines] = varying.map((axis) => [...new Set(rows.map((row) => row.labels[axis]))]);
  if (Math.min(columns.length, lines.length) < 2 || done.length !== columns.length * lines.length) return;
  const place = (row) => [columns.indexOf(row.labels[varying[0]]), lines.indexOf(row.labels[varying[1]])];
  const times = done.map(timeOf);
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const [xName, yName] = varying.map((axis) => axes[axis]);
  const box = section("map", `By ${xName} and ${yName}`);
  chart(box, `Simulated time by ${xName} and ${yName}`, 130 + Math.max(26 * lines.length, 7 * yName.length), (colours) => heat(colours, {
    columns, rows: lines, cells: done.map((row) => [...place(row), timeOf(row), labelOf(row)]), xName, yName, format: seconds, least, most,
    scale: most > 20 * least ? "log" : "linear", hint: (value, cell) => `<b>${escaped(cell[3])}</b><br>${seconds(cell[2])}`,
  }));
}

// The speed-up over numbers of ranks against the fewest, with a line for each combination of the values that do not set that number.
function showScaling() {
  const numbers = [...new Set(done.map((row) => row.found.ranks))].sort((one, other) => one - other);
  if (numbers.length < 2) return;
  const isOther = (axis) => done.some((row) => done.some((other) => row.labels[axis] !== other.labels[axis] && row.found.ranks === other.found.ranks));
  const others = varying.filter(isOther);
  const lines = new Map();
  for (const row of [...done].sort((one, other) => one.found.ranks - other.found.ranks)) {
    const name = others.map((axis) => row.labels[axis]).join(", ") || "speed-up";
    if (!lines.has(name)) lines.set(name, []);
    lines.get(name).push({ ranks: row.found.ranks, time: timeOf(row) });
  }
  const gain = ([first], point) => first.time / point.time;
  const ideal = numbers.map((ranks) => [ranks, ranks / numbers[0]]);
  const box = section("scaling", "Scaling", `Speed-up against ${count(numbers[0])} ranks; the efficiency is the speed-up divided by the growth of the number of ranks.`);
  const names = [...lines.keys(), "ideal"];
  chart(box, "Speed-up over ranks", 360, (colours) => ({
    legend: legend(colours, names),
    grid: { left: 34, right: 24, top: legendHeight(colours, names), bottom: 34, containLabel: true },
    tooltip: tooltip(colours, ({ seriesName, value }) => `<b>${escaped(seriesName)}</b><br>${count(value[0])} ranks: ${value[1].toFixed(2)}`, { trigger: "item" }),
    xAxis: { ...valueAxis(colours, "ranks", count, { axisLabel: { ...axisStyle(colours).axisLabel, customValues: numbers } }), type: "log", logBase: 2 },
    yAxis: { ...valueAxis(colours, "speed-up", count, { nameGap: 30 }), type: "log", logBase: 2 },
    series: [
      ...[...lines].map(([name, points]) => ({ type: "line", name, data: points.map((point) => [point.ranks, gain(points, point)]), symbolSize: 8 })),
      { type: "line", name: "ideal", data: ideal, symbol: "none", lineStyle: { type: "dashed", color: colours.soft }, itemStyle: { color: colours.soft } },
    ],
  }));
  const points = [...lines].flatMap(([name, points]) => points.map((point) => ({ name, ...point, gain: gain(points, point), growth: point.ranks / points[0].ranks })));
  table(box, [
    ...(others.length ? [{ name: others.map((axis) => axes[axis]).join(", "), value: ({ name }) => name }] : []),
    { name: "ranks", value: ({ ranks }) => ranks, text: count },
    { name: "simulated time", value: ({ time }) => time, text: (time) => seconds(time, 6) },
    { name: "speed-up", value: (point) => point.gain, text: (gain) => gain.toFixed(2) },
    { name: "efficiency", value: (point) => point.gain / point.growth, text: (part) => percent(part) },
  ], points, {});
}

// Runs to which no other is both cheaper and faster, the cheapest first.
function pareto(costly) {
  const sorted = [...costly].sort((one, other) => one.cost - other.cost || timeOf(one) - timeOf(other));
  let least = Infinity;
  return sorted.filter((row) => timeOf(row) < least && ((least = timeOf(row)), true));
}

function showCosts() {
  const costly = done.filter((row) => row.cost !== null);
  if (costly.length < 2) return;
  const front = pareto(costly);
  const box = section("costs", "Time against cost", "On the line are the runs to which no other is both cheaper and faster.");
  const point = (row) => ({ value: [row.cost, timeOf(row)], name: labelOf(row) });
  const colour = data.colours.series;
  chart(box, "Simulated time against cost", 400, (colours) => ({
    legend: legend(colours, ["best for its cost", "others"]),
    grid: { left: 24, right: 90, top: 40, bottom: 34, containLabel: true },
    tooltip: tooltip(colours, ({ name, value }) => `<b>${escaped(name)}</b><br>cost ${count(value[0])}, ${seconds(value[1])}`, { trigger: "item" }),
    xAxis: valueAxis(colours, "cost", count, { scale: true }),
    yAxis: valueAxis(colours, "simulated time", seconds, { nameGap: 66, scale: true }),
    series: [
      {
        type: "line", name: "best for its cost", data: front.map(point), symbol: "circle", symbolSize: 10, step: "end", color: colour[2],
        label: { show: true, position: "top", align: "left", color: colours.ink, formatter: ({ name }) => name, width: 84, overflow: "truncate" }, labelLayout: { hideOverlap: true },
      },
      { type: "scatter", name: "others", data: costly.filter((row) => !front.includes(row)).map(point), symbolSize: 8, color: colour[6] },
    ],
  }));
}

function showRuns() {
  const box = section("runs", "All runs");
  const first = done[0];
  const columns = [
    ...varying.map((axis) => ({ name: axes[axis], value: (row) => row.labels[axis] })),
    { name: "simulated time", value: timeOf, text: (time) => seconds(time, 6) },
    { name: "against the first", value: timeOf, text: (time) => (time === timeOf(first) ? "1" : change(time, timeOf(first))) },
    ...(done.some((row) => row.cost !== null) ? [{ name: "cost", value: (row) => row.cost ?? 0, text: count }] : []),
    { name: "communication", value: ({ found }) => found.communication_s / (found.communication_s + found.compute_s), text: (part) => percent(part) },
    { name: "messages", value: ({ found }) => found.messages, text: count },
    { name: "M actions/s", title: "of wall-clock time", value: ({ found }) => found.actions_per_s / 1e6, text: (speed) => speed.toFixed(2) },
  ];
  table(box, columns, done, { filters: done.length > 5 });
  const leftOut = new Map();
  for (const row of rows) if (row.is_left_out) leftOut.set(row.result.Err, (leftOut.get(row.result.Err) ?? 0) + 1);
  for (const [reason, number] of leftOut) box.append(element("p", { class: "note" }, `${number} left out: ${reason}`));
  for (const row of rows) {
    if (row.is_left_out) continue;
    if (row.result.Err) box.append(element("p", { class: "warning" }, `${labelOf(row)}: ${row.result.Err}`));
    for (const warning of row.result.Ok?.warnings || []) box.append(element("p", { class: "note" }, `${labelOf(row)}: ${warning}`));
  }
}

for (const show of [showTimes, showScaling, showCosts, showLines, showMap, showRuns]) show();
