//! Restriction of the calls and communicators of a rank to the kept ranks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use crate::action::CollectiveId;
use crate::archive::WriteError;
use crate::archive::cut::renumbering::{Renumbering, posted_slot, restrict_collective};
use crate::call::{Call, Source};
use crate::channel::Slot;
use crate::collective::Collective;
use crate::communicator::{CommIdx, Communicator, Group};
use crate::side_tables::SideTables;
use crate::trace::RankTrace;

/// Calls and communicators restricted to the kept ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptCalls {
    /// Calls; `None` for messages to and from removed ranks.
    pub(super) calls: Vec<Option<Call>>,
    /// Slot of the request that each call posts, if any.
    pub(super) posted_slots: Vec<Option<Slot>>,
    pub(super) collectives: Vec<Collective>,
    pub(super) communicators: Vec<Communicator>,
}

impl KeptCalls {
    /// Restricts communicators and calls to the kept ranks.
    ///
    /// # Errors
    /// Fails if calls name requests and there are messages to or from removed ranks: it is then not known call by call which
    /// requests are kept.
    pub(super) fn new(
        rank: Rank,
        trace: &RankTrace,
        names: &Renumbering,
        ranks: &Range<u32>,
    ) -> Result<Self, WriteError> {
        let communicators =
            trace.communicators.iter().map(|kept| restrict_communicator(kept, ranks)).collect();
        let mut keeper = CallFilter {
            trace,
            renumbering: names,
            ranks,
            collectives: Vec::new(),
            by_operation: BTreeMap::new(),
        };
        let calls = trace.side_tables.calls.iter().map(|call| keeper.keep(call)).collect();
        let posted_slots = trace.side_tables.calls.iter().map(posted_slot).collect();
        let kept = Self { calls, posted_slots, collectives: keeper.collectives, communicators };
        let naming = trace.side_tables.calls.iter().find(|call| refers_to_requests(call));
        match naming {
            Some(call) if names.removes_channels() => {
                Err(WriteError::CutRequests { rank, call: call.name() })
            }
            _ => Ok(kept),
        }
    }
}

/// Returns whether a call names earlier requests, or creates one that later calls name.
fn refers_to_requests(call: &Call) -> bool {
    match call {
        Call::Start { .. }
        | Call::Free { .. }
        | Call::Waitall { .. }
        | Call::Waitany { .. }
        | Call::Waitsome { .. }
        | Call::Test { .. }
        | Call::Testall { .. }
        | Call::Testany { .. }
        | Call::Testsome { .. }
        | Call::Cancel { .. }
        | Call::SendInit { .. }
        | Call::RecvInit { .. } => true,
        Call::Send { .. }
        | Call::Isend { .. }
        | Call::Recv { .. }
        | Call::Irecv { .. }
        | Call::SendRecv { .. }
        | Call::Probe { .. }
        | Call::Iprobe { .. }
        | Call::Collective { .. }
        | Call::NeighborAlltoall { .. }
        | Call::NewCommunicator { .. }
        | Call::FreeCommunicator { .. }
        | Call::Unmodelled(_) => false,
    }
}

/// Returns the group ranks of the kept members.
fn kept_group_ranks(group: &Group, ranks: &Range<u32>) -> Vec<u32> {
    let stays = |(group_rank, rank): (u32, Rank)| ranks.contains(&rank.get()).then_some(group_rank);
    (0..).zip(group.members()).filter_map(stays).collect()
}

fn restrict_communicator(communicator: &Communicator, ranks: &Range<u32>) -> Communicator {
    let members = communicator.group.members().filter(|rank| ranks.contains(&rank.get()));
    let group = Group::new(members.map(|rank| Rank::new(rank.get() - ranks.start)));
    // A group has no rank twice, so neither has a part of it: this cannot fail.
    let group = group.unwrap_or_else(|_| (*communicator.group).clone());
    let before = kept_group_ranks(&communicator.group, ranks)
        .into_iter()
        .filter(|group_rank| *group_rank < communicator.rank);
    Communicator { id: communicator.id, rank: before.count() as u32, group: Arc::new(group) }
}

struct CallFilter<'a> {
    trace: &'a RankTrace,
    renumbering: &'a Renumbering,
    ranks: &'a Range<u32>,
    collectives: Vec<Collective>,
    by_operation: BTreeMap<(CollectiveId, CommIdx), CollectiveId>,
}

impl CallFilter<'_> {
    fn keep(&mut self, call: &Call) -> Option<Call> {
        let mut kept = call.clone();
        match &mut kept {
            Call::Send { to, .. } | Call::Isend { to, .. } | Call::SendInit { to, .. } => {
                *to = to.map_or(Some(None), |to| self.renumbering.new_outgoing(to).map(Some))?;
            }
            Call::Recv { from, .. }
            | Call::Irecv { from, .. }
            | Call::RecvInit { from, .. }
            | Call::Probe { from }
            | Call::Iprobe { from, .. }
            | Call::Cancel { from, .. } => *from = self.source(*from)?,
            // If one half is removed the other half is kept, as for the plain action.
            Call::SendRecv { to, from, .. } => {
                *to = to.and_then(|to| self.renumbering.new_outgoing(to));
                *from = self.source(*from).unwrap_or(Source::ProcNull);
            }
            Call::Collective { operation, communicator, .. } if *communicator != CommIdx::WORLD => {
                *operation = self.collective(*operation, *communicator);
            }
            Call::NeighborAlltoall { communicator, to, from, .. } => {
                let group_ranks =
                    kept_group_ranks(&self.trace.communicators[communicator.index()].group, self.ranks);
                *to = restrict_neighbors(to, &group_ranks);
                *from = restrict_neighbors(from, &group_ranks);
            }
            _ => {}
        }
        Some(kept)
    }

    fn source(&self, from: Source) -> Option<Source> {
        Some(match from {
            Source::ProcNull => Source::ProcNull,
            Source::Rank(from) => Source::Rank(self.renumbering.new_incoming(from)?),
            Source::Any { tag, communicator, recorded } => {
                let stays = recorded.filter(|rank| self.ranks.contains(&rank.get()));
                let recorded = stays.map(|rank| Rank::new(rank.get() - self.ranks.start));
                Source::Any { tag, communicator, recorded }
            }
        })
    }

    fn collective(&mut self, operation: CollectiveId, communicator: CommIdx) -> CollectiveId {
        let Self { trace, ranks, collectives, .. } = self;
        *self.by_operation.entry((operation, communicator)).or_insert_with(|| {
            let group_ranks = kept_group_ranks(&trace.communicators[communicator.index()].group, ranks);
            collectives.push(restrict_collective(trace.collective(operation), &group_ranks));
            SideTables::group_collective(collectives.len() as u32 - 1)
        })
    }
}

fn restrict_neighbors(neighbors: &[(u32, Bytes)], group_ranks: &[u32]) -> Box<[(u32, Bytes)]> {
    let kept = |(rank, bytes): &(u32, Bytes)| Some((group_ranks.binary_search(rank).ok()? as u32, *bytes));
    neighbors.iter().filter_map(kept).collect()
}
