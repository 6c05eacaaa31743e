//! Factors that depend on the message size.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use pdes_core::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// A step function from message sizes to factors.
///
/// Section `k` holds for sizes above `s_k` up to and including `s_(k+1)`; sizes up to `s_0` have the factor 1. As text
/// a table is `"s_0:f_0;s_1:f_1;.."`, a constant is a plain number; in TOML a constant may be a number without quotes.
///
/// ```
/// use netmodel::FactorTable;
/// use pdes_core::Bytes;
///
/// let table: FactorTable = "0:0.812084;257:0.338112".parse()?;
/// assert_eq!(table.factor(Bytes::new(0)), 1.0);
/// assert_eq!(table.factor(Bytes::new(257)), 0.812084);
/// assert_eq!(table.factor(Bytes::new(258)), 0.338112);
/// # Ok::<(), netmodel::FactorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FactorTable {
    /// Factor of sizes below the first section.
    below: f64,
    sections: Vec<Section>,
}

/// Factor of all sizes above `above`, up to the next section.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Section {
    above: u64,
    factor: f64,
}

/// Error in a factor table.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FactorError {
    /// A section is not "size:factor".
    #[error("the section {section:?} of the factor table is not \"size:factor\" with a size in whole bytes")]
    Section {
        /// The section found.
        section: String,
    },
    /// A factor is not a finite number greater than zero.
    #[error("the factor {found:?} is not a number greater than zero")]
    Factor {
        /// The factor found.
        found: String,
    },
    /// Two sections begin at one size.
    #[error("two sections of the factor table begin above {above} B")]
    Duplicate {
        /// The size.
        above: u64,
    },
}

impl FactorTable {
    /// Makes the table that has one factor for all sizes.
    ///
    /// # Errors
    /// If the factor is not finite, or not greater than zero.
    pub fn try_constant(factor: f64) -> Result<Self, FactorError> {
        Ok(Self { below: check(factor)?, sections: Vec::new() })
    }

    /// Makes a table from pairs of a section's lower end and factor, in any order.
    ///
    /// # Errors
    /// If a factor is not finite or not greater than zero, or two sections begin at one size.
    pub fn try_new(sections: &[(u64, f64)]) -> Result<Self, FactorError> {
        let section = |&(above, factor): &(u64, f64)| Ok(Section { above, factor: check(factor)? });
        let mut sections = sections.iter().map(section).collect::<Result<Vec<_>, FactorError>>()?;
        sections.sort_by_key(|section| section.above);
        match sections.windows(2).find(|pair| pair[0].above == pair[1].above) {
            Some(pair) => Err(FactorError::Duplicate { above: pair[0].above }),
            None => Ok(Self { below: 1.0, sections }),
        }
    }

    /// Returns the table with all factors multiplied, which stay finite and greater than zero.
    pub fn scaled(&self, by: f64) -> Self {
        let scale = |factor: f64| (factor * by).clamp(f64::MIN_POSITIVE, f64::MAX);
        let section = |section: &Section| Section { factor: scale(section.factor), ..*section };
        Self { below: scale(self.below), sections: self.sections.iter().map(section).collect() }
    }

    /// Returns whether all sizes have one factor.
    pub fn is_constant(&self) -> bool {
        self.sections.is_empty()
    }

    /// Returns whether all sizes have this factor.
    pub fn is_constant_of(&self, factor: f64) -> bool {
        self.is_constant() && self.below == factor
    }

    /// Returns the factor of a size. `O(log n)` in the number of sections.
    pub fn factor(&self, size: Bytes) -> f64 {
        match self.sections.partition_point(|section| section.above < size.get()) {
            0 => self.below,
            index => self.sections[index - 1].factor,
        }
    }

    /// Returns the lower ends of the sections, in growing order.
    pub(crate) fn section_starts(&self) -> impl Iterator<Item = u64> {
        self.sections.iter().map(|section| section.above)
    }
}

fn check(factor: f64) -> Result<f64, FactorError> {
    let valid = factor.is_finite() && factor > 0.0;
    if valid { Ok(factor) } else { Err(FactorError::Factor { found: factor.to_string() }) }
}

fn parse_factor(text: &str) -> Result<f64, FactorError> {
    text.trim().parse().map_err(|_| FactorError::Factor { found: text.to_owned() })
}

impl FromStr for FactorTable {
    type Err = FactorError;

    fn from_str(text: &str) -> Result<Self, FactorError> {
        if !text.contains(':') {
            return Self::try_constant(parse_factor(text)?);
        }
        let section = |section: &str| {
            let parts = section
                .split_once(':')
                .and_then(|(above, factor)| Some((above.trim().parse().ok()?, factor)));
            let (above, factor) =
                parts.ok_or_else(|| FactorError::Section { section: section.to_owned() })?;
            Ok((above, parse_factor(factor)?))
        };
        Self::try_new(&text.split(';').map(section).collect::<Result<Vec<_>, FactorError>>()?)
    }
}

/// Prints the text that the table is parsed from.
impl fmt::Display for FactorTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sections.is_empty() {
            return self.below.fmt(f);
        }
        for (index, Section { above, factor }) in self.sections.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(f, "{separator}{above}:{factor}")?;
        }
        Ok(())
    }
}

impl Serialize for FactorTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.sections.is_empty() {
            serializer.serialize_f64(self.below)
        } else {
            serializer.collect_str(self)
        }
    }
}

impl JsonSchema for FactorTable {
    fn schema_name() -> Cow<'static, str> {
        "FactorTable".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, { "type": "string" }] })
    }
}

impl<'de> Deserialize<'de> for FactorTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactorVisitor)
    }
}

struct FactorVisitor;

impl Visitor<'_> for FactorVisitor {
    type Value = FactorTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a factor, or a string \"size:factor;size:factor;..\"")
    }

    fn visit_f64<E: serde::de::Error>(self, factor: f64) -> Result<FactorTable, E> {
        FactorTable::try_constant(factor).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, factor: i64) -> Result<FactorTable, E> {
        self.visit_f64(factor as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, factor: u64) -> Result<FactorTable, E> {
        self.visit_f64(factor as f64)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FactorTable, E> {
        text.parse().map_err(E::custom)
    }
}
