//! The actions of one rank of an archive.

use std::sync::{Arc, OnceLock};

use pdes_core::Rank;

use crate::archive::layout::MAX_DEPTH;
use crate::archive::tally::Traffic;
use crate::archive::{Archive, Damage, Shard};
use crate::column::{Column, ColumnReader};
use crate::record::{ACTION_KINDS, Limits, Record};

/// A program: records that ranks of equal structure share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// What a rank of an archive does.
#[derive(Debug)]
pub(crate) struct ArchivedRank {
    pub(crate) archive: Arc<Archive>,
    pub(crate) rank: Rank,
    pub(crate) program: Program,
    /// Number of actions: those of the program without the computations that are left out.
    pub(crate) actions: u64,
    /// Where the blocks of the columns begin in the data of the shard.
    pub(crate) blocks: u64,
    pub(crate) columns: Arc<[Column]>,
    pub(crate) limits: Limits,
    /// Messages and bytes of each outgoing channel, by the table.
    pub(crate) sends: Box<[Traffic]>,
    /// Receives of each incoming channel, by the table.
    pub(crate) receives: Box<[u64]>,
    /// The first thing found wrong by any cursor.
    pub(crate) damage: OnceLock<Damage>,
}

impl ArchivedRank {
    pub(crate) fn shard(&self) -> &Shard {
        &self.archive.shards[self.program.shard as usize]
    }

    /// Returns the records of the program.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<Record, Damage>> + '_ {
        let Program { offset, records, .. } = self.program;
        let end = offset + 16 * records;
        let mut next = offset;
        let chunks = std::iter::from_fn(move || {
            let chunk = (next < end).then(|| self.shard().records(next, end))?;
            // Damage ends the records: nothing behind it makes sense.
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

    /// Remembers the first damage.
    pub(crate) fn report(&self, damage: Damage) {
        // Of several cursors that find damage, any may be first.
        let _ = self.damage.set(damage);
    }
}

/// A loop in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// The record behind its begin.
    body: u64,
    /// Iterations after this one.
    left: u64,
}

/// Where a cursor goes at the end of an iteration.
pub(crate) enum Jump {
    /// Behind the loop.
    On,
    /// To this record of the chunk.
    Within(usize),
    /// To a body that begins in an earlier chunk.
    Away,
    /// Nowhere: no loop has begun, or the rank has had all its actions.
    Damaged,
}

/// Where a cursor is in a program.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) rank: &'a ArchivedRank,
    /// The record behind the chunk that the cursor reads.
    end: u64,
    depth: usize,
    levels: [Level; MAX_DEPTH],
    columns: Box<[ColumnReader<'a>]>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(rank: &'a ArchivedRank) -> Self {
        let columns = rank.columns.iter().map(|column| ColumnReader::new(*column)).collect();
        Self { rank, end: 0, depth: 0, levels: [Level::default(); MAX_DEPTH], columns }
    }

    /// Returns the first record of the body and the iterations left of the outermost loop.
    pub(crate) fn outermost_loop(&self) -> Option<(u64, u64)> {
        self.levels[..self.depth].first().map(|level| (level.body, level.left))
    }

    /// Returns the records that follow the chunk, none at the end of the program.
    pub(crate) fn next_chunk(&mut self) -> Result<&'a [Record], Damage> {
        self.chunk_at(self.end)
    }

    fn chunk_at(&mut self, record: u64) -> Result<&'a [Record], Damage> {
        let Program { offset, records, .. } = self.rank.program;
        let chunk = if record < records {
            self.rank.shard().records(offset + 16 * record, offset + 16 * records)?
        } else {
            &[]
        };
        self.end = record + chunk.len() as u64;
        Ok(chunk)
    }

    /// Enters a loop; `rest` is the number of records of the chunk behind its begin.
    pub(crate) fn enter(&mut self, count: u64, rest: usize) -> Result<(), Damage> {
        let level = self.levels.get_mut(self.depth);
        let (Some(level), Some(left)) = (level, count.checked_sub(1)) else { return Err(Self::bad_loop()) };
        *level = Level { body: self.end - rest as u64, left };
        self.depth += 1;
        Ok(())
    }

    /// Ends an iteration after so many actions; `chunk` is the number of records of the chunk that is being read.
    #[inline]
    pub(crate) fn repeat(&mut self, found: u64, chunk: usize) -> Jump {
        let Some(level) = self.depth.checked_sub(1).and_then(|top| self.levels.get_mut(top)) else {
            return Jump::Damaged;
        };
        if found > self.rank.actions {
            return Jump::Damaged;
        }
        if level.left == 0 {
            self.depth -= 1;
            return Jump::On;
        }
        level.left -= 1;
        match chunk.checked_sub((self.end - level.body) as usize) {
            Some(start) => Jump::Within(start),
            None => Jump::Away,
        }
    }

    /// Returns the chunk that starts with the body of the innermost loop.
    pub(crate) fn body_chunk(&mut self) -> Result<&'a [Record], Damage> {
        let top = self.depth.checked_sub(1).ok_or(Self::bad_loop())?;
        self.chunk_at(self.levels[top].body)
    }

    /// Says what is wrong at the end of an iteration.
    pub(crate) fn bad_end(&self, found: u64) -> Damage {
        let expected = self.rank.actions;
        if found > expected { Damage::Actions { expected, found } } else { Self::bad_loop() }
    }

    /// Returns the bits of the next value of a column; `None` where its next block is to be opened first.
    #[inline]
    pub(crate) fn value(&mut self, column: u32) -> Option<u64> {
        self.columns.get_mut(column as usize)?.next()
    }

    /// Opens the next block of a column, and returns the bits of its first value.
    #[cold]
    pub(crate) fn open_block(&mut self, column: u32) -> Result<u64, Damage> {
        let reader = self.columns.get_mut(column as usize).ok_or(Damage::Column)?;
        reader.open_block(self.rank.shard(), self.rank.blocks)?;
        reader.next().ok_or(Damage::Column)
    }

    /// Checks, where the program ends, that so do its loops and that it had as many actions as its table says.
    pub(crate) fn check_end(&self, found: u64) -> Result<(), Damage> {
        let expected = self.rank.actions;
        match self.depth {
            0 if found == expected => Ok(()),
            0 => Err(Damage::Actions { expected, found }),
            _ => Err(Self::bad_loop()),
        }
    }

    fn bad_loop() -> Damage {
        Damage::Loop { limit: MAX_DEPTH as u64 }
    }
}
