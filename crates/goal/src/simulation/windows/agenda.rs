//! Interface of the queues that order hosts by time bucket.

use std::ops::Range;

/// Queue of hosts by the time bucket of their next turn; a host has at most one.
pub(super) trait Agenda: Send {
    /// Makes an empty queue for some hosts.
    fn new(hosts: &Range<u32>) -> Self;

    /// Returns log2 of the bucket width \[ps\] for windows of length `flight` \[ps\]; buckets are no longer than
    /// windows.
    fn day(flight: u64) -> u32;

    /// Schedules the turn of a host in a bucket.
    fn enter(&mut self, day: u64, host: u32);

    /// Removes the turn of a host; does nothing in queues whose entries may be outdated.
    fn remove(&mut self, host: u32);

    /// Returns the next bucket with a turn.
    fn next(&self) -> Option<u64>;

    /// Returns the host of the next turn, if the queue yields hosts one by one. The caller then replaces its turn by
    /// scheduling the next one.
    fn one(&self) -> Option<u32>;

    /// Removes turns of the next bucket, at least one, and adds their hosts to a list.
    fn turn(&mut self, day: u64, hosts: &mut Vec<u32>);
}
