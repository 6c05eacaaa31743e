//! Cursor over the actions of a rank, in order.

use std::slice;

use pdes_core::prefetch;

use crate::action::Action;
use crate::archive::{ArchivedRank, Damage, Head, Inserts, Reached, Walk};
use crate::column::{ABSENT, Ahead};
use crate::record::{COLUMN, Limits, MAX_AMOUNT_BITS, OPTIONAL, Record};
use crate::store::{CHUNK, Records};
use crate::trace::Mark;

/// Prefetch distance in records: when many ranks alternate, the hardware prefetcher does not recognize their streams.
const AHEAD: usize = 8;

/// Cursor over the actions of a rank, in order.
///
/// A step takes constant time and never allocates. A clone continues from the same position. A cursor takes 40 bytes and a box of
/// 192. Over an archive it takes another 24 bytes for each nested loop, and for each column 32 bytes if all columns are constant;
/// else 128, and 8 for each of up to 128 amounts.
///
/// If the actions of an archive are damaged, the cursor ends early and [`Trace::integrity`](crate::Trace::integrity) reports
/// the damage.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: slice::Iter<'a, Record>,
    /// Limits to check actions against; `None` if all are known to be within them.
    limits: Option<&'a Limits>,
    /// Number of records up to the end of `rest`, without loop begins and ends before `rest`.
    behind: u64,
    /// State that most steps do not touch. The other fields are borrowed only within a step, so that a loop over a cursor keeps
    /// them in registers: in memory, they would make each step wait for the stores of the last one.
    state: Box<State<'a>>,
}

/// Source of records and amounts.
#[derive(Clone, Debug)]
struct State<'a> {
    ahead: Ahead<'a>,
    source: Source<'a>,
    /// Number of absent computations minus that of inserted ones, modulo 2^64.
    absent: u64,
    inserts: Inserts,
    /// Records after `rest`, which was cut off before them because a computation is inserted there.
    following: &'a [Record],
    /// Bits of the amount to yield before `rest`, or [`ABSENT`].
    inserted: u64,
}

/// Records with which a cursor continues.
struct Next<'a> {
    rest: &'a [Record],
    behind: u64,
    /// Whether `next` returns before it reads them: an inserted computation or `None`.
    stops: bool,
}

impl Next<'_> {
    /// Returns the end of a cursor that has read `behind` records.
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

    /// Creates a cursor that stops at iteration boundaries.
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

    /// Returns the number of records read, without loop begins and ends.
    fn records(&self) -> u64 {
        self.behind - self.rest.len() as u64
    }

    /// Continues with the given records; returns whether `next` reads them at once.
    #[inline]
    fn goes_on(&mut self, next: Next<'a>) -> bool {
        (self.rest, self.behind) = (next.rest.iter(), next.behind);
        !next.stops
    }

    /// Repositions the cursor after `position` actions and before `records`; the next insertion is `due` records later.
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

    /// Returns the position of the cursor, for [`RankTrace::cursor_at`](crate::RankTrace::cursor_at); `None` for a cursor that
    /// stops at iteration boundaries or has found damage.
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

    /// Moves a new cursor to a position of a cursor of the same rank.
    ///
    /// If the trace has no such position, the cursor ends as over a damaged archive.
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

    /// Returns the iteration boundary at which the cursor has stopped; see
    /// [`RankTrace::cursor_with_boundaries`](crate::RankTrace::cursor_with_boundaries).
    pub fn head(&self) -> Option<Head> {
        match &self.state.source {
            Source::Archive(walk) => walk.heads.as_ref()?.at(self.position()),
            _ => None,
        }
    }

    /// Makes the cursor pass over the next `heads` iteration boundaries without stopping, unless another loop begins before.
    pub fn pass_heads(&mut self, heads: u64) {
        if let Source::Archive(walk) = &mut self.state.source
            && let Some(known) = &mut walk.heads
        {
            known.passes = heads;
        }
    }

    /// Skips iterations that equal the last one.
    ///
    /// # Panics
    /// Panics unless the cursor has stopped at a boundary that is followed by at least this many equal iterations.
    pub fn skip_iterations(&mut self, iterations: u64) {
        let alike = self.head().map_or(0, |head| head.alike);
        assert!(iterations <= alike, "{iterations} iterations to skip, of {alike} that are equal");
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
    /// Returns the number of actions for a number of records read.
    fn actions(&self, records: u64) -> u64 {
        records.wrapping_sub(self.absent)
    }

    /// Advances to the next records (none at the end), or yields the inserted computation that is due.
    ///
    /// The position of the next insertion is unpredictable, so `rest` is cut off there instead of testing for it at each step.
    #[inline(never)]
    fn advance(&mut self, behind: u64) -> Next<'a> {
        if self.inserts.due == behind { self.insert(behind) } else { self.go_further(behind) }
    }

    /// Yields the inserted computation that is due.
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

    /// Advances to the next records; none at the end.
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

    /// Reads the distance to the next insertion unless it is known.
    fn look_up_first(&mut self, read: u64) {
        if self.inserts.due == Inserts::NEVER {
            self.look_up(read);
        }
    }

    /// Reads the distance to the next insertion, if there is one, after `read` records; returns false on damage.
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

    /// Takes the next value of a column of inserted computations; returns `None` on damage.
    #[inline]
    fn take(&mut self, column: u32) -> Option<u64> {
        let bits = self.ahead.take(column);
        if bits <= MAX_AMOUNT_BITS { Some(bits) } else { self.unpack(Record::column(column)) }
    }

    /// Cuts the records off at the next insertion.
    #[inline]
    fn limit(&mut self, Next { rest, behind, stops }: Next<'a>) -> Next<'a> {
        let room = self.inserts.due.saturating_sub(behind - rest.len() as u64);
        let (rest, following) = rest.split_at(rest.len().min(room as usize));
        self.following = following;
        Next { rest, behind: behind - following.len() as u64, stops }
    }

    /// Returns `rest` with the records that were cut off.
    fn whole(&self, rest: &'a [Record]) -> &'a [Record] {
        match &self.source {
            Source::Archive(walk) if !self.following.is_empty() => walk.whole(rest, self.following.len()),
            _ => rest,
        }
    }

    /// Executes the begin of a loop or the end of an iteration, after which `rest` follows.
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

    /// Unpacks the next values of a column and takes the bits of the first; returns `None` on damage.
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

    /// Returns the records, or none on damage.
    fn or_stop(&mut self, records: Result<&'a [Record], Damage>) -> &'a [Record] {
        records.unwrap_or_else(|damage| {
            self.stop(damage);
            &[]
        })
    }

    /// Reports damage and ends the source.
    #[cold]
    fn stop(&mut self, damage: Damage) {
        if let Source::Archive(walk) = &self.source {
            walk.rank.report(damage);
        }
        self.source = Source::Damaged;
        (self.inserts, self.following) = (Inserts::default(), &[]);
    }

    /// Ends the cursor before a record that is not an action of the rank.
    #[cold]
    fn refuse(&mut self, record: Record, behind: u64, rest: slice::Iter<'a, Record>) -> Next<'a> {
        self.stop(Damage::of(record));
        self.end(behind, rest)
    }

    /// Ends the cursor before the record that precedes `rest`.
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
            // One comparison separates actions from the kinds that occur only in archives, and from unknown kinds.
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
        // Damage may end a cursor over an archive early, so that only a cursor over memory has an exact length.
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
