//! Threads of control of a rank: its program, and non-blocking operations.

use pdes_core::{SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

/// State of a thread of control.
///
/// Non-blocking operations progress beside the program, each with a clock of its own, as if by a progress thread of the
/// library.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) clock: SimTime,
    /// Index of its action.
    pub(crate) action: u64,
    /// Time of its last post of a send or a receive, and the number of posts at that instant.
    last_post: SimTime,
    posts: u32,
    /// Offset of its posts in the order of all posts of the rank at one instant.
    first_round: u32,
}

/// Number of posts of a non-blocking operation at one instant; further ones share order numbers with the next operation.
const ROUNDS_PER_OPERATION: u32 = 1 << 20;

impl Thread {
    /// Creates the thread of a program that starts at an instant.
    pub(crate) fn main(start: SimTime) -> Self {
        Self { clock: start, action: 0, last_post: SimTime::ZERO, posts: 0, first_round: 0 }
    }

    /// Creates the thread of the `number`-th non-blocking operation, which begins at the clock of this one.
    pub(crate) fn fork(&self, number: u32) -> Self {
        // After all posts of the program at this instant, and the operations in their order.
        let first_round = (1 << 31) + number % (1 << 11) * ROUNDS_PER_OPERATION;
        Self { first_round, posts: 0, ..*self }
    }

    /// Creates the thread of an operation of a graph, which posts one message: at one instant, in the order of operations.
    pub(crate) fn of_operation(clock: SimTime, operation: u32) -> Self {
        Self { clock, action: operation.into(), last_post: clock, posts: 0, first_round: operation }
    }

    /// Returns the number of the next post at the present instant, from 1. SimGrid lets ranks take turns: each makes one call, then
    /// each that can makes its next one. Flows that start at one instant start in that order.
    #[inline]
    pub(crate) fn next_round(&mut self) -> u32 {
        if self.last_post != self.clock {
            (self.last_post, self.posts) = (self.clock, 0);
        }
        self.posts += 1;
        self.first_round + self.posts
    }
}

/// The posts at earlier instants make no difference, nor does the action, which is for messages to the user.
impl State for Thread {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let clock_before = self.clock;
        let Self { clock, action, last_post, posts, first_round } = self;
        visitor.time(clock);
        visitor.saved(action);
        visitor.compare(&if *last_post == clock_before { *posts } else { 0 });
        if !visitor.is_observing() {
            visitor.time(last_post);
        }
        visitor.saved(posts);
        visitor.plain(first_round);
    }
}
