// The sections of a diagnosis.
"use strict";

const { diagnosis } = data;
// An efficiency of this or less is as bad as any.
const WORST = 0.5;
// Panels of problems, to which a timeline on the page adds their instances.
const problemPanels = [];
// Green for 1 and red for bad efficiencies, in light and dark colours alike.
const shade = (value) => (value == null ? {} : { style: `background:hsl(${Math.round(120 * Math.min(1, Math.max(0, (value - WORST) / (1 - WORST))))} 75% 45% / 28%)` });
const efficiency = (name, of) => ({ name, value: of, text: (value) => (value == null ? "-" : percent(value)), cell: (row) => shade(of(row)) });

function showEfficiencies() {
  const { runs, rows } = diagnosis.efficiencies;
  const box = section("efficiencies", "Efficiencies", "100 % is ideal. Children of a row multiply to it.");
  table(box, [
    { name: "efficiency", value: ([, name]) => name, cell: ([depth]) => ({ style: `padding-left:${0.6 + 1.4 * depth}em` }) },
    ...runs.map(([name, ranks], index) => efficiency(`${name}, ${count(ranks)} ranks`, ([, , values]) => values[index])),
  ], rows, { filters: false, all: true });
}

function showProblems() {
  const { problems, ranks } = diagnosis.found;
  const box = section("problems", "Problems", problems.length ? "Click on a problem to see where it is, and what to do." : "No rule found a problem.");
  if (!problems.length) return;
  const gains = problems.filter((problem) => problem.gain_s !== null);
  if (gains.length) {
    const bars = [{ name: "gain", colour: data.colours.runs[0], values: gains.map((problem) => Math.max(0, problem.gain_s)) }];
    chart(box, "Time that the program would save", 70 + 30 * gains.length, (colours, width) =>
      stacked(colours, gains.map((problem) => problem.name), bars, { format: seconds, axis: "gain", shorten: width < 600 ? 18 : 44 }), ({ dataIndex }) => choose(gains[dataIndex]));
  }
  const panels = problems.map((problem) => showProblem(problem, ranks));
  const choose = (problem) => {
    const panel = panels[problems.indexOf(problem)];
    panel.open = true;
    panel.scrollIntoView({ block: "nearest" });
  };
  table(box, [
    { name: "problem", value: (problem) => problem.name },
    { name: "time", title: "of all ranks", value: (problem) => problem.duration_s, text: (time) => seconds(time) },
    { name: "share", title: "of the time of all ranks", value: (problem) => problem.share, text: (part) => percent(part) },
    ...(gains.length ? [{ name: "gain", title: "simulated time that the program would save", value: (problem) => problem.gain_s, text: (time) => (time === null ? "-" : seconds(time)) }] : []),
  ], problems, { chosen: choose });
  box.append(...panels);
}

// A problem: its advice, its places and its ranks.
function showProblem(problem, ranks) {
  const panel = element("details", { class: "panel", open: problem === diagnosis.found.problems[0] }, element("summary", {}, element("b", {}, problem.name)), element("p", {}, problem.description), element("p", {}, element("b", {}, problem.recommendation)));
  const hypothesis = problem.hypothesis ? ` of ${problem.hypothesis}` : "";
  if (problem.gain_s !== null && hypothesis) panel.append(element("p", { class: "note" }, `The gain of ${seconds(problem.gain_s)} is that${hypothesis}.`));
  if (problem.no_gain) panel.append(element("p", { class: "note" }, `No gain is known${hypothesis}: ${problem.no_gain}.`));
  const note = element("p", { class: "note" }, `Seen on ${count(problem.ranks)} of ${count(ranks)} ranks. `);
  if (problem.states.length) problemPanels.push({ problem, panel, note });
  panel.append(note);
  const sides = element("div", { class: "side" }, element("div"), element("div"));
  panel.append(sides);
  if (problem.places.length) {
    table(sides.children[0], [{ name: "place", value: (place) => place.site ?? "-" }, { name: "call", value: (place) => place.call ?? "" }, { name: "time", value: (place) => place.duration_s, text: (time) => seconds(time) }], problem.places, { sorted: 2 });
  }
  if (problem.pairs.length) {
    const cause = (value) => value ?? "not known";
    table(panel, [
      { name: "waits at", value: (pair) => pair.site ?? "-" }, { name: "call", value: (pair) => pair.call ?? "" },
      { name: "because of", value: (pair) => pair.other_site ?? "-" }, { name: "its call", value: (pair) => cause(pair.other_call) },
      { name: "time", value: (pair) => pair.duration_s, text: (time) => seconds(time) },
    ], problem.pairs, { sorted: 4 });
  }
  if (problem.rank_times_s.length > 1) {
    chart(sides.children[1], "Time of each rank in these calls, from left to right and then line by line", 280, (colours) => cellMap(colours, ranks, problem.rank_times_s, { format: seconds }));
  }
  return panel;
}

function showRegions() {
  const { regions } = diagnosis.found;
  if (!regions.some((region) => region.site !== null)) return;
  const box = section("regions", "Call sites and regions");
  const kinds = ["parallel_efficiency", "load_balance", "communication_efficiency", "serialization_efficiency", "transfer_efficiency"];
  table(box, [
    { name: "region", value: (region) => region.site ?? "before the first" }, { name: "time of all ranks", value: (region) => region.time_s, text: (time) => seconds(time) },
    ...kinds.map((kind) => efficiency(spaced(kind), (region) => region[kind])),
  ], regions, { sorted: 1 });
}

function showTolerance() {
  if (!diagnosis.tolerance) return;
  const { limits, rows } = diagnosis.tolerance;
  const box = section("tolerance", "How much slower the network could be", "Factors of the latency, or of the time per byte, with which the program takes so much longer.");
  table(box, [
    { name: "property", value: ([name]) => name }, { name: "time proportional to it", value: ([, time]) => time, text: (time) => seconds(time) },
    ...limits.map((more, index) => ({ name: `with ${(100 * more).toFixed(0)} % more time`, value: ([, , factors]) => factors[index], text: (factor) => (factor === null ? "any" : `x ${Number(factor.toPrecision(4))}`) })),
  ], rows, { filters: false, all: true });
}

function showDiagnosis() {
  if (!diagnosis) return;
  for (const show of [showEfficiencies, showProblems, showRegions, showTolerance]) show();
}
