//! What links keep back at a boundary for what will change in the epoch.
//!
//! Rates are constant in an epoch, but not the flows: some begin and some end. A link shares out to those that stay what makes
//! its mean load over the epoch its capacity: less than all of it where flows will begin, more where flows will end.

use pdes_core::SimTime;

use super::sharing::{Home, Link, Sharing, Use};
use super::unit::{self, FREE, WHOLE, fill};
use super::way::Usage;

/// A link shares out this part of its capacity at least, whatever it keeps back.
const LEAST_PART: i64 = 16;

/// What flows begin with may let a link carry this part of its capacity too much in an epoch, with what it has in debt: less than
/// 1 % in ten epochs, whatever they are.
const EXCESS_PART: u64 = 12;

/// Where that is exceeded, a flow begins with this part at least of the rate that it would have had.
const LEAST_OFFER: u64 = 16;

/// Returns the least that is left of a rate for the sake of a link.
pub(super) fn least_offer(rate: u64) -> u64 {
    (rate / LEAST_OFFER).max(1)
}

impl Link {
    /// Returns the mean load in the epoch that begins now of the flows that will be let go, and what gives back what was too much;
    /// none where there are no such flows.
    pub(super) fn certain_load(&mut self, now: SimTime, epoch: u64) -> Option<u64> {
        (self.certain > 0).then(|| {
            self.count(now, epoch);
            self.certain + self.meter.debt(self.capacity, epoch)
        })
    }

    /// Returns the mean load that a link may have in an epoch beside another one.
    pub(super) fn beside(&self, load: u64) -> u64 {
        (self.capacity + self.capacity / EXCESS_PART).saturating_sub(load)
    }

    /// Lowers the rate of a flow to what leaves the link, beside a mean load in the epoch, with not much more than its capacity. The
    /// flow brings a volume in what is left of the epoch, `time`, at most.
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
    /// Expects the mean rate that a flow will have that begins in the epoch, and keeps it back where a link has other flows.
    /// What it brings at the boundary itself, `at_once`, is a part of what its links carry then.
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

    /// Lets a flow keep its rate to its end, which lies in the epoch, where it has this mean rate.
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

    /// Notes that a flow will be let go that has this mean rate, before others are offered rates.
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

    /// Sets the reserves for the epoch that begins, and gives up those of the last one.
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
            // Below zero it is what lets a link carry more at the boundary than over the epoch.
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

    /// Gives up the reserves, when all is settled, of links that held nobody back before and still do not: flows could have
    /// risen until these are in their way.
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
