//! Encoder of the actions of a rank: folds the program into loops and moves the amounts of computations to columns.

use std::io::{self, BufWriter, Read, Seek, Write};

use rustc_hash::FxHashMap;
use tempfile::SpooledTempFile;
use xxhash_rust::xxh3::Xxh3;

use crate::archive::Damage;
use crate::archive::sporadic::{BOUNDARY, Presence, SporadicComputations};
use crate::archive::tally::{Tally, TallyError};
use crate::column::{ABSENT, ActionCountChanges, BlockWriter, Column, ColumnBuilder};
use crate::fold::Folder;
use crate::record::Record;
use crate::side_tables::SideTables;

/// Size up to which a program or its blocks are kept in memory while a rank is encoded [B]; more go to a temporary file.
pub(crate) const MAX_IN_MEMORY: usize = 32 << 20;

/// Largest number of columns of a folded program.
const MAX_COLUMNS: usize = 256;

/// Error while a rank is encoded.
#[derive(Debug)]
pub(crate) enum EncodeError {
    Io(io::Error),
    Tally(TallyError),
    /// The amounts to re-encode cannot be read.
    Damaged(Damage),
}

impl From<Damage> for EncodeError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

impl From<io::Error> for EncodeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<TallyError> for EncodeError {
    fn from(overflow: TallyError) -> Self {
        Self::Tally(overflow)
    }
}

/// An encoded rank.
pub(crate) struct Encoded {
    pub(crate) program: ProgramBytes,
    pub(crate) tally: Tally,
    pub(crate) columns: Vec<Column>,
    /// True if the last two columns hold computations inserted between the records of the program.
    pub(crate) has_inserts: bool,
    /// Blocks of the columns; in the file their directories follow, aligned to 8 bytes.
    pub(crate) blocks: Spool,
    pub(crate) blocks_len: u64,
    pub(crate) directories: Vec<u8>,
}

/// A byte stream that was written and can be read once.
pub(crate) struct Spool(SpooledTempFile);

impl Spool {
    /// Ends writing and makes the bytes readable.
    pub(crate) fn new(written: BufWriter<SpooledTempFile>) -> io::Result<Self> {
        Ok(Self(written.into_inner().map_err(io::IntoInnerError::into_error)?))
    }

    /// Passes all bytes to `sink`, from the start.
    pub(crate) fn copy_to(mut self, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.0.rewind()?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            match self.0.read(&mut buffer)? {
                0 => return Ok(()),
                read => sink(&buffer[..read])?,
            }
        }
    }
}

/// The records of a program while they are written.
pub(crate) struct ProgramBytes {
    bytes: BufWriter<SpooledTempFile>,
    hash: Xxh3,
    pub(crate) records: u64,
}

impl ProgramBytes {
    pub(crate) fn new() -> Self {
        let bytes = BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY));
        Self { bytes, hash: Xxh3::new(), records: 0 }
    }

    pub(crate) fn push(&mut self, record: Record) -> io::Result<()> {
        let bytes = record.to_bytes();
        self.hash.update(&bytes);
        self.records += 1;
        self.bytes.write_all(&bytes)
    }

    /// Returns a 128-bit hash of the records. Programs with equal hashes are taken to be equal.
    pub(crate) fn digest(&self) -> u128 {
        self.hash.digest128()
    }

    pub(crate) fn into_spool(self) -> io::Result<Spool> {
        Spool::new(self.bytes)
    }
}

impl Encoded {
    /// Returns the number of actions.
    pub(crate) fn actions(&self) -> u64 {
        ActionCountChanges::saturating_actions(&self.columns, self.has_inserts, self.tally.actions)
    }

    /// Returns the stored size of the rank [B] with its program and without, for a program that is stored already.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let shared = 24 * self.columns.len() as u64 + self.blocks_len + self.directories.len() as u64 + 8;
        (16 * self.program.records + shared, shared)
    }
}

/// Encoder of the records of a rank.
pub(crate) struct Encoder<'a> {
    folder: Folder,
    sink: ProgramSink<'a>,
    columns: ColumnSet<'a>,
    /// Heads of the last two actions that are not computations; [`BOUNDARY`] before the first action, and in the last place
    /// after two consecutive computations.
    previous_heads: [u64; 2],
    /// Pending computation, whose column depends on the next record; bits of its amount.
    pending_computation: Option<u64>,
    /// Number of program records executed so far.
    executed_records: u64,
}

/// Sink of the folded records, as they become final.
struct ProgramSink<'a> {
    program: ProgramBytes,
    tally: Tally,
    side: &'a SideTables,
}

impl ProgramSink<'_> {
    fn push(&mut self, record: Record) -> Result<(), EncodeError> {
        self.tally.push(record, self.side)?;
        Ok(self.program.push(record)?)
    }
}

/// The columns of a rank while they are built.
///
/// A column holds the computations before one kind of action on one channel, which is one place in the program, or a few. This
/// does not depend on loops, so that ranks of equal structure number their columns equally. A sporadic computation, which is
/// missing at some times, has a column of its own with absent values.
struct ColumnSet<'a> {
    sporadic: &'a SporadicComputations,
    by_context: FxHashMap<[u64; 2], u32>,
    builders: Vec<ColumnBuilder>,
    inserted: InsertedColumns,
    blocks: BlockWriter<BufWriter<SpooledTempFile>>,
}

/// Columns of the computations inserted between the records of the program.
#[derive(Default)]
struct InsertedColumns {
    /// Number of executed records from one insertion to the next.
    distances: ColumnBuilder,
    amounts: ColumnBuilder,
    /// Number of executed records before the last insertion.
    last_insertion: u64,
}

impl ColumnSet<'_> {
    /// Inserts a computation after `records` executed records.
    fn insert(&mut self, bits: u64, records: u64) -> io::Result<()> {
        let gap = records - std::mem::replace(&mut self.inserted.last_insertion, records);
        self.inserted.distances.push((gap as f64).to_bits(), &mut self.blocks)?;
        self.inserted.amounts.push(bits, &mut self.blocks)
    }

    #[inline]
    fn push(&mut self, value: u64, place: [u64; 2]) -> io::Result<u32> {
        let len = self.builders.len();
        let column = match self.by_context.get(&place) {
            Some(column) => *column,
            None if len == MAX_COLUMNS => 0,
            None => {
                self.by_context.insert(place, len as u32);
                self.builders.push(ColumnBuilder::default());
                len as u32
            }
        };
        self.builders[column as usize].push(value, &mut self.blocks)?;
        Ok(column)
    }
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(side: &'a SideTables, gaps: &'a SporadicComputations) -> Self {
        let blocks = BlockWriter::new(BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY)));
        Self {
            folder: Folder::new(),
            sink: ProgramSink { program: ProgramBytes::new(), tally: Tally::new(), side },
            columns: ColumnSet {
                sporadic: gaps,
                by_context: FxHashMap::default(),
                builders: Vec::new(),
                inserted: InsertedColumns::default(),
                blocks,
            },
            previous_heads: [BOUNDARY; 2],
            pending_computation: None,
            executed_records: 0,
        }
    }

    /// Encodes the next action.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) -> Result<(), EncodeError> {
        let Some(flops) = record.inline_flops() else {
            self.push_pending_computation(record.head())?;
            return self.fold(record);
        };
        if let Some(bits) = self.pending_computation.replace(flops.to_bits()) {
            self.push_column(bits, BOUNDARY)?;
            self.previous_heads[1] = BOUNDARY;
        }
        Ok(())
    }

    /// Encodes the pending computation between the last action and the next one, or its absence.
    #[inline]
    fn push_pending_computation(&mut self, next: u64) -> Result<(), EncodeError> {
        let [earlier, before] = self.previous_heads;
        let computed = self.pending_computation.take();
        self.previous_heads = [before, next];
        match (self.columns.sporadic.presence([earlier, before, next]), computed) {
            (Some(Presence::Optional), _) => {
                let column = self.columns.push(computed.unwrap_or(ABSENT), [before, next])?;
                self.fold(Record::optional(column))
            }
            (Some(Presence::Inserted), Some(bits)) => Ok(self.columns.insert(bits, self.executed_records)?),
            (None, Some(bits)) => self.push_column(bits, next),
            (_, None) => Ok(()),
        }
    }

    fn push_column(&mut self, bits: u64, next: u64) -> Result<(), EncodeError> {
        let column = self.columns.push(bits, [BOUNDARY, next])?;
        self.fold(Record::column(column))
    }

    #[inline]
    fn fold(&mut self, record: Record) -> Result<(), EncodeError> {
        self.executed_records += 1;
        self.folder.push(record, &mut |record| self.sink.push(record))
    }

    pub(crate) fn finish(mut self) -> Result<Encoded, EncodeError> {
        self.push_pending_computation(BOUNDARY)?;
        self.folder.finish(&mut |record| self.sink.push(record))?;
        let ColumnSet { builders, inserted, mut blocks, .. } = self.columns;
        let mut directories = Vec::new();
        let inserts = !inserted.distances.is_empty();
        let inserted = [inserted.distances, inserted.amounts].into_iter().filter(|_| inserts);
        let columns =
            builders.into_iter().chain(inserted).map(|builder| builder.finish(&mut blocks, &mut directories));
        let columns = columns.collect::<io::Result<Vec<_>>>()?;
        let BlockWriter { sink, len, .. } = blocks;
        let blocks = Spool::new(sink)?;
        let ProgramSink { program, tally, .. } = self.sink;
        Ok(Encoded { program, tally, columns, has_inserts: inserts, blocks, blocks_len: len, directories })
    }
}
