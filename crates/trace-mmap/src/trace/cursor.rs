//! Reading the actions of a rank in order.

use std::slice;

use crate::action::Action;
use crate::archive::{ArchivedRank, Damage, Head, Walk};
use crate::column::{ABSENT, Ahead};
use crate::record::{COLUMN, Limits, MAX_AMOUNT_BITS, OPTIONAL, Record};
use crate::store::{CHUNK, Records};
use crate::trace::Mark;

/// Reads the actions of a rank in order.
///
/// A step takes constant time and never allocates. A clone goes on from the same place. A cursor takes 104 bytes, over an
/// archive 100 more, 24 for each nested loop, and for each column of amounts 24, or where some amounts differ 120, and 8 for
/// each of up to 128 amounts.
///
/// Where the actions are found to be damaged, which only those of an archive can be, the cursor ends early and
/// [`Trace::integrity`](crate::Trace::integrity) tells.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: slice::Iter<'a, Record>,
    /// Bounds of the actions; `None` where they are known to be within.
    limits: Option<&'a Limits>,
    position: u64,
    ahead: Ahead<'a>,
    source: Source<'a>,
}

const _: () = assert!(size_of::<Cursor<'_>>() <= 104 && size_of::<Walk<'_>>() <= 100);

/// Where the records come from.
#[derive(Clone, Debug)]
enum Source<'a> {
    Memory { records: &'a Records, next: usize },
    Archive(Box<Walk<'a>>),
    Damaged,
}

impl<'a> Cursor<'a> {
    pub(crate) fn in_memory(records: &'a Records) -> Self {
        Self::new(Source::Memory { records, next: 0 }, None, Ahead::default())
    }

    pub(crate) fn archived(rank: &'a ArchivedRank) -> Self {
        Self::walking(rank, Walk::new(rank))
    }

    /// Makes a cursor that stops at heads.
    pub(crate) fn by_iterations(rank: &'a ArchivedRank) -> Self {
        Self::walking(rank, Walk::by_iterations(rank))
    }

    fn walking(rank: &'a ArchivedRank, walk: Walk<'a>) -> Self {
        let walk = Box::new(walk);
        let (limits, ahead) = (walk.limits(), Ahead::new(&rank.form.columns));
        Self::new(Source::Archive(walk), limits, ahead)
    }

    fn new(source: Source<'a>, limits: Option<&'a Limits>, ahead: Ahead<'a>) -> Self {
        Self { rest: [].iter(), limits, position: 0, ahead, source }
    }

    /// Returns the index of the next action, which is the number of actions read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns where the cursor is, to go on from there with [`RankTrace::cursor_at`](crate::RankTrace::cursor_at); `None` for
    /// one that stops at heads, and for one that has met damage.
    pub fn mark(&self) -> Option<Mark> {
        let place = match &self.source {
            Source::Memory { .. } => None,
            Source::Archive(walk) => Some(walk.place_of(self.rest.as_slice(), &self.ahead)?),
            Source::Damaged => return None,
        };
        Some(Mark { position: self.position, place })
    }

    /// Goes on, from before the first action, at a mark of a cursor of the same rank.
    ///
    /// Where the trace has no such place the cursor ends as where it is damaged.
    pub(crate) fn go_on_at(&mut self, mark: &Mark) {
        self.position = mark.position;
        let records = match (&mut self.source, &mark.place) {
            (Source::Memory { records, next }, None) => {
                let (chunk, within) = (mark.position as usize / CHUNK, mark.position as usize % CHUNK);
                *next = chunk + 1;
                Ok(records.chunk(chunk).and_then(|chunk| chunk.get(within..)).unwrap_or_default())
            }
            (Source::Archive(walk), Some(place)) => walk.go_on_at(place, &mut self.ahead),
            _ => Err(Damage::Column),
        };
        self.go_on(records);
    }

    /// Returns the head at which the cursor has stopped: see
    /// [`RankTrace::cursor_by_iterations`](crate::RankTrace::cursor_by_iterations).
    pub fn head(&self) -> Option<Head> {
        match &self.source {
            Source::Archive(walk) => walk.heads.as_ref()?.at(self.position),
            _ => None,
        }
    }

    /// Does not stop at so many heads, unless another loop begins before.
    pub fn pass_heads(&mut self, heads: u64) {
        if let Source::Archive(walk) = &mut self.source
            && let Some(known) = &mut walk.heads
        {
            known.passes = heads;
        }
    }

    /// Passes over iterations that repeat the last one, at the head of one.
    ///
    /// # Panics
    /// Where the cursor has not stopped at a head that as many iterations alike follow.
    pub fn skip_iterations(&mut self, iterations: u64) {
        let alike = self.head().map_or(0, |head| head.alike);
        assert!(iterations <= alike, "{iterations} iterations to pass over, of {alike} that are alike");
        let Source::Archive(walk) = &mut self.source else { return };
        let records = walk.skip(iterations, self.rest.as_slice(), &mut self.ahead);
        self.position = walk.heads.as_ref().map_or(self.position, |heads| heads.position());
        self.go_on(records);
    }

    /// Goes on to the next records; returns whether there are some.
    #[cold]
    fn advance(&mut self) -> bool {
        let records = match &mut self.source {
            Source::Memory { records, next } => {
                *next += 1;
                Ok(records.chunk(*next - 1).unwrap_or_default())
            }
            Source::Archive(walk) => walk.advance(self.position),
            Source::Damaged => Ok(&[][..]),
        };
        self.go_on(records);
        self.rest.len() > 0
    }

    /// Goes on at the begin of a loop or at the end of an iteration; returns whether to stop there.
    #[cold]
    fn turn(&mut self, record: Record) -> bool {
        let Source::Archive(walk) = &mut self.source else {
            self.stop(Damage::of(record));
            return false;
        };
        let (depth, behind) = walk.place(self.rest.as_slice());
        let records = walk.turn(record, self.position, self.rest.as_slice());
        let stops = match &records {
            Ok(_) => walk.look_ahead(record, depth, behind, self.position, &self.ahead),
            Err(_) => Ok(false),
        };
        self.go_on(records);
        stops.unwrap_or_else(|damage| {
            self.stop(damage);
            false
        })
    }

    /// Takes an amount, by its bits, of a column of which none is unpacked; `None` where it is damaged.
    #[cold]
    fn unpack(&mut self, record: Record) -> Option<u64> {
        let Source::Archive(walk) = &self.source else { return None };
        let unpacked = self.ahead.unpack(record.index(), walk.rank.shard(), walk.rank.blocks);
        let is_value = |bits| bits <= MAX_AMOUNT_BITS || bits == ABSENT && record.kind() == OPTIONAL;
        match unpacked {
            Ok(bits) if is_value(bits) => Some(bits),
            _ => {
                self.stop(unpacked.err().unwrap_or(Damage::Column));
                None
            }
        }
    }

    #[cold]
    fn refuse(&mut self, record: Record) {
        self.stop(Damage::of(record));
    }

    fn go_on(&mut self, records: Result<&'a [Record], Damage>) {
        match records {
            Ok(records) => self.rest = records.iter(),
            Err(damage) => self.stop(damage),
        }
    }

    /// Ends the cursor for good.
    #[cold]
    fn stop(&mut self, damage: Damage) {
        if let Source::Archive(walk) = &self.source {
            walk.rank.report(damage);
        }
        self.source = Source::Damaged;
        self.rest = [].iter();
    }
}

impl Iterator for Cursor<'_> {
    type Item = Action;

    #[inline]
    fn next(&mut self) -> Option<Action> {
        loop {
            let Some(record) = self.rest.next().copied() else {
                if self.advance() {
                    continue;
                }
                return None;
            };
            // One comparison tells actions from all that is in programs of archives only, and that the kind is known.
            if record.kind() < COLUMN {
                if self.limits.is_none_or(|limits| limits.admit(record)) {
                    self.position += 1;
                    return Some(record.decode());
                }
                self.refuse(record);
                return None;
            }
            if record.kind() > OPTIONAL {
                if self.turn(record) {
                    return None;
                }
                continue;
            }
            let mut bits = self.ahead.take(record.index());
            if bits > MAX_AMOUNT_BITS && (bits != ABSENT || record.kind() != OPTIONAL) {
                bits = self.unpack(record)?;
            }
            if bits <= MAX_AMOUNT_BITS {
                self.position += 1;
                return Some(Action::Compute { flops: f64::from_bits(bits) });
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Damage ends an archive's cursor early, so that only memory promises its length.
        let left = |len: u64| usize::try_from(len.saturating_sub(self.position)).ok();
        match &self.source {
            Source::Memory { records, .. } => {
                let left = left(records.len());
                (left.unwrap_or(usize::MAX), left)
            }
            Source::Archive(walk) => (0, left(walk.rank.form.actions)),
            Source::Damaged => (0, Some(0)),
        }
    }
}
