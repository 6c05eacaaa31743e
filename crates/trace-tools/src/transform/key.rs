//! Descriptions of keys, for documentation and schemas.

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
