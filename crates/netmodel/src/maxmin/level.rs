//! The level at which a link is full.

use super::{Link, MaxMin, Member, TOLERANCE};
use crate::Sharing;

/// The load of a link as a function of its level, around one level.
#[derive(Clone, Copy)]
struct Piece {
    /// What the flows that are limited below the level leave.
    room: f64,
    /// The shares of the others.
    rising: f64,
    /// The greatest limit below the level, and the least that is not: between them the function is linear.
    below: f64,
    above: f64,
}

/// Sums that run side by side.
const LANES: usize = 4;

impl Piece {
    const EMPTY: Self = Self { room: 0.0, rising: 0.0, below: 0.0, above: f64::INFINITY };

    #[inline(always)]
    fn add(&mut self, share: f64, limit: f64, level: f64) {
        // All ones where the flow rises.
        let rises = u64::from(limit >= level).wrapping_neg();
        let where_it_rises = |number: f64| f64::from_bits(number.to_bits() & rises);
        let where_it_does_not = |number: f64| f64::from_bits(number.to_bits() & !rises);
        self.room -= where_it_does_not(share * limit);
        self.rising += where_it_rises(share);
        self.below = greater(self.below, where_it_does_not(limit));
        self.above = lesser(self.above, where_it_rises(limit) + where_it_does_not(f64::INFINITY));
    }

    fn join(self, other: Self) -> Self {
        Self {
            room: self.room + other.room,
            rising: self.rising + other.rising,
            below: greater(self.below, other.below),
            above: lesser(self.above, other.above),
        }
    }
}

/// The greater of two numbers, in one instruction: neither is NaN.
#[inline]
fn greater(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}

/// The lesser of two numbers, in one instruction: neither is NaN.
#[inline]
fn lesser(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

impl MaxMin {
    /// Returns the level at which the link is full, if its flows rise together up to their limits; infinite where they
    /// do not fill it.
    ///
    /// One pass over the flows of the link where the level has not moved past the limit of any, else a few.
    pub(super) fn level_of(&self, link: u32) -> f64 {
        let Link { capacity, sharing, ref members, ref mark, .. } = self.links[link as usize];
        match sharing {
            Sharing::Shared => self.level_of_shared(capacity, members, mark.level),
            Sharing::FatPipe => self.level_of_fat_pipe(capacity, members),
        }
    }

    /// Solves `sum_f share_f min(limit_f, x) = capacity` for `x` by Newton's method. The sum is concave in `x`, so that
    /// the first step, from wherever the link was full last, ends at the solution or below it, and further steps never
    /// pass it; it is piecewise linear, so that a step that stays on its piece ends there.
    fn level_of_shared(&self, capacity: f64, members: &[Member], start: f64) -> f64 {
        if let [only] = members {
            let limit = self.limits[only.flow as usize];
            let fills = only.share * limit > capacity * (1.0 + TOLERANCE);
            return if fills { capacity / only.share } else { f64::INFINITY };
        }
        let mut level = if start.is_finite() { start } else { 0.0 };
        loop {
            let piece = self.piece(capacity, members, level);
            if piece.rising == 0.0 {
                if piece.room >= 0.0 {
                    return f64::INFINITY;
                }
                level = piece.below;
                continue;
            }
            let next = (piece.room / piece.rising).max(0.0);
            // The tolerance keeps rounding from stepping to and fro across a limit.
            if next >= piece.below * (1.0 - TOLERANCE) && next <= piece.above * (1.0 + TOLERANCE) {
                return next;
            }
            level = next;
        }
    }

    /// Divides the flows of a link by their limits. No branch depends on a limit, which would be mispredicted, and the
    /// lanes run side by side, because each addition waits for the one before.
    #[inline]
    fn piece(&self, capacity: f64, members: &[Member], level: f64) -> Piece {
        let mut lanes = [Piece::EMPTY; LANES];
        lanes[0].room = capacity;
        let mut chunks = members.chunks_exact(LANES);
        for chunk in &mut chunks {
            let limits: [f64; LANES] = std::array::from_fn(|lane| self.limits[chunk[lane].flow as usize]);
            for lane in 0..LANES {
                lanes[lane].add(chunk[lane].share, limits[lane], level);
            }
        }
        for member in chunks.remainder() {
            lanes[0].add(member.share, self.limits[member.flow as usize], level);
        }
        lanes.into_iter().reduce(Piece::join).unwrap_or(Piece::EMPTY)
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
