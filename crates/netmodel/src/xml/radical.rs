//! Lists of numbers such as "1-4,6,9-11".

use super::element::Element;
use crate::PlatformError;
use crate::platform::builder::{HOST_LIMIT, PlatformBuilder};

/// Reads the attribute `radical` of an element.
pub(super) fn read(builder: &PlatformBuilder, element: &Element) -> Result<Vec<u32>, PlatformError> {
    let text = element.required(builder, "radical")?;
    parse(text, HOST_LIMIT).ok_or_else(|| {
        let expected = "numbers and ranges such as \"1-4,6,9-11\", at most 2^24 hosts";
        element.value_error(builder, "radical", text, expected)
    })
}

/// Reads a radical into its numbers, in its order, or returns `None` if it is malformed or has more than `limit`
/// numbers.
fn parse(text: &str, limit: u64) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for group in text.split(',') {
        let (first, last) = match group.split_once('-') {
            Some((first, last)) => (first.trim().parse().ok()?, last.trim().parse().ok()?),
            None => {
                let number: u32 = group.trim().parse().ok()?;
                (number, number)
            }
        };
        let count = u64::from(u32::checked_sub(last, first)?) + 1;
        if numbers.len() as u64 + count > limit {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_and_numbers_keep_their_order() {
        assert_eq!(parse("1-4,6,9-11", 100), Some(vec![1, 2, 3, 4, 6, 9, 10, 11]));
        assert_eq!(parse("7,0-1", 100), Some(vec![7, 0, 1]));
    }

    #[test]
    fn malformed_radicals_are_refused() {
        for text in ["", "a", "4-1", "1-", "1--2", "0-4294967296", "0-100"] {
            assert_eq!(parse(text, 100), None, "{text:?}");
        }
    }
}
