//! Interface of the queues that order hosts by time bucket.

use std::ops::Range;

/// Queue of hosts by the time bucket of their next turn; a host has at most one.
pub(super) trait BucketQueue: Send {
    /// Makes an empty queue for some hosts.
    fn new(hosts: &Range<u32>) -> Self;

    /// Returns log2 of the bucket width \[ps\] for windows of length `flight` \[ps\]; buckets are no longer than
    /// windows.
    fn bucket_width_log2(flight: u64) -> u32;

    /// Schedules the turn of a host in a bucket.
    fn schedule(&mut self, bucket: u64, host: u32);

    /// Removes the turn of a host; does nothing in queues whose entries may be outdated.
    fn remove(&mut self, host: u32);

    /// Returns the next bucket with a turn.
    fn next_bucket(&self) -> Option<u64>;

    /// Returns the host of the next turn, if the queue yields hosts one by one. The caller then replaces its turn by
    /// scheduling the next one.
    fn next_host(&self) -> Option<u32>;

    /// Removes turns of the next bucket, at least one, and adds their hosts to a list.
    fn pop_bucket(&mut self, bucket: u64, hosts: &mut Vec<u32>);
}
