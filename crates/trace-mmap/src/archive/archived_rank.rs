//! Actions of one rank of an archive: its program and columns.

use std::sync::{Arc, OnceLock};

use pdes_core::Rank;

use crate::archive::rows::{ArchivedOutgoingRow, IncomingRow, OutgoingRow, Row, Span};
use crate::archive::tally::Traffic;
use crate::archive::unroll::{LoopBodies, Unrolled};
use crate::archive::{Archive, Damage, Shard};
use crate::column::{ActionCountChanges, Column};
use crate::record::{ACTION_KINDS, COLUMN, LOOP_BEGIN, LOOP_END, Limits, OPTIONAL, Record};

/// Number of records of the longest program that is unrolled.
const MAX_UNROLLED: u64 = 4096;

/// A program: records with loops, which ranks of equal structure share.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) shard: u32,
    /// Offset in the data of the shard [B].
    pub(crate) offset: u64,
    /// Number of records.
    pub(crate) records: u64,
    /// Number of executed actions, optional computations included.
    pub(crate) actions: u64,
    /// Number of columns that the records refer to.
    pub(crate) columns: u64,
    /// Number of executed actions of each kind, counted as in `actions`.
    pub(crate) by_kind: [u64; ACTION_KINDS],
    /// Deepest nesting of loops.
    pub(crate) depth: u64,
    /// The unrolled program, made for the first cursor that asks for it.
    pub(crate) unrolled: OnceLock<Option<Unrolled>>,
    /// The same with outermost loops left alone, so that their iterations stay apart.
    pub(crate) inner_unrolled: OnceLock<Option<Unrolled>>,
}

impl Program {
    /// Returns the records, read page by page. Damage ends them.
    pub(crate) fn records<'a>(
        &self,
        shard: &'a Shard,
    ) -> impl Iterator<Item = Result<Record, Damage>> + use<'a> {
        let end = self.offset + 16 * self.records;
        let mut next = self.offset;
        let chunks = std::iter::from_fn(move || {
            let chunk = (next < end).then(|| shard.records(next, end))?;
            next = chunk.as_ref().map_or(end, |chunk| next + 16 * chunk.len() as u64);
            Some(chunk)
        });
        chunks.flat_map(|chunk| {
            let (records, damage) = match chunk {
                Ok(records) => (records, None),
                Err(damage) => (&[][..], Some(Err(damage))),
            };
            records.iter().copied().map(Ok).chain(damage)
        })
    }

    /// Returns whether each record is one action, without loops and columns.
    pub(crate) fn is_flat(&self) -> bool {
        self.depth == 0 && self.columns == 0
    }

    /// Returns the unrolled program; `None` if it has no loops, is long, or is damaged. Damage is then reported when the program
    /// is read in place.
    pub(crate) fn unrolled(&self, shard: &Shard, bodies: LoopBodies) -> Option<&Unrolled> {
        let is_worth_it = self.depth > 0 && self.records <= MAX_UNROLLED;
        let unroll = || is_worth_it.then(|| Unrolled::new(self.records(shard), bodies))?;
        let unrolled = match bodies {
            LoopBodies::Replicated => &self.unrolled,
            LoopBodies::Kept => &self.inner_unrolled,
        };
        unrolled.get_or_init(unroll).as_ref()
    }
}

/// State shared by ranks of equal structure.
#[derive(Debug)]
pub(crate) struct RankClass {
    pub(crate) archive: Arc<Archive>,
    pub(crate) program: Arc<Program>,
    /// Number of actions of a rank: those of the program, minus absent optional computations, plus inserted computations.
    pub(crate) actions: u64,
    pub(crate) changes: ActionCountChanges,
    /// All columns, those of the program first.
    pub(crate) columns: Arc<[Column]>,
    /// Number of columns that the program may use; two more hold the inserted computations, if there are any.
    pub(crate) program_columns: usize,
    pub(crate) limits: Arc<Limits>,
}

/// A rank of an archive.
#[derive(Debug)]
pub(crate) struct ArchivedRank {
    pub(crate) class: Arc<RankClass>,
    pub(crate) rank: Rank,
    /// Offset of the column blocks in the data of the shard [B].
    pub(crate) blocks_offset: u64,
    /// Rows of its outgoing channels.
    pub(crate) outgoing: Span,
    /// Rows of its incoming channels.
    pub(crate) incoming: Span,
}

impl ArchivedRank {
    pub(crate) fn shard(&self) -> &Shard {
        &self.class.archive.shards[self.class.program.shard as usize]
    }

    /// Returns messages and bytes of each outgoing channel, from the table.
    pub(crate) fn sends(&self) -> impl Iterator<Item = Traffic> + '_ {
        self.rows::<OutgoingRow>(self.outgoing).iter().map(ArchivedOutgoingRow::traffic)
    }

    /// Returns the number of receives of each incoming channel, from the table.
    pub(crate) fn receives(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows::<IncomingRow>(self.incoming).iter().map(|row| row.receives.to_native())
    }

    fn rows<R: Row>(&self, span: Span) -> &[rkyv::Archived<R>] {
        let rows = self.class.archive.tables.rows::<R>(span, (R::SECTION, span.first));
        rows.expect("the rows were there when the rank was read")
    }

    /// Returns the records of the program; a record that refers to an entry that the rank does not have is reported as damage.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<Record, Damage>> + '_ {
        self.class.program.records(self.shard()).map(|record| {
            let record = record?;
            if self.admits(record) { Ok(record) } else { Err(Damage::of(record)) }
        })
    }

    fn admits(&self, record: Record) -> bool {
        match record.kind() {
            COLUMN | OPTIONAL => (record.index() as usize) < self.class.program_columns,
            LOOP_BEGIN | LOOP_END => true,
            _ => self.class.limits.admit(record),
        }
    }

    /// Records damage found in this rank.
    pub(crate) fn report_damage(&self, damage: Damage) {
        self.class.archive.report_damage(self.rank, damage);
    }
}
