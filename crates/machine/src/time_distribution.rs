//! The times of many runs.

use serde::Serialize;

/// Standard deviations of a normal distribution on each side of its mean that hold 95 % of it.
const DEVIATIONS: f64 = 1.96;

/// Distribution of the times of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeDistribution {
    /// Number of runs.
    pub runs: usize,
    /// Mean time \[s\].
    pub mean_s: f64,
    /// Half the width of the interval that holds the mean of all possible runs with a probability of 95 % \[s\].
    pub confidence_s: f64,
    /// Time that half of the runs exceed \[s\].
    pub median_s: f64,
    /// Time that 95 % of the runs exceed \[s\].
    pub p5_s: f64,
    /// Time that 5 % of the runs exceed \[s\].
    pub p95_s: f64,
}

impl TimeDistribution {
    /// Returns the distribution of some times \[s\]; `None` if there are none. `O(n log n)`.
    ///
    /// ```
    /// use machine::TimeDistribution;
    /// let found = TimeDistribution::of(&[1.0, 2.0, 6.0]).unwrap();
    /// assert_eq!((found.mean_s, found.median_s, found.p95_s), (3.0, 2.0, 5.6));
    /// ```
    pub fn of(times_s: &[f64]) -> Option<Self> {
        let mut sorted = times_s.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let runs = sorted.len();
        let (last, number) = (runs.checked_sub(1)?, runs as f64);
        let mean_s = sorted.iter().sum::<f64>() / number;
        let squares: f64 = sorted.iter().map(|time_s| (time_s - mean_s).powi(2)).sum();
        let variance = squares / (number - 1.0).max(1.0);
        let quantile = |share: f64| {
            let place = share * last as f64;
            let (below, part) = (place.floor(), place.fract());
            let [one, next] = [below as usize, (below as usize + 1).min(last)].map(|place| sorted[place]);
            one + part * (next - one)
        };
        Some(Self {
            runs,
            mean_s,
            confidence_s: DEVIATIONS * (variance / number).sqrt(),
            median_s: quantile(0.5),
            p5_s: quantile(0.05),
            p95_s: quantile(0.95),
        })
    }
}
