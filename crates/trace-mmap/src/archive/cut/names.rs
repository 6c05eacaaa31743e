//! What the records of a rank refer to, among the ranks that stay.

use std::ops::Range;
use std::sync::Arc;

use pdes_core::Rank;

use crate::action::SendRecv;
use crate::channel::{InIdx, Incoming, OutIdx, Outgoing, Slot};
use crate::collective::Collective;
use crate::draft::assign_ports;
use crate::record::{IRECV, IRECV_ANY, ISEND, NULL_REQUEST, RECV, Record, SEND, TEST, WAIT, WAIT_ALL};
use crate::side::Side;
use crate::trace::RankTrace;

/// The new numbers of channels; those to and from ranks that go have none.
#[derive(Clone, Debug)]
pub(super) struct Names {
    outgoing: Vec<Option<u32>>,
    incoming: Vec<Option<u32>>,
}

/// Which pending requests went, by their slots.
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
    /// Numbers what stays of the tables of a rank, and returns those tables.
    pub(super) fn new(trace: &RankTrace, ranks: &Range<u32>) -> (Self, RankTrace) {
        let outgoing = numbers(trace.outgoing.iter().map(|channel| channel.peer), ranks);
        let incoming = numbers(trace.incoming.iter().map(|channel| channel.peer), ranks);
        let names = Self { outgoing, incoming };
        let peer = |peer: Rank| Rank::new(peer.get() - ranks.start);
        let kept = trace.outgoing.iter().filter(|channel| ranks.contains(&channel.peer.get()));
        let outgoing =
            kept.map(|channel| Outgoing { peer: peer(channel.peer), tag: channel.tag, port: None });
        let kept = trace.incoming.iter().filter(|channel| ranks.contains(&channel.peer.get()));
        let receiving: Vec<_> = kept.map(|Incoming { peer: from, tag, .. }| (peer(*from), *tag)).collect();
        let (incoming, ports) = assign_ports(&receiving);
        let side = Arc::new(names.side(&trace.side, ranks));
        let tables =
            RankTrace { outgoing: outgoing.collect(), incoming, ports, side, ..RankTrace::default() };
        (names, tables)
    }

    fn side(&self, side: &Side, ranks: &Range<u32>) -> Side {
        let send_recv = |both: &SendRecv| SendRecv {
            to: both.to.and_then(|to| self.outgoing[to.index()]).map(OutIdx::new),
            from: both.from.and_then(|from| self.incoming[from.index()]).map(InIdx::new),
            ..*both
        };
        Side {
            collectives: side.collectives.iter().map(|kept| keep_collective(kept, ranks)).collect(),
            send_recvs: side.send_recvs.iter().map(send_recv).collect(),
            locations: side.locations.clone(),
        }
    }

    /// Returns what is left of a record: nothing of messages of ranks that go, and of the requests for them.
    pub(super) fn keep(&self, record: Record, gone: &mut Gone) -> Option<Record> {
        let index = record.index() as usize;
        let channel = match record.kind() {
            SEND | ISEND => self.outgoing.get(index).copied().flatten(),
            RECV | IRECV => self.incoming.get(index).copied().flatten(),
            _ => Some(record.index()),
        };
        match record.kind() {
            ISEND | IRECV => gone.set(record.slot(), channel.is_none()),
            IRECV_ANY | NULL_REQUEST => gone.set(record.slot(), false),
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
}

/// Returns whether a record names a slot.
fn has_slot(record: Record) -> bool {
    matches!(record.kind(), ISEND | IRECV | IRECV_ANY | NULL_REQUEST | WAIT | TEST)
}

/// The new numbers of slots: those in use have no gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Vec<Option<u32>>);

impl Slots {
    /// Numbers the slots that records use.
    pub(super) fn used_by(records: impl Iterator<Item = Record>) -> Self {
        let mut slots: Vec<Option<u32>> = Vec::new();
        for record in records.filter(|record| has_slot(*record)) {
            let slot = record.slot().index();
            if slots.len() <= slot {
                slots.resize(slot + 1, None);
            }
            slots[slot] = Some(0);
        }
        slots.iter_mut().flatten().zip(0..).for_each(|(number, next)| *number = next);
        Self(slots)
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().flatten().count() as u32
    }

    /// Returns the new numbers of those of some pending requests that did not go.
    pub(super) fn pending(&self, slots: &[Slot], gone: &Gone) -> Vec<Slot> {
        slots.iter().filter(|slot| !gone.has(**slot)).filter_map(|slot| self.get(*slot)).collect()
    }

    fn get(&self, slot: Slot) -> Option<Slot> {
        self.0.get(slot.index()).copied().flatten().map(Slot::new)
    }

    /// Returns a record with the new number of its slot.
    pub(super) fn renumber(&self, record: Record) -> Record {
        let slot = if has_slot(record) { self.get(record.slot()) } else { None };
        slot.map_or(record, |slot| record.with_slot(slot))
    }
}

fn numbers(peers: impl Iterator<Item = Rank>, ranks: &Range<u32>) -> Vec<Option<u32>> {
    let mut next = 0..;
    peers.map(|peer| ranks.contains(&peer.get()).then(|| next.next()).flatten()).collect()
}

fn keep_collective(collective: &Collective, ranks: &Range<u32>) -> Collective {
    let mut kept = collective.clone();
    let part = |counts: &mut Box<[u64]>| {
        *counts = counts[ranks.start as usize..ranks.end as usize].into();
    };
    match &mut kept {
        Collective::Bcast { root, .. }
        | Collective::Reduce { root, .. }
        | Collective::Gather { root, .. }
        | Collective::Scatter { root, .. }
        | Collective::Gatherv { root, .. }
        | Collective::Scatterv { root, .. } => {
            let number = if ranks.contains(&root.get()) { root.get() - ranks.start } else { 0 };
            *root = Rank::new(number);
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
