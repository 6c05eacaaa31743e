//! The format of logs (`darshan-log-format.h`, `darshan-dxt-log-format.h`).
//!
//! A header of fixed size has the places of regions, each of which is compressed by itself: one of the job, one of the names of files,
//! and one for each module. Numbers have the order of bytes of the machine that wrote the log; the magic number tells which.

use std::io::{self, Read};

use flate2::bufread::ZlibDecoder;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_mmap::{FileName, MAX_RANKS, OpError};

use super::MAGIC;

/// A log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DarshanError {
    /// The version is not known.
    #[error(
        "a Darshan log of version {found}, expected 3.10, 3.20, 3.21 or 3.41; `darshan-convert` writes the newest"
    )]
    Version {
        /// Version found.
        found: String,
    },
    /// The regions are compressed in a way that is not read.
    #[error(
        "a Darshan log that is compressed with bzip2, expected zlib or none; `darshan-convert` writes zlib"
    )]
    Compression,
    /// The log has counters only.
    #[error("a Darshan log without accesses (DXT): record the program with DXT_ENABLE_IO_TRACE=1")]
    NoAccesses,
    /// A region is damaged, or the log is cut short.
    #[error("a Darshan log that is damaged or cut short: {part}")]
    Damaged {
        /// The part.
        part: &'static str,
    },
    /// A region cannot be decompressed.
    #[error("a Darshan log that is damaged or cut short: {part}: {source}")]
    Compressed {
        /// The part.
        part: &'static str,
        /// The error of the decoder.
        source: io::Error,
    },
    /// The number of ranks, or that of a rank, is out of range.
    #[error("a Darshan log with {what} {found}, expected {expected}")]
    Range {
        /// The number.
        what: &'static str,
        /// Value found.
        found: i64,
        /// Values expected.
        expected: String,
    },
    /// An access is invalid.
    #[error("a Darshan log with an access of rank {rank} that a trace cannot have: {error}")]
    Access {
        /// Rank.
        rank: u32,
        /// The error.
        error: OpError,
    },
}

fn damaged(part: &'static str) -> DarshanError {
    DarshanError::Damaged { part }
}

/// An access of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    /// Number of the file.
    pub(super) file: u64,
    pub(super) is_write: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Begin and end, from the begin of the job \[s\].
    pub(super) begin: f64,
    pub(super) end: f64,
}

/// The accesses of a job.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) ranks: u32,
    /// Names of files, in printable ASCII.
    pub(super) names: FxHashMap<u64, FileName>,
    /// Names of the modules that lack records, with commas; empty if there are none.
    pub(super) incomplete: String,
    by_rank: FxHashMap<u32, Vec<Segment>>,
}

/// Size and places of the header, which differ between versions.
struct Layout {
    /// Number of the place of the first module with accesses, that of POSIX; that of MPI-IO follows.
    dxt: usize,
    /// Number of places of modules.
    modules: usize,
    /// Position of the number of processes in the description of the job \[B\].
    processes: usize,
}

impl Layout {
    fn of(version: &[u8]) -> Option<Self> {
        // 3.20 has got a module of HDF5's data sets before these, 3.41 one of PnetCDF's variables.
        match version {
            b"3.10" => Some(Self { dxt: 8, modules: 16, processes: 24 }),
            b"3.20" | b"3.21" => Some(Self { dxt: 9, modules: 16, processes: 24 }),
            b"3.41" => Some(Self { dxt: 10, modules: 64, processes: 40 }),
            _ => None,
        }
    }

    /// Returns the name of a module by its number.
    fn module(&self, number: usize) -> String {
        const FIRST: [&str; 3] = ["no module", "POSIX", "MPI-IO"];
        /// The modules before those of accesses, and from these on.
        const LAST: [&str; 6] = ["BG/Q", "LUSTRE", "STDIO", "DXT_POSIX", "DXT_MPIIO", "MDHIM"];
        let formats: &[&str] = match self.dxt {
            8 => &["HDF5", "PNETCDF"],
            9 => &["H5F", "H5D", "PNETCDF"],
            _ => &["H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR"],
        };
        let name = FIRST.iter().chain(formats).chain(&LAST).nth(number);
        name.map_or_else(|| format!("module {number}"), ToString::to_string)
    }

    /// Returns the position of the places of regions \[B\].
    fn places(&self) -> usize {
        if self.modules == 16 { 24 } else { 32 }
    }

    fn header(&self) -> usize {
        self.places() + 16 * (1 + self.modules) + 4 * self.modules
    }
}

/// Numbers in the order of bytes of a log.
#[derive(Clone, Copy)]
struct Numbers {
    is_big_endian: bool,
}

impl Numbers {
    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        Some(self.u64(bytes, at)? as i64)
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn time(self, bytes: &[u8], at: usize) -> Option<f64> {
        // 10^8 s are three years.
        Some(f64::from_bits(self.u64(bytes, at)?)).filter(|seconds| (0.0..1e8).contains(seconds))
    }
}

impl Log {
    /// Reads a log.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DarshanError> {
        let head = bytes.get(..24).ok_or_else(|| damaged("the header"))?;
        let version = head[..8].split(|byte| *byte == 0).next().unwrap_or_default();
        let layout = Layout::of(version);
        let found = || DarshanError::Version { found: String::from_utf8_lossy(version).into_owned() };
        let layout = layout.ok_or_else(found)?;
        let numbers = Numbers { is_big_endian: head[8..16] == *MAGIC[1] };
        let reader = RegionReader { bytes, numbers, layout, is_compressed: head[16] == 0 };
        match head[16] {
            0 | 2 => reader.log(),
            _ => Err(DarshanError::Compression),
        }
    }

    /// Returns the accesses of a rank in the order of their begin, and then of their end.
    pub(super) fn segments(&self, rank: u32) -> Vec<Segment> {
        let mut segments = self.by_rank.get(&rank).cloned().unwrap_or_default();
        segments.sort_by(|one, other| one.begin.total_cmp(&other.begin).then(one.end.total_cmp(&other.end)));
        segments
    }
}

struct RegionReader<'a> {
    bytes: &'a [u8],
    numbers: Numbers,
    layout: Layout,
    is_compressed: bool,
}

impl RegionReader<'_> {
    fn log(&self) -> Result<Log, DarshanError> {
        let ranks = self.ranks()?;
        let (names, incomplete) = (self.names()?, self.incomplete()?);
        let mut log = Log { ranks, names, incomplete, by_rank: FxHashMap::default() };
        let (posix, mpi) = (self.accesses(0, ranks)?, self.accesses(1, ranks)?);
        let seen: FxHashSet<u64> = posix.iter().map(|(_, segment)| segment.file).collect();
        let others = mpi.into_iter().filter(|(_, segment)| !seen.contains(&segment.file));
        for (rank, segment) in posix.into_iter().chain(others) {
            log.by_rank.entry(rank).or_default().push(segment);
        }
        if log.by_rank.is_empty() { Err(DarshanError::NoAccesses) } else { Ok(log) }
    }

    /// Returns the names of the modules that lack records, by a bit for each before the places of regions.
    fn incomplete(&self) -> Result<String, DarshanError> {
        let (places, numbers) = (self.layout.places(), self.numbers);
        let flags = match self.layout.modules {
            16 => numbers.u32(self.bytes, places - 4).map(u64::from),
            _ => numbers.u64(self.bytes, places - 8),
        };
        let flags = flags.ok_or_else(|| damaged("the header"))?;
        let modules = (0..self.layout.modules).filter(|module| flags >> module & 1 == 1);
        Ok(modules.map(|module| self.layout.module(module)).collect::<Vec<_>>().join(", "))
    }

    /// Returns the place of a region, by its number: 0 has the names, 1 is the first module.
    fn place(&self, number: usize) -> Option<(u64, u64)> {
        let at = self.layout.places() + 16 * number;
        Some((self.numbers.u64(self.bytes, at)?, self.numbers.u64(self.bytes, at + 8)?))
    }

    fn region(&self, (begin, len): (u64, u64), part: &'static str) -> Result<Vec<u8>, DarshanError> {
        let end = begin.checked_add(len).and_then(|end| usize::try_from(end).ok());
        let found = end.and_then(|end| self.bytes.get(begin as usize..end));
        let mut left = found.ok_or_else(|| damaged(part))?;
        if !self.is_compressed {
            return Ok(left.to_vec());
        }
        let mut data = Vec::new();
        // Each process has appended streams of its own.
        while !left.is_empty() {
            let mut stream = ZlibDecoder::new(left);
            stream.read_to_end(&mut data).map_err(|source| DarshanError::Compressed { part, source })?;
            let rest = stream.into_inner();
            if rest.len() == left.len() {
                return Err(damaged(part));
            }
            left = rest;
        }
        Ok(data)
    }

    /// Reads the number of processes from the description of the job, which is between the header and the first region.
    fn ranks(&self) -> Result<u32, DarshanError> {
        const PART: &str = "the description of the job";
        let begin = self.layout.header() as u64;
        let places = (0..=self.layout.modules).filter_map(|number| self.place(number));
        let first = places.map(|(begin, _)| begin).filter(|begin| *begin > 0).min();
        let end = first.unwrap_or(self.bytes.len() as u64);
        let len = end.checked_sub(begin).ok_or_else(|| damaged(PART))?;
        let job = self.region((begin, len), PART)?;
        let found = self.numbers.i64(&job, self.layout.processes).ok_or_else(|| damaged(PART))?;
        if (1..=i64::from(MAX_RANKS)).contains(&found) {
            return Ok(found as u32);
        }
        Err(DarshanError::Range {
            what: "a number of processes of",
            found,
            expected: format!("1 to {MAX_RANKS}"),
        })
    }

    fn names(&self) -> Result<FxHashMap<u64, FileName>, DarshanError> {
        const PART: &str = "the names of files";
        let place = self.place(0).ok_or_else(|| damaged(PART))?;
        if place.1 == 0 {
            return Ok(FxHashMap::default());
        }
        let data = self.region(place, PART)?;
        let (mut names, mut left) = (FxHashMap::default(), &data[..]);
        while !left.is_empty() {
            let id = self.numbers.u64(left, 0).ok_or_else(|| damaged(PART))?;
            let end = left[8..].iter().position(|byte| *byte == 0).ok_or_else(|| damaged(PART))?;
            let name = FileName::new(&printable(&left[8..8 + end]));
            names.extend(name.map(|name| (id, name)));
            left = &left[8 + end + 1..];
        }
        Ok(names)
    }

    /// Reads the accesses of a module, with their ranks: 0 is that of POSIX, 1 that of MPI-IO.
    fn accesses(&self, module: usize, ranks: u32) -> Result<Vec<(u32, Segment)>, DarshanError> {
        let part = ["the accesses by POSIX", "the accesses by MPI-IO"][module];
        let number = self.layout.dxt + module;
        let place = self.place(1 + number).ok_or_else(|| damaged(part))?;
        if place.1 == 0 {
            return Ok(Vec::new());
        }
        let versions = self.layout.places() + 16 * (1 + self.layout.modules);
        let version = self.numbers.u32(self.bytes, versions + 4 * number).ok_or_else(|| damaged(part))?;
        // The first version for MPI-IO has no offsets.
        if module == 1 && version == 1 {
            return Ok(Vec::new());
        }
        let has_threads = version > 1 + module as u32;
        let data = self.region(place, part)?;
        let mut records =
            Records { numbers: self.numbers, data: &data, size: if has_threads { 40 } else { 32 } };
        let mut all = Vec::new();
        while !records.data.is_empty() {
            records.next(ranks, &mut all).ok_or_else(|| damaged(part))??;
        }
        Ok(all)
    }
}

/// The records of a module: each has the accesses of a rank to a file, first writes, then reads.
struct Records<'a> {
    numbers: Numbers,
    data: &'a [u8],
    /// Size of an access \[B\].
    size: usize,
}

impl Records<'_> {
    /// Size of a record without accesses \[B\]: file, rank, a flag, the name of a host, and the numbers of writes and reads.
    const HEAD: usize = 24 + 64 + 16;

    /// Takes the next record; `None` if it is damaged.
    fn next(&mut self, ranks: u32, all: &mut Vec<(u32, Segment)>) -> Option<Result<(), DarshanError>> {
        let Self { numbers, data, size } = *self;
        let (file, rank) = (numbers.u64(data, 0)?, numbers.i64(data, 8)?);
        let (writes, reads) = (numbers.u64(data, 88)?, numbers.u64(data, 96)?);
        let Some(known) = u32::try_from(rank).ok().filter(|rank| *rank < ranks) else {
            let expected = format!("one from 0 to {}", ranks - 1);
            return Some(Err(DarshanError::Range { what: "accesses of rank", found: rank, expected }));
        };
        let accesses = usize::try_from(writes.checked_add(reads)?).ok()?;
        let end = accesses.checked_mul(size)?.checked_add(Self::HEAD)?;
        let segments = data.get(Self::HEAD..end)?;
        for (number, segment) in (0..).zip(segments.chunks(size)) {
            let (begin, end) = (numbers.time(segment, 16)?, numbers.time(segment, 24)?);
            let (offset, bytes) = (numbers.i64(segment, 0)?, numbers.i64(segment, 8)?);
            // An access that failed has moved nothing. One of 0 bytes, such as a read at the end of a file, has been made.
            if offset < 0 || bytes < 0 {
                continue;
            }
            let (offset, bytes) = (offset as u64, bytes as u64);
            all.push((known, Segment { file, is_write: number < writes, offset, bytes, begin, end }));
        }
        self.data = &data[end..];
        Some(Ok(()))
    }
}

/// Returns a name with `%20` and the like for bytes that are not printable ASCII, and for the percent sign, as the tracer writes it.
fn printable(name: &[u8]) -> String {
    let escaped = |&byte: &u8| match byte {
        b'%' => "%25".to_owned(),
        byte if byte.is_ascii_graphic() => char::from(byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    name.iter().map(escaped).collect()
}
