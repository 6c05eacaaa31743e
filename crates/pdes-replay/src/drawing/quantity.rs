//! Formatting of quantities with units.

/// A unit of time that leaves one to three digits before the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeUnit {
    /// Length of the unit \[s\].
    pub(crate) seconds: f64,
    /// Symbol of the unit.
    pub(crate) name: &'static str,
}

impl TimeUnit {
    /// Returns the unit for times up to `time` \[s\].
    pub(crate) fn of(time: f64) -> Self {
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
pub(crate) fn axis_number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a time \[s\].
pub(crate) fn seconds(time: f64) -> String {
    let unit = TimeUnit::of(time);
    format!("{} {}", digits(time / unit.seconds), unit.name)
}

fn scaled(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match PREFIXES.into_iter().find(|&(scale, _)| value >= scale) {
        Some((scale, prefix)) => format!("{} {prefix}{unit}", digits(value / scale)),
        None => format!("{value:.0} {unit}"),
    }
}

/// Formats a number of bytes.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, "B")
}

/// Formats a bandwidth \[B/s\].
pub(crate) fn rate(rate: f64) -> String {
    scaled(rate, "B/s")
}

/// Formats a count, with a narrow space between groups of three digits.
pub(crate) fn count(number: u64) -> String {
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
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part / whole) }
}

/// Formats the relative difference of a value from a base, which may be zero.
pub(crate) fn signed_percent(value: f64, base: f64) -> String {
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
        assert_eq!([16000.0, 0.5, 0.0].map(axis_number), ["16000", "0.5", "0"]);
        assert_eq!(signed_percent(3.0, 2.0), "+50.00 %");
        assert_eq!(signed_percent(1.0, 2.0), "-50.00 %");
        assert_eq!(signed_percent(30.0, 2.0), "15.0 times");
        assert_eq!(signed_percent(1.0, 0.0), "new");
    }
}
