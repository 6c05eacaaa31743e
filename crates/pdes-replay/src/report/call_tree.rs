//! Time of each rank by call site and kind of call, for the report.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mpi_model::{ActionKind, Region, Share, Statistics};
use pdes_core::Rank;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::breakdown::{Parts, Sum, site_name};
use super::column::Column;
use super::section::{CsvTable, Section};

/// Largest number of times by group of ranks: with more, groups are larger.
const MAX_TIMES: usize = 1 << 17;

/// Time by call site and kind of call, and by groups of neighbouring ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallTree {
    /// Number of ranks of a group, a power of two: 1 unless there are many ranks.
    pub group_size: u32,
    /// Kinds of calls at their call sites, in ascending order of sites; those before the first call site come first.
    pub nodes: Vec<CallNode>,
}

/// A kind of call at a call site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallNode {
    /// File and line, or path of a region; null for actions before the first call site.
    pub site: Option<String>,
    /// Name of the action in a trace.
    pub action: Cow<'static, str>,
    /// Number of actions.
    pub count: u64,
    /// Their time.
    #[serde(flatten)]
    pub parts: Parts,
    /// Time of each group of ranks \[ps\].
    pub time_ps: Column,
    /// Part of it spent waiting for ranks that were not ready.
    pub waiting_ps: Column,
}

/// Sums of a node.
#[derive(Default)]
struct NodeSum {
    count: u64,
    sum: Sum,
    time: Vec<u64>,
    waiting: Vec<u64>,
}

/// Returns the kinds of calls of a region that occur.
fn shares(region: &Region) -> impl Iterator<Item = (ActionKind, &Share)> {
    region.shares().filter(|(_, share)| **share != Share::default())
}

impl NodeSum {
    fn add(&mut self, group: usize, groups: usize, kind: ActionKind, share: &Share) {
        self.count += share.count;
        self.sum.merge(&Sum::of(std::iter::once((kind, share))));
        self.time.resize(groups, 0);
        self.waiting.resize(groups, 0);
        self.time[group] = self.time[group].saturating_add(share.time.as_picos());
        self.waiting[group] = self.waiting[group].saturating_add(share.waited().as_picos());
    }
}

impl Section for CallTree {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let ranks: Option<Vec<_>> = outcome.program().statistics.iter().map(Statistics::breakdown).collect();
        let ranks = ranks?;
        let trace = simulation.trace();
        let site = |rank, region: &Region| region.site().map(|site| site_name(trace, rank, site));
        let regions = || {
            let ranks = (0..).map(Rank::new).zip(&ranks);
            ranks.flat_map(|(rank, breakdown)| breakdown.regions().map(move |region| (rank, region)))
        };
        let mut nodes: BTreeMap<(Option<String>, usize), NodeSum> = BTreeMap::new();
        for (rank, region) in regions() {
            for (kind, _) in shares(region) {
                nodes.entry((site(rank, region), kind as usize)).or_default();
            }
        }
        let mut group_size = 1;
        while ranks.len().div_ceil(group_size) * nodes.len() > MAX_TIMES && group_size < ranks.len() {
            group_size *= 2;
        }
        for (rank, region) in regions() {
            for (kind, share) in shares(region) {
                let node = nodes.entry((site(rank, region), kind as usize)).or_default();
                node.add(rank.index() / group_size, ranks.len().div_ceil(group_size), kind, share);
            }
        }
        let node = |((site, kind), node): ((Option<String>, usize), NodeSum)| CallNode {
            site,
            action: Cow::Borrowed(ActionKind::ALL[kind].name()),
            count: node.count,
            parts: node.sum.parts(),
            time_ps: node.time.into_iter().collect(),
            waiting_ps: node.waiting.into_iter().collect(),
        };
        Some(Self { group_size: group_size as u32, nodes: nodes.into_iter().map(node).collect() })
    }

    fn csv(&self) -> Vec<CsvTable> {
        let parts = Parts::default();
        let names = parts.named().map(|(name, _)| format!("{name}_s"));
        let header = ["site", "action", "count", "time_s"].map(str::to_owned).into_iter().chain(names);
        let row = |node: &CallNode| {
            let site = node.site.clone().unwrap_or_default();
            let first =
                [site, node.action.to_string(), node.count.to_string(), node.parts.time_s.to_string()];
            first.into_iter().chain(node.parts.named().map(|(_, time)| time.to_string())).collect()
        };
        vec![CsvTable { name: "calls", header: header.collect(), rows: self.nodes.iter().map(row).collect() }]
    }
}
