//! Snapshots of ranks at iteration boundaries, and fast-forwarding of iterations that only shift a rank in time.
//!
//! Without contention, all operations on times are the addition of constants and the maximum of two times. Let all ranks stand at
//! boundaries, with no token in transit, and all state that matters later equal that at earlier boundaries, except that all times
//! are shifted by one and the same duration. Then as many iterations more, if they have the same actions and amounts,
//! shift everything by that duration once more, and add the same amounts to all totals (an argument of max-plus linearity).

use std::convert::Infallible;

use pdes_core::{SimDuration, SimTime, Wire};
use trace_mmap::{CommId, Head, Slot};

use super::RankProcess;
use super::partners::Partner;
use crate::machine::Machine;
use crate::matching::{Departure, Letter, Receive};
use crate::request::{Completion, Request, RequestId};
use crate::statistics::Statistics;
use crate::token::Message;

/// State of a rank at an iteration boundary of its program, or at its end.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Boundary; `None` at the end.
    head: Option<Head>,
    clock: SimTime,
    /// Number of actions done.
    position: u64,
    statistics: Statistics,
    counters: Counters,
    /// Encoded state that must be the same at another boundary.
    rest: Box<[u8]>,
    /// All times that are not past yet, in an order that depends on the rest of the state only.
    times: Box<[SimTime]>,
}

/// Counters that grow from iteration to iteration.
#[derive(Clone, Debug, Default)]
struct Counters {
    /// Number of granted conditional events.
    granted: u64,
    /// Number of non-blocking operations.
    branches: u32,
    /// Numbers of operations on `MPI_COMM_WORLD`, and on other communicators.
    on_world: u32,
    operations_on: Box<[(CommId, u32)]>,
}

/// Interval between two snapshots of a rank that differ in time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Empty: the rank has ended before.
    Ended,
    /// Some iterations of one loop.
    Iterations {
        /// Number of iterations.
        count: u64,
        /// Number of times that as many identical iterations follow.
        again: u64,
        /// Duration of the iterations.
        time: SimDuration,
    },
}

impl Snapshot {
    /// Returns the number of actions that the rank had done.
    pub fn actions(&self) -> u64 {
        self.position
    }

    /// Returns whether both snapshots were taken in the same loop, or at the end.
    pub fn is_of_loop_of(&self, other: &Self) -> bool {
        self.head.map(|head| head.body) == other.head.map(|head| head.body)
    }

    /// Returns the interval from an earlier snapshot to this one; `None` where more than times differ.
    pub fn since(&self, before: &Self) -> Option<Stretch> {
        let is_alike = self.rest == before.rest
            && self.counters.granted == before.counters.granted
            && self.statistics.depends_on_time_as(&before.statistics);
        let (now, earlier) = match (self.head, before.head) {
            _ if !is_alike => return None,
            (Some(now), Some(earlier)) if now.body == earlier.body => (now, earlier),
            (None, None) => return Some(Stretch::Ended),
            _ => return None,
        };
        let count = now.repeated.checked_sub(earlier.repeated).filter(|&count| count > 0)?;
        // The iterations between are of those that are alike, and not of others before them.
        if earlier.alike.checked_sub(count) != Some(now.alike) {
            return None;
        }
        let time = self.clock.checked_since(before.clock)?;
        let moved = |(now, earlier): (&SimTime, &SimTime)| now.checked_since(*earlier) == Some(time);
        let all_moved =
            self.times.len() == before.times.len() && self.times.iter().zip(&before.times).all(moved);
        all_moved.then_some(Stretch::Iterations { count, again: now.alike / count, time })
    }

    /// Returns the statistics after `times` more repetitions of the interval since an earlier snapshot; `None` where they, or the
    /// clock, overflow.
    fn totals_after(&self, before: &Self, times: u64) -> Option<(Statistics, SimDuration)> {
        let time = self.clock.checked_since(before.clock)?.checked_mul(times)?;
        // Times that the rank has requested lie not far beyond its clock, and must not overflow either.
        self.times.iter().chain([&self.clock]).try_for_each(|at| at.checked_add(time).map(drop))?;
        Some((self.statistics.extrapolate(&before.statistics, times)?, time))
    }

    /// Returns whether the interval since an earlier snapshot can be repeated `times` more times without overflow.
    pub fn can_repeat(&self, before: &Self, times: u64) -> bool {
        self.head.is_none() || self.totals_after(before, times).is_some()
    }
}

impl<M: Machine<Order = Infallible>> RankProcess<'_, M> {
    /// Returns a snapshot of the rank, where it has stopped at an iteration boundary or has ended, and where its later behaviour depends
    /// on relative times only (no mailbox, no operations in progress).
    pub fn snapshot(&self) -> Option<Snapshot> {
        let head = self.cursor.head();
        let has_ended = head.is_none() && self.cursor.position() == self.trace.len();
        let rare = self.rare.as_deref();
        let is_simple = !self.pending.is_some()
            && (head.is_some() || has_ended)
            && self.mailbox.is_none()
            && self.places.as_ref().is_none_or(|places| places.are_those_of_the_trace())
            && self.operations.iter().all(Option::is_none)
            && rare.is_none_or(|rare| rare.clashes.is_empty() && rare.ignored.is_empty());
        if !is_simple {
            return None;
        }
        let (mut rest, mut times) = (Vec::new(), Vec::new());
        for request in self.requests_of_trace() {
            self.write_request(request, &mut rest, &mut times);
        }
        for (port, letter) in self.ports.letters() {
            self.write_letter(port, letter, &mut rest, &mut times)?;
        }
        for (port, receive) in self.ports.receives() {
            self.write_receive(port, receive, &mut rest, &mut times)?;
        }
        (self.statistics.place() as u64, self.pace.to_bits()).write(&mut rest);
        if has_ended && !times.is_empty() {
            return None;
        }
        Some(Snapshot {
            head,
            clock: self.strand.clock,
            position: self.cursor.position(),
            statistics: self.statistics.clone(),
            counters: Counters {
                granted: rare.map_or(0, |rare| rare.granted),
                branches: rare.map_or(0, |rare| rare.branches),
                on_world: self.on_world,
                operations_on: rare.map_or(Box::default(), |rare| {
                    rare.operations_on.iter().map(|(&id, &count)| (id, count)).collect()
                }),
            },
            rest: rest.into(),
            times: times.into(),
        })
    }

    /// Returns the requests of the slots of the trace, and those of blocking calls.
    fn requests_of_trace(&self) -> impl Iterator<Item = RequestId> + '_ {
        (0..self.trace.slots() + 2).map(|slot| self.requests.slot(Slot::new(slot)))
    }

    /// Writes the state of a request. The time of a past completion does not matter.
    fn write_request(&self, request: RequestId, rest: &mut Vec<u8>, times: &mut Vec<SimTime>) {
        match self.requests.get(request) {
            Request::Inactive => 0_u8.write(rest),
            Request::Pending(awaited) => (1_u8, awaited).write(rest),
            Request::Complete(completion) if completion.at <= self.strand.clock => {
                (2_u8, completion.received).write(rest);
            }
            Request::Complete(completion) => {
                (3_u8, completion.received).write(rest);
                times.push(completion.at);
                self.write_partner(request, rest, times);
            }
        }
    }

    /// Writes the readiness of the peer of a request. A past time does not matter.
    fn write_partner(&self, request: RequestId, rest: &mut Vec<u8>, times: &mut Vec<SimTime>) {
        let Some(partners) = self.partners.as_deref() else { return };
        let Partner { ready, state } = partners.of(request);
        let will_be_there = ready > self.strand.clock;
        (u8::from(will_be_there), state as u8).write(rest);
        times.extend(will_be_there.then_some(ready));
    }

    /// Writes an unexpected message; `None` for one of a collective operation, whose tag depends on the number of operations.
    fn write_letter(
        &self,
        port: usize,
        letter: &Letter,
        rest: &mut Vec<u8>,
        times: &mut Vec<SimTime>,
    ) -> Option<()> {
        let was_sent = match letter.departure {
            Departure::Received => false,
            Departure::Sent => true,
            Departure::Flying(_) => return None,
        };
        times.push(letter.message.posted);
        // Rounds only order flows that share the network.
        let message = Message { posted: SimTime::ZERO, round: 0, ..letter.message };
        (self.of_trace(port)?, u8::from(was_sent)).write(rest);
        message.write(rest);
        Some(())
    }

    fn write_receive(
        &self,
        port: usize,
        receive: &Receive,
        rest: &mut Vec<u8>,
        times: &mut Vec<SimTime>,
    ) -> Option<()> {
        times.push(receive.posted);
        let ago = self.cursor.position().checked_sub(receive.action)?;
        (self.of_trace(port)?, ago, (receive.request.number(), receive.capacity, receive.wanted.tag()))
            .write(rest);
        Some(())
    }

    fn of_trace(&self, port: usize) -> Option<u32> {
        u32::try_from(port).ok().filter(|&port| port < self.trace.ports())
    }

    /// Skips stops at the next `heads` boundaries of the loop.
    pub fn pass_heads(&mut self, heads: u64) {
        self.cursor.pass_heads(heads);
    }

    /// Advances the rank as if the interval between two snapshots, of which `now` was taken just now, had been repeated `times` more
    /// times.
    ///
    /// # Panics
    /// The snapshots are [not alike](Snapshot::repetition_since), or a total [overflows](Snapshot::can_fast_forward).
    pub fn repeat(&mut self, now: &Snapshot, before: &Snapshot, times: u64) {
        let count = match now.since(before) {
            Some(Stretch::Iterations { count, .. }) => count,
            Some(Stretch::Ended) => return,
            None => panic!("rank {}: the snapshots differ in more than time", self.me),
        };
        let totals = now.totals_after(before, times);
        let (statistics, time) = totals.expect("the totals do not overflow");
        self.statistics = statistics;
        for slot in 0..self.trace.slots() + 2 {
            let request = self.requests.slot(Slot::new(slot));
            if let Request::Complete(completion) = self.requests.get(request) {
                let at = completion.at.saturating_add(time);
                self.requests.set(request, Request::Complete(Completion { at, ..completion }));
            }
        }
        self.partners.iter_mut().for_each(|partners| partners.delay(time));
        self.ports.delay(time, (now.position - before.position) * times);
        self.strand.delay(time);
        self.began = self.strand.clock;
        let more =
            |now: u32, before: u32| now.wrapping_add(now.wrapping_sub(before).wrapping_mul(times as u32));
        self.on_world = more(self.on_world, before.counters.on_world);
        if let Some(rare) = self.rare.as_deref_mut() {
            for (id, calls) in &mut rare.operations_on {
                let known = before.counters.operations_on.iter().find(|(of, _)| of == id);
                *calls = more(*calls, known.map_or(0, |&(_, calls)| calls));
            }
            rare.branches = more(rare.branches, before.counters.branches);
        }
        self.cursor.skip_iterations(count * times);
    }
}
