//! Records: the stored form of actions, 16 bytes of plain data.

mod limits;

pub(crate) use limits::{FieldMaxima, Limits, MAX_AMOUNT_BITS, MAX_BYTES, TableSizes};

use pdes_core::Bytes;

use crate::action::{Action, CollectiveId, LocationId, SendRecvId};
use crate::call::CallId;
use crate::channel::{InIdx, OutIdx, Slot};

/// An action in 16 bytes.
///
/// | bits of `head` | holds |
/// |---|---|
/// | 0-7 | kind |
/// | 8-31 | slot |
/// | 32-63 | channel, or index into a side table |
///
/// `amount` holds the size of a message [B], or the bits of the amount of a computation or sleep. Four kinds occur only in
/// programs of archives: a computation whose amount is the next value of a column (its number is the index), an optional
/// one, whose value may be absent, the begin of a loop (the amount is the count), and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Record {
    head: u64,
    amount: u64,
}

const _: () = assert!(size_of::<Record>() == 16 && align_of::<Record>() == 8);

/// Largest number of slots of a rank: slots have 24 bits.
pub(crate) const MAX_SLOTS: u32 = 1 << 24;

const INIT: u8 = 0;
pub(crate) const FINALIZE: u8 = 1;
const COMMUNICATOR: u8 = 2;
pub(crate) const LOCATION: u8 = 3;
pub(crate) const COMPUTE: u8 = 4;
pub(crate) const SLEEP: u8 = 5;
pub(crate) const SEND: u8 = 6;
pub(crate) const ISEND: u8 = 7;
pub(crate) const RECV: u8 = 8;
pub(crate) const IRECV: u8 = 9;
const NULL: u8 = 10;
pub(crate) const NULL_REQUEST: u8 = 11;
pub(crate) const SEND_RECV: u8 = 12;
pub(crate) const WAIT: u8 = 13;
pub(crate) const TEST: u8 = 14;
pub(crate) const WAIT_ALL: u8 = 15;
pub(crate) const COLLECTIVE: u8 = 16;
pub(crate) const CALL: u8 = 17;
/// A computation whose amount is in a column.
pub(crate) const COLUMN: u8 = 18;
/// An optional computation: the value in its column may be absent.
pub(crate) const OPTIONAL: u8 = 19;
/// Begin of a loop.
pub(crate) const LOOP_BEGIN: u8 = 20;
/// End of a loop.
pub(crate) const LOOP_END: u8 = 21;

/// Number of kinds by which actions are counted, the first ones. Each other kind counts as one of these or is not an action.
pub(crate) const ACTION_KINDS: usize = COLUMN as usize;
/// Number of kinds of records.
pub(crate) const RECORD_KINDS: usize = LOOP_END as usize + 1;

impl Record {
    /// Encodes an action.
    pub(crate) fn encode(action: Action) -> Self {
        match action {
            Action::Init => Self::pack(INIT, 0, 0, 0),
            Action::Finalize => Self::pack(FINALIZE, 0, 0, 0),
            Action::Communicator => Self::pack(COMMUNICATOR, 0, 0, 0),
            Action::Location(id) => Self::pack(LOCATION, 0, id.get(), 0),
            Action::Compute { flops } => Self::pack(COMPUTE, 0, 0, flops.to_bits()),
            Action::Sleep { seconds } => Self::pack(SLEEP, 0, 0, seconds.to_bits()),
            Action::Send { to, bytes } => Self::pack(SEND, 0, to.get(), bytes.get()),
            Action::Isend { to, bytes, slot } => Self::pack(ISEND, slot.get(), to.get(), bytes.get()),
            Action::Recv { from, bytes } => Self::pack(RECV, 0, from.get(), bytes.get()),
            Action::Irecv { from, bytes, slot } => Self::pack(IRECV, slot.get(), from.get(), bytes.get()),
            Action::ProcNull { slot: None } => Self::pack(NULL, 0, 0, 0),
            Action::ProcNull { slot: Some(slot) } => Self::pack(NULL_REQUEST, slot.get(), 0, 0),
            Action::SendRecv(id) => Self::pack(SEND_RECV, 0, id.get(), 0),
            Action::Wait { slot } => Self::pack(WAIT, slot.get(), 0, 0),
            Action::Test { slot } => Self::pack(TEST, slot.get(), 0, 0),
            Action::WaitAll => Self::pack(WAIT_ALL, 0, 0, 0),
            Action::Collective(id) => Self::pack(COLLECTIVE, 0, id.get(), 0),
            Action::Call(id) => Self::pack(CALL, 0, id.get(), 0),
        }
    }

    /// Creates a computation whose amount is in a column.
    pub(crate) fn column(number: u32) -> Self {
        Self::pack(COLUMN, 0, number, 0)
    }

    /// Creates an optional computation, whose value in the column may be absent.
    pub(crate) fn optional(number: u32) -> Self {
        Self::pack(OPTIONAL, 0, number, 0)
    }

    /// Creates the begin of a loop of `count` iterations.
    pub(crate) fn loop_begin(count: u64) -> Self {
        Self::pack(LOOP_BEGIN, 0, 0, count)
    }

    /// Creates the begin of a loop whose first pass skips the first `skip` records of the body.
    pub(crate) fn unrolled_loop(count: u64, skip: u32) -> Self {
        Self::pack(LOOP_BEGIN, 0, skip, count)
    }

    /// Returns the begin of a loop, nested in others, whose iterations have boundaries: the slot tells it, in memory only.
    pub(crate) fn with_boundaries(self, has_boundaries: bool) -> Self {
        self.with_slot(Slot::new(has_boundaries.into()))
    }

    /// Returns whether the iterations of the nested loop have boundaries.
    pub(crate) fn has_boundaries(self) -> bool {
        self.slot() != Slot::new(0)
    }

    /// Creates the end of a loop.
    pub(crate) fn loop_end() -> Self {
        Self::pack(LOOP_END, 0, 0, 0)
    }

    /// Returns the record with another index.
    pub(crate) fn with_index(self, index: u32) -> Self {
        Self { head: self.head & 0xffff_ffff | u64::from(index) << 32, ..self }
    }

    /// Returns the record with another slot.
    pub(crate) fn with_slot(self, slot: Slot) -> Self {
        Self { head: self.head & !0xffff_ff00 | u64::from(slot.get()) << 8, ..self }
    }

    /// Creates a record from its two words.
    pub(crate) const fn from_words(head: u64, amount: u64) -> Self {
        Self { head, amount }
    }

    /// Returns the two words.
    pub(crate) const fn words(self) -> [u64; 2] {
        [self.head, self.amount]
    }

    /// Returns the kind.
    #[inline]
    pub(crate) fn kind(self) -> u8 {
        self.head as u8
    }

    /// Returns the first word: everything but the amount.
    #[inline]
    pub(crate) fn head(self) -> u64 {
        self.head
    }

    /// Returns the second word: the count of a loop or the size of a message [B].
    #[inline]
    pub(crate) fn amount(self) -> u64 {
        self.amount
    }

    /// Returns the amount of a computation if it is in the record itself [flop].
    pub(crate) fn inline_flops(self) -> Option<f64> {
        (self.kind() == COMPUTE).then(|| f64::from_bits(self.amount))
    }

    fn pack(kind: u8, slot: u32, index: u32, amount: u64) -> Self {
        debug_assert!(slot < MAX_SLOTS);
        Self { head: u64::from(kind) | u64::from(slot) << 8 | u64::from(index) << 32, amount }
    }

    /// Decodes the action.
    ///
    /// # Panics
    /// Panics if [`Record::encode`] never writes the kind.
    #[inline]
    pub(crate) fn decode(self) -> Action {
        let bytes = Bytes::new(self.amount);
        match self.head as u8 {
            INIT => Action::Init,
            FINALIZE => Action::Finalize,
            COMMUNICATOR => Action::Communicator,
            LOCATION => Action::Location(LocationId::new(self.index())),
            COMPUTE => Action::Compute { flops: f64::from_bits(self.amount) },
            SLEEP => Action::Sleep { seconds: f64::from_bits(self.amount) },
            SEND => Action::Send { to: OutIdx::new(self.index()), bytes },
            ISEND => Action::Isend { to: OutIdx::new(self.index()), bytes, slot: self.slot() },
            RECV => Action::Recv { from: InIdx::new(self.index()), bytes },
            IRECV => Action::Irecv { from: InIdx::new(self.index()), bytes, slot: self.slot() },
            NULL => Action::ProcNull { slot: None },
            NULL_REQUEST => Action::ProcNull { slot: Some(self.slot()) },
            SEND_RECV => Action::SendRecv(SendRecvId::new(self.index())),
            WAIT => Action::Wait { slot: self.slot() },
            TEST => Action::Test { slot: self.slot() },
            WAIT_ALL => Action::WaitAll,
            COLLECTIVE => Action::Collective(CollectiveId::new(self.index())),
            CALL => Action::Call(CallId::new(self.index())),
            kind => panic!("a stored action has the unknown kind {kind}"),
        }
    }

    /// Returns the slot of the request.
    #[inline]
    pub(crate) fn slot(self) -> Slot {
        Slot::new(self.head as u32 >> 8)
    }

    /// Returns the index of the channel, column or entry of a side table.
    #[inline]
    pub(crate) fn index(self) -> u32 {
        (self.head >> 32) as u32
    }

    /// Returns the bytes of the record as in memory, in native byte order.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        bytemuck::cast(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_round_trip() {
        let slot = Slot::new(MAX_SLOTS - 1);
        let bytes = Bytes::new(1 << 48);
        let actions = [
            Action::Init,
            Action::Finalize,
            Action::Communicator,
            Action::Location(LocationId::new(u32::MAX)),
            Action::Compute { flops: 8.087e6 },
            Action::Sleep { seconds: 1e-9 },
            Action::Send { to: OutIdx::new(u32::MAX), bytes },
            Action::Isend { to: OutIdx::new(u32::MAX), bytes, slot },
            Action::Recv { from: InIdx::new(7), bytes },
            Action::Irecv { from: InIdx::new(7), bytes, slot },
            Action::ProcNull { slot: None },
            Action::ProcNull { slot: Some(slot) },
            Action::SendRecv(SendRecvId::new(1)),
            Action::Wait { slot },
            Action::Test { slot },
            Action::WaitAll,
            Action::Collective(CollectiveId::new(9)),
            Action::Call(CallId::new(u32::MAX)),
        ];
        for action in actions {
            assert_eq!(Record::encode(action).decode(), action);
        }
    }
}
