//! Threads of control of a rank: its program, and operations that do not block it.

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

/// Where a strand stands.
///
/// Operations that do not block go on beside the program, each with a clock of its own, as if a thread of the library
/// made progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Strand {
    pub(super) clock: SimTime,
    /// The index of the action that it carries out.
    pub(super) action: u64,
    /// When it posted a send or a receive last, and how many at that instant.
    last_post: SimTime,
    posts: u32,
    /// Where its posts stand among those of the rank at one instant.
    first_round: u32,
}

/// Posts of an operation beside the program, at one instant; more of them share their place with the next operation.
const ROUNDS: u32 = 1 << 20;

impl Strand {
    /// Makes the strand of the program.
    pub(super) fn main() -> Self {
        Self { clock: SimTime::ZERO, action: 0, last_post: SimTime::ZERO, posts: 0, first_round: 0 }
    }

    /// Makes the strand of the `number`-th operation beside the program, which begins when this one has got here.
    pub(super) fn branch(&self, number: u32) -> Self {
        // After all posts of the program at this instant, and the operations in their order.
        let first_round = (1 << 31) + number % (1 << 11) * ROUNDS;
        Self { first_round, posts: 0, ..*self }
    }

    /// Moves the strand on in time.
    pub(super) fn delay(&mut self, time: SimDuration) {
        self.clock += time;
        self.last_post = self.last_post.saturating_add(time);
    }

    /// Counts the posts of the strand at its present instant. SimGrid lets ranks take turns: each makes one call, then
    /// each that can makes its next one. Flows that start at one instant start in that order.
    #[inline]
    pub(super) fn next_round(&mut self) -> u32 {
        if self.last_post != self.clock {
            (self.last_post, self.posts) = (self.clock, 0);
        }
        self.posts += 1;
        self.first_round + self.posts
    }
}
