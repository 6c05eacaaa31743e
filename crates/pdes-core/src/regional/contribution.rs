//! The contribution of regions to the reduction over workers and members at a barrier.

use serde::{Deserialize, Serialize};

use crate::SimTime;

/// Number of words of a contribution to a [barrier](crate::Barrier).
pub(super) const WORDS: usize = 7;

/// The contribution of one or more regions: a sum, five minima, of which [`SimTime::MAX`] means none, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contribution {
    /// Number of messages sent in this phase.
    pub(super) messages: u64,
    /// Some of them are tokens of processes.
    pub(super) has_tokens: bool,
    /// Time of the next event.
    pub(super) event: SimTime,
    /// Next boundary at which a region is active.
    pub(super) boundary: SimTime,
    /// Time of the earliest failure.
    pub(super) failure: SimTime,
    /// Time of a conditional event for which a process has paused.
    pub(super) conditional: SimTime,
    /// Clock of a process that has come to a checkpoint in this run.
    pub(super) checkpoint: SimTime,
    /// A worker has seen the request to stop.
    pub(super) is_interrupted: bool,
}

impl Contribution {
    pub(super) const IDENTITY: Self = Self {
        messages: 0,
        has_tokens: false,
        event: SimTime::MAX,
        boundary: SimTime::MAX,
        failure: SimTime::MAX,
        conditional: SimTime::MAX,
        checkpoint: SimTime::MAX,
        is_interrupted: false,
    };

    pub(super) fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.has_tokens |= other.has_tokens;
        self.event = self.event.min(other.event);
        self.boundary = self.boundary.min(other.boundary);
        self.failure = self.failure.min(other.failure);
        self.conditional = self.conditional.min(other.conditional);
        self.checkpoint = self.checkpoint.min(other.checkpoint);
        self.is_interrupted |= other.is_interrupted;
    }

    /// Encodes the contribution for a [barrier](crate::Barrier).
    pub(super) fn words(self) -> [u64; WORDS] {
        let Self { messages, has_tokens, event, boundary, failure, conditional, checkpoint, is_interrupted } =
            self;
        let flags = u64::from(is_interrupted) << 1 | u64::from(has_tokens);
        let [event, boundary, failure, conditional, checkpoint] =
            [event, boundary, failure, conditional, checkpoint].map(SimTime::as_picos);
        [messages, flags, event, boundary, failure, conditional, checkpoint]
    }

    /// Reduces the contributions of all workers.
    pub(super) fn reduce(contributions: impl Iterator<Item = [u64; WORDS]>) -> Self {
        let mut all = Self::IDENTITY;
        for [messages, flags, times @ ..] in contributions {
            let [event, boundary, failure, conditional, checkpoint] = times.map(SimTime::from_picos);
            let (has_tokens, is_interrupted) = (flags & 1 != 0, flags >> 1 != 0);
            all.merge(Self {
                messages,
                has_tokens,
                event,
                boundary,
                failure,
                conditional,
                checkpoint,
                is_interrupted,
            });
        }
        all
    }
}
