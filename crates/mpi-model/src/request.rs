//! Requests of a rank: pending sends and receives.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Rank, SimTime, Wire};
use trace_mmap::Slot;

use crate::statistics::ActionKind;

/// Names a request of a rank.
///
/// Requests of the program keep the places that the trace gives them; two more serve blocking calls. The parts of
/// collective operations are numbered apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(NonZeroU32);

/// Set in the names of parts of operations.
const PART: u32 = 1 << 31;

impl RequestId {
    fn new(number: usize) -> Self {
        let number = u32::try_from(number + 1).ok().filter(|&number| number < PART);
        Self(number.and_then(NonZeroU32::new).expect("a rank has fewer than 2^31 requests"))
    }

    fn part(number: usize) -> Self {
        let number = u32::try_from(number + 1).ok().filter(|&number| number < PART);
        let number = number.and_then(|number| NonZeroU32::new(number | PART));
        Self(number.expect("the operations of a rank have fewer than 2^31 requests"))
    }

    /// Returns the number by which other processes of the operating system know the request, never 0.
    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    /// Returns the request with this number; `None` where no request has it.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).filter(|&number| number.get() != PART).map(Self)
    }

    fn is_part(self) -> bool {
        self.0.get() >= PART
    }

    fn index(self) -> usize {
        (self.0.get() & !PART) as usize - 1
    }
}

/// The state of a request.
///
/// | state    | comes from                                  | goes to                      |
/// |----------|---------------------------------------------|------------------------------|
/// | Inactive | the start; a wait; a passed test            | Pending, Complete            |
/// | Pending  | a receive, a rendezvous send, an operation  | Complete                     |
/// | Complete | a match; a detached send; an operation      | Inactive                     |
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Inactive,
    Pending(Awaited),
    Complete(Completion),
}

/// What a pending request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A rendezvous send waits for this rank to receive.
    Receiver(Rank),
    /// A receive waits for a message from this rank.
    Sender(Rank),
    /// A receive waits for a message from any rank.
    AnySender,
    /// An operation that does not block waits for its end.
    Operation(ActionKind),
}

impl Awaited {
    /// Returns the rank that has to do something, where it is known.
    pub fn peer(self) -> Option<Rank> {
        match self {
            Self::Receiver(rank) | Self::Sender(rank) => Some(rank),
            Self::AnySender | Self::Operation(_) => None,
        }
    }
}

/// A byte that says what, and a rank or the kind of an operation.
impl Wire for Awaited {
    const SIZE: usize = u8::SIZE + u32::SIZE;

    fn write(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Receiver(rank) => (0_u8, rank.get()),
            Self::Sender(rank) => (1, rank.get()),
            Self::AnySender => (2, 0),
            Self::Operation(kind) => (3, kind as u32),
        }
        .write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (what, number): (u8, u32) = Wire::read(bytes)?;
        Some(match what {
            0 => Self::Receiver(Rank::new(number)),
            1 => Self::Sender(Rank::new(number)),
            2 => Self::AnySender,
            3 => Self::Operation(ActionKind::from_number(number)?),
            _ => return None,
        })
    }
}

/// When a request is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The arrival of the last byte, or the post of a detached send.
    pub(crate) at: SimTime,
    /// The size of a received detached message, for which the receiver pays when it completes the request.
    pub(crate) received: Option<Bytes>,
}

/// Names a collective operation among those of a rank that are in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationIndex(pub(crate) u32);

impl OperationIndex {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The requests of a rank.
#[derive(Debug)]
pub(crate) struct Requests {
    table: Vec<Request>,
    slots: usize,
    parts: Vec<Part>,
    vacant: Vec<RequestId>,
    /// How many parts of each operation are pending.
    pending_parts: Vec<u32>,
}

/// A request that an operation made.
#[derive(Clone, Copy, Debug)]
struct Part {
    state: Request,
    operation: OperationIndex,
}

impl Requests {
    pub(crate) fn new(slots: u32) -> Self {
        let slots = slots as usize;
        let table = vec![Request::Inactive; slots + 2];
        Self { table, slots, parts: Vec::new(), vacant: Vec::new(), pending_parts: Vec::new() }
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

    /// The place after the last request of the program, those of blocking calls included.
    pub(crate) fn end(&self) -> RequestId {
        RequestId::new(self.slots + 2)
    }

    /// Makes a request of an operation.
    pub(crate) fn add_part(&mut self, operation: OperationIndex) -> RequestId {
        if operation.index() >= self.pending_parts.len() {
            self.pending_parts.resize(operation.index() + 1, 0);
        }
        let part = Part { state: Request::Inactive, operation };
        if let Some(request) = self.vacant.pop() {
            self.parts[request.index()] = part;
            return request;
        }
        self.parts.push(part);
        RequestId::part(self.parts.len() - 1)
    }

    /// Gives up a request of an operation, which is not pending.
    pub(crate) fn release_part(&mut self, request: RequestId) {
        self.vacant.push(request);
    }

    /// Returns the operation that made a request, if one did.
    pub(crate) fn operation(&self, request: RequestId) -> Option<OperationIndex> {
        request.is_part().then(|| self.parts[request.index()].operation)
    }

    /// Returns how many requests of an operation are pending.
    pub(crate) fn pending_parts(&self, operation: OperationIndex) -> u32 {
        self.pending_parts.get(operation.index()).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn get(&self, request: RequestId) -> Request {
        if request.is_part() { self.parts[request.index()].state } else { self.table[request.index()] }
    }

    #[inline]
    pub(crate) fn set(&mut self, request: RequestId, state: Request) {
        if request.is_part() {
            self.set_part(request.index(), state);
        } else {
            self.table[request.index()] = state;
        }
    }

    #[cold]
    fn set_part(&mut self, index: usize, state: Request) {
        let is_pending = |state| u32::from(matches!(state, Request::Pending(_)));
        let Part { state: before, operation } = self.parts[index];
        let pending = &mut self.pending_parts[operation.index()];
        *pending = *pending + is_pending(state) - is_pending(before);
        self.parts[index].state = state;
    }

    /// Returns the first pending request of the range.
    pub(crate) fn first_pending(&self, from: RequestId, to: RequestId) -> Option<RequestId> {
        let pending = |request: &Request| matches!(request, Request::Pending(_));
        let found = self.table[from.index()..to.index()].iter().position(pending)?;
        Some(RequestId::new(from.index() + found))
    }

    /// Takes the completion of a request, if it is complete.
    #[inline]
    pub(crate) fn take(&mut self, request: RequestId) -> Option<Completion> {
        let Request::Complete(completion) = self.get(request) else { return None };
        self.set(request, Request::Inactive);
        Some(completion)
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
