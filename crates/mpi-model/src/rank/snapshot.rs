//! Snapshots of ranks at iteration boundaries, and fast-forwarding of iterations that only shift a rank in time.
//!
//! Without contention, all operations on times are the addition of constants and the maximum of two times. Let all ranks stand at
//! boundaries, with no token in transit, and all state that matters later equal that at earlier boundaries, except that all times
//! are shifted by one and the same duration. Then as many iterations more, if they have the same actions and amounts,
//! shift everything by that duration once more, and add the same amounts to all totals (an argument of max-plus linearity).

use std::convert::Infallible;

use pdes_core::{SimDuration, SimTime};
use serde::Serialize;
use trace_mmap::{IterationBoundary, Slot};

use super::RankProcess;
use super::file::FileAccessCounts;
use crate::collective::runner::OperationCounts;
use crate::machine::Machine;
use crate::observer::{Analysis, LateMessage, Observer, Peer, WaitStates};
use crate::point_to_point::{Departure, Receive, Request, RequestId, Requests, UnexpectedMessage};
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
    /// Number of granted conditional events.
    granted_events: u64,
    operation_counts: OperationCounts,
    file_accesses: FileAccessCounts,
    /// Encoded state that must be the same at another boundary.
    rest: Box<[u8]>,
    /// All times that are not past yet, in an order that depends on the rest of the state only.
    times: Box<[SimTime]>,
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
            && self.granted_events == before.granted_events
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
        let has_ended = head.is_none() && self.cursor.position() == self.context.trace.len();
        let is_simple = !self.pending.is_some()
            && (head.is_some() || has_ended)
            && self.point_to_point.is_simple()
            && self.collectives.is_idle();
        if !is_simple {
            return None;
        }
        let (mut rest, mut times) = (Vec::new(), Vec::new());
        let requests = &self.point_to_point.requests;
        for request in Requests::range(requests.slot(Slot::new(0)), requests.end()) {
            self.write_request(request, &mut rest, &mut times);
        }
        for (port, unexpected) in self.point_to_point.ports.unexpected_messages() {
            self.write_unexpected(port, unexpected, &mut rest, &mut times)?;
        }
        for (port, receive) in self.point_to_point.ports.posted_receives() {
            self.write_receive(port, receive, &mut rest, &mut times)?;
        }
        let region = self.context.observers.statistics.current_region();
        let has_positions = self.context.replay.machine.has_file_positions();
        let files = self.files.recurrent_state(has_positions);
        encode(&(region, self.compute_factor, files), &mut rest);
        for (device, history) in &self.context.device_histories {
            let state = history.recurrent_state(self.context.thread.clock, has_positions);
            encode(&(device, state), &mut rest);
        }
        let wait_states = self.context.observers.wait_states.as_deref().filter(|_| !has_ended);
        encode(&wait_states.and_then(WaitStates::activity), &mut rest);
        for &LateMessage { from, begin, sent, kind, region, age } in
            wait_states.map_or(&[][..], WaitStates::late)
        {
            encode(&(from, kind, region, age), &mut rest);
            times.extend([begin, sent]);
        }
        if has_ended && !times.is_empty() {
            return None;
        }
        Some(Snapshot {
            boundary: head,
            clock: self.context.thread.clock,
            position: self.cursor.position(),
            statistics: self.context.observers.statistics.clone(),
            granted_events: self.granted_events,
            operation_counts: self.collectives.counts.clone(),
            file_accesses: self.files.counts(),
            rest: rest.into(),
            times: times.into(),
        })
    }

    /// Writes the state of a request. The time of a past completion does not matter.
    fn write_request(&self, request: RequestId, rest: &mut Vec<u8>, times: &mut Vec<SimTime>) {
        match self.point_to_point.requests.get(request) {
            Request::Inactive => encode(&0_u8, rest),
            Request::Pending(awaited) => {
                encode(&(1_u8, awaited), rest);
                self.context.observers.others.append_begins(request, times);
            }
            Request::Complete(completion) if completion.at <= self.context.thread.clock => {
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
        let Some(wait_states) = self.context.observers.wait_states.as_deref() else { return };
        let Peer { ready, state, cause, .. } = wait_states.get(request);
        let will_be_there = ready > self.context.thread.clock;
        encode(&(will_be_there, state, cause), rest);
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
        let cause = self.context.observers.cause_of_post(receive.request);
        encode(&(port, ago, receive.request, receive.capacity, receive.wanted.tag(), cause), rest);
        Some(())
    }

    fn trace_port(&self, port: usize) -> Option<u32> {
        u32::try_from(port).ok().filter(|&port| port < self.context.trace.ports())
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
            None => panic!("rank {}: the snapshots differ in more than time", self.context.me),
        };
        let totals = now.totals_after(before, times);
        let (statistics, time) = totals.expect("the totals do not overflow");
        self.context.observers.statistics = statistics;
        self.context.observers.iterations_skipped(time);
        self.point_to_point.shift_time(time, (now.position - before.position) * times);
        self.context.thread.shift_time(time);
        for history in self.context.device_histories.values_mut() {
            history.cache_empty_at = history.cache_empty_at.saturating_add(time);
        }
        self.action_begin = self.context.thread.clock;
        self.collectives.counts.extrapolate(&before.operation_counts, times);
        self.files.repeat_accesses(&before.file_accesses, times);
        self.cursor.skip_iterations(count * times);
    }
}

/// Appends the encoding of a part of the state.
fn encode(part: &impl Serialize, rest: &mut Vec<u8>) {
    *rest = postcard::to_extend(part, std::mem::take(rest)).expect("a vector grows");
}
