//! Reserves: the part of a link's capacity that is kept at a boundary for flows that begin or end in the epoch.
//!
//! Rates are constant in an epoch, but the set of flows is not. A link shares among the flows that stay as much as makes
//! its mean load over the epoch its capacity: less than its capacity if flows will begin, more if flows will end.

use pdes_core::SimTime;

use super::route::RegionUsage;
use super::solver::{Bottleneck, Link, RegionSolver, Use};
use super::unit::{self, FULL_WEIGHT, UNLIMITED, filling_level};

/// Inverse of the part of its capacity that a link shares at least, whatever its reserve.
const MIN_CAPACITY_PART: i64 = 16;

/// Inverse of the part of its capacity by which initial rates may overload a link in an epoch, debt included: this
/// keeps the overload below 1 % in ten epochs for any traffic.
const EXCESS_PART: u64 = 12;

/// Inverse of the part of its initial rate that a flow keeps at least when the overload limit lowers it.
const MIN_OFFER_PART: u64 = 16;

/// Returns the least rate to which the overload limit lowers an initial rate.
pub(super) fn min_offer(rate: u64) -> u64 {
    (rate / MIN_OFFER_PART).max(1)
}

impl Link {
    /// Returns the mean load over the coming epoch of the flows that will end in it, plus the debt; `None` if there
    /// are no such flows.
    pub(super) fn expected_ending_load(&mut self, now: SimTime, epoch: u64) -> Option<u64> {
        (self.ending_load > 0).then(|| {
            self.count_load(now, epoch);
            self.ending_load + self.meter.debt(self.capacity, epoch)
        })
    }

    /// Returns the mean load that a link may have in an epoch beside another load.
    pub(super) fn room_beside(&self, load: u64) -> u64 {
        (self.capacity + self.capacity / EXCESS_PART).saturating_sub(load)
    }

    /// Lowers the rate of a flow so that the link, beside another mean load in the epoch, carries not much more than
    /// its capacity. The flow brings at most `volume` in the rest of the epoch, `time`.
    pub(super) fn limit_rate(
        &self,
        rate: u64,
        weight: u32,
        (volume, time, epoch): (u128, u64, u64),
        load: u64,
    ) -> u64 {
        let room = u128::from(self.room_beside(load) / u64::from(weight)) * u128::from(epoch);
        if (u128::from(rate) * u128::from(time)).min(volume) <= room {
            return rate;
        }
        unit::mean_rate(room, time).clamp(min_offer(rate), rate)
    }
}

impl RegionSolver {
    /// Reserves the mean rate of a flow that begins in the epoch, on links with other flows. The part that flows from
    /// the boundary on, `at_once`, belongs to the load that its links have then.
    pub(super) fn reserve_for(&mut self, usages: &[RegionUsage], mean: u64, at_once: u64) {
        for &RegionUsage { link: number, weight } in usages {
            let [load, at_once] = [mean, at_once].map(|rate| rate.cast_signed() * i64::from(weight));
            let link = &mut self.links[number as usize];
            if link.is_idle() {
                link.meter.add_expected(self.now, load - at_once);
                continue;
            }
            if at_once > 0 {
                link.meter.add_expected(self.now, -at_once);
            }
            self.add_reserve(number, load);
        }
    }

    /// Lets a flow keep its rate until its end in the epoch; `mean` is its mean rate over the epoch.
    pub(super) fn keep_rate_until_end(&mut self, index: u32, mean: u64) {
        let flow = &mut self.flows[index as usize];
        let was = std::mem::replace(&mut flow.bottleneck, Bottleneck::Ending);
        let (rate, share, level) = (flow.rate, flow.share, flow.level);
        self.new_alive -= u32::from(was == Bottleneck::New);
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link: number, weight, .. } = self.flows[index as usize].uses[place];
            let link = &mut self.links[number as usize];
            link.ending_load = 0;
            if was == Bottleneck::New || was == Bottleneck::Link(number) {
                link.open_load -= rate * u64::from(weight);
                link.open_shares -= share * u64::from(weight);
            }
            if link.level != UNLIMITED {
                let at = level.min(link.level);
                self.mark(number, at);
            }
            self.add_reserve(number, (mean.cast_signed() - rate.cast_signed()) * i64::from(weight));
        }
    }

    /// Adds the mean rate of a flow that will end in the epoch to its links, before they offer rates to others.
    pub(super) fn expect_end(&mut self, index: u32, mean: u64) {
        for used in &self.flows[index as usize].uses {
            let link = &mut self.links[used.link as usize];
            if !link.is_fat_pipe {
                link.ending_load += mean * u64::from(used.weight);
            }
        }
    }

    fn add_reserve(&mut self, number: u32, load: i64) {
        let link = &mut self.links[number as usize];
        link.planned_reserve += load;
        if !std::mem::replace(&mut link.has_reserve_entry, true) {
            self.reserve_links.push(number);
        }
    }

    /// Sets the reserves for the coming epoch, and releases those of the last one.
    pub(super) fn set_reserves(&mut self) {
        let mut listed = std::mem::take(&mut self.reserve_links);
        listed.retain(|&number| {
            let link = &mut self.links[number as usize];
            if link.is_idle() {
                (link.planned_reserve, link.reserve, link.has_reserve_entry) = (0, 0, false);
                return false;
            }
            link.count_load(self.now, self.epoch);
            link.meter.add_expected(self.now, link.planned_reserve);
            let capacity = i64::try_from(link.capacity).unwrap_or(i64::MAX / i64::from(FULL_WEIGHT));
            let debt = i64::try_from(link.meter.debt(link.capacity, self.epoch)).unwrap_or(capacity);
            let planned = std::mem::take(&mut link.planned_reserve).saturating_add(debt);
            let before = link.reserve;
            link.reserve = if link.is_fat_pipe {
                0
            } else {
                planned.clamp(-capacity, capacity - capacity / MIN_CAPACITY_PART)
            };
            // A negative reserve lets a link carry more at the boundary than its mean over the epoch.
            let is_roomy = link.has_spare_capacity() && link.load + 2 * link.weights <= link.capacity;
            link.has_reserve_entry = link.reserve != 0;
            if link.level == UNLIMITED && link.open_shares == 0 && is_roomy {
                self.spare_links.extend(link.has_reserve_entry.then_some(number));
                return link.has_reserve_entry;
            }
            let (reserve, is_listed) = (link.reserve, link.has_reserve_entry);
            if reserve != before {
                let room = link.capacity.saturating_add_signed(-reserve.max(before));
                let at = filling_level(room, link.shares).min(link.level);
                self.mark(number, at);
            }
            is_listed
        });
        debug_assert!(self.reserve_links.is_empty());
        self.reserve_links = listed;
    }

    /// Releases the reserves, after the solve, of links that were not full before and still are not: flows could have
    /// risen until they filled these links, so the reserve had to be kept during the solve.
    pub(super) fn release_reserves(&mut self) {
        if self.spare_links.is_empty() {
            return;
        }
        for number in self.spare_links.drain(..) {
            let link = &mut self.links[number as usize];
            if link.level == UNLIMITED && link.load + 2 * link.weights <= link.capacity {
                (link.reserve, link.has_reserve_entry) = (0, false);
            }
        }
        let links = &self.links;
        self.reserve_links.retain(|&number| links[number as usize].has_reserve_entry);
    }
}
