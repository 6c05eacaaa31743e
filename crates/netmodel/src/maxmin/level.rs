//! The level at which a link is full.

use super::{Link, MaxMin, Member};
use crate::Sharing;

impl MaxMin {
    /// Returns the level at which the link is full, if its flows rise together up to their limits; infinite where they
    /// do not fill it.
    ///
    /// A few passes over the flows of the link.
    pub(super) fn level_of(&self, link: u32) -> f64 {
        let Link { capacity, sharing, ref members, .. } = self.links[link as usize];
        match sharing {
            Sharing::Shared => self.level_of_shared(capacity, members),
            Sharing::FatPipe => self.level_of_fat_pipe(capacity, members),
        }
    }

    /// Solves `sum_f share_f min(limit_f, x) = capacity` for `x` by Newton's method from below. The sum is concave in
    /// `x`, so that the steps never pass the solution, and piecewise linear, so that they end at it.
    fn level_of_shared(&self, capacity: f64, members: &[Member]) -> f64 {
        let mut level = 0.0;
        loop {
            let (mut room, mut rising) = (capacity, 0.0);
            for member in members {
                let limit = self.limits[member.flow as usize];
                if limit < level {
                    room -= member.share * limit;
                } else {
                    rising += member.share;
                }
            }
            if rising == 0.0 {
                return f64::INFINITY;
            }
            let next = room / rising;
            if next <= level {
                return level;
            }
            level = next;
        }
    }

    /// Returns the level at which the most demanding flow that gets there fills the pipe alone.
    fn level_of_fat_pipe(&self, capacity: f64, members: &[Member]) -> f64 {
        let mut level = 0.0;
        loop {
            let rising = members.iter().filter(|member| self.limits[member.flow as usize] >= level);
            let most = rising.map(|member| member.share).fold(0.0, f64::max);
            if most == 0.0 {
                return f64::INFINITY;
            }
            let next = capacity / most;
            if next <= level {
                return level;
            }
            level = next;
        }
    }
}
