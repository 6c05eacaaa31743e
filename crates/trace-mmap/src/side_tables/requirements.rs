//! Table entries that the side tables of a rank refer to.

use std::collections::BTreeMap;

use pdes_core::Bytes;

use crate::action::CollectiveId;
use crate::call::{Call, Indexed, RequestUse, Source, Visit, WindowCall};
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
    /// True if some receive or probe is from any source, or some receive was cancelled.
    pub(crate) has_timing_dependent_matching: bool,
    /// True if operations on one communicator require different sizes, or an operation is stored for the world but used on
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
            needs.outgoing(both.to);
            needs.source(both.from.map_or(Source::ProcNull, Source::Rank));
        }
        for call in &side.calls {
            call.visit(&mut CallRequirements { needs: &mut needs, side, communicator: CommIdx::WORLD });
            needs.has_timing_dependent_matching |= matches!(call, Call::Cancel { cancelled: true, .. });
        }
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

    fn outgoing(&mut self, to: Option<OutIdx>) {
        self.outgoing = self.outgoing.max(to.map_or(0, |to| to.index() as u64 + 1));
    }

    fn slot(&mut self, slot: Slot) {
        self.slots = self.slots.max(slot.index() as u64 + 1);
    }

    fn communicator(&mut self, index: CommIdx) {
        self.communicators = self.communicators.max(index.index() as u64 + 1);
    }
}

/// Adds the requirements of the fields of a call.
struct CallRequirements<'a> {
    needs: &'a mut TableRequirements,
    side: &'a SideTables,
    /// The communicator of the call, which its row has before the operation and the neighbours.
    communicator: CommIdx,
}

impl Visit<'_, Indexed> for CallRequirements<'_> {
    fn destination(&mut self, to: &Option<OutIdx>) {
        self.needs.outgoing(*to);
    }

    fn source(&mut self, from: &Source) {
        self.needs.source(*from);
    }

    fn communicator(&mut self, communicator: &CommIdx) {
        self.communicator = *communicator;
        self.needs.communicator(*communicator);
    }

    fn new_communicator(&mut self, new: &Option<CommIdx>) {
        new.iter().for_each(|new| self.needs.communicator(*new));
    }

    fn operation(&mut self, operation: &CollectiveId) {
        self.needs.collective(self.side.collective(*operation), self.communicator);
        self.needs.is_contradictory |=
            SideTables::is_on_world(*operation) != (self.communicator == CommIdx::WORLD);
    }

    fn neighbors(&mut self, list: &[(u32, Bytes)]) {
        let highest = list.iter().map(|(rank, _)| rank + 1).max().unwrap_or(0);
        self.needs.size(self.communicator).at_least(highest);
    }

    fn window_call(&mut self, call: WindowCall) {
        self.needs.size(self.communicator).at_least(call.target().map_or(0, |target| target + 1));
    }

    fn requests(&mut self, _: RequestUse, slots: &[Slot]) {
        slots.iter().for_each(|slot| self.needs.slot(*slot));
    }
}

impl SizeRequirement {
    fn at_least(&mut self, ranks: u32) {
        self.at_least = self.at_least.max(ranks);
    }
}
