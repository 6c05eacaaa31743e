//! Simulated time: an instant and a duration, both an integer count of picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// Picoseconds in a second.
const PICOS_PER_SEC: u64 = 1_000_000_000_000;

/// An instant of simulated time: picoseconds since the start of the simulation.
///
/// 64 bits hold 213 days. Instants are compared and subtracted, never added to each other; an operation that leaves
/// the range panics with its operands, because a clock that wraps is a wrong answer.
///
/// ```
/// use pdes_core::{SimDuration, SimTime};
/// let start = SimTime::ZERO;
/// let end = start + SimDuration::from_picos(1_500_000);
/// assert_eq!((end - start).as_picos(), 1_500_000);
/// assert_eq!(end.to_string(), "0.000001500000");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SimTime(u64);

impl SimTime {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be represented.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes the instant that lies this many picoseconds after the start.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Returns the picoseconds since the start.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SEC as f64
    }

    /// Adds, or returns `None` if the sum exceeds the range.
    #[inline]
    pub const fn checked_add(self, duration: SimDuration) -> Option<Self> {
        match self.0.checked_add(duration.0) {
            Some(picos) => Some(Self(picos)),
            None => None,
        }
    }

    /// Returns the time from `earlier` to `self`, or `None` if `earlier` is the later one.
    pub const fn checked_since(self, earlier: Self) -> Option<SimDuration> {
        match self.0.checked_sub(earlier.0) {
            Some(picos) => Some(SimDuration(picos)),
            None => None,
        }
    }

    /// Adds, or returns [`SimTime::MAX`] if the sum exceeds the range.
    pub const fn saturating_add(self, duration: SimDuration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }
}

impl Add<SimDuration> for SimTime {
    type Output = Self;

    /// Moves an instant forward.
    ///
    /// # Panics
    /// If the result exceeds 213 days.
    #[inline]
    fn add(self, duration: SimDuration) -> Self {
        match self.0.checked_add(duration.0) {
            Some(picos) => Self(picos),
            None => leaves_range(self, duration),
        }
    }
}

#[cold]
fn leaves_range(time: SimTime, duration: SimDuration) -> ! {
    panic!("simulated time leaves its range of 213 days: {time} s + {duration} s")
}

impl AddAssign<SimDuration> for SimTime {
    #[inline]
    fn add_assign(&mut self, duration: SimDuration) {
        *self = *self + duration;
    }
}

impl Sub for SimTime {
    type Output = SimDuration;

    /// Returns the time from `earlier` to `self`.
    ///
    /// # Panics
    /// If `earlier` is the later one.
    #[inline]
    fn sub(self, earlier: Self) -> SimDuration {
        match self.0.checked_sub(earlier.0) {
            Some(picos) => SimDuration(picos),
            None => runs_backwards(self, earlier),
        }
    }
}

#[cold]
fn runs_backwards(time: SimTime, earlier: SimTime) -> ! {
    panic!("time runs backwards: {time} s - {earlier} s")
}

/// Prints seconds with all twelve decimals.
impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SimDuration(self.0).fmt(f)
    }
}

/// A length of simulated time \[ps\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SimDuration(u64);

impl SimDuration {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Makes a duration of this many picoseconds.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos)
    }

    /// Returns the picoseconds.
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Returns the seconds, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PICOS_PER_SEC as f64
    }

    /// Rounds a number of picoseconds to the nearest integer, halves up.
    ///
    /// Only additions, multiplications and this rounding lie between a model's parameters and a duration: all are
    /// exactly specified by IEEE 754, so that every host computes the same bits.
    ///
    /// # Panics
    /// If the number is negative, not a number, or beyond 106 days (9.2e18 ps).
    #[inline]
    pub fn from_picos_f64(picos: f64) -> Self {
        match Self::try_from_picos_f64(picos) {
            Some(duration) => duration,
            None => panic!("a duration of {picos} ps cannot be represented"),
        }
    }

    /// Rounds as [`SimDuration::from_picos_f64`] does, or returns `None` if that would panic.
    #[inline]
    #[allow(unsafe_code)]
    pub fn try_from_picos_f64(picos: f64) -> Option<Self> {
        if !(0.0..9.2e18).contains(&picos) {
            return None;
        }
        // One instruction: a conversion that saturates takes eight, for each computation and each message.
        // SAFETY: the number is not NaN, and within the range of an i64.
        let rounded = unsafe { (picos + 0.5).to_int_unchecked::<i64>() };
        Some(Self(rounded as u64))
    }

    /// Rounds a number of seconds to the nearest picosecond, or returns `None` if it is negative, not a number, or beyond
    /// 106 days.
    pub fn try_from_secs_f64(seconds: f64) -> Option<Self> {
        Self::try_from_picos_f64(seconds * PICOS_PER_SEC as f64)
    }
}

impl SimDuration {
    /// Returns the sum, or `None` where it exceeds the range.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(picos) => Some(Self(picos)),
            None => None,
        }
    }

    /// Returns the product, or `None` where it exceeds the range.
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(picos) => Some(Self(picos)),
            None => None,
        }
    }
}

impl Add for SimDuration {
    type Output = Self;

    /// Adds.
    ///
    /// # Panics
    /// If the sum exceeds 213 days.
    #[inline]
    fn add(self, other: Self) -> Self {
        match self.0.checked_add(other.0) {
            Some(picos) => Self(picos),
            None => duration_leaves_range(self, other),
        }
    }
}

#[cold]
fn duration_leaves_range(duration: SimDuration, other: SimDuration) -> ! {
    panic!("a duration leaves its range of 213 days: {duration} s + {other} s")
}

impl AddAssign for SimDuration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for SimDuration {
    type Output = Self;

    /// Multiplies by a count.
    ///
    /// # Panics
    /// If the product exceeds 213 days.
    fn mul(self, count: u64) -> Self {
        match self.0.checked_mul(count) {
            Some(picos) => Self(picos),
            None => panic!("a duration leaves its range of 213 days: {self} s * {count}"),
        }
    }
}

impl std::iter::Sum for SimDuration {
    fn sum<I: Iterator<Item = Self>>(durations: I) -> Self {
        durations.fold(Self::ZERO, Add::add)
    }
}

/// Prints seconds with all twelve decimals, or with as many as the precision asks for (`{:.6}`), rounded half up.
impl fmt::Display for SimDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(12).min(12);
        let unit = 10_u64.pow(12 - digits as u32);
        let scaled = self.0 / unit + u64::from(self.0 % unit >= unit.div_ceil(2) && unit > 1);
        let per_second = PICOS_PER_SEC / unit;
        match digits {
            0 => write!(f, "{scaled}"),
            _ => write!(f, "{}.{:0digits$}", scaled / per_second, scaled % per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_picosecond() {
        assert_eq!(SimDuration::try_from_secs_f64(50e-6), Some(SimDuration(50_000_000)));
        assert_eq!(SimDuration::try_from_secs_f64(1.5e-12), Some(SimDuration(2)));
        assert_eq!(SimDuration::try_from_secs_f64(-1e-12), None);
        assert_eq!(SimDuration::try_from_secs_f64(f64::NAN), None);
        assert_eq!(SimDuration::try_from_secs_f64(1e9), None);
    }

    #[test]
    fn display_rounds_half_up_at_the_asked_precision() {
        let time = SimTime(17_121_204_000_499);
        assert_eq!(format!("{time}"), "17.121204000499");
        assert_eq!(format!("{time:.9}"), "17.121204000");
        assert_eq!(format!("{:.9}", SimTime(500)), "0.000000001");
        assert_eq!(format!("{:.9}", SimTime(499)), "0.000000000");
        assert_eq!(format!("{:.0}", SimTime(1_500_000_000_000)), "2");
    }

    #[test]
    #[should_panic(expected = "time runs backwards")]
    fn time_never_runs_backwards() {
        let _ = SimTime(1) - SimTime(2);
    }
}
