//! What a program asks for, and what it is told.

use pdes_core::SimTime;
use trace_mmap::{Collective, CommIdx, SendMode, Slot};

use super::communicator::Membership;
use super::data::{Data, Message, Values};

/// A call of a program.
#[derive(Debug)]
pub(super) enum Operation {
    Compute {
        flops: f64,
    },
    Sleep {
        seconds: f64,
    },
    Send(Send),
    Receive(Receive),
    Wait {
        slot: Slot,
    },
    /// Waits for all of these requests.
    WaitAll {
        slots: Vec<Slot>,
    },
    /// Waits for the first of these requests.
    WaitAny {
        slots: Vec<Slot>,
    },
    Test {
        slot: Slot,
    },
    Probe {
        filter: Filter,
        waits: bool,
    },
    /// A collective operation; with a slot, a nonblocking one. With data, members get those of others.
    Collective {
        operation: Collective,
        slot: Option<Slot>,
        data: Option<Data>,
    },
    /// Divides the communicator.
    Split {
        color: Option<u32>,
        key: i64,
    },
}

#[derive(Debug)]
pub(super) struct Send {
    pub(super) to: u32,
    pub(super) tag: u32,
    pub(super) data: Data,
    pub(super) mode: SendMode,
    /// Slot of a nonblocking send.
    pub(super) slot: Option<Slot>,
}

#[derive(Debug)]
pub(super) struct Receive {
    pub(super) filter: Filter,
    /// Size of the buffer \[B\].
    pub(super) bytes: u64,
    /// Slot of a nonblocking receive.
    pub(super) slot: Option<Slot>,
}

/// Messages that a receive or a probe accepts; `None` for any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    pub(super) source: Option<u32>,
    pub(super) tag: Option<u32>,
}

/// What a program is told at the end of a call.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Completed requests, with their messages if they are receives.
    pub(super) completed: Vec<(Slot, Option<Message>)>,
    /// Message that was received or found.
    pub(super) message: Option<Message>,
    /// Data of the members of an operation.
    pub(super) values: Option<Values>,
    /// New communicator.
    pub(super) membership: Option<Membership>,
}

/// The state that a program and the source of its rank share.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    /// Call for which the program waits, and its communicator.
    pub(super) operation: Option<(CommIdx, Operation)>,
    pub(super) answer: Option<Answer>,
    pub(super) clock: SimTime,
    /// Mistake of the program.
    pub(super) mistake: Option<Box<str>>,
    slots: u32,
    vacant: Vec<Slot>,
}

impl Dialogue {
    /// Takes a slot for a request.
    pub(super) fn take_slot(&mut self) -> Slot {
        self.vacant.pop().unwrap_or_else(|| {
            self.slots += 1;
            Slot::new(self.slots - 1)
        })
    }

    /// Gives a slot back, whose request is complete.
    pub(super) fn free_slot(&mut self, slot: Slot) {
        self.vacant.push(slot);
    }

    /// Returns the number of slots that were in use at once.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }
}
