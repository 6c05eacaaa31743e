//! Completion of an archive: links channels, writes tables and headers, and publishes the files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::layout::{HEADER_BYTES, Header, PAGE_BYTES, Section, ShardHeader};
use crate::archive::output::{DataOutput, OutputFile};
use crate::archive::writer::{
    StoredColumns, StoredPrograms, StoredSideTables, Summary, WrittenRank, WrittenTimes,
};
use crate::archive::{WriteError, tally::Tally};
use crate::builder::LinkableRank;
use crate::channel::Arrival;
use crate::column::{Column, ColumnStorage};
use crate::communicator::{Group, RankRange};
use crate::link::{LinkError, UnmatchedReceive, link};
use crate::provenance::Provenance;
use crate::warning::Unreceived;

/// Everything that goes to an archive except its data.
pub(crate) struct ArchiveTables {
    pub(crate) path: PathBuf,
    pub(crate) ranks: u32,
    pub(crate) programs: StoredPrograms,
    pub(crate) sides: StoredSideTables,
    pub(crate) written: Vec<WrittenRank>,
    pub(crate) provenance: Provenance,
    pub(crate) flat_size: FlatSize,
}

/// Size of the files if no rank was folded.
pub(crate) struct FlatSize {
    /// Length of the data of each shard [B].
    pub(crate) shard_bytes: Vec<u64>,
    /// Number of programs.
    pub(crate) programs: u64,
}

impl FlatSize {
    /// Returns the total size of the unfolded files [B]. `bytes` is the actual total with the data in `extents`; whatever
    /// follows the data is aligned to `alignment`.
    fn bytes(&self, bytes: u64, extents: &[u64], alignment: u64, words: &TableWords) -> u64 {
        let bytes_of_data = |data: u64| {
            let padded = data.saturating_add(alignment - 1) / alignment * alignment;
            padded.saturating_add(8 * data.div_ceil(PAGE_BYTES))
        };
        let folded: u64 = extents.chunks(2).map(|extent| bytes_of_data(extent[1])).sum();
        let tables = 8 * (words.programs.len() as u64 + words.amount_column_words);
        let flat = self.shard_bytes.iter().fold(0, |sum: u64, data| sum.saturating_add(bytes_of_data(*data)));
        let programs = 8 * Section::Programs.entry_words() as u64 * self.programs;
        (bytes - folded - tables).saturating_add(programs).saturating_add(flat)
    }
}

/// The tables as 64-bit words, and the values that the header repeats.
struct TableWords {
    programs: Vec<u64>,
    ranks: Vec<u64>,
    outgoing: Vec<u64>,
    incoming: Vec<u64>,
    pending: Vec<u64>,
    columns: Vec<u64>,
    /// Number of words of the columns of amounts, which precede the columns of times.
    amount_column_words: u64,
    /// Index of each set of constant columns in the table, by its words: ranks of a class share constants.
    columns_by_words: FxHashMap<Vec<u64>, u64>,
    communicators: Vec<u64>,
    groups: Groups,
    side_index: Vec<u64>,
    sides: Vec<u64>,
    times: Vec<u64>,
    actions: u64,
    unreceived: Option<Unreceived>,
    provenance: Provenance,
}

/// Completes an archive of one file.
pub(crate) fn finish_single_file(
    mut data: DataOutput,
    finished: ArchiveTables,
) -> Result<Summary, WriteError> {
    let path = finished.path.clone();
    let io = |source| WriteError::Io { file: path.clone(), source };
    let sums = data.finish().map_err(io)?;
    let shards = vec![HEADER_BYTES as u64, data.len()];
    let mut file = data.file;
    let programs = finished.programs.written.len() as u64;
    let ranks = finished.ranks;
    let (words, flat) = finished.link()?;
    let header = write_tables(&mut file, ranks, 0, &shards, &sums, &words).map_err(io)?;
    file.complete(&header.to_bytes()).map_err(io)?;
    let bytes = header.length;
    file.publish().map_err(|(file, source)| WriteError::Io { file, source })?;
    let flat_bytes = flat.bytes(bytes, &shards, 8, &words);
    Ok(Summary { ranks, actions: words.actions, programs, bytes, flat_bytes })
}

/// Completes an archive of several files. The main file, with the tables, is the last to get its name.
pub(crate) fn finish_sharded(
    mut main: OutputFile,
    shards: Vec<DataOutput>,
    finished: ArchiveTables,
) -> Result<Summary, WriteError> {
    let (mut extents, mut sums, mut files, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for mut data in shards {
        let ended = data.finish();
        sums.extend(ended.map_err(|source| WriteError::Io { file: data.file.path().to_path_buf(), source })?);
        extents.extend([HEADER_BYTES as u64, data.len()]);
        bytes += data.file.len();
        files.push(data.file);
    }
    let programs = finished.programs.written.len() as u64;
    let ranks = finished.ranks;
    let path = finished.path.clone();
    let io = |source| WriteError::Io { file: path.clone(), source };
    let (words, flat) = finished.link()?;
    let header = write_tables(&mut main, ranks, files.len() as u32, &extents, &sums, &words).map_err(io)?;
    for (number, file) in (0..).zip(&mut files) {
        let header = ShardHeader { length: file.len(), number, id: header.id };
        let path = file.path().to_path_buf();
        file.complete(&header.to_bytes()).map_err(|source| WriteError::Io { file: path, source })?;
    }
    main.complete(&header.to_bytes()).map_err(io)?;
    bytes += header.length;
    for file in files.into_iter().chain([main]) {
        file.publish().map_err(|(file, source)| WriteError::Io { file, source })?;
    }
    let flat_bytes = flat.bytes(bytes, &extents, 1, &words);
    Ok(Summary { ranks, actions: words.actions, programs, bytes, flat_bytes })
}

fn write_tables(
    file: &mut OutputFile,
    ranks: u32,
    files: u32,
    shards: &[u64],
    sums: &[u64],
    words: &TableWords,
) -> io::Result<Header> {
    let id_bytes: Vec<u8> = sums.iter().chain(&words.ranks).flat_map(|word| word.to_le_bytes()).collect();
    let mut header =
        Header { ranks, files, id: xxh3_64(&id_bytes), actions: words.actions, ..Header::default() };
    header.provenance = words.provenance.to_words();
    if let Some(Unreceived { messages, rank, peer, tag }) = words.unreceived {
        header.unreceived = messages;
        header.first_unreceived = [rank.get(), peer.get(), tag.get() as u32];
    }
    for section in Section::ALL {
        let table = match section {
            Section::Shards => shards,
            Section::PageSums => sums,
            Section::Programs => &words.programs,
            Section::Ranks => &words.ranks,
            Section::Outgoing => &words.outgoing,
            Section::Incoming => &words.incoming,
            Section::Pending => &words.pending,
            Section::Columns => &words.columns,
            Section::Communicators => &words.communicators,
            Section::Groups => &words.groups.rows,
            Section::Runs => &words.groups.runs,
            Section::SideIndex => &words.side_index,
            Section::SideTables => &words.sides,
            Section::Times if words.times.is_empty() => continue,
            Section::Times => &words.times,
        };
        header.sections[section as usize] = file.write_section(table)?;
    }
    header.length = file.len();
    Ok(header)
}

/// Deduplicated groups as words.
#[derive(Default)]
struct Groups {
    rows: Vec<u64>,
    runs: Vec<u64>,
    by_value: FxHashMap<Arc<Group>, u64>,
}

impl Groups {
    /// Adds a group unless it is present; returns its number.
    fn add(&mut self, group: &Arc<Group>) -> u64 {
        let number = self.by_value.len() as u64;
        *self.by_value.entry(Arc::clone(group)).or_insert_with(|| {
            let first = self.runs.len() / Section::Runs.entry_words();
            self.rows.extend([first as u64, group.ranges().len() as u64]);
            let words = |run: &RankRange| [pack_halves(run.first.get(), run.len), (run.stride as u32).into()];
            self.runs.extend(group.ranges().iter().flat_map(words));
            number
        })
    }
}

impl ArchiveTables {
    /// Resolves the ports of all channels and builds the words of all tables.
    fn link(self) -> Result<(TableWords, FlatSize), WriteError> {
        let (mut linkables, mut times) = (Vec::new(), Vec::new());
        let mut entries = Vec::new();
        for rank in self.written {
            entries.push((rank.program, rank.side_tables, rank.amount_columns, rank.bytes));
            linkables.push(rank.linkable);
            times.push(rank.times);
        }
        let unreceived = link(&mut linkables).map_err(|error| match error {
            LinkError::Communicators(conflict) => conflict.into(),
            LinkError::Unmatched(shortage) => {
                let rank = shortage.rank;
                let UnmatchedReceive { src, tag, communicator, sends, receives } =
                    shortage.first_channel(&linkables[rank.index()]);
                WriteError::ReceiveWithoutSend { rank, src, tag, communicator, sends, receives }
            }
        })?;
        let mut words = TableWords {
            programs: Vec::new(),
            ranks: Vec::new(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            pending: Vec::new(),
            columns: Vec::new(),
            amount_column_words: 0,
            columns_by_words: FxHashMap::default(),
            communicators: Vec::new(),
            groups: Groups::default(),
            side_index: self.sides.index.iter().flat_map(|(first, len)| [*first, *len]).collect(),
            sides: self.sides.words,
            times: Vec::new(),
            actions: 0,
            unreceived,
            provenance: self.provenance,
        };
        for program in &self.programs.written {
            let Tally { actions, depth, columns, by_kind, .. } = &program.tally;
            let columns = columns.len() as u64;
            words.programs.extend([program.shard.into(), program.offset, program.records, *actions]);
            words.programs.extend([columns, *depth].into_iter().chain(*by_kind));
        }
        for ((program, side, amounts, bytes), linkable) in entries.into_iter().zip(linkables) {
            let actions = self.programs.written[program as usize].tally.actions;
            let rank = pdes_core::Rank::new((words.ranks.len() / Section::Ranks.entry_words()) as u32);
            let actions = words.actions.checked_add(amounts.actions(actions));
            words.actions = actions.ok_or(WriteError::TooMany { rank })?;
            words.add_rank([program, side], &amounts, &bytes, &linkable);
        }
        words.amount_column_words = words.columns.len() as u64;
        words.add_times(&times);
        Ok((words, self.flat_size))
    }
}

impl TableWords {
    fn add_rank(
        &mut self,
        [program, side]: [u32; 2],
        amounts: &StoredColumns,
        bytes: &[u64],
        linkable: &LinkableRank,
    ) {
        let LinkableRank { trace, sends, receives, .. } = linkable;
        let StoredColumns { blocks_offset: blocks, columns, has_inserts: inserts } = amounts;
        let first_column = self.add_columns(columns);
        self.ranks.extend([
            pack_halves(program, side),
            *blocks,
            self.outgoing.len() as u64 / Section::Outgoing.entry_words() as u64,
            pack_halves(trace.outgoing.len() as u32, trace.incoming.len() as u32),
            self.incoming.len() as u64 / Section::Incoming.entry_words() as u64,
            pack_halves(trace.ports, trace.slots),
            self.pending.len() as u64,
            pack_halves(trace.pending_at_end.len() as u32, columns.len() as u32),
            first_column,
            self.communicators.len() as u64 / Section::Communicators.entry_words() as u64,
            pack_halves(
                trace.communicators.len() as u32 - 1,
                u32::from(trace.has_named_requests) | u32::from(*inserts) << 1,
            ),
        ]);
        for (channel, (messages, bytes)) in trace.outgoing.iter().zip(sends.iter().zip(bytes)) {
            let arrival = match channel.arrival() {
                Arrival::Unmatched => 0,
                Arrival::AnySource => 1,
                Arrival::Port(port) => port.get() + 2,
            };
            let name = pack_halves(channel.peer.get(), channel.tag.get() as u32);
            self.outgoing.extend([name, pack_halves(arrival, channel.communicator.get()), *messages, *bytes]);
        }
        for (channel, receives) in trace.incoming.iter().zip(receives) {
            let tag = channel.tag.map_or(0, |tag| tag.get() as u32 + 1);
            let place = pack_halves(channel.port.get(), channel.communicator.get());
            self.incoming.extend([pack_halves(channel.peer.get(), tag), place, *receives]);
        }
        for communicator in trace.communicators.iter().skip(1) {
            let group = self.groups.add(&communicator.group);
            self.communicators.extend([pack_halves(communicator.id.get(), communicator.rank), group]);
        }
        self.pending.extend(trace.pending_at_end.iter().map(|slot| u64::from(slot.get())));
    }

    /// Adds the measured times of all ranks, if there are any.
    fn add_times(&mut self, times: &[Option<WrittenTimes>]) {
        if times.iter().all(Option::is_none) {
            return;
        }
        for times in times {
            let row = times.as_ref().map(|WrittenTimes { blocks_offset: blocks, columns }| {
                [*blocks, self.add_columns(columns), columns.len() as u64]
            });
            self.times.extend(row.unwrap_or_default());
        }
    }

    /// Adds the columns of a rank unless they are in the table; returns the index of the first.
    fn add_columns(&mut self, columns: &[Column]) -> u64 {
        let row = |column: &Column| {
            let (kind, word) = match column.storage {
                ColumnStorage::Constant(bits) => (0, bits),
                ColumnStorage::Blocks(directory) => (1, directory),
            };
            [column.len | kind << 56, word, column.absent]
        };
        let words: Vec<u64> = columns.iter().flat_map(row).collect();
        let next = self.columns.len() as u64 / Section::Columns.entry_words() as u64;
        // Blocks belong to one rank, so that only constant columns can be shared.
        if columns.iter().any(|column| !column.is_constant()) {
            self.columns.extend(words);
            return next;
        }
        let table = &mut self.columns;
        *self.columns_by_words.entry(words).or_insert_with_key(|words| {
            table.extend(words);
            next
        })
    }
}

/// Packs two numbers into a word, the first into its lower half.
fn pack_halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
