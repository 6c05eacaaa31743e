//! Fat tree: lines between its switches if there are few cables, else a band of pixels per level.

use figures::{Edge, Figure, GraphDrawing, Map, Node};
use netmodel::FatTreeLevel;

use super::{Cable, MAX_LINES, Network, downsampled, raise_to};

/// First node of each level, hosts first, and the total number of nodes.
struct Levels(Vec<u64>);

pub(super) fn figure(network: Network, levels: &[FatTreeLevel]) -> Figure {
    let starts = Levels::new(levels);
    let title = format!("Fat tree of {} hosts, levels of {} switches", starts.count(0), starts.sizes());
    Figure::new("network", title, move |width| {
        if network.cables.len() <= MAX_LINES {
            starts.net(&network).draw(width)
        } else {
            network.maps(starts.bands(&network)).draw(width)
        }
    })
}

impl Levels {
    fn new(levels: &[FatTreeLevel]) -> Self {
        let mut starts = vec![0];
        for level in 0..=levels.len() {
            let below = levels[..level].iter().map(|level| u64::from(level.parents));
            let above = levels[level..].iter().map(|level| u64::from(level.children));
            starts.push(starts[level] + below.chain(above).product::<u64>());
        }
        Self(starts)
    }

    fn count(&self, level: usize) -> u64 {
        self.0[level + 1] - self.0[level]
    }

    fn last(&self) -> usize {
        self.0.len() - 2
    }

    fn sizes(&self) -> String {
        let sizes: Vec<String> = (1..=self.last()).map(|level| self.count(level).to_string()).collect();
        sizes.join(" and ")
    }

    /// Returns the level of a node, and its index in that level.
    fn find(&self, node_index: u64) -> (usize, u64) {
        let level =
            self.0.iter().rposition(|&start| start <= node_index).unwrap_or_default().min(self.last());
        (level, node_index - self.0[level])
    }

    fn net(&self, network: &Network) -> GraphDrawing {
        let node = |node_index: u64| {
            let (level, place) = self.find(node_index);
            let x = (place as f64 + 0.5) / self.count(level) as f64;
            let y = 1.0 - level as f64 / self.last() as f64;
            Node { position: (x, y), size: if level == 0 { 2 } else { 4 } }
        };
        let node_count = self.0[self.0.len() - 1];
        let edge = |cable: &Cable| Edge {
            ends: (cable.lower as usize, cable.upper as usize),
            value: cable.max_utilisation() / network.max_utilisation,
        };
        GraphDrawing {
            nodes: (0..node_count).map(node).collect(),
            edges: network.cables.iter().map(edge).collect(),
            labels: Vec::new(),
            aspect: 0.14 + 0.13 * self.last() as f64,
            max_width: u32::MAX,
            ends: network.ends(),
        }
    }

    /// Returns a band for each level with cables upwards, the highest first.
    fn bands(&self, network: &Network) -> Vec<Map> {
        let empty = |level: usize| vec![None; self.count(level) as usize];
        let mut bands: Vec<_> = (0..self.last()).map(|level| [empty(level), empty(level)]).collect();
        for cable in &network.cables {
            let (level, place) = self.find(cable.lower);
            raise_to(&mut bands[level][0][place as usize], cable.up);
            raise_to(&mut bands[level][1][place as usize], cable.down);
        }
        let map = |(level, [up, down]): (usize, &[Vec<Option<f64>>; 2])| {
            let lines = [downsampled(up), downsampled(down)];
            let name = if level == 0 { "hosts".to_owned() } else { format!("switches of level {level}") };
            let title = format!(
                "{} {name}, to and from {} of level {}",
                self.count(level),
                self.count(level + 1),
                level + 1
            );
            network.map(title, lines[0].len(), &lines.concat())
        };
        bands.iter().enumerate().rev().map(map).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four hosts below two switches, which have two above them.
    #[test]
    fn each_level_has_its_band() {
        let level = |children, parents| FatTreeLevel { children, parents, cables: 1 };
        let levels = Levels::new(&[level(2, 1), level(2, 2)]);
        assert_eq!(levels.0, [0, 4, 6, 8]);
        assert_eq!((levels.find(3), levels.find(5), levels.find(7)), ((0, 3), (1, 1), (2, 1)));
        let cable = |lower, upper, up, down| Cable { lower, upper, up, down };
        let cables = vec![cable(3, 5, 0.5, 0.25), cable(5, 6, 0.125, 0.0), cable(5, 7, 1.0, 0.5)];
        let network = Network { cables, max_utilisation: 1.0 };
        let bands = levels.bands(&network);
        assert_eq!(bands[0].values, [None, Some(1.0), None, Some(0.5)]);
        assert_eq!(bands[1].values[3], Some(0.5));
        let net = levels.net(&network);
        assert_eq!((net.nodes.len(), net.edges.len()), (8, 3));
        assert_eq!((net.nodes[7].position, net.nodes[0].position), ((0.75, 0.0), (0.125, 1.0)));
    }
}
