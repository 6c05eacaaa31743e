// What to change: the run times after each change, and the settings that make the changes.
"use strict";

const { found, words: verdict, caveat } = data;
const steps = [{ name: "as it is", time_ps: found.before_ps, saved_ps: null }, ...found.changes];

function showChanges() {
  const box = section("changes", "Changes", caveat);
  box.append(...found.warnings.map((warning) => element("p", { class: "warning" }, warning)));
  cards(box, [["run time", picos(found.before_ps)], ["with all changes", picos(found.after_ps)], ["change", change(found.after_ps, found.before_ps)], ["replays", count(found.replays)]]);
  const bars = [{ name: "run time", colour: data.colours.runs[0], values: steps.map((step) => step.time_ps) }];
  chart(box, "Run time after each change", 70 + 26 * steps.length, (colours, width) =>
    stacked(colours, steps.map((step) => step.name), bars, { format: picos, axis: "run time", shorten: width < 600 ? 18 : 44 }));
  table(box, [
    { name: "change", value: (step) => step.name }, { name: "run time", value: (step) => step.time_ps, text: (time) => picos(time, 6) },
    { name: "saves", value: (step) => step.saved_ps, text: (time) => (time === null ? "" : picos(time)) },
    ...(found.currency === null ? [] : [{ name: `costs [${found.currency}]`, value: (step) => step.cost ?? null, text: (cost) => (cost === null ? "" : `${cost > 0 ? "+" : ""}${count(cost)}`) }]),
  ], steps, { filters: false });
}

function showSettings() {
  const box = section("settings", "Settings", verdict);
  if (found.settings.length) box.append(element("pre", { style: "white-space:pre-wrap;overflow-wrap:anywhere" }, found.settings.join("\n")));
  if (found.slack) {
    const { hosts, saved_share: share, saved_j: joules } = found.slack;
    box.append(element("p", {}, `Hosts that may compute slower save ${(100 * share).toFixed(1)} % of the dynamic energy of computations${joules === null ? "" : ` (${joules.toPrecision(4)} J)`}, if power goes with the cube of the frequency.`));
    table(box, [{ name: "host", value: ([host]) => host }, { name: "part of its frequency", value: ([, part]) => part }], Object.entries(hosts), { filters: false });
  }
  if (found.patch) box.append(element("h3", {}, "All changes as a hypothesis for what-if"), element("pre", { style: "white-space:pre-wrap;overflow-wrap:anywhere" }, found.patch));
  if (found.hosts) table(box, [{ name: "rank", value: ([rank]) => rank }, { name: "host", value: ([, host]) => host }], found.hosts.map((host, rank) => [rank, host]));
  for (const [name, why] of Object.entries(found.refused)) box.append(element("p", { class: "note" }, `Left out: ${name}: ${why}`));
}

for (const show of [showChanges, showSettings]) show();
