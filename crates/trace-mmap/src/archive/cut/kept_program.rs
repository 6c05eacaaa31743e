//! Cutter of folded programs: loops and columns are cut in their folded form.

use std::io::BufWriter;
use std::ops::Range;

use tempfile::SpooledTempFile;

use crate::archive::cut::main_loop::MainLoop;
use crate::archive::cut::renumbering::{RemovedRequests, Renumbering, UsedIds};
use crate::archive::encode::{EncodeError, Encoded, ProgramBytes, Spool};
use crate::archive::tally::Tally;
use crate::archive::{ArchivedRank, Damage, MAX_DEPTH};
use crate::column::{BLOCK_VALUES, BlockWriter, Column, ColumnBuilder, ColumnReader, ColumnStorage};
use crate::record::{COLUMN, LOOP_BEGIN, LOOP_END, OPTIONAL, Record};
use crate::side_tables::SideTables;
use crate::trace::RankTrace;

/// Size up to which blocks are kept in memory [B].
const IN_MEMORY: usize = 1 << 20;

/// Main loop and number of its iterations to remove, if any.
pub(in crate::archive) type LoopRemoval<'a> = Option<(&'a MainLoop, u64)>;

/// A part of a program.
enum Node {
    Act(Record),
    Loop { count: u64, body: Vec<Node> },
}

/// Parses a program as a tree, without the removed iterations of the main loop.
fn parse_tree(
    records: &[Record],
    body: &ArchivedRank,
    removal: LoopRemoval<'_>,
) -> Result<Vec<Node>, Damage> {
    let bad_loop = Damage::Loop { limit: MAX_DEPTH as u64 };
    let mut open: Vec<(u64, Vec<Node>)> = Vec::new();
    let mut nodes = Vec::new();
    for (index, record) in (0..).zip(records) {
        match record.kind() {
            LOOP_BEGIN if record.amount() == 0 || open.len() == MAX_DEPTH => return Err(bad_loop),
            LOOP_BEGIN => {
                let removal =
                    removal.filter(|(main, _)| main.begin == index).map_or(0, |(_, removal)| removal);
                open.push((record.amount() - removal, std::mem::take(&mut nodes)));
            }
            LOOP_END => {
                let (count, outer) = open.pop().ok_or(bad_loop)?;
                let body = std::mem::replace(&mut nodes, outer);
                nodes.push(Node::Loop { count, body });
            }
            COLUMN | OPTIONAL if record.index() as usize >= body.class.columns.len() => {
                return Err(Damage::Column);
            }
            COLUMN | OPTIONAL => nodes.push(Node::Act(*record)),
            _ if body.class.limits.admit(*record) => nodes.push(Node::Act(*record)),
            _ => return Err(Damage::of(*record)),
        }
    }
    if open.is_empty() { Ok(nodes) } else { Err(bad_loop) }
}

/// Checks that each column of the program has as many values as the records use; only forged archives fail.
pub(in crate::archive) fn check_columns(
    records: &[Record],
    body: &ArchivedRank,
    side: &SideTables,
) -> Result<(), Damage> {
    let mut tally = Tally::new();
    for record in records {
        tally.push(*record, side).map_err(|_| Damage::of(*record))?;
    }
    let uses = tally.columns.iter().copied().chain(std::iter::repeat(0));
    let is_right =
        |(column, uses): (&Column, u64)| column.len == uses && (column.absent == 0 || !column.is_constant());
    let columns = &body.class.columns[..body.class.program_columns];
    if columns.iter().zip(uses).all(is_right) { Ok(()) } else { Err(Damage::Column) }
}

/// Returns a record of a program as it is kept, if it is; takes note of the requests that are removed with their posts.
pub(in crate::archive) type KeepRecord<'a> = dyn Fn(Record, &mut RemovedRequests) -> Option<Record> + 'a;

/// Writer of the kept records of a program.
struct ProgramFilter<'a> {
    keep_record: &'a KeepRecord<'a>,
    removed: RemovedRequests,
    records: Vec<Record>,
}

impl ProgramFilter<'_> {
    fn keep(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Act(record) => self.records.extend((self.keep_record)(*record, &mut self.removed)),
                Node::Loop { count: 0, .. } => {}
                Node::Loop { count: 1, body } => self.keep(body),
                Node::Loop { count, body } => self.keep_loop(*count, body),
            }
        }
    }

    /// Writes a loop. If the first iteration finds other removed requests than the next ones, which find those posted by an
    /// iteration, it is written out before the loop.
    fn keep_loop(&mut self, count: u64, body: &[Node]) {
        let (begin, before) = (self.records.len(), self.removed.clone());
        self.keep_body(count, body);
        if self.removed == before {
            return;
        }
        self.records.truncate(begin);
        self.removed = before;
        self.keep(body);
        self.keep_body(count - 1, body);
    }

    fn keep_body(&mut self, count: u64, body: &[Node]) {
        let begin = self.records.len();
        self.records.push(Record::loop_begin(count));
        self.keep(body);
        if self.records.len() == begin + 1 {
            self.records.pop();
        } else {
            self.records.push(Record::loop_end());
        }
    }
}

/// The kept part of a program.
pub(super) struct KeptProgram {
    pub(super) records: Vec<Record>,
    pub(super) used: UsedIds,
    pub(super) removed: RemovedRequests,
}

impl KeptProgram {
    /// Cuts the program of a rank.
    pub(super) fn new(
        trace: &RankTrace,
        body: &ArchivedRank,
        names: &Renumbering,
        removal: LoopRemoval<'_>,
    ) -> Result<Self, Damage> {
        let keep = |record: Record, removed: &mut RemovedRequests| names.renumber_record(record, removed);
        let (mut records, gone) = filter_records(trace, body, removal, &keep)?;
        let used = UsedIds::from_records(records.iter().copied(), names);
        records.iter_mut().for_each(|record| *record = used.renumber(*record));
        Ok(Self { records, used, removed: gone })
    }

    /// Encodes the kept program with the amounts that it still uses.
    pub(super) fn encode(
        &self,
        body: &ArchivedRank,
        side: &SideTables,
        removal: LoopRemoval<'_>,
    ) -> Result<Encoded, EncodeError> {
        encode_records(&self.records, body, side, removal)
    }
}

/// Filters the records of a program, loops included; returns them with the requests that are removed and pending at the end.
pub(in crate::archive) fn filter_records(
    trace: &RankTrace,
    body: &ArchivedRank,
    removal: LoopRemoval<'_>,
    keep_record: &KeepRecord<'_>,
) -> Result<(Vec<Record>, RemovedRequests), Damage> {
    let records = body.records().collect::<Result<Vec<_>, _>>()?;
    let nodes = parse_tree(&records, body, removal)?;
    check_columns(&records, body, &trace.side_tables)?;
    let removed = RemovedRequests::new(trace.slots);
    let mut filter = ProgramFilter { keep_record, removed, records: Vec::new() };
    filter.keep(&nodes);
    Ok((filter.records, filter.removed))
}

/// Encodes the records of a program that is kept, with the amounts that it still uses.
pub(in crate::archive) fn encode_records(
    records: &[Record],
    body: &ArchivedRank,
    side: &SideTables,
    removal: LoopRemoval<'_>,
) -> Result<Encoded, EncodeError> {
    let (mut program, mut tally) = (ProgramBytes::new(), Tally::new());
    for record in records {
        tally.push(*record, side)?;
        program.push(*record)?;
    }
    let mut blocks = BlockWriter::new(BufWriter::new(SpooledTempFile::new(IN_MEMORY)));
    let mut directories = Vec::new();
    let mut columns = Vec::with_capacity(body.class.columns.len());
    for (number, column) in body.class.columns.iter().enumerate() {
        let removed_values = removal.map_or(0..0, |(main, removal)| main.used_by_last(number, removal));
        columns.push(match column.storage {
            ColumnStorage::Constant(_) => {
                Column { len: column.len - (removed_values.end - removed_values.start), ..*column }
            }
            ColumnStorage::Blocks(_) => {
                let mut kept = ColumnBuilder::default();
                for values in [0..removed_values.start, removed_values.end..column.len] {
                    copy_values(column, values, body, |bits| bits, &mut kept, &mut blocks)?;
                }
                kept.finish(&mut blocks, &mut directories)?
            }
        });
    }
    let (blocks, blocks_len) = (Spool::new(blocks.sink)?, blocks.len);
    Ok(Encoded { program, tally, columns, has_inserts: false, blocks, blocks_len, directories })
}

/// Copies values of a column, each changed by a function of its bits.
pub(in crate::archive) fn copy_values(
    from: &Column,
    range: Range<u64>,
    body: &ArchivedRank,
    change: impl Fn(u64) -> u64,
    column: &mut ColumnBuilder,
    blocks: &mut BlockWriter<BufWriter<SpooledTempFile>>,
) -> Result<(), EncodeError> {
    let (mut reader, mut len) = (ColumnReader::at(from, range.start), range.end - range.start);
    let mut values = [0; BLOCK_VALUES as usize];
    while len > 0 {
        let places = &mut values[..len.min(BLOCK_VALUES) as usize];
        let read = reader.unpack(body.shard(), body.blocks_offset, places)?;
        places[..read].iter().try_for_each(|value| column.push(change(*value), blocks))?;
        len -= read as u64;
    }
    Ok(())
}
