//! Carbon intensity of electricity.

use std::ops::Range;

use pdes_core::SimTime;

/// Joules in a kilowatt-hour.
const JOULES: f64 = 3.6e6;

/// Carbon intensity of the electricity of a machine, constant between instants.
#[derive(Clone, Debug, PartialEq)]
pub struct CarbonIntensity(Vec<(SimTime, f64)>);

impl CarbonIntensity {
    /// Makes the intensity that has a value \[g/kWh\] from each of some instants on, which ascend from 0; `None` if they do not, or a value is
    /// not 0 or more.
    pub fn new(values: Vec<(SimTime, f64)>) -> Option<Self> {
        let begins_at_zero = values.first().is_some_and(|&(at, _)| at == SimTime::ZERO);
        let ascends = values.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let are_valid = values.iter().all(|&(_, value)| value.is_finite() && value >= 0.0);
        (begins_at_zero && ascends && are_valid).then_some(Self(values))
    }

    /// Returns the integral of the intensity over an interval [g/J s].
    pub(crate) fn integral(&self, time: Range<SimTime>) -> f64 {
        let ends = self.0.iter().skip(1).map(|&(at, _)| at).chain([SimTime::MAX]);
        let parts = self.0.iter().zip(ends).map(|(&(from, value), end)| {
            let (from, end) = (from.max(time.start), end.min(time.end));
            end.checked_since(from).map_or(0.0, |time| time.as_secs_f64() * value / JOULES)
        });
        parts.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_integrated_by_its_steps() {
        let at = |seconds: u64| SimTime::from_picos(seconds * 1_000_000_000_000);
        let intensity = CarbonIntensity::new(vec![(at(0), 360.0), (at(10), 36.0)]).unwrap();
        let integral = intensity.integral(at(8)..at(20));
        assert!((integral - (2.0 * 1e-4 + 10.0 * 1e-5)).abs() < 1e-18, "{integral}");
        assert_eq!(intensity.integral(at(3)..at(3)), 0.0);
        for wrong in [vec![], vec![(at(1), 1.0)], vec![(at(0), 1.0), (at(0), 2.0)], vec![(at(0), -1.0)]] {
            assert_eq!(CarbonIntensity::new(wrong), None);
        }
    }
}
