//! Reserves: the part of a link's capacity that is kept at a boundary for flows that begin or end in the epoch.
//!
//! Rates are constant in an epoch, but the set of flows is not. A link shares among the flows that stay as much as makes
//! its mean load over the epoch its capacity: less than its capacity if flows will begin, more if flows will end.

use pdes_core::SimTime;

use super::sharing::{Home, Link, Sharing, Use};
use super::unit::{self, FREE, WHOLE, fill};
use super::way::Usage;

/// Inverse of the part of its capacity that a link shares at least, whatever its reserve.
const LEAST_PART: i64 = 16;

/// Inverse of the part of its capacity by which initial rates may overload a link in an epoch, debt included: this
/// keeps the overload below 1 % in ten epochs for any traffic.
const EXCESS_PART: u64 = 12;

/// Inverse of the part of its initial rate that a flow keeps at least when the overload limit lowers it.
const LEAST_OFFER: u64 = 16;

/// Returns the least rate to which the overload limit lowers an initial rate.
pub(super) fn least_offer(rate: u64) -> u64 {
    (rate / LEAST_OFFER).max(1)
}

impl Link {
    /// Returns the mean load over the coming epoch of the flows that will end in it, plus the debt; `None` if there
    /// are no such flows.
    pub(super) fn certain_load(&mut self, now: SimTime, epoch: u64) -> Option<u64> {
        (self.certain > 0).then(|| {
            self.count(now, epoch);
            self.certain + self.meter.debt(self.capacity, epoch)
        })
    }

    /// Returns the mean load that a link may have in an epoch beside another load.
    pub(super) fn beside(&self, load: u64) -> u64 {
        (self.capacity + self.capacity / EXCESS_PART).saturating_sub(load)
    }

    /// Lowers the rate of a flow so that the link, beside another mean load in the epoch, carries not much more than
    /// its capacity. The flow brings at most `volume` in the rest of the epoch, `time`.
    pub(super) fn limit(
        &self,
        rate: u64,
        weight: u32,
        (volume, time, epoch): (u128, u64, u64),
        load: u64,
    ) -> u64 {
        let room = u128::from(self.beside(load) / u64::from(weight)) * u128::from(epoch);
        if (u128::from(rate) * u128::from(time)).min(volume) <= room {
            return rate;
        }
        unit::mean(room, time).clamp(least_offer(rate), rate)
    }
}

impl Sharing {
    /// Reserves the mean rate of a flow that begins in the epoch, on links with other flows. The part that flows from
    /// the boundary on, `at_once`, belongs to the load that its links have then.
    pub(super) fn expect(&mut self, usages: &[Usage], mean: u64, at_once: u64) {
        for &Usage { link: number, weight } in usages {
            let [load, at_once] = [mean, at_once].map(|rate| rate.cast_signed() * i64::from(weight));
            let link = &mut self.links[number as usize];
            if link.is_idle() {
                link.meter.expect(self.now, load - at_once);
                continue;
            }
            if at_once > 0 {
                link.meter.expect(self.now, -at_once);
            }
            self.plan(number, load);
        }
    }

    /// Lets a flow keep its rate until its end in the epoch; `mean` is its mean rate over the epoch.
    pub(super) fn let_go(&mut self, index: u32, mean: u64) {
        let flow = &mut self.flows[index as usize];
        let was = std::mem::replace(&mut flow.home, Home::Leaving);
        let (rate, share, level) = (flow.rate, flow.share, flow.level);
        self.fresh_alive -= u32::from(was == Home::Fresh);
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link: number, weight, .. } = self.flows[index as usize].uses[place];
            let link = &mut self.links[number as usize];
            link.certain = 0;
            if was == Home::Fresh || was == Home::Link(number) {
                link.open_load -= rate * u64::from(weight);
                link.open_shares -= share * u64::from(weight);
            }
            if link.level != FREE {
                let at = level.min(link.level);
                self.mark(number, at);
            }
            self.plan(number, (mean.cast_signed() - rate.cast_signed()) * i64::from(weight));
        }
    }

    /// Adds the mean rate of a flow that will end in the epoch to its links, before they offer rates to others.
    pub(super) fn foresee(&mut self, index: u32, mean: u64) {
        for used in &self.flows[index as usize].uses {
            let link = &mut self.links[used.link as usize];
            if !link.is_pipe {
                link.certain += mean * u64::from(used.weight);
            }
        }
    }

    fn plan(&mut self, number: u32, load: i64) {
        let link = &mut self.links[number as usize];
        link.planned += load;
        if !std::mem::replace(&mut link.is_listed, true) {
            self.listed.push(number);
        }
    }

    /// Sets the reserves for the coming epoch, and releases those of the last one.
    pub(super) fn keep_reserves(&mut self) {
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|&number| {
            let link = &mut self.links[number as usize];
            if link.is_idle() {
                (link.planned, link.reserve, link.is_listed) = (0, 0, false);
                return false;
            }
            link.count(self.now, self.epoch);
            link.meter.expect(self.now, link.planned);
            let capacity = i64::try_from(link.capacity).unwrap_or(i64::MAX / i64::from(WHOLE));
            let debt = i64::try_from(link.meter.debt(link.capacity, self.epoch)).unwrap_or(capacity);
            let planned = std::mem::take(&mut link.planned).saturating_add(debt);
            let before = link.reserve;
            link.reserve =
                if link.is_pipe { 0 } else { planned.clamp(-capacity, capacity - capacity / LEAST_PART) };
            // A negative reserve lets a link carry more at the boundary than its mean over the epoch.
            let is_roomy = link.is_roomy() && link.load + 2 * link.weights <= link.capacity;
            link.is_listed = link.reserve != 0;
            if link.level == FREE && link.open_shares == 0 && is_roomy {
                self.spared.extend(link.is_listed.then_some(number));
                return link.is_listed;
            }
            let (reserve, is_listed) = (link.reserve, link.is_listed);
            if reserve != before {
                let room = link.capacity.saturating_add_signed(-reserve.max(before));
                let at = fill(room, link.shares).min(link.level);
                self.mark(number, at);
            }
            is_listed
        });
        debug_assert!(self.listed.is_empty());
        self.listed = listed;
    }

    /// Releases the reserves, after the solve, of links that were not full before and still are not: flows could have
    /// risen until they filled these links, so the reserve had to be kept during the solve.
    pub(super) fn give_up_reserves(&mut self) {
        if self.spared.is_empty() {
            return;
        }
        for number in self.spared.drain(..) {
            let link = &mut self.links[number as usize];
            if link.level == FREE && link.load + 2 * link.weights <= link.capacity {
                (link.reserve, link.is_listed) = (0, false);
            }
        }
        let links = &self.links;
        self.listed.retain(|&number| links[number as usize].is_listed);
    }
}
