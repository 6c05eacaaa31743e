//! Table entries that the side tables of a rank refer to.

use std::collections::BTreeMap;

use crate::call::{Call, Source};
use crate::channel::{OutIdx, Slot};
use crate::collective::Collective;
use crate::communicator::{CommIdx, Communicator};
use crate::side_tables::SideTables;

/// Least sizes of the tables of a rank for its side tables to be valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableRequirements {
    pub(crate) slots: u64,
    pub(crate) outgoing: u64,
    pub(crate) incoming: u64,
    pub(crate) communicators: u64,
    /// Required sizes of the communicators with collective operations.
    communicator_sizes: BTreeMap<CommIdx, SizeRequirement>,
    /// Whether some receive or probe is from any source, or some receive was cancelled.
    pub(crate) has_timing_dependent_matching: bool,
    /// Whether operations on one communicator require different sizes, or an operation is stored for the world but used on
    /// another communicator, or the reverse.
    is_contradictory: bool,
}

/// Required size of a communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SizeRequirement {
    at_least: u32,
    exactly: Option<u32>,
}

impl TableRequirements {
    pub(crate) fn of(side: &SideTables) -> Self {
        let mut needs = Self::default();
        for both in &side.send_recvs {
            needs.out(both.to);
            needs.source(both.from.map_or(Source::ProcNull, Source::Rank));
        }
        side.calls.iter().for_each(|call| needs.call(call, side));
        needs
    }

    /// Returns whether the communicators of a rank have the required sizes.
    pub(crate) fn are_met_by(&self, communicators: &[Communicator]) -> bool {
        let fits = |(index, size): (&CommIdx, &SizeRequirement)| {
            communicators.get(index.index()).is_some_and(|communicator| {
                let len = communicator.group.len();
                len >= size.at_least && size.exactly.is_none_or(|exactly| exactly == len)
            })
        };
        !self.is_contradictory && self.communicator_sizes.iter().all(fits)
    }

    fn call(&mut self, call: &Call, side: &SideTables) {
        match *call {
            Call::Send { to, .. } => self.out(to),
            Call::Isend { to, slot, .. } | Call::SendInit { to, slot, .. } => {
                self.out(to);
                self.slot(slot);
            }
            Call::Recv { from, .. } | Call::Probe { from } | Call::Iprobe { from, .. } => self.source(from),
            Call::Irecv { from, slot, .. } | Call::RecvInit { from, slot, .. } => {
                self.source(from);
                self.slot(slot);
            }
            Call::Cancel { from, slot, cancelled } => {
                self.source(from);
                self.slot(slot);
                self.has_timing_dependent_matching |= cancelled;
            }
            Call::SendRecv { to, from, .. } => {
                self.out(to);
                self.source(from);
            }
            Call::Start { ref slots }
            | Call::Waitall { ref slots }
            | Call::Waitany { ref slots, .. }
            | Call::Waitsome { ref slots, .. }
            | Call::Testall { ref slots, .. }
            | Call::Testany { ref slots, .. }
            | Call::Testsome { ref slots, .. } => slots.iter().for_each(|slot| self.slot(*slot)),
            Call::Free { slot } | Call::Test { slot, .. } => self.slot(slot),
            Call::Collective { operation, communicator, slot } => {
                slot.into_iter().for_each(|slot| self.slot(slot));
                self.collective(side.collective(operation), communicator);
                self.is_contradictory |=
                    SideTables::is_on_world(operation) != (communicator == CommIdx::WORLD);
            }
            Call::NeighborAlltoall { communicator, ref to, ref from, slot } => {
                slot.into_iter().for_each(|slot| self.slot(slot));
                let highest = to.iter().chain(from).map(|(rank, _)| rank + 1).max().unwrap_or(0);
                self.size(communicator).at_least(highest);
            }
            Call::NewCommunicator { parent, new, .. } => {
                self.communicator(parent);
                new.into_iter().for_each(|new| self.communicator(new));
            }
            Call::FreeCommunicator { communicator } => self.communicator(communicator),
            Call::Unmodelled(_) => {}
        }
    }

    fn collective(&mut self, operation: Option<&Collective>, communicator: CommIdx) {
        let Some(operation) = operation else {
            self.is_contradictory = true;
            return;
        };
        let size = self.size(communicator);
        size.at_least(operation.root().map_or(1, |root| root.get() + 1));
        let mut is_contradictory = false;
        for vector in operation.vectors() {
            let len = vector.len() as u32;
            is_contradictory |= size.exactly.replace(len).is_some_and(|before| before != len);
        }
        self.is_contradictory |= is_contradictory;
    }

    fn size(&mut self, communicator: CommIdx) -> &mut SizeRequirement {
        self.communicator(communicator);
        self.communicator_sizes.entry(communicator).or_default()
    }

    fn source(&mut self, source: Source) {
        match source {
            Source::ProcNull => {}
            Source::Rank(from) => self.incoming = self.incoming.max(from.index() as u64 + 1),
            Source::Any { communicator, .. } => {
                self.communicator(communicator);
                self.has_timing_dependent_matching = true;
            }
        }
    }

    fn out(&mut self, to: Option<OutIdx>) {
        self.outgoing = self.outgoing.max(to.map_or(0, |to| to.index() as u64 + 1));
    }

    fn slot(&mut self, slot: Slot) {
        self.slots = self.slots.max(slot.index() as u64 + 1);
    }

    fn communicator(&mut self, index: CommIdx) {
        self.communicators = self.communicators.max(index.index() as u64 + 1);
    }
}

impl SizeRequirement {
    fn at_least(&mut self, ranks: u32) {
        self.at_least = self.at_least.max(ranks);
    }
}
