//! Requests of a rank: states of its non-blocking sends, receives and operations.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Rank, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::Slot;

use crate::statistics::ActionKind;

/// Identifier of a request of a rank.
///
/// Requests of the program have the slots that the trace gives them; two more slots serve blocking calls. The requests that
/// collective operations make for their steps ("parts") are numbered apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct RequestId(NonZeroU32);

/// Bit that is set in identifiers of parts of operations.
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

    /// Returns the index of a request of the program, or as `Err` that of a part of an operation.
    #[inline]
    pub(crate) fn index_or_part(self) -> Result<usize, usize> {
        if self.is_part() { Err(self.index()) } else { Ok(self.index()) }
    }

    fn is_part(self) -> bool {
        self.0.get() >= PART
    }

    fn index(self) -> usize {
        (self.0.get() & !PART) as usize - 1
    }
}

impl From<RequestId> for u32 {
    fn from(request: RequestId) -> Self {
        request.0.get()
    }
}

impl TryFrom<u32> for RequestId {
    type Error = &'static str;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        let number = NonZeroU32::new(number).filter(|&number| number.get() != PART);
        number.map(Self).ok_or("no request has this number")
    }
}

/// State of a request.
///
/// | state    | comes from                                  | goes to                      |
/// |----------|---------------------------------------------|------------------------------|
/// | Inactive | the start; a wait; a passed test            | Pending, Complete            |
/// | Pending  | a receive, a rendezvous send, an operation  | Complete                     |
/// | Complete | a match; a detached send; an operation      | Inactive                     |
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Inactive,
    Pending(Awaited),
    Complete(RequestCompletion),
}

impl Request {
    /// Visits the state; returns whether the other side makes a difference. The time of a completion before `past` makes none.
    fn visit(&mut self, past: SimTime, visitor: &mut StateVisitor<'_>) -> bool {
        match self {
            Self::Inactive => {
                visitor.variant(0);
                false
            }
            Self::Pending(awaited) => {
                visitor.variant(1);
                visitor.plain(awaited);
                true
            }
            Self::Complete(RequestCompletion { at, received }) => {
                visitor.variant(2);
                visitor.plain(received);
                visitor.time_from(past, at)
            }
        }
    }
}

/// Event for which a pending request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaited {
    /// A rendezvous send waits for this rank to receive.
    Receiver(Rank),
    /// A receive waits for a message from this rank.
    Sender(Rank),
    /// A receive waits for a message from any rank.
    AnySender,
    /// A non-blocking operation waits for its end.
    Operation(ActionKind),
}

impl Awaited {
    /// Returns the rank for which the request waits, where it is known.
    pub fn peer(self) -> Option<Rank> {
        match self {
            Self::Receiver(rank) | Self::Sender(rank) => Some(rank),
            Self::AnySender | Self::Operation(_) => None,
        }
    }
}

/// Completion of a request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RequestCompletion {
    /// Arrival of the last byte, or post of a detached send.
    pub(crate) at: SimTime,
    /// Size of a received detached message, for which the receiver pays when it completes the request.
    pub(crate) received: Option<Bytes>,
}

/// Index of a collective operation among those of a rank that are in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationIndex(pub(crate) u32);

impl OperationIndex {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The requests of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Requests {
    /// Requests of the program, then those of a blocking send and a blocking receive.
    table: Box<[PackedRequest]>,
    /// Requests of operations, created on first use.
    parts: Option<Box<Parts>>,
}

/// A [`Request`] of the program, packed into two words: there are many of them.
///
/// | `word`               | state                                          |
/// |----------------------|------------------------------------------------|
/// | 0                    | complete at `at`, nothing received             |
/// | 1 to 2^63 - 1        | complete at `at`, received `word - 1` bytes    |
/// | from 2^63            | pending: variant of [`Awaited`] in bits 32 and 33, rank or kind below |
/// | 2^64 - 1             | inactive                                       |
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PackedRequest {
    at: SimTime,
    word: u64,
}

const INACTIVE: PackedRequest = PackedRequest { at: SimTime::ZERO, word: u64::MAX };
const PENDING: u64 = 1 << 63;

/// Requests that operations made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Parts {
    table: Vec<Part>,
    vacant: Vec<RequestId>,
    /// Number of pending parts of each operation.
    pending: Vec<u32>,
}

/// A request that an operation made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Part {
    state: Request,
    operation: OperationIndex,
}

impl PackedRequest {
    #[inline]
    fn is_pending(self) -> bool {
        self.word >= PENDING && self.word != INACTIVE.word
    }
}

impl From<Request> for PackedRequest {
    #[inline]
    fn from(request: Request) -> Self {
        let pending = |what: u64, whom: u32| PENDING | what << 32 | u64::from(whom);
        let (at, word) = match request {
            Request::Complete(RequestCompletion { at, received }) => {
                // No trace has messages above 2^48 bytes.
                debug_assert!(received.is_none_or(|bytes| bytes.get() < PENDING - 1));
                (at, received.map_or(0, |bytes| bytes.get() + 1))
            }
            Request::Inactive => return INACTIVE,
            Request::Pending(Awaited::Receiver(rank)) => (SimTime::ZERO, pending(0, rank.get())),
            Request::Pending(Awaited::Sender(rank)) => (SimTime::ZERO, pending(1, rank.get())),
            Request::Pending(Awaited::AnySender) => (SimTime::ZERO, pending(2, 0)),
            Request::Pending(Awaited::Operation(kind)) => (SimTime::ZERO, pending(3, kind as u32)),
        };
        Self { at, word }
    }
}

impl From<PackedRequest> for Request {
    #[inline]
    fn from(PackedRequest { at, word }: PackedRequest) -> Self {
        if word < PENDING {
            return Self::Complete(RequestCompletion { at, received: word.checked_sub(1).map(Bytes::new) });
        }
        if word == INACTIVE.word {
            return Self::Inactive;
        }
        let whom = word as u32;
        Self::Pending(match word >> 32 & 3 {
            0 => Awaited::Receiver(Rank::new(whom)),
            1 => Awaited::Sender(Rank::new(whom)),
            2 => Awaited::AnySender,
            _ => Awaited::Operation(ActionKind::ALL[whom as usize]),
        })
    }
}

impl Requests {
    pub(crate) fn new(slots: u32) -> Self {
        Self { table: vec![INACTIVE; slots as usize + 2].into(), parts: None }
    }

    /// Makes room for so many requests of the program, while no blocking call is in progress.
    pub(crate) fn grow(&mut self, slots: u32) {
        let len = slots as usize + 2;
        if len > self.table.len() {
            let mut table = std::mem::take(&mut self.table).into_vec();
            let of_calls = table.len() - 2;
            table[of_calls..].fill(INACTIVE);
            table.resize(len, INACTIVE);
            self.table = table.into();
        }
    }

    /// Returns the number of requests of the program.
    pub(crate) fn slots(&self) -> u32 {
        (self.table.len() as u32).saturating_sub(2)
    }

    pub(crate) fn slot(&self, slot: Slot) -> RequestId {
        RequestId::new(slot.index())
    }

    /// Returns the request of blocking sends.
    pub(crate) fn blocking_send(&self) -> RequestId {
        RequestId::new(self.table.len() - 2)
    }

    /// Returns the request of blocking receives.
    pub(crate) fn blocking_receive(&self) -> RequestId {
        RequestId::new(self.table.len() - 1)
    }

    /// Returns the identifier after the last request of the program, those of blocking calls included.
    pub(crate) fn end(&self) -> RequestId {
        RequestId::new(self.table.len())
    }

    /// Returns the requests of the program in `from..to`.
    pub(crate) fn range(from: RequestId, to: RequestId) -> impl Iterator<Item = RequestId> + Clone {
        (from.index()..to.index()).map(RequestId::new)
    }

    /// Returns those requests that are complete after now, with the time of completion.
    pub(crate) fn complete_after(
        &self,
        now: SimTime,
        requests: impl Iterator<Item = RequestId> + Clone,
    ) -> impl Iterator<Item = (SimTime, RequestId)> + Clone {
        requests.filter_map(move |request| match self.get(request) {
            Request::Complete(RequestCompletion { at, .. }) if at > now => Some((at, request)),
            _ => None,
        })
    }

    /// Makes a request of an operation.
    pub(crate) fn add_part(&mut self, operation: OperationIndex) -> RequestId {
        let parts = self.parts.get_or_insert_default();
        if operation.index() >= parts.pending.len() {
            parts.pending.resize(operation.index() + 1, 0);
        }
        let part = Part { state: Request::Inactive, operation };
        if let Some(request) = parts.vacant.pop() {
            parts.table[request.index()] = part;
            return request;
        }
        parts.table.push(part);
        RequestId::part(parts.table.len() - 1)
    }

    /// Frees a request of an operation, which is not pending.
    pub(crate) fn release_part(&mut self, request: RequestId) {
        let parts = self.parts_mut();
        parts.vacant.push(request);
        if parts.vacant.len() == parts.table.len() {
            // Numbers begin anew, so that they are the same in each iteration of the program.
            parts.vacant.clear();
            parts.table.clear();
        }
    }

    /// Returns the requests that operations have made and not freed yet, and the numbers for the next ones.
    pub(crate) fn parts(&self) -> (impl Iterator<Item = (RequestId, Request)>, &[RequestId]) {
        let (table, vacant) =
            self.parts.as_deref().map_or((&[][..], &[][..]), |parts| (&parts.table[..], &parts.vacant[..]));
        let mut is_used = vec![true; table.len()];
        vacant.iter().for_each(|request| is_used[request.index()] = false);
        let used = (0..).zip(table).zip(is_used).filter(|(_, is_used)| *is_used);
        (used.map(|((number, part), _)| (RequestId::part(number), part.state)), vacant)
    }

    /// Visits all requests. Those of operations are compared while they are in use, with the numbers for the next ones. Returns the
    /// requests whose other sides make a difference, for a visitor that observes.
    pub(crate) fn visit(&mut self, past: SimTime, visitor: &mut StateVisitor<'_>) -> Vec<RequestId> {
        let (slots, mut matter) = (self.slots(), Vec::new());
        if visitor.saves_whole(self) {
            if self.slots() != slots {
                visitor.refuse();
            }
            return matter;
        }
        let used: Vec<RequestId> = self.parts().0.map(|(request, _)| request).collect();
        let Self { table, parts } = self;
        for (number, packed) in table.iter_mut().enumerate() {
            let mut request = Request::from(*packed);
            if request.visit(past, visitor) {
                matter.push(RequestId::new(number));
            }
            *packed = request.into();
        }
        let Some(Parts { table, vacant, pending: _ }) = parts.as_deref_mut() else { return matter };
        for request in used {
            visitor.compare(&request);
            if table[request.index()].state.visit(past, visitor) {
                matter.push(request);
            }
        }
        visitor.compare(vacant);
        matter
    }

    /// Returns the operation that made a request, if one did.
    pub(crate) fn operation(&self, request: RequestId) -> Option<OperationIndex> {
        request.is_part().then(|| self.part(request).operation)
    }

    /// Returns the number of pending requests of an operation.
    pub(crate) fn pending_parts(&self, operation: OperationIndex) -> u32 {
        let pending = |parts: &Parts| parts.pending.get(operation.index()).copied();
        self.parts.as_deref().and_then(pending).unwrap_or_default()
    }

    fn part(&self, request: RequestId) -> &Part {
        &self.parts.as_ref().expect("the request belongs to an operation").table[request.index()]
    }

    fn parts_mut(&mut self) -> &mut Parts {
        self.parts.as_mut().expect("the request belongs to an operation")
    }

    #[inline(always)]
    pub(crate) fn get(&self, request: RequestId) -> Request {
        if request.is_part() { self.part(request).state } else { self.table[request.index()].into() }
    }

    #[inline]
    pub(crate) fn set(&mut self, request: RequestId, state: Request) {
        if request.is_part() {
            self.set_part(request.index(), state);
        } else {
            self.table[request.index()] = state.into();
        }
    }

    #[cold]
    fn set_part(&mut self, index: usize, state: Request) {
        let is_pending = |state| u32::from(matches!(state, Request::Pending(_)));
        let Parts { table, pending, .. } = self.parts_mut();
        let part = &mut table[index];
        let pending = &mut pending[part.operation.index()];
        *pending = *pending + is_pending(state) - is_pending(part.state);
        part.state = state;
    }

    /// Returns the first pending request in `from..to`.
    pub(crate) fn first_pending(&self, from: RequestId, to: RequestId) -> Option<RequestId> {
        let found = self.table[from.index()..to.index()].iter().position(|request| request.is_pending())?;
        Some(RequestId::new(from.index() + found))
    }

    /// Takes the completion of a request, if it is complete; the request becomes inactive.
    #[inline]
    pub(crate) fn take_completion(&mut self, request: RequestId) -> Option<RequestCompletion> {
        let Request::Complete(completion) = self.get(request) else { return None };
        self.set(request, Request::Inactive);
        Some(completion)
    }

    /// Takes the completions of all requests in `from..to`, in the order of their indices.
    pub(crate) fn take_completions(
        &mut self,
        from: RequestId,
        to: RequestId,
    ) -> impl Iterator<Item = RequestCompletion> + '_ {
        self.table[from.index()..to.index()].iter_mut().filter_map(|request| {
            match std::mem::replace(request, INACTIVE).into() {
                Request::Complete(completion) => Some(completion),
                Request::Inactive | Request::Pending(_) => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_message_keeps_its_size() {
        let mut requests = Requests::new(1);
        let (slot, at) = (requests.slot(Slot::new(0)), SimTime::MAX);
        for received in [None, Some(Bytes::ZERO), Some(Bytes::new(1 << 48))] {
            requests.set(slot, Request::Complete(RequestCompletion { at, received }));
            let taken = requests.take_completion(slot).unwrap();
            assert_eq!((taken.at, taken.received), (at, received));
            assert!(requests.take_completion(slot).is_none());
        }
    }

    #[test]
    fn what_is_awaited_is_kept() {
        let mut requests = Requests::new(1);
        let (slot, rank) = (requests.slot(Slot::new(0)), Rank::new(u32::MAX));
        let kinds = ActionKind::ALL.into_iter().map(Awaited::Operation);
        for awaited in kinds.chain([Awaited::Receiver(rank), Awaited::Sender(rank), Awaited::AnySender]) {
            requests.set(slot, Request::Pending(awaited));
            assert!(matches!(requests.get(slot), Request::Pending(found) if found == awaited));
            assert_eq!(requests.first_pending(slot, requests.end()), Some(slot));
        }
        requests.set(slot, Request::Inactive);
        assert_eq!(requests.first_pending(slot, requests.end()), None);
    }
}
