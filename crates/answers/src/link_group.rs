//! Groups of links: by level of a tree or of other switches, by dimension of a torus, by place in a dragonfly, or by class.

use std::collections::BTreeMap;
use std::sync::Arc;

use netmodel::{CableEnds, DragonflyShape, Layout, Link, LinkClass, LinkId, NetworkShape, Platform};

/// Links of a platform that have a place in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkGroup {
    /// The place, such as `leaf to spine`.
    pub name: String,
    /// The links; `None` stands for all of the platform.
    pub links: Option<Arc<[LinkId]>>,
}

impl LinkGroup {
    /// Returns the group of all links.
    pub fn all() -> Self {
        Self { name: "all links".to_owned(), links: None }
    }

    /// Returns the group of the links of a class, if there are any. Takes the time of three routes per host.
    pub fn of_class(platform: &Platform, class: LinkClass) -> Option<Self> {
        let classes = (0..).map(LinkId::new).zip(platform.link_classes());
        let links: Arc<[LinkId]> = classes.filter(|(_, of)| *of == class).map(|(link, _)| link).collect();
        (!links.is_empty()).then(|| Self { name: class.name().to_owned(), links: Some(links) })
    }

    /// Divides the links of a platform into groups. Cables of a regular network are grouped by what they connect, or by their dimension;
    /// other links by their [class](LinkClass).
    pub fn groups(platform: &Platform) -> Vec<Self> {
        let mut places: BTreeMap<LinkId, String> = (0..)
            .map(LinkId::new)
            .zip(platform.link_classes())
            .map(|(link, class)| (link, class.name().to_owned()))
            .collect();
        if let Some(layout) = Layout::of(platform) {
            for cable in layout.cables().unwrap_or_default() {
                let place = place(&layout, cable);
                places.insert(cable.up, place.clone());
                places.insert(cable.down, place);
            }
        }
        let mut groups: Vec<(String, Vec<LinkId>)> = Vec::new();
        for (link, place) in places {
            match groups.iter_mut().find(|(name, _)| *name == place) {
                Some((_, links)) => links.push(link),
                None => groups.push((place, vec![link])),
            }
        }
        groups.into_iter().map(|(name, links)| Self { name, links: Some(links.into()) }).collect()
    }

    /// Returns the links of a platform that are in the group.
    pub fn of<'p>(&self, platform: &'p Platform) -> impl Iterator<Item = &'p Link> {
        let links: Vec<LinkId> = match &self.links {
            Some(links) => links.to_vec(),
            None => (0..platform.links().len() as u32).map(LinkId::new).collect(),
        };
        links.into_iter().map(|link| platform.link(link))
    }

    /// Returns a quantity of the links of a platform that are in the group; `None` unless all have the same.
    pub fn value(&self, platform: &Platform, quantity: impl Fn(&Link) -> f64) -> Option<f64> {
        let mut values = self.of(platform).map(quantity);
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }
}

/// Returns the place of a cable in a regular network.
fn place(layout: &Layout, CableEnds { lower, upper, .. }: CableEnds) -> String {
    let hosts = layout.hosts();
    let [lower, upper] = [lower, upper].map(|station| station.checked_sub(hosts).ok_or(station));
    match &layout.shape {
        NetworkShape::Star { .. } => "host to switch".to_owned(),
        NetworkShape::Torus { dims } => {
            let (Err(mut lower), Err(mut upper)) = (lower, upper) else { return "torus".to_owned() };
            for (dimension, size) in dims.iter().map(|&size| u64::from(size)).enumerate() {
                if lower % size != upper % size {
                    return format!("dimension {}", dimension + 1);
                }
                (lower, upper) = (lower / size, upper / size);
            }
            "torus".to_owned()
        }
        NetworkShape::FatTree { levels } if levels.len() == 1 => "host to switch".to_owned(),
        NetworkShape::FatTree { .. } | NetworkShape::Switches(_) => {
            let names = layout.switches();
            // Switches of one level have one name before their number.
            let name = |station: Result<u64, u64>| match station {
                Err(_) => "host",
                Ok(switch) => names
                    .get(switch as usize)
                    .and_then(|name| name.rsplit_once(' '))
                    .map_or("switch", |name| name.0),
            };
            format!("{} to {}", name(lower), name(upper))
        }
        NetworkShape::Dragonfly(DragonflyShape { chassis, blades, .. }) => {
            let (Ok(lower), Ok(upper)) = (lower, upper) else { return "host to router".to_owned() };
            let (chassis, blades) = (u64::from(*chassis), u64::from(*blades));
            if lower / (chassis * blades) != upper / (chassis * blades) {
                "between groups".to_owned()
            } else if lower / blades != upper / blades {
                "between chassis".to_owned()
            } else {
                "inside chassis".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(topology: &str) -> Vec<(String, usize)> {
        let text = format!(
            "topology = {{ {topology}, speed = '1Gf', bandwidth = '1GBps', latency = '1us', loopback = {{ bandwidth = '1GBps', latency = '1us' }} }}"
        );
        let platform = Platform::from_toml(&text, "test").unwrap();
        let groups = LinkGroup::groups(&platform);
        let sizes: Vec<(String, usize)> =
            groups.iter().map(|group| (group.name.clone(), group.of(&platform).count())).collect();
        assert_eq!(sizes.iter().map(|(_, size)| size).sum::<usize>(), platform.links().len());
        sizes
    }

    fn named(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
        expected.iter().map(|&(name, size)| (name.to_owned(), size)).collect()
    }

    /// Two links for each cable, and a loopback for each host.
    #[test]
    fn cables_are_grouped_by_their_place() {
        let tree =
            "kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 2, parents = 2 }]";
        let expected = [("host to leaf", 16), ("leaf to spine", 8), ("inside hosts", 8)];
        assert_eq!(groups(tree), named(&expected));
        let expected = [("dimension 1", 24), ("dimension 2", 24), ("inside hosts", 12)];
        assert_eq!(groups("kind = 'torus', dims = [4, 3]"), named(&expected));
        let shape = "groups = 3, blue = 1, chassis = 2, black = 1, blades = 4, green = 1, nodes = 2";
        let found = groups(&format!("kind = 'dragonfly', {shape}"));
        // 24 routers with two hosts each; six pairs of blades in each of six chassis; four of chassis in each of three groups; three of groups.
        let expected = [
            ("host to router", 96),
            ("inside chassis", 72),
            ("between chassis", 24),
            ("between groups", 6),
            ("inside hosts", 48),
        ];
        assert_eq!(found, named(&expected));
        assert_eq!(
            groups("kind = 'cluster', hosts = 3"),
            named(&[("host to switch", 6), ("inside hosts", 3)])
        );
    }
}
