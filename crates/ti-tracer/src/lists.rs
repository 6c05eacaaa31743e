//! Lists of numbers as a trace has them: `3`, `0-7`, `0-28:4`, separated by commas; `-` for none.

use std::fmt;

/// Displays numbers as a list; runs of three and more as ranges.
pub(crate) struct List<'a, T>(pub(crate) &'a [T]);

impl<T: Copy + Into<i64>> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest.is_empty() {
            return f.write_str("-");
        }
        let mut separator = "";
        while let [first, ..] = *rest {
            let (len, stride) = run(rest);
            f.write_str(separator)?;
            separator = ",";
            let (first, last): (i64, i64) = (first.into(), rest[len - 1].into());
            match (len, stride) {
                (1, _) => write!(f, "{first}")?,
                (_, 1) => write!(f, "{first}-{last}")?,
                _ => write!(f, "{first}-{last}:{stride}")?,
            }
            rest = &rest[len..];
        }
        Ok(())
    }
}

/// Returns the length of the run that the numbers begin with, 1 where it would have fewer than three, and its stride.
fn run<T: Copy + Into<i64>>(numbers: &[T]) -> (usize, i64) {
    let [first, second, ..] = *numbers else { return (1, 1) };
    let difference = |from: T, to: T| to.into() - from.into();
    let stride = difference(first, second);
    let is_next = |pair: &[T]| difference(pair[0], pair[1]) == stride;
    let len = 1 + numbers.windows(2).take_while(|pair| is_next(pair)).count();
    if len < 3 || stride == 0 { (1, 1) } else { (len, stride) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ranges() {
        let values: [(&[u32], &str); 6] = [
            (&[], "-"),
            (&[4], "4"),
            (&[4, 5], "4,5"),
            (&[3, 0, 1, 2, 8, 12, 16], "3,0-2,8-16:4"),
            (&[7, 6, 5], "7-5:-1"),
            (&[2, 2, 2], "2,2,2"),
        ];
        for (numbers, expected) in values {
            assert_eq!(List(numbers).to_string(), expected);
        }
    }
}
