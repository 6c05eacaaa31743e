//! Schedules: the steps of a member, one at a time.

use super::Step;
use serde::{Deserialize, Serialize};

/// The steps of one member of a collective operation, in order.
pub type Schedule<'a> = Box<dyn Steps + Send + 'a>;

/// What the last step has brought to light.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The step asks nothing.
    #[default]
    Nothing,
    /// Whether a [`Look`](Step::Look) found an announcement.
    Found(bool),
    /// The numbers for which a [`Learn`](Step::Learn) waited.
    Learned([u32; 2]),
}

/// Steps that are made one by one, each when the one before it has been carried out.
///
/// Every iterator over steps is such a sequence, which does not listen to answers.
///
/// # Laws
/// What comes next depends on the answers so far and on nothing else. After the last step there is none.
pub trait Steps {
    /// Returns the next step, if there is one. The answer is that to the step before it.
    fn next_step(&mut self, answer: Answer) -> Option<Step>;

    /// Takes these steps, then others.
    fn then<S: Steps>(self, next: S) -> Then<Self, S>
    where
        Self: Sized,
    {
        Then { first: Some(self), next }
    }

    /// Gives peers other numbers.
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

/// Steps and then others; see [`Steps::then`].
#[derive(Debug)]
pub struct Then<A, B> {
    first: Option<A>,
    next: B,
}

impl<A: Steps, B: Steps> Steps for Then<A, B> {
    fn next_step(&mut self, answer: Answer) -> Option<Step> {
        let Some(first) = &mut self.first else { return self.next.next_step(answer) };
        first.next_step(answer).or_else(|| {
            self.first = None;
            self.next.next_step(Answer::Nothing)
        })
    }
}

/// Steps whose peers have other numbers; see [`Steps::renumbered`].
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

/// Takes the steps of one schedule after the other, each of which is made when the one before it has ended.
pub(super) fn in_turn<'a>(mut schedules: impl Iterator<Item = Schedule<'a>> + Send + 'a) -> Schedule<'a> {
    let current = schedules.next();
    Box::new(InTurn { current, schedules })
}

struct InTurn<'a, I> {
    current: Option<Schedule<'a>>,
    schedules: I,
}

impl<'a, I: Iterator<Item = Schedule<'a>>> Steps for InTurn<'a, I> {
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
