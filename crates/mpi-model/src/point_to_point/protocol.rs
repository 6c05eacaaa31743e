//! Protocols of messages: who waits for what.

use pdes_core::Bytes;
use trace_mmap::SendMode;

use super::PointToPoint;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::token::Message;

/// Protocol of a message.
///
/// | | eager | detached | rendezvous |
/// |---|---|---|---|
/// | messages | that are detached, and smaller than `eager_below` | other buffered sends, and standard ones smaller than `detached_below` | all others |
/// | the send is complete | at once | at once | when the data have arrived |
/// | the data leave | at the send | at the later of send and receive | at the later of send and receive |
/// | the receive is complete | when the data have arrived, at its post at the earliest | when the data have arrived | when the data have arrived |
/// | whoever completes the receive | pays the receive overhead | pays the receive overhead | pays nothing |
///
/// "Detached" is SimGrid's word. Where data move in calls only, "the later" is the next moment at which the receiver is in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Eager,
    Detached,
    Rendezvous,
}

impl<M: Machine, A: Analysis> PointToPoint<'_, M, A> {
    /// Returns whether the sender of a standard message does not wait: it is eager or detached.
    pub(crate) fn is_detached(&self, bytes: Bytes) -> bool {
        bytes < self.parameters().detached_below
    }

    /// Returns whether the sender of a message in a mode does not wait.
    pub(crate) fn is_detached_in(&self, mode: SendMode, bytes: Bytes) -> bool {
        match mode {
            SendMode::Standard | SendMode::Ready => self.is_detached(bytes),
            SendMode::Synchronous => false,
            SendMode::Buffered => true,
        }
    }

    /// Returns the protocol of a message from its envelope, which tells whether the sender waits.
    pub(super) fn protocol(&self, message: &Message) -> Protocol {
        match message.reply {
            Some(_) => Protocol::Rendezvous,
            None if message.bytes < self.parameters().eager_below => Protocol::Eager,
            None => Protocol::Detached,
        }
    }
}
