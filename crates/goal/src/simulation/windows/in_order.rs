//! Windows with rendezvous sends, which may end at their receives: run event by event, in global order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::agenda::Agenda;
use super::part::Part;
use super::records::Records;
use crate::parameters::LIMIT;

/// Event queue of a window: the next events of hosts, by time and creation; entries may be outdated.
#[derive(Debug, Default)]
pub(super) struct InOrder {
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

impl InOrder {
    fn push(&mut self, time: u64, entry: Entry, records: &mut Records<'_>) {
        // The heap orders by time only: stamps are compared through the log, which `Ord` cannot reach.
        if self.now.is_empty() || time != self.time {
            return self.later.push(Reverse((time, entry)));
        }
        let place = self.now.partition_point(|other| records.compare(other.stamp, entry.stamp).is_gt());
        self.now.insert(place, entry);
    }

    fn pop(&mut self, records: &mut Records<'_>) -> Option<(u64, Entry)> {
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
    fn is_due(&self, time: u64) -> bool {
        !self.now.is_empty() || self.later.peek().is_some_and(|next| next.0.0 <= time)
    }
}

impl<A: Agenda, const LANES: usize> Part<'_, A, LANES> {
    /// Processes all events of the window that starts with bucket `day`, in global order.
    pub(super) fn run_in_order(&mut self, day: u64) {
        let end = ((day << self.day) + self.window).min(LIMIT);
        self.reached = end;
        let mut hosts = std::mem::take(&mut self.visited);
        while let Some(next) = self.agenda.next().filter(|next| next << self.day < end) {
            self.agenda.turn(next, &mut hosts);
        }
        hosts.retain(|&host| (day..end >> self.day).contains(&self.hosts[host].visit));
        hosts.sort_unstable();
        hosts.dedup();
        hosts.iter().for_each(|&host| self.hosts[host].visit = day);
        for &host in &hosts {
            self.work.open_mail(&mut self.hosts[host], end);
            self.enqueue(host, end);
        }
        while let Some((time, entry)) = self.in_order.pop(&mut self.work.records) {
            let next = self.next(entry.host).filter(|next| (next.0, next.1) == (time, entry));
            if let Some((time, _, lane)) = next {
                self.run_ahead(entry.host, time, lane, &mut hosts, day);
            }
        }
        for &host in &hosts {
            let time = self.next(host).map_or(u64::MAX, |(time, ..)| time);
            self.plan_visit(host, time);
        }
        hosts.clear();
        self.visited = hosts;
    }

    /// Processes the next event of a host, and those after it while they are first in global order. Hosts at which a
    /// send ends are added to `hosts`.
    fn run_ahead(&mut self, host: u32, mut time: u64, mut lane: usize, hosts: &mut Vec<u32>, day: u64) {
        let end = self.reached;
        loop {
            self.work.run_one(&mut self.hosts[host], host, time, lane);
            self.deliver();
            if let Some(ended) = self.work.ended.take() {
                let to = &mut self.hosts[ended.host];
                if to.visit != day {
                    to.visit = day;
                    hosts.push(ended.host);
                    self.work.open_mail(to, end);
                }
                self.work.tell(to, &ended);
                self.enqueue(ended.host, end);
            }
            let Some(next) = self.next(host).filter(|next| next.0 < end) else { return };
            if self.in_order.is_due(next.0) {
                return self.in_order.push(next.0, next.1, &mut self.work.records);
            }
            (time, lane) = (next.0, next.2);
        }
    }

    /// Adds the next event of a host to the event queue, if it is before `end`.
    fn enqueue(&mut self, host: u32, end: u64) {
        if let Some((time, entry, _)) = self.next(host).filter(|next| next.0 < end) {
            self.in_order.push(time, entry, &mut self.work.records);
        }
    }

    /// Returns the next event of a host: its time, entry and lane.
    fn next(&mut self, host: u32) -> Option<(u64, Entry, usize)> {
        let own = &self.hosts[host];
        let (time, lane) = own.next(&self.work.pool, &mut self.work.records);
        let first = own.first_in(lane).filter(|_| time != u64::MAX)?;
        Some((time, Entry { stamp: self.work.pool[first].stamp, host }, lane))
    }
}
