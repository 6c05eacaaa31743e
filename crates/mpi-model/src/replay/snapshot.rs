//! Snapshots of ranks at iteration boundaries, and fast-forwarding of iterations that only shift a rank in time.
//!
//! Without contention, all operations on times are the addition of constants and the maximum of two times. Let all ranks stand at
//! boundaries, with no token in transit, and all state that matters later equal that at earlier boundaries, except that all times
//! are shifted by one and the same duration. Then as many iterations more, if they have the same actions and amounts,
//! shift everything by that duration once more, and add the same amounts to all totals (an argument of max-plus linearity).

use std::convert::Infallible;

use pdes_core::{SimDuration, SimTime};
use serde::Serialize;
use trace_mmap::{CommId, IterationBoundary, Slot};

use super::RankProcess;
use crate::machine::Machine;
use crate::matching::{Departure, Receive, UnexpectedMessage};
use crate::observer::{Analysis, Peer};
use crate::request::{Request, RequestCompletion, RequestId};
use crate::statistics::Statistics;
use crate::token::Message;

/// State of a rank at an iteration boundary of its program, or at its end.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Boundary; `None` at the end.
    boundary: Option<IterationBoundary>,
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
    granted_events: u64,
    /// Number of non-blocking operations.
    nonblocking_operations: u32,
    /// Numbers of operations on `MPI_COMM_WORLD`, and on other communicators.
    operations_on_world: u32,
    operations_on: Box<[(CommId, u32)]>,
}

/// Interval between two snapshots of a rank that differ in time only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// Empty: the rank has ended before.
    Ended,
    /// Some iterations of one loop.
    Iterations {
        /// Number of iterations.
        count: u64,
        /// Number of times that as many identical iterations follow.
        repeats: u64,
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
    pub fn is_in_loop_of(&self, other: &Self) -> bool {
        self.boundary.map(|head| head.loop_id) == other.boundary.map(|head| head.loop_id)
    }

    /// Returns the interval from an earlier snapshot to this one; `None` where more than times differ.
    pub fn repetition_since(&self, before: &Self) -> Option<Repetition> {
        let is_alike = self.rest == before.rest
            && self.counters.granted_events == before.counters.granted_events
            && self.statistics.has_outcome_counts_of(&before.statistics);
        let (now, earlier) = match (self.boundary, before.boundary) {
            _ if !is_alike => return None,
            (Some(now), Some(earlier)) if now.loop_id == earlier.loop_id => (now, earlier),
            (None, None) => return Some(Repetition::Ended),
            _ => return None,
        };
        let count = now.completed_equal.checked_sub(earlier.completed_equal).filter(|&count| count > 0)?;
        // The iterations between are of those that are alike, and not of others before them.
        if earlier.upcoming_equal.checked_sub(count) != Some(now.upcoming_equal) {
            return None;
        }
        let time = self.clock.checked_since(before.clock)?;
        let moved = |(now, earlier): (&SimTime, &SimTime)| now.checked_since(*earlier) == Some(time);
        let all_moved =
            self.times.len() == before.times.len() && self.times.iter().zip(&before.times).all(moved);
        all_moved.then_some(Repetition::Iterations { count, repeats: now.upcoming_equal / count, time })
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
    pub fn can_fast_forward(&self, before: &Self, times: u64) -> bool {
        self.boundary.is_none() || self.totals_after(before, times).is_some()
    }
}

impl<M: Machine<WorkRequest = Infallible>, A: Analysis> RankProcess<'_, M, A> {
    /// Returns a snapshot of the rank, where it has stopped at an iteration boundary or has ended, and where its later behaviour depends
    /// on relative times only (no mailbox, no operations in progress).
    pub fn snapshot(&self) -> Option<Snapshot> {
        let head = self.cursor.iteration_boundary();
        let has_ended = head.is_none() && self.cursor.position() == self.trace.len();
        let cold = self.cold.as_deref();
        let is_simple = !self.pending.is_some()
            && (head.is_some() || has_ended)
            && self.mailbox.is_none()
            && self.slot_map.as_ref().is_none_or(|places| places.is_identity())
            && self.operations.iter().all(Option::is_none)
            && cold.is_none_or(|cold| cold.match_errors.is_empty() && cold.ignored_announcements.is_empty());
        if !is_simple {
            return None;
        }
        let (mut rest, mut times) = (Vec::new(), Vec::new());
        for request in self.requests_of_trace() {
            self.write_request(request, &mut rest, &mut times);
        }
        for (port, unexpected) in self.point_to_point.ports.unexpected_messages() {
            self.write_unexpected(port, unexpected, &mut rest, &mut times)?;
        }
        for (port, receive) in self.point_to_point.ports.posted_receives() {
            self.write_receive(port, receive, &mut rest, &mut times)?;
        }
        encode(&(self.observers.statistics.current_region(), self.compute_factor), &mut rest);
        if has_ended && !times.is_empty() {
            return None;
        }
        Some(Snapshot {
            boundary: head,
            clock: self.thread.clock,
            position: self.cursor.position(),
            statistics: self.observers.statistics.clone(),
            counters: Counters {
                granted_events: cold.map_or(0, |cold| cold.granted_events),
                nonblocking_operations: cold.map_or(0, |cold| cold.nonblocking_operations),
                operations_on_world: self.operations_on_world,
                operations_on: cold.map_or(Box::default(), |cold| {
                    cold.operations_on.iter().map(|(&id, &count)| (id, count)).collect()
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
            Request::Inactive => encode(&0_u8, rest),
            Request::Pending(awaited) => encode(&(1_u8, awaited), rest),
            Request::Complete(completion) if completion.at <= self.thread.clock => {
                encode(&(2_u8, completion.received), rest);
            }
            Request::Complete(completion) => {
                encode(&(3_u8, completion.received), rest);
                times.push(completion.at);
                self.write_peer(request, rest, times);
            }
        }
    }

    /// Writes the readiness of the peer of a request. A past time does not matter.
    fn write_peer(&self, request: RequestId, rest: &mut Vec<u8>, times: &mut Vec<SimTime>) {
        let Some(wait_states) = self.observers.wait_states.as_deref() else { return };
        let Peer { ready, state, .. } = wait_states.get(request);
        let will_be_there = ready > self.thread.clock;
        encode(&(will_be_there, state), rest);
        times.extend(will_be_there.then_some(ready));
    }

    /// Writes an unexpected message; `None` for one of a collective operation, whose tag depends on the number of operations.
    fn write_unexpected(
        &self,
        port: usize,
        unexpected: &UnexpectedMessage,
        rest: &mut Vec<u8>,
        times: &mut Vec<SimTime>,
    ) -> Option<()> {
        let was_sent = match unexpected.departure {
            Departure::OnMatch => false,
            Departure::OnSend => true,
            Departure::InFlight(_) => return None,
        };
        times.push(unexpected.message.posted);
        // Rounds only order flows that share the network.
        let message = Message { posted: SimTime::ZERO, round: 0, ..unexpected.message };
        encode(&(self.trace_port(port)?, was_sent, message), rest);
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
        let port = self.trace_port(port)?;
        encode(&(port, ago, receive.request, receive.capacity, receive.wanted.tag()), rest);
        Some(())
    }

    fn trace_port(&self, port: usize) -> Option<u32> {
        u32::try_from(port).ok().filter(|&port| port < self.trace.ports())
    }

    /// Skips stops at the next `heads` boundaries of the loop.
    pub fn skip_boundaries(&mut self, heads: u64) {
        self.cursor.pass_boundaries(heads);
    }

    /// Advances the rank as if the interval between two snapshots, of which `now` was taken just now, had been repeated `times` more
    /// times.
    ///
    /// # Panics
    /// The snapshots are [not alike](Snapshot::repetition_since), or a total [overflows](Snapshot::can_fast_forward).
    pub fn fast_forward(&mut self, now: &Snapshot, before: &Snapshot, times: u64) {
        let count = match now.repetition_since(before) {
            Some(Repetition::Iterations { count, .. }) => count,
            Some(Repetition::Ended) => return,
            None => panic!("rank {}: the snapshots differ in more than time", self.me),
        };
        let totals = now.totals_after(before, times);
        let (statistics, time) = totals.expect("the totals do not overflow");
        self.observers.statistics = statistics;
        self.observers.iterations_skipped(time);
        for slot in 0..self.trace.slots() + 2 {
            let request = self.requests.slot(Slot::new(slot));
            if let Request::Complete(completion) = self.requests.get(request) {
                let at = completion.at.saturating_add(time);
                self.requests.set(request, Request::Complete(RequestCompletion { at, ..completion }));
            }
        }
        self.point_to_point.ports.shift_time(time, (now.position - before.position) * times);
        self.thread.shift_time(time);
        self.action_begin = self.thread.clock;
        let more =
            |now: u32, before: u32| now.wrapping_add(now.wrapping_sub(before).wrapping_mul(times as u32));
        self.operations_on_world = more(self.operations_on_world, before.counters.operations_on_world);
        if let Some(cold) = self.cold.as_deref_mut() {
            for (id, calls) in &mut cold.operations_on {
                let known = before.counters.operations_on.iter().find(|(of, _)| of == id);
                *calls = more(*calls, known.map_or(0, |&(_, calls)| calls));
            }
            cold.nonblocking_operations =
                more(cold.nonblocking_operations, before.counters.nonblocking_operations);
        }
        self.cursor.skip_iterations(count * times);
    }
}

/// Appends the encoding of a part of the state.
fn encode(part: &impl Serialize, rest: &mut Vec<u8>) {
    *rest = postcard::to_extend(part, std::mem::take(rest)).expect("a vector grows");
}
