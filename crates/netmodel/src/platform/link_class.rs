//! Classes of links by their place in the network.

use serde::{Deserialize, Serialize};

use crate::{HostId, LinkId, Platform};

/// Place of a link in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkClass {
    /// Ranks of one host reach each other over it: a loopback.
    InsideHost,
    /// Routes of one host begin or end with it.
    Leaf,
    /// Other links: between switches, or in networks whose hosts forward messages, such as a torus, all links of the network.
    Spine,
}

impl LinkClass {
    /// All classes, from the host outwards.
    pub const ALL: [Self; 3] = [Self::InsideHost, Self::Leaf, Self::Spine];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::InsideHost => "inside hosts",
            Self::Leaf => "leaf links",
            Self::Spine => "spine links",
        }
    }
}

impl Platform {
    /// Returns the class of each link. Takes the time of three routes per host.
    pub fn link_classes(&self) -> Vec<LinkClass> {
        let mut classes = vec![LinkClass::Spine; self.links().len()];
        let hosts = self.hosts().len() as u32;
        let mut links = Vec::new();
        let mut route = |from: u32, distance: u32| {
            let [from, to] = [from, (from + distance) % hosts].map(HostId::new);
            // Without a route there are no links of one.
            if self.route(from, to, &mut links).is_err() {
                links.clear();
            }
            links.clone()
        };
        for host in 0..hosts {
            route(host, 0).iter().for_each(|link| classes[link.index()] = LinkClass::InsideHost);
        }
        for host in (0..hosts).filter(|_| hosts > 1) {
            let links = route(host, 1);
            let ends = links.first().into_iter().chain(links.last());
            ends.for_each(|link| classes[link.index()] = LinkClass::Leaf);
        }
        let crosses_leaf = |links: Vec<LinkId>| {
            links.len() > 2
                && links[1..links.len() - 1].iter().any(|link| classes[link.index()] == LinkClass::Leaf)
        };
        // Where routes go on over the first link of another host, hosts forward messages.
        if hosts > 2
            && (0..hosts).any(|host| crosses_leaf(route(host, 2)) || crosses_leaf(route(host, hosts / 2)))
        {
            let leaves = classes.iter_mut().filter(|class| **class == LinkClass::Leaf);
            leaves.for_each(|class| *class = LinkClass::Spine);
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(topology: &str) -> (Vec<(String, LinkClass)>, Platform) {
        let platform = Platform::from_toml(&format!("[topology]\n{topology}"), "test").unwrap();
        let names = platform.links().iter().map(|link| link.name.to_string());
        (names.zip(platform.link_classes()).collect(), platform)
    }

    #[test]
    fn links_have_their_place_in_the_network() {
        let rates = "speed = '1Gf'\nbandwidth = '1GBps'\nlatency = '10us'\n";
        let count =
            |found: &[(String, LinkClass)], class| found.iter().filter(|(_, of)| *of == class).count();
        let (tree, mut platform) = classes(&format!(
            "kind = 'fat_tree'\n{rates}levels = [{{ children = 4, parents = 1 }}, {{ children = 2, parents = 2 }}]"
        ));
        // A cable for each of eight hosts, and two uplinks of each of two leaves, each in two directions.
        assert_eq!(count(&tree, LinkClass::Leaf), 16, "{tree:?}");
        assert_eq!(count(&tree, LinkClass::Spine), 8, "{tree:?}");
        platform.scale_links(|link| tree[link.index()].1 == LinkClass::Spine, 3.0, 0.5);
        for (link, (_, class)) in platform.links().iter().zip(&tree) {
            let expected = if *class == LinkClass::Spine { (3e-5, 5e8) } else { (1e-5, 1e9) };
            assert!(
                (link.latency / expected.0 - 1.0).abs() < 1e-12 && link.bandwidth == expected.1,
                "{link:?}"
            );
        }
        let (torus, _) = classes(&format!("kind = 'torus'\n{rates}dims = [4, 4]"));
        assert_eq!(count(&torus, LinkClass::Leaf), 0, "{torus:?}");
    }
}
