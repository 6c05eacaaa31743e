//! Rounds of the members that a complete poll by rank 0 has found.

use std::iter::once;

use pdes_core::SimDuration;

use super::reactive::reactive;
use super::{poll_announcement, recv_announcement, send_ring_neighbours};
use crate::collective::member::empty_schedule;
use crate::collective::{Answer, Member, Schedule, Step, Steps};

/// Polling strategy of rank 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct PollStrategy {
    /// True if members that have been served are polled, too.
    pub(in crate::collective) polls_served: bool,
    /// Pause after each poll.
    pub(in crate::collective) pause: SimDuration,
    /// True if the first unserved member is served if no announcement was found.
    pub(in crate::collective) serves_unannounced: bool,
}

/// Returns rank 0's schedule, which serves all members in rounds: it polls one after the other, receives the announcements
/// that it has found, sends each member its neighbours, and serves the round. `end` is the last step for each member that
/// was served before it announced itself.
pub(in crate::collective) fn serve_after_polls<'a>(
    member: Member<'a>,
    ask: PollStrategy,
    mut serve: impl FnMut(&[u32]) -> Schedule<'a> + Send + 'a,
    end: impl Fn(u32) -> Step + Send + 'a,
) -> Schedule<'a> {
    let mut state = PollState::new(ask, member.size);
    reactive(move |answer| {
        let mut steps = empty_schedule();
        if let Answer::Found(found) = answer {
            state.record_poll(found);
            if ask.pause > SimDuration::ZERO {
                steps = Box::new(once(Step::Sleep { duration: ask.pause }));
            }
        }
        if state.is_over() {
            return state.served_unannounced.take().map(|guessed| -> Schedule<'a> {
                let ends: Vec<Step> = guessed.into_iter().map(&end).collect();
                Box::new(ends.into_iter())
            });
        }
        if state.next_to_poll().is_none() {
            let announced = state.take_announced();
            let greetings: Vec<Step> = announced.iter().copied().map(recv_announcement).collect();
            let round = if announced.is_empty() { state.take_unannounced() } else { announced };
            steps = Box::new(steps.then(greetings.into_iter()));
            if let Some(&first) = round.first() {
                debug_assert!(first > 0);
                steps = Box::new(steps.then(send_ring_neighbours(&round)).then(serve(&round)));
            }
        }
        Some(match state.next_to_poll() {
            Some(other) => Box::new(steps.then(once(poll_announcement(other)))),
            None => steps,
        })
    })
}

/// State of rank 0.
#[derive(Debug)]
struct PollState {
    strategy: PollStrategy,
    /// Member that is polled.
    position: usize,
    found: Vec<bool>,
    served: Vec<bool>,
    unserved: usize,
    /// Members that were served before they announced themselves.
    served_unannounced: Option<Vec<u32>>,
}

impl PollState {
    fn new(ask: PollStrategy, size: u32) -> Self {
        let size = size as usize;
        let of_none = || vec![false; size];
        Self {
            strategy: ask,
            position: 1,
            found: of_none(),
            served: of_none(),
            unserved: size - 1,
            served_unannounced: Some(Vec::new()),
        }
    }

    fn is_over(&self) -> bool {
        self.unserved == 0
    }

    /// Returns the next member to poll; `None` at the end of a poll.
    fn next_to_poll(&mut self) -> Option<u32> {
        if self.is_over() {
            return None;
        }
        while self.position < self.served.len() && self.served[self.position] && !self.strategy.polls_served {
            self.position += 1;
        }
        (self.position < self.served.len()).then_some(self.position as u32)
    }

    fn record_poll(&mut self, found: bool) {
        self.found[self.position] = found;
        self.position += 1;
    }

    /// Removes and returns a round: the unserved members that were found. The next poll begins.
    fn take_announced(&mut self) -> Vec<u32> {
        self.position = 1;
        let round: Vec<usize> =
            (1..self.found.len()).filter(|&other| self.found[other] && !self.served[other]).collect();
        round.iter().for_each(|&other| self.serve(other));
        round.into_iter().map(|other| other as u32).collect()
    }

    /// Removes and returns the first unserved member, if the strategy serves unannounced members.
    fn take_unannounced(&mut self) -> Vec<u32> {
        let first = (1..self.served.len()).find(|&other| !self.served[other]);
        let Some(first) = first.filter(|_| self.strategy.serves_unannounced) else { return Vec::new() };
        self.serve(first);
        self.served_unannounced.get_or_insert_default().push(first as u32);
        vec![first as u32]
    }

    fn serve(&mut self, other: usize) {
        self.served[other] = true;
        self.unserved -= 1;
    }
}
