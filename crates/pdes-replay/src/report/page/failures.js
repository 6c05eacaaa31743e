// Failures of links and speeds in the run, and what hosts that die did to its job.
"use strict";

function showFailures() {
  const failures = run.failures;
  if (!failures) return;
  const { job, resources } = failures;
  const box = section("failures", "Failures", failures.left_out.join("; "));
  const instant = (time) => (time === null ? "-" : seconds(time));
  if (job) {
    cards(box, [
      [job.ended_by === null ? "time with failures" : `ended: ${job.ended_by} dies`, seconds(job.time_s)], ["work", seconds(job.work_s)],
      ["goodput", percent(job.goodput)], ["lost", seconds(job.lost_s)], ["checkpoints", count(job.checkpoints)],
    ]);
  }
  const hosts = (job?.failures ?? []).map((failure) => ({ ...failure, effect: "dead", until_s: failure.resumed_s }));
  const rows = [...resources.map((failure) => ({ ...failure, lost_s: null, until_s: failure.repaired_s })), ...hosts];
  table(box, [
    { name: "component", value: (row) => row.component }, { name: "effect", value: (row) => row.effect },
    { name: "at", value: (row) => row.at_s, text: instant }, { name: "until", value: (row) => row.until_s, text: instant },
    { name: "lost", value: (row) => row.lost_s, text: instant },
  ], rows, { sorted: 2, descending: false });
}
