//! Placement: the assignment of ranks to hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use netmodel::{HostId, Platform};
use pdes_core::{LpId, Rank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule by which ranks are placed without a hosts file. Where the hosts of a run are [exclusive](crate::ProgramSpec::is_exclusive), those
/// of other programs are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementPolicy {
    /// The cores of a host are filled before the next one, as launchers do.
    Block,
    /// Each host in turn gets one rank, as in SimGrid.
    Cyclic,
    /// As `block`, on hosts that follow each other.
    Contiguous,
    /// As `block`, on hosts in random order.
    Random,
    /// As `block`, on a host of each leaf switch in turn.
    RoundRobin,
    /// As `block`, on leaf switches that no other program has a host of.
    Leaf,
    /// As `block`, on groups that no other program has a host of.
    Group,
    /// As `block`, with ranks that exchange much on hosts near each other.
    Matrix,
}

impl PlacementPolicy {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Cyclic => "cyclic",
            Self::Contiguous => "contiguous",
            Self::Random => "random",
            Self::RoundRobin => "round-robin",
            Self::Leaf => "leaf",
            Self::Group => "group",
            Self::Matrix => "matrix",
        }
    }
}

/// The host of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    hosts: Vec<HostId>,
    /// Number of ranks of each host, those of other programs included, up to the last one that has any.
    ranks: Vec<u32>,
    /// Number of each rank among those of the program on its host, computed on first use.
    places_on_hosts: OnceLock<Box<[u32]>>,
    /// The placement that was chosen during the run, in place of this one.
    chosen: OnceLock<Box<Placement>>,
}

/// The host of each logical process of a run; others may be chosen while the run is in progress.
#[derive(Debug)]
pub(crate) struct LpHosts(Box<[AtomicU32]>);

impl LpHosts {
    pub(crate) fn new(hosts: &[HostId]) -> Self {
        Self(hosts.iter().map(|host| AtomicU32::new(host.get())).collect())
    }

    /// Returns the host of a logical process.
    #[inline]
    pub(crate) fn of(&self, lp: LpId) -> HostId {
        // Relaxed: a rank acts after the token of its start, which the chooser of its host sends afterwards.
        HostId::new(self.0[lp.index()].load(Ordering::Relaxed))
    }

    /// Returns the hosts of all logical processes.
    pub(crate) fn all(&self) -> Vec<HostId> {
        self.0.iter().map(|host| HostId::new(host.load(Ordering::Relaxed))).collect()
    }

    /// Places logical processes from `first` on.
    pub(crate) fn place(&self, first: LpId, hosts: &[HostId]) {
        let places = self.0[first.index()..].iter().zip(hosts);
        places.for_each(|(place, host)| place.store(host.get(), Ordering::Relaxed));
    }
}

/// The reason why ranks cannot be placed.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// The file cannot be read.
    #[error("the hosts file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line names a host that the platform does not have.
    #[error(
        "{}:{line}: the platform has no host {name:?}; its hosts are {first} ... {last}", path.display()
    )]
    UnknownHost {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The name.
        name: String,
        /// The platform's first host.
        first: String,
        /// The platform's last host.
        last: String,
    },
    /// The number of ranks in a line is invalid.
    #[error("{}:{line}: found {found:?} ranks, expected host or host:ranks with at least one rank", path.display())]
    Count {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Text after the colon.
        found: String,
    },
    /// The file names no host.
    #[error("{}: expected one host per line, found none", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The platform has no host.
    #[error("the platform has no hosts")]
    NoHosts,
    /// Two programs have a host of which one of them is the only user.
    #[error(
        "the jobs {:?} and {:?} overlap on the host {host:?}, which is exclusive: give them other hosts, or set exclusive = false",
        .jobs[0], .jobs[1]
    )]
    Overlap {
        /// Names of the programs.
        jobs: [String; 2],
        /// The host.
        host: String,
    },
    /// A program is larger than the hosts that are left for it.
    #[error(
        "the job {job:?} has {ranks} ranks, but placement = {:?} finds {cores} cores, on {hosts} of {all} hosts{}: take a larger platform, \
         fewer ranks, another placement, or exclusive = false",
        .policy.name(),
        .other.as_ref().map_or(String::new(), |other| format!(", the first other one being that of the job {other:?}"))
    )]
    TooLarge {
        /// Name of the program.
        job: String,
        /// Its number of ranks.
        ranks: u32,
        /// The policy.
        policy: PlacementPolicy,
        /// Number of cores that the policy may take.
        cores: u64,
        /// Number of hosts that the policy may take.
        hosts: usize,
        /// Number of hosts of the platform.
        all: usize,
        /// Name of the first program that has a host already.
        other: Option<String>,
    },
    /// The messages between ranks are not known.
    #[error("the job {job:?}: placement = \"matrix\" needs a trace that tells its messages: {why}")]
    NoMatrix {
        /// Name of the program.
        job: String,
        /// The reason.
        why: String,
    },
}

impl Placement {
    /// Returns the number of ranks of a host, those of other programs included.
    pub fn residents(&self, host: HostId) -> u32 {
        self.current().ranks.get(host.index()).copied().unwrap_or_default()
    }

    /// Returns the largest number of ranks of a host.
    pub fn max_ranks(&self) -> u32 {
        self.current().ranks.iter().copied().max().unwrap_or_default()
    }

    /// Returns the hosts with ranks, in the order of the platform.
    pub(crate) fn hosts_with_ranks(&self) -> BTreeSet<HostId> {
        self.hosts().iter().copied().collect()
    }

    /// Returns the number of hosts with ranks.
    pub fn used_hosts(&self) -> usize {
        self.hosts_with_ranks().len()
    }

    /// Places rank `i` on the host of line `i` of a file, cyclically. A line `host:k` stands for `k` lines; empty
    /// lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, names no host, or names one that the platform does not have.
    pub fn from_file(platform: &Platform, path: &Path, ranks: u32) -> Result<Self, PlacementError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PlacementError::Read { path: path.to_owned(), source })?;
        let mut hosts = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = line.trim();
            if entry.is_empty() || entry.starts_with('#') || hosts.len() >= ranks as usize {
                continue;
            }
            let (host, count) = parse(platform, path, index + 1, entry)?;
            hosts.extend(std::iter::repeat_n(host, count.min(ranks as usize)));
        }
        if hosts.is_empty() {
            return Err(PlacementError::Empty { path: path.to_owned() });
        }
        Ok(Self::repeat(&hosts, ranks))
    }

    /// Places rank `i` on the `i`-th host of a list, cyclically.
    pub(crate) fn repeat(hosts: &[HostId], ranks: u32) -> Self {
        let hosts: Vec<HostId> = hosts.iter().copied().cycle().take(ranks as usize).collect();
        let ranks = count_residents(&hosts);
        Self { hosts, ranks, places_on_hosts: OnceLock::new(), chosen: OnceLock::new() }
    }

    /// Places ranks in blocks of about equal size on each host of a list.
    pub(crate) fn spread(hosts: &[HostId], ranks: u32) -> Self {
        let host = |rank: u32| hosts[(u64::from(rank) * hosts.len() as u64 / u64::from(ranks)) as usize];
        Self::repeat(&(0..ranks).map(host).collect::<Vec<_>>(), ranks)
    }

    /// Replaces the placement during the run.
    ///
    /// # Panics
    /// If another thread does so meanwhile.
    pub(crate) fn choose(&self, placement: Self) {
        self.current().chosen.set(Box::new(placement)).expect("a program is placed by one thread at a time");
    }

    /// Returns the placement that was chosen during the run last, or this one. `O(choices)`.
    #[inline]
    fn current(&self) -> &Self {
        let mut current = self;
        while let Some(chosen) = current.chosen.get() {
            current = chosen;
        }
        current
    }

    /// Tells the hosts of the ranks of all programs, which share the cores and the memory of their hosts.
    pub(crate) fn set_residents(&mut self, hosts: &[HostId]) {
        self.ranks = count_residents(hosts);
    }

    /// Returns the host of each rank.
    pub fn hosts(&self) -> &[HostId] {
        &self.current().hosts
    }

    /// Returns the host of a rank.
    #[inline]
    pub fn host(&self, rank: Rank) -> HostId {
        self.current().hosts[rank.index()]
    }

    /// Returns the number of a rank among those of the program on its host, from 0.
    pub(crate) fn place_on_host(&self, rank: Rank) -> u32 {
        let current = self.current();
        let places = current.places_on_hosts.get_or_init(|| {
            let mut taken = BTreeMap::<HostId, u32>::new();
            let place = |host: &HostId| {
                let taken = taken.entry(*host).or_default();
                *taken += 1;
                *taken - 1
            };
            current.hosts.iter().map(place).collect()
        });
        places[rank.index()]
    }

    /// Returns the share of a rank of the bandwidth of the memory of its host \[B/s\], which the ranks that compute at a time divide
    /// equally; infinite where the memory limits nothing.
    pub(crate) fn memory_bandwidth(&self, platform: &Platform, rank: Rank) -> f64 {
        let id = self.host(rank);
        let host = platform.host(id);
        let computing = host.cores.min(self.residents(id));
        host.memory_bandwidth.map_or(f64::INFINITY, |bandwidth| bandwidth / f64::from(computing))
    }

    /// Returns the first host with more ranks than cores, and its number of ranks.
    pub fn overcommitted(&self, platform: &Platform) -> Option<(HostId, u32)> {
        let over = |host: &HostId| self.residents(*host) > platform.host(*host).cores;
        let host = self.hosts().iter().copied().find(over)?;
        Some((host, self.residents(host)))
    }
}

/// Returns the number of ranks of each host, up to the last one that has any.
fn count_residents(hosts: &[HostId]) -> Vec<u32> {
    let mut ranks = vec![0; hosts.iter().map(|host| host.index() + 1).max().unwrap_or(0)];
    hosts.iter().for_each(|host| ranks[host.index()] += 1);
    ranks
}

/// Parses `host` or `host:ranks`; a host name that contains a colon matches as a whole first.
fn parse(
    platform: &Platform,
    path: &Path,
    line: usize,
    entry: &str,
) -> Result<(HostId, usize), PlacementError> {
    if let Some(host) = platform.host_by_name(entry) {
        return Ok((host, 1));
    }
    let (name, count) = entry.rsplit_once(':').unwrap_or((entry, "1"));
    let Some(host) = platform.host_by_name(name) else {
        let end = |host: Option<&netmodel::Host>| host.map_or(String::new(), |host| host.name.clone());
        return Err(PlacementError::UnknownHost {
            path: path.to_owned(),
            line,
            name: name.to_owned(),
            first: end(platform.hosts().first()),
            last: end(platform.hosts().last()),
        });
    };
    match count.parse() {
        Ok(count @ 1..) => Ok((host, count)),
        _ => Err(PlacementError::Count { path: path.to_owned(), line, found: count.to_owned() }),
    }
}
