//! Change of the amounts of computations: folded programs stay folded.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::Path;

use pdes_core::Rank;
use tempfile::SpooledTempFile;

use crate::action::Action;
use crate::archive::convert::{Encoding, encode, encode_error, in_order};
use crate::archive::cut::{check_columns, copy_values, damaged};
use crate::archive::encode::{EncodeError, Encoded, MAX_IN_MEMORY, ProgramBytes, Spool};
use crate::archive::messages::multiplicities;
use crate::archive::tally::Tally;
use crate::archive::{ArchiveWriter, ArchivedRank, ConvertOptions, Damage, MAX_DEPTH, Summary, WriteError};
use crate::builder::LinkableRank;
use crate::column::{ABSENT, BLOCK_VALUES, BlockWriter, Column, ColumnBuilder, ColumnReader, ColumnStorage};
use crate::error::TraceError;
use crate::record::{COLUMN, COMPUTE, LOCATION, LOOP_BEGIN, LOOP_END, OPTIONAL, Record};
use crate::side_tables::SideTables;
use crate::trace::{ActionStorage, Cursor, RankTrace, Trace};

/// A change of computations that depends on their amount, their rank and the last call site before them.
pub trait AmountChange: Sync {
    /// Returns a number for the change at a call site, `file:line`, or before the first one.
    fn number(&self, rank: Rank, site: Option<&str>) -> u64;

    /// Returns the amount after the change with this number \[flop\], finite and not negative.
    fn apply(&self, number: u64, flops: f64) -> f64;
}

/// Writes an archive of a trace with changed amounts of computations. Measured times are left out.
///
/// A folded rank is changed in its folded form, unless some computation of its program is at call sites with different changes: the
/// cost is linear in the length of its program and the number of its amounts, not in the number of actions. Other ranks are read
/// action by action and folded as in a conversion.
///
/// # Errors
/// Fails if the trace is damaged or the archive cannot be written.
pub fn write_with_amounts(
    trace: &Trace,
    output: &Path,
    change: &dyn AmountChange,
    options: &ConvertOptions<'_>,
) -> Result<Summary, WriteError> {
    let mut writer = ArchiveWriter::for_conversion(output, trace.ranks(), trace.provenance(), options)?;
    let prepare = |rank| ChangedRank::new(trace.rank(rank), rank, change, options);
    in_order(options.load.threads, trace.ranks(), prepare, |rank, changed| {
        changed.write(rank, trace.rank(rank), &mut writer)
    })?;
    trace.integrity().map_err(TraceError::from)?;
    writer.finish()
}

/// Sum of amounts of computation, in units of 2^-20 flop, which does not depend on the order of its terms. Terms are rounded; those of
/// 2^100 flop and more are too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmountSum(u128);

impl AmountSum {
    const UNIT: f64 = 1.0 / (1 << 20) as f64;

    /// Adds an amount \[flop\].
    pub fn add(&mut self, flops: f64) {
        self.add_times(flops, 1);
    }

    fn add_times(&mut self, flops: f64, count: u128) {
        let term = (flops / Self::UNIT).round() as u128;
        self.0 = self.0.saturating_add(term.saturating_mul(count));
    }

    /// Returns the sum \[flop\].
    pub fn get(self) -> f64 {
        self.0 as f64 * Self::UNIT
    }
}

/// Adds up the computations of each rank with the change of number 1; `None` for a rank without one. Returns `None` if ranks are not
/// folded, or if some computation of a program is at call sites with different numbers.
///
/// The cost is linear in the length of the programs and the number of their amounts.
///
/// # Errors
/// Fails if the trace is damaged.
pub fn sum_amounts(
    trace: &Trace,
    change: &dyn AmountChange,
) -> Result<Option<Vec<Option<AmountSum>>>, WriteError> {
    let mut sums = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        let of_rank = trace.rank(rank);
        let ActionStorage::Archive(body) = &of_rank.storage else { return Ok(None) };
        let sum = rank_sum(of_rank, body, rank, change);
        let Some(sum) = sum.map_err(|damage| damaged(rank, of_rank, damage))? else { return Ok(None) };
        sums.push(sum);
    }
    Ok(Some(sums))
}

fn rank_sum(
    trace: &RankTrace,
    body: &ArchivedRank,
    rank: Rank,
    change: &dyn AmountChange,
) -> Result<Option<Option<AmountSum>>, Damage> {
    let Some(folded) = FoldedChange::find(trace, body, rank, change)? else { return Ok(None) };
    let (mut sum, mut is_any) = (AmountSum::default(), false);
    let records = body.records().collect::<Result<Vec<_>, _>>()?;
    for ((record, is_summed), count) in records
        .iter()
        .zip(&folded.inline)
        .zip(multiplicities(&records)?)
        .filter(|((_, is_summed), _)| **is_summed)
    {
        is_any |= *is_summed && count > 0;
        sum.add_times(record.inline_flops().unwrap_or_default(), count);
    }
    for (column, _) in
        body.class.columns.iter().zip(&folded.columns).filter(|(_, number)| **number == Some(1))
    {
        match column.storage {
            ColumnStorage::Constant(bits) => {
                sum.add_times(f64::from_bits(bits), column.len.into());
                is_any |= column.len > 0;
            }
            ColumnStorage::Blocks(_) => {
                let (mut reader, mut left) = (ColumnReader::at(column, 0), column.len);
                let mut values = [0; BLOCK_VALUES as usize];
                while left > 0 {
                    let places = &mut values[..left.min(BLOCK_VALUES) as usize];
                    let read = reader.unpack(body.shard(), body.blocks_offset, places)?;
                    for bits in places[..read].iter().filter(|bits| **bits != ABSENT) {
                        sum.add(f64::from_bits(*bits));
                        is_any = true;
                    }
                    left -= read as u64;
                }
            }
        }
    }
    Ok(Some(is_any.then_some(sum)))
}

/// A rank with changed amounts, encoded.
enum ChangedRank<'a> {
    Structured(Box<Encoded>),
    Streamed(Option<Box<Encoded>>, ChangedActions<'a>),
}

impl<'a> ChangedRank<'a> {
    fn new(
        trace: &'a RankTrace,
        rank: Rank,
        change: &'a dyn AmountChange,
        options: &ConvertOptions<'_>,
    ) -> Result<Self, WriteError> {
        if let ActionStorage::Archive(body) = &trace.storage
            && !body.class.program.is_flat()
        {
            let folded = FoldedChange::find(trace, body, rank, change);
            if let Some(folded) = folded.map_err(|damage| damaged(rank, trace, damage))? {
                let encoded = folded.encode(body, &trace.side_tables);
                let encoded = encoded.map_err(|error| encode_error(rank, error))?;
                return Ok(Self::Structured(Box::new(encoded)));
            }
        }
        let number = change.number(rank, None);
        let actions = ChangedActions { cursor: trace.cursor(), trace, rank, change, number };
        let encoded = encode(rank, actions.clone(), &trace.side_tables, Encoding::of(options))?;
        Ok(Self::Streamed(encoded.map(Box::new), actions))
    }

    fn write(self, rank: Rank, trace: &RankTrace, writer: &mut ArchiveWriter) -> Result<(), WriteError> {
        let linkable = LinkableRank { trace: trace.tables(), ..LinkableRank::default() };
        match self {
            Self::Structured(encoded) => writer.write_as_encoded(rank, *encoded, linkable),
            Self::Streamed(encoded, actions) => {
                writer.write_encoded(rank, encoded.map(|encoded| *encoded), actions, linkable)
            }
        }
    }
}

/// The actions of a rank with changed amounts.
#[derive(Clone)]
struct ChangedActions<'a> {
    cursor: Cursor<'a>,
    trace: &'a RankTrace,
    rank: Rank,
    change: &'a dyn AmountChange,
    /// Number of the change at the current call site.
    number: u64,
}

impl Iterator for ChangedActions<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let mut action = self.cursor.next()?;
        match &mut action {
            Action::Location(id) => {
                self.number = self.change.number(self.rank, Some(self.trace.location(*id)));
            }
            Action::Compute { flops } => *flops = self.change.apply(self.number, *flops),
            _ => {}
        }
        Some(Record::encode(action))
    }
}

/// Change of a folded program: one for each column and each record with an amount.
struct FoldedChange<'a> {
    records: Vec<Record>,
    /// True for each record with an amount that has the change of number 1.
    inline: Vec<bool>,
    /// Number of the change of each column that is used.
    columns: Vec<Option<u64>>,
    change: &'a dyn AmountChange,
}

impl<'a> FoldedChange<'a> {
    /// Finds the changes; `None` if one column or record has several.
    fn find(
        trace: &RankTrace,
        body: &ArchivedRank,
        rank: Rank,
        change: &'a dyn AmountChange,
    ) -> Result<Option<Self>, Damage> {
        let mut records = body.records().collect::<Result<Vec<_>, _>>()?;
        check_columns(&records, body, &trace.side_tables)?;
        let at_start = change.number(rank, None);
        let sites = trace.side_tables.locations.iter();
        let at_sites: Vec<u64> = sites.map(|site| change.number(rank, Some(site))).collect();
        let possible = possible_changes(&records, at_start, &at_sites, |kind| {
            matches!(kind, COMPUTE | COLUMN | OPTIONAL)
        })?;
        let mut columns: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); body.class.columns.len()];
        let mut inline = vec![false; records.len()];
        for ((record, numbers), is_first) in records.iter_mut().zip(possible).zip(&mut inline) {
            match (record.kind(), record.inline_flops()) {
                (COLUMN | OPTIONAL, _) => columns[record.index() as usize].extend(numbers),
                (_, Some(flops)) => match numbers[..] {
                    [number] => {
                        *is_first = number == 1;
                        *record = compute(change.apply(number, flops));
                    }
                    _ => return Ok(None),
                },
                _ => {}
            }
        }
        if body.class.changes.inserted > 0 {
            // Inserted computations may be at any call site; the column before theirs holds distances.
            let all = at_sites.into_iter().chain([at_start]);
            columns.last_mut().into_iter().for_each(|numbers| numbers.extend(all.clone()));
        }
        let is_certain = columns.iter().all(|numbers| numbers.len() <= 1);
        let columns = columns.into_iter().map(|numbers| numbers.first().copied()).collect();
        Ok(is_certain.then_some(Self { records, inline, columns, change }))
    }

    /// Encodes the changed program.
    fn encode(&self, body: &ArchivedRank, side: &SideTables) -> Result<Encoded, EncodeError> {
        let (mut program, mut tally) = (ProgramBytes::new(), Tally::new());
        for record in &self.records {
            tally.push(*record, side)?;
            program.push(*record)?;
        }
        let mut blocks = BlockWriter::new(BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY)));
        let (mut directories, mut columns) = (Vec::new(), Vec::new());
        for (column, number) in body.class.columns.iter().zip(&self.columns) {
            let change = |bits: u64| match number {
                Some(number) if bits != ABSENT => self.change.apply(*number, f64::from_bits(bits)).to_bits(),
                _ => bits,
            };
            columns.push(match column.storage {
                ColumnStorage::Constant(bits) => {
                    Column { storage: ColumnStorage::Constant(change(bits)), ..*column }
                }
                ColumnStorage::Blocks(_) => {
                    let mut changed = ColumnBuilder::default();
                    copy_values(column, 0..column.len, body, change, &mut changed, &mut blocks)?;
                    changed.finish(&mut blocks, &mut directories)?
                }
            });
        }
        let has_inserts = body.class.changes.inserted > 0;
        let (blocks, blocks_len) = (Spool::new(blocks.sink)?, blocks.len);
        Ok(Encoded { program, tally, columns, has_inserts, blocks, blocks_len, directories })
    }
}

fn compute(flops: f64) -> Record {
    Record::encode(Action::Compute { flops })
}

/// Returns the numbers of the changes that each record of the wanted kinds of a program may undergo, in ascending order.
///
/// The change at a record is that of the last location before it; within a loop, this may also be one of the iteration before.
pub(super) fn possible_changes(
    records: &[Record],
    at_start: u64,
    at_sites: &[u64],
    is_wanted: impl Fn(u8) -> bool,
) -> Result<Vec<Vec<u64>>, Damage> {
    let bad_loop = Damage::Loop { limit: MAX_DEPTH as u64 };
    let mut possible = vec![Vec::new(); records.len()];
    // At the begin of each loop, by its record. Sets only grow, so that this ends.
    let mut at_begins: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); records.len()];
    loop {
        let (mut now, mut open, mut is_settled) = (BTreeSet::from([at_start]), Vec::new(), true);
        for (index, record) in records.iter().enumerate() {
            match record.kind() {
                LOCATION => {
                    let number = at_sites.get(record.index() as usize).ok_or(Damage::of(*record))?;
                    now = BTreeSet::from([*number]);
                }
                LOOP_BEGIN => {
                    at_begins[index].extend(&now);
                    now.clone_from(&at_begins[index]);
                    open.push(index);
                }
                LOOP_END => {
                    let begin = &mut at_begins[open.pop().ok_or(bad_loop)?];
                    is_settled &= now.is_subset(begin);
                    begin.extend(&now);
                }
                kind if is_wanted(kind) => possible[index] = now.iter().copied().collect(),
                _ => {}
            }
        }
        if is_settled {
            return Ok(possible);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_brings_the_site_of_the_iteration_before() {
        let location = |number| Record::encode(Action::Location(crate::LocationId::new(number)));
        let (begin, end, amount) = (Record::loop_begin(3), Record::loop_end(), Record::column(0));
        // Before the loop site 0; in it a computation, site 1 in an inner loop, and another computation.
        let records = [location(0), begin, amount, begin, location(1), amount, end, amount, end, amount];
        let possible = possible_changes(&records, 7, &[5, 6], |kind| kind == COLUMN).expect("a program");
        let found: Vec<&[u64]> = [2, 5, 7, 9].map(|index: usize| &possible[index][..]).to_vec();
        assert_eq!(found, [&[5, 6][..], &[6], &[6], &[6]]);
        assert!(possible_changes(&[end], 7, &[], |_| true).is_err());
    }
}
