//! Renumbering of the channels, slots and calls of a rank after ranks are removed.

use std::ops::Range;
use std::sync::Arc;

use pdes_core::Rank;

use crate::action::{CollectiveId, SendRecv};
use crate::archive::WriteError;
use crate::archive::cut::calls::KeptCalls;
use crate::archive::cut::roots::RootCounts;
use crate::builder::assign_ports;
use crate::call::{Call, Indexed, RequestUse, Visit, VisitMut};
use crate::channel::{Arrival, InIdx, OutIdx, Outgoing, Slot};
use crate::collective::Collective;
use crate::communicator::CommIdx;
use crate::record::{CALL, IRECV, ISEND, NULL_REQUEST, RECV, Record, SEND, TEST, WAIT, WAIT_ALL};
use crate::side_tables::{SideTables, TableRequirements};
use crate::trace::RankTrace;

/// New numbers of channels, `None` for those to and from removed ranks, and the kept calls.
#[derive(Clone, Debug)]
pub(super) struct Renumbering {
    outgoing: Vec<Option<u32>>,
    incoming: Vec<Option<u32>>,
    roots: RootCounts,
    kept_calls: KeptCalls,
}

/// Removed pending requests, by their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::archive) struct RemovedRequests(Vec<bool>);

impl RemovedRequests {
    pub(super) fn new(slots: u32) -> Self {
        Self(vec![false; slots as usize])
    }

    pub(in crate::archive) fn set(&mut self, slot: Slot, is_gone: bool) {
        if let Some(removed) = self.0.get_mut(slot.index()) {
            *removed = is_gone;
        }
    }

    pub(in crate::archive) fn contains(&self, slot: Slot) -> bool {
        self.0.get(slot.index()).copied().unwrap_or_default()
    }
}

impl RemovedRequests {
    /// Takes note of a record, which is removed or not; returns false for a wait or test of a removed request.
    pub(in crate::archive) fn follow(&mut self, record: Record, is_removed: bool) -> bool {
        match record.kind() {
            ISEND | IRECV => self.set(record.slot(), is_removed),
            NULL_REQUEST => self.set(record.slot(), false),
            WAIT if self.contains(record.slot()) => {
                self.set(record.slot(), false);
                return false;
            }
            TEST if self.contains(record.slot()) => return false,
            WAIT_ALL => self.0.fill(false),
            _ => {}
        }
        true
    }
}

impl Renumbering {
    /// Renumbers the kept entries of the tables of a rank; returns these tables without the side tables.
    ///
    /// # Errors
    /// Fails as [`KeptCalls::new`].
    pub(super) fn new(
        rank: Rank,
        trace: &RankTrace,
        ranks: &Range<u32>,
        roots: RootCounts,
    ) -> Result<(Self, RankTrace), WriteError> {
        let outgoing = number_kept(trace.outgoing.iter().map(|channel| channel.peer), ranks);
        let incoming = number_kept(trace.incoming.iter().map(|channel| channel.peer), ranks);
        let mut names = Self { outgoing, incoming, roots, kept_calls: KeptCalls::default() };
        names.kept_calls = KeptCalls::new(rank, trace, &names, ranks)?;
        let peer = |peer: Rank| Rank::new(peer.get() - ranks.start);
        let kept = trace.outgoing.iter().filter(|channel| ranks.contains(&channel.peer.get()));
        let outgoing =
            kept.map(|out| Outgoing::new(peer(out.peer), out.tag, out.communicator, Arrival::Unmatched));
        let kept = trace.incoming.iter().filter(|channel| ranks.contains(&channel.peer.get()));
        let receiving: Vec<_> =
            kept.map(|channel| (peer(channel.peer), channel.tag, channel.communicator)).collect();
        let (incoming, ports) = assign_ports(&receiving);
        let tables = RankTrace {
            outgoing: outgoing.collect(),
            incoming,
            ports,
            has_named_requests: trace.has_named_requests,
            communicators: names.kept_calls.communicators.clone().into(),
            ..RankTrace::default()
        };
        Ok((names, tables))
    }

    /// Returns whether there are channels to or from removed ranks.
    pub(super) fn removes_channels(&self) -> bool {
        self.outgoing.iter().chain(&self.incoming).any(Option::is_none)
    }

    /// Returns whether there are channels from removed ranks.
    pub(super) fn removes_incoming(&self) -> bool {
        self.incoming.iter().any(Option::is_none)
    }

    /// Returns a collective operation on a communicator among the kept ranks.
    pub(super) fn restrict(
        &self,
        on: CommIdx,
        id: CollectiveId,
        operation: &Collective,
        group_ranks: &[u32],
    ) -> Collective {
        let mut restricted = self.roots.of(on, id).unwrap_or(operation).clone();
        restricted.restrict(group_ranks);
        restricted
    }

    pub(super) fn new_outgoing(&self, to: OutIdx) -> Option<OutIdx> {
        self.outgoing[to.index()].map(OutIdx::new)
    }

    pub(super) fn new_incoming(&self, from: InIdx) -> Option<InIdx> {
        self.incoming[from.index()].map(InIdx::new)
    }

    /// Adds the side tables, with the calls that are used, to the tables of the rank.
    pub(super) fn add_side_tables(
        &self,
        tables: &mut RankTrace,
        side: &SideTables,
        ranks: &Range<u32>,
        used: &UsedIds,
    ) {
        let send_recv = |both: &SendRecv| SendRecv {
            to: both.to.and_then(|to| self.new_outgoing(to)),
            from: both.from.and_then(|from| self.new_incoming(from)),
            ..*both
        };
        let group_ranks: Vec<u32> = ranks.clone().collect();
        let ids = (0..).map(CollectiveId::new);
        let collectives = ids.zip(&side.collectives);
        let restrict = |(id, kept)| self.restrict(CommIdx::WORLD, id, kept, &group_ranks);
        let side = SideTables {
            collectives: collectives.map(restrict).collect(),
            group_collectives: self.kept_calls.collectives.clone(),
            send_recvs: side.send_recvs.iter().map(send_recv).collect(),
            locations: side.locations.clone(),
            calls: used.renumber_calls(&self.kept_calls.calls),
        };
        tables.has_timing_dependent_matching = TableRequirements::of(&side).has_timing_dependent_matching;
        tables.slots = used.slots();
        tables.side_tables = Arc::new(side);
    }

    fn call(&self, record: Record) -> Option<&Call> {
        self.kept_calls.calls.get(record.index() as usize)?.as_ref()
    }

    /// Returns the renumbered record; `None` for messages to and from removed ranks and for their requests.
    pub(super) fn renumber_record(&self, record: Record, removed: &mut RemovedRequests) -> Option<Record> {
        let index = record.index() as usize;
        let channel = match record.kind() {
            SEND | ISEND => self.outgoing.get(index).copied().flatten(),
            RECV | IRECV => self.incoming.get(index).copied().flatten(),
            _ => Some(record.index()),
        };
        if record.kind() == CALL {
            return self.keeps_call(record, removed).then_some(record);
        }
        let is_kept = removed.follow(record, channel.is_none());
        Some(record.with_index(channel.filter(|_| is_kept)?))
    }

    /// Returns whether a call is kept.
    fn keeps_call(&self, record: Record, removed: &mut RemovedRequests) -> bool {
        match self.call(record) {
            Some(call) => {
                call.posted_slot().into_iter().for_each(|slot| removed.set(slot, false));
                true
            }
            None => {
                let went = self.kept_calls.posted_slots.get(record.index() as usize);
                went.copied().flatten().into_iter().for_each(|slot| removed.set(slot, true));
                false
            }
        }
    }
}

/// Returns whether a record has a slot.
fn has_slot(record: Record) -> bool {
    matches!(record.kind(), ISEND | IRECV | NULL_REQUEST | WAIT | TEST)
}

/// New numbers of slots and calls: those in use are numbered consecutively.
#[derive(Clone, Debug, Default)]
pub(super) struct UsedIds {
    slots: Vec<Option<u32>>,
    calls: Vec<Option<u32>>,
}

impl UsedIds {
    /// Numbers the slots and calls that records use.
    pub(super) fn from_records(records: impl Iterator<Item = Record>, names: &Renumbering) -> Self {
        let mut used = Self::default();
        for record in records {
            if has_slot(record) {
                mark_used(&mut used.slots, record.slot().index());
            }
            if record.kind() == CALL
                && let Some(call) = names.call(record)
            {
                mark_used(&mut used.calls, record.index() as usize);
                call.visit(&mut used);
            }
        }
        for numbers in [&mut used.slots, &mut used.calls] {
            numbers.iter_mut().flatten().zip(0..).for_each(|(number, next)| *number = next);
        }
        used
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots.iter().flatten().count() as u32
    }

    /// Returns the new slots of the pending requests that were not removed.
    pub(super) fn renumber_pending(&self, slots: &[Slot], removed: &RemovedRequests) -> Vec<Slot> {
        slots
            .iter()
            .filter(|slot| !removed.contains(**slot))
            .filter_map(|slot| self.new_slot(*slot))
            .collect()
    }

    fn new_slot(&self, slot: Slot) -> Option<Slot> {
        self.slots.get(slot.index()).copied().flatten().map(Slot::new)
    }

    /// Returns a record with the new number of its slot or call.
    pub(super) fn renumber(&self, record: Record) -> Record {
        if record.kind() == CALL {
            let number = self.calls.get(record.index() as usize).copied().flatten();
            return number.map_or(record, |number| record.with_index(number));
        }
        let slot = if has_slot(record) { self.new_slot(record.slot()) } else { None };
        slot.map_or(record, |slot| record.with_slot(slot))
    }

    /// Returns the used calls with renumbered slots.
    fn renumber_calls(&self, calls: &[Option<Call>]) -> Vec<Call> {
        let used = calls.iter().zip(&self.calls).filter(|(_, number)| number.is_some());
        let mut used: Vec<Call> = used.filter_map(|(call, _)| call.clone()).collect();
        used.iter_mut().for_each(|call| call.visit_mut(&mut NewSlots(self)));
        used
    }
}

impl Visit<'_, Indexed> for UsedIds {
    fn requests(&mut self, _: RequestUse, slots: &[Slot]) {
        slots.iter().for_each(|slot| mark_used(&mut self.slots, slot.index()));
    }
}

/// Renumbers the slots of a call.
struct NewSlots<'a>(&'a UsedIds);

impl VisitMut for NewSlots<'_> {
    fn requests(&mut self, slots: &mut [Slot]) {
        slots.iter_mut().for_each(|slot| *slot = self.0.new_slot(*slot).unwrap_or(*slot));
    }
}

fn mark_used(numbers: &mut Vec<Option<u32>>, index: usize) {
    if numbers.len() <= index {
        numbers.resize(index + 1, None);
    }
    numbers[index] = Some(0);
}

fn number_kept(peers: impl Iterator<Item = Rank>, ranks: &Range<u32>) -> Vec<Option<u32>> {
    let mut next = 0..;
    peers.map(|peer| ranks.contains(&peer.get()).then(|| next.next()).flatten()).collect()
}
