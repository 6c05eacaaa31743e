//! Description of a platform on one line.

use super::Platform;
use super::routing::Routing;
use super::zone::{Vertex, Zone};

/// Maximum number of zones that are described individually.
const SHOWN: usize = 8;

impl Platform {
    /// Describes the zones and their topologies on one line. Zones that hold a single zone are omitted, and after the
    /// first eight that hold hosts or routers the others are only counted.
    pub fn topology(&self) -> String {
        self.zones.first().map_or(String::new(), |zone| self.describe(zone, &mut { SHOWN }))
    }

    fn describe(&self, zone: &Zone, shown: &mut usize) -> String {
        if !zone.holds_zones() {
            *shown = shown.saturating_sub(1);
            return describe_leaf(zone);
        }
        let inside: Vec<&Zone> = zone.vertices.iter().filter_map(|vertex| self.zone_of(vertex)).collect();
        if let [one] = inside[..] {
            return self.describe(one, shown);
        }
        let (kind, routes) = match &zone.routing {
            Routing::Full(table) => ("", table.len()),
            Routing::Floyd(floyd) => (" with shortest paths (Floyd)", floyd.table().len()),
            Routing::Dijkstra(dijkstra) => (" with shortest paths (Dijkstra)", dijkstra.table().len()),
            Routing::Star(_) | Routing::None | Routing::Cluster(..) => (" without routes between them", 0),
        };
        let mut parts = Vec::new();
        for part in &inside {
            if *shown == 0 {
                parts.push(format!("and {} more", inside.len() - parts.len()));
                break;
            }
            parts.push(self.describe(part, shown));
        }
        let (count, parts) = (inside.len(), parts.join("; "));
        format!("{}: {count} zones{kind}, {} hosts, {routes} routes [{parts}]", zone.name, zone.hosts.len())
    }

    fn zone_of(&self, vertex: &Vertex) -> Option<&Zone> {
        match vertex {
            Vertex::Zone(zone) => Some(&self.zones[zone.index()]),
            Vertex::Host(_) | Vertex::Router(_) => None,
        }
    }
}

fn describe_leaf(zone: &Zone) -> String {
    let (name, hosts) = (&zone.name, zone.hosts.len());
    match &zone.routing {
        Routing::Full(table) => format!("{name}: graph of {hosts} hosts, {} routes", table.len()),
        Routing::Floyd(floyd) => {
            let routes = floyd.table().len();
            format!("{name}: graph of {hosts} hosts, {routes} routes, with shortest paths (Floyd)")
        }
        Routing::Dijkstra(dijkstra) => {
            let routes = dijkstra.table().len();
            format!("{name}: graph of {hosts} hosts, {routes} routes, with shortest paths (Dijkstra)")
        }
        Routing::Star(star) => {
            let backbone = if star.has_backbone() { " on a backbone" } else { "" };
            format!("{name}: star of {hosts} hosts{backbone}")
        }
        Routing::None => format!("{name}: {hosts} hosts without routes"),
        Routing::Cluster(topology, wiring) => {
            let backbone = if wiring.backbone.is_some() { " on a backbone" } else { "" };
            let hosts = hosts as u64 / (1 + u64::from(topology.accelerators_each()));
            format!("{name}: {topology}{backbone}, {hosts} hosts")
        }
    }
}
