//! Completions: messages to ranks that a machine has finished their work.

use pdes_core::{Bytes, LpId, Outbox, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::point_to_point::{OperationIndex, RequestId, put_arrived};
use crate::token::{EagerMessageId, Side, Token};

/// Handle with which a machine reports the end of some work to the ranks that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion(Waiters);

const _: () = assert!(size_of::<Completion>() <= 40);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Waiters {
    /// Work of a rank: of its program, or of one of its operations.
    Work { owner: LpId, operation: Option<OperationIndex> },
    /// Transfer of a detached message of `bytes`: only the receiver waits.
    Detached { receiver: LpId, receive: RequestId, bytes: Bytes },
    /// Rendezvous transfer: the receive, posted at `posted` by a receiver that was late by `cause`, and the matching send wait.
    Rendezvous {
        receiver: LpId,
        receive: RequestId,
        posted: SimTime,
        cause: Cause,
        sender: LpId,
        send: RequestId,
    },
    /// Eager transfer, whether or not its receive is posted.
    Eager { receiver: LpId, id: EagerMessageId },
    /// Transfer of a message that was put at `posted`: only the sender waits.
    Put { receiver: LpId, posted: SimTime, sender: LpId, send: RequestId },
    /// Transfer of data that a rank gets.
    Get { receiver: LpId, receive: RequestId },
}

impl Completion {
    pub(crate) fn of_work(owner: LpId, operation: Option<OperationIndex>) -> Self {
        Self(Waiters::Work { owner, operation })
    }

    pub(crate) fn detached(receiver: LpId, receive: RequestId, bytes: Bytes) -> Self {
        Self(Waiters::Detached { receiver, receive, bytes })
    }

    pub(crate) fn rendezvous(
        (receiver, receive): (LpId, RequestId),
        (posted, cause): (SimTime, Cause),
        (sender, send): (LpId, RequestId),
    ) -> Self {
        Self(Waiters::Rendezvous { receiver, receive, posted, cause, sender, send })
    }

    pub(crate) fn put(receiver: LpId, posted: SimTime, (sender, send): (LpId, RequestId)) -> Self {
        Self(Waiters::Put { receiver, posted, sender, send })
    }

    pub(crate) fn get(receiver: LpId, receive: RequestId) -> Self {
        Self(Waiters::Get { receiver, receive })
    }

    pub(crate) fn eager(receiver: LpId, id: EagerMessageId) -> Self {
        Self(Waiters::Eager { receiver, id })
    }

    /// Reports to the waiting rank that its read goes beyond the end of the file.
    pub fn fail_read<O: Copy>(self, size: u64, outbox: &mut Outbox<Token, O>) {
        outbox.send(self.owner(), Token::ReadBeyondEnd { size });
    }

    /// Returns the rank on whose behalf the work is done; for a message, the receiver.
    pub fn owner(self) -> LpId {
        match self.0 {
            Waiters::Work { owner, .. } => owner,
            Waiters::Detached { receiver, .. }
            | Waiters::Rendezvous { receiver, .. }
            | Waiters::Put { receiver, .. }
            | Waiters::Get { receiver, .. }
            | Waiters::Eager { receiver, .. } => receiver,
        }
    }

    /// Returns the rank that sends the message, if it waits until the message has left.
    pub fn sender(self) -> Option<LpId> {
        match self.0 {
            Waiters::Rendezvous { sender, .. } | Waiters::Put { sender, .. } => Some(sender),
            Waiters::Work { .. } | Waiters::Detached { .. } | Waiters::Get { .. } | Waiters::Eager { .. } => {
                None
            }
        }
    }

    /// Reports to the [owner](Self::owner) that the work was done, or the last byte of the message arrived, at `at`.
    #[inline]
    pub fn received<O: Copy>(self, at: SimTime, outbox: &mut Outbox<Token, O>) {
        let token = match self.0 {
            Waiters::Work { operation, .. } => Token::WorkDone { at, operation },
            Waiters::Detached { receive, bytes, .. } => {
                Token::Arrived { request: receive, at, side: Side::Receiver { detached: Some(bytes) } }
            }
            Waiters::Rendezvous { receive, .. } | Waiters::Get { receive, .. } => {
                Token::Arrived { request: receive, at, side: Side::Receiver { detached: None } }
            }
            Waiters::Put { .. } => return,
            Waiters::Eager { id, .. } => Token::EagerArrived { id, at },
        };
        outbox.send(self.owner(), token);
    }

    /// Reports to the [sender](Self::sender), if it waits, that the last byte of the message left at `at`.
    #[inline]
    pub fn sent<O: Copy>(self, at: SimTime, outbox: &mut Outbox<Token, O>) {
        match self.0 {
            Waiters::Rendezvous { posted, cause, sender, send, .. } => {
                let side = Side::Sender { received: posted, cause };
                outbox.send(sender, Token::Arrived { request: send, at, side });
            }
            Waiters::Put { posted, sender, send, .. } => outbox.send(sender, put_arrived(send, posted, at)),
            Waiters::Work { .. } | Waiters::Detached { .. } | Waiters::Get { .. } | Waiters::Eager { .. } => {
            }
        }
    }
}

/// Processes are visited before what they wait for: the number of an eager message counts on those of its receiver.
impl State for Completion {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        match &mut self.0 {
            Waiters::Eager { receiver, id } => {
                visitor.compare(&(u8::MAX, *receiver));
                id.compare(*receiver, visitor);
            }
            Waiters::Rendezvous { receiver, receive, posted, cause, sender, send } => {
                visitor.compare(&(u8::MAX - 1, receiver, receive, cause, sender, send));
                visitor.time(posted);
            }
            Waiters::Put { receiver, posted, sender, send } => {
                visitor.compare(&(u8::MAX - 2, receiver, sender, send));
                visitor.time(posted);
            }
            waiters @ (Waiters::Work { .. } | Waiters::Detached { .. } | Waiters::Get { .. }) => {
                visitor.compare(waiters);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use pdes_core::Rank;

    use super::*;
    use crate::point_to_point::Requests;
    use crate::round_trip::{assert_refused_or_round_trip, assert_round_trip};
    use crate::statistics::ActionKind;

    #[test]
    fn completions_survive_a_round_trip() {
        let mut requests = Requests::new(3);
        let (of_program, of_operation) = (requests.blocking_receive(), requests.add_part(OperationIndex(2)));
        let [one, other] = [7, u32::MAX].map(LpId::new);
        let completions = [
            Completion::of_work(one, None),
            Completion::of_work(other, Some(OperationIndex(u32::MAX))),
            Completion::detached(one, of_operation, Bytes::new(u64::MAX)),
            Completion::rendezvous(
                (one, of_program),
                (SimTime::MAX, Cause::of_place(Rank::new(7), None, ActionKind::Compute)),
                (other, of_operation),
            ),
            Completion::put(one, SimTime::MAX, (other, of_operation)),
            Completion::get(one, of_program),
            Completion::eager(other, EagerMessageId(NonZeroU32::MAX)),
        ];
        completions.iter().for_each(assert_round_trip);
    }

    proptest::proptest! {
        /// Any bytes are either refused, or read as a completion that survives a round trip.
        #[test]
        fn any_bytes_are_a_completion_or_refused(
            kind in 0_u8..7,
            rest in proptest::collection::vec(proptest::num::u8::ANY, 0..48),
        ) {
            let bytes: Vec<u8> = [kind].into_iter().chain(rest).collect();
            assert_refused_or_round_trip::<Completion>(&bytes);
        }
    }
}
