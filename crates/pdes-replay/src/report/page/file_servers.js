// I/O servers of file systems: what their devices carry over time, and their queues and caches.
"use strict";

// Largest number of servers with a line of their own; neighbours share one if there are more.
const SERVER_LINES = 64;

function showFileServers() {
  const servers = run.file_servers;
  if (!servers) return;
  const box = section("file-servers", "I/O servers", "Amounts are those of the devices: what was merged or read ahead included.");
  const all = servers.hosts.map((_, server) => server);
  const hits = (server) => servers.hit_bytes[server] / (servers.hit_bytes[server] + servers.missed_bytes[server] || 1);
  const columns = [
    { name: "host", value: (server) => servers.hosts[server] },
    { name: "file system", value: (server) => servers.directories[server] },
    { name: "read", value: (server) => servers.read_bytes[server], text: bytes },
    { name: "written", value: (server) => servers.written_bytes[server], text: bytes },
    { name: "requests", value: (server) => servers.requests[server], text: count },
    { name: "from the cache", value: hits, text: (part) => percent(part) },
    { name: "mean queue", value: (server) => servers.mean_queue[server], text: (queue) => queue.toFixed(2) },
    { name: "longest queue", value: (server) => servers.longest_queue[server], text: count },
  ];
  table(box, columns, all, { sorted: 3 });
  const bins = Math.max(0, ...servers.series.map((series) => series.length));
  if (!bins) return;
  const share = Math.ceil(all.length / SERVER_LINES);
  const rows = Array.from({ length: Math.ceil(all.length / share) }, (_, row) => all.slice(row * share, (row + 1) * share));
  const name = (row) => servers.hosts[row[0]] + (row.length > 1 ? ` and ${row.length - 1} more` : "");
  const speed = (row, bin) => (sum(row.map((server) => servers.series[server][bin] ?? 0)) / row.length / servers.bin_ps) * 1e12;
  const cells = rows.flatMap((row, index) => Array.from({ length: bins }, (_, bin) => [bin, index, speed(row, bin)]));
  const strips = overTime(box, "Read and written over time, by server", { names: rows.map(name), bin: servers.bin_ps, cells, format: rate, height: 100 + Math.min(18 * rows.length, 500) });
  strips.id = "server-strips";
}
