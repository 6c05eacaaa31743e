//! Dragonfly: a ring of routers if there are few, else maps of groups.

use std::f64::consts::TAU;

use figures::{Edge, Figure, GraphDrawing, Map, Node};
use netmodel::DragonflyShape;

use super::{Cable, MAX_LINES, Network, raise_to};

/// Numbers of elements of a dragonfly.
#[derive(Clone, Copy)]
struct Sizes {
    hosts: usize,
    routers: usize,
    groups: usize,
    per_group: usize,
    nodes: usize,
}

pub(super) fn figure(network: Network, shape: DragonflyShape) -> Figure {
    let sizes = Sizes::new(shape);
    let title = format!(
        "Dragonfly of {} groups of {} routers with {} hosts each",
        sizes.groups, sizes.per_group, sizes.nodes
    );
    Figure::new("network", title, move |width| {
        if network.cables.len() <= MAX_LINES {
            sizes.net(&network).draw(width)
        } else {
            network.maps(sizes.maps(&network)).draw(width)
        }
    })
}

impl Sizes {
    fn new(shape: DragonflyShape) -> Self {
        let DragonflyShape { groups, chassis, blades, nodes, .. } = shape;
        let [groups, per_group, nodes] = [groups, chassis * blades, nodes].map(|size| size as usize);
        let routers = groups * per_group;
        Self { hosts: routers * nodes, routers, groups, per_group, nodes }
    }

    /// Returns the position of a point of a group on the ring, with gaps between groups; `inside` runs from 0 to 1.
    fn on_ring(&self, group: usize, inside: f64, radius: f64) -> (f64, f64) {
        let angle = TAU * (group as f64 + 0.08 + 0.84 * inside) / self.groups as f64 - TAU / 4.0;
        (0.5 + radius * angle.cos(), 0.5 + radius * angle.sin())
    }

    fn net(&self, network: &Network) -> GraphDrawing {
        let place = |router: usize, shift: f64, radius: f64| {
            let inside = ((router % self.per_group) as f64 + 0.5 + shift) / self.per_group as f64;
            self.on_ring(router / self.per_group, inside, radius)
        };
        let host = |host: usize| {
            let shift = ((host % self.nodes) as f64 + 0.5) / self.nodes as f64 - 0.5;
            Node { position: place(host / self.nodes, shift, 0.44), size: 2 }
        };
        let router = |router: usize| Node { position: place(router, 0.0, 0.38), size: 4 };
        let edge = |cable: &Cable| Edge {
            ends: (cable.lower as usize, cable.upper as usize),
            value: cable.max_utilisation() / network.max_utilisation,
        };
        GraphDrawing {
            nodes: (0..self.hosts).map(host).chain((0..self.routers).map(router)).collect(),
            edges: network.cables.iter().map(edge).collect(),
            labels: (0..self.groups)
                .map(|group| (format!("group {group}"), self.on_ring(group, 0.5, 0.49)))
                .collect(),
            aspect: 1.0,
            max_width: 560,
            ends: network.ends(),
        }
    }

    fn maps(&self, network: &Network) -> Vec<Map> {
        let mut between = vec![None; self.groups * self.groups];
        let (mut inside, mut hosts) = (vec![None; self.routers], vec![None; self.routers]);
        for cable in &network.cables {
            let upper = cable.upper as usize - self.hosts;
            let Some(lower) = (cable.lower as usize).checked_sub(self.hosts) else {
                raise_to(&mut hosts[upper], cable.max_utilisation());
                continue;
            };
            let (from, to) = (lower / self.per_group, upper / self.per_group);
            if from == to {
                [lower, upper]
                    .into_iter()
                    .for_each(|router| raise_to(&mut inside[router], cable.max_utilisation()));
            } else {
                raise_to(&mut between[from * self.groups + to], cable.up);
                raise_to(&mut between[to * self.groups + from], cable.down);
            }
        }
        vec![
            network.map("between groups".to_owned(), self.groups, &between),
            network.map("inside groups".to_owned(), self.per_group, &inside),
            network.map("hosts".to_owned(), self.per_group, &hosts),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of two routers with a host each: hosts 0 to 3, routers 4 to 7.
    #[test]
    fn cables_are_between_groups_inside_them_or_of_hosts() {
        let shape =
            DragonflyShape { groups: 2, blue: 1, chassis: 1, black: 1, blades: 2, green: 1, nodes: 1 };
        let sizes = Sizes::new(shape);
        let cable = |lower, upper, up, down| Cable { lower, upper, up, down };
        let cables = vec![cable(0, 4, 0.5, 0.0), cable(4, 5, 0.25, 0.125), cable(5, 6, 1.0, 0.75)];
        let network = Network { cables, max_utilisation: 1.0 };
        let maps = sizes.maps(&network);
        assert_eq!(maps[0].values, [None, Some(1.0), Some(0.75), None]);
        assert_eq!(maps[1].values, [Some(0.25), Some(0.25), None, None]);
        assert_eq!(maps[2].values, [Some(0.5), None, None, None]);
        let net = sizes.net(&network);
        assert_eq!((net.nodes.len(), net.edges.len(), net.labels.len()), (8, 3, 2));
        assert!(net.nodes.iter().all(|node| (0.0..=1.0).contains(&node.position.0)));
    }
}
