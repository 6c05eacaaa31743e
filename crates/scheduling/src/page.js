// The page of a schedule: measures, a Gantt chart of nodes on a canvas, nodes and jobs over time, and a table of the jobs.
"use strict";

const { summary, jobs } = data;
const clock = (time) => (time < 60 ? seconds(time) : time < 3600 ? `${(time / 60).toFixed(1)} min` : time < 172800 ? `${(time / 3600).toFixed(2)} h` : `${(time / 86400).toFixed(2)} d`);
const wait = (job) => job.start - job.submitted;

const overview = section("summary", "Summary");
cards(overview, [
  ["jobs", count(summary.jobs)], ["nodes", count(summary.nodes)], ["makespan", clock(summary.makespan_s)],
  ["mean wait", clock(summary.mean_wait_s)], ["longest wait", clock(summary.max_wait_s)], ["jobs that wait", count(summary.jobs_that_wait)],
  ["bounded slowdown, mean", summary.mean_bounded_slowdown.toFixed(3)], ["utilisation", percent(summary.utilisation)],
]);

// Each job in a colour; jobs that follow each other differ.
const jobColour = (place) => data.colours.series[place % data.colours.series.length];

function gantt() {
  const box = section("gantt", "Nodes over time", "Each rectangle is a job on neighbouring nodes. Turn the wheel with Ctrl, or press + and -, to zoom in time; drag or press arrow keys to move; double-click or press 0 to see all.");
  const canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": "Gantt chart of the nodes" });
  const hint = element("output", { class: "note", "aria-live": "polite" }, " ");
  const frame = element("div", { class: "timeline" }, canvas, hint);
  box.append(frame);
  const [left, below] = [64, 26];
  const begin = jobs.reduce((least, job) => Math.min(least, job.submitted), Infinity);
  const end = jobs.reduce((last, job) => Math.max(last, job.finish), begin + 1e-6);
  const height = Math.min(640, Math.max(160, 10 * summary.nodes));
  let view = { from: begin, to: end };
  let width = 0;
  const x = (time) => left + ((time - view.from) / (view.to - view.from)) * (width - left);
  const y = (node) => (node / summary.nodes) * height;
  const timeAt = (pixel) => view.from + ((pixel - left) / (width - left)) * (view.to - view.from);

  function draw() {
    const density = devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.style.height = `${height + below}px`;
    [canvas.width, canvas.height] = [width * density, (height + below) * density];
    const context = canvas.getContext("2d");
    context.scale(density, density);
    const colours = theme();
    jobs.forEach((job, place) => {
      const [from, to] = [Math.max(left, x(job.start)), Math.min(width, x(job.finish))];
      if (to <= left || from >= width) return;
      context.fillStyle = jobColour(place);
      for (const [first, last] of job.ranges) {
        const [upper, lower] = [y(first), y(last + 1)];
        context.fillRect(from, upper, Math.max(0.5, to - from), lower - upper);
        if (to - from > 4 && lower - upper > 3) {
          context.strokeStyle = colours.paper;
          context.strokeRect(from + 0.5, upper + 0.5, to - from - 1, lower - upper - 1);
        }
        if (to - from > 9 * String(job.name).length && lower - upper > 12) {
          context.fillStyle = "#000";
          context.fillText(job.name, from + 4, (upper + lower) / 2 + 4);
          context.fillStyle = jobColour(place);
        }
      }
    });
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colours.soft;
    context.textAlign = "right";
    const each = Math.max(1, Math.ceil((14 * summary.nodes) / height));
    for (let node = 0; node < summary.nodes; node += each) context.fillText(node, left - 6, y(node) + Math.max(11, y(0.5) + 4));
    context.textAlign = "center";
    const ticks = Math.max(2, Math.floor((width - left) / 120));
    for (let tick = 0; tick <= ticks; tick++) {
      const time = view.from + (tick / ticks) * (view.to - view.from);
      context.fillText(clock(time), Math.min(width - 26, Math.max(left + 26, x(time))), height + 18);
    }
  }
  function show(from, to) {
    const length = Math.min(to - from, end - begin);
    const start = Math.min(Math.max(from, begin), end - length);
    view = { from: start, to: start + length };
    requestAnimationFrame(draw);
  }
  const zoom = (factor, at) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = (share) => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event.offsetX));
  }, { passive: false });
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => { grip = event.offsetX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { grip = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (grip !== null) {
      move((grip - event.offsetX) / (width - left));
      grip = event.offsetX;
    }
    const [time, node] = [timeAt(event.offsetX), Math.floor((event.offsetY / height) * summary.nodes)];
    const job = jobs.find((job) => job.start <= time && time < job.finish && job.ranges.some(([first, last]) => first <= node && node <= last));
    hint.textContent = job ? `job ${job.name}: ${job.count} nodes (${job.nodes}) for ${clock(job.finish - job.start)} from ${clock(job.start)}, after a wait of ${clock(wait(job))}` : " ";
  });
  canvas.addEventListener("dblclick", () => show(begin, end));
  canvas.addEventListener("keydown", (event) => {
    const middle = (view.from + view.to) / 2;
    const done = { "+": () => zoom(0.8, middle), "-": () => zoom(1.25, middle), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), 0: () => show(begin, end) }[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  });
  new ResizeObserver(draw).observe(frame);
  dark.addEventListener("change", draw);
}

// Values that change at instants: pairs of an instant and a change, as steps.
function steps(changes) {
  let value = 0;
  const found = [];
  for (const [time, by] of changes.sort((one, other) => one[0] - other[0])) {
    value += by;
    if (found.length && found[found.length - 1][0] === time) found[found.length - 1][1] = value;
    else found.push([time, value]);
  }
  return found;
}

function overTime() {
  const box = section("load", "Load", "Nodes on which jobs run, and nodes for which jobs wait.");
  const busy = steps(jobs.flatMap((job) => [[job.start, job.count], [job.finish, -job.count]]));
  const queued = steps(jobs.flatMap((job) => [[job.submitted, job.count], [job.start, -job.count]]));
  const line = (name, points) => ({ type: "line", step: "end", name, data: points, showSymbol: false, sampling: "max", lineStyle: { width: 1.2 }, areaStyle: name === "busy" ? { opacity: 0.25 } : undefined });
  chart(box, "Nodes that are busy, and that are waited for", 280, (colours) => ({
    legend: legend(colours, ["busy", "waited for"]), grid: { left: 28, right: 24, top: 34, bottom: 40, containLabel: true },
    tooltip: tooltip(colours, (points) => points.map((point) => `${point.marker}${point.seriesName}: <b>${count(point.value[1])}</b> at ${clock(point.value[0])}`).join("<br>"), { trigger: "axis" }),
    xAxis: valueAxis(colours, "time", clock), yAxis: valueAxis(colours, "nodes", count, { nameGap: 44 }),
    series: [line("busy", busy), line("waited for", queued)],
  }));
}

gantt();
overTime();
table(section("jobs", "Jobs", "In the order of their starts."), [
  { name: "job", value: (job) => job.name },
  { name: "nodes", value: (job) => job.count },
  { name: "submitted", value: (job) => job.submitted, text: clock },
  { name: "start", value: (job) => job.start, text: clock },
  { name: "wait", value: wait, text: clock },
  { name: "run time", value: (job) => job.finish - job.start, text: clock },
  { name: "estimate", value: (job) => job.estimate, text: clock },
  { name: "node numbers", value: (job) => job.nodes },
], jobs);
