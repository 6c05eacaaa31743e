// Energy of hosts and links: sums, power over time, and the parts that take most.
"use strict";

const joules = (energy) => (energy === 0 ? "0 J" : prefixed(energy, [[1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"], [1e-3, "mJ"], [1e-6, "uJ"]]));
const watts = (power) => (power === 0 ? "0 W" : prefixed(power, [[1e6, "MW"], [1e3, "kW"], [1, "W"], [1e-3, "mW"]]));

function showEnergy() {
  const energy = run.energy;
  if (!energy) return;
  const box = section("energy", "Energy", energy.left_out.join("; "));
  const grams = (mass) => prefixed(mass, [[1e6, "t"], [1e3, "kg"], [1, "g"], [1e-3, "mg"]]);
  cards(box, [
    ["energy", joules(energy.total_j)], ["hosts", joules(energy.hosts_j)], ["links", joules(energy.links_j)], ["mean power", watts(energy.mean_w)],
    ...(energy.carbon_g === null ? [] : [["carbon dioxide", grams(energy.carbon_g)]]),
  ]);
  // A bin is a step, also the last one.
  const steps = [...energy.power_w, ...energy.power_w.slice(-1)].map((power, bin) => [Math.min(bin * energy.bin_ps, run.simulated_time_ps), power]);
  chart(box, "Power over time", 240, (colours) => ({
    grid: { left: 28, right: 24, top: 12, bottom: 34, containLabel: true },
    tooltip: tooltip(colours, ([point]) => `${watts(point.value[1])} at ${picos(point.value[0], 3)}`, { trigger: "axis" }),
    xAxis: valueAxis(colours, "simulated time", (time) => picos(time, 3), { max: "dataMax" }),
    yAxis: valueAxis(colours, "power", watts, { nameGap: 60 }),
    series: [{ type: "line", step: "end", symbol: "none", data: steps, lineStyle: { width: 1.5, color: data.colours.runs[0] }, areaStyle: { opacity: 0.15 } }],
  }));
  for (const [what, parts] of [["host", energy.hosts], ["link", energy.links], ["job", energy.jobs], ["region", energy.regions], ["call", energy.calls]]) {
    const share = { name: "share", value: (part) => part.energy_j, text: (part) => percent(part, energy.total_j) };
    if (parts) table(box, [{ name: what, value: (part) => part.name }, { name: "energy", value: (part) => part.energy_j, text: joules }, share], parts, { sorted: 1 });
  }
}
