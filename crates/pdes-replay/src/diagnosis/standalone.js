// The page of a diagnosis without a report.
"use strict";

const { found } = diagnosis;
const header = document.querySelector("header");
cards(header, [
  [`run time of ${count(found.ranks)} ranks`, seconds(found.simulated_time_s)], ["parallel efficiency", percent(found.pop.parallel_efficiency)],
  ["on an ideal network", seconds(found.pop.ideal_time_s)], ["problems", found.problems.length],
]);
header.append(...found.warnings.map((warning) => element("p", { class: "warning" }, warning)));
showDiagnosis();
