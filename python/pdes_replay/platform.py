"""Platforms that are built by calls."""

from __future__ import annotations

from collections import deque
from typing import Any, Union

Quantity = Union[str, float]
Hop = Union[str, "dict[str, str]"]


class Platform:
    """A machine of hosts, switches and cables; it stands for the section `platform` of a configuration.

    >>> machine = Platform()
    >>> switch = machine.switch("leaf")
    >>> cables = [machine.cable(machine.host(f"node-{number}", "10Gf"), switch, "12.5GBps", "500ns") for number in range(4)]
    >>> report = run({"trace": {"path": "lu.pdt"}, "platform": machine})

    A message takes the route that was given, or else the shortest way along cables, which only switches forward; among several ways that of
    the cables that were laid first. Every pair of hosts has its route in memory. Quantities are texts with a unit or numbers in SI units.
    """

    def __init__(self) -> None:
        self._hosts: list[dict[str, Any]] = []
        self._links: dict[str, dict[str, Any]] = {}
        self._routes: list[dict[str, Any]] = []
        # Neighbours of each node, with the hop there.
        self._cables: dict[str, list[tuple[str, Hop]]] = {}

    def host(self, name: str, speed: Quantity, cores: int = 1, memory_bandwidth: Quantity | None = None) -> str:
        """Adds a host, whose cores have a speed [flop/s], and returns its name."""
        self._add_node(name)
        memory = {} if memory_bandwidth is None else {"memory_bandwidth": memory_bandwidth}
        self._hosts.append({"name": name, "speed": speed, "cores": cores, **memory})
        return name

    def switch(self, name: str) -> str:
        """Adds a switch, which forwards messages, and returns its name."""
        self._add_node(name)
        return name

    def link(self, name: str, bandwidth: Quantity, latency: Quantity = 0.0, sharing: str = "shared") -> str:
        """Adds a link for routes that are given, and returns its name. Bandwidth [B/s]; latency [s]; `shared`, `split_duplex` or `fat_pipe`."""
        if name in self._links:
            raise ValueError(f"the link {name!r} exists: expected another name, as for parallel cables")
        self._links[name] = {"name": name, "bandwidth": bandwidth, "latency": latency, "sharing": sharing}
        return name

    def cable(
        self,
        one: str,
        other: str,
        bandwidth: Quantity,
        latency: Quantity = 0.0,
        sharing: str = "split_duplex",
        name: str | None = None,
    ) -> str:
        """Joins two hosts or switches by a link, and returns its name, by default `ONE-OTHER`."""
        for end in (one, other):
            if end not in self._cables:
                raise ValueError(f"a cable ends at {end!r}: expected a host or a switch that was added before")
        link = self.link(name or f"{one}-{other}", bandwidth, latency, sharing)
        has_directions = sharing == "split_duplex"
        self._cables[one].append((other, {"up": link} if has_directions else link))
        self._cables[other].append((one, {"down": link} if has_directions else link))
        return link

    def route(self, source: str, destination: str, links: list[Hop], symmetrical: bool = True) -> None:
        """Gives the route from a host to another one, or to itself: names of links, `{"up": NAME}` or `{"down": NAME}` of a split-duplex one."""
        self._routes.append({"src": source, "dst": destination, "links": links, "symmetrical": symmetrical})

    def section(self) -> dict[str, Any]:
        """Returns the section `platform` of a configuration."""
        routes = [*self._routes, *self._shortest_routes()]
        return {"topology": {"kind": "graph"}, "host": self._hosts, "link": [*self._links.values()], "route": routes}

    def _add_node(self, name: str) -> None:
        if name in self._cables:
            raise ValueError(f"the host or switch {name!r} exists: expected another name")
        self._cables[name] = []

    def _shortest_routes(self) -> list[dict[str, Any]]:
        given = {(route["src"], route["dst"]) for route in self._routes}
        given |= {(route["dst"], route["src"]) for route in self._routes if route["symmetrical"]}
        names = [host["name"] for host in self._hosts]
        routes = []
        for number, source in enumerate(names):
            ways = self._ways_from(source, set(names))
            for destination in names[number + 1 :]:
                way = ways.get(destination, [])
                for src, dst, links in ((source, destination, way), (destination, source, [_back(hop) for hop in reversed(way)])):
                    if way and (src, dst) not in given:
                        routes.append({"src": src, "dst": dst, "links": links, "symmetrical": False})
        return routes

    def _ways_from(self, source: str, hosts: set[str]) -> dict[str, list[Hop]]:
        """Breadth first: the hops to each node."""
        ways: dict[str, list[Hop]] = {source: []}
        reached = deque([source])
        while reached:
            node = reached.popleft()
            for neighbour, hop in self._cables[node]:
                if neighbour not in ways:
                    ways[neighbour] = [*ways[node], hop]
                    if neighbour not in hosts:
                        reached.append(neighbour)
        return ways


def _back(hop: Hop) -> Hop:
    if isinstance(hop, str):
        return hop
    return {"down" if direction == "up" else "up": link for direction, link in hop.items()}
