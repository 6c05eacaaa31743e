//! What is found wrong while the actions of an archive are read.

use crate::record::Record;

/// Why the actions of an archive could not be read to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A page of data does not have the checksum that the archive holds for it.
    #[error(
        "the checksum of data page {page} (64 KiB at byte {offset} of shard {shard}) does not match its bytes"
    )]
    Page {
        /// The shard, from 0.
        shard: u32,
        /// The page, from 0.
        page: u64,
        /// Where it begins in the file of the shard.
        offset: u64,
    },
    /// Something refers to data beyond the end of a shard.
    #[error("an entry refers to {len} bytes at {offset}, but the data of shard {shard} are {limit} bytes")]
    Range {
        /// The shard, from 0.
        shard: u32,
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes there are.
        limit: u64,
    },
    /// A record is none, or refers to something that its rank does not have.
    #[error("the record {head:#018x} {amount:#018x} is no action of its rank")]
    Record {
        /// The first word of the record.
        head: u64,
        /// The second word of the record.
        amount: u64,
    },
    /// The amounts of a column end too early or are packed in no known way.
    #[error("a column of computation amounts is malformed or too short")]
    Column,
    /// Loops do not nest, or too deeply.
    #[error("a loop ends that did not begin, does not end, or nests deeper than {limit}")]
    Loop {
        /// Deepest nesting.
        limit: u64,
    },
    /// A rank has another number of actions than its table says.
    #[error("the program of a rank has {found} actions or more, but its table says {expected}")]
    Actions {
        /// Actions by the table.
        expected: u64,
        /// Actions found so far.
        found: u64,
    },
    /// The file of a shard cannot be opened, or is not of this archive.
    #[error("the file of shard {shard} is missing or belongs to another archive")]
    Shard {
        /// The shard, from 0.
        shard: u32,
    },
}

impl Damage {
    /// Says that a record is no action of its rank.
    pub(crate) fn of(record: Record) -> Self {
        let [head, amount] = record.words();
        Self::Record { head, amount }
    }
}
