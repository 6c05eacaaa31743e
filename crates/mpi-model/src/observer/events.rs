//! Events of ranks that have several parts.

use pdes_core::{Rank, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::OutIdx;

use super::wait_states::Peer;
use crate::machine::UncontendedTransfer;
use crate::point_to_point::RequestId;
use crate::statistics::ActionKind;
use crate::token::{Message, ReceiveQueue};

/// An action of the program that has ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ActionSpan {
    /// Kind of action.
    pub kind: ActionKind,
    /// Begin: the end of the action before.
    pub begin: SimTime,
    /// End.
    pub end: SimTime,
}

/// A wait of a thread of control.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Kind of the action that waits.
    pub kind: ActionKind,
    /// Begin.
    pub begin: SimTime,
    /// End; after `begin`.
    pub end: SimTime,
    /// Request whose completion ends the wait. `None` where several are completed together: then it is the first one of
    /// [those](super::Observer::completing) that complete at `end`.
    pub request: Option<RequestId>,
    /// Peer that was ready last, at a time within the wait: the rank waits for that peer first, and then for data. `None` in
    /// non-blocking operations, and where no analysis [needs](super::Analysis::needs_wait_states) it.
    pub peer: Option<Peer>,
}

/// A message that has been sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The receiver.
    pub to: Rank,
    /// Queue of the receiver; `None` where nobody receives the message.
    pub queue: Option<ReceiveQueue>,
    /// Outgoing channel of the trace, for messages of the program.
    pub channel: Option<OutIdx>,
    /// Envelope.
    pub message: Message,
    /// Request of the sender.
    pub request: RequestId,
}

/// A message and the receive that it matches.
#[derive(Clone, Copy, Debug)]
pub struct Match<'a> {
    /// Port of the receiver: those of the trace come first.
    pub port: usize,
    /// The sender.
    pub from: Rank,
    /// Envelope.
    pub message: &'a Message,
    /// Request of the receive.
    pub request: RequestId,
    /// Time at which the receive was posted.
    pub posted: SimTime,
    /// The data flow since the send, whether or not the receive was posted.
    pub is_eager: bool,
}

/// A time that one member of a collective operation sends to another.
#[derive(Clone, Copy, Debug)]
pub struct SentTime<'a> {
    /// The receiver.
    pub to: Rank,
    /// Kind of the operation.
    pub kind: ActionKind,
    /// Envelope, posted when the messages that the time stands for have arrived.
    pub message: &'a Message,
    /// These messages.
    pub stands_for: &'a UncontendedMessages,
}

/// Duration of messages without contention.
#[derive(Clone, Copy, Debug, Default)]
pub struct UncontendedMessages {
    /// Total.
    pub time: SimDuration,
    /// Part spent in the libraries of both sides.
    pub overhead: SimDuration,
    /// Rest: the transfer.
    pub transfer: UncontendedTransfer,
}
