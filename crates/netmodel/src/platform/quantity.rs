//! Quantities in TOML: a number in SI units, or a string with a unit.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::unit::{Dimension, UnitError};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $dimension:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(pub(crate) f64);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor($dimension)).map(Self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema($dimension)
            }
        }

        impl From<$name> for f64 {
            fn from(quantity: $name) -> f64 {
                quantity.0
            }
        }
    };
}

quantity!(
    /// A bandwidth [B/s].
    Bandwidth,
    Dimension::Bandwidth
);
quantity!(
    /// A time [s].
    Time,
    Dimension::Time
);
quantity!(
    /// A speed [flop/s].
    Speed,
    Dimension::Speed
);

/// Reads a quantity into a plain number, for `#[serde(deserialize_with)]`.
pub(crate) fn plain<'de, D, Q>(deserializer: D) -> Result<f64, D::Error>
where
    D: Deserializer<'de>,
    Q: Deserialize<'de> + Into<f64>,
{
    Q::deserialize(deserializer).map(Into::into)
}

/// Returns the schema of the values that [`QuantityVisitor`] reads; `x-unit` is the unit of a number.
fn schema(dimension: Dimension) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "number", "minimum": 0 },
            { "type": "string", "description": format!("a number with one of the units {}", dimension.units()) },
        ],
        "x-unit": dimension.si_unit(),
    })
}

struct QuantityVisitor(Dimension);

impl Visitor<'_> for QuantityVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number in SI units, or a string with one of the units {}", self.0.units())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let refuse = |reason: UnitError| E::custom(format!("{text:?} is not a quantity: {reason}"));
        let quantity = self.0.parse(text).map_err(refuse)?;
        if !quantity.has_unit {
            return Err(refuse(UnitError::NoUnit { expected: self.0.units() }));
        }
        Ok(quantity.value)
    }
}
