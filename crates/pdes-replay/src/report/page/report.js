// The sections of the page, in order.
"use strict";

// The sections of a diagnosis.
const showDiagnosis = () => rendered().forEach(addSection);

const sections = isPair
  ? [showDifference, showChangedParameters, showChangedTimes, showChangedRanks, showCallTree, showMatrix, showChangedPath]
  : [showSummary, showDiagnosis, showTime, showRanks, showCallTree, showMatrix, showWaits, showPath, showLinks, showNetwork, showFileServers, showHistograms, showTimeline, showParameters];
for (const show of sections) show();
