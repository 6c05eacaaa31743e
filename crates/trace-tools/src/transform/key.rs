//! Descriptions of keys, by which they are read, and for documentation and schemas.

use std::fmt;

use toml::Value;

use super::keys::{number, whole};

/// A key of a transformation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Name in a file.
    pub name: &'static str,
    /// The values that it takes.
    pub values: KeyValues,
    /// Meaning of the value.
    pub meaning: &'static str,
    /// True if the transformation needs it.
    pub is_required: bool,
}

/// The values that a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyValues {
    /// A number of 0 or more, up to this one.
    Amount(f64),
    /// A whole number from the first to the second one, both included.
    Whole(u64, u64),
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A whole number of 0 or more, or `"place"`.
    Reach,
    /// True or false.
    Flag,
    /// A name, in which `*` stands for any text, or a list of them.
    Names,
    /// A number, or numbers and ranges, such as `"0-7,9,16-"`.
    Numbers,
    /// A list of ranks.
    Ranks,
}

impl KeyValues {
    /// Returns whether a number or a name is one of the values; true of values of other forms.
    pub(super) fn admit(self, value: &Value) -> bool {
        match self {
            Self::Amount(most) => number(value).is_some_and(|amount| (0.0..=most).contains(&amount)),
            Self::Whole(least, most) => whole(value).is_some_and(|number| (least..=most).contains(&number)),
            Self::Choice(names) => value.as_str().is_some_and(|name| names.contains(&name)),
            _ => true,
        }
    }
}

/// Describes the values, as what is expected.
impl fmt::Display for KeyValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(f64::MAX) => write!(f, "a number of 0 or more"),
            Self::Amount(most) => write!(f, "a number of 0 to {most}"),
            Self::Whole(least, u64::MAX) => write!(f, "a whole number of {least} or more"),
            Self::Whole(least, most) => write!(f, "a whole number of {least} to {most}"),
            Self::Choice([names @ .., last]) => {
                let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                write!(f, "{} or {last:?}", names.join(", "))
            }
            Self::Choice([]) => write!(f, "nothing"),
            Self::Reach => write!(f, "a whole number of 0 or more, of computations, or \"place\""),
            Self::Flag => write!(f, "true or false"),
            Self::Names => write!(f, "a name, in which * stands for any text, or a list of them"),
            Self::Numbers => write!(f, "a number, or numbers and ranges, such as \"0-7,9,16-\""),
            Self::Ranks => write!(f, "a list of all ranks, each once"),
        }
    }
}

impl Key {
    /// Describes a key that the transformation needs.
    pub(super) const fn required(name: &'static str, values: KeyValues, meaning: &'static str) -> Self {
        Self { name, values, meaning, is_required: true }
    }

    /// Describes a key that may be left out.
    pub(super) const fn optional(name: &'static str, values: KeyValues, meaning: &'static str) -> Self {
        Self { name, values, meaning, is_required: false }
    }

    /// Returns the description of a key of a selector.
    pub(super) fn of_selector(name: &'static str) -> Self {
        let (values, meaning) = match name {
            "region" => (KeyValues::Names, "Path of the region in which the operations are."),
            "site" => (KeyValues::Names, "Call site of the operations, file:line."),
            "iterations" => (KeyValues::Numbers, "Visits of the region or site, from 0 on each rank."),
            "ranks" => (KeyValues::Numbers, "Ranks of the world; of messages the senders."),
            "call" => (KeyValues::Names, "Name of the action in a trace; of messages that of the send."),
            "tag" => (KeyValues::Numbers, "Tag of the message."),
            "bytes" => (KeyValues::Numbers, "Size [B]."),
            _ => (KeyValues::Numbers, "Communicator of the operation, 0 is the world."),
        };
        Self::optional(name, values, meaning)
    }
}
