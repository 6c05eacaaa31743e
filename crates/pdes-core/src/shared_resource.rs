//! A resource that all logical processes share and that serves them in time order.

use crate::{Fault, Outbox, Process, Rank, SimTime, SubmittedWork};

/// A resource that all processes share, such as a network with contention: the outcome of a piece of work depends on
/// all work submitted before it.
///
/// # Laws
/// 1. The resource's behaviour depends only on the submitted work, its times and its senders.
/// 2. [`advance`](SharedResource::advance) sends tokens at or after the instant that
///    [`next_event_time`](SharedResource::next_event_time) returned. Processes act on them at their own clocks or
///    later, so work is never submitted for an earlier instant.
pub trait SharedResource<P: Process> {
    /// Accepts work of a process, at or after the instant of the last [`advance`](SharedResource::advance).
    ///
    /// Between two calls of [`next_event_time`](SharedResource::next_event_time) work comes sorted by (time, tie-break,
    /// rank, order of submission); work submitted after the second call may have earlier times.
    fn submit(&mut self, submitted: SubmittedWork<P::WorkRequest>);

    /// Returns the time of the resource's next event, if there is one; the same if called again.
    fn next_event_time(&mut self) -> Option<SimTime>;

    /// Executes the events of that instant and sends tokens to the processes concerned.
    ///
    /// # Errors
    /// If the work cannot be served; the rank is the one that submitted it.
    fn advance(
        &mut self,
        outbox: &mut Outbox<P::Token, P::WorkRequest>,
    ) -> Result<(), (Rank, Fault<P::Error>)>;
}
