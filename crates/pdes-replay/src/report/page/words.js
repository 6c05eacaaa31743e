// The parts of a time, with their words and colours.
"use strict";

const MEANINGS = {
  compute: "computation of the program",
  sleep: "sleep of the program",
  library: "time inside the MPI library: overheads, polls, reductions",
  transfer: "both sides are ready, and data are under way",
  late_sender: "a receiver waits for a message that has not been sent yet",
  late_receiver: "a sender waits for a receive that has not been posted yet",
  wait_at_barrier: "a rank waits at a barrier until the last one has come",
  wait_at_nxn: "a rank waits in an operation of all with all until the last one has come",
  late_broadcast: "a rank waits for the root, which sends to all and has not come yet",
  early_reduce: "the root, which receives from all, waits for a rank that has not come yet",
  early_scan: "a rank waits in a scan for a rank below it that has not come yet",
};
const PARTS = data.parts.map(([name, colour]) => ({ key: name, name: spaced(name), colour, hint: MEANINGS[name] }));
const WAITS = PARTS.slice(4);

// The parts that occur in any of these totals.
const occurring = (totals) => PARTS.filter((part) => totals.some((total) => total && total[`${part.key}_s`] > 0));

// The definitions of parts.
function words(parts) {
  return element("dl", { class: "words" }, ...parts.flatMap((part) => [
    element("dt", {}, element("i", { style: `background:${part.colour}` }), part.name), element("dd", {}, part.hint),
  ]));
}

// Flattens nested fields to names with dots.
function flat(value, path = "", rows = new Map()) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [key, field] of Object.entries(value)) flat(field, path ? `${path}.${key}` : key, rows);
  } else if (value !== null) rows.set(path, Array.isArray(value) ? JSON.stringify(value) : String(value));
  return rows;
}

const site = (name) => name ?? "before the first call site";

// A heat map over time: a row for each name; `cells` are [bin of so many picoseconds, row, value].
function overTime(box, title, { names, bin: length, cells, format, hint = format, most = null, height }) {
  const time = (bin) => picos(bin * length, 3);
  const bins = Math.max(...cells.map(([bin]) => bin)) + 1;
  return chart(box, title, height, (colours, width) => {
    const options = heat(colours, {
      columns: Array.from({ length: bins }, (_, bin) => time(bin)), rows: names, cells, format, most, xName: "simulated time",
      hint: (_, [bin, row, value]) => `<b>${escaped(names[row])}</b><br>${time(bin)} to ${time(bin + 1)}: ${hint(value)}`,
    });
    options.yAxis.axisLabel = { ...options.yAxis.axisLabel, width: width < 600 ? 90 : 210, overflow: "truncate", fontSize: 11, ...(names.length <= 32 ? { interval: 0 } : {}) };
    return options;
  });
}
