//! Shards: the binary event records that each process of an MPI program writes while it runs, and their reader.
//!
//! Start at [`ShardReader`] to read the actions of a shard, at [`TextReader`] to read them as time-independent text; writers assemble a [`Header`] and [`Unit`]s. A shard
//! is a line of text, the header, the [state](ProcessState) of the process, and records of one or more units of 16 bytes, all little-endian. Units are laid out as
//! records of the archive, and their kinds have the archive's numbers; but peers, tags and communicators are those of the
//! program, and loops are not folded. [`Header`], [`ProcessState`], [`Unit`], [`Phrase`] and [`Deferred`] have every byte.
//!
//! Repeated fields are interned in a [`Phrase`] (a dictionary entry), which is defined in the shard once and then referred
//! to by its number: the fields of a call, or peer, tag and communicator of a message. So most actions take one unit, and
//! none is formatted as text while the program runs.
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
//! // Trailing zeros, as a killed process leaves behind.
//! bytes.extend([0; 100]);
//! let text = std::io::read_to_string(TextReader::new(&bytes[..])?)?;
//! let lines: Vec<&str> = text.lines().skip(1).collect();
//! assert_eq!(lines, ["0 compute 50", "0 allreduce 8 0", "0 compute 70", "0 allreduce 8 0"]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Guarantees
//!
//! The first word of a record is stored last, and commits it: whatever ends the process, earlier records are there, and the
//! zeros behind them read as the end. No contents of a file make the reader panic, nor use more memory than the length of
//! the file and a constant.

mod deferred;
mod header;
mod phrase;
mod reader;
mod state;
mod text;
mod unit;

pub use deferred::Deferred;
pub use header::{Header, MAGIC, ParsedHeader};
pub use phrase::Phrase;
pub use reader::{Action, COMPLETE_MARK, Message, Record, ShardReader};
pub use state::ProcessState;
pub use text::TextReader;
pub use unit::{Kind, UNIT, Unit};
