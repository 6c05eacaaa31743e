//! Damage found while the actions of an archive are read.

use crate::record::Record;

/// Damage of an archive that keeps actions from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The checksum of a page of data does not match.
    #[error(
        "the checksum of data page {page} (64 KiB at byte {offset} of shard {shard}) does not match its bytes"
    )]
    Page {
        /// The shard, from 0.
        shard: u32,
        /// The page, from 0.
        page: u64,
        /// Its offset in the file of the shard \[B\].
        offset: u64,
    },
    /// An entry refers to data beyond the end of a shard.
    #[error("an entry refers to {len} bytes at {offset}, but the data of shard {shard} are {limit} bytes")]
    Range {
        /// The shard, from 0.
        shard: u32,
        /// Offset referred to \[B\].
        offset: u64,
        /// Length referred to \[B\].
        len: u64,
        /// Length of the data of the shard \[B\].
        limit: u64,
    },
    /// A record is malformed or refers to an entry that its rank does not have.
    #[error("the record {head:#018x} {amount:#018x} is no action of its rank")]
    Record {
        /// The first word of the record.
        head: u64,
        /// The second word of the record.
        amount: u64,
    },
    /// A column ends too early or its encoding is unknown.
    #[error("a column of computation amounts is malformed or too short")]
    Column,
    /// Loops do not nest, or nest too deeply.
    #[error("a loop ends that did not begin, does not end, or nests deeper than {limit}")]
    Loop {
        /// Deepest nesting allowed.
        limit: u64,
    },
    /// The number of actions of a rank differs from that of its table.
    #[error("the program of a rank has {found} actions or more, but its table says {expected}")]
    Actions {
        /// Number of actions by the table.
        expected: u64,
        /// Number of actions found so far.
        found: u64,
    },
    /// The file of a shard cannot be opened or belongs to another archive.
    #[error("the file of shard {shard} is missing or belongs to another archive")]
    Shard {
        /// The shard, from 0.
        shard: u32,
    },
}

impl Damage {
    /// Returns the damage of a record that is not an action of its rank.
    pub(crate) fn of(record: Record) -> Self {
        let [head, amount] = record.words();
        Self::Record { head, amount }
    }
}
