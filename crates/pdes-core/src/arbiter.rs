//! The part of a simulation that runs in the order of time.

use crate::{Fault, Outbox, Process, Rank, SimTime};

/// A resource that all processes share, such as a network with contention: what becomes of an order depends on all
/// orders before it.
///
/// # Laws
/// 1. What an arbiter does depends on the orders, their times and their senders alone.
/// 2. [`advance`](Arbiter::advance) sends tokens that lie at the instant that [`next`](Arbiter::next) named, or after
///    it: processes act on them at their own clocks or later, so that orders never lie before that instant.
pub trait Arbiter<P: Process> {
    /// Takes in an order. It lies at or after the instant of the last [`advance`](Arbiter::advance).
    ///
    /// Orders come sorted by (time, place, rank, order of filing) between two calls of [`next`](Arbiter::next); those of
    /// later calls may have earlier times.
    fn file(&mut self, from: Rank, at: SimTime, order: P::Order);

    /// Returns the instant of the next thing to happen, if there is any.
    fn next(&mut self) -> Option<SimTime>;

    /// Lets happen what happens at the next instant, and tells the processes concerned.
    ///
    /// # Errors
    /// Where that is impossible; the rank is that of the order.
    fn advance(&mut self, outbox: &mut Outbox<P::Token, P::Order>) -> Result<(), (Rank, Fault<P::Error>)>;
}
