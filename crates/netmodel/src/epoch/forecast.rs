//! Initial rates of announced flows, whose begins in the epoch are known.
//!
//! A flow has one rate until the next boundary, and flows that begin together must not each get the capacity of one. So
//! the link simulates processor sharing of its available capacity among them over the epoch, as they come and end, and
//! offers each its mean rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pdes_core::SimTime;

use super::solver::Link;
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
struct FlowState {
    /// Integral of the level when the flow began.
    level_integral: u128,
    /// Level at that time; it has been constant since if `is_constant`.
    level: u64,
    is_constant: bool,
    rate: Option<u64>,
}

/// Simulation of processor sharing, for one link after the other.
#[derive(Debug, Default)]
pub(super) struct Forecast {
    flows: Vec<FlowState>,
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
        self.flows.clear();
        self.active.clear();
        let (mut now, mut sum, mut shares) = (SimTime::ZERO, 0_u128, 0_u64);
        for (number, arrival) in (0..).zip(arrivals) {
            sum = self.advance(link, arrivals, (now, arrival.begin), sum, &mut shares);
            now = arrival.begin;
            shares += arrival.share * u64::from(arrival.weight);
            self.active
                .iter()
                .for_each(|&Reverse((_, other))| self.flows[other as usize].is_constant = false);
            let level = link.joining_level(shares);
            self.flows.push(FlowState { level_integral: sum, level, is_constant: true, rate: None });
            let length = (arrival.volume << unit::SHARE_BITS) / u128::from(arrival.share);
            self.active.push(Reverse((sum + length, number)));
        }
        sum = self.advance(link, arrivals, (now, end), sum, &mut shares);
        for (state, arrival) in self.flows.iter().zip(arrivals) {
            let Arrival { flow, begin, share, bound, .. } = *arrival;
            let rate = state.rate.unwrap_or_else(|| {
                let mean = (sum - state.level_integral) / u128::from((end - begin).as_picos());
                let level =
                    if state.is_constant { state.level } else { u64::try_from(mean).unwrap_or(u64::MAX) };
                rate_at(level, share, bound)
            });
            offer(flow, rate);
        }
    }

    /// Advances the time and ends flows; returns the integral of the level.
    fn advance(
        &mut self,
        link: &Link,
        arrivals: &[Arrival],
        (mut now, until): (SimTime, SimTime),
        mut sum: u128,
        shares: &mut u64,
    ) -> u128 {
        while let Some(&Reverse((target, number))) = self.active.peek() {
            let level = link.joining_level(*shares).max(1);
            let needed = unit::duration(target - sum, level);
            if now.saturating_add(needed) > until {
                return sum + unit::volume(level, now, until);
            }
            self.active.pop();
            (now, sum) = (now.saturating_add(needed), target);
            let Arrival { begin, volume, share, weight, bound, .. } = arrivals[number as usize];
            *shares -= share * u64::from(weight);
            self.active
                .iter()
                .for_each(|&Reverse((_, other))| self.flows[other as usize].is_constant = false);
            let state = &mut self.flows[number as usize];
            let time = u128::from((now - begin).as_picos());
            state.rate = Some(if state.is_constant || time == 0 {
                rate_at(state.level, share, bound)
            } else {
                u64::try_from(volume.div_ceil(time)).unwrap_or(u64::MAX).clamp(1, bound)
            });
        }
        sum
    }
}
