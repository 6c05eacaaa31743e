//! Days on which sends may end at their receives: event by event, in the order of all events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::SimulationError;
use super::Windows;
use crate::parameters::LIMIT;

/// What such a day needs.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    /// Time and rank of what comes next at a host, and the host; entries may be outdated.
    queue: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

impl<const LANES: usize> Windows<'_, LANES> {
    /// Does everything that happens in a window that starts with a day. Hosts of its other days, and those at which a send
    /// ends, are added to those that are visited.
    pub(super) fn run_in_order(&mut self, hosts: &mut Vec<u32>, day: u64) -> Result<(), SimulationError> {
        let end = ((day << self.day) + self.window).min(LIMIT);
        self.reached = end;
        self.work.records.place();
        self.work.records.is_in_order = true;
        while let Some(next) = self.calendar.next().filter(|next| next << self.day < end) {
            self.calendar.turn(next, hosts);
        }
        hosts.retain(|&host| (day..end >> self.day).contains(&self.hosts[host as usize].visit));
        hosts.sort_unstable();
        hosts.dedup();
        hosts.iter().for_each(|&host| self.hosts[host as usize].visit = day);
        for &host in &*hosts {
            self.work.open_mail(&mut self.hosts[host as usize], end);
            self.enqueue(host, end);
        }
        while let Some(Reverse((time, rank, host))) = self.in_order.queue.pop() {
            let next = self.next(host).filter(|next| (next.0, next.1) == (time, rank));
            if let Some((time, _, lane)) = next {
                self.run_ahead(host, time, lane, hosts, day);
            }
        }
        self.work.records.is_in_order = false;
        for &host in &*hosts {
            let time = self.next(host).map_or(u64::MAX, |(time, ..)| time);
            self.plan_visit(host, time)?;
        }
        Ok(())
    }

    /// Does what comes next at a host, in a lane, and what comes then as long as that is at the same host.
    fn run_ahead(&mut self, host: u32, mut time: u64, mut lane: usize, hosts: &mut Vec<u32>, day: u64) {
        let end = self.reached;
        loop {
            self.work.run_one(&mut self.hosts[host as usize], host, time, lane);
            self.deliver();
            if let Some(ended) = self.work.ended.take() {
                let to = &mut self.hosts[ended.host as usize];
                if to.visit != day {
                    to.visit = day;
                    hosts.push(ended.host);
                    self.work.open_mail(to, end);
                }
                self.work.tell(to, &ended);
                self.enqueue(ended.host, end);
            }
            let Some(next) = self.next(host).filter(|next| next.0 < end) else { return };
            let entry = Reverse((next.0, next.1, host));
            if self.in_order.queue.peek().is_some_and(|first| entry < *first) {
                return self.in_order.queue.push(entry);
            }
            (time, lane) = (next.0, next.2);
        }
    }

    /// Tells the queue what comes next at a host, if it comes before a time.
    fn enqueue(&mut self, host: u32, end: u64) {
        if let Some((time, rank, _)) = self.next(host).filter(|next| next.0 < end) {
            self.in_order.queue.push(Reverse((time, rank, host)));
        }
    }

    /// Returns what comes next at a host: when, its rank, and its lane.
    fn next(&mut self, host: u32) -> Option<(u64, u64, usize)> {
        let own = &self.hosts[host as usize];
        let (time, lane) = own.next(&self.work.pool, &mut self.work.records);
        let first = own.first_in(lane).filter(|_| time != u64::MAX)?;
        Some((time, self.work.records.rank(self.work.pool[first].stamp), lane))
    }
}
