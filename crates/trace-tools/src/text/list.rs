//! Lists of numbers in named fields: `3`, `0-7`, `0-28:4`, `7-0:-1`, and several of these separated by commas; `-` is the empty list.

use std::fmt;

use pdes_core::Rank;
use trace_mmap::{MAX_RANKS, RankRange};

use crate::text::fields::integer;

/// Length of the longest list.
const MAX_ENTRIES: u64 = MAX_RANKS as u64;

/// Parses a list of numbers from 0 to `max`; `None` if it is invalid.
pub(super) fn parse_numbers(field: &[u8], max: u64) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    for part in parse_ranges(field, max)? {
        let more = (0..part.len as i64).map(|index| (part.first + part.stride * index) as u64);
        if numbers.len() as u64 + part.len > MAX_ENTRIES {
            return None;
        }
        numbers.extend(more);
    }
    Some(numbers)
}

/// Parses a list of ranks below `ranks` as strided ranges; `None` if it is invalid or has more than `ranks` entries.
pub(super) fn parse_rank_ranges(field: &[u8], ranks: u32) -> Option<Vec<RankRange>> {
    let parts = parse_ranges(field, u64::from(ranks).checked_sub(1)?)?;
    let run = |part: &NumberRange| RankRange {
        first: Rank::new(part.first as u32),
        stride: part.stride as i32,
        len: part.len as u32,
    };
    let is_short = parts.iter().map(|part| part.len).sum::<u64>() <= u64::from(ranks);
    is_short.then(|| parts.iter().map(run).collect())
}

/// A strided range: `first`, `first + stride`, ...
struct NumberRange {
    first: i64,
    stride: i64,
    len: u64,
}

fn parse_ranges(field: &[u8], max: u64) -> Option<Vec<NumberRange>> {
    if field == b"-" {
        return Some(Vec::new());
    }
    field.split(|byte| *byte == b',').map(|part| self::parse_range(part, max)).collect()
}

fn parse_range(text: &[u8], max: u64) -> Option<NumberRange> {
    let number = |text: &[u8]| {
        let is_decimal = text.iter().all(u8::is_ascii_digit);
        integer(text).filter(|number| is_decimal && u64::try_from(*number).is_ok_and(|number| number <= max))
    };
    let Some(dash) = text.iter().position(|byte| *byte == b'-') else {
        return Some(NumberRange { first: number(text)?, stride: 1, len: 1 });
    };
    let (first, rest) = (number(&text[..dash])?, &text[dash + 1..]);
    let (last, stride) = match rest.iter().position(|byte| *byte == b':') {
        None => (number(rest)?, 1),
        Some(colon) => (number(&rest[..colon])?, integer(&rest[colon + 1..])?),
    };
    let limit = i64::from(i32::MAX);
    if !(-limit..=limit).contains(&stride) || stride == 0 || (last - first).signum() == -stride.signum() {
        return None;
    }
    let len = ((last - first) / stride) as u64 + 1;
    Some(NumberRange { first, stride: if len == 1 { 1 } else { stride }, len })
}

/// Formats numbers as a list.
pub(crate) struct NumberList<I>(pub(crate) I);

impl<I: Iterator<Item = u64> + Clone> fmt::Display for NumberList<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.0.clone();
        match numbers.next() {
            None => f.write_str("-"),
            Some(first) => {
                write!(f, "{first}")?;
                numbers.try_for_each(|number| write!(f, ",{number}"))
            }
        }
    }
}

/// Formats strided ranges of ranks as a list.
pub(crate) struct RankRanges<'a>(pub(crate) &'a [RankRange]);

impl fmt::Display for RankRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", run.first)?;
            if run.len > 1 {
                write!(f, "-{}", run.member(run.len - 1))?;
            }
            if run.len > 1 && run.stride != 1 {
                write!(f, ":{}", run.stride)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_ranges() {
        let values: [(&str, Option<&[u64]>); 16] = [
            ("-", Some(&[])),
            ("3", Some(&[3])),
            ("3,1,3", Some(&[3, 1, 3])),
            ("0-3", Some(&[0, 1, 2, 3])),
            ("0-9:4,9", Some(&[0, 4, 8, 9])),
            ("7-5:-1", Some(&[7, 6, 5])),
            ("5-5:9", Some(&[5])),
            ("", None),
            ("1,", None),
            ("5-3", None),
            ("3-5:-1", None),
            ("3-5:0", None),
            ("0-10", None),
            ("1e0", None),
            ("+1", None),
            ("--1", None),
        ];
        for (text, expected) in values {
            assert_eq!(parse_numbers(text.as_bytes(), 9).as_deref(), expected, "{text:?}");
        }
        assert_eq!(parse_numbers(b"0-4000000000", u64::from(u32::MAX)), None);
        assert!(parse_rank_ranges(b"0-9,0", 10).is_none());
    }

    #[test]
    fn lists_are_written_as_they_are_read() {
        for text in ["0-7", "0-28:4", "7-0:-1", "5,0-3"] {
            let runs = parse_rank_ranges(text.as_bytes(), 32).expect("a list");
            assert_eq!(RankRanges(&runs).to_string(), text);
        }
        assert_eq!(NumberList([3, 1].into_iter()).to_string(), "3,1");
        assert_eq!(NumberList([].into_iter()).to_string(), "-");
    }
}
