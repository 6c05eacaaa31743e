//! Formatting of quantities with units.

/// Prefixes of units, the largest first.
const PREFIXES: [(f64, &str); 9] = [
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
];

/// A unit of time that leaves one to three digits before the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    /// Length of the unit \[s\].
    pub seconds: f64,
    /// Symbol of the unit.
    pub name: &'static str,
}

impl TimeUnit {
    /// Returns the unit for times up to `time` \[s\].
    pub fn of(time: f64) -> Self {
        let unit = |seconds, name| Self { seconds, name };
        match time.abs() {
            time if time >= 1.0 || time == 0.0 => unit(1.0, "s"),
            time if time >= 1e-3 => unit(1e-3, "ms"),
            time if time >= 1e-6 => unit(1e-6, "us"),
            _ => unit(1e-9, "ns"),
        }
    }
}

/// Formats a number with four significant digits.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

/// Formats a number on an axis, without trailing zeros.
pub fn axis_number(value: f64) -> String {
    without_zeros(&format!("{value:.6}"))
}

fn without_zeros(decimal: &str) -> String {
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Splits a value into a number and the prefix of its unit that leaves one to three digits before the point, from `P` to `n`.
pub fn prefixed(value: f64) -> (f64, &'static str) {
    let smallest = if value > 0.0 { (1e-9, "n") } else { (1.0, "") };
    let (scale, prefix) = PREFIXES.into_iter().find(|&(scale, _)| value >= scale).unwrap_or(smallest);
    (value / scale, prefix)
}

/// Formats a value with a prefix of its unit and at most three decimal places.
pub fn metric(value: f64, unit: &str) -> String {
    let (number, prefix) = prefixed(value);
    format!("{} {prefix}{unit}", without_zeros(&format!("{number:.3}")))
}

/// Formats a time \[s\].
pub fn seconds(time: f64) -> String {
    let unit = TimeUnit::of(time);
    format!("{} {}", digits(time / unit.seconds), unit.name)
}

fn scaled(value: f64, unit: &str) -> String {
    match prefixed(value) {
        (number, prefix) if value >= 1e3 => format!("{} {prefix}{unit}", digits(number)),
        _ => format!("{value:.0} {unit}"),
    }
}

/// Formats a number of bytes.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, "B")
}

/// Formats a bandwidth \[B/s\].
pub fn rate(rate: f64) -> String {
    scaled(rate, "B/s")
}

/// Formats a count, with a narrow space between groups of three digits.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats the ratio of a part to a whole, which may be zero.
pub fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part / whole) }
}

/// Formats the relative difference of a value from a base, which may be zero.
pub fn signed_percent(value: f64, base: f64) -> String {
    match (value, base) {
        (value, base) if value == base => "0 %".to_owned(),
        (_, 0.0) => "new".to_owned(),
        (value, base) if value / base >= 10.0 => format!("{:.1} times", value / base),
        (value, base) => format!("{:+.2} %", 100.0 * (value / base - 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_four_digits_and_a_unit() {
        assert_eq!(seconds(0.003802913), "3.803 ms");
        assert_eq!(seconds(17.1212), "17.12 s");
        assert_eq!(seconds(12345.6), "12346 s");
        assert_eq!(seconds(2.5e-7), "250.0 ns");
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(bytes(984.0), "984 B");
        assert_eq!(rate(12.5e9), "12.50 GB/s");
        assert_eq!(count(1234567), "1\u{202f}234\u{202f}567");
        assert_eq!((percent(1.0, 8.0), percent(1.0, 0.0)), ("12.5 %".to_owned(), "-".to_owned()));
        assert_eq!(signed_percent(3.0, 2.0), "+50.00 %");
        assert_eq!(signed_percent(1.0, 2.0), "-50.00 %");
        assert_eq!(signed_percent(30.0, 2.0), "15.0 times");
        assert_eq!(signed_percent(1.0, 0.0), "new");
    }

    #[test]
    fn metric_quantities_have_no_trailing_zeros() {
        assert_eq!(metric(12.5e9, "B/s"), "12.5 GB/s");
        assert_eq!(
            [3e-7, 0.0, 1.0, 2e-12].map(|time| metric(time, "s")),
            ["300 ns", "0 s", "1 s", "0.002 ns"]
        );
        assert_eq!(metric(1e9, "flop/s"), "1 Gflop/s");
    }

    #[test]
    fn axes_have_no_trailing_zeros() {
        assert_eq!([16000.0, 0.5, 0.0].map(axis_number), ["16000", "0.5", "0"]);
    }
}
