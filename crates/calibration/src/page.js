// The parameters of a machine: measured durations, the curves fitted to them, and what is left.
"use strict";

const { machine } = data;
const TITLES = {
  pingpong: "A message: half of a ping-pong", send: "MPI_Send that does not wait", send_late: "MPI_Send that does not wait", isend: "MPI_Isend",
  recv: "MPI_Recv of a message that has arrived",
};
// Distances from a fit above this are drawn at the edge [%].
const MAX_PERCENT = 60;
const [MEASURED, FIT, BREAK] = [data.colours.series[0], data.colours.series[5], data.colours.series[6]];

// The place of a size on a logarithmic axis: zero bytes are drawn at half a byte.
const place = (size) => (size === 0 ? 0.5 : size);
// Lines with gaps between them, as points of one series.
const separate = (lines) => lines.flatMap((line) => [...line, ["-", "-"]]);
const whole = (size) => `${size.toLocaleString("en")} B`;
const signed = (part) => `${part > 0 ? "+" : ""}${(100 * part).toFixed(2)} %`;

function showSummary() {
  const box = section("summary", "The machine");
  const calls = [["a failed test", machine.test_s], ["a failed MPI_Iprobe", machine.iprobe_s], ["posting a receive", machine.irecv_s]];
  cards(box, [
    ["a message of zero bytes", seconds(machine.zero_bytes_s)], ["bandwidth of the largest messages", rate(machine.bandwidth)], ["sends wait for their receiver from", whole(machine.detached_below)],
    ...(machine.speed ? [["speed of a core", `${Number((machine.speed / 1e9).toPrecision(4))} Gflop/s`]] : []), ...calls.filter(([, time]) => time !== null).map(([name, time]) => [name, seconds(time)]),
  ]);
  box.append(...machine.warnings.map((warning) => element("p", { class: "warning" }, warning)));
}

// Options of a chart over sizes: `measured` has [size, value, ...] and is pointed at, `lines` are drawn below. A scale is logarithmic if values differ by a large factor.
function overSizes(colours, measured, lines, { format, hint, range }) {
  const scale = range[0] > 0 && range[1] / range[0] > 30 ? "log" : "value";
  const sizes = measured.map(([size]) => place(size));
  const names = ["measured", "fit", ...(lines.some(({ name }) => name === "breakpoints") ? ["breakpoints"] : [])];
  const line = ({ name, points, colour, width = 2, opacity = 1 }) => ({
    type: "line", name, data: points, symbol: "none", silent: true, tooltip: { show: false }, itemStyle: { color: colour }, lineStyle: { color: colour, width, opacity },
  });
  const { axisLabel, ...style } = axisStyle(colours);
  // Axes end at values that are not round.
  const labels = (format) => ({ ...axisLabel, formatter: format, showMinLabel: false, showMaxLabel: false });
  return {
    legend: legend(colours, names), grid: { left: 8, right: 18, top: 36, bottom: 34, containLabel: true },
    tooltip: tooltip(colours, (points) => { const found = points.find((point) => point.seriesName === "measured"); return found ? hint(measured[found.dataIndex]) : ""; }, { trigger: "axis" }),
    xAxis: { type: "log", name: "message", nameGap: 28, min: 0.8 * sizes[0], max: 1.25 * sizes[sizes.length - 1], ...style, splitLine: { show: false }, axisLabel: labels(bytes) },
    yAxis: { type: scale, min: range[0], max: range[1], ...style, axisLabel: labels(format) },
    series: [
      ...lines.filter(({ dots }) => dots).map(({ points }) => ({ type: "scatter", data: points, symbolSize: 2.5, silent: true, itemStyle: { color: MEASURED, opacity: 0.25 }, tooltip: { show: false } })),
      ...lines.filter(({ dots }) => !dots).map(line),
      { type: "scatter", name: "measured", data: measured.map(([size, value]) => [place(size), value]), symbolSize: 5, itemStyle: { color: MEASURED } },
    ],
  };
}
// The range of positive values on a logarithmic axis, slightly widened.
const widened = (values) => {
  const found = values.filter((value) => value > 0 && Number.isFinite(value));
  return [0.8 * Math.min(...found), 1.25 * Math.max(...found)];
};
const vertical = (places, [low, high]) => separate(places.map((at) => [[at + 0.5, low], [at + 0.5, high]]));

const span = ({ above, end }) => {
  if (above === 0) return end === null ? "all" : `up to ${count(end)}`;
  return end === null ? `from ${count(above + 1)}` : `${count(above + 1)} to ${count(end)}`;
};

function showFit(fit) {
  const box = section(fit.operation, TITLES[fit.operation] || fit.operation);
  if (fit.composed_below !== null) {
    box.append(element("p", { class: "note" }, `Messages of less than ${whole(fit.composed_below)} had no ping-pong: their time is the sum of the overheads of both sides.`));
  }
  const distance = ([, typical, , , , expected]) => typical / expected - 1;
  const hint = (point) => {
    const [size, typical, low, high, number, expected] = point;
    return [`<b>${whole(size)}</b>: <b>${seconds(typical)}</b>`, `fit: ${seconds(expected)} (${signed(distance(point))} from it)`, ...(number > 1 ? [`eight in ten of ${count(number)}: ${seconds(low)} to ${seconds(high)}`] : [])].join("<br>");
  };
  const side = element("div", { class: "side" });
  box.append(side);
  const range = widened([...fit.observations, ...fit.points, ...fit.curve.flat()].map(([, time]) => time));
  const breaks = (range) => (fit.breakpoints.length ? [{ name: "breakpoints", points: vertical(fit.breakpoints, range), colour: BREAK, width: 1 }] : []);
  chart(side, "Durations", 330, (colours) => overSizes(colours, fit.points, [
    { dots: true, points: fit.observations.map(([size, time]) => [place(size), time]) }, ...breaks(range),
    { name: "fit", points: separate(fit.curve.map((piece) => piece.map(([size, time]) => [place(size), time]))), colour: FIT },
  ], { format: (time) => seconds(time, 3), hint, range }));
  const most = Math.min(MAX_PERCENT, 1.3 * Math.max(5, ...fit.points.map((point) => 100 * Math.abs(distance(point)))));
  const within = (time, expected) => Math.max(-most, Math.min(most, 100 * (time / expected - 1)));
  const ends = [fit.points[0], fit.points[fit.points.length - 1]].map(([size]) => [place(size), 0]);
  chart(side, "Distances from the fit", 330, (colours) => overSizes(colours, fit.points.map((point) => [point[0], within(point[1], point[5]), ...point]), [
    { name: "deciles", points: separate(fit.points.map(([size, , low, high, , expected]) => [low, high].map((time) => [place(size), within(time, expected)]))), colour: MEASURED, width: 1, opacity: 0.4 },
    ...breaks([-most, most]), { name: "fit", points: ends, colour: FIT },
  ], { format: (part) => `${Number(part.toFixed(1))} %`, hint: ([, , ...point]) => hint(point), range: [-most, most] }));
  const time = (name, value) => ({ name, value, text: (time) => seconds(time) });
  const part = (name, value, title) => ({ name, value, text: (part) => percent(part), title });
  table(box, [
    { name: "message [B]", value: ({ above }) => above, text: (_, segment) => span(segment) }, time("constant", ({ constant_s }) => constant_s), time("per byte", ({ slope_s }) => slope_s), { name: "sizes", value: ({ sizes }) => sizes },
    part("residual, median", ({ median }) => median), part("worst", ({ worst }) => worst), part("spread of a size", ({ spread }) => spread, "half the range between the first and the ninth decile, relative to the typical duration"),
  ], fit.segments, { filters: false, all: true });
  const details = element("details", {}, element("summary", {}, `The ${count(fit.points.length)} sizes that were measured`));
  box.append(details);
  table(details, [
    { name: "message [B]", value: ([size]) => size, text: count }, time("measured", ([, typical]) => typical), time("first decile", ([, , low]) => low), time("ninth decile", ([, , , high]) => high), { name: "observations", value: ([, , , , number]) => number, text: count },
    time("fit", ([, , , , , expected]) => expected), { name: "from the fit", value: (point) => Math.abs(distance(point)), text: (_, point) => signed(distance(point)) },
  ], fit.points, { sorted: 6 });
}

function showStreams() {
  if (!machine.streams.length) return;
  const box = section("streams", "Streams in one direction", "The modelled curve follows from the fits above; streams are not fitted.");
  const speeds = machine.streams.map(([size, time, modelled]) => [size, size / time, size / modelled]);
  const model = machine.stream_model.map((piece) => piece.filter(([size]) => size > 0).map(([size, time]) => [size, size / time]));
  const range = widened([...speeds.flatMap(([, ...both]) => both), ...model.flat().map(([, speed]) => speed)]);
  const hint = ([size, speed, modelled]) => `<b>${whole(size)}</b>: <b>${rate(speed)}</b><br>model: ${rate(modelled)}`;
  chart(box, "Bandwidth of streams", 330, (colours) => overSizes(colours, speeds, [{ name: "fit", points: separate(model), colour: FIT }], { format: rate, hint, range }));
}

function showComputations() {
  if (!machine.computations.length) return;
  const box = section("computations", "Computations of the program");
  table(box, [
    { name: "region", value: ([region]) => region || "before any region" }, { name: "computations", value: ([, number]) => number, text: count }, { name: "time", value: ([, , time]) => time, text: (time) => seconds(time) },
    { name: "speed", value: ([, , , speed]) => speed, text: (speed) => `${(speed / 1e9).toFixed(4)} Gflop/s` },
  ], machine.computations, { sorted: 2 });
}

showSummary();
machine.fits.forEach(showFit);
showStreams();
showComputations();
if (machine.notes.length) table(section("origin", "Origin of the data"), [{ name: "note", value: ([key]) => key }, { name: "value", value: ([, value]) => value }], machine.notes, { all: true });
