//! What ranks send to each other through the engine.

mod wire;

use std::num::NonZeroU32;

use pdes_core::{Bytes, Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, PortId};

use crate::request::{OperationIndex, RequestId};

/// A timestamped token from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A message has been sent.
    Message {
        /// Where it arrives.
        lane: Lane,
        /// The message.
        message: Message,
    },
    /// A receive of this rank does not suit the message that was there already. The rank tells itself, because the
    /// failure lies at the later of the two, perhaps after its clock, and what it does before must not be lost.
    Clash,
    /// The data of a message has arrived.
    Arrived {
        /// The request that waits for it, of the sender or of the receiver.
        request: RequestId,
        /// When the last byte arrived.
        at: SimTime,
        /// Whose request it is.
        party: Party,
    },
    /// The data of an eager message has arrived, perhaps before its receive is posted.
    Landed {
        /// The message.
        flight: Flight,
        /// When the last byte arrived.
        at: SimTime,
    },
    /// What the rank had the machine do is done.
    Resume {
        /// When.
        at: SimTime,
        /// For which operation it was done; `None` for the program itself.
        operation: Option<OperationIndex>,
    },
    /// A piece of what led to a message, before the message: where the sender is in another process of the operating system,
    /// and critical paths are followed.
    Piece {
        /// The sender.
        from: Rank,
        /// The bytes.
        piece: Piece,
    },
    /// A rank of another process of the operating system has looked at requests or messages, which changes what looks
    /// cost: for all ranks of the receiver's process.
    Looks {
        /// What the next test costs, in the price of a first one.
        tests: u64,
        /// What the next probe costs, likewise.
        probes: u64,
    },
}

/// Which queue of the receiver a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A port of the trace.
    Port(PortId),
    /// Messages of collective operations, from the rank with this number.
    Collective(u32),
    /// All messages to a rank that receives from any source; from the rank with this number.
    Mailbox(u32),
    /// Times that members of collective operations tell each other; from the rank with this number.
    Time(u32),
}

/// Who is told of the arrival of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The sender.
    Sender {
        /// When the receiver was ready.
        received: SimTime,
    },
    /// The receiver.
    Receiver {
        /// The size of a detached message.
        detached: Option<Bytes>,
    },
}

/// A message that waits for its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// When the sender was ready.
    pub posted: SimTime,
    /// Size of the payload.
    pub bytes: Bytes,
    /// The tag; of a message of a collective operation, its number on the communicator and its kind.
    pub tag: u32,
    /// The communicator, by its name in the trace.
    pub communicator: CommId,
    /// The sender's request that waits for the arrival; `None` for a detached message.
    pub reply: Option<RequestId>,
    /// The number of this post among those of the sender at this instant, from 1.
    pub round: u32,
}

const _: () = assert!(size_of::<Token>() <= 48);

/// Bytes of something larger than a token.
pub(crate) type Piece = [u8; 32];

/// Numbers the eager messages of a receiver that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flight(pub(crate) NonZeroU32);
