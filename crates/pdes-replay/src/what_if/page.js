// The program and hypotheses about it: times, waiting, critical paths, verification.
"use strict";

const { lines } = data;
const [original] = lines;
const others = lines.slice(1);
const done = lines.filter(({ result }) => result.simulated_time_s !== null);
// Columns of hypotheses: the value of each, and its change against the program.
const compared = (found, of) => found.map((line) => ({
  name: line.title, value: (row) => of(line, row),
  text: (time, row) => (line === original || time === of(original, row) ? seconds(time) : `${seconds(time)} (${change(time, of(original, row))})`),
}));

function showTimes() {
  const box = section("times", "Simulated time", data.summary);
  const bars = [{ name: "simulated time", colour: data.colours.runs[0], values: done.map(({ result }) => result.simulated_time_s) }];
  if (done.length) {
    chart(box, "Simulated time", 70 + 26 * done.length, (colours, width) =>
      stacked(colours, done.map((line) => line.title), bars, { format: seconds, axis: "simulated time", shorten: width < 600 ? 18 : 44 }));
  }
  table(box, [
    { name: "hypothesis", value: (line) => line.title, link: (line) => line.page },
    { name: "simulated time", value: ({ result }) => result.simulated_time_s, text: (time) => (time === null ? "failed" : seconds(time)) },
    { name: "change", value: ({ result }) => result.change, text: (_, line) => (line === original || line.result.error ? "" : line.change) },
    ...(original.total ? [{ name: "waiting of all ranks", value: ({ total }) => total?.waiting_s ?? null, text: (time) => (time === null ? "-" : seconds(time)) }] : []),
  ], lines, { all: lines.length < 40 });
  for (const { title, result } of lines) {
    if (result.error) box.append(element("p", { class: "warning" }, `${title} failed: ${result.error}`));
    box.append(...result.warnings.map((warning) => element("p", { class: "warning" }, `${title}: ${warning}`)));
    const hops = result.hop_bytes;
    if (hops) box.append(element("p", { class: "note" }, `${title}: messages between two ranks, bytes times links: ${count(hops.before)} before, ${count(hops.after)} after.`));
  }
}

// A wait that is saved in one state often becomes one in another.
function showWaits() {
  if (!original.total) return;
  const found = done.filter(({ total }) => total);
  const parts = PARTS.filter((part) => found.some(({ total }) => total[`${part.key}_s`] > 0));
  const box = section("waits", "What the time of all ranks is for");
  const of = ({ total }, part) => total[`${part.key}_s`];
  chart(box, "Time of all ranks", 90 + 26 * found.length, (colours, width) =>
    stacked(colours, found.map((line) => line.title), parts.map((part) => ({ ...part, values: found.map((line) => of(line, part)) })), { format: seconds, axis: "time of all ranks", shorten: width < 600 ? 18 : 44 }));
  table(box, [{ name: "part", value: (part) => part.name, cell: (part) => ({ title: part.hint }) }, ...compared(found, of)], parts, { filters: false });
}

// The call sites whose waiting changes, for one hypothesis at a time.
function showSites() {
  const found = others.filter((line) => line.sites.length);
  if (!found.length || !original.sites.some(([site]) => site !== null)) return;
  const box = section("sites", "Where waiting changes");
  const shown = element("div");
  const before = new Map(original.sites);
  const show = (line) => {
    const after = new Map(line.sites);
    const rows = [...new Set([...before.keys(), ...after.keys()])].map((site) => [site, before.get(site) || 0, after.get(site) || 0]).filter(([, one, other]) => one !== other);
    shown.replaceChildren();
    if (!rows.length) {
      shown.append(element("p", {}, "Waiting is the same at all call sites."));
      return;
    }
    const [less, more] = [-1, 1].map((sign) => sum(rows.map(([, one, other]) => Math.max(0, sign * (other - one)))));
    shown.append(element("p", {}, `${seconds(less)} of waiting of all ranks goes, and ${seconds(more)} comes in other places.`));
    table(shown, [
      { name: "call site", value: ([site]) => site ?? "before the first" }, { name: original.title, value: ([, one]) => one, text: (time) => seconds(time) }, { name: line.title, value: ([, , other]) => other, text: (time) => seconds(time) },
      { name: "difference", value: ([, one, other]) => other - one, text: (time) => `${time > 0 ? "+" : ""}${seconds(time)}` }, { name: "change", value: ([, one, other]) => other - one, text: (_, [, one, other]) => change(other, one) },
    ], rows, { sorted: 3, descending: false });
  };
  box.append(element("div", { class: "controls" }, choice("Hypothesis", found.map((line) => line.title), (index) => show(found[index]))), shown);
  show(found[0]);
}

function showPaths() {
  const found = done.filter(({ path }) => path);
  if (!original.path) return;
  const box = section("paths", "Critical paths", "What is not on the path of the program does not end it earlier; what is on that of a hypothesis is what to look at next.");
  const parts = Object.keys(original.path.parts).filter((key) => found.some(({ path }) => path.parts[key] > 0));
  table(box, [
    { name: "hypothesis", value: (line) => line.title }, { name: "ends on rank", value: ({ path }) => path.rank }, { name: "rank with most time on it", value: ({ path }) => path.ranks[0]?.rank ?? null },
    { name: "hops between ranks", value: ({ path }) => path.hops, text: count }, ...parts.map((key) => ({ name: spaced(key.replace("_ps", "")), value: ({ path }) => path.parts[key], text: (time) => picos(time) })),
  ], found, { filters: false, all: true });
}

function showVerification() {
  const found = lines.filter((line) => line.verification && !line.result.is_same);
  if (!found.length) return;
  const box = section("verification", "Predicted, and really modified");
  const rows = found.flatMap((line) => line.verification.map((row) => [line.title, ...row]));
  const time = (name, at) => ({ name, value: (row) => row[at], text: (time) => seconds(time) });
  table(box, [{ name: "hypothesis", value: ([title]) => title }, { name: "time", value: ([, name]) => spaced(name) }, time("predicted", 2), time("modified", 3), { name: "deviation", value: (row) => row[4], text: (_, row) => row[5] }], rows, { filters: true });
}

for (const show of [showTimes, showWaits, showSites, showPaths, showVerification]) show();
