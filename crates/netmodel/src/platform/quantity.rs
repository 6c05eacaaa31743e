//! Quantities in TOML: a number, or a string with a unit.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::unit::{Dimension, UnitError};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $reading:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name(pub f64);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($reading).map(Self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $reading.schema()
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
    /// A bandwidth [B/s]. A positive number without unit below 1e6 is refused: nobody means bytes per second.
    Bandwidth,
    Reading::of_machine(Dimension::Bandwidth, (1e6, f64::INFINITY))
);
quantity!(
    /// A latency \[s\]. A number without unit from 1 on is refused: nobody means seconds.
    Time,
    Reading::of_machine(Dimension::Time, (0.0, 1.0))
);
quantity!(
    /// A time \[s\], under a key whose name says so.
    Seconds,
    Reading::new(Dimension::Time)
);
quantity!(
    /// A time \[ns\].
    Nanoseconds,
    Reading { per_unit: 1e9, ..Reading::new(Dimension::Time) }
);
quantity!(
    /// A speed [flop/s]. A positive number without unit below 1e6 is refused: nobody means flop per second.
    Speed,
    Reading::of_machine(Dimension::Speed, (1e6, f64::INFINITY))
);
quantity!(
    /// A size \[B\], a whole number below 2^53.
    Size,
    Reading { is_whole: true, ..Reading::new(Dimension::Size) }
);

/// Reads a quantity into a plain number, for `#[serde(deserialize_with)]`.
pub(crate) fn plain<'de, D, Q>(deserializer: D) -> Result<f64, D::Error>
where
    D: Deserializer<'de>,
    Q: Deserialize<'de> + Into<f64>,
{
    Q::deserialize(deserializer).map(Into::into)
}

/// Reads a quantity that may be left out.
pub(crate) fn plain_if_any<'de, D, Q>(deserializer: D) -> Result<Option<f64>, D::Error>
where
    D: Deserializer<'de>,
    Q: Deserialize<'de> + Into<f64>,
{
    plain::<_, Q>(deserializer).map(Some)
}

/// Rules by which a quantity is read.
#[derive(Clone, Copy)]
struct Reading {
    dimension: Dimension,
    /// Number of units of the result in one SI unit; a number without unit counts these.
    per_unit: f64,
    /// Bounds of positive numbers without unit, the upper one exclusive.
    bare: (f64, f64),
    /// The value is one of a machine, with the range of those.
    is_of_machine: bool,
    /// Only whole numbers are valid.
    is_whole: bool,
}

impl Reading {
    const fn new(dimension: Dimension) -> Self {
        Self { dimension, per_unit: 1.0, bare: (0.0, f64::INFINITY), is_of_machine: false, is_whole: false }
    }

    const fn of_machine(dimension: Dimension, bare: (f64, f64)) -> Self {
        Self { bare, is_of_machine: true, ..Self::new(dimension) }
    }

    /// Returns the schema of the values that are read; `x-unit` is the unit of a number.
    fn schema(self) -> Schema {
        let number = if self.is_whole { "integer" } else { "number" };
        json_schema!({
            "anyOf": [
                { "type": number, "minimum": 0 },
                { "type": "string", "description": format!("a number with one of the units {}", self.dimension.units()) },
            ],
            "x-unit": self.dimension.si_unit(),
        })
    }

    /// Checks a value [SI units] that was written as `found`.
    fn check_range<E: Error>(self, found: &str, value: f64) -> Result<(), E> {
        let ((least, most), unit) = (self.dimension.range(), self.dimension.si_unit());
        if self.is_of_machine && (value > most || (value > 0.0 && value < least)) {
            return Err(E::custom(format!(
                "found {found}, which is {value:e} {unit}: no machine has that, expected {least} to {most:e} {unit}"
            )));
        }
        Ok(())
    }

    fn check<E: Error>(self, value: f64) -> Result<f64, E> {
        const LARGEST: f64 = 9_007_199_254_740_992.0;
        if self.is_whole && !(value.fract() == 0.0 && (0.0..LARGEST).contains(&value)) {
            return Err(E::custom(format!("found {value}, expected a whole number from 0 to 2^53")));
        }
        Ok(value)
    }
}

impl Visitor<'_> for Reading {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number in SI units, or a string with one of the units {}", self.dimension.units())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        if !value.is_finite() {
            return Err(E::custom(format!("found {value}, expected a finite number")));
        }
        self.check_range(&format!("{value:?}"), value / self.per_unit)?;
        let (least, end) = self.bare;
        if value > 0.0 && !(least..end).contains(&value) {
            let [common, si] = self.dimension.unit_examples();
            return Err(E::custom(format!(
                "found {value}, which is {value} {}: write the unit, as in \"{value}{common}\" or \"{value}{si}\" (one of {})",
                self.dimension.si_unit(),
                self.dimension.units()
            )));
        }
        self.check(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let refuse = |reason: UnitError| E::custom(format!("{text:?} is not a quantity: {reason}"));
        let quantity = self.dimension.parse(text).map_err(refuse)?;
        if !quantity.has_unit {
            return Err(refuse(UnitError::NoUnit { expected: self.dimension.units() }));
        }
        self.check_range(&format!("{text:?}"), quantity.value)?;
        self.check(quantity.value * self.per_unit)
    }
}
