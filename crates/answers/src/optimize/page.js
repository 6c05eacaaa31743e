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
  ], steps, { filters: false });
}

function showSettings() {
  const box = section("settings", "Settings", verdict);
  if (found.settings.length) box.append(element("pre", {}, found.settings.join("\n")));
  if (found.hosts) table(box, [{ name: "rank", value: ([rank]) => rank }, { name: "host", value: ([, host]) => host }], found.hosts.map((host, rank) => [rank, host]));
  for (const [name, why] of Object.entries(found.refused)) box.append(element("p", { class: "note" }, `Left out: ${name}: ${why}`));
}

for (const show of [showChanges, showSettings]) show();
