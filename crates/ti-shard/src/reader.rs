//! Reader of the records of a shard.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};

use crate::deferred::Deferred;
use crate::header::ParsedHeader;
use crate::phrase::{Field, Fields, Phrase};
use crate::state::ProcessState;
use crate::text;
use crate::unit::{Form, Kind, UNIT, Unit};

/// Maximum size of a phrase \[B\]: an `alltoallv` of a million ranks fits.
const MAX_PHRASE: u64 = 64 << 20;

/// Maximum size of the first line \[B\].
const MAX_HEADER: u64 = 4096;

/// Number of bytes read at once \[B\].
const BUFFER: usize = 64 << 10;

/// Last 16 bytes of a complete shard: the process has left MPI, and everything was written.
pub const COMPLETE_MARK: [u8; UNIT] = {
    let [head, amount] =
        Unit { amount: u64::from_le_bytes(*b"complete"), ..Unit::of_kind(Kind::End) }.words(false);
    ((head as u128) | (amount as u128) << 64).to_le_bytes()
};

/// An action of a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// The action.
    pub action: Action<'a>,
    /// Its duration \[ns\], if known.
    pub nanos: Option<u64>,
}

/// The action of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// Enters MPI.
    Init,
    /// Leaves MPI.
    Finalize,
    /// Computes.
    Compute {
        /// Amount of computation \[flop\].
        flops: f64,
    },
    /// `MPI_Wait`.
    Wait {
        /// The number of the request.
        request: u32,
    },
    /// A message, by one of the kinds [`Kind::Send`], [`Kind::Isend`], [`Kind::Recv`], [`Kind::Irecv`].
    Message(Message),
    /// Any other action.
    Call {
        /// Its name and its fields, in time-independent text.
        text: &'a [u8],
        /// True if the request of a cancellation was cancelled.
        cancelled: Option<bool>,
    },
}

/// A message that is sent or received, with the numbers of the text for wildcards and `MPI_PROC_NULL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Kind of the record.
    pub kind: Kind,
    /// The peer.
    pub peer: i64,
    /// The tag; that of the message if a receive took any.
    pub tag: i64,
    /// The number of the communicator.
    pub communicator: i64,
    /// Size of the message or its buffer \[B\].
    pub bytes: u64,
    /// The number of the request, of kinds that post one.
    pub request: Option<u32>,
    /// The source of a receive from any, if known.
    pub source: Option<u32>,
}

/// Fields that records refer to.
#[derive(Debug)]
struct StoredPhrase {
    /// Name and fields as text.
    text: Vec<u8>,
    /// Peer, tag and communicator of a channel.
    channel: Option<[i64; 3]>,
    is_cancel: bool,
}

/// Reads the actions of a shard.
///
/// They end after the last complete record. The use of an undefined phrase, which no tracer writes, is an error.
#[derive(Debug)]
pub struct ShardReader<R> {
    input: BufReader<R>,
    header: Vec<u8>,
    state: ProcessState,
    rank: u32,
    /// The action that was begun and not completed.
    begun: Option<Unit>,
    phrases: HashMap<u32, StoredPhrase>,
    phrase: Vec<u8>,
}

impl<R: Read> ShardReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// If the file cannot be read, or is no shard of this version.
    pub fn new(input: R) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        let mut header = Vec::new();
        Read::by_ref(&mut input).take(MAX_HEADER).read_until(b'\n', &mut header)?;
        match ParsedHeader::parse(&String::from_utf8_lossy(&header)) {
            ParsedHeader::Shard { rank, .. } => {
                let mut state = Vec::with_capacity(ProcessState::BYTES);
                Read::by_ref(&mut input).take(ProcessState::BYTES as u64).read_to_end(&mut state)?;
                state.resize(ProcessState::BYTES, 0);
                let state = state.first_chunk().map(ProcessState::from_bytes).unwrap_or_default();
                Ok(Self {
                    input,
                    header,
                    state,
                    rank,
                    begun: None,
                    phrases: HashMap::new(),
                    phrase: Vec::new(),
                })
            }
            ParsedHeader::OtherVersion(found) => Err(invalid_data(format!(
                "found a shard of version {found}, expected {}; use the tracer that belongs to this program",
                ParsedHeader::VERSION
            ))),
            ParsedHeader::NotAShard => Err(invalid_data("found no first line of a shard".to_owned())),
        }
    }

    /// Returns the rank of the process.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the state of the process.
    pub fn state(&self) -> &ProcessState {
        &self.state
    }

    /// Returns the action that the process had begun and not completed, once all records were read: as it is recorded if it
    /// completes.
    ///
    /// # Errors
    /// If the record is wrong.
    pub fn begun(&self) -> io::Result<Option<Action<'_>>> {
        self.begun.map(|unit| self.action(unit, Deferred::default())).transpose()
    }

    /// Returns the first line, with its newline.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns the next action; `None` after the last complete record.
    ///
    /// # Errors
    /// If the file cannot be read, or a record is wrong.
    pub fn read_record(&mut self) -> io::Result<Option<Record<'_>>> {
        loop {
            let unit = self.unit()?.and_then(Unit::from_bytes);
            let Some((unit, form)) = unit.filter(|(unit, _)| unit.kind != Kind::End) else {
                return Ok(None);
            };
            if form == Form::Begun {
                self.begun = Some(unit);
                return Ok(None);
            }
            if unit.kind == Kind::Phrase {
                if self.define(unit)?.is_none() {
                    return Ok(None);
                }
                continue;
            }
            let later = match form {
                Form::Deferred => self.unit()?.map(Deferred::from_bytes),
                Form::Plain | Form::Begun => Some(Deferred::default()),
            };
            let Some(later) = later else { return Ok(None) };
            if unit.kind == Kind::Failed {
                continue;
            }
            return Ok(Some(Record { action: self.action(unit, later)?, nanos: later.nanos }));
        }
    }

    fn action(&self, unit: Unit, later: Deferred) -> io::Result<Action<'_>> {
        let phrase = || {
            let known = self.phrases.get(&unit.index);
            known.ok_or_else(|| invalid_data(format!("phrase {} is used and was not defined", unit.index)))
        };
        Ok(match unit.kind {
            Kind::Init => Action::Init,
            Kind::Finalize => Action::Finalize,
            Kind::Compute => Action::Compute { flops: f64::from_bits(unit.amount) },
            Kind::Wait => Action::Wait { request: unit.slot },
            Kind::Send | Kind::Isend | Kind::Recv | Kind::Irecv => {
                let no_channel = || invalid_data(format!("phrase {} is no {}", unit.index, Phrase::CHANNEL));
                let [peer, tag, communicator] = phrase()?.channel.ok_or_else(no_channel)?;
                let posts = matches!(unit.kind, Kind::Isend | Kind::Irecv);
                Action::Message(Message {
                    kind: unit.kind,
                    peer,
                    tag: later.tag().map_or(tag, i64::from),
                    communicator,
                    bytes: unit.amount,
                    request: posts.then_some(unit.slot),
                    source: later.source(),
                })
            }
            Kind::Call | Kind::Phrase | Kind::End | Kind::Failed => {
                let StoredPhrase { text, is_cancel, .. } = phrase()?;
                Action::Call { text, cancelled: is_cancel.then_some(later.outcome == Deferred::CANCELLED) }
            }
        })
    }

    /// Reads a phrase; returns `None` if it is cut short.
    fn define(&mut self, unit: Unit) -> io::Result<Option<()>> {
        if unit.amount > MAX_PHRASE {
            return Err(invalid_data(format!(
                "a phrase has {} bytes, expected at most {MAX_PHRASE}",
                unit.amount
            )));
        }
        self.phrase.clear();
        let padded = unit.amount.next_multiple_of(UNIT as u64);
        // `take` instead of an allocation of this size: memory is bounded by the data that is really there.
        let read = Read::by_ref(&mut self.input).take(padded).read_to_end(&mut self.phrase)?;
        self.phrase.truncate(unit.amount as usize);
        if read as u64 != padded {
            return Ok(None);
        }
        match StoredPhrase::decode(&self.phrase) {
            Some(phrase) => self.phrases.insert(unit.index, phrase),
            None => self.phrases.remove(&unit.index),
        };
        Ok(Some(()))
    }

    fn unit(&mut self) -> io::Result<Option<[u8; UNIT]>> {
        let mut bytes = [0; UNIT];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl StoredPhrase {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (name, fields) = Fields::new(bytes)?;
        let mut text = name.to_vec();
        let mut channel = [None; 3];
        for (place, field) in fields.enumerate() {
            text::write_field(&mut text, &field);
            if let (Some(number), Field::Number(found)) = (channel.get_mut(place), field) {
                *number = Some(found);
            }
        }
        let channel =
            if let [Some(peer), Some(tag), Some(on)] = channel { Some([peer, tag, on]) } else { None };
        Some(Self { is_cancel: name == b"cancel", text, channel })
    }
}

fn invalid_data(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
