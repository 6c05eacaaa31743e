//! Initial rates of announced flows, whose begins in the epoch are known.
//!
//! A flow has one rate until the next boundary, and flows that begin together must not each get the capacity of one. So
//! the link simulates processor sharing of its available capacity among them over the epoch, as they come and end, and
//! offers each its mean rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pdes_core::SimTime;

use super::sharing::Link;
use super::unit::{self, rate_at};

/// An announced flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) flow: u32,
    pub(super) begin: SimTime,
    pub(super) volume: u128,
    pub(super) share: u64,
    pub(super) weight: u32,
    pub(super) bound: u64,
}

/// State of a flow that has begun in the simulation.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Integral of the level when the flow began.
    from: u128,
    /// Level at that time; it has been constant since if `is_constant`.
    level: u64,
    is_even: bool,
    rate: Option<u64>,
}

/// Simulation of processor sharing, for one link after the other.
#[derive(Debug, Default)]
pub(super) struct Forecast {
    courses: Vec<Course>,
    /// Active flows, by the integral of the level at which they end.
    active: BinaryHeap<Reverse<(u128, u32)>>,
}

impl Forecast {
    /// Offers rates to several flows in the order in which they begin, all before `end`. `O(n log n)`, and `O(n)` per
    /// flow if flows overlap.
    pub(super) fn rates(
        &mut self,
        link: &Link,
        arrivals: &[Arrival],
        end: SimTime,
        mut offer: impl FnMut(u32, u64),
    ) {
        self.courses.clear();
        self.active.clear();
        let (mut now, mut sum, mut shares) = (SimTime::ZERO, 0_u128, 0_u64);
        for (number, arrival) in (0..).zip(arrivals) {
            sum = self.run(link, arrivals, (now, arrival.begin), sum, &mut shares);
            now = arrival.begin;
            shares += arrival.share * u64::from(arrival.weight);
            self.active.iter().for_each(|&Reverse((_, other))| self.courses[other as usize].is_even = false);
            let level = link.level_for(shares);
            self.courses.push(Course { from: sum, level, is_even: true, rate: None });
            let length = (arrival.volume << unit::SHARE_BITS) / u128::from(arrival.share);
            self.active.push(Reverse((sum + length, number)));
        }
        sum = self.run(link, arrivals, (now, end), sum, &mut shares);
        for (course, arrival) in self.courses.iter().zip(arrivals) {
            let Arrival { flow, begin, share, bound, .. } = *arrival;
            let rate = course.rate.unwrap_or_else(|| {
                let mean = (sum - course.from) / u128::from((end - begin).as_picos());
                let level =
                    if course.is_even { course.level } else { u64::try_from(mean).unwrap_or(u64::MAX) };
                rate_at(level, share, bound)
            });
            offer(flow, rate);
        }
    }

    /// Advances the time and ends flows; returns the integral of the level.
    fn run(
        &mut self,
        link: &Link,
        arrivals: &[Arrival],
        (mut now, until): (SimTime, SimTime),
        mut sum: u128,
        shares: &mut u64,
    ) -> u128 {
        while let Some(&Reverse((target, number))) = self.active.peek() {
            let level = link.level_for(*shares).max(1);
            let needed = unit::duration(target - sum, level);
            if now.saturating_add(needed) > until {
                return sum + unit::volume(level, now, until);
            }
            self.active.pop();
            (now, sum) = (now.saturating_add(needed), target);
            let Arrival { begin, volume, share, weight, bound, .. } = arrivals[number as usize];
            *shares -= share * u64::from(weight);
            self.active.iter().for_each(|&Reverse((_, other))| self.courses[other as usize].is_even = false);
            let course = &mut self.courses[number as usize];
            let time = u128::from((now - begin).as_picos());
            course.rate = Some(if course.is_even || time == 0 {
                rate_at(course.level, share, bound)
            } else {
                u64::try_from(volume.div_ceil(time)).unwrap_or(u64::MAX).clamp(1, bound)
            });
        }
        sum
    }
}
