//! Restriction of the calls and communicators of a rank to the kept ranks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use crate::action::CollectiveId;
use crate::archive::WriteError;
use crate::archive::cut::names::{Names, keep_collective, posted_slot};
use crate::call::{Call, Source};
use crate::channel::Slot;
use crate::collective::Collective;
use crate::communicator::{CommIdx, Communicator, Group};
use crate::side::Side;
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
        names: &Names,
        ranks: &Range<u32>,
    ) -> Result<Self, WriteError> {
        let communicators = trace.communicators.iter().map(|kept| keep_communicator(kept, ranks)).collect();
        let mut keeper = Keeper { trace, names, ranks, collectives: Vec::new(), by_place: BTreeMap::new() };
        let calls = trace.side.calls.iter().map(|call| keeper.keep(call)).collect();
        let posted_slots = trace.side.calls.iter().map(posted_slot).collect();
        let kept = Self { calls, posted_slots, collectives: keeper.collectives, communicators };
        let naming = trace.side.calls.iter().find(|call| names_requests(call));
        match naming {
            Some(call) if names.has_gone() => Err(WriteError::CutRequests { rank, call: call.name() }),
            _ => Ok(kept),
        }
    }
}

/// Returns whether a call names earlier requests, or creates one that later calls name.
fn names_requests(call: &Call) -> bool {
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
fn kept_places(group: &Group, ranks: &Range<u32>) -> Vec<u32> {
    let stays = |(place, rank): (u32, Rank)| ranks.contains(&rank.get()).then_some(place);
    (0..).zip(group.members()).filter_map(stays).collect()
}

fn keep_communicator(communicator: &Communicator, ranks: &Range<u32>) -> Communicator {
    let members = communicator.group.members().filter(|rank| ranks.contains(&rank.get()));
    let group = Group::new(members.map(|rank| Rank::new(rank.get() - ranks.start)));
    // A group has no rank twice, so neither has a part of it: this cannot fail.
    let group = group.unwrap_or_else(|_| (*communicator.group).clone());
    let before =
        kept_places(&communicator.group, ranks).into_iter().filter(|place| *place < communicator.rank);
    Communicator { id: communicator.id, rank: before.count() as u32, group: Arc::new(group) }
}

struct Keeper<'a> {
    trace: &'a RankTrace,
    names: &'a Names,
    ranks: &'a Range<u32>,
    collectives: Vec<Collective>,
    by_place: BTreeMap<(CollectiveId, CommIdx), CollectiveId>,
}

impl Keeper<'_> {
    fn keep(&mut self, call: &Call) -> Option<Call> {
        let mut kept = call.clone();
        match &mut kept {
            Call::Send { to, .. } | Call::Isend { to, .. } | Call::SendInit { to, .. } => {
                *to = to.map_or(Some(None), |to| self.names.out(to).map(Some))?;
            }
            Call::Recv { from, .. }
            | Call::Irecv { from, .. }
            | Call::RecvInit { from, .. }
            | Call::Probe { from }
            | Call::Iprobe { from, .. }
            | Call::Cancel { from, .. } => *from = self.source(*from)?,
            // If one half is removed the other half is kept, as for the plain action.
            Call::SendRecv { to, from, .. } => {
                *to = to.and_then(|to| self.names.out(to));
                *from = self.source(*from).unwrap_or(Source::Nobody);
            }
            Call::Collective { operation, communicator, .. } if *communicator != CommIdx::WORLD => {
                *operation = self.collective(*operation, *communicator);
            }
            Call::NeighborAlltoall { communicator, to, from, .. } => {
                let places = kept_places(&self.trace.communicators[communicator.index()].group, self.ranks);
                *to = keep_neighbors(to, &places);
                *from = keep_neighbors(from, &places);
            }
            _ => {}
        }
        Some(kept)
    }

    fn source(&self, from: Source) -> Option<Source> {
        Some(match from {
            Source::Nobody => Source::Nobody,
            Source::Rank(from) => Source::Rank(self.names.incoming(from)?),
            Source::Any { tag, communicator, recorded } => {
                let stays = recorded.filter(|rank| self.ranks.contains(&rank.get()));
                let recorded = stays.map(|rank| Rank::new(rank.get() - self.ranks.start));
                Source::Any { tag, communicator, recorded }
            }
        })
    }

    fn collective(&mut self, operation: CollectiveId, communicator: CommIdx) -> CollectiveId {
        let Self { trace, ranks, collectives, .. } = self;
        *self.by_place.entry((operation, communicator)).or_insert_with(|| {
            let places = kept_places(&trace.communicators[communicator.index()].group, ranks);
            collectives.push(keep_collective(trace.collective(operation), &places));
            Side::group_collective(collectives.len() as u32 - 1)
        })
    }
}

fn keep_neighbors(neighbors: &[(u32, Bytes)], places: &[u32]) -> Box<[(u32, Bytes)]> {
    let kept = |(rank, bytes): &(u32, Bytes)| Some((places.binary_search(rank).ok()? as u32, *bytes));
    neighbors.iter().filter_map(kept).collect()
}
