//! Reading the actions of a rank in order.

use std::slice;

use crate::action::Action;
use crate::archive::{ArchivedRank, Damage, Jump, Walk};
use crate::column::ABSENT;
use crate::record::{COLUMN, LOOP_BEGIN, LOOP_END, Limits, MAX_AMOUNT_BITS, OPTIONAL, Record, UNLIMITED};
use crate::store::Records;

/// Reads the actions of a rank in order.
///
/// A step takes constant time and never allocates. A clone goes on from the same place.
///
/// Where the actions are found to be damaged, which only those of an archive can be, the cursor ends early and
/// [`Trace::integrity`](crate::Trace::integrity) tells.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: slice::Iter<'a, Record>,
    limits: &'a Limits,
    position: u64,
    len: u64,
    /// The chunk of which `rest` is the end.
    chunk: &'a [Record],
    source: Source<'a>,
}

/// Where the chunks come from.
#[derive(Clone, Debug)]
enum Source<'a> {
    Memory { records: &'a Records, next: usize },
    Archive(Box<Walk<'a>>),
    Damaged,
}

impl<'a> Cursor<'a> {
    pub(crate) fn in_memory(records: &'a Records) -> Self {
        let source = Source::Memory { records, next: 0 };
        Self { rest: [].iter(), limits: &UNLIMITED, position: 0, len: records.len(), chunk: &[], source }
    }

    pub(crate) fn archived(rank: &'a ArchivedRank) -> Self {
        let (limits, len) = (&rank.limits, rank.actions);
        Self {
            rest: [].iter(),
            limits,
            position: 0,
            len,
            chunk: &[],
            source: Source::Archive(Box::new(Walk::new(rank))),
        }
    }

    /// Returns the index of the next action, which is the number of actions read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the first record of the body and the iterations left of the outermost loop around the last action.
    pub(crate) fn outermost_loop(&self) -> Option<(u64, u64)> {
        match &self.source {
            Source::Archive(walk) => walk.outermost_loop(),
            _ => None,
        }
    }

    /// Goes on to the next chunk; returns whether there is one.
    #[cold]
    fn open_chunk(&mut self) -> bool {
        let chunk = match &mut self.source {
            Source::Memory { records, next } => {
                *next += 1;
                Ok(records.chunk(*next - 1).unwrap_or_default())
            }
            Source::Archive(walk) => match walk.next_chunk() {
                Ok([]) => walk.check_end(self.position).map(|()| &[][..]),
                chunk => chunk,
            },
            Source::Damaged => Ok(&[][..]),
        };
        match chunk {
            Ok(chunk) => {
                self.set_chunk(chunk);
                !chunk.is_empty()
            }
            Err(damage) => self.stop(damage),
        }
    }

    fn set_chunk(&mut self, chunk: &'a [Record]) {
        self.chunk = chunk;
        self.rest = chunk.iter();
    }

    /// Enters a loop; returns whether to go on.
    fn enter(&mut self, begin: Record) -> bool {
        let Source::Archive(walk) = &mut self.source else { return false };
        match walk.enter(begin.amount(), self.rest.len()) {
            Ok(()) => true,
            Err(damage) => self.stop(damage),
        }
    }

    /// Ends an iteration of a loop; returns whether to go on.
    #[inline]
    fn repeat(&mut self) -> bool {
        let Source::Archive(walk) = &mut self.source else { return false };
        match walk.repeat(self.position, self.chunk.len()) {
            Jump::On => true,
            Jump::Within(start) => {
                self.rest = self.chunk[start..].iter();
                true
            }
            Jump::Away => self.open_body(),
            Jump::Damaged => {
                let damage = walk.bad_end(self.position);
                self.stop(damage)
            }
        }
    }

    /// Goes back to the body of the innermost loop; returns whether to go on.
    #[cold]
    fn open_body(&mut self) -> bool {
        let Source::Archive(walk) = &mut self.source else { return false };
        match walk.body_chunk() {
            Ok(chunk) => {
                self.set_chunk(chunk);
                true
            }
            Err(damage) => self.stop(damage),
        }
    }

    /// Reads a computation whose amount is in a column; `None` where it is left out, or where the column is damaged.
    #[inline]
    fn compute(&mut self, record: Record, is_optional: bool) -> Option<Action> {
        let Source::Archive(walk) = &mut self.source else { return None };
        let bits = match walk.value(record.index()) {
            Some(bits) => bits,
            None => self.open_block(record.index())?,
        };
        if bits <= MAX_AMOUNT_BITS {
            self.position += 1;
            return Some(Action::Compute { flops: f64::from_bits(bits) });
        }
        if bits != ABSENT || !is_optional {
            self.stop(Damage::Column);
        }
        None
    }

    #[cold]
    fn open_block(&mut self, column: u32) -> Option<u64> {
        let Source::Archive(walk) = &mut self.source else { return None };
        match walk.open_block(column) {
            Ok(bits) => Some(bits),
            Err(damage) => {
                self.stop(damage);
                None
            }
        }
    }

    #[cold]
    fn refuse(&mut self, record: Record) -> Option<Action> {
        let [head, amount] = record.words();
        self.stop(Damage::Record { head, amount });
        None
    }

    /// Ends the cursor for good; returns that it does not go on.
    #[cold]
    fn stop(&mut self, damage: Damage) -> bool {
        if let Source::Archive(walk) = &self.source {
            walk.rank.report(damage);
        }
        self.source = Source::Damaged;
        self.set_chunk(&[]);
        false
    }
}

impl Iterator for Cursor<'_> {
    type Item = Action;

    #[inline]
    fn next(&mut self) -> Option<Action> {
        loop {
            let Some(record) = self.rest.next().copied() else {
                if self.open_chunk() {
                    continue;
                }
                return None;
            };
            let goes_on = match record.kind() {
                COLUMN => return self.compute(record, false),
                OPTIONAL => match self.compute(record, true) {
                    None => true,
                    action => return action,
                },
                LOOP_BEGIN => self.enter(record),
                LOOP_END => self.repeat(),
                _ if self.limits.admit(record) => {
                    self.position += 1;
                    return Some(record.decode());
                }
                _ => return self.refuse(record),
            };
            if !goes_on {
                return None;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Damage ends an archive's cursor early, so that only memory promises its length.
        let left = usize::try_from(self.len.saturating_sub(self.position)).ok();
        match self.source {
            Source::Memory { .. } => (left.unwrap_or(usize::MAX), left),
            _ => (0, left),
        }
    }
}
