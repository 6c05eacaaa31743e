//! Writer of archives, rank by rank.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::archive::compile::{Compiled, compile};
use crate::archive::encode::{EncodeError, Encoded, ProgramBytes, Spool};
use crate::archive::encode_times::EncodedTimes;
use crate::archive::finish::{self, ArchiveTables, FlatSize};
use crate::archive::open::shard_path;
use crate::archive::output::{DataOutput, OutputFile};
use crate::archive::rows::{SideIndexRow, archived};
use crate::archive::tally::Tally;
use crate::archive::{ConvertOptions, Folding, WriteError, folding_cost};
use crate::builder::LinkableRank;
use crate::column::{ActionCountChanges, Column, ColumnStorage};
use crate::provenance::Provenance;
use crate::record::Record;
use crate::side_tables::SideTables;
use crate::source::MAX_RANKS;
use crate::structure::Item;
use crate::trace::RankTrace;

/// Writer of archives of structured programs, whose loops are known.
///
/// Each rank is written once, in any order; ranks that are not written have no actions. The same calls write the same bytes.
/// The archive gets its name only in [`ArchiveWriter::finish`]; a writer that is dropped before leaves no files.
///
/// ```
/// use pdes_core::{Bytes, Rank};
/// use trace_mmap::{ArchiveWriter, Item, Op, Tag, Trace};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("ring.pdt");
/// let mut writer = ArchiveWriter::create(&path, 2, 1)?;
/// for rank in 0..2 {
///     let (peer, tag, bytes) = (Some(Rank::new(1 - rank)), Tag::new(0), Bytes::new(8));
///     let send = Item::Op(Op::Send { peer, tag, bytes });
///     let recv = Item::Op(Op::Recv { peer, tag: Some(tag), bytes });
///     let body = if rank == 0 { vec![send, recv] } else { vec![recv, send] };
///     writer.write_rank(Rank::new(rank), &[Item::Loop { count: 1_000_000_000_000, body }])?;
/// }
/// let summary = writer.finish()?;
/// assert_eq!(summary.actions, 4_000_000_000_000);
///
/// let trace = Trace::load(&path)?;
/// assert_eq!(trace.rank(Rank::new(1)).len(), 2_000_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArchiveWriter {
    path: PathBuf,
    ranks: u32,
    /// Main file, with the tables, if the data have files of their own.
    main: Option<OutputFile>,
    shards: Vec<DataOutput>,
    programs: StoredPrograms,
    side_tables: StoredSideTables,
    written: Vec<Option<WrittenRank>>,
    provenance: Provenance,
    folding: Folding,
    /// Length of the data of each shard if no rank was folded [B].
    flat_bytes: Vec<u64>,
}

/// Summary of a written archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of actions of all ranks, loops multiplied out.
    pub actions: u64,
    /// Number of distinct programs; ranks of equal structure share one.
    pub programs: u64,
    /// Size of all files \[B\].
    pub bytes: u64,
    /// Size of all files if no rank was folded \[B\], with a record of 16 bytes per action.
    pub flat_bytes: u64,
}

/// A stored program.
pub(crate) struct WrittenProgram {
    pub(crate) shard: u32,
    pub(crate) offset: u64,
    pub(crate) records: u64,
    pub(crate) tally: Tally,
}

/// The stored programs, deduplicated within each shard.
#[derive(Default)]
pub(crate) struct StoredPrograms {
    pub(crate) written: Vec<WrittenProgram>,
    by_digest: FxHashMap<(u32, u128), u32>,
}

/// The stored side tables, deduplicated.
#[derive(Default)]
pub(crate) struct StoredSideTables {
    /// The archived tables, each at a multiple of 16 bytes.
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: Vec<SideIndexRow>,
    by_digest: FxHashMap<u128, u32>,
}

impl StoredSideTables {
    fn intern(&mut self, side: &SideTables) -> u32 {
        let bytes = archived(side);
        let number = self.index.len() as u32;
        *self.by_digest.entry(xxh3_128(&bytes)).or_insert_with(|| {
            self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
            self.index.push(SideIndexRow { offset: self.bytes.len() as u64, len: bytes.len() as u64 });
            self.bytes.extend_from_slice(&bytes);
            number
        })
    }
}

/// A stored rank.
pub(crate) struct WrittenRank {
    pub(crate) program: u32,
    pub(crate) side_tables: u32,
    pub(crate) amount_columns: StoredColumns,
    /// Total size of the messages of each outgoing channel [B].
    pub(crate) bytes: Vec<u64>,
    pub(crate) linkable: LinkableRank,
    pub(crate) times: Option<WrittenTimes>,
}

/// Stored columns of amounts of a rank.
#[derive(Default)]
pub(crate) struct StoredColumns {
    /// Offset of the column blocks in the data of the shard [B].
    pub(crate) blocks_offset: u64,
    pub(crate) columns: Vec<Column>,
    /// True if the last two columns hold computations inserted between the records of the program.
    pub(crate) has_inserts: bool,
}

impl StoredColumns {
    /// Returns the number of actions of a rank whose program has `of_program` actions.
    pub(crate) fn actions(&self, of_program: u64) -> u64 {
        ActionCountChanges::saturating_actions(&self.columns, self.has_inserts, of_program)
    }
}

/// Stored measured times of a rank.
pub(crate) struct WrittenTimes {
    /// Offset of the blocks in the data of the shard [B].
    pub(crate) blocks_offset: u64,
    /// One column for each kind of action.
    pub(crate) columns: Vec<Column>,
}

impl ArchiveWriter {
    /// Creates an archive of `ranks` ranks at `path`. With one shard it is one file. With more there is a main file with the
    /// tables, and for each shard a data file, named by a number after the path, for an equal part of the ranks.
    ///
    /// # Errors
    /// Fails if the files cannot be created, or if there are more shards than ranks, or none.
    pub fn create(path: &Path, ranks: u32, shards: u32) -> Result<Self, WriteError> {
        let limit = ranks.clamp(1, 1 << 16);
        if !(1..=limit).contains(&shards) {
            return Err(WriteError::Shards { shards, limit });
        }
        if ranks > MAX_RANKS {
            return Err(WriteError::Rank { rank: Rank::new(ranks - 1), ranks: MAX_RANKS });
        }
        let at =
            |path: PathBuf| DataOutput::create(&path).map_err(|source| WriteError::Io { file: path, source });
        let (main, shards) = if shards == 1 {
            (None, vec![at(path.to_path_buf())?])
        } else {
            let main = OutputFile::create(path)
                .map_err(|source| WriteError::Io { file: path.to_path_buf(), source })?;
            (Some(main), (0..shards).map(|shard| at(shard_path(path, shard))).collect::<Result<_, _>>()?)
        };
        let written = (0..ranks).map(|_| None).collect();
        let (programs, sides) = (StoredPrograms::default(), StoredSideTables::default());
        let (path, provenance) = (path.to_path_buf(), Provenance::default());
        let (folding, flat) = (Folding::default(), vec![0; shards.len()]);
        Ok(Self {
            path,
            ranks,
            main,
            shards,
            programs,
            side_tables: sides,
            written,
            provenance,
            folding,
            flat_bytes: flat,
        })
    }

    /// Creates an archive for a conversion.
    pub(crate) fn for_conversion(
        path: &Path,
        ranks: u32,
        provenance: Provenance,
        options: &ConvertOptions<'_>,
    ) -> Result<Self, WriteError> {
        let provenance = options.provenance.clone().unwrap_or(provenance);
        Ok(Self { provenance, folding: options.folding, ..Self::create(path, ranks, options.shards)? })
    }

    /// Sets the provenance of the trace.
    pub fn with_provenance(self, provenance: Provenance) -> Self {
        Self { provenance, ..self }
    }

    /// Writes the program of a rank. The cost is linear in the length of the program, not in the number of actions.
    ///
    /// # Errors
    /// Fails if the program is wrong, the rank is out of range or was written before, or the file cannot be written.
    pub fn write_rank(&mut self, rank: Rank, program: &[Item]) -> Result<(), WriteError> {
        self.check_unwritten(rank)?;
        let compiled = compile(rank, self.ranks, program);
        let Compiled { records, column_amounts, linkable } =
            compiled.map_err(|kind| WriteError::Structure { rank, kind })?;
        let mut tally = Tally::new();
        let mut bytes = ProgramBytes::new();
        for record in &records {
            tally.push(*record, &linkable.trace.side_tables).map_err(|_| WriteError::TooMany { rank })?;
            bytes.push(*record).map_err(|source| self.io_error(rank, source))?;
        }
        let constant = |(amount, len): (&f64, &u64)| Column {
            len: *len,
            absent: 0,
            storage: ColumnStorage::Constant(amount.to_bits()),
        };
        let columns: Vec<Column> = column_amounts.iter().zip(&tally.columns).map(constant).collect();
        let written = self.write_program(rank, bytes, tally.clone());
        let program = written.map_err(|source| self.io_error(rank, source))?;
        self.store_rank(
            rank,
            program,
            tally,
            StoredColumns { columns, ..StoredColumns::default() },
            linkable,
        );
        Ok(())
    }

    pub(crate) fn check_unwritten(&self, rank: Rank) -> Result<(), WriteError> {
        match self.written.get(rank.index()) {
            Some(None) => Ok(()),
            _ => Err(WriteError::Rank { rank, ranks: self.ranks }),
        }
    }

    /// Writes a rank as it was encoded if that is shorter and pays; else flat, from `records`.
    pub(crate) fn write_encoded(
        &mut self,
        rank: Rank,
        encoded: Option<Encoded>,
        records: impl Iterator<Item = Record>,
        linkable: LinkableRank,
    ) -> Result<(), WriteError> {
        self.check_unwritten(rank)?;
        let written = match encoded {
            Some(encoded) if self.folding_pays(rank, &encoded) => self.write_folded(rank, encoded, linkable),
            _ => self.write_flat(rank, records, linkable),
        };
        written.map_err(|error| self.encode_error(rank, error))
    }

    /// Writes a rank as it was encoded.
    pub(crate) fn write_as_encoded(
        &mut self,
        rank: Rank,
        encoded: Encoded,
        linkable: LinkableRank,
    ) -> Result<(), WriteError> {
        self.check_unwritten(rank)?;
        self.write_folded(rank, encoded, linkable).map_err(|error| self.encode_error(rank, error))
    }

    /// Writes the measured times of a rank whose actions are written.
    pub(crate) fn write_times(&mut self, rank: Rank, times: EncodedTimes) -> Result<(), WriteError> {
        let EncodedTimes { mut columns, blocks, directories } = times;
        let shard = self.shard_of(rank) as usize;
        let written = write_columns(&mut self.shards[shard], blocks, &directories, &mut columns);
        let blocks = written.map_err(|source| self.io_error(rank, source))?;
        let flat = self.flat_bytes[shard].saturating_add(7) / 8 * 8;
        self.flat_bytes[shard] = flat.saturating_add(self.shards[shard].len() - blocks);
        if let Some(written) = &mut self.written[rank.index()] {
            written.times = Some(WrittenTimes { blocks_offset: blocks, columns });
        }
        Ok(())
    }

    fn encode_error(&self, rank: Rank, error: EncodeError) -> WriteError {
        match error {
            EncodeError::Io(source) => self.io_error(rank, source),
            EncodeError::Tally(_) => WriteError::TooMany { rank },
            EncodeError::Damaged(damage) => WriteError::Damaged { rank, damage },
        }
    }

    fn folding_pays(&self, rank: Rank, encoded: &Encoded) -> bool {
        let (new, known) = encoded.sizes();
        let digest = (self.shard_of(rank), encoded.program.digest());
        let size = if self.programs.by_digest.contains_key(&digest) { known } else { new };
        let Some(flat) = encoded.actions().checked_mul(16) else { return true };
        size < flat && (self.folding == Folding::Always || folding_cost::folding_pays(encoded, size, flat))
    }

    fn write_folded(
        &mut self,
        rank: Rank,
        encoded: Encoded,
        linkable: LinkableRank,
    ) -> Result<(), EncodeError> {
        let Encoded { program, tally, mut columns, has_inserts, blocks, directories, .. } = encoded;
        let shard = self.shard_of(rank) as usize;
        let program = self.write_program(rank, program, tally.clone())?;
        let base = write_columns(&mut self.shards[shard], blocks, &directories, &mut columns)?;
        self.store_rank(
            rank,
            program,
            tally,
            StoredColumns { blocks_offset: base, columns, has_inserts },
            linkable,
        );
        Ok(())
    }

    fn write_flat(
        &mut self,
        rank: Rank,
        records: impl Iterator<Item = Record>,
        linkable: LinkableRank,
    ) -> Result<(), EncodeError> {
        let shard = self.shard_of(rank);
        let data = &mut self.shards[shard as usize];
        let offset = data.align(16)?;
        let mut tally = Tally::new();
        for record in records {
            tally.push(record, &linkable.trace.side_tables)?;
            data.write(&record.to_bytes())?;
        }
        let records = tally.actions;
        let program = self.programs.written.len() as u32;
        self.programs.written.push(WrittenProgram { shard, offset, records, tally: tally.clone() });
        self.store_rank(rank, program, tally, StoredColumns::default(), linkable);
        Ok(())
    }

    /// Writes a program unless it is stored already; returns its number.
    fn write_program(&mut self, rank: Rank, program: ProgramBytes, tally: Tally) -> io::Result<u32> {
        let shard = self.shard_of(rank);
        let digest = (shard, program.digest());
        if let Some(number) = self.programs.by_digest.get(&digest) {
            return Ok(*number);
        }
        let data = &mut self.shards[shard as usize];
        let (offset, records) = (data.align(16)?, program.records);
        program.into_spool()?.copy_to(|bytes| data.write(bytes))?;
        let number = self.programs.written.len() as u32;
        self.programs.written.push(WrittenProgram { shard, offset, records, tally });
        self.programs.by_digest.insert(digest, number);
        Ok(number)
    }

    fn store_rank(
        &mut self,
        rank: Rank,
        program: u32,
        tally: Tally,
        amounts: StoredColumns,
        mut linkable: LinkableRank,
    ) {
        let side = self.side_tables.intern(&linkable.trace.side_tables);
        linkable.trace.side_tables = Arc::default();
        let trace: &RankTrace = &linkable.trace;
        let (outgoing, incoming) = (trace.outgoing.len(), trace.incoming.len());
        let mut receives: Vec<u64> = tally.received().collect();
        let from_any = tally.received_from_any();
        let mut sends = tally.sends;
        sends.resize(outgoing, Default::default());
        receives.resize(incoming, Default::default());
        linkable.sends = sends.iter().map(|traffic| traffic.messages).collect();
        linkable.receives_from_any = from_any;
        linkable.receives = receives;
        let bytes = sends.iter().map(|traffic| traffic.bytes).collect();
        let actions = amounts.actions(tally.actions);
        let shard = self.shard_of(rank) as usize;
        let flat = self.flat_bytes[shard].saturating_add(15) / 16 * 16;
        self.flat_bytes[shard] = flat.saturating_add(actions.saturating_mul(16));
        let times = None;
        self.written[rank.index()] =
            Some(WrittenRank { program, side_tables: side, amount_columns: amounts, bytes, linkable, times });
    }

    /// Links the ranks, writes the tables, and renames the archive to its path.
    ///
    /// # Errors
    /// Fails if a rank receives more messages from a channel than are sent to it, or if the file cannot be written.
    pub fn finish(self) -> Result<Summary, WriteError> {
        let Self {
            path,
            ranks,
            main,
            mut shards,
            mut programs,
            mut side_tables,
            written,
            provenance,
            flat_bytes,
            ..
        } = self;
        let side = side_tables.intern(&SideTables::default());
        let idle = programs.written.len() as u32;
        let is_idle = written.iter().any(Option::is_none);
        let flat = FlatSize {
            shard_bytes: flat_bytes,
            programs: written.iter().flatten().count() as u64 + u64::from(is_idle),
        };
        if is_idle {
            let (offset, tally) = (0, Tally::new());
            programs.written.push(WrittenProgram { shard: 0, offset, records: 0, tally });
        }
        let nothing = |rank| WrittenRank {
            program: idle,
            side_tables: side,
            amount_columns: StoredColumns::default(),
            bytes: Vec::new(),
            linkable: LinkableRank::empty(Rank::new(rank), ranks),
            times: None,
        };
        let written = (0..).zip(written).map(|(rank, written)| written.unwrap_or_else(|| nothing(rank)));
        let written = written.collect();
        let finished =
            ArchiveTables { path, ranks, programs, sides: side_tables, written, provenance, flat_size: flat };
        match main {
            None => finish::finish_single_file(shards.remove(0), finished),
            Some(main) => finish::finish_sharded(main, shards, finished),
        }
    }

    fn shard_of(&self, rank: Rank) -> u32 {
        let (rank, shards) = (u64::from(rank.get()), self.shards.len() as u64);
        (rank * shards / u64::from(self.ranks)) as u32
    }

    fn io_error(&self, rank: Rank, source: io::Error) -> WriteError {
        let shard = self.shard_of(rank) as usize;
        let file = self.shards.get(shard).map_or(&*self.path, |shard| shard.file.path());
        WriteError::Io { file: file.to_path_buf(), source }
    }
}

/// Writes the blocks of columns and then their directories; returns the offset of the blocks [B].
fn write_columns(
    data: &mut DataOutput,
    blocks: Spool,
    directories: &[u8],
    columns: &mut [Column],
) -> io::Result<u64> {
    let base = data.align(8)?;
    blocks.copy_to(|bytes| data.write(bytes))?;
    let directory = data.align(8)?;
    data.write(directories)?;
    for column in columns {
        if let ColumnStorage::Blocks(offset) = &mut column.storage {
            *offset += directory;
        }
    }
    Ok(base)
}
