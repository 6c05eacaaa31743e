//! How much more than its capacity a link has carried.

use pdes_core::SimTime;

use super::{WINDOW_EPOCHS, unit};

/// Adds up what a link carries, epoch by epoch and over windows of epochs, and by how much that exceeds its capacity.
///
/// All sums are of loads times picoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Up to where the load is counted [ps].
    since: u64,
    /// The end of the epoch that it lies in [ps].
    end: u64,
    /// The end of the window that this epoch lies in [ps].
    window_end: u64,
    /// What has been carried in this epoch.
    carried: u128,
    /// What earlier epochs have carried beyond the capacity and later ones have not given back.
    debt: u128,
    /// What the earlier epochs of this window have carried.
    of_window: u128,
    /// The most that any window has carried beyond the capacity.
    worst: u128,
    outlook: Outlook,
    /// What will change in the epoch that begins at an instant [ps], for its outlook.
    coming: (u64, i64),
}

/// What a link will have carried in an epoch when that is over, as far as is known: mean loads.
#[derive(Clone, Copy, Debug, Default)]
struct Outlook {
    /// The load when the epoch began.
    base: u64,
    /// What known beginnings and ends add to that.
    change: i64,
    /// What flows add that have begun unknown.
    unknown: u64,
}

/// What a load brings over a link in a time.
#[inline]
fn volume(load: u64, picos: u64) -> u128 {
    u128::from(load) * u128::from(picos)
}

impl Meter {
    /// Counts the load from the last call to now.
    #[inline]
    pub(super) fn count(&mut self, load: u64, capacity: u64, now: SimTime, epoch: u64) {
        let now = now.as_picos();
        if now == self.since {
            return;
        }
        if now > self.end {
            self.turn_over(load, capacity, now, epoch);
        }
        self.carried += volume(load, now - self.since);
        self.since = now;
    }

    /// Closes the epochs that are over at an instant; one that ends then is not.
    fn turn_over(&mut self, load: u64, capacity: u64, now: u64, epoch: u64) {
        let carried = self.carried + volume(load, self.end - self.since);
        self.carried = 0;
        let all = volume(capacity, epoch);
        if self.debt > 0 || carried > all {
            self.debt = (self.debt + carried).saturating_sub(all);
        }
        self.of_window += carried;
        let last = (now - 1) / epoch * epoch;
        // All epochs in between are alike.
        let between = last - self.end;
        if load > capacity {
            self.debt += volume(load - capacity, between);
        } else if self.debt > 0 {
            self.debt = self.debt.saturating_sub(volume(capacity - load, between));
        }
        if last < self.window_end {
            self.of_window += volume(load, between);
        } else {
            self.close_windows(load, capacity, last, WINDOW_EPOCHS * epoch);
        }
        let change = if self.coming.0 == last { self.coming.1 } else { 0 };
        self.outlook = Outlook { base: load, change, unknown: 0 };
        (self.since, self.end) = (last, last + epoch);
    }

    /// Closes the windows that are over at the beginning of an epoch, since the end of the last one at this load.
    fn close_windows(&mut self, load: u64, capacity: u64, last: u64, window: u64) {
        let carried = self.of_window + volume(load, self.window_end - self.end);
        self.worst = self.worst.max(carried.saturating_sub(volume(capacity, window)));
        if last - self.window_end >= window {
            self.worst = self.worst.max(volume(load.saturating_sub(capacity), window));
        }
        let first = last / window * window;
        self.of_window = volume(load, last - first);
        self.window_end = first + window;
    }

    /// Returns the mean load that gives back in an epoch what was carried too much, at a boundary up to which the load has been
    /// counted.
    pub(super) fn debt(&self, capacity: u64, epoch: u64) -> u64 {
        let owed = self.debt + self.carried;
        if owed == 0 {
            return 0;
        }
        let gone = self.since + epoch - self.end;
        unit::mean(owed.saturating_sub(volume(capacity, gone)), epoch)
    }

    /// Notes what a known beginning or end adds to the mean load of the epoch that begins now.
    pub(super) fn expect(&mut self, now: SimTime, change: i64) {
        let now = now.as_picos();
        let before = if self.coming.0 == now { self.coming.1 } else { 0 };
        self.coming = (now, before + change);
    }

    /// Notes what a flow adds to the mean load of the epoch in progress that has begun unknown.
    pub(super) fn surprise(&mut self, load: u64) {
        self.outlook.unknown += load;
    }

    /// Returns whether more is known to begin in the epoch in progress than to end, where the load has been counted up to now.
    #[inline]
    pub(super) fn expects_more(&self) -> bool {
        self.outlook.change > 0
    }

    /// Returns the mean load that the link will have had when the epoch in progress is over, with what earlier ones have
    /// carried too much, where the load has been counted up to now.
    pub(super) fn outlook(&self, epoch: u64) -> u64 {
        let Outlook { base, change, unknown } = self.outlook;
        (base + unknown).saturating_add_signed(change).saturating_add(unit::mean(self.debt, epoch))
    }

    /// Returns the most that a window carried beyond the capacity, as a part of it. A window that is not over counts as
    /// if nothing followed.
    pub(super) fn violation(&self, capacity: u64, epoch: u64) -> f64 {
        let all = volume(capacity, epoch * WINDOW_EPOCHS);
        let unfinished = (self.of_window + self.carried).saturating_sub(all);
        self.worst.max(unfinished) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EPOCH: u64 = 7;
    const CAPACITY: u64 = 10;

    proptest! {
        /// Against the load of every picosecond.
        #[test]
        fn windows_and_debts_are_those_of_each_picosecond(
            changes in proptest::collection::vec((0_u64..25, prop_oneof![1_u64..10, 1_u64..600]), 1..20),
        ) {
            let mut meter = Meter::default();
            let (mut now, mut loads) = (0, Vec::new());
            for &(load, picos) in &changes {
                now += picos;
                loads.resize(now as usize, load);
                meter.count(load, CAPACITY, SimTime::from_picos(now), EPOCH);
            }
            let over = |loads: &[u64]| loads.iter().sum::<u64>() as i64 - (loads.len() as u64 * CAPACITY) as i64;
            let window = EPOCH * WINDOW_EPOCHS;
            let carried = loads.chunks(window as usize).map(|loads| loads.iter().sum::<u64>());
            let worst = carried.max().unwrap_or(0).saturating_sub(window * CAPACITY);
            let expected = worst as f64 / (window * CAPACITY) as f64;
            prop_assert!((meter.violation(CAPACITY, EPOCH) - expected).abs() < 1e-12);
            let debt = loads.chunks(EPOCH as usize).fold(0, |debt, loads| (debt + over(loads)).max(0));
            prop_assert_eq!(meter.debt(CAPACITY, EPOCH), debt as u64 / EPOCH);
        }
    }
}
