//! Schedule archives: memory-mapped files that hold the tables as they lie in memory.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `\x89PDG\r\n\x1a\n` |
//! | 8..12 | version, 1 |
//! | 12..16 | byte order mark, `0x0a0b0c0d` |
//! | 16..24 | length of the file \[B\] |
//! | 24..32 | ranks |
//! | 32..40 | operations |
//! | 40..48 | dependencies |
//! | 48..56 | channels |
//! | 56..64 | XXH3 (64 bits) of everything after the header |
//! | 64..72 | XXH3 (64 bits) of bytes 0..64 |
//! | 72.. | per rank and once more, index of the first operation (u64) |
//! | | per rank and once more, index of the first channel that leads to it (u64) |
//! | | operations, 16 bytes each: size (u64), channel (u32, all bits set: none), kind (1 send, 2 receive, 3 computation), processor, interface, 1 if dependencies leave the start |
//! | | per operation and once more, index of the first dependency that leaves it (u32) |
//! | | dependencies: number of the dependent operation in the rank (u32), bit 31 set if the start suffices |
//! | | channels, 12 bytes each, sorted by destination: source, destination, tag (u32, all bits set: any) |
//!
//! All numbers are little-endian; each table starts at a multiple of 8 bytes, zero-padded.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::thread;

use bytemuck::Pod;
use outputs::AtomicFile;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{ArchiveError, FileError};
use crate::schedule::{Channel, Node, Schedule, Storage, Tables};

/// First bytes of an archive. As in PNG, a non-ASCII byte and line ends reveal transfers as text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89PDG\r\n\x1a\n";
const VERSION: u32 = 1;
const BYTE_ORDER: u32 = 0x0a0b_0c0d;
const HEADER: usize = 72;

/// Numbers of table entries in a header.
#[derive(Clone, Copy, Debug)]
struct TableSizes {
    ranks: u64,
    nodes: u64,
    edges: u64,
    channels: u64,
}

impl TableSizes {
    fn of(tables: &Tables<'_>) -> Self {
        Self {
            ranks: tables.ranks().into(),
            nodes: tables.nodes.len() as u64,
            edges: tables.edges.len() as u64,
            channels: tables.channels.len() as u64,
        }
    }

    /// Returns the byte range of each table and the length of the file; `None` if that exceeds any file.
    fn layout(&self) -> Option<([Range<usize>; 6], usize)> {
        let lengths = [
            (self.ranks.checked_add(1)?, size_of::<u64>()),
            (self.ranks.checked_add(1)?, size_of::<u64>()),
            (self.nodes, size_of::<Node>()),
            (self.nodes.checked_add(1)?, size_of::<u32>()),
            (self.edges, size_of::<u32>()),
            (self.channels, size_of::<Channel>()),
        ];
        let mut end = HEADER;
        let mut tables = [const { 0..0 }; 6];
        for (table, (entries, bytes)) in tables.iter_mut().zip(lengths) {
            let start = end;
            end = start.checked_add(usize::try_from(entries).ok()?.checked_mul(bytes)?)?;
            *table = start..end;
            end = end.checked_next_multiple_of(8)?;
        }
        Some((tables, end))
    }

    fn header(&self, length: u64, checksum: u64) -> [u8; HEADER] {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(BYTE_ORDER.to_le_bytes());
        for word in [length, self.ranks, self.nodes, self.edges, self.channels, checksum] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        let mut header = [0; HEADER];
        header.copy_from_slice(&bytes);
        header
    }
}

/// Writes a schedule to a file atomically and returns its length \[B\].
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_archive(schedule: &Schedule, path: &Path) -> Result<u64, FileError> {
    write(schedule, path).map_err(|error| FileError { file: path.to_owned(), problem: error.into() })
}

fn write(schedule: &Schedule, path: &Path) -> io::Result<u64> {
    let tables = schedule.tables();
    let sizes = TableSizes::of(&tables);
    let beyond = || io::Error::other("the schedule is larger than any file");
    let (_, length) = sizes.layout().ok_or_else(beyond)?;
    let mut checksum = Xxh3::new();
    let hash = for_each_table(&tables, |bytes| {
        checksum.update(bytes);
        Ok(())
    });
    hash?;
    let mut file = AtomicFile::create_seekable(path)?;
    file.write_all(&sizes.header(length as u64, checksum.digest()))?;
    for_each_table(&tables, |bytes| file.write_all(bytes))?;
    file.commit()
}

/// Calls `take` with the bytes of each table and of its padding, in file order.
fn for_each_table(tables: &Tables<'_>, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let all: [&[u8]; 6] = [
        bytemuck::cast_slice(tables.first_node),
        bytemuck::cast_slice(tables.first_channel),
        bytemuck::cast_slice(tables.nodes),
        bytemuck::cast_slice(tables.first_edge),
        bytemuck::cast_slice(tables.edges),
        bytemuck::cast_slice(tables.channels),
    ];
    for bytes in all {
        take(bytes)?;
        take(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()])?;
    }
    Ok(())
}

/// Memory-mapped bytes of an archive with a valid header.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: memmap2::Mmap,
    tables: [Range<usize>; 6],
}

impl Mapped {
    pub(crate) fn tables(&self) -> Tables<'_> {
        let [first_node, first_channel, nodes, first_edge, edges, channels] = &self.tables;
        Tables {
            first_node: self.table(first_node),
            first_channel: self.table(first_channel),
            nodes: self.table(nodes),
            first_edge: self.table(first_edge),
            edges: self.table(edges),
            channels: self.table(channels),
        }
    }

    /// Returns a table as a slice. Maps start at pages and tables at multiples of 8 bytes, so it is aligned.
    fn table<T: Pod>(&self, range: &Range<usize>) -> &[T] {
        bytemuck::cast_slice(&self.map[range.clone()])
    }
}

/// Checks an archive and returns its schedule: header, checksum and, concurrently and on up to `threads` threads,
/// tables.
pub(crate) fn from_map(map: memmap2::Mmap, threads: usize) -> Result<Schedule, ArchiveError> {
    let tables = check_header(&map)?;
    let mapped = Mapped { map, tables };
    let (checksum, checked) = thread::scope(|scope| {
        let checksum = scope.spawn(|| xxh3_64(&mapped.map[HEADER..]));
        let checked = mapped.tables().check(threads);
        (checksum.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), checked)
    });
    if checksum != u64::from_le_bytes(read_field(&mapped.map, 56)) {
        return Err(ArchiveError::Data);
    }
    Ok(Schedule::from_checked(Storage::Mapped(mapped), checked?))
}

fn check_header(bytes: &[u8]) -> Result<[Range<usize>; 6], ArchiveError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(ArchiveError::Magic);
    }
    let found = bytes.len() as u64;
    if bytes.len() < HEADER {
        return Err(ArchiveError::Length { found, expected: HEADER as u64 });
    }
    let version = u32::from_le_bytes(read_field(bytes, 8));
    if version != VERSION {
        return Err(ArchiveError::Version { found: version, expected: VERSION });
    }
    let sum = u64::from_le_bytes(read_field(bytes, 64));
    if xxh3_64(&bytes[..64]) != sum || u32::from_ne_bytes(read_field(bytes, 12)) != BYTE_ORDER {
        return Err(ArchiveError::Header);
    }
    let expected = u64::from_le_bytes(read_field(bytes, 16));
    if found != expected {
        return Err(ArchiveError::Length { found, expected });
    }
    let [ranks, nodes, edges, channels] =
        [24, 32, 40, 48].map(|at| u64::from_le_bytes(read_field(bytes, at)));
    let layout = TableSizes { ranks, nodes, edges, channels }.layout();
    let (tables, _) = layout.filter(|(_, end)| *end as u64 == expected).ok_or(ArchiveError::Header)?;
    Ok(tables)
}

fn read_field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}
