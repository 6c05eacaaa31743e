// The sections of the page, in order.
"use strict";

const sections = isPair
  ? [showDifference, showChangedParameters, showChangedTimes, showChangedRanks, showCallTree, showMatrix, showChangedPath, showTimelines]
  : [showSummary, showJobs, showDiagnosis, showTime, showRanks, showCallTree, showMatrix, showWaits, showPath, showLinks, showNetwork, showMachine, showFileServers, showEnergy, showFailures, showHistograms, showTimelines, showParameters];
for (const show of sections) show();
