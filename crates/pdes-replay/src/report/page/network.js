// Links by what they connect, over time, and on the topology of the network.
"use strict";

// Largest number of cables that are drawn as lines.
const LINES = 450;
// Colours of lines, from unused to most used: all of them are visible on any background.
const HEAT = ["#a5aab2", "#b5a786", "#c6a559", "#d6a22d", "#e69f00", "#d97d0b", "#cc5b16", "#bf3a20", "#b2182b"];

function showLinks() {
  const links = run.links;
  if (!links) return;
  const box = section("links", "Links", "A link is full while it holds messages back: they would have been faster otherwise.");
  const ends = linkEnds(data.networks[0]);
  const named = (name) => run.links.all.names?.indexOf(name) ?? -1;
  const label = (link) => link.connects || ends.get(named(link.name))?.name || link.name;
  const columns = [
    { name: "link", value: label },
    { name: "capacity", value: (link) => link.capacity_bytes_per_s, text: rate },
    { name: "carried", value: (link) => link.bytes, text: bytes },
    { name: "used on average", value: (link) => link.utilisation, text: (part) => percent(part) },
    { name: `at most in ${picos(links.bin_ps, 3)}`, title: "highest load of an interval of this length, on average over it", value: (link) => link.peak, text: (part) => percent(part) },
    { name: "full for", title: "sum of the times, however short, in which it was full and held messages back", value: (link) => link.saturated_ps, text: (time) => picos(time) },
    { name: "name in the platform", value: (link) => link.name },
  ];
  box.append(element("h3", {}, "Most contended"));
  table(box, columns, links.top, { sorted: 5 });
  const drawn = links.top.filter((link) => link.series.length);
  if (drawn.length) {
    const cells = drawn.flatMap((link, row) => link.series.map((used, bin) => [bin, row, used]));
    const strips = overTime(box, "The most contended links over time", {
      names: drawn.map(label), bin: links.bin_ps, cells, format: (part) => percent(part), most: 1, height: 90 + 18 * drawn.length, hint: (used) => `${percent(used)} used`,
    });
    strips.id = "strips";
  }
  showAllLinks(box, ends);
}

// All links: by what they connect, those of hosts told from those between switches.
function showAllLinks(parent, ends) {
  const { names, bytes: carried, utilisation } = run.links.all;
  const rows = carried.map((_, link) => link).filter((link) => carried[link] > 0);
  if (!rows.length) return;
  const columns = [
    { name: "link", value: (link) => ends.get(link)?.name || names?.[link] || `link ${link}` },
    { name: "kind", value: (link) => { const cable = ends.get(link); return cable ? (cable.isHost ? "of a host" : data.networks[0].switches.length ? "between switches" : "between hosts") : "-"; } },
    { name: "carried", value: (link) => carried[link], text: bytes },
    { name: "used on average", value: (link) => utilisation[link], text: (part) => percent(part) },
  ];
  parent.append(element("h3", {}, "All links that carried anything"));
  table(parent, columns, rows, { sorted: 3 });
}

const stationName = (network, station) => (station < network.hosts ? `host ${station}` : network.switches[station - network.hosts] || `switch ${station - network.hosts}`);

// What each link connects.
function linkEnds(network) {
  const ends = new Map();
  if (!network) return ends;
  network.lower.forEach((lower, cable) => {
    const names = [lower, network.upper[cable]].map((station) => stationName(network, station));
    // On a torus all stations are hosts.
    const isHost = network.switches.length > 0 && lower < network.hosts;
    ends.set(network.up[cable], { name: names.join(" to "), isHost });
    if (network.down[cable] !== network.up[cable]) ends.set(network.down[cable], { name: names.reverse().join(" to "), isHost });
    else ends.set(network.up[cable], { name: names.join(" and "), isHost });
  });
  return ends;
}

function showNetwork() {
  const [network] = data.networks;
  if (!network || !run.links || !run.links.all.utilisation.some((used) => used > 0)) return;
  const { utilisation, series } = run.links.all;
  const box = section("network", "Links on the network", "How much of their capacity links use. Point at a link to read it.");
  const cables = network.lower.map((lower, cable) => ({ lower, upper: network.upper[cable], links: [network.up[cable], network.down[cable]] }));
  // The end of the scale, which drawings read when they are drawn.
  const scale = {};
  const use = (of, most) => {
    for (const cable of cables) [cable.up, cable.down] = cable.links.map(of);
    scale.most = most;
  };
  const mean = () => use((link) => utilisation[link], utilisation.reduce((most, used) => Math.max(most, used), 0));
  mean();
  if (series) {
    const bins = Math.max(...series.map((link) => link.length));
    const most = series.flat().reduce((most, used) => Math.max(most, used), 0);
    const redraw = () => box.querySelectorAll("[role=img]").forEach((drawing) => drawing.redraw());
    player(box, bins, run.links.bin_ps, (bin) => {
      if (bin === null) mean();
      else use((link) => series[link][bin] ?? 0, most);
      redraw();
    });
  }
  const shapes = { star: bands, torus: planes, fat_tree: cables.length <= LINES ? graph : bands, dragonfly: cables.length <= LINES ? graph : groups, switches: cables.length <= LINES ? graph : bands };
  shapes[run.topology.kind](box, network, cables, scale);
}

// A slider over bins of time, and a button that plays them; `show` gets a bin, or null for the whole run.
function player(parent, bins, bin, show) {
  let timer = null;
  const told = element("output", { class: "note" }, "average over the run");
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "play";
  };
  const at = (number) => {
    slider.value = number;
    told.textContent = `${picos(number * bin, 4)} to ${picos(Math.min((number + 1) * bin, run.simulated_time_s * 1e12), 4)}`;
    show(number);
  };
  const slider = element("input", { type: "range", min: 0, max: bins - 1, value: 0, "aria-label": "simulated time", oninput: () => { stop(); at(Number(slider.value)); } });
  const play = button("play", "play the load over time", () => {
    if (timer !== null) return stop();
    play.textContent = "stop";
    let next = Number(slider.value) === bins - 1 ? 0 : Number(slider.value);
    timer = setInterval(() => (next < bins ? at(next++) : stop()), 150);
  });
  const whole = button("whole run", "the average over the run", () => {
    stop();
    told.textContent = "average over the run";
    show(null);
  });
  parent.append(element("div", { class: "controls" }, play, slider, whole, told));
}

// Where on the machine ranks wait: a cell for each host with ranks, in lines that follow the topology.
function showMachine() {
  const [network] = data.networks;
  const hosts = run.breakdown?.ranks.host;
  if (!network || !hosts?.length || network.hosts < 2) return;
  const { kind, dims, levels, groups } = run.topology;
  const [width, xName, yName] = {
    torus: () => [dims[0], "x", "line of the torus"], fat_tree: () => [levels[0].children, "host of the leaf", "leaf"],
    dragonfly: () => [network.hosts / groups, "host of the group", "group"], star: () => [side(network.hosts), "", "first host of a line"],
    switches: () => [run.topology.nodes ?? run.topology.rails, "host of the switch", "switch"],
  }[kind]();
  const of = (values) => {
    const found = new Map();
    values.forEach((value, rank) => {
      const [total, number] = found.get(hosts[rank]) ?? [0, 0];
      found.set(hosts[rank], [total + value, number + 1]);
    });
    return [...found].map(([host, [total, number]]) => [host % width, Math.floor(host / width), total / number, host, number]);
  };
  const box = section("machine", "Ranks on the machine", "Where on the machine time is lost: a cell for each host that has ranks, in lines that follow the network.");
  const all = Array.from({ length: run.ranks }, (_, rank) => rank);
  const parts = occurring([run.breakdown.total]).map((part) => ({ name: part.name, values: column(run.breakdown, part) }));
  const choices = [{ name: "waiting", values: all.map((rank) => waited(run.breakdown, rank)) }, ...parts, { name: "end of the rank", values: run.breakdown.ranks.end_ps }];
  let [shown] = choices;
  box.append(element("div", { class: "controls" }, choice("Time of", choices.map((choice) => choice.name), (index) => { shown = choices[index]; map.redraw(); })));
  const lines = Math.ceil(network.hosts / width);
  const map = chart(box, "Mean of the ranks of each host", Math.min(560, 110 + 16 * lines), (colours) => heat(colours, {
    columns: numbers(width), rows: numbers(lines, (line) => (kind === "star" ? line * width : line)), cells: of(shown.values), format: (time) => picos(time), xName, yName,
    hint: (_, [, , time, host, number]) => `<b>host ${host}</b>, ${number} rank${number === 1 ? "" : "s"}: ${picos(time)}`,
  }));
}

const both = (network, { lower, upper, up, down }) =>
  `<b>${stationName(network, lower)} and ${stationName(network, upper)}</b><br>there ${percent(up)}, back ${percent(down)}`;

// The first station of each level of a fat tree, a star or other switches, hosts first, and the number of stations.
function levels(network) {
  const { kind, levels } = run.topology;
  if (kind !== "fat_tree") return [0, network.hosts, network.hosts + network.switches.length];
  const starts = [0];
  for (let level = 0; level <= levels.length; level++) {
    const product = [...levels.slice(0, level).map((one) => one.parents), ...levels.slice(level).map((one) => one.children)].reduce((all, one) => all * one, 1);
    starts.push(starts[level] + product);
  }
  return starts;
}

// Stations and lines, of a fat tree level by level, others on a ring.
function graph(parent, network, cables, scale) {
  const stations = network.hosts + network.switches.length;
  const { kind } = run.topology;
  const starts = kind === "fat_tree" && levels(network);
  const position = (station) => {
    if (starts) {
      const level = starts.findLastIndex((start) => start <= station);
      return [((station - starts[level] + 0.5) / (starts[level + 1] - starts[level])) * 1000, 400 - (400 * level) / (starts.length - 2)];
    }
    const isHost = station < network.hosts;
    const at = isHost ? ((station + 0.5) / network.hosts) : (station - network.hosts + 0.5) / network.switches.length;
    const radius = isHost ? 500 : 400;
    return [500 + radius * Math.sin(2 * Math.PI * at), 500 - radius * Math.cos(2 * Math.PI * at)];
  };
  chart(parent, "The network", starts ? 340 : 560, (colours) => {
    const { most } = scale;
    const colour = (part) => HEAT[Math.round((HEAT.length - 1) * (most ? part / most : 0))];
    return {
      tooltip: tooltip(colours, ({ dataType, data: item }) => (dataType === "edge" ? both(network, item.cable) : escaped(item.title))),
      visualMap: { min: 0, max: most, orient: "horizontal", left: 0, top: 0, itemWidth: 12, itemHeight: 130, textStyle: { color: colours.soft }, formatter: (part) => percent(part), inRange: { color: HEAT }, seriesIndex: [], calculable: true },
      series: [{
        type: "graph", layout: "none", roam: "move", left: 10, right: 10, top: 50, bottom: 16, emphasis: { focus: "adjacency" },
        data: Array.from({ length: stations }, (_, station) => {
          const [x, y] = position(station);
          const isHost = station < network.hosts;
          return { name: String(station), title: stationName(network, station), x, y, symbolSize: isHost ? 5 : 11, itemStyle: { color: isHost ? colours.soft : colours.ink } };
        }),
        edges: cables.map((cable) => {
          const part = Math.max(cable.up, cable.down);
          return { source: String(cable.lower), target: String(cable.upper), cable, lineStyle: { color: colour(part), width: 1 + (most ? (3 * part) / most : 0), opacity: 0.9 } };
        }),
      }],
    };
  });
}

// A heat map whose cells are cables: of several in one cell the one that is used most counts.
function cableMap(parent, title, height, network, { columns, rows, place, cables, scale, xName, yName }) {
  chart(parent, title, height, (colours) => {
    const cells = new Map();
    for (const cable of cables) {
      for (const [x, y, part] of place(cable)) {
        const key = `${x} ${y}`;
        if (!cells.has(key) || cells.get(key)[2] < part) cells.set(key, [x, y, part, cable]);
      }
    }
    return heat(colours, {
      columns, rows, cells: [...cells.values()], format: (part) => percent(part), most: scale.most, xName, yName, hint: (_, cell) => both(network, cell[3]),
    });
  });
}

const numbers = (length, name = (index) => index) => Array.from({ length }, (_, index) => name(index));

// A band for each level: up and down from its stations, neighbours in one cell if there are many.
function bands(parent, network, cables, scale) {
  const starts = levels(network);
  const names = starts.length === 3 && run.topology.kind === "star" ? ["host"] : ["host", ...numbers(starts.length - 2, (level) => network.switches[starts[level + 1] - network.hosts]?.replace(/ [0-9]+$/, ""))];
  for (let level = starts.length - 3; level >= 0; level--) {
    const number = starts[level + 1] - starts[level];
    const share = Math.ceil(number / 512);
    const mine = cables.filter(({ lower }) => lower >= starts[level] && lower < starts[level + 1]);
    cableMap(parent, `${count(number)} x ${names[level]}, to and from the level above${share > 1 ? `; a cell is the most used of ${share}` : ""}`, 170, network, {
      columns: numbers(Math.ceil(number / share), (index) => index * share), rows: ["up", "down"], scale, cables: mine, xName: names[level],
      place: ({ lower, up, down }) => { const x = Math.floor((lower - starts[level]) / share); return [[x, 0, up], [x, 1, down]]; },
    });
  }
}

// A woven grid for each plane of the two largest dimensions: between two hosts is the cable that joins them.
function planes(parent, network, cables, scale) {
  const { dims } = run.topology;
  const order = dims.map((_, dimension) => dimension).sort((one, other) => dims[other] - dims[one]);
  const [across, down = across] = order.slice(0, 2).sort((one, other) => one - other);
  const isLine = down === across;
  const letters = ["x", "y", "z"];
  const letter = (dimension) => letters[dimension] || `d${dimension}`;
  const coordinates = (host) => dims.map((size) => { const at = host % size; host = Math.floor(host / size); return at; });
  const all = new Map();
  cables.forEach((cable, number) => {
    const at = coordinates(cable.lower);
    const plane = dims.flatMap((_, dimension) => (dimension === across || dimension === down ? [] : [`${letter(dimension)} = ${at[dimension]}`])).join(", ");
    if (!all.has(plane)) all.set(plane, []);
    const dimension = number % dims.length;
    const [x, y] = [2 * at[across] + (dimension === across ? 1 : 0), isLine ? 0 : 2 * at[down] + (dimension === down ? 1 : 0)];
    all.get(plane).push(Object.assign(cable, { x, y }));
  });
  const names = [...all.keys()];
  const shown = element("div");
  const titled = (plane) => `Torus ${dims.join(" x ")}${plane ? `, ${plane}` : ""}: lines and columns cross at hosts`;
  const draw = (index) => {
    shown.replaceChildren();
    const [columns, rows] = [2 * dims[across], isLine ? 1 : 2 * dims[down]];
    const name = (at) => (at % 2 ? "" : at / 2);
    cableMap(shown, titled(names[index]), Math.min(560, 90 + 14 * rows), network, {
      columns: numbers(columns, name), rows: numbers(rows, name), scale, cables: all.get(names[index]), xName: letter(across), yName: isLine ? "" : letter(down),
      place: ({ x, y, up, down }) => [[x, y, Math.max(up, down)]],
    });
  };
  if (names.length > 1) parent.append(element("div", { class: "controls" }, choice("Plane", names, draw)));
  parent.append(shown);
  draw(0);
}

// Maps of a large dragonfly: between groups, and inside them.
function groups(parent, network, cables, scale) {
  const { groups, chassis, blades } = run.topology;
  const each = chassis * blades;
  const router = (station) => station - network.hosts;
  const group = (station) => Math.floor(router(station) / each);
  const isHost = ({ lower }) => lower < network.hosts;
  const isLocal = (cable) => !isHost(cable) && group(cable.lower) === group(cable.upper);
  const titles = numbers(groups);
  cableMap(parent, "Between groups: from a group (line) to another (column)", 420, network, {
    columns: titles, rows: titles, scale, cables: cables.filter((cable) => !isHost(cable) && !isLocal(cable)), xName: "to group", yName: "from group",
    place: ({ lower, upper, up, down }) => [[group(upper), group(lower), up], [group(lower), group(upper), down]],
  });
  const inside = (title, mine, stations) => cableMap(parent, title, 90 + 16 * groups, network, {
    columns: numbers(each), rows: titles, scale, cables: mine, xName: "router of the group", yName: "group",
    place: (cable) => stations(cable).map((station) => [router(station) % each, group(station), Math.max(cable.up, cable.down)]),
  });
  inside("Inside groups: the most used cable of each router", cables.filter(isLocal), ({ lower, upper }) => [lower, upper]);
  inside("Hosts: the most used cable of each router", cables.filter(isHost), ({ upper }) => [upper]);
}
