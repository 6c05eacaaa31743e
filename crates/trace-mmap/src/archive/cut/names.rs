//! Renumbering of the channels, slots and calls of a rank after ranks are removed.

use std::ops::Range;
use std::sync::Arc;

use pdes_core::Rank;

use crate::action::SendRecv;
use crate::archive::WriteError;
use crate::archive::cut::calls::KeptCalls;
use crate::call::Call;
use crate::channel::{Arrival, InIdx, OutIdx, Outgoing, Slot};
use crate::collective::Collective;
use crate::draft::assign_ports;
use crate::record::{CALL, IRECV, ISEND, NULL_REQUEST, RECV, Record, SEND, TEST, WAIT, WAIT_ALL};
use crate::side::{Side, SideNeeds};
use crate::trace::RankTrace;

/// New numbers of channels, `None` for those to and from removed ranks, and the kept calls.
#[derive(Clone, Debug)]
pub(super) struct Names {
    outgoing: Vec<Option<u32>>,
    incoming: Vec<Option<u32>>,
    kept: KeptCalls,
}

/// Removed pending requests, by their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gone(Vec<bool>);

impl Gone {
    pub(super) fn new(slots: u32) -> Self {
        Self(vec![false; slots as usize])
    }

    fn set(&mut self, slot: Slot, is_gone: bool) {
        if let Some(gone) = self.0.get_mut(slot.index()) {
            *gone = is_gone;
        }
    }

    fn has(&self, slot: Slot) -> bool {
        self.0.get(slot.index()).copied().unwrap_or_default()
    }
}

impl Names {
    /// Renumbers the kept entries of the tables of a rank; returns these tables without the side tables.
    ///
    /// # Errors
    /// Fails as [`KeptCalls::new`].
    pub(super) fn new(
        rank: Rank,
        trace: &RankTrace,
        ranks: &Range<u32>,
    ) -> Result<(Self, RankTrace), WriteError> {
        let outgoing = numbers(trace.outgoing.iter().map(|channel| channel.peer), ranks);
        let incoming = numbers(trace.incoming.iter().map(|channel| channel.peer), ranks);
        let mut names = Self { outgoing, incoming, kept: KeptCalls::default() };
        names.kept = KeptCalls::new(rank, trace, &names, ranks)?;
        let peer = |peer: Rank| Rank::new(peer.get() - ranks.start);
        let kept = trace.outgoing.iter().filter(|channel| ranks.contains(&channel.peer.get()));
        let outgoing =
            kept.map(|out| Outgoing::new(peer(out.peer), out.tag, out.communicator, Arrival::Nowhere));
        let kept = trace.incoming.iter().filter(|channel| ranks.contains(&channel.peer.get()));
        let receiving: Vec<_> =
            kept.map(|channel| (peer(channel.peer), channel.tag, channel.communicator)).collect();
        let (incoming, ports) = assign_ports(&receiving);
        let tables = RankTrace {
            outgoing: outgoing.collect(),
            incoming,
            ports,
            names_requests: trace.names_requests,
            communicators: names.kept.communicators.clone().into(),
            ..RankTrace::default()
        };
        Ok((names, tables))
    }

    /// Returns whether there are channels to or from removed ranks.
    pub(super) fn has_gone(&self) -> bool {
        self.outgoing.iter().chain(&self.incoming).any(Option::is_none)
    }

    pub(super) fn out(&self, to: OutIdx) -> Option<OutIdx> {
        self.outgoing[to.index()].map(OutIdx::new)
    }

    pub(super) fn incoming(&self, from: InIdx) -> Option<InIdx> {
        self.incoming[from.index()].map(InIdx::new)
    }

    /// Adds the side tables, with the calls that are used, to the tables of the rank.
    pub(super) fn add_side(&self, tables: &mut RankTrace, side: &Side, ranks: &Range<u32>, used: &Used) {
        let send_recv = |both: &SendRecv| SendRecv {
            to: both.to.and_then(|to| self.out(to)),
            from: both.from.and_then(|from| self.incoming(from)),
            ..*both
        };
        let places: Vec<u32> = ranks.clone().collect();
        let side = Side {
            collectives: side.collectives.iter().map(|kept| keep_collective(kept, &places)).collect(),
            group_collectives: self.kept.collectives.clone(),
            send_recvs: side.send_recvs.iter().map(send_recv).collect(),
            locations: side.locations.clone(),
            calls: used.renumbered(&self.kept.calls),
        };
        tables.matches_by_time = SideNeeds::of(&side).matches_by_time;
        tables.slots = used.slots();
        tables.side = Arc::new(side);
    }

    fn call(&self, record: Record) -> Option<&Call> {
        self.kept.calls.get(record.index() as usize)?.as_ref()
    }

    /// Returns the renumbered record; `None` for messages to and from removed ranks and for their requests.
    pub(super) fn keep(&self, record: Record, gone: &mut Gone) -> Option<Record> {
        let index = record.index() as usize;
        let channel = match record.kind() {
            SEND | ISEND => self.outgoing.get(index).copied().flatten(),
            RECV | IRECV => self.incoming.get(index).copied().flatten(),
            _ => Some(record.index()),
        };
        match record.kind() {
            ISEND | IRECV => gone.set(record.slot(), channel.is_none()),
            NULL_REQUEST => gone.set(record.slot(), false),
            CALL => return self.keep_call(record, gone).then_some(record),
            WAIT if gone.has(record.slot()) => {
                gone.set(record.slot(), false);
                return None;
            }
            TEST if gone.has(record.slot()) => return None,
            WAIT_ALL => gone.0.fill(false),
            _ => {}
        }
        Some(record.with_index(channel?))
    }

    /// Returns whether a call is kept.
    fn keep_call(&self, record: Record, gone: &mut Gone) -> bool {
        match self.call(record) {
            Some(call) => {
                posted_slot(call).into_iter().for_each(|slot| gone.set(slot, false));
                true
            }
            None => {
                let went = self.kept.posted_slots.get(record.index() as usize);
                went.copied().flatten().into_iter().for_each(|slot| gone.set(slot, true));
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
pub(super) struct Used {
    slots: Vec<Option<u32>>,
    calls: Vec<Option<u32>>,
}

impl Used {
    /// Numbers the slots and calls that records use.
    pub(super) fn by(records: impl Iterator<Item = Record>, names: &Names) -> Self {
        let mut used = Self::default();
        for record in records {
            if has_slot(record) {
                mark(&mut used.slots, record.slot().index());
            }
            if record.kind() == CALL
                && let Some(mut call) = names.call(record).cloned()
            {
                mark(&mut used.calls, record.index() as usize);
                call.visit_slots(|slot| mark(&mut used.slots, slot.index()));
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
    pub(super) fn pending(&self, slots: &[Slot], gone: &Gone) -> Vec<Slot> {
        slots.iter().filter(|slot| !gone.has(**slot)).filter_map(|slot| self.get(*slot)).collect()
    }

    fn get(&self, slot: Slot) -> Option<Slot> {
        self.slots.get(slot.index()).copied().flatten().map(Slot::new)
    }

    /// Returns a record with the new number of its slot or call.
    pub(super) fn renumber(&self, record: Record) -> Record {
        if record.kind() == CALL {
            let number = self.calls.get(record.index() as usize).copied().flatten();
            return number.map_or(record, |number| record.with_index(number));
        }
        let slot = if has_slot(record) { self.get(record.slot()) } else { None };
        slot.map_or(record, |slot| record.with_slot(slot))
    }

    /// Returns the used calls with renumbered slots.
    fn renumbered(&self, calls: &[Option<Call>]) -> Vec<Call> {
        let used = calls.iter().zip(&self.calls).filter(|(_, number)| number.is_some());
        let mut used: Vec<Call> = used.filter_map(|(call, _)| call.clone()).collect();
        for call in &mut used {
            call.visit_slots(|slot| *slot = self.get(*slot).unwrap_or(*slot));
        }
        used
    }
}

fn mark(numbers: &mut Vec<Option<u32>>, index: usize) {
    if numbers.len() <= index {
        numbers.resize(index + 1, None);
    }
    numbers[index] = Some(0);
}

/// Returns the slot of the request that a call posts, if any.
pub(super) fn posted_slot(call: &Call) -> Option<Slot> {
    match *call {
        Call::Isend { slot, .. }
        | Call::Irecv { slot, .. }
        | Call::SendInit { slot, .. }
        | Call::RecvInit { slot, .. } => Some(slot),
        Call::Collective { slot, .. } | Call::NeighborAlltoall { slot, .. } => slot,
        _ => None,
    }
}

fn numbers(peers: impl Iterator<Item = Rank>, ranks: &Range<u32>) -> Vec<Option<u32>> {
    let mut next = 0..;
    peers.map(|peer| ranks.contains(&peer.get()).then(|| next.next()).flatten()).collect()
}

/// Restricts an operation to the ranks `places` of its communicator; a removed root is replaced by the first rank.
pub(super) fn keep_collective(collective: &Collective, places: &[u32]) -> Collective {
    let mut kept = collective.clone();
    let part = |counts: &mut Box<[u64]>| {
        *counts = places.iter().map(|place| counts[*place as usize]).collect();
    };
    match &mut kept {
        Collective::Bcast { root, .. }
        | Collective::Reduce { root, .. }
        | Collective::Gather { root, .. }
        | Collective::Scatter { root, .. }
        | Collective::Gatherv { root, .. }
        | Collective::Scatterv { root, .. } => {
            let number = places.binary_search(&root.get()).unwrap_or(0);
            *root = Rank::new(number as u32);
        }
        _ => {}
    }
    match &mut kept {
        Collective::Alltoallv { send_counts, recv_counts, .. } => {
            part(send_counts);
            part(recv_counts);
        }
        Collective::Gatherv { recv_counts, .. }
        | Collective::Allgatherv { recv_counts, .. }
        | Collective::ReduceScatter { recv_counts, .. } => part(recv_counts),
        Collective::Scatterv { send_counts, .. } => part(send_counts),
        _ => {}
    }
    kept
}
