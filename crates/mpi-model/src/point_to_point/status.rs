//! Statuses of messages (`MPI_Status`), which a program that runs is told.

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Tag};

use super::RequestId;
use crate::token::Message;

/// A message, as the receiver is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The sender.
    pub source: Rank,
    /// The tag.
    pub tag: Tag,
    /// Size of the message.
    pub bytes: Bytes,
    /// Number of the message among those of its sender to this rank with its tag and communicator, from 0. Such messages match in the
    /// order in which they are sent.
    pub number: u64,
}

/// Messages that the receives of a rank have matched.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    /// Last message of each request.
    matched: FxHashMap<RequestId, Status>,
    counts: FxHashMap<(Rank, u32, CommId), u64>,
}

impl Statuses {
    /// Records the message that a receive has matched.
    pub(super) fn insert(&mut self, source: Rank, message: &Message, receive: RequestId) {
        let status = self.of(source, message);
        *self.counts.entry(channel(source, message)).or_default() += 1;
        self.matched.insert(receive, status);
    }

    /// Forgets the last message of a receive, which is posted again.
    pub(super) fn forget(&mut self, receive: RequestId) {
        self.matched.remove(&receive);
    }

    /// Returns the status of the next message of its channel to be received.
    pub(crate) fn of(&self, source: Rank, message: &Message) -> Status {
        let number = self.counts.get(&channel(source, message)).copied().unwrap_or_default();
        Status { source, tag: Tag::new(message.tag as i32), bytes: message.bytes, number }
    }

    /// Returns the last message of a receive.
    pub(crate) fn get(&self, receive: RequestId) -> Option<Status> {
        self.matched.get(&receive).copied()
    }
}

fn channel(source: Rank, message: &Message) -> (Rank, u32, CommId) {
    (source, message.tag, message.communicator)
}
