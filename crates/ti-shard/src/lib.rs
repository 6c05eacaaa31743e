//! The records that a process of an MPI program leaves while it runs: a shard.
//!
//! A shard is a line of text, the [`Header`], and records of one or more units of 16 bytes, all little-endian. A unit is laid out as a
//! record of the archive, and its kinds have the archive's numbers; but peers, tags and communicators are those of the program, and
//! nothing is folded. `docs/archive-format.md` describes every byte.
//!
//! What an action says again and again is a [`Phrase`], which stands in the shard once and is then named by a number: the fields of a
//! call, or peer, tag and communicator of a message. So most actions are one unit, and none is formatted as text.
//!
//! ```
//! use ti_shard::{Header, Kind, Phrase, TextReader, Unit};
//! let mut bytes = Header { job: "job", world: 2, rank: 0, counter: "cpu-time", rate: 1e9, library: "any" }.to_bytes();
//! let mut phrase = Phrase::new("allreduce");
//! phrase.number(8);
//! phrase.number(0);
//! let defined = Unit { kind: Kind::Phrase, slot: 0, index: 0, amount: phrase.bytes().len() as u64 };
//! bytes.extend(defined.to_bytes(false));
//! bytes.extend(phrase.padded());
//! for flops in [50.0_f64, 70.0] {
//!     bytes.extend(Unit { kind: Kind::Compute, slot: 0, index: 0, amount: flops.to_bits() }.to_bytes(false));
//!     bytes.extend(Unit { kind: Kind::Call, slot: 0, index: 0, amount: 0 }.to_bytes(false));
//! }
//! // As a process leaves it that is killed.
//! bytes.extend([0; 100]);
//! let text = std::io::read_to_string(TextReader::new(&bytes[..])?)?;
//! let lines: Vec<&str> = text.lines().skip(1).collect();
//! assert_eq!(lines, ["0 compute 50", "0 allreduce 8 0", "0 compute 70", "0 allreduce 8 0"]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Guarantees
//!
//! A unit is written when its first word is, which is stored last: whatever ends the process, the records before are there, and what
//! is behind them reads as their end. No byte of a file makes the reader panic, nor take more memory than the file is long and a constant.

mod header;
mod later;
mod phrase;
mod text;
mod unit;

pub use header::{Header, MAGIC, ParsedHeader};
pub use later::Later;
pub use phrase::Phrase;
pub use text::{IS_COMPLETE, TextReader};
pub use unit::{Kind, UNIT, Unit};
