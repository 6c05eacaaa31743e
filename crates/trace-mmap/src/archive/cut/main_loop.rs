//! Main loops of the ranks, and the check that they are the same loop of the program.

use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::Rank;

use crate::archive::WriteError;
use crate::archive::cut::damaged;
use crate::archive::tally::Tally;
use crate::call::Call;
use crate::communicator::CommIdx;
use crate::record::{COLLECTIVE, LOOP_BEGIN, LOOP_END};
use crate::side_tables::SideTables;
use crate::trace::{RankTrace, Trace};

/// The outermost loop of a rank with most actions; of equals the first.
#[derive(Clone, Debug)]
pub(in crate::archive) struct MainLoop {
    /// Index of the record of its begin.
    pub(super) begin: u64,
    /// Number of iterations.
    pub(super) count: u64,
    /// Number of values of each column used before the loop.
    pub(super) used_before: Vec<u64>,
    /// Sums over all iterations.
    totals: PartSums,
}

/// Sums over a part of a program.
#[derive(Clone, Debug, Default)]
struct PartSums {
    actions: u64,
    collectives: u64,
    receives_from_any: u64,
    columns: Vec<u64>,
    sends: Vec<u64>,
    receives: Vec<u64>,
}

impl PartSums {
    fn of(tally: &Tally, side: &SideTables) -> Self {
        Self {
            actions: tally.actions,
            collectives: tally.by_kind[usize::from(COLLECTIVE)] + count_world_collectives(tally, side),
            receives_from_any: tally.received_from_any(),
            columns: tally.columns.clone(),
            sends: tally.sends.iter().map(|traffic| traffic.messages).collect(),
            receives: tally.received().collect(),
        }
    }

    /// Returns the sums since `before`.
    fn since(mut self, before: &Self) -> Self {
        self.actions -= before.actions;
        self.collectives -= before.collectives;
        // Iterations may cancel receives posted before the loop.
        self.receives_from_any = self.receives_from_any.saturating_sub(before.receives_from_any);
        for (all, before) in [
            (&mut self.columns, &before.columns),
            (&mut self.sends, &before.sends),
            (&mut self.receives, &before.receives),
        ] {
            all.iter_mut().zip(before).for_each(|(all, before)| *all = all.saturating_sub(*before));
        }
        self
    }
}

/// Counts the collective calls on the world.
fn count_world_collectives(tally: &Tally, side: &SideTables) -> u64 {
    let is_on_world = |call: &Call| match *call {
        Call::Collective { communicator, .. }
        | Call::NeighborAlltoall { communicator, .. }
        | Call::SetView { communicator, .. } => communicator == CommIdx::WORLD,
        Call::NewCommunicator { kind, parent, new } => {
            kind.collective_on(parent, new) == Some(CommIdx::WORLD)
        }
        Call::File { communicator, call, .. } => call.is_collective() && communicator == CommIdx::WORLD,
        _ => false,
    };
    let uses = tally.calls.iter().zip(&side.calls).filter(|(_, call)| is_on_world(call));
    uses.map(|(uses, _)| uses).sum()
}

impl MainLoop {
    /// Finds the main loop of a rank.
    pub(super) fn find(rank: Rank, trace: &RankTrace) -> Result<Option<Self>, WriteError> {
        let (mut tally, mut depth, mut best) = (Tally::new(), 0_u32, None::<Self>);
        let (mut begin, mut before) = (0, PartSums::default());
        let mut count = 0;
        for (index, record) in (0..).zip(trace.storage.records()) {
            let record = record.map_err(|damage| damaged(rank, trace, damage))?;
            if record.kind() == LOOP_BEGIN {
                if depth == 0 {
                    (begin, count, before) =
                        (index, record.amount(), PartSums::of(&tally, &trace.side_tables));
                }
                depth += 1;
            }
            tally.push(record, &trace.side_tables).map_err(|_| WriteError::TooMany { rank })?;
            if record.kind() == LOOP_END {
                depth -= 1;
                let actions = tally.actions - before.actions;
                if depth == 0 && best.as_ref().is_none_or(|best| actions > best.totals.actions) {
                    let all = PartSums::of(&tally, &trace.side_tables).since(&before);
                    best = Some(Self { begin, count, used_before: before.columns.clone(), totals: all });
                }
            }
        }
        Ok(best)
    }

    /// Returns the share of `iterations` iterations in `all`, the sum over all iterations.
    fn share(&self, all: u64, iterations: u64) -> u64 {
        all / self.count * iterations
    }

    /// Returns the range of values of a column that the last `iterations` iterations use.
    pub(super) fn used_by_last(&self, column: usize, iterations: u64) -> Range<u64> {
        let used = self.totals.columns.get(column).copied().unwrap_or_default();
        let end = self.used_before.get(column).copied().unwrap_or_default() + used;
        end - self.share(used, iterations)..end
    }
}

/// Iterations to remove from the main loops.
#[derive(Debug)]
pub(super) struct IterationRemoval {
    pub(super) iterations: u64,
    /// Main loop of each kept rank; `None` if the rank has no actions.
    pub(super) loops: Vec<Option<MainLoop>>,
}

impl IterationRemoval {
    /// Plans to keep `kept` iterations. Folding may begin a loop at any place of its body, and so leave an iteration or two
    /// before and after it. So the number to remove is that of the longest main loop, for all ranks.
    pub(super) fn new(trace: &Trace, ranks: &Range<u32>, kept: u64) -> Result<Self, WriteError> {
        let mut loops = Vec::new();
        for rank in ranks.clone().map(Rank::new) {
            let rank_trace = trace.rank(rank);
            let found = MainLoop::find(rank, rank_trace)?;
            if found.is_none() && !rank_trace.is_empty() {
                return Err(WriteError::CutNoLoop { rank });
            }
            loops.push(found);
        }
        let longest = loops.iter().flatten().map(|found| found.count).max().unwrap_or_default();
        let removal = Self { iterations: longest.saturating_sub(kept), loops };
        removal.check(trace, ranks)?;
        Ok(removal)
    }

    /// Checks that the removed iterations match: the same number of collective operations in each rank, and as many messages
    /// as receives between any two ranks.
    fn check(&self, trace: &Trace, ranks: &Range<u32>) -> Result<(), WriteError> {
        let removed = self.iterations;
        let mut collectives = None;
        let mut pairs = BTreeMap::<(u32, u32), (u64, u64)>::new();
        let mut from_any = BTreeMap::new();
        for (rank, main) in ranks.clone().zip(&self.loops) {
            let Some(main) = main else { continue };
            let (named, iterations) = (Rank::new(rank), main.count);
            if main.count < removed {
                return Err(WriteError::CutShortLoop { rank: named, iterations, removed });
            }
            let found = main.share(main.totals.collectives, removed);
            let expected = *collectives.get_or_insert(found);
            if found != expected {
                return Err(WriteError::CutOtherLoop { rank: named, iterations, removed });
            }
            from_any.insert(rank, main.totals.receives_from_any > 0);
            let rank_trace = trace.rank(named);
            for (channel, all) in rank_trace.outgoing.iter().zip(&main.totals.sends) {
                pairs.entry((channel.peer.get(), rank)).or_default().0 += main.share(*all, removed);
            }
            for (channel, all) in rank_trace.incoming.iter().zip(&main.totals.receives) {
                pairs.entry((rank, channel.peer.get())).or_default().1 += main.share(*all, removed);
            }
        }
        // The numbers prove nothing if the trace has unreceived messages anyway or the receiver receives from any source.
        let is_named = |to: &u32| from_any.get(to) == Some(&false);
        let wrong = pairs.iter().find(|((to, from), (sends, receives))| {
            sends != receives && is_named(to) && ranks.contains(from)
        });
        match wrong {
            Some(((to, _), _)) if trace.unreceived().is_none() => {
                let rank = Rank::new(*to);
                let main = self.loops[(to - ranks.start) as usize].as_ref();
                let iterations = main.map_or(0, |main| main.count);
                Err(WriteError::CutOtherLoop { rank, iterations, removed })
            }
            _ => Ok(()),
        }
    }
}
