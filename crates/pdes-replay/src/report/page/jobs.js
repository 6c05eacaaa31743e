// Jobs of the run, and who delays whom.
"use strict";

function showJobs() {
  const jobs = run.jobs;
  if (!jobs) return;
  const box = section("jobs", "Jobs", "Programs that ran at once. Other sections about ranks are those of the first job.");
  const columns = [
    { name: "job", value: (job) => jobs[job].name },
    { name: "placement", value: (job) => jobs[job].placement },
    { name: "ranks", value: (job) => jobs[job].ranks, text: count },
    { name: "hosts", value: (job) => jobs[job].hosts, text: count },
    { name: "start", value: (job) => jobs[job].start_s, text: (time) => seconds(time) },
    { name: "end", value: (job) => jobs[job].end_s, text: (time) => seconds(time) },
    { name: "time", value: (job) => jobs[job].simulated_time_s, text: (time) => seconds(time) },
    { name: "sent", value: (job) => jobs[job].message_bytes, text: bytes },
  ];
  const isCompared = jobs.every((job) => job.delayed_by);
  if (isCompared) {
    columns.push({ name: "alone", value: (job) => jobs[job].alone_s, text: (time) => seconds(time) });
    columns.push({ name: "slowdown", value: (job) => jobs[job].slowdown, text: (factor) => factor.toFixed(4) });
  }
  table(box, columns, jobs.map((_, job) => job), {});
  if (!isCompared || jobs.length < 2) return;
  const names = jobs.map((job) => job.name);
  const cells = jobs.flatMap((job, row) => job.delayed_by.map((lost) => [names.indexOf(lost.job), row, lost.lost_s]));
  const map = chart(box, "Who delays whom: time lost by a job (line) to another one (column)", 120 + 28 * jobs.length, (colours) =>
    heat(colours, {
      columns: names, rows: names, cells, scale: "diverging", format: seconds, xName: "delays", yName: "delayed",
      hint: (_, [column, row, lost]) => `${names[column]} delays ${names[row]} by <b>${seconds(lost)}</b>`,
    }));
  map.id = "delays-map";
  const onLinks = jobs.flatMap((job) => job.delayed_by.flatMap((lost) =>
    (lost.links ?? []).map((on) => ({ job: job.name, other: lost.job, link: on.link, lost_s: on.lost_s }))));
  if (onLinks.length === 0) return;
  onLinks.sort((one, other) => Math.abs(other.lost_s) - Math.abs(one.lost_s));
  table(box, [
    { name: "delayed", value: (row) => onLinks[row].job },
    { name: "by", value: (row) => onLinks[row].other },
    { name: "on the link", value: (row) => onLinks[row].link },
    { name: "lost", value: (row) => onLinks[row].lost_s, text: (time) => seconds(time) },
  ], onLinks.map((_, row) => row), {});
}
