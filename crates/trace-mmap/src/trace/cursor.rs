//! Reading the actions of a rank in order.

use std::slice;

use pdes_core::prefetch;

use crate::action::Action;
use crate::archive::{ArchivedRank, Damage, Head, Inserts, Reached, Walk};
use crate::column::{ABSENT, Ahead};
use crate::record::{COLUMN, Limits, MAX_AMOUNT_BITS, OPTIONAL, Record};
use crate::store::{CHUNK, Records};
use crate::trace::Mark;

/// Records are fetched into the caches so many before they are read: where many ranks take turns, the processor does not find out
/// by itself that each reads on.
const AHEAD: usize = 8;

/// Reads the actions of a rank in order.
///
/// A step takes constant time and never allocates. A clone goes on from the same place. A cursor takes 40 bytes and a box of 192, over an
/// archive 24 for each nested loop, and for each column of amounts 32, or where some amounts differ 128, and 8 for
/// each of up to 128 amounts.
///
/// Where the actions are found to be damaged, which only those of an archive can be, the cursor ends early and
/// [`Trace::integrity`](crate::Trace::integrity) tells.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: slice::Iter<'a, Record>,
    /// Bounds of the actions; `None` where they are known to be within.
    limits: Option<&'a Limits>,
    /// Records up to the end of `rest`, but for begins and ends of loops before `rest`.
    behind: u64,
    /// All that most steps leave alone. Nothing borrows what is beside it but for a step, so that a loop over a cursor
    /// keeps that in registers: through memory, a step could not begin before the last one has ended.
    state: Box<State<'a>>,
}

/// Where the records and amounts come from.
#[derive(Clone, Debug)]
struct State<'a> {
    ahead: Ahead<'a>,
    source: Source<'a>,
    /// Computations that were left out, less those that were inserted, modulo 2^64.
    absent: u64,
    inserts: Inserts,
    /// The records that follow `rest`, which ends before them because something is to be inserted there.
    following: &'a [Record],
    /// The bits of the amount that is to be yielded where the cursor stops, or [`ABSENT`].
    inserted: u64,
}

/// Where a cursor goes on.
struct Next<'a> {
    rest: &'a [Record],
    behind: u64,
    /// Whether it yields nothing before.
    stops: bool,
}

impl Next<'_> {
    /// Ends a cursor that has read so many records.
    fn end(behind: u64) -> Self {
        Self { rest: &[], behind, stops: true }
    }
}

const _: () = assert!(size_of::<Cursor<'_>>() <= 40 && size_of::<State<'_>>() <= 192);

#[derive(Clone, Debug)]
enum Source<'a> {
    Memory { records: &'a Records, next: usize },
    Archive(Walk<'a>),
    Damaged,
}

impl<'a> Cursor<'a> {
    pub(crate) fn in_memory(records: &'a Records) -> Self {
        Self::new(Source::Memory { records, next: 0 }, None, Ahead::default(), Inserts::default())
    }

    pub(crate) fn archived(rank: &'a ArchivedRank) -> Self {
        Self::walking(rank, Walk::new(rank))
    }

    /// Makes a cursor that stops at heads.
    pub(crate) fn by_iterations(rank: &'a ArchivedRank) -> Self {
        Self::walking(rank, Walk::by_iterations(rank))
    }

    fn walking(rank: &'a ArchivedRank, walk: Walk<'a>) -> Self {
        let (limits, ahead) = (walk.limits(), Ahead::new(&rank.form.columns));
        Self::new(Source::Archive(walk), limits, ahead, Inserts::new(&rank.form))
    }

    fn new(source: Source<'a>, limits: Option<&'a Limits>, ahead: Ahead<'a>, inserts: Inserts) -> Self {
        let state = State { ahead, source, absent: 0, inserts, following: &[], inserted: ABSENT };
        Self { rest: [].iter(), limits, behind: 0, state: Box::new(state) }
    }

    /// Returns the index of the next action, which is the number of actions read.
    pub fn position(&self) -> u64 {
        self.state.actions(self.records())
    }

    /// Returns the records read, but for begins and ends of loops.
    fn records(&self) -> u64 {
        self.behind - self.rest.len() as u64
    }

    /// Goes on; returns whether it yields something.
    #[inline]
    fn goes_on(&mut self, next: Next<'a>) -> bool {
        (self.rest, self.behind) = (next.rest.iter(), next.behind);
        !next.stops
    }

    /// Goes on, after so many actions, with these records, and with something to be inserted behind so many of them.
    fn go_on(&mut self, position: u64, records: Result<&'a [Record], Damage>, due: u64) {
        self.state.absent = 0;
        self.state.inserts.due = position.saturating_add(due);
        self.state.look_up_first(position);
        let rest = match self.state.source {
            Source::Damaged => &[],
            _ => self.state.or_stop(records),
        };
        let next = Next { rest, behind: position + rest.len() as u64, stops: false };
        let next = self.state.limit(next);
        self.goes_on(next);
    }

    /// Returns where the cursor is, to go on from there with [`RankTrace::cursor_at`](crate::RankTrace::cursor_at); `None` for
    /// one that stops at heads, and for one that has met damage.
    pub fn mark(&self) -> Option<Mark> {
        let place = match &self.state.source {
            Source::Memory { .. } => None,
            Source::Archive(walk) => {
                let State { ahead, inserts, following, .. } = &*self.state;
                let rest = walk.whole(self.rest.as_slice(), following.len());
                Some(walk.place_of(rest, ahead, inserts.from(self.records()))?)
            }
            Source::Damaged => return None,
        };
        Some(Mark { position: self.position(), place })
    }

    /// Goes on, from before the first action, at a mark of a cursor of the same rank.
    ///
    /// Where the trace has no such place the cursor ends as where it is damaged.
    pub(crate) fn go_on_at(&mut self, mark: &Mark) {
        let State { ahead, source, inserts, following, .. } = &mut *self.state;
        (*inserts, *following) = (Inserts::default(), &[]);
        let records = match (source, &mark.place) {
            (Source::Memory { records, next }, None) => {
                let (chunk, within) = (mark.position as usize / CHUNK, mark.position as usize % CHUNK);
                *next = chunk + 1;
                Ok(records.chunk(chunk).and_then(|chunk| chunk.get(within..)).unwrap_or_default())
            }
            (Source::Archive(walk), Some(place)) if mark.position <= walk.rank.form.actions => {
                *inserts = place.inserts();
                walk.go_on_at(place, ahead)
            }
            _ => Err(Damage::Column),
        };
        let due = inserts.due;
        self.go_on(mark.position, records, due);
    }

    /// Returns the head at which the cursor has stopped: see
    /// [`RankTrace::cursor_by_iterations`](crate::RankTrace::cursor_by_iterations).
    pub fn head(&self) -> Option<Head> {
        match &self.state.source {
            Source::Archive(walk) => walk.heads.as_ref()?.at(self.position()),
            _ => None,
        }
    }

    /// Does not stop at so many heads, unless another loop begins before.
    pub fn pass_heads(&mut self, heads: u64) {
        if let Source::Archive(walk) = &mut self.state.source
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
        let read = self.records();
        let State { ahead, source, inserts, following, .. } = &mut *self.state;
        let Source::Archive(walk) = source else { return };
        let rest = walk.whole(self.rest.as_slice(), std::mem::take(following).len());
        let records = walk.skip(iterations, rest, ahead);
        let Some(heads) = &walk.heads else { return };
        let due = inserts.after(read, heads.records().saturating_mul(iterations));
        let position = heads.position();
        self.go_on(position, records, due);
    }
}

impl<'a> State<'a> {
    /// Returns the actions that so many records are.
    fn actions(&self, records: u64) -> u64 {
        records.wrapping_sub(self.absent)
    }

    /// Goes on to the next records, none at the end, or inserts what is due behind those that were read.
    ///
    /// Where the next computation is to be inserted cannot be predicted: up to there is no branch on it.
    #[inline(never)]
    fn advance(&mut self, behind: u64) -> Next<'a> {
        if self.inserts.due == behind { self.insert(behind) } else { self.go_further(behind) }
    }

    /// Yields the computation that is due behind so many records.
    #[inline]
    fn insert(&mut self, behind: u64) -> Next<'a> {
        let Some(bits) = self.take(self.inserts.amounts()) else { return Next::end(behind) };
        if !self.look_up(behind) {
            return Next::end(behind);
        }
        self.inserted = bits;
        self.absent = self.absent.wrapping_sub(1);
        let rest = self.following;
        self.limit(Next { rest, behind: behind + rest.len() as u64, stops: true })
    }

    /// Goes on to the next records, none at the end.
    #[cold]
    fn go_further(&mut self, behind: u64) -> Next<'a> {
        self.look_up_first(behind);
        if self.inserts.due == behind {
            return Next { rest: &[], behind, stops: false };
        }
        let position = self.actions(behind);
        let records = match &mut self.source {
            Source::Memory { records, next } => {
                *next += 1;
                Ok(records.chunk(*next - 1).unwrap_or_default())
            }
            Source::Archive(walk) => walk.advance(position),
            Source::Damaged => Ok(&[][..]),
        };
        let rest = self.or_stop(records);
        self.limit(Next { rest, behind: behind + rest.len() as u64, stops: rest.is_empty() })
    }

    /// Finds where the first computation is due, if that was not done yet.
    fn look_up_first(&mut self, read: u64) {
        if self.inserts.due == Inserts::NEVER {
            self.look_up(read);
        }
    }

    /// Finds behind how many records, so many of which were read, the next computation is due that the program does not have;
    /// returns whether that is not damaged.
    #[inline]
    fn look_up(&mut self, read: u64) -> bool {
        self.inserts.due = Inserts::NEVER;
        if let Some(left) = self.inserts.left.checked_sub(1) {
            let Some(gap) = self.take(self.inserts.gaps()) else { return false };
            self.inserts.left = left;
            self.inserts.due = read.saturating_add(Inserts::records(gap));
        }
        true
    }

    /// Takes the next value of a column that the program does not use; `None` where it is damaged.
    #[inline]
    fn take(&mut self, column: u32) -> Option<u64> {
        let bits = self.ahead.take(column);
        if bits <= MAX_AMOUNT_BITS { Some(bits) } else { self.unpack(Record::column(column)) }
    }

    /// Ends the records to follow where something is to be inserted.
    #[inline]
    fn limit(&mut self, Next { rest, behind, stops }: Next<'a>) -> Next<'a> {
        let room = self.inserts.due.saturating_sub(behind - rest.len() as u64);
        let (rest, following) = rest.split_at(rest.len().min(room as usize));
        self.following = following;
        Next { rest, behind: behind - following.len() as u64, stops }
    }

    /// Returns all records to follow.
    fn whole(&self, rest: &'a [Record]) -> &'a [Record] {
        match &self.source {
            Source::Archive(walk) if !self.following.is_empty() => walk.whole(rest, self.following.len()),
            _ => rest,
        }
    }

    /// Goes on at the begin of a loop or at the end of an iteration, with `rest` behind that.
    #[inline(never)]
    fn turn(&mut self, record: Record, behind: u64, rest: slice::Iter<'a, Record>) -> Next<'a> {
        let before = behind - rest.len() as u64 - 1;
        let position = self.actions(before);
        let again = match &mut self.source {
            Source::Archive(walk) => walk.again(record, position),
            _ => None,
        };
        let (turned, stops) = match again {
            Some(body) => (body, false),
            None => self.turn_slowly(record, before, rest.as_slice()),
        };
        self.limit(Next { rest: turned, behind: before + turned.len() as u64, stops })
    }

    #[cold]
    fn turn_slowly(&mut self, record: Record, before: u64, rest: &'a [Record]) -> (&'a [Record], bool) {
        self.try_turn(record, before, self.whole(rest)).unwrap_or_else(|damage| {
            self.stop(damage);
            (&[], false)
        })
    }

    fn try_turn(
        &mut self,
        record: Record,
        records: u64,
        rest: &'a [Record],
    ) -> Result<(&'a [Record], bool), Damage> {
        let reached = Reached { position: self.actions(records), records, inserts: self.inserts };
        let Source::Archive(walk) = &mut self.source else { return Err(Damage::of(record)) };
        let (depth, behind) = walk.place(rest);
        let turned = walk.turn(record, reached.position, rest)?;
        Ok((turned, walk.look_ahead(record, depth, behind, reached, &self.ahead)?))
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

    /// Returns records, or none where there is damage.
    fn or_stop(&mut self, records: Result<&'a [Record], Damage>) -> &'a [Record] {
        records.unwrap_or_else(|damage| {
            self.stop(damage);
            &[]
        })
    }

    /// Remembers damage, behind which there is nothing.
    #[cold]
    fn stop(&mut self, damage: Damage) {
        if let Source::Archive(walk) = &self.source {
            walk.rank.report(damage);
        }
        self.source = Source::Damaged;
        (self.inserts, self.following) = (Inserts::default(), &[]);
    }

    /// Ends the cursor before a record that is no action of the rank.
    #[cold]
    fn refuse(&mut self, record: Record, behind: u64, rest: slice::Iter<'a, Record>) -> Next<'a> {
        self.stop(Damage::of(record));
        self.end(behind, rest)
    }

    /// Ends the cursor before a record with `rest` behind it.
    #[cold]
    fn end(&mut self, behind: u64, rest: slice::Iter<'a, Record>) -> Next<'a> {
        Next::end(behind - rest.len() as u64 - 1)
    }
}

impl Iterator for Cursor<'_> {
    type Item = Action;

    #[inline]
    fn next(&mut self) -> Option<Action> {
        loop {
            let Some(record) = self.rest.next().copied() else {
                let next = self.state.advance(self.behind);
                if self.goes_on(next) {
                    continue;
                }
                let bits = std::mem::replace(&mut self.state.inserted, ABSENT);
                return (bits != ABSENT).then(|| Action::Compute { flops: f64::from_bits(bits) });
            };
            prefetch(self.rest.as_slice().as_ptr().wrapping_add(AHEAD));
            // One comparison tells actions from all that is in programs of archives only, and that the kind is known.
            if record.kind() < COLUMN {
                if self.limits.is_none_or(|limits| limits.admit(record)) {
                    return Some(record.decode());
                }
                let next = self.state.refuse(record, self.behind, self.rest.clone());
                self.goes_on(next);
                return None;
            }
            if record.kind() > OPTIONAL {
                let next = self.state.turn(record, self.behind, self.rest.clone());
                if self.goes_on(next) {
                    continue;
                }
                return None;
            }
            let mut bits = self.state.ahead.take(record.index());
            if bits > MAX_AMOUNT_BITS && (bits != ABSENT || record.kind() != OPTIONAL) {
                let Some(unpacked) = self.state.unpack(record) else {
                    let next = self.state.end(self.behind, self.rest.clone());
                    self.goes_on(next);
                    return None;
                };
                bits = unpacked;
            }
            if bits <= MAX_AMOUNT_BITS {
                return Some(Action::Compute { flops: f64::from_bits(bits) });
            }
            self.state.absent = self.state.absent.wrapping_add(1);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Damage ends an archive's cursor early, so that only memory promises its length.
        let left = |len: u64| usize::try_from(len.saturating_sub(self.position())).ok();
        match &self.state.source {
            Source::Memory { records, .. } => {
                let left = left(records.len());
                (left.unwrap_or(usize::MAX), left)
            }
            Source::Archive(walk) => (0, left(walk.rank.form.actions)),
            Source::Damaged => (0, Some(0)),
        }
    }
}
