//! Tokens: the timestamped messages between the logical processes of ranks.

use std::num::NonZeroU32;

use pdes_core::{BaseName, Bytes, LpId, Rank, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, PortId};

use crate::cause::Cause;
use crate::locks::LockMessage;
use crate::point_to_point::{OperationIndex, RequestId};

/// A timestamped message from one logical process to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Token {
    /// A message of the program has been sent: its envelope.
    Message {
        /// Queue of the receiver.
        queue: ReceiveQueue,
        /// Envelope.
        message: Message,
    },
    /// A receive of this rank fails on the message that it matches. The rank sends this token to itself, because the failure lies
    /// at the later of the two posts, perhaps after its clock, and what it does before must not be lost.
    MatchError,
    /// The data of a message has arrived.
    Arrived {
        /// Request of the sender or of the receiver that waits for the data.
        request: RequestId,
        /// Arrival of the last byte.
        at: SimTime,
        /// Side of the message to which the request belongs.
        side: Side,
    },
    /// The data of an eager message have arrived, perhaps before the receive is posted.
    EagerArrived {
        /// Number of the message.
        id: EagerMessageId,
        /// Arrival of the last byte.
        at: SimTime,
    },
    /// The machine has done work of the rank.
    WorkDone {
        /// End of the work.
        at: SimTime,
        /// Operation for which it was done; `None` for the program itself.
        operation: Option<OperationIndex>,
    },
    /// A read of the rank goes beyond the end of its file.
    ReadBeyondEnd {
        /// Size of the file \[B\].
        size: u64,
    },
    /// A fragment of the critical path to a message, sent before the message. Only where critical paths are followed and the sender
    /// is in another process of the operating system.
    PathFragment {
        /// The sender.
        from: Rank,
        /// Bytes of the path.
        fragment: Fragment,
    },
    /// A rank calls for a lock of this rank's memory.
    Lock(LockMessage),
    /// The rank holds a lock.
    Locked {
        /// Request that waits for it.
        request: RequestId,
        /// Time at which it got the lock.
        at: SimTime,
        /// Rank that gave the lock back, if another one held it, or the rank itself.
        from: Rank,
        /// Cause of the lateness of that rank; unknown where no analysis needs it.
        cause: Cause,
    },
    /// The program of the rank has been started, perhaps again; or it has ended, and will not be started again.
    Started,
    /// Another rank of the program has ended, or died.
    RankEnded {
        /// Its end.
        at: SimTime,
        /// Number of checkpoints that it has written by then; `u32::MAX` if it has done its work.
        checkpoints: u32,
    },
    /// A rank of another process of the operating system has polled requests or messages, which changes the price of the next poll
    /// of all ranks of the receiver's process.
    FailedPolls {
        /// Price of the next test, as a multiple of the first.
        tests: u64,
        /// Price of the next probe, as a multiple of the first.
        probes: u64,
    },
}

/// Queue of the receiver to which a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiveQueue {
    /// Port of the trace.
    Port(PortId),
    /// Queue of collective operations for messages from the rank with this number.
    Collective(u32),
    /// Mailbox of a rank that receives from any source; the message is from the rank with this number.
    Mailbox(u32),
    /// Queue of times and numbers that members of collective operations exchange, from the rank with this number.
    Time(u32),
}

/// Side of a message, with what it needs to know of the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The sender.
    Sender {
        /// Time at which the receive was posted.
        received: SimTime,
        /// Cause of the receiver's lateness at that time; unknown where no analysis needs it.
        cause: Cause,
    },
    /// The receiver.
    Receiver {
        /// Size of a detached message; `None` after a rendezvous.
        detached: Option<Bytes>,
    },
}

/// Envelope of a message: everything but the data, which the machine moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Time at which the send was posted.
    pub posted: SimTime,
    /// Size of the payload \[B\].
    pub bytes: Bytes,
    /// Tag; in a collective operation, the number of the operation on its communicator and its kind.
    pub tag: u32,
    /// Communicator, by its name in the trace.
    pub communicator: CommId,
    /// Request of the sender that waits for the arrival; `None` for a detached message.
    pub reply: Option<RequestId>,
    /// Number of this post among those of the sender at this instant, from 1.
    pub round: u32,
    /// Cause of the sender's lateness; unknown where no analysis needs it.
    pub cause: Cause,
}

const _: () = assert!(size_of::<Token>() <= 48);

/// Fragment of something larger than a token.
pub type Fragment = [u8; 32];

/// Number of an eager message among those of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EagerMessageId(pub(crate) NonZeroU32);

impl EagerMessageId {
    /// Compares the number with others of the same receiver.
    pub(crate) fn compare(self, receiver: LpId, visitor: &mut StateVisitor<'_>) {
        visitor.number_on(eager_messages_to(receiver), &mut self.0.get());
    }
}

/// Returns the base of the numbers of eager messages to a rank.
pub(crate) fn eager_messages_to(receiver: LpId) -> BaseName {
    (0, receiver.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::{LockCall, LockName};
    use crate::point_to_point::Requests;
    use crate::round_trip::{assert_refused_or_round_trip, assert_round_trip};
    use crate::statistics::ActionKind;

    fn message(queue: ReceiveQueue, reply: Option<RequestId>) -> Token {
        let message = Message {
            posted: SimTime::from_picos(u64::MAX - 1),
            bytes: Bytes::new(1 << 48),
            tag: u32::MAX,
            communicator: CommId::new(7),
            reply,
            round: 3,
            cause: Cause::of_place(Rank::new(4), None, ActionKind::Compute),
        };
        Token::Message { queue, message }
    }

    #[test]
    fn tokens_survive_a_round_trip() {
        let mut requests = Requests::new(3);
        let (of_program, of_operation) = (requests.blocking_receive(), requests.add_part(OperationIndex(2)));
        let at = SimTime::from_picos(12);
        let tokens = [
            message(ReceiveQueue::Port(PortId::new(5)), Some(of_program)),
            message(ReceiveQueue::Collective(6), Some(of_operation)),
            message(ReceiveQueue::Mailbox(7), None),
            message(ReceiveQueue::Time(8), None),
            Token::MatchError,
            Token::Arrived {
                request: of_operation,
                at,
                side: Side::Receiver { detached: Some(Bytes::new(9)) },
            },
            Token::Arrived { request: of_program, at, side: Side::Receiver { detached: None } },
            Token::Arrived {
                request: of_program,
                at,
                side: Side::Sender {
                    received: SimTime::MAX,
                    cause: Cause::of_place(Rank::new(4), None, ActionKind::Compute),
                },
            },
            Token::EagerArrived { id: EagerMessageId(NonZeroU32::MAX), at },
            Token::WorkDone { at, operation: Some(OperationIndex(0)) },
            Token::WorkDone { at, operation: None },
            Token::Lock(LockMessage {
                window: CommId::new(3),
                lock: LockName::Fetches,
                call: LockCall::Take { is_exclusive: true },
                from: Rank::new(7),
                request: Some(of_operation),
                at,
                cause: Cause::default(),
            }),
            Token::Locked { request: of_operation, at, from: Rank::new(4), cause: Cause::default() },
            Token::Started,
            Token::RankEnded { at, checkpoints: 3 },
            Token::FailedPolls { tests: 10, probes: u64::MAX },
            Token::PathFragment { from: Rank::new(9), fragment: [7; 32] },
        ];
        tokens.iter().for_each(assert_round_trip);
    }

    proptest::proptest! {
        /// Any bytes are either refused, or read as a token that survives a round trip.
        #[test]
        fn any_bytes_are_a_token_or_refused(
            kind in 0_u8..12,
            rest in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
        ) {
            let bytes: Vec<u8> = [kind].into_iter().chain(rest).collect();
            assert_refused_or_round_trip::<Token>(&bytes);
        }
    }
}
