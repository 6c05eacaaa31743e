//! What links keep back at a boundary for what will change in the epoch.
//!
//! Rates are constant in an epoch, but not the flows: some begin and some end. A link shares out to those that stay what makes
//! its mean load over the epoch its capacity: less than all of it where flows will begin, more where flows will end.

use super::sharing::{Home, Sharing, Use};
use super::unit::{FREE, WHOLE, fill};
use super::way::Usage;

/// A link shares out this part of its capacity at least, whatever it keeps back.
const LEAST_PART: i64 = 16;

impl Sharing {
    /// Keeps back the mean rate that a flow will have that begins in the epoch, where a link has other flows.
    pub(super) fn expect(&mut self, usages: &[Usage], mean: impl Fn() -> u64) {
        for &Usage { link, weight } in usages {
            if !self.links[link as usize].is_idle() {
                self.plan(link, mean().cast_signed() * i64::from(weight));
            }
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

    fn plan(&mut self, number: u32, load: i64) {
        let link = &mut self.links[number as usize];
        link.planned += load;
        if !std::mem::replace(&mut link.is_listed, true) {
            self.listed.push(number);
        }
    }

    /// Sets the reserves for the epoch that begins, and gives up those of the last one. A link that holds nobody back, with
    /// its reserve and without, and has no flow that has just begun, needs none.
    pub(super) fn keep_reserves(&mut self) {
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|&number| {
            let link = &mut self.links[number as usize];
            if link.is_idle() {
                (link.planned, link.reserve, link.is_listed) = (0, 0, false);
                return false;
            }
            link.count(self.now, self.epoch);
            let capacity = i64::try_from(link.capacity).unwrap_or(i64::MAX / i64::from(WHOLE));
            let debt = i64::try_from(link.meter.debt(link.capacity, self.epoch)).unwrap_or(capacity);
            let planned = std::mem::take(&mut link.planned).saturating_add(debt);
            let before = link.reserve;
            link.reserve =
                if link.is_pipe { 0 } else { planned.clamp(-capacity, capacity - capacity / LEAST_PART) };
            // Below zero it is what lets a link carry more at the boundary than over the epoch.
            let is_roomy = link.is_roomy() && link.load + 2 * link.weights <= link.capacity;
            if link.level == FREE && link.open_shares == 0 && is_roomy {
                link.reserve = 0;
            }
            link.is_listed = link.reserve != 0;
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
}
