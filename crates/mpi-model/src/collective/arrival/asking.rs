//! Rounds of the members that a complete poll by rank 0 has found.

use std::iter::once;

use pdes_core::SimDuration;

use super::conversation::conversation;
use super::{assign, greet, look};
use crate::collective::member::nothing;
use crate::collective::{Answer, Member, Schedule, Step, Steps};

/// Polling strategy of rank 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct Ask {
    /// True if members that have been served are polled, too.
    pub(in crate::collective) always: bool,
    /// Pause after each poll.
    pub(in crate::collective) rest: SimDuration,
    /// True if the first unserved member is served if no announcement was found.
    pub(in crate::collective) guesses: bool,
}

/// Returns rank 0's schedule, which serves all members in rounds: it polls one after the other, receives the announcements
/// that it has found, sends each member its neighbours, and serves the round. `end` is the last step for each member that
/// was served before it announced itself.
pub(in crate::collective) fn serve_after_asking<'a>(
    member: Member<'a>,
    ask: Ask,
    mut serve: impl FnMut(&[u32]) -> Schedule<'a> + Send + 'a,
    end: impl Fn(u32) -> Step + Send + 'a,
) -> Schedule<'a> {
    let mut asking = Asking::new(ask, member.size);
    conversation(move |answer| {
        let mut steps = nothing();
        if let Answer::Found(found) = answer {
            asking.take_in(found);
            if ask.rest > SimDuration::ZERO {
                steps = Box::new(once(Step::Sleep { duration: ask.rest }));
            }
        }
        if asking.is_over() {
            return asking.guessed.take().map(|guessed| -> Schedule<'a> {
                let ends: Vec<Step> = guessed.into_iter().map(&end).collect();
                Box::new(ends.into_iter())
            });
        }
        if asking.next().is_none() {
            let announced = asking.announced();
            let greetings: Vec<Step> = announced.iter().copied().map(greet).collect();
            let round = if announced.is_empty() { asking.guess() } else { announced };
            steps = Box::new(steps.then(greetings.into_iter()));
            if let Some(&first) = round.first() {
                debug_assert!(first > 0);
                steps = Box::new(steps.then(assign(&round)).then(serve(&round)));
            }
        }
        Some(match asking.next() {
            Some(other) => Box::new(steps.then(once(look(other)))),
            None => steps,
        })
    })
}

/// State of rank 0.
#[derive(Debug)]
struct Asking {
    ask: Ask,
    /// Member that is polled.
    at: usize,
    found: Vec<bool>,
    served: Vec<bool>,
    left: usize,
    /// Members that were served before they announced themselves.
    guessed: Option<Vec<u32>>,
}

impl Asking {
    fn new(ask: Ask, size: u32) -> Self {
        let size = size as usize;
        let of_none = || vec![false; size];
        Self { ask, at: 1, found: of_none(), served: of_none(), left: size - 1, guessed: Some(Vec::new()) }
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Returns the next member to poll; `None` at the end of a poll.
    fn next(&mut self) -> Option<u32> {
        if self.is_over() {
            return None;
        }
        while self.at < self.served.len() && self.served[self.at] && !self.ask.always {
            self.at += 1;
        }
        (self.at < self.served.len()).then_some(self.at as u32)
    }

    fn take_in(&mut self, found: bool) {
        self.found[self.at] = found;
        self.at += 1;
    }

    /// Removes and returns a round: the unserved members that were found. The next poll begins.
    fn announced(&mut self) -> Vec<u32> {
        self.at = 1;
        let round: Vec<usize> =
            (1..self.found.len()).filter(|&other| self.found[other] && !self.served[other]).collect();
        round.iter().for_each(|&other| self.serve(other));
        round.into_iter().map(|other| other as u32).collect()
    }

    /// Removes and returns the first unserved member, if the strategy serves unannounced members.
    fn guess(&mut self) -> Vec<u32> {
        let first = (1..self.served.len()).find(|&other| !self.served[other]);
        let Some(first) = first.filter(|_| self.ask.guesses) else { return Vec::new() };
        self.serve(first);
        self.guessed.get_or_insert_default().push(first as u32);
        vec![first as u32]
    }

    fn serve(&mut self, other: usize) {
        self.served[other] = true;
        self.left -= 1;
    }
}
