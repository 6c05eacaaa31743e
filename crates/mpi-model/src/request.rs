//! Requests of a rank: pending sends and receives.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Rank, SimTime};
use trace_mmap::Slot;

/// Names a request of a rank.
///
/// Requests of the program keep the slots that the trace gives them; two more serve blocking calls, and those of the
/// collective operation in progress follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(NonZeroU32);

impl RequestId {
    fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("a rank has fewer than 2^32 requests"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the request that follows.
    pub(crate) fn next(self) -> Self {
        Self::new(self.index() + 1)
    }
}

/// The state of a request.
///
/// | state    | comes from                         | goes to                      |
/// |----------|------------------------------------|------------------------------|
/// | Inactive | the start; a wait; a passed test   | Pending, Complete            |
/// | Pending  | a receive, a rendezvous send       | Complete, when matched       |
/// | Complete | a match; a detached send           | Inactive                     |
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Inactive,
    Pending(Awaited),
    Complete(Completion),
}

/// What a pending request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Whether it sends or receives.
    pub direction: Direction,
    /// The other side.
    pub peer: Rank,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A rendezvous send waits for the receive.
    Send,
    /// A receive waits for the send.
    Receive,
}

/// When a request is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The arrival of the last byte, or the post of a detached send.
    pub(crate) at: SimTime,
    /// The size of a received detached message, for which the receiver pays when it completes the request.
    pub(crate) received: Option<Bytes>,
}

/// The requests of a rank.
#[derive(Debug)]
pub(crate) struct Requests {
    table: Vec<Request>,
    slots: usize,
}

impl Requests {
    pub(crate) fn new(slots: u32) -> Self {
        let slots = slots as usize;
        Self { table: vec![Request::Inactive; slots + 2], slots }
    }

    pub(crate) fn slot(&self, slot: Slot) -> RequestId {
        RequestId::new(slot.index())
    }

    /// The request of a blocking send.
    pub(crate) fn send(&self) -> RequestId {
        RequestId::new(self.slots)
    }

    /// The request of a blocking receive.
    pub(crate) fn receive(&self) -> RequestId {
        RequestId::new(self.slots + 1)
    }

    /// The place of the first request of a collective operation.
    pub(crate) fn first_collective(&self) -> RequestId {
        RequestId::new(self.slots + 2)
    }

    /// A request of the collective operation by its number since the last that were forgotten.
    pub(crate) fn of_collective(&self, number: u32) -> RequestId {
        RequestId::new(self.slots + 2 + number as usize)
    }

    /// The place after the last request.
    pub(crate) fn end(&self) -> RequestId {
        RequestId::new(self.table.len())
    }

    /// Makes a request of a collective operation.
    pub(crate) fn add_collective(&mut self) -> RequestId {
        self.table.push(Request::Inactive);
        RequestId::new(self.table.len() - 1)
    }

    /// Forgets the requests of the collective operation.
    pub(crate) fn clear_collective(&mut self) {
        self.table.truncate(self.slots + 2);
    }

    #[inline]
    pub(crate) fn get(&self, request: RequestId) -> Request {
        self.table[request.index()]
    }

    #[inline]
    pub(crate) fn set(&mut self, request: RequestId, state: Request) {
        self.table[request.index()] = state;
    }

    /// Returns the first pending request of the range.
    pub(crate) fn first_pending(&self, from: RequestId, to: RequestId) -> Option<RequestId> {
        let pending = |request: &Request| matches!(request, Request::Pending(_));
        let found = self.table[from.index()..to.index()].iter().position(pending)?;
        Some(RequestId::new(from.index() + found))
    }

    /// Takes the completions of all requests of the range, in the order of their places.
    pub(crate) fn take_completions(
        &mut self,
        from: RequestId,
        to: RequestId,
    ) -> impl Iterator<Item = Completion> + '_ {
        self.table[from.index()..to.index()].iter_mut().filter_map(|request| {
            match std::mem::replace(request, Request::Inactive) {
                Request::Complete(completion) => Some(completion),
                Request::Inactive | Request::Pending(_) => None,
            }
        })
    }
}
