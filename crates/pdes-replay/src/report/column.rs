//! Columns of a report: one number per rank, written as one line of JSON.

use std::ops::Deref;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::to_raw_value;

/// One number per rank, in order; serialized as an array on one line, whatever the layout of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Column(Vec<u64>);

impl Column {
    pub(super) fn push(&mut self, number: u64) {
        self.0.push(number);
    }
}

impl Deref for Column {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl FromIterator<u64> for Column {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

/// Supports JSON only, because it generates the text itself.
impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_on_one_line(&self.0, serializer)
    }
}

/// Fractions of a whole, rounded to six decimal places; serialized as an array on one line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Fractions(Vec<f64>);

impl Deref for Fractions {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl FromIterator<f64> for Fractions {
    fn from_iter<I: IntoIterator<Item = f64>>(parts: I) -> Self {
        // Without the call that `round` is where the processor may be old: no fraction is negative.
        Self(parts.into_iter().map(|part| (part * 1e6 + 0.5) as u64 as f64 / 1e6).collect())
    }
}

/// Supports JSON only, because it generates the text itself.
impl Serialize for Fractions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_on_one_line(&self.0, serializer)
    }
}

fn serialize_on_one_line<S: Serializer>(array: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    to_raw_value(array).map_err(S::Error::custom)?.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_lines_and_round_trip() {
        let column: Column = [1, u64::MAX, 0].into_iter().collect();
        let text = serde_json::to_string_pretty(&vec![column.clone()]).unwrap();
        assert_eq!(text, "[\n  [1,18446744073709551615,0]\n]");
        assert_eq!(serde_json::from_str::<Vec<Column>>(&text).unwrap(), [column]);
        let fractions: Fractions = [0.0, 1.0 / 3.0, 1.0].into_iter().collect();
        let text = serde_json::to_string_pretty(&vec![fractions.clone()]).unwrap();
        assert_eq!(text, "[\n  [0.0,0.333333,1.0]\n]");
        assert_eq!(serde_json::from_str::<Vec<Fractions>>(&text).unwrap(), [fractions]);
    }
}
