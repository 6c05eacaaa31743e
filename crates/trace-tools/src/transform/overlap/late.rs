//! Waits that end behind later operations.

use std::collections::VecDeque;

use trace_mmap::folded::State;

use super::{Held, Role};
use crate::transform::Step;
use crate::transform::state::Stateful;

/// Waits that are late, in order. Each may pass equally many computations, so that the first one ends first.
#[derive(Debug, Default)]
pub(super) struct LateWaits {
    /// The waits, each with the number of computations at which it ends.
    pub(super) waits: VecDeque<(Held, u64)>,
    /// Number of waits that have ended.
    ended: u64,
    /// Number of the last wait of each role, from 1.
    last: [u64; Role::ALL.len()],
    /// Number of computations so far.
    computations: u64,
}

impl LateWaits {
    /// Adds a wait that may pass so many computations.
    pub(super) fn push(&mut self, wait: Held, reach: u32) {
        self.last[wait.role as usize] = self.ended + self.waits.len() as u64 + 1;
        self.waits.push_back((wait, self.computations + u64::from(reach)));
    }

    /// Ends all waits up to the last one that does not pass the next operation.
    pub(super) fn end_before(&mut self, passes: impl Fn(Role) -> bool) -> impl Iterator<Item = Step> + '_ {
        let stopped =
            Role::ALL.into_iter().filter(|role| !passes(*role)).map(|role| self.last[role as usize]);
        let stopped = stopped.max().unwrap_or(0).saturating_sub(self.ended);
        self.end(stopped as usize)
    }

    /// Takes note of a computation, and ends the waits that pass no more.
    pub(super) fn pass_computation(&mut self) -> impl Iterator<Item = Step> + '_ {
        self.computations += 1;
        let ended = self.waits.iter().take_while(|(_, end)| *end <= self.computations).count();
        self.end(ended)
    }

    fn end(&mut self, waits: usize) -> impl Iterator<Item = Step> + '_ {
        self.ended += waits as u64;
        self.waits.drain(..waits).map(|(wait, _)| wait.step)
    }
}

impl Stateful for LateWaits {
    fn state(&mut self, state: &mut State<'_>) {
        state.word(self.waits.len() as u64);
        for (wait, end) in &mut self.waits {
            wait.state(state);
            state.word(*end - self.computations);
        }
    }
}
