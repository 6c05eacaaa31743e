//! Rounds of the members that rank 0 finds in a few polling sweeps.

use std::iter::once;

use super::reactive::reactive;
use super::{poll_announcement, recv_announcement, send_ring_neighbours};
use crate::collective::member::empty_schedule;
use crate::collective::{Answer, Member, Schedule, Steps};

/// Sweeping strategy of rank 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct SweepStrategy {
    /// Number of sweeps per round.
    pub(in crate::collective) sweeps: u32,
    /// Member from which a sweep continues after an announcement was found.
    pub(in crate::collective) restart_from: u32,
}

/// Returns rank 0's schedule, which serves all members in rounds: it receives each announcement as soon as it is found, and
/// continues to poll the others. After the last sweep it sends the members that were found their neighbours, and serves
/// them.
pub(in crate::collective) fn serve_after_sweeps<'a>(
    member: Member<'a>,
    sweep: SweepStrategy,
    mut serve: impl FnMut(&[u32]) -> Schedule<'a> + Send + 'a,
) -> Schedule<'a> {
    let mut state = SweepState::new(sweep, member.size);
    reactive(move |answer| {
        if state.unserved == 0 {
            return None;
        }
        let mut steps = empty_schedule();
        match answer {
            Answer::Found(true) => steps = Box::new(once(recv_announcement(state.record_arrival()))),
            Answer::Found(false) => state.position += 1,
            Answer::Nothing | Answer::Numbers(_) => {}
        }
        if state.next_to_poll().is_none() {
            let round = state.take_round();
            if !round.is_empty() {
                steps = Box::new(steps.then(send_ring_neighbours(&round)).then(serve(&round)));
            }
        }
        Some(match state.next_to_poll() {
            Some(other) => Box::new(steps.then(once(poll_announcement(other)))),
            None => steps,
        })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Absent,
    Arrived,
    Served,
}

/// State of rank 0.
#[derive(Debug)]
struct SweepState {
    strategy: SweepStrategy,
    /// Number of sweeps of this round that have ended.
    ended_sweeps: u32,
    /// Member that is polled.
    position: usize,
    statuses: Vec<Status>,
    unserved: usize,
}

impl SweepState {
    fn new(sweep: SweepStrategy, size: u32) -> Self {
        let mut others = vec![Status::Absent; size as usize];
        others[0] = Status::Served;
        Self { strategy: sweep, ended_sweeps: 0, position: 1, unserved: others.len() - 1, statuses: others }
    }

    /// Returns the next member to poll; `None` if the sweeps are over or all members have been served.
    fn next_to_poll(&mut self) -> Option<u32> {
        while self.unserved > 0 && self.ended_sweeps < self.strategy.sweeps {
            let found =
                (self.position..self.statuses.len()).find(|&other| self.statuses[other] == Status::Absent);
            match found {
                Some(other) => {
                    self.position = other;
                    return Some(other as u32);
                }
                None => (self.ended_sweeps, self.position) = (self.ended_sweeps + 1, 1),
            }
        }
        None
    }

    /// Records that the polled member has arrived; returns it.
    fn record_arrival(&mut self) -> u32 {
        let found = self.position;
        self.statuses[found] = Status::Arrived;
        self.position = self.strategy.restart_from as usize;
        found as u32
    }

    /// Removes and returns the members that have arrived. The next sweeps begin.
    fn take_round(&mut self) -> Vec<u32> {
        (self.ended_sweeps, self.position) = (0, 1);
        let mut round = Vec::new();
        for (other, status) in (0..).zip(&mut self.statuses).filter(|(_, status)| **status == Status::Arrived)
        {
            *status = Status::Served;
            round.push(other);
        }
        self.unserved -= round.len();
        round
    }
}
