//! Calls of MPI.

use super::labels::LabelId;

/// A call of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The function.
    pub(super) label: LabelId,
    /// The type of its events.
    pub(super) event: u64,
    /// Begin \[ns\].
    pub(super) begin: u64,
    /// End \[ns\], not before the begin.
    pub(super) end: u64,
    /// Line of the event with which it begins.
    pub(super) line: u64,
    /// Its part in a collective operation.
    pub(super) collective: CollectiveFields,
}

/// The events of a call of a collective operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CollectiveFields {
    /// Bytes sent (event 50100001).
    pub(super) sent: u64,
    /// Bytes received (event 50100002).
    pub(super) received: u64,
    /// True if the rank is the root (event 50100003).
    pub(super) is_root: bool,
    /// The number of the communicator (event 50100004).
    pub(super) communicator: Option<u64>,
}
