// Charts of ECharts in the colours of the page, drawn when they come into view.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const charts = [];
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) entry.target.draw();
}, { rootMargin: "400px" });
const resized = new ResizeObserver((entries) => {
  for (const entry of entries) if (entry.target.instance) entry.target.instance.resize();
});

// The colours of the page.
function theme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return { ink: colour("--ink"), soft: colour("--soft"), grid: colour("--grid"), paper: colour("--paper"), card: colour("--card") };
}

// Adds a chart; `build` returns its options for the colours and the width of the page. The result has `draw()`.
function chart(parent, title, height, build, pressed) {
  const box = element("div", { role: "img", "aria-label": title, style: `height:${height}px` });
  parent.append(element("figure", {}, element("figcaption", {}, title), box));
  box.draw = () => {
    const colours = { ...theme(), width: box.clientWidth };
    const first = !box.instance;
    box.instance ??= echarts.init(box, null, { renderer: "canvas" });
    if (first && pressed) box.instance.on("click", pressed);
    const common = {
      animation: false, color: data.colours.series, textStyle: { color: colours.ink, fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true, label: { description: title } },
    };
    box.instance.setOption({ ...common, ...build(colours, box.clientWidth) }, true);
  };
  box.redraw = () => box.instance && box.draw();
  charts.push(box);
  seen.observe(box);
  resized.observe(box);
  return box;
}
dark.addEventListener("change", () => charts.forEach((box) => box.redraw()));
// Browsers print only the last of several layers, as heat maps have: what is printed is one canvas.
addEventListener("beforeprint", () => charts.forEach((box) => {
  box.draw();
  const canvas = box.instance.renderToCanvas({ pixelRatio: 2 });
  canvas.className = "printed";
  box.append(canvas);
}));
addEventListener("afterprint", () => document.querySelectorAll(".printed").forEach((canvas) => canvas.remove()));

const axisStyle = (colours) => ({
  axisLine: { lineStyle: { color: colours.grid } }, axisTick: { show: false }, axisLabel: { color: colours.soft, hideOverlap: true },
  splitLine: { lineStyle: { color: colours.grid } }, nameTextStyle: { color: colours.soft }, nameLocation: "middle",
});
const valueAxis = (colours, name, format, more = {}) => {
  const { axisLabel, ...style } = axisStyle(colours);
  return { type: "value", name, ...style, nameGap: 28, axisLabel: { ...axisLabel, formatter: (value) => format(value) }, ...more };
};
const nameAxis = (colours, names, more = {}) => {
  const { axisLabel, ...style } = axisStyle(colours);
  return { type: "category", data: names, ...style, ...more, axisLabel: { ...axisLabel, ...more.axisLabel } };
};
const tooltip = (colours, formatter, more = {}) => ({
  confine: true, backgroundColor: colours.card, borderColor: colours.grid, textStyle: { color: colours.ink, fontSize: 13 },
  extraCssText: "max-width:22em;white-space:normal", formatter, ...more,
});
const legend = (colours, names, more = {}) => ({
  top: 0, left: 0, right: 0, itemWidth: 14, itemHeight: 10, itemGap: 10, textStyle: { color: colours.ink }, data: names, ...more,
});
// The height of a legend, whose names are never cut: lines of about 7 px for each letter.
const legendHeight = (colours, names) => {
  const widths = names.map((name) => 28 + 6.5 * name.length);
  let [lines, used] = [1, 0];
  for (const width of widths) {
    if (used && used + width > colours.width) [lines, used] = [lines + 1, 0];
    used += width;
  }
  return 14 + 21 * lines;
};
// Text for tooltips, which are HTML.
const escaped = (text) => element("i", {}, String(text)).innerHTML;

// Options of horizontal or vertical bars, stacked: `parts` have a `name`, a `colour`, a `hint` and `values`, one for each label.
function stacked(colours, labels, parts, { format, axis, upright = false, label = null, shorten = 16 }) {
  const cut = (name) => (name.length > shorten ? `${name.slice(0, shorten - 1)}...` : name);
  const names = nameAxis(colours, labels, upright ? { name: label, nameGap: 28 } : { inverse: true, axisLabel: { formatter: cut } });
  const values = valueAxis(colours, axis, format, upright ? { nameGap: 56 } : {});
  const hint = (points) => {
    const lines = points.filter((point) => point.value).map((point) => `${point.marker}${escaped(point.seriesName)}: <b>${format(point.value)}</b>`);
    return [`<b>${escaped(points[0].axisValueLabel)}</b>: ${format(sum(points.map((point) => point.value || 0)))}`, ...lines].join("<br>");
  };
  return {
    legend: legend(colours, parts.map((part) => part.name), { show: parts.length > 1,  tooltip: { show: true, formatter: ({ name }) => `${name}: ${parts.find((part) => part.name === name).hint || ""}` } }),
    grid: { left: upright ? 28 : 8, right: 24, top: parts.length > 1 ? legendHeight(colours, parts.map((part) => part.name)) : 8, bottom: axis || upright ? 34 : 8, containLabel: true },
    tooltip: tooltip(colours, hint, { trigger: "axis", axisPointer: { type: "shadow" } }),
    xAxis: upright ? names : values,
    yAxis: upright ? values : names,
    series: parts.map((part) => ({
      type: "bar", stack: "all", name: part.name, itemStyle: { color: part.colour }, data: part.values, barMaxWidth: 22, ...(upright ? { barCategoryGap: labels.length > 60 ? "0%" : "12%" } : {}),
    })),
  };
}

// Options of a heat map: `cells` are [column, row, value]; the scale is logarithmic, diverging around 0, or linear from `least` to `most`.
function heat(colours, { columns, rows, cells, scale = "linear", format, hint, most = null, least = 0, xName, yName }) {
  const values = cells.map((cell) => cell[2]).filter(Number.isFinite);
  const highest = most ?? values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const lowest = values.reduce((least, value) => (value > 0 ? Math.min(least, value) : least), Infinity);
  const shown = (value) => (scale === "log" ? Math.log10(value) : value);
  const drawn = cells.map(([x, y, value], index) => [x, y, value, index]).filter(([, , value]) => scale !== "log" || value > 0);
  const range = scale === "log" ? [shown(lowest === Infinity ? 1 : lowest), shown(highest || 1)] : scale === "diverging" ? [-highest, highest] : [least, highest];
  // Equal values are no scale: zero is neutral, as in the middle of a diverging one, and a text says what all of them are.
  const isFlat = range[0] === range[1] && drawn.length > 0;
  const [low, high] = range[0] === range[1] ? [range[0] - 1, range[1] + 1] : range;
  const palette = scale === "diverging" ? data.colours.diverging : data.colours.sequential;
  const all = scale === "diverging" ? "no difference anywhere" : `the same everywhere: ${format(values.find((value) => scale !== "log" || value > 0))}`;
  return {
    grid: { left: yName ? 24 : 8, right: 16, top: 50, bottom: 34, containLabel: true },
    tooltip: tooltip(colours, (point) => hint(point.value, cells[point.value[3]])),
    visualMap: {
      // Without a range, the name of the value is beside its colour.
      ...(isFlat ? { text: [all, ""], itemHeight: 12 } : { calculable: true, itemHeight: 130 }),
      min: low, max: high, orient: "horizontal", left: 0, top: 0, itemWidth: 12, dimension: 2, textStyle: { color: colours.soft },
      formatter: (value) => format(scale === "log" ? 10 ** value : value),
      inRange: { color: isFlat ? [palette[palette.length >> 1]] : palette },
    },
    xAxis: nameAxis(colours, columns, { name: xName, nameGap: 26, splitLine: { show: false } }),
    yAxis: nameAxis(colours, rows, { name: yName, nameGap: 14 + 6.5 * Math.max(...rows.map((row) => String(row).length)), inverse: true, splitLine: { show: false }, axisLabel: rows.length > 30 ? { interval: Math.ceil(rows.length / 16) - 1 } : {} }),
    series: [{
      type: "heatmap", progressive: 1 << 20, progressiveThreshold: Infinity, data: drawn.map(([x, y, value, index]) => [x, y, shown(value), index]),
      emphasis: { itemStyle: { borderColor: colours.ink, borderWidth: 1 } },
    }],
  };
}

// The side of a map: the divisor closest to a square, as in process grids, or else the root.
function side(cells) {
  const root = Math.max(1, Math.ceil(Math.sqrt(cells)));
  for (let width = root; width <= 2 * root; width++) if (cells % width === 0) return width;
  return root;
}

// Options of a map of ranks, from left to right and then line by line; with fewer values than ranks, each is the mean of neighbours.
function cellMap(colours, ranks, values, { format, scale = "linear" }) {
  const share = Math.ceil(ranks / values.length);
  const width = side(values.length);
  const cells = values.map((value, cell) => [cell % width, Math.floor(cell / width), value, cell * share]);
  const name = (first) => (share === 1 ? `rank ${first}` : `ranks ${first} to ${Math.min(ranks, first + share) - 1}, mean`);
  return heat(colours, {
    columns: Array.from({ length: width }, (_, index) => index * share), rows: Array.from({ length: Math.ceil(values.length / width) }, (_, row) => row * width * share), cells, scale, format, least: scale === "linear" ? Math.min(...values) : 0,
    hint: (_, cell) => `<b>${name(cell[3])}</b>: ${format(cell[2])}`, yName: "first rank of a line",
  });
}
