//! Completion of an archive: links channels, writes tables and headers, and publishes the files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::layout::{Extent, HEADER_BYTES, Header, MAGIC, PAGE_BYTES, SHARD_MAGIC, Section};
use crate::archive::output::{DataOutput, OutputFile};
use crate::archive::rows::{
    ArchivedColumnRow, ArchivedProgramRow, ColumnRow, CommunicatorRow, GroupRow, HAS_INSERTS,
    HAS_NAMED_REQUESTS, IncomingRow, OutgoingRow, Overview, PageSumRow, PendingRow, ProgramRow, RankRow,
    RunRow, ShardRow, Span, TimesRow, archived,
};
use crate::archive::writer::{
    StoredColumns, StoredPrograms, StoredSideTables, Summary, WrittenProgram, WrittenRank, WrittenTimes,
};
use crate::archive::{WriteError, tally::Tally};
use crate::builder::LinkableRank;
use crate::channel::Arrival;
use crate::column::{Column, ColumnStorage};
use crate::communicator::{Group, RankRange};
use crate::link::{LinkError, UnmatchedReceive, link};
use crate::provenance::Provenance;

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
    fn bytes(&self, bytes: u64, extents: &[ShardRow], alignment: u64, tables: &Tables) -> u64 {
        let bytes_of_data = |data: u64| {
            let padded = data.saturating_add(alignment - 1) / alignment * alignment;
            padded.saturating_add(8 * data.div_ceil(PAGE_BYTES))
        };
        let folded: u64 = extents.iter().map(|extent| bytes_of_data(extent.len)).sum();
        let of_program = size_of::<ArchivedProgramRow>() as u64;
        let tables = of_program * tables.programs.len() as u64
            + size_of::<ArchivedColumnRow>() as u64 * tables.amount_columns;
        let flat = self.shard_bytes.iter().fold(0, |sum: u64, data| sum.saturating_add(bytes_of_data(*data)));
        let programs = of_program * self.programs;
        (bytes - folded - tables).saturating_add(programs).saturating_add(flat)
    }
}

/// The rows of all tables that do not describe data.
#[derive(Default)]
struct Tables {
    programs: Vec<ProgramRow>,
    ranks: Vec<RankRow>,
    outgoing: Vec<OutgoingRow>,
    incoming: Vec<IncomingRow>,
    pending: Vec<PendingRow>,
    columns: Vec<ColumnRow>,
    /// Number of columns of amounts, which precede the columns of times.
    amount_columns: u64,
    /// First row of each set of constant columns: ranks of a class share constants.
    constant_columns: FxHashMap<Vec<Column>, u64>,
    communicators: Vec<CommunicatorRow>,
    groups: Vec<GroupRow>,
    runs: Vec<RunRow>,
    group_numbers: FxHashMap<Arc<Group>, u32>,
    times: Vec<TimesRow>,
}

/// Completes an archive of one file.
pub(crate) fn finish_single_file(
    mut data: DataOutput,
    finished: ArchiveTables,
) -> Result<Summary, WriteError> {
    let path = finished.path.clone();
    let io = |source| WriteError::Io { file: path.clone(), source };
    let sums = data.finish().map_err(io)?;
    let shards = vec![ShardRow { offset: HEADER_BYTES as u64, len: data.len() }];
    let mut file = data.file;
    let (linked, flat) = finished.link()?;
    let header = linked.write(&mut file, 0, &shards, sums).map_err(io)?;
    file.complete(&header).map_err(io)?;
    let bytes = file.len();
    file.publish().map_err(|(file, source)| WriteError::Io { file, source })?;
    Ok(linked.summary(bytes, flat.bytes(bytes, &shards, 8, &linked.tables)))
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
        extents.push(ShardRow { offset: HEADER_BYTES as u64, len: data.len() });
        bytes += data.file.len();
        files.push(data.file);
    }
    let path = finished.path.clone();
    let io = |source| WriteError::Io { file: path.clone(), source };
    let (linked, flat) = finished.link()?;
    let header = linked.write(&mut main, files.len() as u32, &extents, sums).map_err(io)?;
    for (number, file) in (0..).zip(&mut files) {
        let header = Header::new(SHARD_MAGIC, file.len(), number, header.id).sealed();
        let path = file.path().to_path_buf();
        file.complete(&header).map_err(|source| WriteError::Io { file: path, source })?;
    }
    main.complete(&header).map_err(io)?;
    bytes += main.len();
    for file in files.into_iter().chain([main]) {
        file.publish().map_err(|(file, source)| WriteError::Io { file, source })?;
    }
    Ok(linked.summary(bytes, flat.bytes(bytes, &extents, 1, &linked.tables)))
}

/// Everything that goes to the sections of an archive except the places of its data.
struct Linked {
    overview: Overview,
    tables: Tables,
    side_tables: StoredSideTables,
}

impl Linked {
    /// Writes all sections; returns the header.
    fn write(
        &self,
        file: &mut OutputFile,
        files: u32,
        shards: &Vec<ShardRow>,
        sums: Vec<u64>,
    ) -> io::Result<Header> {
        let sums: Vec<PageSumRow> = sums.into_iter().map(|checksum| PageSumRow { checksum }).collect();
        let mut sections = [Extent::default(); Section::ALL.len()];
        for section in Section::ALL {
            let table = match section {
                Section::Overview => archived(&self.overview),
                Section::Shards => archived(shards),
                Section::PageSums => archived(&sums),
                Section::Programs => archived(&self.tables.programs),
                Section::Ranks => archived(&self.tables.ranks),
                Section::Outgoing => archived(&self.tables.outgoing),
                Section::Incoming => archived(&self.tables.incoming),
                Section::Pending => archived(&self.tables.pending),
                Section::Columns => archived(&self.tables.columns),
                Section::Communicators => archived(&self.tables.communicators),
                Section::Groups => archived(&self.tables.groups),
                Section::Runs => archived(&self.tables.runs),
                Section::SideIndex => archived(&self.side_tables.index),
                Section::SideTables => {
                    sections[section as usize] = file.write_section(&self.side_tables.bytes)?;
                    continue;
                }
                Section::Times => archived(&self.tables.times),
            };
            sections[section as usize] = file.write_section(&table)?;
        }
        let id = xxh3_64(bytemuck::bytes_of(&sections));
        let mut header = Header::new(MAGIC, file.len(), files, id);
        header.sections = sections;
        Ok(header.sealed())
    }

    fn summary(&self, bytes: u64, flat_bytes: u64) -> Summary {
        let Overview { ranks, actions, .. } = self.overview;
        Summary { ranks, actions, programs: self.tables.programs.len() as u64, bytes, flat_bytes }
    }
}

impl ArchiveTables {
    /// Resolves the ports of all channels and builds the rows of all tables.
    fn link(self) -> Result<(Linked, FlatSize), WriteError> {
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
        let (mut tables, mut actions) = (Tables::default(), 0_u64);
        tables.programs = self.programs.written.iter().map(WrittenProgram::row).collect();
        for ((program, side, amounts, bytes), linkable) in entries.into_iter().zip(linkables) {
            let rank = pdes_core::Rank::new(tables.ranks.len() as u32);
            let of_rank = amounts.actions(self.programs.written[program as usize].tally.actions);
            actions = actions.checked_add(of_rank).ok_or(WriteError::TooMany { rank })?;
            tables.add_rank([program, side], &amounts, &bytes, &linkable);
        }
        tables.amount_columns = tables.columns.len() as u64;
        tables.add_times(&times);
        let overview = Overview { ranks: self.ranks, actions, unreceived, provenance: self.provenance };
        Ok((Linked { overview, tables, side_tables: self.sides }, self.flat_size))
    }
}

impl WrittenProgram {
    fn row(&self) -> ProgramRow {
        let Tally { actions, depth, ref columns, by_kind, .. } = self.tally;
        ProgramRow {
            offset: self.offset,
            records: self.records,
            actions,
            columns: columns.len() as u64,
            by_kind,
            shard: self.shard,
            depth: depth as u32,
        }
    }
}

impl Tables {
    fn add_rank(
        &mut self,
        [program, side_table]: [u32; 2],
        amounts: &StoredColumns,
        bytes: &[u64],
        linkable: &LinkableRank,
    ) {
        let LinkableRank { trace, sends, receives, .. } = linkable;
        let flags = if trace.has_named_requests { HAS_NAMED_REQUESTS } else { 0 }
            | if amounts.has_inserts { HAS_INSERTS } else { 0 };
        let row = RankRow {
            program,
            side_table,
            ports: trace.ports,
            slots: trace.slots,
            blocks_offset: amounts.blocks_offset,
            outgoing: span_behind(&self.outgoing, trace.outgoing.len()),
            incoming: span_behind(&self.incoming, trace.incoming.len()),
            pending: span_behind(&self.pending, trace.pending_at_end.len()),
            columns: self.add_columns(&amounts.columns),
            communicators: span_behind(&self.communicators, trace.communicators.len() - 1),
            flags,
        };
        self.ranks.push(row);
        let outgoing = trace.outgoing.iter().zip(sends.iter().zip(bytes));
        self.outgoing.extend(outgoing.map(|(channel, (messages, bytes))| OutgoingRow {
            peer: channel.peer.get(),
            tag: channel.tag.get() as u32,
            communicator: channel.communicator.get(),
            arrival: match channel.arrival() {
                Arrival::Unmatched => 0,
                Arrival::AnySource => 1,
                Arrival::Port(port) => port.get() + 2,
            },
            messages: *messages,
            bytes: *bytes,
        }));
        let incoming = trace.incoming.iter().zip(receives);
        self.incoming.extend(incoming.map(|(channel, receives)| IncomingRow {
            peer: channel.peer.get(),
            tag: channel.tag.map_or(0, |tag| tag.get() as u32 + 1),
            communicator: channel.communicator.get(),
            port: channel.port.get(),
            receives: *receives,
        }));
        for communicator in trace.communicators.iter().skip(1) {
            let group = self.add_group(&communicator.group);
            let (id, rank) = (communicator.id.get(), communicator.rank);
            self.communicators.push(CommunicatorRow { id, rank, group });
        }
        self.pending.extend(trace.pending_at_end.iter().map(|slot| PendingRow { slot: slot.get() }));
    }

    /// Adds a group unless it is present; returns its number.
    fn add_group(&mut self, group: &Arc<Group>) -> u32 {
        let number = self.groups.len() as u32;
        *self.group_numbers.entry(Arc::clone(group)).or_insert_with(|| {
            self.groups.push(GroupRow { runs: span_behind(&self.runs, group.ranges().len()) });
            let row = |run: &RankRange| RunRow { first: run.first.get(), len: run.len, stride: run.stride };
            self.runs.extend(group.ranges().iter().map(row));
            number
        })
    }

    /// Adds the measured times of all ranks, if there are any.
    fn add_times(&mut self, times: &[Option<WrittenTimes>]) {
        if times.iter().all(Option::is_none) {
            return;
        }
        for times in times {
            let row = times.as_ref().map(|WrittenTimes { blocks_offset, columns }| TimesRow {
                blocks_offset: *blocks_offset,
                columns: self.add_columns(columns),
            });
            self.times.push(row.unwrap_or_default());
        }
    }

    /// Adds the columns of a rank unless they are in the table; returns their rows.
    fn add_columns(&mut self, columns: &[Column]) -> Span {
        let next = span_behind(&self.columns, columns.len());
        // Blocks belong to one rank, so that only constant columns can be shared.
        if columns.iter().all(Column::is_constant) {
            let first = *self.constant_columns.entry(columns.to_vec()).or_insert(next.first);
            if first != next.first {
                return Span { first, ..next };
            }
        }
        self.columns.extend(columns.iter().map(|column| {
            let (kind, word) = match column.storage {
                ColumnStorage::Constant(bits) => (0, bits),
                ColumnStorage::Blocks(directory) => (1, directory),
            };
            ColumnRow { len: column.len, absent: column.absent, kind, word }
        }));
        next
    }
}

/// Returns the rows that follow those of a table.
fn span_behind<T>(rows: &[T], count: usize) -> Span {
    Span { first: rows.len() as u64, count: count as u64 }
}
