//! Dates and spans of time of a batch system.

use std::fmt;
use std::ops::{Add, Sub};

/// Number of microseconds in a second.
const MICROS: u64 = 1_000_000;

/// An instant, since the beginning of the workload \[us\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(u64);

/// A length of time \[us\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Date {
    /// The beginning of the workload.
    pub const ZERO: Self = Self(0);

    /// Returns the date so many microseconds after the beginning.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the date that is nearest to so many seconds; `None` if they are negative, or more than 290,000 years.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        micros(seconds).map(Self)
    }

    /// Returns the date that is nearest to so many picoseconds after the beginning.
    pub const fn from_picos(picos: u64) -> Self {
        Self(picos / 1_000_000 + (picos % 1_000_000 >= 500_000) as u64)
    }

    /// Returns the number of microseconds since the beginning.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Returns the number of seconds since the beginning.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
}

impl Span {
    /// The shortest time between two instants that differ.
    pub const SHORTEST: Self = Self(1);

    /// Returns a length of so many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the length that is nearest to so many seconds; `None` if they are negative, or more than 290,000 years.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        micros(seconds).map(Self)
    }

    /// Returns the number of seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
}

/// Rounds to microseconds. Half of the numbers that fit are left for sums.
fn micros(seconds: f64) -> Option<u64> {
    let micros = (seconds * MICROS as f64).round();
    (0.0..(i64::MAX as f64)).contains(&micros).then_some(micros as u64)
}

impl Add<Span> for Date {
    type Output = Self;

    /// Returns the later date.
    ///
    /// # Panics
    /// If it is after all dates.
    fn add(self, span: Span) -> Self {
        Self(self.0.checked_add(span.0).expect("a schedule ends within 580,000 years"))
    }
}

impl Sub for Date {
    type Output = Span;

    /// Returns the time since an earlier date.
    ///
    /// # Panics
    /// If that date is later.
    fn sub(self, earlier: Self) -> Span {
        Span(self.0.checked_sub(earlier.0).expect("a date is not before an earlier one"))
    }
}

/// Displays seconds with six decimals.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / MICROS, self.0 % MICROS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_to_microseconds() {
        assert_eq!(Date::from_seconds(4.7091644).map(|date| date.to_string()), Some("4.709164".to_owned()));
        assert_eq!(Span::from_seconds(4e-7), Some(Span::default()));
        for impossible in [-1.0, f64::NAN, 1e14, f64::INFINITY] {
            assert_eq!(Date::from_seconds(impossible), None, "{impossible}");
        }
    }
}
