//! Windows with rendezvous sends, which may end at their receives: run event by event, in global order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::bucket_queue::BucketQueue;
use super::event_log::PartitionLog;
use super::partition::Partition;
use crate::parameters::TIME_LIMIT;

/// Event queue of a window: the next events of hosts, by time and creation; entries may be outdated.
#[derive(Debug, Default)]
pub(super) struct SequentialQueue {
    /// Later events, by time only.
    later: BinaryHeap<Reverse<(u64, Entry)>>,
    /// Events at the current time, sorted by creation, the first one last.
    now: Vec<Entry>,
    /// The current time \[ps\].
    time: u64,
}

/// Next event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    stamp: u64,
    host: u32,
}

impl SequentialQueue {
    fn push(&mut self, time: u64, entry: Entry, records: &mut PartitionLog<'_>) {
        // The heap orders by time only: stamps are compared through the log, which `Ord` cannot reach.
        if self.now.is_empty() || time != self.time {
            return self.later.push(Reverse((time, entry)));
        }
        let position = self.now.partition_point(|other| records.compare(other.stamp, entry.stamp).is_gt());
        self.now.insert(position, entry);
    }

    fn pop(&mut self, records: &mut PartitionLog<'_>) -> Option<(u64, Entry)> {
        if self.now.is_empty() {
            self.time = self.later.peek()?.0.0;
            while let Some(&Reverse((_, entry))) = self.later.peek().filter(|next| next.0.0 == self.time) {
                self.now.push(entry);
                self.later.pop();
            }
            if self.now.len() > 1 {
                self.now.sort_unstable_by(|one, other| records.compare(other.stamp, one.stamp));
            }
        }
        self.now.pop().map(|entry| (self.time, entry))
    }

    /// Returns true if there may be an event up to `time`.
    fn has_event_until(&self, time: u64) -> bool {
        !self.now.is_empty() || self.later.peek().is_some_and(|next| next.0.0 <= time)
    }
}

impl<A: BucketQueue, const LANES: usize> Partition<'_, A, LANES> {
    /// Processes all events of the window that starts with bucket `bucket`, in global order.
    pub(super) fn run_sequentially(&mut self, bucket: u64) {
        let end = ((bucket << self.bucket_shift) + self.window).min(TIME_LIMIT);
        self.window_end = end;
        let mut hosts = std::mem::take(&mut self.bucket_hosts);
        while let Some(next) = self.queue.next_bucket().filter(|next| next << self.bucket_shift < end) {
            self.queue.pop_bucket(next, &mut hosts);
        }
        hosts.retain(|&host| (bucket..end >> self.bucket_shift).contains(&self.hosts[host].turn_bucket));
        hosts.sort_unstable();
        hosts.dedup();
        hosts.iter().for_each(|&host| self.hosts[host].turn_bucket = bucket);
        for &host in &hosts {
            self.handler.enqueue_arrivals(&mut self.hosts[host], end);
            self.enqueue_next(host, end);
        }
        while let Some((time, entry)) = self.sequential.pop(&mut self.handler.records) {
            let next = self.next_event(entry.host).filter(|next| (next.0, next.1) == (time, entry));
            if let Some((time, _, lane)) = next {
                self.run_while_first(entry.host, time, lane, &mut hosts, bucket);
            }
        }
        for &host in &hosts {
            let time = self.next_event(host).map_or(u64::MAX, |(time, ..)| time);
            self.schedule_next(host, time);
        }
        hosts.clear();
        self.bucket_hosts = hosts;
    }

    /// Processes the next event of a host, and those after it while they are first in global order. Hosts at which a
    /// send ends are added to `hosts`.
    fn run_while_first(
        &mut self,
        host: u32,
        mut time: u64,
        mut lane: usize,
        hosts: &mut Vec<u32>,
        bucket: u64,
    ) {
        let end = self.window_end;
        loop {
            self.handler.process_next(&mut self.hosts[host], host, time, lane);
            self.deliver_sent();
            if let Some(ended) = self.handler.ended_send.take() {
                let to = &mut self.hosts[ended.host];
                if to.turn_bucket != bucket {
                    to.turn_bucket = bucket;
                    hosts.push(ended.host);
                    self.handler.enqueue_arrivals(to, end);
                }
                self.handler.apply_ended_send(to, &ended);
                self.enqueue_next(ended.host, end);
            }
            let Some(next) = self.next_event(host).filter(|next| next.0 < end) else { return };
            if self.sequential.has_event_until(next.0) {
                return self.sequential.push(next.0, next.1, &mut self.handler.records);
            }
            (time, lane) = (next.0, next.2);
        }
    }

    /// Adds the next event of a host to the event queue, if it is before `end`.
    fn enqueue_next(&mut self, host: u32, end: u64) {
        if let Some((time, entry, _)) = self.next_event(host).filter(|next| next.0 < end) {
            self.sequential.push(time, entry, &mut self.handler.records);
        }
    }

    /// Returns the next event of a host: its time, entry and lane.
    fn next_event(&mut self, host: u32) -> Option<(u64, Entry, usize)> {
        let own = &self.hosts[host];
        let (time, lane) = own.next_event(&self.handler.pool, &mut self.handler.records);
        let first = own.head_of(lane).filter(|_| time != u64::MAX)?;
        Some((time, Entry { stamp: self.handler.pool[first].stamp, host }, lane))
    }
}
