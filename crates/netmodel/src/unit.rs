//! Quantities as text: a number and a unit, as SimGrid's platform files and this program's reports write them.

use thiserror::Error;

/// The kinds of quantity that platforms and configurations hold. Blanks may stand between number and unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Bytes per second: `Bps` or `B/s` (bytes) and `bps`, `b/s` or `bit/s` (bits), prefixes `k M G T P E Z Y` (powers of 1000) and
    /// `Ki Mi ..` (of 1024).
    Bandwidth,
    /// Seconds: `w d h m s ms us ns ps`; `µs` is `us`.
    Time,
    /// Flop per second: `f` or `flop/s` with `k M G T P E Z Y`, `flops` with `kilo mega giga tera peta exa zetta yotta`.
    Speed,
    /// Bytes: `B` with the prefixes of bandwidths.
    Size,
}

/// A number in SI units, read from text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity {
    /// The value, in B/s, s or flop/s.
    pub(crate) value: f64,
    /// The text named a unit. Zero needs none.
    pub(crate) has_unit: bool,
}

/// Error in the text of a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text does not begin with a decimal number, or the number exceeds the range of a double.
    #[error("it does not begin with a finite decimal number")]
    Number,
    /// The text after the number is not a unit of this kind of quantity.
    #[error("unknown unit {found:?}, expected {expected}")]
    Unit {
        /// Text after the number.
        found: Box<str>,
        /// The units of the expected kind.
        expected: &'static str,
    },
    /// The number has no unit but needs one.
    #[error("it has no unit: append one ({expected}), or write a number without quotes")]
    NoUnit {
        /// The units of the expected kind.
        expected: &'static str,
    },
}

const DECIMAL: [(&str, f64); 9] = [
    ("", 1.0),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("Z", 1e21),
    ("Y", 1e24),
];

const BINARY: [&str; 8] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];

const SPELLED: [&str; 8] = ["kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta"];

const TIMES: [(&str, f64); 11] = [
    ("w", 604_800.0),
    ("d", 86_400.0),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    // The micro sign, and the Greek letter.
    ("\u{b5}s", 1e-6),
    ("\u{3bc}s", 1e-6),
    ("ns", 1e-9),
    ("ps", 1e-12),
];

impl Dimension {
    /// Names the unit of a number without one.
    pub(crate) const fn si_unit(self) -> &'static str {
        match self {
            Self::Bandwidth => "B/s",
            Self::Time => "s",
            Self::Speed => "flop/s",
            Self::Size => "B",
        }
    }

    /// Returns a common unit and that of a number without one, as they follow a number.
    pub(crate) const fn unit_examples(self) -> [&'static str; 2] {
        match self {
            Self::Bandwidth => ["MBps", "Bps"],
            Self::Time => ["us", "s"],
            Self::Speed => ["Gf", "f"],
            Self::Size => ["MB", "B"],
        }
    }

    /// Returns the smallest and the largest value of this kind, but for zero, that a machine can have.
    pub(crate) const fn range(self) -> (f64, f64) {
        match self {
            Self::Bandwidth => (1.0, 1e18),
            // Ten times the longest duration of simulated time.
            Self::Time => (0.0, 1e8),
            Self::Speed => (1.0, 1e24),
            Self::Size => (0.0, f64::MAX),
        }
    }

    /// Names the units of this kind, for messages.
    pub(crate) const fn units(self) -> &'static str {
        match self {
            Self::Bandwidth => "B/s, Bps, bit/s or bps with a prefix k M G T P E Z Y or Ki Mi Gi ..",
            Self::Time => "w d h m s ms us ns or ps",
            Self::Speed => "flop/s or f with a prefix k M G T P E Z Y, or flops with kilo mega giga ..",
            Self::Size => "B with a prefix k M G T P E Z Y or Ki Mi Gi ..",
        }
    }

    /// Reads a number and its unit. A number without unit is in SI units.
    pub(crate) fn parse(self, text: &str) -> Result<Quantity, UnitError> {
        let text = text.trim();
        let (number, unit) = text.split_at(number_length(text));
        let unit = unit.trim_start();
        let number: f64 = number.parse().map_err(|_| UnitError::Number)?;
        let scale = if unit.is_empty() { Some(1.0) } else { self.scale(unit) };
        let scale = scale.ok_or_else(|| UnitError::Unit { found: unit.into(), expected: self.units() })?;
        let value = number * scale;
        if !value.is_finite() {
            return Err(UnitError::Number);
        }
        Ok(Quantity { value, has_unit: !unit.is_empty() || number == 0.0 })
    }

    fn scale(self, unit: &str) -> Option<f64> {
        match self {
            Self::Bandwidth => bandwidth_scale(unit),
            Self::Time => TIMES.iter().find(|(name, _)| *name == unit).map(|&(_, scale)| scale),
            Self::Speed => speed_scale(unit),
            Self::Size => prefix_scale(unit.strip_suffix('B')?),
        }
    }
}

fn bandwidth_scale(unit: &str) -> Option<f64> {
    const BASES: [(&str, f64); 5] =
        [("Bps", 1.0), ("B/s", 1.0), ("bps", 0.125), ("b/s", 0.125), ("bit/s", 0.125)];
    let (prefix, base) = BASES.iter().find_map(|&(name, base)| Some((unit.strip_suffix(name)?, base)))?;
    prefix_scale(prefix).map(|scale| base * scale)
}

fn prefix_scale(prefix: &str) -> Option<f64> {
    match BINARY.iter().position(|name| *name == prefix) {
        Some(power) => Some((0..=power).fold(1.0, |scale, _| scale * 1024.0)),
        None => decimal_scale(prefix),
    }
}

fn speed_scale(unit: &str) -> Option<f64> {
    match unit.strip_suffix("flops") {
        Some("") => Some(1.0),
        Some(prefix) => SPELLED.iter().position(|name| *name == prefix).map(|at| DECIMAL[at + 1].1),
        None => decimal_scale(unit.strip_suffix("flop/s").or_else(|| unit.strip_suffix('f'))?),
    }
}

fn decimal_scale(prefix: &str) -> Option<f64> {
    DECIMAL.iter().find(|(name, _)| *name == prefix).map(|&(_, scale)| scale)
}

/// Returns the length of the decimal number that begins the text. An `E` counts as an exponent only where digits
/// follow, because it is a prefix of units too ("1EBps").
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits_from = |start: usize| bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign_at = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut end = sign_at(0);
    end += digits_from(end);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits_from(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let start = end + 1 + sign_at(end + 1);
        let digits = digits_from(start.min(bytes.len()));
        if digits > 0 {
            end = start + digits;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(dimension: Dimension, text: &str) -> f64 {
        dimension.parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).value
    }

    #[test]
    fn bandwidths_are_bytes_per_second() {
        assert_eq!(value(Dimension::Bandwidth, "12.5GBps"), 12.5e9);
        assert_eq!(value(Dimension::Bandwidth, "100Mbps"), 12.5e6);
        assert_eq!(value(Dimension::Bandwidth, "26MiBps"), 26.0 * 1024.0 * 1024.0);
        assert_eq!(value(Dimension::Bandwidth, "8Kibps"), 1024.0);
        assert_eq!(value(Dimension::Bandwidth, "1EBps"), 1e18);
        assert_eq!(value(Dimension::Bandwidth, "1e3Bps"), 1000.0);
        assert_eq!(value(Dimension::Bandwidth, "1E3"), 1000.0);
    }

    #[test]
    fn times_are_seconds() {
        for text in ["50us", "50 \u{b5}s", "50\u{3bc}s"] {
            assert_eq!(value(Dimension::Time, text), 50.0 * 1e-6, "{text}");
        }
        assert_eq!(value(Dimension::Time, "1.5h"), 5400.0);
        assert_eq!(value(Dimension::Time, "2w"), 1_209_600.0);
    }

    #[test]
    fn speeds_are_flop_per_second() {
        assert_eq!(value(Dimension::Speed, "98.095Mf"), 98.095e6);
        assert_eq!(value(Dimension::Speed, "2gigaflops"), 2e9);
        assert_eq!(value(Dimension::Speed, "3flops"), 3.0);
    }

    #[test]
    fn printed_quantities_are_read() {
        assert_eq!(value(Dimension::Bandwidth, "12.5 GB/s"), 12.5e9);
        assert_eq!(value(Dimension::Bandwidth, "100 Gbit/s"), 12.5e9);
        assert_eq!(value(Dimension::Bandwidth, "8 Mb/s"), 1e6);
        assert_eq!(value(Dimension::Time, "500 ns"), 500.0 * 1e-9);
        assert_eq!(value(Dimension::Speed, "10 Gflop/s"), 10e9);
        assert_eq!(value(Dimension::Speed, "3 flop/s"), 3.0);
        assert_eq!(value(Dimension::Size, "64 KiB"), 65536.0);
        assert_eq!(value(Dimension::Size, "1.5 kB"), 1500.0);
    }

    #[test]
    fn a_number_without_unit_is_marked_unless_it_is_zero() {
        assert!(!Dimension::Time.parse("1e-6").unwrap().has_unit);
        assert!(Dimension::Time.parse("0").unwrap().has_unit);
    }

    #[test]
    fn malformed_quantities_are_refused() {
        let unknown = |found: &str, dimension: Dimension| {
            Err(UnitError::Unit { found: found.into(), expected: dimension.units() })
        };
        assert_eq!(Dimension::Time.parse("3 parsecs"), unknown("parsecs", Dimension::Time));
        assert_eq!(Dimension::Bandwidth.parse("1kiBps"), unknown("kiBps", Dimension::Bandwidth));
        assert_eq!(Dimension::Speed.parse("1Gflops"), unknown("Gflops", Dimension::Speed));
        for text in ["", "fast", "inf", "nan", ".", "-", "1e999Bps"] {
            assert_eq!(Dimension::Bandwidth.parse(text), Err(UnitError::Number), "{text:?}");
        }
    }
}
