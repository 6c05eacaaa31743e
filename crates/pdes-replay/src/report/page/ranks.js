// Ranks: bars that open from groups to single ranks, a map, a table, and a panel for one rank.
"use strict";

// Largest number of bars; groups of neighbours have a bar each if there are more ranks.
const BARS = 128;
// Largest number of cells of a map.
const CELLS = 16384;
// Called with a rank that is selected.
const followers = [];
const selectRank = (rank) => followers.forEach((follow) => follow(rank));

const column = (breakdown, part) => breakdown.ranks[`${part.key}_ps`];
const waited = (breakdown, rank) => sum(WAITS.map((part) => column(breakdown, part)[rank]));

// A map with a cell for each rank, or for neighbours as their mean.
function rankMap(colours, value, options) {
  const share = Math.ceil(run.ranks / CELLS);
  const mean = (cell) => {
    const ranks = Array.from({ length: Math.min(share, run.ranks - cell * share) }, (_, index) => cell * share + index);
    return sum(ranks.map(value)) / ranks.length;
  };
  return cellMap(colours, run.ranks, Array.from({ length: Math.ceil(run.ranks / share) }, (_, cell) => mean(cell)), options);
}

function showRanks() {
  const breakdown = run.breakdown;
  if (!breakdown) return;
  const box = section("ranks", "Ranks", "Click on a bar to open a group of ranks, and then a rank; its part of the timeline follows.");
  const parts = occurring([breakdown.total]);
  let view = { first: 0, last: run.ranks };
  const size = () => Math.ceil((view.last - view.first) / BARS);
  const groups = () => Array.from({ length: Math.ceil((view.last - view.first) / size()) }, (_, group) => {
    const first = view.first + group * size();
    return [first, Math.min(view.last, first + size())];
  });
  const controls = element("div", { class: "controls" });
  const where = element("output", { class: "note" });
  const show = (first, last) => {
    view = { first, last };
    where.textContent = size() === 1 ? `ranks ${first} to ${last - 1}` : `ranks ${first} to ${last - 1}, a bar is the mean of ${size()}`;
    bars.redraw();
  };
  const entry = element("input", { type: "number", min: 0, max: run.ranks - 1, size: 8, "aria-label": "rank", onchange: () => selectRank(Number(entry.value)) });
  controls.append(element("label", { class: "choice" }, "rank ", entry), button("all ranks", "show all ranks", () => show(0, run.ranks)), where);
  box.append(controls);
  const bars = chart(box, "What the time of ranks is for", 320, (colours) => {
    const ranks = groups();
    const labels = ranks.map(([first, last]) => (last - first > 1 ? `${first}-${last - 1}` : `${first}`));
    const mean = (values, [first, last]) => sum(values.slice(first, last)) / (last - first) / 1e12;
    return stacked(colours, labels, parts.map((part) => ({ ...part, values: ranks.map((group) => mean(column(breakdown, part), group)) })), { format: seconds, axis: "simulated time", upright: true, label: "rank" });
  }, ({ dataIndex }) => {
    const [first, last] = groups()[dataIndex];
    if (last - first > 1) show(first, last);
    else selectRank(first);
  });
  show(0, run.ranks);
  if (run.ranks > 32) {
    let shown = { name: "end of the rank", values: breakdown.ranks.end_ps };
    const choices = [shown, ...parts.map((part) => ({ name: part.name, values: column(breakdown, part) }))];
    const controls = element("div", { class: "controls" }, choice("Map of", choices.map((choice) => choice.name), (index) => { shown = choices[index]; map.redraw(); }));
    box.append(controls);
    const map = chart(box, "A cell for each rank, from left to right and then line by line", 420, (colours) => rankMap(colours, (rank) => shown.values[rank], { format: (time) => picos(time) }),
      ({ value, data: point }) => selectRank(mapRank(value ?? point)));
    map.id = "rank-map";
  }
  const columns = [
    { name: "rank", value: (rank) => rank },
    { name: "end", value: (rank) => breakdown.ranks.end_ps[rank], text: (time) => picos(time) },
    { name: "waiting", value: (rank) => waited(breakdown, rank), text: (time) => picos(time) },
    ...parts.map((part) => ({ name: part.name, title: part.hint, value: (rank) => column(breakdown, part)[rank], text: (time) => (time ? picos(time) : "") })),
  ];
  const all = Array.from({ length: run.ranks }, (_, rank) => rank);
  table(box, columns, all, { sorted: 2, chosen: selectRank });
  const panel = element("div", { class: "panel", id: "rank", hidden: true, tabindex: -1, "aria-live": "polite" });
  box.append(panel);
  followers.push((rank) => {
    if (!(rank >= 0 && rank < run.ranks)) return;
    entry.value = rank;
    showRank(panel, rank, parts);
  });
}

// The rank of a cell of the map.
function mapRank([x, y]) {
  const share = Math.ceil(run.ranks / CELLS);
  return Math.min(run.ranks - 1, (y * side(Math.ceil(run.ranks / share)) + x) * share);
}

function showRank(panel, rank, parts) {
  const { breakdown, communication } = run;
  panel.hidden = false;
  panel.replaceChildren(element("h3", {}, `Rank ${rank}`));
  const times = parts.map((part) => `${part.name} ${picos(column(breakdown, part)[rank])}`);
  panel.append(element("p", {}, `Ends at ${picos(breakdown.ranks.end_ps[rank])}: ${times.join(", ")}. `));
  if (data.timelines.length) panel.append(element("p", {}, element("a", { href: "#timeline" }, "its part of the timeline")));
  const sides = element("div", { class: "side" }, element("div"), element("div"));
  panel.append(sides);
  const calls = breakdown.rank_calls.map((call) => ({ name: call.action, time: call.time_ps[rank], waiting: call.waiting_ps[rank] }));
  const time = (name, of) => ({ name, value: of, text: (time) => (time ? picos(time) : "") });
  table(sides.children[0], [{ name: "call", value: (call) => call.name }, time("time", (call) => call.time), time("waiting", (call) => call.waiting)], calls.filter((call) => call.time), { sorted: 1, filters: false });
  if (communication) {
    const group = Math.floor(rank / communication.group_size);
    const pairs = communication.from.map((_, pair) => pair).filter((pair) => communication.from[pair] === group || communication.to[pair] === group);
    table(sides.children[1], pairColumns(communication), pairs, { sorted: 2, filters: false });
  }
}
