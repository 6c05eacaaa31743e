//! Measurement of a link's load beyond its capacity.

use pdes_core::{SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::{WINDOW_EPOCHS, unit};

/// Integrates the load of a link, by epochs and by windows of epochs, and its excess over the capacity.
///
/// All sums are in units of load times picoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Instant up to which the load is counted [ps].
    counted_until: u64,
    /// End of the epoch of that instant [ps].
    end: u64,
    /// End of the window of that epoch [ps].
    window_end: u64,
    /// Volume carried in this epoch.
    carried: u128,
    /// Debt: excess volume of earlier epochs over the capacity that later ones have not compensated.
    debt: u128,
    /// Volume carried in the earlier epochs of this window.
    of_window: u128,
    /// Largest excess volume of any window over the capacity.
    worst: u128,
    forecast: LoadForecast,
    /// Instant [ps] of the coming epoch, and the change of mean load expected in it.
    coming_change: (u64, i64),
}

/// Expected mean load of a link in an epoch, as far as is known.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct LoadForecast {
    /// Load at the begin of the epoch.
    base: u64,
    /// Change by announced begins and ends of flows.
    change: i64,
    /// Mean load of flows that began unannounced.
    unannounced: u64,
}

/// Returns the volume that a load carries in a time.
#[inline]
fn volume(load: u64, picos: u64) -> u128 {
    u128::from(load) * u128::from(picos)
}

impl Meter {
    /// Counts the load from the last call to now.
    #[inline]
    pub(super) fn count(&mut self, load: u64, capacity: u64, now: SimTime, epoch: u64) {
        let now = now.as_picos();
        if now == self.counted_until {
            return;
        }
        if now > self.end {
            self.close_epochs(load, capacity, now, epoch);
        }
        self.carried += volume(load, now - self.counted_until);
        self.counted_until = now;
    }

    /// Goes on with another capacity at the end of an epoch, which is open yet: that epoch and its window had the former one.
    pub(super) fn change_capacity(&mut self, from: u64, to: u64, epoch: u64) {
        if self.end == 0 {
            return;
        }
        let excess_kept =
            |carried: u128, picos| (carried + volume(to, picos)).saturating_sub(volume(from, picos));
        let window_begin = self.window_end.saturating_sub(WINDOW_EPOCHS * epoch);
        self.of_window = excess_kept(self.of_window, (self.end - epoch).saturating_sub(window_begin));
        self.carried = excess_kept(self.carried, epoch);
        self.worst = (self.worst / u128::from(from)).saturating_mul(u128::from(to));
    }

    /// Closes the epochs that are over at an instant; an epoch that ends exactly then stays open.
    fn close_epochs(&mut self, load: u64, capacity: u64, now: u64, epoch: u64) {
        let carried = self.carried + volume(load, self.end - self.counted_until);
        self.carried = 0;
        let all = volume(capacity, epoch);
        if self.debt > 0 || carried > all {
            self.debt = (self.debt + carried).saturating_sub(all);
        }
        self.of_window += carried;
        let last = (now - 1) / epoch * epoch;
        // All epochs in between have the same load.
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
        let change = if self.coming_change.0 == last { self.coming_change.1 } else { 0 };
        self.forecast = LoadForecast { base: load, change, unannounced: 0 };
        (self.counted_until, self.end) = (last, last + epoch);
    }

    /// Closes the windows that are over at the begin of an epoch; the load has been constant since the end of the
    /// last one.
    fn close_windows(&mut self, load: u64, capacity: u64, last: u64, window: u64) {
        let carried = self.of_window + volume(load, self.window_end - self.end);
        self.worst = self.worst.max(carried.saturating_sub(volume(capacity, window)));
        if last - self.window_end >= window {
            self.worst = self.worst.max(volume(load.saturating_sub(capacity), window));
        }
        let first = self.window_end + (last - self.window_end) / window * window;
        self.of_window = volume(load, last - first);
        self.window_end = first + window;
    }

    /// Counts the load up to now. What was expected in an epoch that is over does not matter any more.
    pub(super) fn settle(&mut self, load: u64, capacity: u64, now: SimTime, epoch: u64) {
        let now = now.as_picos().max(self.counted_until);
        self.count(load, capacity, SimTime::from_picos(now), epoch);
        if self.coming_change.0 < now {
            self.coming_change = (now, 0);
        }
    }

    /// Returns the debt as a mean load over an epoch, at a boundary up to which the load has been counted.
    pub(super) fn debt(&self, capacity: u64, epoch: u64) -> u64 {
        let owed = self.debt + self.carried;
        if owed == 0 {
            return 0;
        }
        let gone = self.counted_until + epoch - self.end;
        unit::mean_rate(owed.saturating_sub(volume(capacity, gone)), epoch)
    }

    /// Adds the change of mean load by an announced begin or end in the epoch that begins now.
    pub(super) fn add_expected(&mut self, now: SimTime, change: i64) {
        let now = now.as_picos();
        let before = if self.coming_change.0 == now { self.coming_change.1 } else { 0 };
        self.coming_change = (now, before + change);
    }

    /// Adds the mean load of a flow that begins unannounced in the present epoch.
    pub(super) fn add_unannounced(&mut self, load: u64) {
        self.forecast.unannounced += load;
    }

    /// Returns whether announced begins exceed ends in the present epoch, up to whose present instant the load has
    /// been counted.
    #[inline]
    pub(super) fn expects_more(&self) -> bool {
        self.forecast.change > 0
    }

    /// Returns the expected mean load of the link over the present epoch, debt included. The load must have been
    /// counted up to now.
    pub(super) fn expected_load(&self, epoch: u64) -> u64 {
        let LoadForecast { base, change, unannounced } = self.forecast;
        (base + unannounced).saturating_add_signed(change).saturating_add(unit::mean_rate(self.debt, epoch))
    }

    /// Returns the largest excess of a window over the capacity, as a fraction of it. An unfinished window counts as
    /// if no load followed.
    pub(super) fn violation(&self, capacity: u64, epoch: u64) -> f64 {
        let all = volume(capacity, epoch * WINDOW_EPOCHS);
        let unfinished = (self.of_window + self.carried).saturating_sub(all);
        self.worst.max(unfinished) as f64 / all as f64
    }
}

impl State for Meter {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { counted_until, end, window_end, carried, debt, of_window, worst, forecast, coming_change } =
            self;
        [counted_until, end].into_iter().for_each(|at| unit::visit_instant(at, visitor));
        visitor.plain(carried);
        visitor.plain(debt);
        visitor.plain(forecast);
        unit::visit_instant(&mut coming_change.0, visitor);
        visitor.plain(&mut coming_change.1);
        // Windows are reported only, and begin at any epoch after a repetition.
        if !visitor.is_observing() {
            unit::visit_instant(window_end, visitor);
        }
        visitor.saved(of_window);
        visitor.saved(worst);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EPOCH: u64 = 7;
    const CAPACITY: u64 = 10;

    proptest! {
        /// Compares with the load of every picosecond.
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
