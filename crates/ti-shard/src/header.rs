//! The first line of a shard.

use crate::unit::UNIT;

/// How a shard begins.
pub const MAGIC: &str = "# pdes-replay shard version=";

/// The version that is written and read.
const VERSION: &str = "2";

/// What the first line says. It ends at a whole unit, blanks before its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Header<'a> {
    /// Names the run: equal in all its shards, and without white space.
    pub job: &'a str,
    /// Processes of the run.
    pub world: u32,
    /// The process.
    pub rank: u32,
    /// What is counted: `instructions` or `cpu-time`.
    pub counter: &'a str,
    /// Flops per second of processor time; 0 where instructions are counted.
    pub rate: f64,
    /// What the MPI library calls itself, on one line.
    pub library: &'a str,
}

impl Header<'_> {
    /// Returns the line.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { job, world, rank, counter, rate, library } = self;
        let line = format!(
            "{MAGIC}{VERSION} job={job} world={world} rank={rank} counter={counter} rate={rate} library={library}"
        );
        let mut bytes = line.replace('\n', " ").into_bytes();
        let len = (bytes.len() + 1).next_multiple_of(UNIT);
        bytes.resize(len - 1, b' ');
        bytes.push(b'\n');
        bytes
    }
}

/// What was read of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedHeader {
    /// Those fields that all shards of a run share, as text, and the rank.
    Shard {
        /// The name of the run.
        job: String,
        /// Its ranks.
        world: u32,
        /// The process.
        rank: u32,
        /// What was counted.
        counter: String,
        /// Flops per second of processor time.
        rate: String,
    },
    /// A shard of another version.
    OtherVersion(String),
    /// No shard.
    Nothing,
}

impl ParsedHeader {
    /// The version that is read.
    pub const VERSION: &'static str = VERSION;

    /// Reads the first line of a file.
    pub fn parse(line: &str) -> Self {
        let Some(fields) = line.strip_prefix(MAGIC) else { return Self::Nothing };
        let mut fields = fields.split_whitespace();
        match fields.next() {
            Some(VERSION) => Self::fields(fields).unwrap_or(Self::Nothing),
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
