//! Other hosts for the ranks of a run.

use std::collections::BTreeMap;

use netmodel::{HostId, Platform, RouteError};
use pdes_core::{Progress, Rank};
use replay::{RunError, RunSpec, Simulation, order_by_halves};
use serde::Serialize;
use trace_mmap::PairTraffic;
use trace_tools::transform::{CountedTraffic, Placement as Change};

/// Largest number of hosts between which distances are tabulated.
const MAX_HOSTS: usize = 4096;

/// Largest number of ranks between which the messages of a replay are counted.
const MAX_COUNTED_RANKS: u32 = 16384;

/// Bytes of all messages that are counted between two ranks, each multiplied by the number of links of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HopBytes {
    /// On the hosts of the run.
    pub before: u128,
    /// On the other hosts.
    pub after: u128,
}

/// The reason why ranks cannot be placed otherwise.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The run cannot be loaded or replayed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no route between two hosts.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A list of ranks is not one of all ranks.
    #[error("place: order has {found} ranks, the program has {ranks}: list each once")]
    Order {
        /// Number of ranks in the list.
        found: usize,
        /// Number of ranks of the program.
        ranks: u32,
    },
    /// The platform has fewer hosts than a placement needs.
    #[error(
        "place: {ranks} ranks, {count} on each host, need {needed} hosts, but the platform has {found}: raise per_host"
    )]
    TooFewHosts {
        /// Number of ranks.
        ranks: u32,
        /// Ranks on each host.
        count: u32,
        /// Number of hosts for them.
        needed: u32,
        /// Number of hosts of the platform.
        found: usize,
    },
    /// The platform has too many hosts for a greedy mapping.
    #[error(
        "place: mapping = \"greedy\" takes up to {limit} hosts, the platform has {found}: take mapping = \"bisection\""
    )]
    TooManyHosts {
        /// Number of hosts of the platform.
        found: usize,
        /// Largest number.
        limit: usize,
    },
    /// The program has too many ranks to count all messages between them.
    #[error(
        "place: traffic = \"all\" takes up to {limit} ranks, the program has {found}: take traffic = \"messages\""
    )]
    TooManyRanks {
        /// Number of ranks.
        found: u32,
        /// Largest number.
        limit: u32,
    },
}

impl PlaceError {
    /// Returns whether the placement does not suit the run, rather than the run being one that cannot be replayed.
    pub fn is_misuse(&self) -> bool {
        !matches!(self, Self::Run(_) | Self::Route(_))
    }
}

/// Places the ranks of a run otherwise; returns the names of their hosts.
///
/// # Errors
/// Fails if an input is invalid, or the platform has too many hosts for a mapping.
pub fn place(spec: &RunSpec, changes: &[&Change]) -> Result<(Vec<String>, HopBytes), PlaceError> {
    let simulation = Simulation::load(spec)?;
    let (platform, ranks) = (simulation.platform(), simulation.trace().ranks());
    let before: Vec<HostId> = (0..ranks).map(|rank| simulation.placement().host(Rank::new(rank))).collect();
    let pairs =
        PairTraffic::all(simulation.trace()).map_err(trace_mmap::TraceError::from).map_err(RunError::from)?;
    let messages = Traffic::new(pairs.iter().map(|pair| ((pair.from, pair.to), pair.bytes.get())), ranks);
    let counts_all = |change: &&&Change| {
        matches!(**change, Change::Greedy(CountedTraffic::All) | Change::Bisection(CountedTraffic::All))
    };
    let all = changes.iter().find(counts_all).map(|_| Traffic::of_replay(spec, ranks)).transpose()?;
    let traffic = |counted: &CountedTraffic| match counted {
        CountedTraffic::Messages => &messages,
        CountedTraffic::All => all.as_ref().unwrap_or(&messages),
    };
    let mut distances = Distances { platform, known: BTreeMap::new() };
    let mut hosts = before.clone();
    for change in changes {
        hosts = match change {
            Change::Order(order) if order.len() != hosts.len() => {
                return Err(PlaceError::Order { found: order.len(), ranks });
            }
            Change::Order(order) => order.iter().map(|rank| hosts[*rank as usize]).collect(),
            Change::PerHost(count) => per_host(platform, ranks, *count)?,
            Change::Greedy(counted) => {
                distances.check()?;
                greedy(traffic(counted), &hosts, &mut distances)?
            }
            Change::Bisection(counted) => bisection(traffic(counted), &hosts),
        };
    }
    let traffic = all.as_ref().unwrap_or(&messages);
    let hop_bytes = HopBytes {
        before: traffic.hop_bytes(&before, &mut distances)?,
        after: traffic.hop_bytes(&hosts, &mut distances)?,
    };
    let names = hosts.iter().map(|host| platform.host(*host).name.clone()).collect();
    Ok((names, hop_bytes))
}

fn per_host(platform: &Platform, ranks: u32, count: u32) -> Result<Vec<HostId>, PlaceError> {
    let (needed, found) = (ranks.div_ceil(count), platform.hosts().len());
    if found < needed as usize {
        return Err(PlaceError::TooFewHosts { ranks, count, needed, found });
    }
    Ok((0..ranks).map(|rank| HostId::new(rank / count)).collect())
}

/// Bytes between ranks, in both directions together.
struct Traffic {
    /// Other ranks with the bytes from and to them, in ascending order, by rank.
    of_rank: Vec<Vec<(u32, u64)>>,
}

impl Traffic {
    /// Adds up the bytes of pairs of sender and receiver.
    fn new(pairs: impl Iterator<Item = ((Rank, Rank), u64)>, ranks: u32) -> Self {
        let mut sums: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); ranks as usize];
        for ((from, to), bytes) in pairs.filter(|((from, to), _)| from != to) {
            for (one, other) in [(from, to), (to, from)] {
                let sum = sums[one.index()].entry(other.get()).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        Self { of_rank: sums.into_iter().map(|sums| sums.into_iter().collect()).collect() }
    }

    /// Counts the messages of a replay, those inside collective operations included.
    fn of_replay(spec: &RunSpec, ranks: u32) -> Result<Self, PlaceError> {
        if ranks > MAX_COUNTED_RANKS {
            return Err(PlaceError::TooManyRanks { found: ranks, limit: MAX_COUNTED_RANKS });
        }
        let spec = RunSpec {
            matrix_groups: Some(ranks),
            fast_forward: false,
            critical_path: false,
            histograms: false,
            ..spec.without_outputs()
        };
        let outcome = Simulation::load(&spec)?.replay(&Progress::new(spec.threads))?;
        let matrix = outcome.into_program().findings.matrix.unwrap_or_default();
        let pairs = matrix.cells.iter().map(|((from, to), traffic)| {
            ((Rank::new(from * matrix.group_size), Rank::new(to * matrix.group_size)), traffic.bytes)
        });
        Ok(Self::new(pairs, ranks))
    }

    fn hop_bytes(&self, hosts: &[HostId], distances: &mut Distances<'_>) -> Result<u128, RouteError> {
        let mut sum = 0;
        for (rank, others) in self.of_rank.iter().enumerate() {
            for (other, bytes) in others.iter().filter(|(other, _)| *other as usize > rank) {
                let hops = distances.hops(hosts[rank], hosts[*other as usize])?;
                sum += u128::from(*bytes) * u128::from(hops);
            }
        }
        Ok(sum)
    }
}

/// Numbers of links between hosts.
struct Distances<'p> {
    platform: &'p Platform,
    known: BTreeMap<(HostId, HostId), u32>,
}

impl Distances<'_> {
    fn check(&self) -> Result<(), PlaceError> {
        match self.platform.hosts().len() {
            found if found > MAX_HOSTS => Err(PlaceError::TooManyHosts { found, limit: MAX_HOSTS }),
            _ => Ok(()),
        }
    }

    fn hops(&mut self, one: HostId, other: HostId) -> Result<u32, RouteError> {
        if one == other {
            return Ok(0);
        }
        if let Some(hops) = self.known.get(&(one, other)) {
            return Ok(*hops);
        }
        let mut links = Vec::new();
        self.platform.route(one, other, &mut links)?;
        self.known.insert((one, other), links.len() as u32);
        Ok(links.len() as u32)
    }
}

/// Places the rank with most bytes to placed ranks next, on the free place where bytes times links grow least; at a tie, the lowest
/// rank on the first place. The first rank is that with most bytes, on the first place.
///
/// O(ranks^2) times the number of neighbours of a rank.
fn greedy(
    traffic: &Traffic,
    places: &[HostId],
    distances: &mut Distances<'_>,
) -> Result<Vec<HostId>, PlaceError> {
    let ranks = places.len();
    let mut hosts: Vec<Option<HostId>> = vec![None; ranks];
    let mut free: Vec<HostId> = places.to_vec();
    // Bytes of each rank to placed ranks, and in all.
    let all: Vec<u64> =
        traffic.of_rank.iter().map(|others| others.iter().map(|(_, bytes)| bytes).sum()).collect();
    let mut placed = vec![0_u64; ranks];
    for _ in 0..ranks {
        let waiting = (0..ranks).filter(|rank| hosts[*rank].is_none());
        let next = waiting.max_by_key(|rank| (placed[*rank], all[*rank], std::cmp::Reverse(*rank)));
        let Some(rank) = next else { break };
        let mut best: Option<(u128, usize)> = None;
        for (place, host) in free.iter().enumerate() {
            // Places on one host are equal.
            if place > 0 && free[place - 1] == *host {
                continue;
            }
            let mut cost = 0;
            for (other, bytes) in &traffic.of_rank[rank] {
                if let Some(at) = hosts[*other as usize] {
                    cost += u128::from(*bytes) * u128::from(distances.hops(*host, at)?);
                }
            }
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, place));
            }
        }
        let Some((_, place)) = best else { break };
        hosts[rank] = Some(free.remove(place));
        for (other, bytes) in &traffic.of_rank[rank] {
            placed[*other as usize] = placed[*other as usize].saturating_add(*bytes);
        }
    }
    Ok(hosts.into_iter().zip(places).map(|(host, place)| host.unwrap_or(*place)).collect())
}

/// Halves ranks and places until one rank is left for each place.
fn bisection(traffic: &Traffic, places: &[HostId]) -> Vec<HostId> {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    let edges: Vec<(u32, u32, u64)> = (0..)
        .zip(&traffic.of_rank)
        .flat_map(|(rank, others)| others.iter().map(move |(other, bytes)| (rank, *other, *bytes)))
        .filter(|(rank, other, _)| rank < other)
        .collect();
    let mut hosts = places.to_vec();
    let order = order_by_halves(places.len() as u32, &edges);
    order.into_iter().zip(sorted).for_each(|(rank, host)| hosts[rank as usize] = host);
    hosts
}
