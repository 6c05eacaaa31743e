// The timeline on a canvas: a line for each rank, or for neighbours if there are more than lines; of states that share a pixel the one with
// most time is drawn, so that millions of states open.
"use strict";

// Reads numbers of 7 bits per byte, the lowest first.
async function numbersOf(blob) {
  const packed = Uint8Array.from(atob(blob), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const read = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;
  return () => {
    let [number, unit] = [0, 1];
    for (;;) {
      const byte = read[at++];
      number += (byte & 0x7f) * unit;
      if (byte < 0x80) return number;
      unit *= 128;
    }
  };
}

async function readTimeline({ labels, blob }) {
  const next = await numbersOf(blob);
  let last = 1;
  const rows = labels.map((label) => {
    const length = next();
    const [begins, ends, kinds] = [new Float64Array(length), new Float64Array(length), new Uint32Array(length)];
    for (let state = 0, end = 0; state < length; state++) {
      begins[state] = end + next();
      ends[state] = end = begins[state] + next();
      kinds[state] = next();
    }
    if (length) last = Math.max(last, ends[length - 1]);
    return { label, begins, ends, kinds };
  });
  const messages = { from: [], sent: [], to: [], arrived: [] };
  for (let left = next(), sent = 0; left > 0; left--) {
    messages.from.push(next());
    messages.sent.push((sent += next()));
    messages.to.push(next());
    messages.arrived.push(sent + next());
    last = Math.max(last, messages.arrived[messages.arrived.length - 1]);
  }
  return { rows, messages, end: last };
}

// Number of instances of a problem that are listed.
const MOST_INSTANCES = 10;

// For each kind of states, whether a problem of a diagnosis is seen in it: by its name and its place, or its name alone where the
// timeline tells no place of the problem.
function kindsOf({ states, places }, { names, kinds }) {
  const named = kinds.map(([name]) => states.includes(names[name]));
  const there = kinds.map(([name, site, call], kind) => named[kind] && places.some((place) => place.site === site && place.call === (call ?? names[name])));
  return there.includes(true) ? there : named;
}

// The longest instances of some kinds of states, the longest first, and the number of all.
function longestInstances(rows, stands) {
  let [found, longest] = [0, []];
  rows.forEach(({ begins, ends, kinds }, row) => {
    for (let state = 0; state < kinds.length; state++) {
      if (!stands[kinds[state]]) continue;
      found++;
      const [begin, end] = [begins[state], ends[state]];
      const at = longest.findIndex((other) => other.end - other.begin < end - begin);
      if (at < 0 && longest.length === MOST_INSTANCES) continue;
      longest.splice(at < 0 ? longest.length : at, 0, { row, begin, end, kind: kinds[state] });
      longest.length = Math.min(longest.length, MOST_INSTANCES);
    }
  });
  return { found, longest };
}

// The colours of states: those of parts of a time as everywhere else. Calls are pale, so that waits in them stand out, and away from the
// yellow and red of these; each has its colour whatever else is on the timeline.
function stateColours(names) {
  const known = new Map(PARTS.map((part) => [part.key, part.colour]));
  const unknown = names.filter((name) => !data.calls.includes(name));
  const pale = (place) => `hsl(${90 + ((137.5 * place) % 230)} 42% ${place % 2 ? 86 : 74}%)`;
  return names.map((name) => known.get(name) || pale(data.calls.includes(name) ? data.calls.indexOf(name) : data.calls.length + unknown.indexOf(name)));
}

async function showTimelines() {
  if (!data.timelines.length) return;
  const box = section("timeline", isPair ? "Timelines" : "Timeline", "Turn the wheel with Ctrl, or press + and -, to zoom in time, with Shift to zoom ranks; drag or press arrow keys to move; double-click or press 0 to see all." + (isPair ? " Both show the same time since their first states, and the same ranks." : ""));
  const read = await Promise.all(data.timelines.map(readTimeline));
  const end = Math.max(...read.map((timeline) => timeline.end));
  // Two timelines move together.
  const followed = [];
  data.timelines.forEach((timeline, index) => {
    if (isPair) box.append(element("h3", {}, LETTERS[index]));
    const view = element("div", { class: "timeline" });
    box.append(view);
    const colours = stateColours(timeline.names);
    const meaning = (name) => MEANINGS[name] || `MPI call ${name}`;
    const swatches = timeline.names.map((name, index) => element("span", { title: meaning(name) }, element("i", { style: `background:${colours[index]}` }), spaced(name)));
    const told = element("output", { class: "note" });
    const hint = element("output", { class: "note", "aria-live": "polite" });
    const canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": "timeline of ranks" });
    const controls = element("div", { class: "controls" });
    view.append(controls, canvas, hint, element("p", { class: "swatches note" }, ...swatches));
    const path = runs[index].critical_path;
    drawTimeline({ ...read[index], end, timeline, path, followed }, { view, canvas, controls, told, hint, colours, meaning });
  });
}

function drawTimeline({ rows, messages, end, timeline, path, followed }, { view: box, canvas, controls, told, hint, colours, meaning }) {
  // Room for labels on the left, and for the axis below.
  const [left, below] = [76, 26];
  const mostMessages = 4000;
  const whole = () => ({ from: 0, to: end, first: 0, last: rows.length });
  let view = whole();
  let size = { width: 0, height: 0 };
  let marked = null;
  let waiting = false;
  // A kind of states has a name, and perhaps a place and the call that waits.
  const { names, kinds, origin_ns: origin } = timeline;
  // What each kind is drawn as: the number of its name, or the number after all names if others stand out.
  const drawnAs = Uint16Array.from(kinds, ([name]) => name);
  const stand = (stands) => kinds.forEach(([name], kind) => (drawnAs[kind] = name + (stands(kind) ? 0 : names.length)));

  const x = (at) => left + ((at - view.from) / (view.to - view.from)) * (size.width - left);
  const rowHeight = () => (size.height - below) / (view.last - view.first);
  const y = (row) => (row - view.first) * rowHeight();

  // The first state that ends after a time: the states of a row are in order.
  function firstAfter({ ends }, at) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Draws a line of pixels for some rows: the state with most time in each pixel.
  function drawLine(context, first, last, top, height, times) {
    const pixels = Math.ceil(size.width - left);
    const perPixel = (view.to - view.from) / pixels;
    const drawings = 2 * names.length;
    times.fill(0);
    for (let row = first; row < last; row++) {
      const { begins, ends, kinds } = rows[row];
      for (let state = firstAfter(rows[row], view.from); state < begins.length && begins[state] < view.to; state++) {
        const begin = Math.max(0, (begins[state] - view.from) / perPixel);
        const stop = Math.min(pixels, (ends[state] - view.from) / perPixel);
        for (let pixel = Math.floor(begin); pixel < stop; pixel++) {
          times[pixel * drawings + drawnAs[kinds[state]]] += Math.min(stop, pixel + 1) - Math.max(begin, pixel);
        }
      }
    }
    const drawn = (from, to, drawing) => {
      if (drawing < 0) return;
      context.globalAlpha = drawing < names.length ? 1 : 0.12;
      context.fillStyle = colours[drawing % names.length];
      context.fillRect(left + from, top, to - from, height);
    };
    let [drawing, since] = [-1, 0];
    for (let pixel = 0; pixel <= pixels; pixel++) {
      let [most, found] = [0, -1];
      if (pixel < pixels) {
        for (let each = 0, at = pixel * drawings; each < drawings; each++, at++) if (times[at] > most) [most, found] = [times[at], each];
      }
      if (found !== drawing || pixel === pixels) {
        drawn(since, pixel, drawing);
        [drawing, since] = [found, pixel];
      }
    }
  }

  function drawStates(context) {
    const times = new Float32Array(Math.ceil(size.width - left) * 2 * names.length);
    const [first, last] = [Math.floor(view.first), Math.min(rows.length, Math.ceil(view.last))];
    const share = Math.max(1, Math.floor(1 / rowHeight()));
    const gap = rowHeight() > 6 ? 1 : 0;
    for (let row = first; row < last; row += share) {
      // Whole pixels: lines must not shine through each other.
      const [top, bottom] = [Math.round(y(row)), Math.round(y(row + share))];
      drawLine(context, row, Math.min(last, row + share), top + gap, Math.max(1, bottom - top - 2 * gap), times);
    }
    context.globalAlpha = 1;
  }

  function drawMessages(context, ink) {
    const found = [];
    const { from, sent, to, arrived } = messages;
    for (let message = 0; message < sent.length && sent[message] <= view.to && found.length <= mostMessages; message++) {
      const [high, low] = [Math.max(from[message], to[message]), Math.min(from[message], to[message])];
      if (arrived[message] >= view.from && high >= view.first && low < view.last) found.push(message);
    }
    if (found.length > mostMessages) return;
    context.strokeStyle = ink;
    context.globalAlpha = found.length > 400 ? 0.3 : 0.6;
    context.beginPath();
    for (const message of found) {
      context.moveTo(x(sent[message]), y(from[message] + 0.5));
      context.lineTo(x(arrived[message]), y(to[message] + 0.5));
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  // The critical path: along a rank while it is there, across where a message takes it on.
  const rowOf = new Map(rows.map(({ label }, row) => [Number(label.match(/^rank (\d+)/)?.[1] ?? row), row]));
  let drawsPath = Boolean(path?.segments.length);
  function drawPath(context, { ink, paper }) {
    const steps = path.segments.filter(({ rank }) => rowOf.has(rank)).map(({ from_ps: from, to_ps: to, rank }) => [from - 1000 * origin, to - 1000 * origin, rowOf.get(rank)]);
    for (const [colour, width] of [[paper, 5], [ink, 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      for (const [from, to, row] of steps) {
        context.lineTo(x(from), y(row + 0.5));
        context.lineTo(x(to), y(row + 0.5));
      }
      context.stroke();
    }
    context.lineWidth = 1;
  }

  function drawAxis(context, soft) {
    const span = view.to - view.from;
    const wanted = span / Math.max(2, (size.width - left) / 110);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= wanted);
    context.fillStyle = soft;
    context.textAlign = "center";
    for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
      context.fillRect(x(tick), size.height - below, 1, 5);
      const text = picos(tick, 9);
      context.fillText(text, Math.min(x(tick), size.width - 4 - text.length * 3), size.height - 7);
    }
  }

  function drawLabels(context, { ink, soft }) {
    context.textAlign = "right";
    const every = Math.max(1, Math.ceil(13 / rowHeight()));
    for (let row = Math.ceil(view.first / every) * every; row < Math.min(rows.length, view.last); row += every) {
      context.fillStyle = row === marked ? ink : soft;
      context.fillText(rows[row].label.slice(0, 11), left - 6, y(row) + Math.min(rowHeight() / 2 + 4, 14));
    }
    if (marked === null || marked < view.first - 1 || marked > view.last) return;
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(left, y(marked), size.width - left - 1, Math.max(2, rowHeight()));
    context.lineWidth = 1;
  }

  function draw() {
    waiting = false;
    const width = Math.floor(box.clientWidth);
    if (width <= left) return;
    const height = Math.min(560, Math.max(120, rows.length * 22)) + below;
    const density = window.devicePixelRatio || 1;
    size = { width, height };
    canvas.style.height = `${height}px`;
    canvas.width = width * density;
    canvas.height = height * density;
    const context = canvas.getContext("2d");
    const style = theme();
    context.scale(density, density);
    context.font = "12px system-ui, sans-serif";
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, height - below);
    context.clip();
    drawStates(context);
    drawMessages(context, style.ink);
    if (drawsPath) drawPath(context, style);
    context.restore();
    drawLabels(context, style);
    drawAxis(context, style.soft);
    const last = Math.min(rows.length, Math.ceil(view.last)) - 1;
    const share = Math.max(1, Math.floor(1 / rowHeight()));
    const shown = [Math.floor(view.first), last].map((row) => rows[Math.min(row, rows.length - 1)].label);
    told.textContent = `${picos(view.from, 6)} to ${picos(view.to, 6)}${origin ? ` after ${seconds(origin / 1e9)}` : ""}, ${shown[0]} to ${shown[1]}${share > 1 ? `; a line is ${share} ranks` : ""}`;
  }
  // Events that follow each other closely are drawn once; a timer runs in pages that are not seen, too.
  const later = () => {
    if (!waiting) setTimeout(draw, 10);
    waiting = true;
  };

  function clamp(from, to, least, most, shortest) {
    const span = Math.min(most - least, Math.max(shortest, to - from));
    const start = Math.min(most - span, Math.max(least, from));
    return [start, start + span];
  }
  const follow = (next) => {
    view = next;
    later();
  };
  followed.push(follow);
  function show(next) {
    const [from, to] = clamp(next.from, next.to, 0, end, Math.min(end, 10));
    const [first, last] = clamp(next.first, next.last, 0, rows.length, 1);
    followed.forEach((follow) => follow({ from, to, first, last }));
  }

  // Zooms around a position between 0 and 1.
  const zoomTime = (factor, at = 0.5) => {
    const middle = view.from + at * (view.to - view.from);
    show({ ...view, from: middle - (middle - view.from) * factor, to: middle + (view.to - middle) * factor });
  };
  const zoomRows = (factor, at = 0.5) => {
    const middle = view.first + at * (view.last - view.first);
    show({ ...view, first: middle - (middle - view.first) * factor, last: middle + (view.last - middle) * factor });
  };
  const move = (part, rowsPart = 0) => {
    const [span, height] = [(view.to - view.from) * part, (view.last - view.first) * rowsPart];
    show({ from: view.from + span, to: view.to + span, first: view.first + height, last: view.last + height });
  };
  const showAll = () => {
    stand(() => true);
    show(whole());
  };
  controls.append(
    button("+", "closer", () => zoomTime(0.5)), button("-", "wider", () => zoomTime(2)), button("<", "earlier", () => move(-0.25)), button(">", "later", () => move(0.25)),
    button("fewer ranks", "zoom ranks", () => zoomRows(0.5)), button("all", "show all", showAll));
  if (drawsPath) controls.append(button("critical path", "show or hide the critical path", () => { drawsPath = !drawsPath; later(); }));
  controls.append(told);
  // Problems of a diagnosis are states at their places.
  const siteOf = (kind) => (kinds[kind][1] === null ? "" : ` at ${kinds[kind][1]}`);
  const callOf = (kind) => kinds[kind][2] ?? names[kinds[kind][0]];
  for (const shown of problemPanels) {
    const stands = kindsOf(shown.problem, timeline);
    const focus = ({ row, begin, end: last }) => {
      stand((kind) => stands[kind]);
      marked = row;
      show({ from: begin - (last - begin) / 2, to: last + (last - begin) / 2, first: row - 8, last: row + 9 });
      box.scrollIntoView({ block: "center" });
    };
    shown.note.append(button("on the timeline", "let its states stand out", () => {
      stand((kind) => stands[kind]);
      show(whole());
      box.scrollIntoView({ block: "center" });
    }));
    const list = () => {
      const { found, longest } = longestInstances(rows, stands);
      if (!found) return;
      const after = (at) => picos(at + 1000 * origin, 6);
      shown.panel.append(element("p", { class: "note" }, `${found > longest.length ? `The ${longest.length} longest of ` : ""}${count(found)} instances on the timeline; click on one to see it.`));
      table(shown.panel, [
        { name: "rank", value: ({ row }) => rows[row].label }, { name: "begin", value: ({ begin }) => begin, text: after }, { name: "end", value: ({ end }) => end, text: after },
        { name: "time", value: ({ begin, end }) => end - begin, text: (time) => picos(time) }, { name: "place", value: ({ kind }) => callOf(kind) + siteOf(kind) },
      ], longest, { sorted: 3, chosen: focus });
    };
    // Panels that are opened later list their instances then.
    if (shown.panel.open) list();
    else shown.panel.addEventListener("toggle", list, { once: true });
  }

  const keys = {
    "+": () => zoomTime(0.5), "=": () => zoomTime(0.5), "-": () => zoomTime(2), "*": () => zoomRows(0.5), _: () => zoomRows(2), 0: showAll,
    ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), ArrowUp: () => move(0, -0.25), ArrowDown: () => move(0, 0.25),
  };
  canvas.addEventListener("keydown", (event) => {
    const key = event.shiftKey && "+=".includes(event.key) ? "*" : event.shiftKey && event.key === "-" ? "_" : event.key;
    if (!keys[key]) return;
    event.preventDefault();
    keys[key]();
  });
  const where = (event) => {
    const area = canvas.getBoundingClientRect();
    return [(event.clientX - area.left - left) / (area.width - left), (event.clientY - area.top) / (area.height - below)];
  };
  // Without Ctrl or Shift the wheel scrolls the page.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const [across, down] = where(event).map((part) => Math.min(1, Math.max(0, part)));
    const turned = event.deltaY || event.deltaX;
    const factor = Math.exp(Math.sign(turned) * Math.min(0.5, Math.abs(turned) / 300));
    if (event.shiftKey) zoomRows(factor, down);
    else zoomTime(factor, across);
  }, { passive: false });
  canvas.addEventListener("dblclick", showAll);

  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { at: where(event), view };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    const [across, down] = where(event);
    if (held) {
      const [span, high] = [held.view.to - held.view.from, held.view.last - held.view.first];
      const [time, rank] = [(held.at[0] - across) * span, (held.at[1] - down) * high];
      show({ from: held.view.from + time, to: held.view.to + time, first: held.view.first + rank, last: held.view.last + rank });
      return;
    }
    const row = rows[Math.floor(view.first + down * (view.last - view.first))];
    const at = view.from + across * (view.to - view.from);
    const state = row && across >= 0 ? firstAfter(row, at) : 0;
    const is = row && across >= 0 && row.begins[state] <= at;
    if (!is) {
      hint.textContent = "";
      return;
    }
    const kind = row.kinds[state];
    const name = names[kinds[kind][0]];
    hint.textContent = `${row.label}: ${spaced(name)}${kinds[kind][2] === null ? "" : `, ${callOf(kind)}`}${siteOf(kind)}, ${picos(row.ends[state] - row.begins[state])} from ${picos(row.begins[state])} (${meaning(name)})`;
  });

  // A selected rank comes into the middle.
  followers.push((rank) => {
    const row = rows.findIndex(({ label }) => label === `rank ${rank}` || label.startsWith(`rank ${rank} `));
    if (row < 0) return;
    marked = row;
    const shown = Math.min(rows.length, 24);
    show({ ...view, first: row - shown / 2, last: row + shown / 2 });
  });
  new ResizeObserver(later).observe(box);
  dark.addEventListener("change", later);
  draw();
}
