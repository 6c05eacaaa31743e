//! Components of a machine that fail as a whole, and the instants at which they do.

use std::collections::BTreeMap;

use netmodel::quantity::Seconds;
use netmodel::{HostId, LinkId, NetworkGraph, NetworkLevel, Platform, name_matches};
use xxhash_rust::xxh3::xxh3_64;

use super::section::{FailureSection, Part};

/// A component that fails as a whole.
#[derive(Clone, Debug)]
pub(super) struct Component {
    /// Name of the host or of the cable, or of the part of the network.
    pub(super) name: String,
    pub(super) hosts: Vec<HostId>,
    pub(super) links: Vec<LinkId>,
    pub(super) clock: Clock,
}

/// The instants at which a component fails \[s\].
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// Once.
    At(f64),
    /// A Poisson process, while the component is in order.
    Random {
        /// Number of the section and hash of the name, to which random numbers belong.
        key: u64,
        mtbf_s: f64,
        repair_s: f64,
    },
}

/// Error in the names of components.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FailureError {
    /// The platform has no such component.
    #[error("[[failure]] {key} = {name:?}: the platform has no such {key}{}", .first.as_ref().map_or(String::new(), |first| format!("; its first is {first:?}, and * stands for any text")))]
    Unknown {
        /// The key.
        key: &'static str,
        /// The name.
        name: String,
        /// Name of the first one of the platform.
        first: Option<String>,
    },
    /// Resources change while a job loses work.
    #[error(
        "[failures] recovery: resources change in the run, at instants that checkpoints and restarts of the job would shift in its work; set \
         recovery = \"end\", or leave these changes out (profiles, failures of links, speeds)"
    )]
    Changes,
    /// Two sources say when a resource changes.
    #[error("[[failure]]: the {resource} is in another [[failure]] or a profile, too: leave one of them out")]
    Twice {
        /// The quantity, with the name of the resource.
        resource: String,
    },
}

impl Component {
    /// Returns the components of a section, which has this number.
    ///
    /// # Errors
    /// If the platform has none.
    pub(super) fn of_section(
        platform: &Platform,
        number: usize,
        section: &FailureSection,
    ) -> Result<Vec<Self>, FailureError> {
        let FailureSection { host, link, hosts, leaf, group, at, mtbf, repair, .. } = section;
        let component = |(name, hosts, links): (String, Vec<HostId>, Vec<LinkId>)| {
            let seconds = |time: Option<Seconds>| time.map_or(0.0, |Seconds(seconds)| seconds);
            let key = xxh3_64(&[&(number as u64).to_le_bytes(), name.as_bytes()].concat());
            let clock = match at {
                Some(Seconds(at)) => Clock::At(*at),
                None => Clock::Random { key, mtbf_s: seconds(*mtbf), repair_s: seconds(*repair) },
            };
            Self { name, hosts, links, clock }
        };
        let parts: Vec<(String, Vec<HostId>, Vec<LinkId>)> = if let Some(pattern) = host {
            let hosts = (0..).map(HostId::new).zip(platform.hosts());
            let named = hosts.filter(|(_, host)| name_matches(pattern, &host.name));
            named.map(|(id, host)| (host.name.clone(), vec![id], Vec::new())).collect()
        } else if let Some(pattern) = link {
            cables(platform, pattern)
        } else if let Some(names) = hosts {
            vec![(names.join(", "), hosts_of(platform, "hosts", names)?, Vec::new())]
        } else {
            let levels = [("leaf", NetworkLevel::Leaf, leaf), ("group", NetworkLevel::Group, group)];
            let named = levels.into_iter().filter_map(|(name, level, part)| Some((name, level, (*part)?)));
            named.flat_map(|(name, level, part)| network_parts(platform, name, level, part)).collect()
        };
        if parts.is_empty() {
            let host = platform.hosts().first().map(|host| host.name.clone());
            let named_link = platform.links().first().map(|link| link.name.clone());
            let (key, name, first) = match (host.as_ref(), section) {
                (_, FailureSection { host: Some(name), .. }) => ("host", name.clone(), host),
                (_, FailureSection { link: Some(name), .. }) => ("link", name.clone(), named_link),
                (_, FailureSection { leaf: Some(part), .. }) => ("leaf", part.to_string(), None),
                (_, FailureSection { group, .. }) => {
                    ("group", group.map_or(String::new(), |part| part.to_string()), None)
                }
            };
            return Err(FailureError::Unknown { key, name, first });
        }
        Ok(parts.into_iter().map(component).collect())
    }

    /// Returns the instants at which the component fails under a seed, in ascending order \[s\].
    pub(super) fn instants(&self, seed: u64) -> impl Iterator<Item = f64> + use<> {
        let clock = self.clock;
        let key = match clock {
            Clock::At(_) => 0,
            Clock::Random { key, .. } => key,
        };
        let mut random = fastrand::Rng::with_seed(xxh3_64(&[seed, key].map(u64::to_le_bytes).concat()));
        let mut last = None;
        std::iter::from_fn(move || {
            let next = match (clock, last) {
                (Clock::At(at), None) => at,
                (Clock::At(_), Some(_)) => return None,
                (Clock::Random { mtbf_s, repair_s, .. }, last) => {
                    let in_order_from = last.map_or(0.0, |last: f64| last + repair_s);
                    in_order_from - (1.0 - random.f64()).ln() * mtbf_s
                }
            };
            last = Some(next);
            last
        })
    }

    /// Returns the number of failures in a second, on average.
    pub(super) fn rate(&self) -> f64 {
        match self.clock {
            Clock::At(_) => 0.0,
            Clock::Random { mtbf_s, repair_s, .. } => (mtbf_s + repair_s).recip(),
        }
    }
}

/// Returns the hosts of some names.
///
/// # Errors
/// If the platform lacks one.
pub(super) fn hosts_of(
    platform: &Platform,
    key: &'static str,
    names: &[String],
) -> Result<Vec<HostId>, FailureError> {
    let host = |name: &String| {
        platform.host_by_name(name).ok_or_else(|| FailureError::Unknown {
            key,
            name: name.clone(),
            first: platform.hosts().first().map(|host| host.name.clone()),
        })
    };
    names.iter().map(host).collect()
}

/// Returns the names of the cables between the nodes of a platform's network, in the order of their links; of all links, if these form no graph.
pub fn cable_names(platform: &Platform) -> Vec<String> {
    let graph = NetworkGraph::of(platform).ok();
    let joins_nodes =
        |links: &[LinkId]| graph.as_ref().is_none_or(|graph| graph.channel_of(links[0]).is_some());
    let cables = cables(platform, "*").into_iter();
    cables.filter(|(_, _, links)| joins_nodes(links)).map(|(name, ..)| name).collect()
}

/// Returns the cables of a name, with the links of both directions. Memory of hosts is no cable.
fn cables(platform: &Platform, pattern: &str) -> Vec<(String, Vec<HostId>, Vec<LinkId>)> {
    let mut cables = BTreeMap::<LinkId, (String, Vec<HostId>, Vec<LinkId>)>::new();
    let mut first_of = BTreeMap::<&str, LinkId>::new();
    for (id, link) in (0..).map(LinkId::new).zip(platform.links()) {
        let halves = ["_UP", "_DOWN"].into_iter().find_map(|half| link.name.strip_suffix(half));
        let cable = halves.unwrap_or(&link.name);
        let is_named = name_matches(pattern, cable) || name_matches(pattern, &link.name);
        if is_named && !link.name.starts_with("__") {
            let first = *first_of.entry(cable).or_insert(id);
            let (_, _, links) =
                cables.entry(first).or_insert_with(|| (cable.to_owned(), Vec::new(), Vec::new()));
            links.push(id);
        }
    }
    cables.into_values().collect()
}

/// Returns one part of a network, or each.
fn network_parts(
    platform: &Platform,
    name: &str,
    level: NetworkLevel,
    wanted: Part,
) -> Vec<(String, Vec<HostId>, Vec<LinkId>)> {
    let mut parts = BTreeMap::<u32, Vec<HostId>>::new();
    for (host, part) in (0..).map(HostId::new).zip(platform.parts(level)) {
        let is_wanted = match wanted {
            Part::Number(number) => number == part,
            Part::All(_) => true,
        };
        if is_wanted {
            parts.entry(part).or_default().push(host);
        }
    }
    parts.into_iter().map(|(part, hosts)| (format!("{name} {part}"), hosts, Vec::new())).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two leaf switches of two hosts each, below two others.
    pub(in crate::failure) fn platform() -> Platform {
        let text = "topology = { kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 2 }], \
            speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
        Platform::from_toml(text, "tree.toml").unwrap()
    }

    fn components(text: &str) -> Result<Vec<Component>, String> {
        let section: FailureSection = toml::from_str(text).unwrap();
        Component::of_section(&platform(), 0, &section).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_cables_and_parts_of_networks_are_components() {
        let hosts = |text: &str| -> Vec<Vec<u32>> {
            let of = |component: Component| component.hosts.into_iter().map(HostId::get).collect();
            components(text).unwrap().into_iter().map(of).collect()
        };
        assert_eq!(hosts("host = 'node-*'\nat = 1"), [[0], [1], [2], [3]]);
        assert_eq!(hosts("hosts = ['node-3', 'node-1']\nat = 1"), [[3, 1]]);
        assert_eq!(hosts("leaf = '*'\nat = 1"), [[0, 1], [2, 3]]);
        assert_eq!(hosts("leaf = 1\nat = 1"), [[2, 3]]);
        assert_eq!(hosts("group = 0\nat = 1"), [[0, 1, 2, 3]]);
        let cables = components("link = '*'\nat = 1").unwrap();
        assert_eq!((cables.len(), cables[0].links.len()), (8, 2));
        for (text, expected) in [
            ("host = 'n'\nat = 1", "host = \"n\": the platform has no such host; its first is \"node-0\""),
            ("hosts = ['node-0', 'n']\nat = 1", "hosts = \"n\""),
            ("link = 'l'\nat = 1", "link = \"l\": the platform has no such link"),
            ("leaf = 2\nat = 1", "leaf = \"2\""),
        ] {
            let error = components(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// The mean of 4,000 times between failures is their expectation within three standard deviations.
    #[test]
    fn failures_of_a_component_are_its_own() {
        let all = components("host = 'node-*'\nmtbf = 10\nrepair = 5").unwrap();
        let first = |component: &Component, seed| component.instants(seed).next().unwrap();
        assert_eq!(first(&all[0], 1), first(&all[0], 1));
        assert!(first(&all[0], 1) != first(&all[1], 1) && first(&all[0], 1) != first(&all[0], 2));
        let last = all[0].instants(1).nth(3_999).unwrap();
        assert!((last / 4_000.0 - 15.0).abs() < 3.0 * 10.0 / 4_000_f64.sqrt(), "{last}");
        let once = &components("host = 'node-0'\nat = 2").unwrap()[0];
        assert_eq!(once.instants(1).collect::<Vec<_>>(), [2.0]);
    }
}
