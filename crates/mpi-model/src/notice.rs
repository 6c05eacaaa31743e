//! Completions: messages to ranks that a machine has finished their work.

mod wire;

use pdes_core::{Bytes, Outbox, Rank, SimTime};

use crate::request::{OperationIndex, RequestId};
use crate::token::{Flight, Party, Token};

/// Handle with which a machine reports the end of some work to the ranks that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice(Wait);

const _: () = assert!(size_of::<Notice>() <= 32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Work of a rank: of its program, or of one of its operations.
    Rank { me: Rank, operation: Option<OperationIndex> },
    /// Transfer of a detached message of `bytes`: only the receiver waits.
    Detached { receiver: Rank, receive: RequestId, bytes: Bytes },
    /// Rendezvous transfer: the receive, posted at `posted`, and the matching send wait.
    Rendezvous { receiver: Rank, receive: RequestId, posted: SimTime, sender: Rank, send: RequestId },
    /// Eager transfer, whether or not its receive is posted.
    Eager { receiver: Rank, flight: Flight },
}

impl Notice {
    pub(crate) fn rank(me: Rank, operation: Option<OperationIndex>) -> Self {
        Self(Wait::Rank { me, operation })
    }

    pub(crate) fn detached(receiver: Rank, receive: RequestId, bytes: Bytes) -> Self {
        Self(Wait::Detached { receiver, receive, bytes })
    }

    pub(crate) fn rendezvous(
        (receiver, receive): (Rank, RequestId),
        posted: SimTime,
        (sender, send): (Rank, RequestId),
    ) -> Self {
        Self(Wait::Rendezvous { receiver, receive, posted, sender, send })
    }

    pub(crate) fn eager(receiver: Rank, flight: Flight) -> Self {
        Self(Wait::Eager { receiver, flight })
    }

    /// Returns the rank on whose behalf the work is done; for a message, the receiver.
    pub fn rank_concerned(self) -> Rank {
        match self.0 {
            Wait::Rank { me, .. } => me,
            Wait::Detached { receiver, .. }
            | Wait::Rendezvous { receiver, .. }
            | Wait::Eager { receiver, .. } => receiver,
        }
    }

    /// Reports to all waiting ranks that the work was done at `at`.
    pub fn give<O: Copy>(self, at: SimTime, outbox: &mut Outbox<Token, O>) {
        self.give_to(at, outbox, |_| true);
    }

    /// Reports to those waiting ranks that `filter` accepts that the work was done at `at`.
    pub fn give_to<O: Copy>(
        self,
        at: SimTime,
        outbox: &mut Outbox<Token, O>,
        is_told: impl Fn(Rank) -> bool,
    ) {
        let mut tell = |rank, token| {
            if is_told(rank) {
                outbox.send(rank, token);
            }
        };
        match self.0 {
            Wait::Rank { me, operation } => tell(me, Token::Resume { at, operation }),
            Wait::Detached { receiver, receive, bytes } => {
                let party = Party::Receiver { detached: Some(bytes) };
                tell(receiver, Token::Arrived { request: receive, at, party });
            }
            Wait::Rendezvous { receiver, receive, posted, sender, send } => {
                let party = Party::Receiver { detached: None };
                tell(receiver, Token::Arrived { request: receive, at, party });
                let party = Party::Sender { received: posted };
                tell(sender, Token::Arrived { request: send, at, party });
            }
            Wait::Eager { receiver, flight } => tell(receiver, Token::Landed { flight, at }),
        }
    }
}
