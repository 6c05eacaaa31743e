//! The actions of one rank of an archive.

use std::sync::{Arc, OnceLock};

use pdes_core::Rank;

use crate::archive::layout::Section;
use crate::archive::tally::Traffic;
use crate::archive::unroll::{Outermost, Unrolled};
use crate::archive::{Archive, Damage, Shard};
use crate::column::{Changes, Column};
use crate::record::{ACTION_KINDS, COLUMN, LOOP_BEGIN, LOOP_END, Limits, OPTIONAL, Record};

/// Records of the longest program that is unrolled.
const MAX_UNROLLED: u64 = 4096;

/// A program: records that ranks of equal structure share.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) shard: u32,
    /// First byte in the data of the shard.
    pub(crate) offset: u64,
    /// Number of records.
    pub(crate) records: u64,
    /// Number of actions, loops multiplied out, optional computations included.
    pub(crate) actions: u64,
    /// Number of columns that the records name.
    pub(crate) columns: u64,
    /// Number of actions of each kind, as `actions`.
    pub(crate) by_kind: [u64; ACTION_KINDS],
    /// Deepest nesting of loops.
    pub(crate) depth: u64,
    /// The program with its loops unrolled, once a cursor asked for it.
    pub(crate) unrolled: OnceLock<Option<Unrolled>>,
    /// The same but for the outermost loops, whose iterations stay apart.
    pub(crate) by_iterations: OnceLock<Option<Unrolled>>,
}

impl Program {
    /// Returns the records, page by page; behind damage there are none.
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

    /// Returns whether each record is an action.
    pub(crate) fn is_flat(&self) -> bool {
        self.depth == 0 && self.columns == 0
    }

    /// Returns the program with its loops unrolled; `None` where it has no loops, is long, or is damaged, which whoever
    /// reads it in place finds.
    pub(crate) fn unrolled(&self, shard: &Shard, outermost: Outermost) -> Option<&Unrolled> {
        let is_worth_it = self.depth > 0 && self.records <= MAX_UNROLLED;
        let unroll = || is_worth_it.then(|| Unrolled::new(self.records(shard), outermost))?;
        let unrolled = match outermost {
            Outermost::Repeated => &self.unrolled,
            Outermost::Single => &self.by_iterations,
        };
        unrolled.get_or_init(unroll).as_ref()
    }
}

/// What ranks of equal structure share.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) archive: Arc<Archive>,
    pub(crate) program: Arc<Program>,
    /// Number of actions: those of the program without the computations that are left out, and those between its records.
    pub(crate) actions: u64,
    pub(crate) changes: Changes,
    /// All columns, those of the program first.
    pub(crate) columns: Arc<[Column]>,
    /// How many of them the program may use; two more say what is between its records, if anything is.
    pub(crate) own_columns: usize,
    pub(crate) limits: Arc<Limits>,
}

/// What a rank of an archive does.
#[derive(Debug)]
pub(crate) struct ArchivedRank {
    pub(crate) form: Arc<Form>,
    pub(crate) rank: Rank,
    /// Where the blocks of the columns begin in the data of the shard.
    pub(crate) blocks: u64,
    /// Its first entries in the tables of outgoing and of incoming channels.
    pub(crate) first_channels: [u64; 2],
    /// The numbers of these channels.
    pub(crate) channels: [u32; 2],
}

impl ArchivedRank {
    pub(crate) fn shard(&self) -> &Shard {
        &self.form.archive.shards[self.form.program.shard as usize]
    }

    /// Returns messages and bytes of each outgoing channel, by the table.
    pub(crate) fn sends(&self) -> impl Iterator<Item = Traffic> + '_ {
        let [first, _] = self.first_channels;
        let rows = self.form.archive.rows::<4>(Section::Outgoing, (first, self.channels[0].into()));
        rows.map(|[_, _, messages, bytes]| Traffic { messages, bytes })
    }

    /// Returns receives of each incoming channel, by the table.
    pub(crate) fn receives(&self) -> impl Iterator<Item = u64> + '_ {
        let [_, first] = self.first_channels;
        let rows = self.form.archive.rows::<3>(Section::Incoming, (first, self.channels[1].into()));
        rows.map(|[_, _, receives]| receives)
    }

    /// Returns the records of the program, each of which refers to what the rank has.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<Record, Damage>> + '_ {
        self.form.program.records(self.shard()).map(|record| {
            let record = record?;
            if self.admits(record) { Ok(record) } else { Err(Damage::of(record)) }
        })
    }

    fn admits(&self, record: Record) -> bool {
        match record.kind() {
            COLUMN | OPTIONAL => (record.index() as usize) < self.form.own_columns,
            LOOP_BEGIN | LOOP_END => true,
            _ => self.form.limits.admit(record),
        }
    }

    /// Remembers damage.
    pub(crate) fn report(&self, damage: Damage) {
        self.form.archive.report(self.rank, damage);
    }
}
