//! Header: the first line of a shard.

use crate::state::ProcessState;
use crate::unit::UNIT;

/// Prefix of every shard.
pub const MAGIC: &str = "# pdes-replay shard version=";

/// Version of the format that is written and read.
const VERSION: &str = "3";

/// Contents of the first line. The line is padded with blanks to a whole unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Header<'a> {
    /// Id of the run: the same in all its shards, without white space.
    pub job: &'a str,
    /// Number of processes of the run.
    pub world: u32,
    /// Rank of the process in the world.
    pub rank: u32,
    /// Counter of computation: `instructions` or `cpu-time`.
    pub counter: &'a str,
    /// Flops per second of processor time [flop/s]; 0 if instructions are counted.
    pub rate: f64,
    /// Version string of the MPI library, on one line.
    pub library: &'a str,
}

impl Header<'_> {
    /// Returns the line as bytes, and a state of zeros behind it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { job, world, rank, counter, rate, library } = self;
        let line = format!(
            "{MAGIC}{VERSION} job={job} world={world} rank={rank} counter={counter} rate={rate} library={library}"
        );
        let mut bytes = line.replace('\n', " ").into_bytes();
        let len = (bytes.len() + 1).next_multiple_of(UNIT);
        bytes.resize(len - 1, b' ');
        bytes.push(b'\n');
        bytes.extend(ProcessState::default().to_bytes());
        bytes
    }
}

/// Result of parsing a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedHeader {
    /// A shard of this version: the fields that all shards of a run share, and the rank.
    Shard {
        /// Id of the run.
        job: String,
        /// Number of processes of the run.
        world: u32,
        /// Rank of the process in the world.
        rank: u32,
        /// Counter of computation.
        counter: String,
        /// Flops per second of processor time, as text.
        rate: String,
    },
    /// A shard of another version.
    OtherVersion(String),
    /// The file is no shard.
    NotAShard,
}

impl ParsedHeader {
    /// Version of the format that is read.
    pub const VERSION: &'static str = VERSION;

    /// Reads the first line of a file.
    pub fn parse(line: &str) -> Self {
        let Some(fields) = line.strip_prefix(MAGIC) else { return Self::NotAShard };
        let mut fields = fields.split_whitespace();
        match fields.next() {
            Some(VERSION) => Self::fields(fields).unwrap_or(Self::NotAShard),
            other => Self::OtherVersion(other.unwrap_or_default().to_owned()),
        }
    }

    fn fields<'a>(fields: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        let text = |key: &str| {
            let mut values = fields.clone().filter_map(|field| field.strip_prefix(key)?.strip_prefix('='));
            values.next().map(str::to_owned)
        };
        let number = |key: &str| text(key)?.parse().ok();
        Some(Self::Shard {
            job: text("job")?,
            world: number("world")?,
            rank: number("rank")?,
            counter: text("counter")?,
            rate: text("rate")?,
        })
    }
}
