//! Schedules: the lazily produced steps of a member, and combinators for them.

use super::Step;
use serde::{Deserialize, Serialize};

/// The steps of one member of a collective operation, in order.
pub type Schedule<'a> = Box<dyn Steps + Send + 'a>;

/// Result of the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The step has no result.
    #[default]
    Nothing,
    /// True if a [`PollAnnouncement`](Step::PollAnnouncement) found an announcement.
    Found(bool),
    /// The numbers that a [`RecvOutOfBand`](Step::RecvOutOfBand) received.
    Numbers([u32; 2]),
}

/// A sequence of steps, each produced after the step before it has been executed.
///
/// Every iterator over steps is such a sequence, which ignores answers.
///
/// # Laws
/// The next step depends on the answers so far and on nothing else. The end is final: after it, `None` is returned again.
pub trait Steps {
    /// Returns the next step, or `None` at the end. `answer` is the result of the step before.
    fn next_step(&mut self, answer: Answer) -> Option<Step>;

    /// Appends other steps.
    fn then<S: Steps>(self, next: S) -> Then<Self, S>
    where
        Self: Sized,
    {
        Then { first: Some(self), next }
    }

    /// Replaces each peer by `number(peer)`.
    fn renumbered<F: Fn(u32) -> u32>(self, number: F) -> Renumbered<Self, F>
    where
        Self: Sized,
    {
        Renumbered { steps: self, number }
    }
}

impl<I: Iterator<Item = Step>> Steps for I {
    #[inline]
    fn next_step(&mut self, _: Answer) -> Option<Step> {
        self.next()
    }
}

impl Steps for Schedule<'_> {
    #[inline]
    fn next_step(&mut self, answer: Answer) -> Option<Step> {
        (**self).next_step(answer)
    }
}

/// Concatenation of two sequences; see [`Steps::then`].
#[derive(Debug)]
pub struct Then<A, B> {
    first: Option<A>,
    next: B,
}

impl<A: Steps, B: Steps> Steps for Then<A, B> {
    fn next_step(&mut self, answer: Answer) -> Option<Step> {
        let Some(first) = &mut self.first else { return self.next.next_step(answer) };
        first.next_step(answer).or_else(|| {
            // The answer was to the last step of `first`; the next sequence begins without one.
            self.first = None;
            self.next.next_step(Answer::Nothing)
        })
    }
}

/// Steps with renumbered peers; see [`Steps::renumbered`].
#[derive(Debug)]
pub struct Renumbered<S, F> {
    steps: S,
    number: F,
}

impl<S: Steps, F: Fn(u32) -> u32> Steps for Renumbered<S, F> {
    fn next_step(&mut self, answer: Answer) -> Option<Step> {
        self.steps.next_step(answer).map(|step| step.renumber(&self.number))
    }
}

/// Concatenates schedules, each of which is created when the one before it has ended.
pub(crate) fn concatenate<'a>(mut schedules: impl Iterator<Item = Schedule<'a>> + Send + 'a) -> Schedule<'a> {
    let current = schedules.next();
    Box::new(Concatenated { current, schedules })
}

struct Concatenated<'a, I> {
    current: Option<Schedule<'a>>,
    schedules: I,
}

impl<'a, I: Iterator<Item = Schedule<'a>>> Steps for Concatenated<'a, I> {
    fn next_step(&mut self, mut answer: Answer) -> Option<Step> {
        loop {
            let step = self.current.as_mut()?.next_step(std::mem::take(&mut answer));
            if step.is_some() {
                return step;
            }
            self.current = self.schedules.next();
        }
    }
}
