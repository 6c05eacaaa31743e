//! How much more than its capacity a link has carried.

use pdes_core::SimTime;

use super::WINDOW_EPOCHS;

/// Adds up by how much the load of a link exceeds its capacity, epoch by epoch and over windows of epochs.
///
/// All sums are of loads times picoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Up to where the load is counted [ps].
    since: u64,
    /// The end of the epoch that it lies in [ps].
    end: u64,
    /// What has been carried beyond the capacity in this epoch; below zero, what has been left unused.
    excess: i128,
    /// What earlier epochs have carried too much and later ones have not given back.
    debt: i128,
    /// The excess of the earlier epochs of this window.
    of_window: i128,
    /// The most that any window has carried beyond the capacity.
    worst: i128,
}

/// What a link has carried and could carry.
fn excess(load: u64, capacity: u64, picos: u64) -> i128 {
    i128::from(load.cast_signed() - capacity.cast_signed()) * i128::from(picos)
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
        self.excess += excess(load, capacity, now - self.since);
        self.since = now;
    }

    /// Closes the epochs that are over at an instant; one that ends then is not.
    fn turn_over(&mut self, load: u64, capacity: u64, now: u64, epoch: u64) {
        self.excess += excess(load, capacity, self.end - self.since);
        self.since = self.end;
        let last = (now - 1) / epoch * epoch;
        self.close(epoch);
        if self.since < last {
            self.pass_to(load, capacity, last, epoch);
        }
        self.end = last + epoch;
    }

    /// Closes the whole epochs up to the beginning of another one, all of the same load.
    fn pass_to(&mut self, load: u64, capacity: u64, last: u64, epoch: u64) {
        self.debt = (self.debt + excess(load, capacity, last - self.since)).max(0);
        let window = WINDOW_EPOCHS * epoch;
        let first = self.since / window * window + window;
        if last < first {
            self.of_window += excess(load, capacity, last - self.since);
        } else {
            self.worst = self.worst.max(self.of_window + excess(load, capacity, first - self.since));
            if last - first >= window {
                self.worst = self.worst.max(excess(load, capacity, window));
            }
            self.of_window = excess(load, capacity, (last - first) % window);
        }
        self.since = last;
    }

    /// Closes an epoch that has been counted.
    fn close(&mut self, epoch: u64) {
        self.debt = (self.debt + self.excess).max(0);
        self.of_window += self.excess;
        self.excess = 0;
        if (self.since / epoch).is_multiple_of(WINDOW_EPOCHS) {
            self.worst = self.worst.max(self.of_window);
            self.of_window = 0;
        }
    }

    /// Returns the mean load that gives back in an epoch what was carried too much, at a boundary up to which the load has been
    /// counted.
    pub(super) fn debt(&self, epoch: u64) -> u64 {
        u64::try_from((self.debt + self.excess).max(0) / i128::from(epoch)).unwrap_or(u64::MAX)
    }

    /// Returns the most that a window carried beyond the capacity, as a part of it. A window that is not over counts as
    /// if nothing followed.
    pub(super) fn violation(&self, capacity: u64, epoch: u64) -> f64 {
        let window = i128::from(epoch) * i128::from(WINDOW_EPOCHS);
        let gone = i128::from(self.since) % window;
        let unfinished = self.of_window + self.excess - i128::from(capacity) * ((window - gone) % window);
        self.worst.max(unfinished).max(0) as f64 / (i128::from(capacity) * window) as f64
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
            prop_assert_eq!(meter.debt(EPOCH), debt as u64 / EPOCH);
        }
    }
}
