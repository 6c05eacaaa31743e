//! Efficiencies of a run, by the hierarchy of the Performance Optimisation and Productivity centre of excellence (POP).

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io;
use std::path::Path;

use mpi_model::{ActionKind, Statistics};
use pdes_core::{Rank, SimDuration, SimTime};
use replay::Outcome;
use serde::{Deserialize, Serialize};
use trace_mmap::{Action, LocationId, Trace};

use crate::report::site_name;

/// Efficiencies of a run: 1 is ideal. `u` is the useful time of a rank (computation and sleep), `T` the run time, and `u'` and `T'` are
/// the same on an ideal network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pop {
    /// `mean(u) / T`: the product of the next two.
    pub parallel_efficiency: f64,
    /// `mean(u) / max(u)`: the product of the next two.
    pub load_balance: f64,
    /// Balance between nodes: useful time of the mean node over that of the busiest one.
    pub load_balance_between_nodes: f64,
    /// Balance in nodes: mean useful time of the busiest node over `max(u)`, for nodes of equally many ranks.
    pub load_balance_in_nodes: f64,
    /// `max(u) / T`: the product of the next two.
    pub communication_efficiency: f64,
    /// `max(u') / T'`: ranks wait for each other, even on an ideal network.
    pub serialization_efficiency: f64,
    /// `communication_efficiency / serialization_efficiency`: the network takes time.
    pub transfer_efficiency: f64,
    /// `T`, the run time \[s\].
    pub time_s: f64,
    /// `T'`, the run time on an ideal network \[s\].
    pub ideal_time_s: f64,
    /// Useful time of all ranks \[s\].
    pub useful_s: f64,
    /// Useful time of the busiest rank \[s\].
    #[serde(default)]
    pub longest_useful_s: f64,
    /// Useful time of the ranks of the busiest node \[s\].
    #[serde(default)]
    pub busiest_node_s: f64,
    /// Computation of all ranks \[flop\].
    pub flops: f64,
    /// Number of ranks.
    pub ranks: usize,
    /// Number of nodes with ranks.
    pub nodes: usize,
}

/// Scaling from a reference run, which has efficiency 1 \[POP\].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The work grows with the number of ranks: by more than 0.9 times as much.
    pub is_weak: bool,
    /// Useful time of the reference run over that of this one; with weak scaling times the ratio of ranks.
    pub computation_scaling: f64,
    /// The same of the amounts of computation.
    pub instruction_scaling: f64,
    /// Rate of computation over that of the reference run: `computation_scaling / instruction_scaling`.
    pub rate_scaling: f64,
    /// `parallel_efficiency * computation_scaling`.
    pub global_efficiency: f64,
}

/// Efficiencies of a region of the program: `T` is the longest time that a rank spends in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionEfficiency {
    /// File and line, or path of a region; null before the first call site.
    pub site: Option<String>,
    /// Time of all ranks \[s\].
    pub time_s: f64,
    /// `T` \[s\].
    pub elapsed_s: f64,
    /// Useful time of all ranks \[s\].
    pub useful_s: f64,
    /// Useful time of the busiest rank \[s\].
    pub longest_useful_s: f64,
    /// Useful time of the ranks of the busiest node \[s\].
    pub busiest_node_s: f64,
    /// Computation of all ranks \[flop\].
    pub flops: f64,
    /// `mean(u) / T`.
    pub parallel_efficiency: f64,
    /// `mean(u) / max(u)`.
    pub load_balance: f64,
    /// As in [`Pop`].
    pub load_balance_between_nodes: f64,
    /// As in [`Pop`].
    pub load_balance_in_nodes: f64,
    /// `max(u) / T`.
    pub communication_efficiency: f64,
    /// `max(u') / T'`: the same on an ideal network.
    pub serialization_efficiency: f64,
    /// `communication_efficiency / serialization_efficiency`.
    pub transfer_efficiency: f64,
}

/// Useful time of each rank, and the run time \[ps\].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Useful {
    pub(super) ranks: Vec<u64>,
    pub(super) time: u64,
}

impl Useful {
    /// Returns the times of a simulated run.
    pub(super) fn of_outcome(outcome: &Outcome) -> Self {
        let picos = |rank: &Statistics| {
            [ActionKind::Compute, ActionKind::Sleep].map(|kind| rank.time(kind).as_picos()).iter().sum()
        };
        let ranks = outcome.program().statistics.iter().map(picos).collect();
        Self { ranks, time: (outcome.simulated_time() - SimTime::ZERO).as_picos() }
    }

    /// Returns the times of the recorded run, where the trace has times. The run ends with its last rank. Only computations are useful:
    /// sleeps are time of which the recorder knew that the program did not compute.
    pub(super) fn measured(trace: &Trace) -> Option<Self> {
        let mut found = Self { ranks: Vec::new(), time: 0 };
        for rank in (0..trace.ranks()).map(Rank::new) {
            let rank = trace.rank(rank);
            let (mut useful, mut all) = (0, 0);
            for (action, time) in rank.measured()? {
                let picos = time.map_or(0, SimDuration::as_picos);
                all += picos;
                if matches!(action, Action::Compute { .. }) {
                    useful += picos;
                }
            }
            found.ranks.push(useful);
            found.time = found.time.max(all);
        }
        Some(found)
    }

    fn max(&self) -> f64 {
        self.ranks.iter().copied().max().unwrap_or(0) as f64
    }
}

/// Distribution of useful time over ranks and nodes \[ps\].
#[derive(Clone, Debug, Default)]
struct Balance {
    ranks: u32,
    sum: u128,
    max: u64,
    nodes: BTreeMap<u32, u128>,
}

impl Balance {
    fn new(times: impl Iterator<Item = (u32, u64)>) -> Self {
        let mut balance = Self::default();
        times.for_each(|(node, useful)| balance.add(node, useful));
        balance
    }

    fn add(&mut self, node: u32, useful: u64) {
        self.ranks += 1;
        self.sum += u128::from(useful);
        self.max = self.max.max(useful);
        *self.nodes.entry(node).or_default() += u128::from(useful);
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / f64::from(self.ranks.max(1))
    }

    fn load_balance(&self) -> f64 {
        ratio(self.mean(), self.max as f64)
    }

    fn busiest(&self) -> u128 {
        self.nodes.values().copied().max().unwrap_or(0)
    }

    /// Returns the time of all nodes if all were the busiest one.
    fn all_busiest(&self) -> f64 {
        self.busiest() as f64 * self.nodes.len() as f64
    }

    fn between_nodes(&self) -> f64 {
        ratio(self.sum as f64, self.all_busiest())
    }

    fn in_nodes(&self) -> f64 {
        ratio(self.all_busiest() / f64::from(self.ranks.max(1)), self.max as f64)
    }
}

/// Returns a quotient; 1 where both are zero, as for a program without computations.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

impl Pop {
    /// Computes the efficiencies of a run from its times, from those on an ideal network, and from the node of each rank.
    pub(super) fn new(run: &Useful, ideal: &Useful, node_of_rank: &[u32], flops: f64) -> Self {
        let balance = Balance::new(node_of_rank.iter().copied().zip(run.ranks.iter().copied()));
        let time = run.time as f64;
        let communication_efficiency = ratio(balance.max as f64, time);
        let serialization_efficiency = ratio(ideal.max(), ideal.time as f64);
        Self {
            parallel_efficiency: ratio(balance.mean(), time),
            load_balance: balance.load_balance(),
            load_balance_between_nodes: balance.between_nodes(),
            load_balance_in_nodes: balance.in_nodes(),
            communication_efficiency,
            serialization_efficiency,
            transfer_efficiency: ratio(communication_efficiency, serialization_efficiency),
            time_s: time / 1e12,
            ideal_time_s: ideal.time as f64 / 1e12,
            useful_s: balance.sum as f64 / 1e12,
            longest_useful_s: balance.max as f64 / 1e12,
            busiest_node_s: balance.busiest() as f64 / 1e12,
            flops,
            ranks: run.ranks.len(),
            nodes: balance.nodes.len(),
        }
    }

    /// Reads the efficiencies of a diagnosis.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a diagnosis.
    pub fn from_path(path: &Path) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Written {
            pop: Pop,
        }
        let written: Written = serde_json::from_slice(&std::fs::read(path)?)?;
        Ok(written.pop)
    }

    /// Compares a run with a reference run.
    pub(super) fn scaling_from(&self, reference: &Self) -> Scaling {
        let growth = ratio(self.ranks as f64, reference.ranks as f64);
        let is_weak = ratio(self.flops, reference.flops) / growth > 0.9 && growth > 1.0;
        let work = if is_weak { growth } else { 1.0 };
        let computation_scaling = ratio(reference.useful_s * work, self.useful_s);
        let instruction_scaling = ratio(reference.flops * work, self.flops);
        Scaling {
            is_weak,
            computation_scaling,
            instruction_scaling,
            rate_scaling: ratio(computation_scaling, instruction_scaling),
            global_efficiency: self.parallel_efficiency * computation_scaling,
        }
    }

    /// Returns the tree of efficiencies: depth, name and value of each.
    pub(super) fn tree(&self) -> Vec<(usize, &'static str, f64)> {
        let mut tree = vec![
            (0, "parallel efficiency", self.parallel_efficiency),
            (1, "load balance", self.load_balance),
        ];
        if self.nodes < self.ranks {
            tree.push((2, "in nodes", self.load_balance_in_nodes));
            tree.push((2, "between nodes", self.load_balance_between_nodes));
        }
        tree.extend([
            (1, "communication efficiency", self.communication_efficiency),
            (2, "serialization efficiency", self.serialization_efficiency),
            (2, "transfer efficiency", self.transfer_efficiency),
        ]);
        tree
    }
}

impl Scaling {
    /// Returns the tree of efficiencies: depth, name and value of each.
    pub(super) fn tree(&self) -> Vec<(usize, &'static str, f64)> {
        vec![
            (0, "global efficiency", self.global_efficiency),
            (1, "computation scaling", self.computation_scaling),
            (2, "instruction scaling", self.instruction_scaling),
            (2, "rate scaling", self.rate_scaling),
        ]
    }

    /// Writes the lines of a table.
    pub(super) fn write(&self, text: &mut String) -> fmt::Result {
        for (depth, name, value) in self.tree() {
            write_line(text, depth, name, value)?;
        }
        writeln!(text, "{:28} {}", "scaling", if self.is_weak { "weak" } else { "strong" })
    }
}

/// Writes a line of the tree of efficiencies.
pub(super) fn write_line(text: &mut String, depth: usize, name: &str, value: f64) -> fmt::Result {
    writeln!(text, "{:28} {:>6.1} %", format!("{:1$}{name}", "", 2 * depth), 100.0 * value)
}

/// Times of the regions of a program.
#[derive(Default)]
pub(super) struct RegionTimes(BTreeMap<Option<String>, RegionTime>);

/// Times of a region.
#[derive(Default)]
pub(super) struct RegionTime {
    balance: Balance,
    /// Sum over all ranks \[ps\].
    all: u128,
    /// Longest time of a rank \[ps\].
    longest: u64,
}

impl RegionTimes {
    /// Returns the times of a simulated run, where they are known by region.
    pub(super) fn of_outcome(trace: &Trace, outcome: &Outcome, node_of_rank: &[u32]) -> Self {
        let mut found = Self::default();
        for ((rank, statistics), node) in
            (0..).map(Rank::new).zip(&outcome.program().statistics).zip(node_of_rank)
        {
            for region in statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.regions()) {
                let (mut useful, mut time) = (0, 0);
                for (kind, share) in region.shares() {
                    time += share.time.as_picos();
                    if matches!(kind, ActionKind::Compute | ActionKind::Sleep) {
                        useful += share.time.as_picos();
                    }
                }
                found.add(region.site().map(|site| site_name(trace, rank, site)), *node, useful, time);
            }
        }
        found
    }

    /// Returns the times of the recorded run, where the trace has times.
    pub(super) fn measured(trace: &Trace, node_of_rank: &[u32]) -> Option<Self> {
        let mut found = Self::default();
        for (rank, node) in (0..).map(Rank::new).zip(node_of_rank) {
            // Useful time, and all of it, by call site.
            let mut times: BTreeMap<Option<LocationId>, (u64, u64)> = BTreeMap::new();
            let mut site = None;
            for (action, time) in trace.rank(rank).measured()? {
                if let Action::Location(id) = action {
                    site = Some(id);
                }
                let picos = time.map_or(0, SimDuration::as_picos);
                let (useful, all) = times.entry(site).or_default();
                *all += picos;
                if matches!(action, Action::Compute { .. }) {
                    *useful += picos;
                }
            }
            for (site, (useful, all)) in times {
                found.add(site.map(|site| site_name(trace, rank, site)), *node, useful, all);
            }
        }
        Some(found)
    }

    /// Adds the times of a rank in a region \[ps\].
    fn add(&mut self, site: Option<String>, node: u32, useful: u64, time: u64) {
        if time > 0 {
            let region = self.0.entry(site).or_default();
            region.balance.add(node, useful);
            region.all += u128::from(time);
            region.longest = region.longest.max(time);
        }
    }
}

/// Returns the efficiencies of the regions of a program, those that take most time first, from the run and from that on an ideal network.
/// `flops` is their computation.
pub(super) fn regions(
    run: RegionTimes,
    ideal: &RegionTimes,
    flops: &BTreeMap<Option<String>, f64>,
) -> Vec<RegionEfficiency> {
    let mut found: Vec<_> = run.0.into_iter().collect();
    // The sort is stable: regions with equal times keep the order of their names.
    found.sort_by_key(|(_, region)| std::cmp::Reverse(region.all));
    let efficiency = |(site, RegionTime { balance, all, longest }): (Option<String>, RegionTime)| {
        let communication_efficiency = ratio(balance.max as f64, longest as f64);
        // A region without computation takes no time on an ideal network, unless ranks wait there.
        let serialization_efficiency =
            ideal.0.get(&site).map_or(1.0, |ideal| ratio(ideal.balance.max as f64, ideal.longest as f64));
        RegionEfficiency {
            flops: flops.get(&site).copied().unwrap_or_default(),
            site,
            time_s: all as f64 / 1e12,
            elapsed_s: longest as f64 / 1e12,
            useful_s: balance.sum as f64 / 1e12,
            longest_useful_s: balance.max as f64 / 1e12,
            busiest_node_s: balance.busiest() as f64 / 1e12,
            parallel_efficiency: ratio(balance.mean(), longest as f64),
            load_balance: balance.load_balance(),
            load_balance_between_nodes: balance.between_nodes(),
            load_balance_in_nodes: balance.in_nodes(),
            communication_efficiency,
            serialization_efficiency,
            transfer_efficiency: ratio(communication_efficiency, serialization_efficiency),
        }
    };
    found.into_iter().map(efficiency).collect()
}
