// Communication matrix: tiles that open into smaller ones, of one run or of the difference between two.
"use strict";

// Largest number of tiles along a side.
const TILES = 64;

const groupName = ({ group_size: size, groups }, first, last = first + 1) => {
  const end = Math.min(run.ranks, last * size) - 1;
  return first * size === end ? `${end}` : `${first * size}-${end}`;
};
const pairColumns = (matrix) => [
  { name: "from", value: (pair) => matrix.from[pair], text: (group) => groupName(matrix, group) },
  { name: "to", value: (pair) => matrix.to[pair], text: (group) => groupName(matrix, group) },
  { name: "bytes", value: (pair) => matrix.bytes[pair], text: bytes },
  { name: "messages", value: (pair) => matrix.messages[pair], text: count },
  { name: "in transfer", title: "time in transfer, summed over messages", value: (pair) => matrix.transfer_ps[pair], text: (time) => picos(time) },
];

function showMatrix() {
  const matrices = runs.map((report) => report.communication);
  const [matrix] = matrices;
  if (matrices.some((one) => !one || one.groups !== matrix.groups)) return;
  const size = matrix.group_size;
  const note = `Messages from one rank (line) to another (column), those of collective operations included. ${size > 1 ? `Of ${size} neighbouring ranks together. ` : ""}Click on a tile, or press + and the arrow keys, to come closer.`;
  const box = section("matrix", "Communication matrix", note);
  const metrics = [
    { name: "bytes", of: (one) => one.bytes, format: bytes }, { name: "messages", of: (one) => one.messages, format: count },
    { name: "time in transfer", of: (one) => one.transfer_ps, format: (time) => picos(time) },
  ];
  let metric = metrics[0];
  const whole = { row: 0, column: 0, side: matrix.groups };
  let view = whole;
  const where = element("output", { class: "note" });
  const step = () => Math.max(1, Math.ceil(view.side / TILES));
  function tiles() {
    const per = step();
    const number = Math.ceil(view.side / per);
    const totals = new Map();
    matrices.forEach((one, index) => {
      const values = metric.of(one);
      const sign = isPair && index === 0 ? -1 : 1;
      for (let pair = 0; pair < values.length; pair++) {
        const [row, column] = [one.from[pair] - view.row, one.to[pair] - view.column];
        if (row < 0 || column < 0 || row >= view.side || column >= view.side) continue;
        const tile = Math.floor(row / per) * number + Math.floor(column / per);
        totals.set(tile, (totals.get(tile) || 0) + sign * values[pair]);
      }
    });
    return [...totals].map(([tile, value]) => [tile % number, Math.floor(tile / number), value]);
  }
  const named = (from, index) => groupName(matrix, from + index * step(), Math.min(matrix.groups, from + (index + 1) * step()));
  function show(next) {
    const side = Math.min(matrix.groups, Math.max(Math.min(8, matrix.groups), Math.round(next.side)));
    const inside = (at) => Math.round(Math.min(matrix.groups - side, Math.max(0, at)));
    view = { side, row: inside(next.row), column: inside(next.column) };
    where.textContent = `from ranks ${groupName(matrix, view.row, view.row + side)}, to ranks ${groupName(matrix, view.column, view.column + side)}; a tile is ${count(step() * size)} x ${count(step() * size)} ranks`;
    map.redraw();
  }
  const zoom = (factor, row = view.row + view.side / 2, column = view.column + view.side / 2) =>
    show({ side: view.side * factor, row: row - (view.side * factor) / 2, column: column - (view.side * factor) / 2 });
  const move = (rows, columns) => show({ ...view, row: view.row + (rows * view.side) / 4, column: view.column + (columns * view.side) / 4 });
  const controls = element("div", { class: "controls" },
    choice("Show", metrics.map(({ name }) => name), (index) => { metric = metrics[index]; map.redraw(); }),
    button("+", "closer", () => zoom(0.5)), button("-", "wider", () => zoom(2)), button("all", "the whole matrix", () => show(whole)), where);
  box.append(controls);
  const map = chart(box, isPair ? "B less A, from rank to rank" : "From rank to rank", 520, (colours) => {
    const number = Math.ceil(view.side / step());
    const labels = (from) => Array.from({ length: number }, (_, index) => named(from, index));
    return heat(colours, {
      columns: labels(view.column), rows: labels(view.row), cells: tiles(), scale: isPair ? "diverging" : "log", format: metric.format, xName: "to rank", yName: "from rank",
      hint: (_, [column, row, value]) => `from rank ${named(view.row, row)} to rank ${named(view.column, column)}: <b>${isPair && value > 0 ? "+" : ""}${metric.format(value)}</b>`,
    });
  }, ({ value: [column, row] }) => zoom(0.25, view.row + (row + 0.5) * step(), view.column + (column + 0.5) * step()));
  map.tabIndex = 0;
  map.style.maxWidth = "640px";
  map.id = "matrix-map";
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(whole), ArrowUp: () => move(-1, 0), ArrowDown: () => move(1, 0), ArrowLeft: () => move(0, -1), ArrowRight: () => move(0, 1),
  };
  map.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  show(whole);
  if (!isPair) table(box, pairColumns(matrix), matrix.from.map((_, pair) => pair), { sorted: 2, chosen: (pair) => { show({ side: 8, row: matrix.from[pair] - 4, column: matrix.to[pair] - 4 }); map.scrollIntoView({ block: "nearest" }); } });
}
