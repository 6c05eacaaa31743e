//! The hosts of members, and the cores that members may use there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

use super::backend::Backend;
use super::{Cluster, ClusterError};

/// The host of a member, and its share of the cores there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Site {
    host: String,
    /// Cores on which the member may run.
    allowed: BTreeSet<u32>,
    /// Number of cores that it may use at once, which a control group may limit further.
    parallelism: usize,
}

impl Site {
    /// Returns the site of this process, as Linux describes it; `None` if it does not.
    fn own() -> Option<Self> {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let parallelism = thread::available_parallelism().ok()?.get();
        Some(Self { host, allowed: parse_cores(allowed.trim())?, parallelism })
    }
}

/// Parses a list of cores such as `0-3,8`.
fn parse_cores(list: &str) -> Option<BTreeSet<u32>> {
    let mut cores = BTreeSet::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let core = |text: &str| text.parse::<u32>().ok();
        cores.extend(core(first)?..=core(last)?);
    }
    Some(cores)
}

/// Returns, for each member, whether there is a core for each of its workers, if members before it on the same host take theirs
/// first. The first member of a host always works.
fn have_cores(sites: &[Site], workers: usize) -> Vec<bool> {
    let mut by_host: BTreeMap<&str, Vec<&Site>> = BTreeMap::new();
    sites.iter().for_each(|site| by_host.entry(&site.host).or_default().push(site));
    let free = |members: Vec<&Site>| {
        let cores = if members.iter().all(|site| site.allowed == members[0].allowed) {
            members[0].parallelism
        } else {
            // The launcher has bound members to cores of their own.
            members.iter().flat_map(|site| &site.allowed).collect::<BTreeSet<_>>().len()
        };
        (cores / workers).max(1)
    };
    let mut free: BTreeMap<&str, usize> = by_host.into_iter().map(|(host, all)| (host, free(all))).collect();
    let take = |site: &Site| {
        let free = free.get_mut(site.host.as_str()).expect("each host has been counted");
        let works = *free > 0;
        *free = free.saturating_sub(1);
        works
    };
    sites.iter().map(take).collect()
}

impl Cluster {
    /// Returns, on all members, which of them are to work so that each of their `workers` threads has a core of its own: more threads
    /// than cores slow each other down at every synchronisation. All work if a host does not tell its cores, and in a cluster of
    /// threads, which serves for tests.
    ///
    /// # Errors
    /// As [`gather`](Cluster::gather).
    pub fn members_with_cores(&mut self, workers: usize) -> Result<Vec<bool>, ClusterError> {
        let own = if self.is_of_processes() { Site::own() } else { None };
        let sites: Option<Vec<Site>> = self.gather(own)?.into_iter().collect();
        let works = sites.map(|sites| have_cores(&sites, workers));
        self.broadcast(Some(works.unwrap_or_else(|| vec![true; self.members()])))
    }

    fn is_of_processes(&self) -> bool {
        !matches!(self.transport.backend(), Backend::Memory(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(host: &str, allowed: &str, parallelism: usize) -> Site {
        Site { host: host.to_owned(), allowed: parse_cores(allowed).unwrap(), parallelism }
    }

    #[test]
    fn members_share_the_cores_of_their_host() {
        let sites = [["a", "b"]; 3].concat().into_iter().map(|host| site(host, "0-3", 2)).collect::<Vec<_>>();
        assert_eq!(have_cores(&sites, 1), [true, true, true, true, false, false]);
        assert_eq!(have_cores(&sites, 2), [true, true, false, false, false, false]);
        // Even if a host has fewer cores than threads.
        assert_eq!(have_cores(&sites, 8), [true, true, false, false, false, false]);
    }

    #[test]
    fn bound_members_have_their_own_cores() {
        let sites: Vec<_> = ["0", "1", "2-3"].into_iter().map(|core| site("a", core, 1)).collect();
        assert_eq!(have_cores(&sites, 1), [true; 3]);
        assert_eq!(have_cores(&sites, 2), [true, true, false]);
    }

    #[test]
    fn a_list_of_cores_is_read() {
        assert_eq!(parse_cores("0-2,8").unwrap(), BTreeSet::from([0, 1, 2, 8]));
        assert_eq!(parse_cores("none"), None);
    }

    #[test]
    fn this_process_has_a_core() {
        let own = Site::own().unwrap();
        assert!(own.parallelism > 0 && own.parallelism <= own.allowed.len(), "{own:?}");
    }
}
