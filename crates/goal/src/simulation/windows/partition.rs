//! Partition: the hosts that one thread runs, window after window, host after host.

use std::ops::{Index, IndexMut, Range};

use super::super::Outcome;
use super::super::dependencies::CACHED_HOSTS;
use super::super::lane::LanePlan;
use super::super::matching::Leftovers;
use super::super::pool::Slot;
use super::bucket_queue::BucketQueue;
use super::event_handler::EventHandler;
use super::event_log::EventLog;
use super::host::Host;
use super::sequential::SequentialQueue;
use crate::parameters::{LogGops, TIME_LIMIT};
use crate::schedule::Tables;

/// Number of hosts whose memory is prefetched together.
const PREFETCH_BATCH: usize = 16;

/// Bucket of a host that has no turn: it waits only for messages.
const NO_TURN: u64 = u64::MAX;

/// Partition of the hosts, which have up to `LANES` lanes each.
pub(super) struct Partition<'a, A, const LANES: usize> {
    pub(super) hosts: PartitionHosts<LANES>,
    pub(super) handler: EventHandler<'a>,
    pub(super) queue: A,
    pub(super) sequential: SequentialQueue,
    /// Log2 of the bucket width \[ps\].
    pub(super) bucket_shift: u32,
    /// Length of a window: o + L, rounded down to whole buckets \[ps\].
    pub(super) window: u64,
    /// End of the current window; no host has advanced beyond it \[ps\].
    pub(super) window_end: u64,
    /// Lowest host with an event beyond the range of time.
    pub(super) late_rank: Option<u32>,
    /// Outgoing messages by destination partition.
    pub(super) outgoing: Vec<Vec<RemoteMessage>>,
    /// First host of each partition except the first.
    boundaries: Vec<u32>,
    /// Buffer for the hosts of a bucket.
    pub(super) bucket_hosts: Vec<u32>,
    /// Buffer for prefetching: first operation of each host that runs next, and a head slot.
    prefetched: Vec<(u32, u32)>,
}

/// Message between partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteMessage {
    to: u32,
    slot: Slot,
}

/// Hosts of a partition, by rank.
pub(super) struct PartitionHosts<const LANES: usize> {
    first: u32,
    list: Vec<Host<LANES>>,
}

impl<const LANES: usize> PartitionHosts<LANES> {
    #[inline]
    fn ranks(&self) -> Range<u32> {
        self.first..self.first + self.list.len() as u32
    }
}

impl<const LANES: usize> Index<u32> for PartitionHosts<LANES> {
    type Output = Host<LANES>;

    #[inline]
    fn index(&self, host: u32) -> &Host<LANES> {
        &self.list[(host - self.first) as usize]
    }
}

impl<const LANES: usize> IndexMut<u32> for PartitionHosts<LANES> {
    #[inline]
    fn index_mut(&mut self, host: u32) -> &mut Host<LANES> {
        &mut self.list[(host - self.first) as usize]
    }
}

impl<'a, A: BucketQueue, const LANES: usize> Partition<'a, A, LANES> {
    /// Makes partition `number` of those with these ranks; counts dependencies on up to `threads` threads.
    pub(super) fn new(
        tables: Tables<'a>,
        plan: &'a LanePlan,
        parameters: LogGops,
        log: &'a EventLog,
        (number, parts): (usize, &[Range<u32>]),
        threads: usize,
    ) -> Self {
        let ranks = parts[number].clone();
        let work = EventHandler::new(tables, plan, parameters, (log, number), ranks.clone(), threads);
        let bucket = A::bucket_width_log2(work.costs.arrival_delay);
        let first_nodes = &tables.first_node[ranks.start as usize..ranks.end as usize];
        let list = first_nodes.iter().map(|&first| Host::new(first as u32)).collect();
        Self {
            queue: A::new(&ranks),
            hosts: PartitionHosts { first: ranks.start, list },
            bucket_shift: bucket,
            window: work.costs.arrival_delay >> bucket << bucket,
            window_end: 0,
            handler: work,
            sequential: SequentialQueue::default(),
            late_rank: None,
            outgoing: parts.iter().map(|_| Vec::new()).collect(),
            boundaries: parts[1..].iter().map(|ranks| ranks.start).collect(),
            bucket_hosts: Vec::new(),
            prefetched: Vec::new(),
        }
    }

    /// Adds the operations without dependencies to their lanes and schedules all hosts.
    pub(super) fn schedule_roots(&mut self) {
        for host in self.hosts.ranks() {
            self.handler.release_roots(&mut self.hosts[host], host);
            self.queue.schedule(0, host);
        }
    }

    /// Runs all hosts that have events before the end of a window.
    pub(super) fn run_window(&mut self, end: u64) {
        self.window_end = end;
        while let Some(bucket) = self.queue.next_bucket().filter(|bucket| bucket << self.bucket_shift < end) {
            self.run_bucket(bucket);
        }
    }

    /// Runs hosts of the next bucket, each until the end of the window.
    pub(super) fn run_bucket(&mut self, bucket: u64) {
        if let Some(host) = self.queue.next_host() {
            return self.run_host(host);
        }
        let mut hosts = std::mem::take(&mut self.bucket_hosts);
        self.queue.pop_bucket(bucket, &mut hosts);
        for hosts in hosts.chunks(PREFETCH_BATCH) {
            if self.hosts.list.len() > CACHED_HOSTS {
                self.prefetch(hosts);
            }
            for &host in hosts {
                if self.hosts[host].turn_bucket == bucket {
                    self.run_host(host);
                }
            }
        }
        hosts.clear();
        self.bucket_hosts = hosts;
    }

    /// Reads the memory that the next hosts will need, before they run.
    ///
    /// Between two turns of a host the others evict its operations from the caches. A turn is a chain of dependent
    /// loads that misses each time; here the loads of several hosts are independent, so that their misses overlap.
    fn prefetch(&mut self, hosts: &[u32]) {
        self.prefetched.clear();
        for &host in hosts {
            let host = &self.hosts[host];
            self.prefetched.extend(host.heads().map(|slot| (host.first_node, slot)));
        }
        let mut seen = 0;
        for &(first, slot) in &self.prefetched {
            seen ^= self.handler.touch_slot(first, slot);
            seen ^= self.handler.local_destination(slot).map_or(0, |peer| self.hosts[peer].first_node);
        }
        std::hint::black_box(seen);
    }

    /// Runs a host to the end of the window.
    fn run_host(&mut self, host: u32) {
        let end = self.window_end;
        let own = &mut self.hosts[host];
        let next = self.handler.run_until(own, host, end);
        self.deliver_sent();
        self.schedule_next(host, next);
    }

    /// Delivers the messages that a host has sent; they arrive after the window.
    pub(super) fn deliver_sent(&mut self) {
        if self.handler.sent.is_empty() {
            return;
        }
        for index in 0..self.handler.sent.len() {
            let slot_id = self.handler.sent[index];
            let slot = self.handler.pool[slot_id];
            let to = self.handler.matching.destination(slot.channel);
            if self.hosts.ranks().contains(&to) {
                self.deliver_to(to, slot_id, slot.time);
            } else {
                self.handler.pool.remove(slot_id);
                let part = self.boundaries.partition_point(|&first| first <= to);
                self.outgoing[part].push(RemoteMessage { to, slot });
            }
        }
        self.handler.sent.clear();
    }

    /// Takes messages from other partitions.
    pub(super) fn receive_messages(&mut self, messages: impl Iterator<Item = RemoteMessage>) {
        for RemoteMessage { to, slot } in messages {
            let slot_id = self.handler.pool.insert(slot);
            self.deliver_to(to, slot_id, slot.time);
        }
    }

    /// Adds a message that arrives at `time` to the mailbox of a host.
    #[inline]
    fn deliver_to(&mut self, to: u32, slot_id: u32, time: u64) {
        let host = &mut self.hosts[to];
        host.deliver(slot_id, time, &mut self.handler.pool);
        // A message changes nothing while the processor is busy. A host that has still to run in this window finds its
        // mailbox at the end of its turn.
        let time = time.max(host.cpu_idle_at);
        if time >> self.bucket_shift < host.turn_bucket {
            self.schedule_at(to, time);
        }
    }

    /// Schedules the next turn of a host that has just run, and whose next event in its lanes is at `time`.
    pub(super) fn schedule_next(&mut self, host: u32, time: u64) {
        let own = &self.hosts[host];
        let time = time.min(own.first_arrival.max(own.cpu_idle_at));
        self.schedule_at(host, time);
    }

    /// Schedules the next turn of a host at `time`, which may be never.
    #[inline]
    fn schedule_at(&mut self, host: u32, time: u64) {
        let own = &mut self.hosts[host];
        if time < TIME_LIMIT {
            own.turn_bucket = time >> self.bucket_shift;
            self.queue.schedule(own.turn_bucket, host);
            return;
        }
        own.turn_bucket = NO_TURN;
        self.queue.remove(host);
        if time != u64::MAX {
            self.late_rank = Some(self.late_rank.map_or(host, |late| late.min(host)));
        }
    }

    /// Returns a lower bound on the times of the next event and of the arrivals of outgoing messages \[ps\]; `u64::MAX`
    /// if there are none.
    pub(super) fn next_event_bound(&self) -> u64 {
        let own = self.queue.next_bucket().map_or(u64::MAX, |bucket| bucket << self.bucket_shift);
        let sent = self
            .outgoing
            .iter()
            .flatten()
            .map(|message| message.slot.time >> self.bucket_shift << self.bucket_shift);
        sent.min().map_or(own, |sent| sent.min(own))
    }

    /// Adds the results of the hosts and the unmatched receives and messages; returns the number of operations that
    /// have started.
    pub(super) fn finish(self, outcome: &mut Outcome, left: &mut Leftovers) -> u64 {
        outcome.ends.extend(self.hosts.list.iter().map(|host| host.cpu_idle_at));
        self.handler.finish(outcome, left)
    }
}
