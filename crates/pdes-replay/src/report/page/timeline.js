// Draws the timeline on a canvas: a row for each rank, a rectangle for each state, a line for each message.
"use strict";
{
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const box = document.querySelector(".timeline");
  const canvas = box.querySelector("canvas");
  const told = box.querySelector("output");
  const rows = data.rows;
  // Room for labels on the left, and for the axis below.
  const [left, below] = [76, 26];
  const mostMessages = 4000;

  let end = 0;
  for (const row of rows) for (const [begin, length] of row.states) end = Math.max(end, begin + length);
  for (const message of data.messages) end = Math.max(end, message[3]);
  end = end || 1;
  const whole = () => ({ from: 0, to: end, first: 0, last: rows.length });
  let view = whole();
  let size = { width: 0, height: 0 };
  // Names of the states that stand out; without any, all are equal.
  let outstanding = new Set();

  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"], [1e-3, "ps"]];
  const unitOf = (nanos) => units.find(([unit]) => nanos >= unit) || units[4];
  const time = (nanos, digits = 6) => {
    const [unit, name] = unitOf(Math.abs(nanos));
    return `${Number((nanos / unit).toPrecision(digits))} ${nanos === 0 ? "s" : name}`;
  };
  const x = (at) => left + ((at - view.from) / (view.to - view.from)) * (size.width - left);
  const rowHeight = () => (size.height - below) / (view.last - view.first);
  const y = (row) => (row - view.first) * rowHeight();
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

  // Returns the index of the first state that ends at or after a time, by binary search: the states of a row are in order.
  function firstAfter(states, at) {
    let [low, high] = [0, states.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (states[middle][0] + states[middle][1] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function drawStates(context) {
    const high = rowHeight();
    const gap = high > 6 ? 1 : 0;
    for (let row = Math.floor(view.first); row < Math.min(rows.length, Math.ceil(view.last)); row++) {
      const states = rows[row].states;
      let drawn = -1;
      for (let place = firstAfter(states, view.from); place < states.length && states[place][0] <= view.to; place++) {
        const [begin, length, name] = states[place];
        const [start, stop] = [Math.max(left, x(begin)), x(begin + length)];
        // States narrower than a pixel are drawn once per pixel.
        if (stop < drawn + 0.5) continue;
        context.fillStyle = data.colours[name];
        context.globalAlpha = outstanding.size === 0 || outstanding.has(data.names[name]) ? 1 : 0.12;
        context.fillRect(start, y(row) + gap, Math.max(0.5, stop - start), Math.max(0.5, high - 2 * gap));
        drawn = Math.max(stop, start + 0.5);
      }
    }
    context.globalAlpha = 1;
  }

  function drawMessages(context) {
    const seen = data.messages.filter(([from, sent, to, arrived]) =>
      arrived >= view.from && sent <= view.to && Math.max(from, to) >= view.first && Math.min(from, to) < view.last);
    if (seen.length > mostMessages) return;
    context.strokeStyle = style("--ink");
    context.globalAlpha = seen.length > 400 ? 0.3 : 0.6;
    context.beginPath();
    for (const [from, sent, to, arrived] of seen) {
      context.moveTo(x(sent), y(from + 0.5));
      context.lineTo(x(arrived), y(to + 0.5));
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  function drawAxis(context) {
    const span = view.to - view.from;
    const wanted = span / Math.max(2, (size.width - left) / 110);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= wanted);
    const [unit, name] = unitOf(Math.max(view.to, step));
    context.fillStyle = style("--soft");
    context.textAlign = "center";
    for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
      const at = x(tick);
      context.fillRect(at, size.height - below, 1, 5);
      const text = `${Number((tick / unit).toPrecision(9))} ${name}`;
      context.fillText(text, Math.min(at, size.width - 4 - text.length * 3), size.height - 7);
    }
  }

  function drawLabels(context) {
    context.clearRect(0, 0, left, size.height);
    context.fillStyle = style("--soft");
    context.textAlign = "right";
    const every = Math.max(1, Math.ceil(13 / rowHeight()));
    for (let row = Math.ceil(view.first / every) * every; row < Math.min(rows.length, view.last); row += every)
      context.fillText(rows[row].label.slice(0, 11), left - 6, y(row) + Math.min(rowHeight() / 2 + 4, 14));
  }

  function draw() {
    const width = box.clientWidth;
    const height = Math.min(560, Math.max(120, rows.length * 22)) + below;
    const density = window.devicePixelRatio || 1;
    size = { width, height };
    canvas.style.height = `${height}px`;
    canvas.width = width * density;
    canvas.height = height * density;
    const context = canvas.getContext("2d");
    context.scale(density, density);
    context.font = "12px system-ui, sans-serif";
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, height - below);
    context.clip();
    drawStates(context);
    drawMessages(context);
    context.restore();
    drawLabels(context);
    drawAxis(context);
    const last = Math.min(rows.length, Math.ceil(view.last)) - 1;
    const origin = data.origin ? ` after ${time(data.origin)}` : "";
    told.textContent = `${time(view.from)} to ${time(view.to)}${origin}, ${rows[Math.floor(view.first)].label} to ${rows[last].label}`;
  }

  function clamp(from, to, least, most, shortest) {
    const span = Math.min(most - least, Math.max(shortest, to - from));
    const start = Math.min(most - span, Math.max(least, from));
    return [start, start + span];
  }

  function show(next) {
    const [from, to] = clamp(next.from, next.to, 0, end, Math.min(end, 0.01));
    const [first, last] = clamp(next.first, next.last, 0, rows.length, 1);
    view = { from, to, first, last };
    draw();
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

  const keys = {
    in: () => zoomTime(0.5), out: () => zoomTime(2), left: () => move(-0.25), right: () => move(0.25),
    all: () => {
      outstanding.clear();
      show(whole());
    },
  };
  // Problems of a diagnosis are seen in some states.
  for (const button of document.querySelectorAll("button[data-states]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      outstanding = new Set(button.dataset.states.split(" "));
      show(whole());
      box.scrollIntoView({ block: "center" });
    });
  }
  for (const button of box.querySelectorAll("button")) button.addEventListener("click", keys[button.dataset.key]);
  const pressed = {
    "+": (event) => zoomTime(0.5), "=": (event) => zoomTime(0.5), "-": () => zoomTime(2), 0: keys.all,
    ArrowLeft: keys.left, ArrowRight: keys.right, ArrowUp: () => move(0, -0.25), ArrowDown: () => move(0, 0.25),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = pressed[event.key];
    if (!action) return;
    event.preventDefault();
    if (event.shiftKey && "+=-".includes(event.key)) zoomRows(event.key === "-" ? 2 : 0.5);
    else action();
  });

  const where = (event) => {
    const area = canvas.getBoundingClientRect();
    return [(event.clientX - area.left - left) / (area.width - left), (event.clientY - area.top) / (area.height - below)];
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [across, down] = where(event);
    const turned = event.deltaY || event.deltaX;
    const factor = Math.exp(Math.sign(turned) * Math.min(0.5, Math.abs(turned) / 300));
    if (event.shiftKey) zoomRows(factor, Math.min(1, Math.max(0, down)));
    else zoomTime(factor, Math.min(1, Math.max(0, across)));
  }, { passive: false });
  canvas.addEventListener("dblclick", keys.all);

  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { at: where(event), view };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointerleave", (event) => showHint(event, ""));
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
    const state = row && across >= 0 && row.states[firstAfter(row.states, at)];
    const is = state && state[0] <= at;
    showHint(event, is ? `${row.label}: ${data.names[state[2]]}, ${time(state[1], 4)} from ${time(state[0])}` : "");
  });

  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
