// The sections of the page, in order.
"use strict";

const sections = isPair
  ? [showDifference, showChangedParameters, showChangedTimes, showChangedRanks, showCallTree, showMatrix, showChangedPath]
  : [showSummary, showJobs, showDiagnosis, showTime, showRanks, showCallTree, showMatrix, showWaits, showPath, showLinks, showNetwork, showFileServers, showEnergy, showHistograms, showTimeline, showParameters];
for (const show of sections) show();
