//! Splitting of lines into fields, and parsing of numbers.

use memchr::memchr;

/// 2^53: every integer up to it is exact as a double.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The fields of a line, separated by spaces and tabs.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    /// True if named fields, such as `comm=3`, are skipped.
    is_positional: bool,
}

impl<'a> Fields<'a> {
    /// Splits a line.
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { rest: line, is_positional: false }
    }

    /// Skips named fields from here on.
    pub(crate) fn positional(self) -> Self {
        Self { is_positional: true, ..self }
    }

    /// Returns whether fields are left.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        if self.is_positional { { *self }.next().is_some() } else { !self.rest().is_empty() }
    }

    /// Returns the rest of the line, after the fields returned so far.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.trim_ascii_start()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        loop {
            let start = self.rest.iter().position(|byte| !is_space(byte))?;
            let rest = &self.rest[start..];
            let end = rest.iter().position(is_space).unwrap_or(rest.len());
            let (field, rest) = rest.split_at(end);
            self.rest = rest;
            if !self.is_positional || memchr(b'=', field).is_none() {
                return Some(field);
            }
        }
    }
}

/// Parses a whole number, in any notation (`50`, `5e1`); `None` if the field is not one, or if it has more than 18 digits or an
/// exponent and is not exact as a double.
#[inline]
pub(crate) fn integer(field: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match field.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, field),
    };
    match short_decimal(digits) {
        Some(number) if is_negative => Some(-number),
        Some(number) => Some(number),
        None => float(field)
            .filter(|number| number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER)
            .map(|number| number as i64),
    }
}

/// Parses a number; `None` if the field is not one.
#[inline]
pub(crate) fn real(field: &[u8]) -> Option<f64> {
    match short_decimal(field) {
        Some(number) if number < MAX_EXACT_INTEGER as i64 => Some(number as f64),
        _ => float(field),
    }
}

/// Parses 1 to 18 decimal digits, which fit into an `i64`: the fast path.
#[inline]
fn short_decimal(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(number)
}

fn float(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_whole_tokens_in_any_notation() {
        let values = [
            ("0", Some(0)),
            ("-444", Some(-444)),
            ("5e4", Some(50_000)),
            ("1e6", Some(1_000_000)),
            ("+7", Some(7)),
            ("-5e1", Some(-50)),
            ("123456789012345678", Some(123_456_789_012_345_678)),
            ("1234567890123456789", None),
            ("1e16", None),
            ("2.5", None),
            ("12x", None),
            ("0x10", None),
            ("-", None),
            ("", None),
            ("nan", None),
            ("inf", None),
        ];
        for (field, expected) in values {
            assert_eq!(integer(field.as_bytes()), expected, "{field:?}");
        }
    }

    #[test]
    fn reals_are_read_to_the_nearest_double() {
        assert_eq!(real(b"372600"), Some(372_600.0));
        assert_eq!(real(b"8.087e+06"), Some(8_087_000.0));
        assert_eq!(real(b"123456789012345678"), Some(123_456_789_012_345_680.0));
        assert_eq!(real(b"1.61118e+06f"), None);
        assert_eq!(real(b"inf"), Some(f64::INFINITY));
    }

    #[test]
    fn fields_are_separated_by_runs_of_spaces_and_tabs() {
        let mut fields = Fields::new(b"0 \t send  1");
        assert_eq!(fields.next(), Some(&b"0"[..]));
        assert_eq!(fields.rest(), b"send  1");
        assert_eq!(fields.collect::<Vec<_>>(), [&b"send"[..], &b"1"[..]]);
        let mut fields = Fields::new(b"send comm=2 1 tag=").positional();
        assert_eq!((fields.next(), fields.next()), (Some(&b"send"[..]), Some(&b"1"[..])));
        assert!(!fields.has_more());
    }
}
