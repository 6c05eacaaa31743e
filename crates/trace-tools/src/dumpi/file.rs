//! The parts of a file: index, header, footer, sizes of datatypes, and the records.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::functions::{self, COUNTERS, END};
use super::{DumpiError, MAGIC};
use crate::error::InputError;

/// Number of words of the index that are read, more than any version has.
const INDEX_WORDS: u64 = 16;

/// First bytes of a footer.
const FOOTER: u64 = 0xf007_fee7;

/// What a file says about itself.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) path: PathBuf,
    pub(super) version: [u8; 3],
    /// How often each function was called, and how often it was called and not recorded.
    pub(super) calls: Vec<[u32; 2]>,
    /// Sizes of datatypes by number \[B\]; `None` in files of early versions.
    pub(super) sizes: Option<Vec<u32>>,
    /// Begin and end of the records \[B\].
    body: [u64; 2],
}

/// An error with the number of its record.
pub(super) struct Bad {
    pub(super) record: u64,
    pub(super) error: Problem,
}

/// An error in a file, or of reading it.
pub(super) enum Problem {
    Dumpi(DumpiError),
    Io(std::io::Error),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DumpiError> for Problem {
    fn from(error: DumpiError) -> Self {
        Self::Dumpi(error)
    }
}

impl Parts {
    /// Reads the parts of a file other than its records.
    pub(super) fn read(path: &Path) -> Result<Self, InputError> {
        let problem = |problem| match problem {
            Problem::Io(source) => InputError::Io { file: path.to_path_buf(), source },
            Problem::Dumpi(problem) => InputError::Dumpi { file: path.to_path_buf(), problem },
        };
        let file = File::open(path).map_err(InputError::io(path))?;
        Self::read_from(path, file).map_err(problem)
    }

    fn read_from(path: &Path, mut file: File) -> Result<Self, Problem> {
        let length = file.metadata()?.len();
        let index_at = length.saturating_sub(8 * INDEX_WORDS);
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(index_at))?;
        file.read_to_end(&mut tail)?;
        // The last word first.
        let words: Vec<[u8; 8]> = tail.rchunks_exact(8).filter_map(|word| word.try_into().ok()).collect();
        let count = words.iter().position(|word| *word == MAGIC).filter(|count| *count >= 4);
        let count = count.ok_or(DumpiError::NoIndex)?;
        let index_at = length - 8 * (count as u64 + 1);
        let offset = |word: usize| words[..count].get(word).map_or(0, |word| u64::from_be_bytes(*word));
        let mut part = |part, offset: u64, bytes: usize| {
            let mut found = vec![0; bytes];
            if offset == 0 || offset.saturating_add(bytes as u64) > index_at {
                return Err(Problem::Dumpi(DumpiError::Part { part, offset }));
            }
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut found)?;
            Ok(found)
        };
        let [footer, body, header, sizes] = [1, 2, 3, 6].map(offset);
        let version = part("header", header, 3)?;
        let found = part("footer", footer, 8 + 8 * COUNTERS)?;
        let (magic, counters) = found.split_at(8);
        if magic != FOOTER.to_be_bytes() {
            return Err(DumpiError::Part { part: "footer", offset: footer }.into());
        }
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("4 bytes"));
        let (called, unrecorded) = counters.split_at(4 * COUNTERS);
        let pairs = called.chunks_exact(4).zip(unrecorded.chunks_exact(4));
        let calls = pairs.map(|(called, unrecorded)| [number(called), number(unrecorded)]).collect();
        let sizes = match sizes {
            0 => None,
            offset => {
                const NAME: &str = "table of datatypes";
                let count = number(&part(NAME, offset, 4)?);
                let bytes = 4 * u64::from(count).min(index_at);
                Some(part(NAME, offset + 4, bytes as usize)?.chunks_exact(4).map(number).collect())
            }
        };
        // The records end where the next part begins.
        let others = (0..count).map(offset).filter(|other| *other > body).min();
        let body = [body, others.unwrap_or(index_at).min(index_at)];
        part("stream of records", body[0], 8)?;
        let version = [version[0], version[1], version[2]];
        Ok(Self { path: path.to_path_buf(), version, calls, sizes, body })
    }

    /// Starts at the first record.
    pub(super) fn records(&self) -> Result<Records, InputError> {
        let mut file = File::open(&self.path).map_err(InputError::io(&self.path))?;
        let [at, end] = self.body;
        // After the seconds that are subtracted from all times, which do not matter.
        file.seek(SeekFrom::Start(at + 8)).map_err(InputError::io(&self.path))?;
        let (reader, record) = (BufReader::with_capacity(1 << 16, file), Record::default());
        Ok(Records { reader, at: at + 8, end, version: self.version, record, seconds: 0 })
    }
}

/// A record of a call. It is overwritten by the next one.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Its number, from 1.
    pub(super) number: u64,
    /// The function; empty for the begin or end of a function other than those of MPI.
    pub(super) name: &'static str,
    pub(super) thread: u16,
    /// When the call began and ended, from some instant on \[ns\].
    pub(super) times: [u64; 2],
    /// The arguments: numbers, arrays, and statuses, each in their order.
    pub(super) numbers: Vec<i64>,
    pub(super) arrays: Vec<Vec<i64>>,
    pub(super) statuses: Vec<Status>,
}

/// The part of a status that is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) source: i64,
}

/// The records of a file.
pub(super) struct Records {
    reader: BufReader<File>,
    /// Position, and end of the records \[B\].
    at: u64,
    end: u64,
    version: [u8; 3],
    record: Record,
    /// Seconds of the last time: they are recorded modulo 2^16.
    seconds: u64,
}

/// Bits of the mask of a record: what it has.
const STATUSES: u8 = 3;
const PROCESSOR_TIME: u8 = 1 << 2;
const WALL_TIME: u8 = 1 << 3;
const THREAD: u8 = 1 << 6;
const COUNTERS_OF_CALL: u8 = 1 << 7;

impl Records {
    /// Reads the next record; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&Record>, Bad> {
        let number = self.record.number + 1;
        match self.read_record(number) {
            Ok(true) => Ok(Some(&self.record)),
            Ok(false) => Ok(None),
            Err(error) => Err(Bad { record: number, error }),
        }
    }

    fn read_record(&mut self, number: u64) -> Result<bool, Problem> {
        let at = self.at;
        let found = self.bytes("next record").map(u16::from_be_bytes)?;
        if found == END {
            return Ok(false);
        }
        let (name, layout) =
            functions::find(found, self.version).ok_or(DumpiError::Function { at, found })?;
        let [mask] = self.bytes("mask of the record")?;
        let mut record = std::mem::take(&mut self.record);
        (record.number, record.name) = (number, name);
        record.numbers.clear();
        record.arrays.clear();
        record.statuses.clear();
        record.thread = if mask & THREAD == 0 { 0 } else { self.bytes("thread").map(u16::from_be_bytes)? };
        let mut times = None;
        for _ in 0..(mask & (PROCESSOR_TIME | WALL_TIME)).count_ones() {
            times = Some([self.time()?, self.time()?]);
        }
        let [begin, end] = times.ok_or(DumpiError::NoTime { at, name })?;
        record.times = [self.nanos(begin), self.nanos(end)];
        if mask & COUNTERS_OF_CALL != 0 {
            let [counters] = self.bytes("counters")?;
            self.skip(16 * i32::from(counters), 1, name)?;
        }
        self.arguments(&mut record, layout, mask)?;
        self.record = record;
        Ok(true)
    }

    /// Reads seconds, modulo 2^16, and nanoseconds.
    fn time(&mut self) -> Result<(u16, u32), Problem> {
        const WHAT: &str = "time of the record";
        Ok((self.bytes(WHAT).map(u16::from_be_bytes)?, self.bytes(WHAT).map(u32::from_be_bytes)?))
    }

    /// Returns a time that is within nine hours of the last one \[ns\].
    fn nanos(&mut self, (seconds, nanos): (u16, u32)) -> u64 {
        let ahead = i64::from(seconds.wrapping_sub(self.seconds as u16) as i16);
        self.seconds = self.seconds.saturating_add_signed(ahead);
        self.seconds.saturating_mul(1_000_000_000).saturating_add(nanos.into())
    }

    fn arguments(&mut self, record: &mut Record, layout: &str, mask: u8) -> Result<(), Problem> {
        const WHAT: &str = "arguments of the call";
        let (name, mut letters, mut is_there) = (record.name, layout.chars(), true);
        while let Some(letter) = letters.next() {
            match letter {
                '?' => {
                    let mut number = || {
                        let index = letters.next().and_then(|digit| digit.to_digit(10));
                        index.and_then(|index| record.numbers.get(index as usize).copied())
                    };
                    is_there = number() == number();
                }
                '.' => is_there = true,
                _ if !is_there => {}
                'b' => record.numbers.push(self.bytes(WHAT).map(|[byte]| byte.into())?),
                'h' => record.numbers.push(self.bytes(WHAT).map(u16::from_be_bytes)?.into()),
                'i' => record.numbers.push(self.bytes(WHAT).map(i32::from_be_bytes)?.into()),
                'l' => record.numbers.push(self.bytes(WHAT).map(i64::from_be_bytes)?),
                'a' => record.arrays.push(self.array(name, 4)?),
                'H' => record.arrays.push(self.array(name, 2)?),
                'A' => {
                    for _ in 0..self.length(name, 4)? {
                        record.arrays.push(self.array(name, 4)?);
                    }
                }
                'B' => self.strings(name, 0)?,
                'S' => self.strings(name, 1)?,
                'T' => self.strings(name, 2)?,
                's' if mask & STATUSES != 0 => {
                    // The tag came with version 0.6.3.
                    let bytes = if self.version < [0, 6, 3] { 10 } else { 14 };
                    for _ in 0..self.length(name, bytes)? {
                        let [_, source] = [self.bytes(WHAT)?, self.bytes(WHAT)?].map(i32::from_be_bytes);
                        self.skip(i32::from(bytes) - 8, 1, name)?;
                        record.statuses.push(Status { source: source.into() });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a number of elements, which all are there.
    fn length(&mut self, name: &'static str, bytes: u8) -> Result<u64, Problem> {
        let at = self.at;
        let found = self.bytes("number of elements").map(i32::from_be_bytes)?;
        let length = u64::try_from(found).ok();
        let is_there = |length: &u64| length * u64::from(bytes) <= self.end - self.at;
        length.filter(is_there).ok_or_else(|| DumpiError::Length { at, name, found }.into())
    }

    fn array(&mut self, name: &'static str, bytes: u8) -> Result<Vec<i64>, Problem> {
        const WHAT: &str = "element of an array";
        let length = self.length(name, bytes)?;
        let mut elements = Vec::with_capacity(length as usize);
        for _ in 0..length {
            elements.push(match bytes {
                2 => self.bytes(WHAT).map(u16::from_be_bytes)?.into(),
                _ => self.bytes(WHAT).map(i32::from_be_bytes)?.into(),
            });
        }
        Ok(elements)
    }

    /// Skips a string, a list of strings, or a list of such lists.
    fn strings(&mut self, name: &'static str, depth: u8) -> Result<(), Problem> {
        let length = self.length(name, 1)?;
        if depth == 0 {
            return self.skip(length as i32, 1, name);
        }
        (0..length).try_for_each(|_| self.strings(name, depth - 1))
    }

    fn skip(&mut self, count: i32, bytes: u64, name: &'static str) -> Result<(), Problem> {
        let skipped = count as u64 * bytes;
        if skipped > self.end - self.at {
            return Err(DumpiError::Length { at: self.at, name, found: count }.into());
        }
        self.at += skipped;
        Ok(self.reader.seek_relative(skipped as i64)?)
    }

    fn bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        if N as u64 > self.end.saturating_sub(self.at) {
            return Err(DumpiError::Truncated { at: self.at, what }.into());
        }
        self.reader.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }
}
