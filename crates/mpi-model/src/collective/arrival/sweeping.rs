//! Rounds of the members that rank 0 finds in a few polling sweeps.

use std::iter::once;

use super::conversation::conversation;
use super::{assign, greet, look};
use crate::collective::member::nothing;
use crate::collective::{Answer, Member, Schedule, Steps};

/// Sweeping strategy of rank 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct Sweep {
    /// Number of sweeps per round.
    pub(in crate::collective) times: u32,
    /// Member from which a sweep continues after an announcement was found.
    pub(in crate::collective) again_from: u32,
}

/// Returns rank 0's schedule, which serves all members in rounds: it receives each announcement as soon as it is found, and
/// continues to poll the others. After the last sweep it sends the members that were found their neighbours, and serves
/// them.
pub(in crate::collective) fn serve_after_sweeping<'a>(
    member: Member<'a>,
    sweep: Sweep,
    mut serve: impl FnMut(&[u32]) -> Schedule<'a> + Send + 'a,
) -> Schedule<'a> {
    let mut watch = Watch::new(sweep, member.size);
    conversation(move |answer| {
        if watch.left == 0 {
            return None;
        }
        let mut steps = nothing();
        match answer {
            Answer::Found(true) => steps = Box::new(once(greet(watch.find()))),
            Answer::Found(false) => watch.at += 1,
            Answer::Nothing | Answer::Learned(_) => {}
        }
        if watch.next().is_none() {
            let round = watch.round();
            if !round.is_empty() {
                steps = Box::new(steps.then(assign(&round)).then(serve(&round)));
            }
        }
        Some(match watch.next() {
            Some(other) => Box::new(steps.then(once(look(other)))),
            None => steps,
        })
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Away,
    Here,
    Served,
}

/// State of rank 0.
#[derive(Debug)]
struct Watch {
    sweep: Sweep,
    /// Number of sweeps of this round that have ended.
    sweeps: u32,
    /// Member that is polled.
    at: usize,
    others: Vec<Status>,
    left: usize,
}

impl Watch {
    fn new(sweep: Sweep, size: u32) -> Self {
        let mut others = vec![Status::Away; size as usize];
        others[0] = Status::Served;
        Self { sweep, sweeps: 0, at: 1, left: others.len() - 1, others }
    }

    /// Returns the next member to poll; `None` if the sweeps are over or all members have been served.
    fn next(&mut self) -> Option<u32> {
        while self.left > 0 && self.sweeps < self.sweep.times {
            let found = (self.at..self.others.len()).find(|&other| self.others[other] == Status::Away);
            match found {
                Some(other) => {
                    self.at = other;
                    return Some(other as u32);
                }
                None => (self.sweeps, self.at) = (self.sweeps + 1, 1),
            }
        }
        None
    }

    /// Records that the polled member has arrived; returns it.
    fn find(&mut self) -> u32 {
        let found = self.at;
        self.others[found] = Status::Here;
        self.at = self.sweep.again_from as usize;
        found as u32
    }

    /// Removes and returns the members that have arrived. The next sweeps begin.
    fn round(&mut self) -> Vec<u32> {
        (self.sweeps, self.at) = (0, 1);
        let mut round = Vec::new();
        for (other, status) in (0..).zip(&mut self.others).filter(|(_, status)| **status == Status::Here) {
            *status = Status::Served;
            round.push(other);
        }
        self.left -= round.len();
        round
    }
}
