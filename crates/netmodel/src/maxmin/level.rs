//! Computation of the level at which a link is full.

use super::filling::{FrozenLevel, TIE};
use super::group::{Group, LinkState};
use super::{Link, MaxMin, Member, TOLERANCE};
use crate::Sharing;

/// Linear piece, around one level, of the load of a link as a function of the level.
#[derive(Clone, Copy)]
struct Piece {
    /// Capacity that the flows limited below the level leave.
    room: f64,
    /// Sum of the shares of the other flows.
    rising: f64,
    /// Greatest limit below the level, and least limit at or above it: in between the function is linear.
    below: f64,
    above: f64,
}

/// Number of partial sums, for instruction-level parallelism.
const PARTIAL_SUMS: usize = 4;

impl Piece {
    const EMPTY: Self = Self { room: 0.0, rising: 0.0, below: 0.0, above: f64::INFINITY };

    #[inline(always)]
    fn add(&mut self, share: f64, limit: f64, level: f64) {
        // All ones if the flow rises.
        let rises = u64::from(limit >= level).wrapping_neg();
        let where_it_rises = |number: f64| f64::from_bits(number.to_bits() & rises);
        let where_it_does_not = |number: f64| f64::from_bits(number.to_bits() & !rises);
        self.room -= where_it_does_not(share * limit);
        self.rising += where_it_rises(share);
        self.below = greater(self.below, where_it_does_not(limit));
        self.above = lesser(self.above, where_it_rises(limit) + where_it_does_not(f64::INFINITY));
    }

    /// Adds terms with these shares and limits. No branch depends on a limit, because it would be mispredicted, and
    /// partial sums run side by side, because each addition waits for the one before.
    #[inline(always)]
    fn add_all<T>(self, all: &[T], level: f64, of: impl Fn(&T) -> (f64, f64)) -> Self {
        let mut chunks = all.chunks_exact(PARTIAL_SUMS);
        let mut sum = self;
        if chunks.len() > 0 {
            let mut lanes = [self, Self::EMPTY, Self::EMPTY, Self::EMPTY];
            for chunk in &mut chunks {
                let terms: [(f64, f64); PARTIAL_SUMS] = std::array::from_fn(|lane| of(&chunk[lane]));
                for (lane, (share, limit)) in lanes.iter_mut().zip(terms) {
                    lane.add(share, limit, level);
                }
            }
            sum = lanes.into_iter().reduce(Self::join).unwrap_or(self);
        }
        for rest in chunks.remainder() {
            let (share, limit) = of(rest);
            sum.add(share, limit, level);
        }
        sum
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

/// Returns the greater of two numbers, neither of them NaN, in one instruction.
#[inline]
fn greater(one: f64, other: f64) -> f64 {
    if one > other { one } else { other }
}

/// Returns the lesser of two numbers, neither of them NaN, in one instruction.
#[inline]
fn lesser(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}

impl Link {
    /// Returns whether the only flow of the link fills it below a limit.
    #[inline]
    pub(super) fn is_filled_by(&self, only: &Member, limit: f64) -> bool {
        only.share * limit > self.capacity * (1.0 + TOLERANCE)
    }

    /// Returns whether a shared link has room for all its flows at these limits.
    #[inline]
    pub(super) fn has_room(&self, limit: impl Fn(&Member) -> f64) -> bool {
        if let [only] = &self.members[..] {
            return !self.is_filled_by(only, limit(only));
        }
        let mut carried = 0.0;
        self.members.iter().all(|member| {
            carried += member.share * limit(member);
            carried <= self.capacity
        })
    }
}

impl MaxMin {
    /// Returns the level at which the link is full if its flows rise together up to their limits; infinite if they do
    /// not fill it.
    ///
    /// Takes one pass over the flows of the link if the level has not moved past the limit of any, else a few.
    pub(super) fn level_of(&self, link: u32) -> f64 {
        let link = &self.links[link as usize];
        let &Link { capacity, sharing, ref members, ref sweep_state, .. } = link;
        match (sharing, &members[..]) {
            (Sharing::Shared, [only]) => {
                let fills = link.is_filled_by(only, self.limits[only.flow as usize]);
                if fills { capacity / only.share } else { f64::INFINITY }
            }
            (Sharing::Shared, members) => {
                let empty = Piece { room: capacity, ..Piece::EMPTY };
                level_of_shared(sweep_state.level, |level| {
                    empty.add_all(members, level, |member| (member.share, self.limits[member.flow as usize]))
                })
            }
            (Sharing::FatPipe, members) => {
                level_of_fat_pipe(capacity, members, |flow| self.limits[flow as usize])
            }
        }
    }

    /// Returns the same as [`MaxMin::level_of`] during a filling: sums over groups instead of flows, and searches
    /// from `start`.
    pub(super) fn level_of_groups(&self, index: u32, start: f64) -> f64 {
        let (link, state) = (&self.links[index as usize], &self.filling.link_states[index as usize]);
        let limit_of_home = |bottleneck: u32| self.filling.frozen_levels[bottleneck as usize].limit();
        let alone = &link.members[..state.at_ceiling as usize];
        match link.sharing {
            Sharing::Shared => level_of_shared(start, |level| {
                let own = Piece { room: link.capacity, rising: state.own_share, ..Piece::EMPTY };
                let groups =
                    own.add_all(&state.groups, level, |group| (group.share, limit_of_home(group.bottleneck)));
                groups.add_all(alone, level, |member| (member.share, self.limits[member.flow as usize]))
            }),
            Sharing::FatPipe => level_of_fat_pipe(link.capacity, &link.members, |flow| {
                self.flows[flow as usize].bottleneck.map_or(self.limits[flow as usize], limit_of_home)
            }),
        }
    }

    /// Returns the same as [`MaxMin::level_of_groups`], faster if no flow of the link is frozen above the level
    /// `reached`. Also returns whether flows with another bottleneck may rise to the level.
    pub(super) fn level_in_order(&self, index: u32, start: f64, reached: f64) -> (f64, bool) {
        let (link, state) = (&self.links[index as usize], &self.filling.link_states[index as usize]);
        if link.sharing == Sharing::Shared && self.modified.skipped.is_empty() {
            let (FrozenLevel { level: carried, rising }, ceiling) = self.sum_of_others(link, state, reached);
            let all_rising = rising + state.own_share;
            if all_rising > 0.0 {
                let level = (link.capacity - carried) / all_rising;
                if reached <= level && level <= ceiling {
                    return (level, rising > 0.0);
                }
            } else if carried <= link.capacity * (1.0 + TIE) {
                return (f64::INFINITY, false);
            }
        }
        (self.level_of_groups(index, start), true)
    }

    /// Returns the capacity of a link over its load if the link is the bottleneck of no flow and not overloaded. Each
    /// of its flows is then frozen elsewhere or at its ceiling; a flow whose ceiling just fills the link needs no
    /// entry in the fill order.
    #[inline]
    pub(super) fn headroom(&self, link: &Link, state: &LinkState) -> Option<f64> {
        if state.is_bottleneck() || link.sharing == Sharing::FatPipe {
            return None;
        }
        let FrozenLevel { level, rising } = sum_of_groups(&state.groups, &self.filling.frozen_levels);
        let alone = link.members[..state.at_ceiling as usize].iter();
        let carried = alone.fold(level, |sum, member| sum + member.share * self.limits[member.flow as usize]);
        let most = link.capacity * (1.0 + TIE);
        (rising == 0.0 && carried <= most).then(|| most / carried)
    }

    /// Returns an estimate of the level at which the link will be full if the other full links keep their levels;
    /// infinite if it probably will not be.
    pub(super) fn expected_level(&self, index: u32) -> f64 {
        let (link, state) = (&self.links[index as usize], &self.filling.link_states[index as usize]);
        if link.sharing == Sharing::FatPipe {
            return self.level_of_groups(index, link.level);
        }
        let reached = if link.level < f64::INFINITY { link.level } else { 0.0 };
        let (FrozenLevel { level, rising }, _) = self.sum_of_others(link, state, reached);
        if level < link.capacity {
            (link.capacity - level) / (rising + state.own_share)
        } else {
            self.level_of_groups(index, link.level)
        }
    }

    /// Sums over the flows of a link with another bottleneck or at their ceilings: the load of those that are frozen
    /// or whose ceiling is at most `reached`, and the shares of those that rise. Also returns the least ceiling of
    /// the latter.
    #[inline(always)]
    fn sum_of_others(&self, link: &Link, state: &LinkState, reached: f64) -> (FrozenLevel, f64) {
        let mut sum = sum_of_groups(&state.groups, &self.filling.frozen_levels);
        let mut least = f64::INFINITY;
        for member in &link.members[..state.at_ceiling as usize] {
            let ceiling = self.limits[member.flow as usize];
            if ceiling <= reached {
                sum.level += member.share * ceiling;
            } else {
                sum.rising += member.share;
                least = lesser(least, ceiling);
            }
        }
        (sum, least)
    }
}

/// Sums the shares of groups times the frozen levels of their bottlenecks.
#[inline]
fn sum_of_groups(groups: &[Group], frozen_levels: &[FrozenLevel]) -> FrozenLevel {
    // Two partial sums, because each addition waits for the one before.
    let mut sums = [[0.0; 2]; 2];
    let mut add = |sum: usize, group: &Group| {
        let FrozenLevel { level, rising } = frozen_levels[group.bottleneck as usize];
        sums[sum] = [sums[sum][0] + group.share * level, sums[sum][1] + group.share * rising];
    };
    let pairs = groups.chunks_exact(2);
    pairs.remainder().iter().for_each(|group| add(0, group));
    pairs.for_each(|pair| {
        add(0, &pair[0]);
        add(1, &pair[1]);
    });
    FrozenLevel { level: sums[0][0] + sums[1][0], rising: sums[0][1] + sums[1][1] }
}

/// Solves `sum_g share_g min(limit_g, x) = capacity` for `x` by Newton's method. The sum is concave in `x`, so that
/// the first step, from any start, ends at or below the solution, and further steps never pass it; it is piecewise
/// linear, so that a step that stays on its piece ends at the solution.
#[inline(always)]
fn level_of_shared(start: f64, piece: impl Fn(f64) -> Piece) -> f64 {
    let mut level = if start.is_finite() { start } else { 0.0 };
    loop {
        let piece = piece(level);
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

/// Returns the level at which the most demanding flow that reaches it fills the pipe alone.
fn level_of_fat_pipe(capacity: f64, members: &[Member], limit: impl Fn(u32) -> f64) -> f64 {
    let mut level = 0.0;
    loop {
        let rising = members.iter().filter(|member| limit(member.flow) >= level);
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
