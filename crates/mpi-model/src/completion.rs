//! Completions: messages to ranks that a machine has finished their work.

mod wire;

use pdes_core::{Bytes, Outbox, Rank, SimTime};

use crate::request::{OperationIndex, RequestId};
use crate::token::{EagerMessageId, Side, Token};

/// Handle with which a machine reports the end of some work to the ranks that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion(Waiters);

const _: () = assert!(size_of::<Completion>() <= 32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiters {
    /// Work of a rank: of its program, or of one of its operations.
    Work { me: Rank, operation: Option<OperationIndex> },
    /// Transfer of a detached message of `bytes`: only the receiver waits.
    Detached { receiver: Rank, receive: RequestId, bytes: Bytes },
    /// Rendezvous transfer: the receive, posted at `posted`, and the matching send wait.
    Rendezvous { receiver: Rank, receive: RequestId, posted: SimTime, sender: Rank, send: RequestId },
    /// Eager transfer, whether or not its receive is posted.
    Eager { receiver: Rank, id: EagerMessageId },
}

impl Completion {
    pub(crate) fn of_work(me: Rank, operation: Option<OperationIndex>) -> Self {
        Self(Waiters::Work { me, operation })
    }

    pub(crate) fn detached(receiver: Rank, receive: RequestId, bytes: Bytes) -> Self {
        Self(Waiters::Detached { receiver, receive, bytes })
    }

    pub(crate) fn rendezvous(
        (receiver, receive): (Rank, RequestId),
        posted: SimTime,
        (sender, send): (Rank, RequestId),
    ) -> Self {
        Self(Waiters::Rendezvous { receiver, receive, posted, sender, send })
    }

    pub(crate) fn eager(receiver: Rank, id: EagerMessageId) -> Self {
        Self(Waiters::Eager { receiver, id })
    }

    /// Returns the rank on whose behalf the work is done; for a message, the receiver.
    pub fn owner(self) -> Rank {
        match self.0 {
            Waiters::Work { me, .. } => me,
            Waiters::Detached { receiver, .. }
            | Waiters::Rendezvous { receiver, .. }
            | Waiters::Eager { receiver, .. } => receiver,
        }
    }

    /// Reports to all waiting ranks that the work was done at `at`.
    pub fn deliver<O: Copy>(self, at: SimTime, outbox: &mut Outbox<Token, O>) {
        self.deliver_to_some(at, outbox, |_| true);
    }

    /// Reports to those waiting ranks that `filter` accepts that the work was done at `at`.
    pub fn deliver_to_some<O: Copy>(
        self,
        at: SimTime,
        outbox: &mut Outbox<Token, O>,
        filter: impl Fn(Rank) -> bool,
    ) {
        let mut tell = |rank, token| {
            if filter(rank) {
                outbox.send(rank, token);
            }
        };
        match self.0 {
            Waiters::Work { me, operation } => tell(me, Token::WorkDone { at, operation }),
            Waiters::Detached { receiver, receive, bytes } => {
                let side = Side::Receiver { detached: Some(bytes) };
                tell(receiver, Token::Arrived { request: receive, at, side });
            }
            Waiters::Rendezvous { receiver, receive, posted, sender, send } => {
                let side = Side::Receiver { detached: None };
                tell(receiver, Token::Arrived { request: receive, at, side });
                let side = Side::Sender { received: posted };
                tell(sender, Token::Arrived { request: send, at, side });
            }
            Waiters::Eager { receiver, id } => tell(receiver, Token::EagerArrived { id, at }),
        }
    }
}
