//! Restriction of the calls and communicators of a rank to the kept ranks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use crate::action::{Action, CollectiveId};
use crate::archive::WriteError;
use crate::archive::cut::renumbering::Renumbering;
use crate::call::{Call, Source, VisitMut};
use crate::channel::{OutIdx, Slot};
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
    /// requests are kept. Fails if it is not known which message a probe found, which may be one from a removed rank.
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
            communicator: CommIdx::WORLD,
            is_removed: false,
        };
        let calls = trace.side_tables.calls.iter().map(|call| keeper.keep(call)).collect();
        let posted_slots = trace.side_tables.calls.iter().map(Call::posted_slot).collect();
        let kept = Self { calls, posted_slots, collectives: keeper.collectives, communicators };
        let finds_unknown = |call: &Call| {
            let (Call::Probe { from } | Call::Iprobe { from, found: true }) = call else { return false };
            matches!(from, Source::Any { recorded: None, .. })
        };
        if names.removes_incoming() && trace.side_tables.calls.iter().any(finds_unknown) {
            let is_it = |action| matches!(action, Action::Call(id) if finds_unknown(trace.call(id)));
            let found = (0..).zip(trace.cursor()).find(|(_, action)| is_it(*action));
            found.map_or(Ok(()), |(action, _)| Err(WriteError::CutProbe { rank, action }))?;
        }
        let is_window = |call: &&Call| matches!(call, Call::Window { .. });
        if let Some(call) = trace.side_tables.calls.iter().find(is_window) {
            return Err(WriteError::CutWindow { rank, call: call.name() });
        }
        let naming = trace.side_tables.calls.iter().find(|call| call.refers_to_requests());
        match naming {
            Some(call) if names.removes_channels() => {
                Err(WriteError::CutRequests { rank, call: call.name() })
            }
            _ => Ok(kept),
        }
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
    /// The communicator of the call, which its row has before the operation and the neighbours.
    communicator: CommIdx,
    /// True if the message of the call is to or from a removed rank.
    is_removed: bool,
}

impl CallFilter<'_> {
    fn keep(&mut self, call: &Call) -> Option<Call> {
        let mut kept = call.clone();
        self.is_removed = false;
        kept.visit_mut(self);
        if let Call::Probe { from } | Call::Iprobe { from, .. } = call {
            self.is_removed |=
                matches!(from, Source::Any { recorded: Some(rank), .. } if !self.ranks.contains(&rank.get()));
        }
        // If one half is removed the other half is kept, as for the plain action.
        (!self.is_removed || matches!(call, Call::SendRecv { .. })).then_some(kept)
    }

    fn group_ranks(&self) -> Vec<u32> {
        kept_group_ranks(&self.trace.communicators[self.communicator.index()].group, self.ranks)
    }
}

impl VisitMut for CallFilter<'_> {
    fn destination(&mut self, to: &mut Option<OutIdx>) {
        let new = to.and_then(|to| self.renumbering.new_outgoing(to));
        self.is_removed |= to.is_some() && new.is_none();
        *to = new;
    }

    fn source(&mut self, from: &mut Source) {
        match from {
            Source::ProcNull => {}
            Source::Rank(old) => match self.renumbering.new_incoming(*old) {
                Some(new) => *old = new,
                None => {
                    self.is_removed = true;
                    *from = Source::ProcNull;
                }
            },
            Source::Any { recorded, .. } => {
                let stays = recorded.filter(|rank| self.ranks.contains(&rank.get()));
                *recorded = stays.map(|rank| Rank::new(rank.get() - self.ranks.start));
            }
        }
    }

    fn communicator(&mut self, communicator: &mut CommIdx) {
        self.communicator = *communicator;
    }

    fn operation(&mut self, operation: &mut CollectiveId) {
        if self.communicator == CommIdx::WORLD {
            return;
        }
        let key = (*operation, self.communicator);
        let known = self.by_operation.get(&key).copied();
        *operation = known.unwrap_or_else(|| {
            let whole = self.trace.collective(*operation);
            let kept = self.renumbering.restrict(self.communicator, *operation, whole, &self.group_ranks());
            self.collectives.push(kept);
            SideTables::group_collective(self.collectives.len() as u32 - 1)
        });
        self.by_operation.insert(key, *operation);
    }

    fn neighbors(&mut self, list: &mut Box<[(u32, Bytes)]>) {
        *list = restrict_neighbors(list, &self.group_ranks());
    }
}

fn restrict_neighbors(neighbors: &[(u32, Bytes)], group_ranks: &[u32]) -> Box<[(u32, Bytes)]> {
    let kept = |(rank, bytes): &(u32, Bytes)| Some((group_ranks.binary_search(rank).ok()? as u32, *bytes));
    neighbors.iter().filter_map(kept).collect()
}
