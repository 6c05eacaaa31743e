// Call tree: pick a metric, a place in the program, and see its ranks.
"use strict";

// Builds a tree of regions or files, call sites and calls; `values` has the node of each run.
function callTree() {
  const root = { name: "program", children: new Map(), values: [] };
  runs.forEach((report, index) => {
    for (const node of report.call_tree.nodes) {
      const name = site(node.site);
      // A call site is `file:line`; a region is a path.
      const file = node.site && /^(.*):[0-9]+$/.exec(node.site);
      const steps = file ? [file[1].split("/").pop(), name] : node.site ? name.split("/") : [name];
      let at = root;
      for (const step of [...steps, node.action]) {
        if (!at.children.has(step)) at.children.set(step, { name: step, children: new Map(), values: [] });
        at = at.children.get(step);
      }
      at.values[index] = node;
    }
  });
  return root;
}

// All nodes of the report in a subtree of a run.
function nodesOf(node, index) {
  return [...(node.values[index] ? [node.values[index]] : []), ...[...node.children.values()].flatMap((child) => nodesOf(child, index))];
}

function showCallTree() {
  if (runs.some((report) => !report.call_tree)) return;
  const box = section("calls", "Call tree", "Pick a metric, then a place in the program: beside it are its ranks. Arrow keys move, open and close.");
  const metrics = [
    { name: "time", key: "time_s" }, { name: "waiting", key: "waiting_s" }, ...occurring(runs.map((report) => report.breakdown.total)).map((part) => ({ name: part.name, key: `${part.key}_s`, hint: part.hint })),
    { name: "number of calls", key: "count" },
  ];
  let metric = metrics[0];
  const root = callTree();
  const inclusive = (node, index) => sum(nodesOf(node, index).map((value) => value[metric.key]));
  // Of a place that is both a region and a step on the way to others: its own calls.
  const exclusive = (node, index) => sum([...node.children.values()].filter((child) => !child.children.size).map((child) => inclusive(child, index))) + (node.values[index]?.[metric.key] || 0);
  const open = new Set([root, ...[...root.children.values()].filter((node) => root.children.size < 12)]);
  let selected = root;
  const format = (value) => (metric.key === "count" ? count(value) : value ? seconds(value) : "");
  const hint = element("p", { class: "note" });
  const body = element("tbody");
  const heads = isPair ? ["A", "B", "change of the whole", "difference"] : ["inclusive", "exclusive", "share"];
  const grid = element("table", { class: "tree", role: "treegrid", "aria-label": "call tree" },
    element("thead", {}, element("tr", {}, ...["place", ...heads].map((name, index) => element("th", { class: index && "number", scope: "col" }, name)))), body);
  const sides = element("div", { class: "side" }, element("div", {}, element("div", { class: "scroll" }, grid)), element("div"));
  box.append(element("div", { class: "controls" }, choice("Metric", metrics.map(({ name }) => name), (index) => { metric = metrics[index]; draw(); })), hint, sides);

  function rows(node, level, found = []) {
    found.push([node, level]);
    const children = [...node.children.values()].sort((one, other) => inclusive(other, 0) - inclusive(one, 0));
    if (open.has(node)) for (const child of children) rows(child, level + 1, found);
    return found;
  }
  function draw(focus = false) {
    const total = inclusive(root, 0);
    const whole = runs.map((_, index) => inclusive(root, index));
    hint.textContent = metric.hint ? `${metric.name}: ${metric.hint}.` : "";
    const shown = rows(root, 0);
    body.replaceChildren(...shown.map(([node, level]) => {
      const isLeaf = !node.children.size;
      const values = runs.map((_, index) => inclusive(node, index));
      const cells = isPair
        ? [format(values[0]), format(values[1]), whole[0] ? `${(100 * (values[1] - values[0]) / whole[0]).toFixed(2)} %` : "", change(values[1], values[0])]
        : [format(values[0]), isLeaf ? format(values[0]) : format(exclusive(node, 0)), percent(values[0], total)];
      const twist = isLeaf ? "" : open.has(node) ? "\u25be" : "\u25b8";
      const name = element("td", { style: `padding-left:${0.3 + 1.1 * level}em` }, element("span", { class: "twist" }, twist), node.name);
      const row = element("tr", {
        role: "row", class: "chosen", tabindex: node === selected ? 0 : -1, "aria-level": level + 1, "aria-selected": node === selected, "aria-expanded": isLeaf ? null : String(open.has(node)),
        onclick: (event) => { if (node === selected || event.target.className === "twist") toggle(node); select(node); },
        onkeydown: (event) => press(event, node, shown),
      }, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
      row.node = node;
      return row;
    }));
    if (focus) [...body.children].find((row) => row.node === selected)?.focus();
    ranks.redraw();
  }
  const toggle = (node) => (open.has(node) ? open.delete(node) : open.add(node));
  const select = (node, focus = true) => { selected = node; draw(focus); };
  function press(event, node, shown) {
    const at = shown.findIndex(([other]) => other === node);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined) select((shown[to] || shown[at])[0]);
    else if (event.key === "ArrowRight" && node.children.size) { open.add(node); draw(true); }
    else if (event.key === "ArrowLeft") {
      if (open.delete(node)) draw(true);
      else select(shown.slice(0, at).reverse().find(([, level]) => level < shown[at][1])?.[0] || node);
    } else if (event.key === "Enter" || event.key === " ") { toggle(node); draw(true); }
    else return;
    event.preventDefault();
  }
  // Times of groups of ranks at the selected place; of waits their sum, of other metrics the whole time.
  const times = (index) => {
    const name = metric.key === "waiting_s" || WAITS.some((part) => `${part.key}_s` === metric.key) ? "waiting_ps" : "time_ps";
    const nodes = nodesOf(selected, index);
    const groups = runs[index].call_tree.nodes[0]?.time_ps.length || 0;
    return { name: name === "waiting_ps" ? "waiting" : "time", values: Array.from({ length: groups }, (_, group) => sum(nodes.map((node) => node[name][group]))) };
  };
  const ranks = chart(sides.children[1], "Ranks at this place", 320, (colours) => {
    const size = run.call_tree.group_size;
    const found = runs.map((_, index) => times(index));
    // At most as many bars as can be told apart: means of neighbours.
    const step = Math.ceil(found[0].values.length / BARS);
    const groups = Math.ceil(found[0].values.length / step);
    const mean = (values, group) => sum(values.slice(group * step, (group + 1) * step)) / Math.min(step, values.length - group * step) / size / 1e12;
    const labels = Array.from({ length: groups }, (_, group) => (size * step === 1 ? `${group}` : `${group * step * size}-${Math.min(run.ranks, (group + 1) * step * size) - 1}`));
    const series = found.map(({ name, values }, index) => ({
      name: isPair ? `${LETTERS[index]}: ${name}` : `${name} at: ${selected.name}`, colour: data.colours.runs[index], values: labels.map((_, group) => mean(values, group)),
    }));
    const options = stacked(colours, labels, series, { format: seconds, axis: size * step === 1 ? "time" : "mean time of a rank", upright: true, label: "rank" });
    if (isPair) options.series.forEach((one, index) => { one.stack = LETTERS[index]; });
    return options;
  }, ({ name }) => { if (!isPair && !name.includes("-")) selectRank(Number(name)); });
  draw();
}
