//! Breakdown of the time of ranks into computation, library, transfer and wait states, for the report.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mpi_model::{ActionKind, Share, Statistics, WaitState, region_name};
use pdes_core::{Rank, SimDuration, SimTime};
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};
use trace_mmap::{LocationId, Trace};

use super::column::Column;
use super::section::{CsvTable, Section};
use super::tables;

/// Breakdown of the time of all ranks; `docs/waits.md` defines the parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Time of all ranks.
    pub total: Parts,
    /// Time by kind of action, in the order of `time_by_action`.
    pub calls: Vec<CallParts>,
    /// Time by call site, in descending order; one entry without a name for actions without a call site.
    pub regions: Vec<RegionParts>,
    /// Parts of the time of each rank, which add up to its end time.
    pub ranks: RankParts,
    /// Time of each rank by kind of action.
    pub rank_calls: Vec<RankCall>,
}

/// Parts of a time \[s\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Total time.
    pub time_s: f64,
    /// Computation of the program.
    pub compute_s: f64,
    /// Sleep of the program.
    pub sleep_s: f64,
    /// Time inside the MPI library: overheads, polls, reductions.
    pub library_s: f64,
    /// Transfer time: waiting for data while both sides were ready.
    pub transfer_s: f64,
    /// Waiting for ranks that were not ready: the sum of the wait states below.
    pub waiting_s: f64,
    /// Late sender: waiting for a message that had not been sent.
    pub late_sender_s: f64,
    /// Late receiver: waiting for a receive that had not been posted.
    pub late_receiver_s: f64,
    /// Wait at barrier.
    pub wait_at_barrier_s: f64,
    /// Wait at NxN: waiting in all-to-all operations.
    pub wait_at_nxn_s: f64,
    /// Late broadcast: waiting for the root in one-to-all operations.
    pub late_broadcast_s: f64,
    /// Early reduce: waiting of the root in all-to-one operations.
    pub early_reduce_s: f64,
    /// Early scan: waiting in scans.
    pub early_scan_s: f64,
}

/// The time of one kind of action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallParts {
    /// Name of the action in a trace.
    pub action: Cow<'static, str>,
    /// Number of actions.
    pub count: u64,
    /// Their time.
    #[serde(flatten)]
    pub parts: Parts,
}

/// The time at one call site: up to the next call site in the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionParts {
    /// File and line, or path of a region; null for actions before the first call site.
    pub site: Option<String>,
    /// Number of ranks with actions at the call site.
    pub ranks: u32,
    /// Longest computation of a rank divided by the mean of these ranks, minus 1.
    pub imbalance: f64,
    /// Time of these ranks.
    #[serde(flatten)]
    pub parts: Parts,
}

/// Parts of each rank's time \[ps\].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankParts {
    /// Number of the host of the rank, in the order of the platform.
    #[serde(default)]
    pub host: Column,
    /// End time: the sum of all following columns.
    pub end_ps: Column,
    /// `compute_s` of [`Parts`] by rank.
    pub compute_ps: Column,
    /// `sleep_s` of [`Parts`] by rank.
    pub sleep_ps: Column,
    /// `library_s` of [`Parts`] by rank.
    pub library_ps: Column,
    /// `transfer_s` of [`Parts`] by rank.
    pub transfer_ps: Column,
    /// `late_sender_s` of [`Parts`] by rank.
    pub late_sender_ps: Column,
    /// `late_receiver_s` of [`Parts`] by rank.
    pub late_receiver_ps: Column,
    /// `wait_at_barrier_s` of [`Parts`] by rank.
    pub wait_at_barrier_ps: Column,
    /// `wait_at_nxn_s` of [`Parts`] by rank.
    pub wait_at_nxn_ps: Column,
    /// `late_broadcast_s` of [`Parts`] by rank.
    pub late_broadcast_ps: Column,
    /// `early_reduce_s` of [`Parts`] by rank.
    pub early_reduce_ps: Column,
    /// `early_scan_s` of [`Parts`] by rank.
    pub early_scan_ps: Column,
}

/// Time of each rank in one kind of action \[ps\].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankCall {
    /// Name of the action in a trace.
    pub action: Cow<'static, str>,
    /// Total time.
    pub time_ps: Column,
    /// Part of it spent waiting for ranks that were not ready.
    pub waiting_ps: Column,
}

/// Load imbalance: differences between the computation times of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imbalance {
    /// Longest computation time divided by the mean, minus 1: 0 if all are equal.
    pub compute: f64,
    /// Rank with the longest computation time; at a tie, the lowest.
    pub rank: u32,
    /// Computation time of that rank \[s\].
    pub max_s: f64,
    /// Mean computation time of all ranks \[s\].
    pub mean_s: f64,
}

/// Sums of picoseconds with 128 bits: the times of a million ranks overflow 64.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    compute: u128,
    sleep: u128,
    library: u128,
    transfer: u128,
    waiting: [u128; WaitState::COUNT],
}

/// Sums of a region.
#[derive(Debug, Default)]
struct RegionSum {
    sum: Sum,
    ranks: u32,
    max_compute: u128,
}

impl Section for Breakdown {
    /// Assembles the breakdown of a run; `None` if ranks have not recorded it.
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let ranks: Option<Vec<_>> = outcome.program().statistics.iter().map(Statistics::breakdown).collect();
        let ranks = ranks?;
        let mut total = Sum::default();
        let hosts = simulation.placement().hosts().iter().map(|host| u64::from(host.get()));
        let mut columns = RankParts { host: hosts.collect(), ..RankParts::default() };
        for (rank, end) in ranks.iter().zip(&outcome.program().ends) {
            let sum = Sum::of(rank.regions().flat_map(mpi_model::Region::shares));
            total.merge(&sum);
            columns.push(*end, &sum);
        }
        let mut breakdown = Self {
            total: total.parts(),
            calls: Vec::new(),
            regions: regions(simulation.trace(), &ranks),
            ranks: columns,
            rank_calls: Vec::new(),
        };
        for kind in ActionKind::ALL {
            breakdown.add_kind(kind, &ranks);
        }
        Some(breakdown)
    }

    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        tables::breakdown::write(self, text)
    }

    fn csv(&self) -> Vec<CsvTable> {
        let RankParts { host, end_ps, compute_ps, sleep_ps, library_ps, transfer_ps, .. } = &self.ranks;
        let ranks: Column = (0..end_ps.len() as u64).collect();
        let own = [
            ("rank", &ranks),
            ("end_ps", end_ps),
            ("compute_ps", compute_ps),
            ("sleep_ps", sleep_ps),
            ("library_ps", library_ps),
            ("transfer_ps", transfer_ps),
        ];
        let waiting = self.ranks.waiting().map(|(state, column)| (format!("{}_ps", state.name()), column));
        let waiting = waiting.iter().map(|(name, column)| (name.as_str(), *column));
        vec![CsvTable::of_columns(
            "ranks",
            &own.into_iter().chain(waiting).chain([("host", host)]).collect::<Vec<_>>(),
        )]
    }

    #[cfg(feature = "pictures")]
    fn figures(&self, _: &super::SavedReport) -> Vec<figures::Figure> {
        use super::page::{ranks, sites};

        ranks::figures(self).into_iter().chain(sites::figure(self)).collect()
    }
}

impl Breakdown {
    /// Returns the kinds of actions that take time, in descending order; those with equal times keep their order.
    pub fn calls_by_time(&self) -> Vec<&CallParts> {
        let mut calls: Vec<_> = self.calls.iter().filter(|call| call.parts.time_s > 0.0).collect();
        calls.sort_by(|one, other| other.parts.time_s.total_cmp(&one.parts.time_s));
        calls
    }

    /// Returns the kinds of actions that take time here or in another run, with both times, the largest changes first.
    pub fn call_changes(&self, other: &Self) -> Vec<(String, [Parts; 2])> {
        let mut calls: BTreeMap<&str, [Parts; 2]> = BTreeMap::new();
        for (place, breakdown) in [self, other].into_iter().enumerate() {
            for call in &breakdown.calls {
                calls.entry(call.action.as_ref()).or_default()[place] = call.parts;
            }
        }
        let is_used = |(_, [a, b]): &(&str, [Parts; 2])| a.time_s > 0.0 || b.time_s > 0.0;
        let mut calls: Vec<_> = calls.into_iter().filter(is_used).collect();
        let change = |[a, b]: [Parts; 2]| (b.time_s - a.time_s).abs();
        calls.sort_by(|one, other| change(other.1).total_cmp(&change(one.1)));
        calls.into_iter().map(|(name, parts)| (name.to_owned(), parts)).collect()
    }

    fn add_kind(&mut self, kind: ActionKind, ranks: &[&mpi_model::Breakdown]) {
        let shares: Vec<Share> = ranks.iter().map(|rank| rank.total(kind)).collect();
        let count = shares.iter().map(|share| share.count).sum();
        let parts = Sum::of(shares.iter().map(|share| (kind, share))).parts();
        if count == 0 && parts.time_s == 0.0 {
            return;
        }
        let column = |of: fn(&Share) -> SimDuration| {
            shares.iter().map(|share| of(share).as_picos()).collect::<Column>()
        };
        let action = Cow::Borrowed(kind.name());
        self.calls.push(CallParts { action: action.clone(), count, parts });
        let (time_ps, waiting_ps) = (column(|share| share.time), column(Share::waited));
        self.rank_calls.push(RankCall { action, time_ps, waiting_ps });
    }
}

fn regions(trace: &Trace, ranks: &[&mpi_model::Breakdown]) -> Vec<RegionParts> {
    let mut sums: BTreeMap<Option<String>, RegionSum> = BTreeMap::new();
    for (rank, breakdown) in (0..).map(Rank::new).zip(ranks) {
        for region in breakdown.regions() {
            let own = Sum::of(region.shares());
            if own.all() == 0 && region.shares().all(|(_, share)| share.count == 0) {
                continue;
            }
            let region = sums.entry(region.site().map(|site| site_name(trace, rank, site))).or_default();
            region.sum.merge(&own);
            region.ranks += 1;
            region.max_compute = region.max_compute.max(own.compute);
        }
    }
    let mut regions: Vec<_> = sums.into_iter().collect();
    // The sort is stable: regions with equal times keep the order of their names.
    regions.sort_by_key(|(_, region)| std::cmp::Reverse(region.sum.all()));
    let parts = |(site, RegionSum { sum, ranks, max_compute }): (Option<String>, RegionSum)| RegionParts {
        site,
        ranks,
        imbalance: imbalance(max_compute, sum.compute, ranks),
        parts: sum.parts(),
    };
    regions.into_iter().map(parts).collect()
}

/// Returns the name of a call site; the tables of ranks of other processes are available, too.
pub(crate) fn site_name(trace: &Trace, rank: Rank, site: LocationId) -> String {
    let found = trace.with_rank(rank, |trace| region_name(trace.location(site)).to_owned());
    found.unwrap_or_else(|error| format!("call site {} of rank {rank}: {error}", site.get()))
}

fn imbalance(most: u128, sum: u128, ranks: u32) -> f64 {
    if sum == 0 { 0.0 } else { (most * u128::from(ranks)) as f64 / sum as f64 - 1.0 }
}

impl Imbalance {
    /// Compares the computation times of ranks; `None` if there are no ranks.
    pub(super) fn of(ranks: &[Statistics]) -> Option<Self> {
        let times = || ranks.iter().map(|rank| u128::from(rank.time(ActionKind::Compute).as_picos()));
        let (rank, most) = times().enumerate().max_by_key(|&(rank, time)| (time, std::cmp::Reverse(rank)))?;
        let sum: u128 = times().sum();
        Some(Self {
            compute: imbalance(most, sum, ranks.len() as u32),
            rank: rank as u32,
            max_s: seconds(most),
            mean_s: seconds(sum) / ranks.len() as f64,
        })
    }
}

fn seconds(picos: u128) -> f64 {
    picos as f64 / 1e12
}

impl Sum {
    pub(super) fn of<'a>(shares: impl Iterator<Item = (ActionKind, &'a Share)>) -> Self {
        let mut sum = Self::default();
        for (kind, share) in shares {
            let own = match kind {
                ActionKind::Compute => &mut sum.compute,
                ActionKind::Sleep => &mut sum.sleep,
                _ => &mut sum.library,
            };
            *own += u128::from(share.own().as_picos());
            sum.transfer += u128::from(share.transfer.as_picos());
            let waiting = share.waiting.map(|time| u128::from(time.as_picos()));
            sum.waiting.iter_mut().zip(waiting).for_each(|(sum, more)| *sum += more);
        }
        sum
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.compute += other.compute;
        self.sleep += other.sleep;
        self.library += other.library;
        self.transfer += other.transfer;
        self.waiting.iter_mut().zip(other.waiting).for_each(|(sum, more)| *sum += more);
    }

    fn waited(&self) -> u128 {
        self.waiting.iter().sum()
    }

    fn all(&self) -> u128 {
        self.compute + self.sleep + self.library + self.transfer + self.waited()
    }

    pub(super) fn parts(&self) -> Parts {
        let state = |state: WaitState| seconds(self.waiting[state as usize]);
        Parts {
            time_s: seconds(self.all()),
            compute_s: seconds(self.compute),
            sleep_s: seconds(self.sleep),
            library_s: seconds(self.library),
            transfer_s: seconds(self.transfer),
            waiting_s: seconds(self.waited()),
            late_sender_s: state(WaitState::LateSender),
            late_receiver_s: state(WaitState::LateReceiver),
            wait_at_barrier_s: state(WaitState::WaitAtBarrier),
            wait_at_nxn_s: state(WaitState::WaitAtNxN),
            late_broadcast_s: state(WaitState::LateBroadcast),
            early_reduce_s: state(WaitState::EarlyReduce),
            early_scan_s: state(WaitState::EarlyScan),
        }
    }
}

impl RankParts {
    fn push(&mut self, end: SimTime, sum: &Sum) {
        self.end_ps.push(end.as_picos());
        let own = [
            (&mut self.compute_ps, sum.compute),
            (&mut self.sleep_ps, sum.sleep),
            (&mut self.library_ps, sum.library),
            (&mut self.transfer_ps, sum.transfer),
        ];
        let states = [
            (&mut self.late_sender_ps, WaitState::LateSender),
            (&mut self.late_receiver_ps, WaitState::LateReceiver),
            (&mut self.wait_at_barrier_ps, WaitState::WaitAtBarrier),
            (&mut self.wait_at_nxn_ps, WaitState::WaitAtNxN),
            (&mut self.late_broadcast_ps, WaitState::LateBroadcast),
            (&mut self.early_reduce_ps, WaitState::EarlyReduce),
            (&mut self.early_scan_ps, WaitState::EarlyScan),
        ];
        let states = states.map(|(column, state)| (column, sum.waiting[state as usize]));
        // No overflow: a part is not longer than the end time, which fits.
        own.into_iter().chain(states).for_each(|(column, picos)| column.push(picos as u64));
    }

    /// Returns the waiting time of each rank \[ps\], by wait state.
    pub fn waiting(&self) -> [(WaitState, &Column); WaitState::COUNT] {
        WaitState::ALL.map(|state| {
            let column = match state {
                WaitState::LateSender => &self.late_sender_ps,
                WaitState::LateReceiver => &self.late_receiver_ps,
                WaitState::WaitAtBarrier => &self.wait_at_barrier_ps,
                WaitState::WaitAtNxN => &self.wait_at_nxn_ps,
                WaitState::LateBroadcast => &self.late_broadcast_ps,
                WaitState::EarlyReduce => &self.early_reduce_ps,
                WaitState::EarlyScan => &self.early_scan_ps,
            };
            (state, column)
        })
    }
}

impl Parts {
    /// Returns the parts with their names; they add up to `time_s`.
    pub fn named(&self) -> [(&'static str, f64); 4 + WaitState::COUNT] {
        [
            ("compute", self.compute_s),
            ("sleep", self.sleep_s),
            ("library", self.library_s),
            ("transfer", self.transfer_s),
            (WaitState::LateSender.name(), self.late_sender_s),
            (WaitState::LateReceiver.name(), self.late_receiver_s),
            (WaitState::WaitAtBarrier.name(), self.wait_at_barrier_s),
            (WaitState::WaitAtNxN.name(), self.wait_at_nxn_s),
            (WaitState::LateBroadcast.name(), self.late_broadcast_s),
            (WaitState::EarlyReduce.name(), self.early_reduce_s),
            (WaitState::EarlyScan.name(), self.early_scan_s),
        ]
    }
}
