//! The trace of one rank.

use crate::action::{CollectiveId, LocationId, SendRecv, SendRecvId};
use crate::channel::{Incoming, Outgoing, Slot};
use crate::collective::Collective;
use crate::store::Records;
use crate::trace::Cursor;

/// What one rank does, with the tables to which its actions refer.
#[derive(Debug, Default)]
pub struct RankTrace {
    pub(crate) records: Records,
    pub(crate) outgoing: Vec<Outgoing>,
    pub(crate) incoming: Vec<Incoming>,
    pub(crate) ports: u32,
    pub(crate) slots: u32,
    pub(crate) pending_at_end: Vec<Slot>,
    pub(crate) collectives: Vec<Collective>,
    pub(crate) send_recvs: Vec<SendRecv>,
    pub(crate) locations: Vec<String>,
}

impl RankTrace {
    /// Returns a cursor before the first action.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.records)
    }

    /// Returns the number of actions.
    pub fn len(&self) -> u64 {
        self.records.len()
    }

    /// Returns whether the rank does nothing at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the channels to which the rank sends, in the order of their first use.
    pub fn outgoing(&self) -> &[Outgoing] {
        &self.outgoing
    }

    /// Returns the channels from which the rank receives, in the order of their first use.
    pub fn incoming(&self) -> &[Incoming] {
        &self.incoming
    }

    /// Returns the number of ports: queues that messages to this rank arrive in.
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// Returns the largest number of requests that are pending at once.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the requests that the end of the trace waits for, in the order of their posting: the last pending one of
    /// each (source, destination, tag).
    pub fn pending_at_end(&self) -> &[Slot] {
        &self.pending_at_end
    }

    /// Returns a collective operation.
    ///
    /// # Panics
    /// Where the identifier is not from this rank.
    pub fn collective(&self, id: CollectiveId) -> &Collective {
        &self.collectives[id.index()]
    }

    /// Returns a combined send and receive.
    ///
    /// # Panics
    /// Where the identifier is not from this rank.
    pub fn send_recv(&self, id: SendRecvId) -> &SendRecv {
        &self.send_recvs[id.index()]
    }

    /// Returns a call site as `file:line`.
    ///
    /// # Panics
    /// Where the identifier is not from this rank.
    pub fn location(&self, id: LocationId) -> &str {
        &self.locations[id.index()]
    }
}
