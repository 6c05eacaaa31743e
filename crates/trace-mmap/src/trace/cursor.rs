//! Cursor over the actions of a rank, in order.

use std::slice;

use pdes_core::prefetch;

use crate::action::Action;
use crate::archive::{
    ArchivedRank, Damage, InsertCursor, IterationBoundary, IterationInProgress, ProgramWalk, ReadPosition,
    WalkPosition,
};
use crate::column::{ABSENT, PrefetchedColumns};
use crate::record::{COLUMN, Limits, MAX_AMOUNT_BITS, OPTIONAL, Record};
use crate::store::{CHUNK, Records};
use crate::trace::CursorPosition;

/// Prefetch distance in records: when many ranks alternate, the hardware prefetcher does not recognize their streams.
const PREFETCH_DISTANCE: usize = 8;

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
    rest_end: u64,
    /// State that most steps do not touch. The other fields are borrowed only within a step, so that a loop over a cursor keeps
    /// them in registers: in memory, they would make each step wait for the stores of the last one.
    state: Box<State<'a>>,
}

/// Source of records and amounts.
#[derive(Clone, Debug)]
struct State<'a> {
    prefetched: PrefetchedColumns<'a>,
    source: RecordSource<'a>,
    /// Number of absent computations minus that of inserted ones, modulo 2^64.
    absent: u64,
    insert_cursor: InsertCursor,
    /// Records after `rest`, which was cut off before them because a computation is inserted there.
    cut_off: &'a [Record],
    /// Bits of the amount to yield before `rest`, or [`ABSENT`].
    inserted: u64,
}

/// Records with which a cursor continues.
struct Continuation<'a> {
    rest: &'a [Record],
    rest_end: u64,
    /// True if `next` returns, an inserted computation or `None`, before it reads them.
    stops: bool,
}

impl Continuation<'_> {
    /// Returns the end of a cursor that has read `behind` records.
    fn end(behind: u64) -> Self {
        Self { rest: &[], rest_end: behind, stops: true }
    }
}

const _: () = assert!(size_of::<Cursor<'_>>() <= 40 && size_of::<State<'_>>() <= 192);

#[derive(Clone, Debug)]
enum RecordSource<'a> {
    Memory { records: &'a Records, next: usize },
    Archive(ProgramWalk<'a>),
    Damaged,
}

impl<'a> Cursor<'a> {
    pub(crate) fn in_memory(records: &'a Records) -> Self {
        Self::new(
            RecordSource::Memory { records, next: 0 },
            None,
            PrefetchedColumns::default(),
            InsertCursor::default(),
        )
    }

    pub(crate) fn archived(rank: &'a ArchivedRank) -> Self {
        Self::over_walk(rank, ProgramWalk::new(rank))
    }

    /// Creates a cursor that stops at iteration boundaries.
    pub(crate) fn with_boundaries(rank: &'a ArchivedRank) -> Self {
        Self::over_walk(rank, ProgramWalk::with_boundaries(rank))
    }

    fn over_walk(rank: &'a ArchivedRank, walk: ProgramWalk<'a>) -> Self {
        let (limits, ahead) = (walk.limits(), PrefetchedColumns::new(&rank.class.columns));
        Self::new(RecordSource::Archive(walk), limits, ahead, InsertCursor::new(&rank.class))
    }

    fn new(
        source: RecordSource<'a>,
        limits: Option<&'a Limits>,
        ahead: PrefetchedColumns<'a>,
        inserts: InsertCursor,
    ) -> Self {
        let state = State {
            prefetched: ahead,
            source,
            absent: 0,
            insert_cursor: inserts,
            cut_off: &[],
            inserted: ABSENT,
        };
        Self { rest: [].iter(), limits, rest_end: 0, state: Box::new(state) }
    }

    /// Returns the index of the next action, which is the number of actions read.
    pub fn position(&self) -> u64 {
        self.state.actions(self.records())
    }

    /// Returns the number of records read, without loop begins and ends.
    fn records(&self) -> u64 {
        self.rest_end - self.rest.len() as u64
    }

    /// Continues with the given records; returns whether `next` reads them at once.
    #[inline]
    fn resume(&mut self, next: Continuation<'a>) -> bool {
        (self.rest, self.rest_end) = (next.rest.iter(), next.rest_end);
        !next.stops
    }

    /// Repositions the cursor after `position` actions, counted as `read` records, and before `records`; the next insertion is `due`
    /// records later.
    fn reposition(&mut self, position: u64, read: u64, records: Result<&'a [Record], Damage>, due: u64) {
        self.state.absent = read.wrapping_sub(position);
        self.state.insert_cursor.records_until_next = read.saturating_add(due);
        self.state.read_first_distance(read);
        let rest = match self.state.source {
            RecordSource::Damaged => &[],
            _ => self.state.records_or_stop(records),
        };
        let next = Continuation { rest, rest_end: read.saturating_add(rest.len() as u64), stops: false };
        let next = self.state.cut_at_insertion(next);
        self.resume(next);
    }

    /// Returns the position of the cursor, for [`resume_at`](Cursor::resume_at); `None` for a cursor that has found damage.
    pub fn saved_position(&self) -> Option<CursorPosition> {
        let place = match &self.state.source {
            RecordSource::Memory { .. } => None,
            RecordSource::Archive(walk) => {
                let State { prefetched, insert_cursor, cut_off, .. } = &*self.state;
                let rest = walk.with_cut_off(self.rest.as_slice(), cut_off.len());
                Some(walk.position_before(rest, prefetched, *insert_cursor, self.records()))
            }
            RecordSource::Damaged => return None,
        };
        Some(CursorPosition { position: self.position(), walk: place })
    }

    /// Moves a new cursor to a position of a cursor of the same rank, both of which stop at iteration boundaries, or neither of which
    /// does. At a boundary the cursor is where it was: it has stopped there, and continues.
    ///
    /// If the trace has no such position, the cursor ends as over a damaged archive.
    pub fn resume_at(&mut self, mark: &CursorPosition) {
        let State { prefetched, source, insert_cursor, cut_off, .. } = &mut *self.state;
        (*insert_cursor, *cut_off) = (InsertCursor::default(), &[]);
        let records = match (source, &mark.walk) {
            (RecordSource::Memory { records, next }, None) => {
                let (chunk, within) = (mark.position as usize / CHUNK, mark.position as usize % CHUNK);
                *next = chunk + 1;
                Ok(records.chunk(chunk).and_then(|chunk| chunk.get(within..)).unwrap_or_default())
            }
            (RecordSource::Archive(walk), Some(place)) if mark.position <= walk.rank.class.actions => {
                *insert_cursor = place.inserts();
                walk.resume_at(place, prefetched)
            }
            _ => Err(Damage::Column),
        };
        let due = insert_cursor.records_until_next;
        let read = mark.walk.as_ref().and_then(WalkPosition::records).unwrap_or(mark.position);
        self.reposition(mark.position, read, records, due);
    }

    /// Returns the iteration boundary at which the cursor has stopped; see
    /// [`RankTrace::cursor_with_boundaries`](crate::RankTrace::cursor_with_boundaries).
    pub fn iteration_boundary(&self) -> Option<IterationBoundary> {
        match &self.state.source {
            RecordSource::Archive(walk) => walk.boundaries.as_ref()?.boundary_at(self.position()),
            _ => None,
        }
    }

    /// Returns the iteration in progress, in a loop with [boundaries](Cursor::iteration_boundary), if it equals the last one.
    pub fn iteration_in_progress(&self) -> Option<IterationInProgress> {
        match &self.state.source {
            RecordSource::Archive(walk) => walk.boundaries_in_loop()?.in_progress_at(self.position()),
            _ => None,
        }
    }

    /// Makes the cursor pass over the next `heads` iteration boundaries without stopping, unless another loop begins before.
    pub fn pass_boundaries(&mut self, heads: u64) {
        if let RecordSource::Archive(walk) = &mut self.state.source
            && let Some(known) = &mut walk.boundaries
        {
            known.pass(heads);
        }
    }

    /// Skips iterations that equal the last one.
    ///
    /// # Panics
    /// Panics unless the cursor has stopped at a boundary that is followed by at least this many equal iterations.
    pub fn skip_iterations(&mut self, iterations: u64) {
        let alike = self.iteration_boundary().map_or(0, |head| head.upcoming_equal);
        assert!(iterations <= alike, "{iterations} iterations to skip, of {alike} that are equal");
        let read = self.records();
        let State { prefetched, source, insert_cursor, cut_off, .. } = &mut *self.state;
        let RecordSource::Archive(walk) = source else { return };
        let rest = walk.with_cut_off(self.rest.as_slice(), std::mem::take(cut_off).len());
        let Some((skipped, records)) = walk.skip_iterations(iterations, rest, prefetched) else { return };
        let due = insert_cursor.records_until_next_after(read, skipped.records);
        self.reposition(skipped.position, skipped.position, records, due);
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
    fn advance(&mut self, behind: u64) -> Continuation<'a> {
        if self.insert_cursor.records_until_next == behind {
            self.yield_inserted(behind)
        } else {
            self.load_records(behind)
        }
    }

    /// Yields the inserted computation that is due.
    #[inline]
    fn yield_inserted(&mut self, behind: u64) -> Continuation<'a> {
        let Some(bits) = self.take(self.insert_cursor.amount_column()) else {
            return Continuation::end(behind);
        };
        if !self.read_distance(behind) {
            return Continuation::end(behind);
        }
        self.inserted = bits;
        self.absent = self.absent.wrapping_sub(1);
        let rest = self.cut_off;
        self.cut_at_insertion(Continuation { rest, rest_end: behind + rest.len() as u64, stops: true })
    }

    /// Advances to the next records; none at the end.
    #[cold]
    fn load_records(&mut self, behind: u64) -> Continuation<'a> {
        self.read_first_distance(behind);
        if self.insert_cursor.records_until_next == behind {
            return Continuation { rest: &[], rest_end: behind, stops: false };
        }
        let position = self.actions(behind);
        let records = match &mut self.source {
            RecordSource::Memory { records, next } => {
                *next += 1;
                Ok(records.chunk(*next - 1).unwrap_or_default())
            }
            RecordSource::Archive(walk) => walk.advance(position),
            RecordSource::Damaged => Ok(&[][..]),
        };
        let rest = self.records_or_stop(records);
        self.cut_at_insertion(Continuation {
            rest,
            rest_end: behind + rest.len() as u64,
            stops: rest.is_empty(),
        })
    }

    /// Reads the distance to the next insertion unless it is known.
    fn read_first_distance(&mut self, read: u64) {
        if self.insert_cursor.records_until_next == InsertCursor::NEVER {
            self.read_distance(read);
        }
    }

    /// Reads the distance to the next insertion, if there is one, after `read` records; returns false on damage.
    #[inline]
    fn read_distance(&mut self, read: u64) -> bool {
        self.insert_cursor.records_until_next = InsertCursor::NEVER;
        if let Some(left) = self.insert_cursor.remaining.checked_sub(1) {
            let Some(gap) = self.take(self.insert_cursor.distance_column()) else { return false };
            self.insert_cursor.remaining = left;
            self.insert_cursor.records_until_next = read.saturating_add(InsertCursor::decode_distance(gap));
        }
        true
    }

    /// Takes the next value of a column of inserted computations; returns `None` on damage.
    #[inline]
    fn take(&mut self, column: u32) -> Option<u64> {
        let bits = self.prefetched.take(column);
        if bits <= MAX_AMOUNT_BITS { Some(bits) } else { self.unpack(Record::column(column)) }
    }

    /// Cuts the records off at the next insertion.
    #[inline]
    fn cut_at_insertion(
        &mut self,
        Continuation { rest, rest_end, stops }: Continuation<'a>,
    ) -> Continuation<'a> {
        let room = self.insert_cursor.records_until_next.saturating_sub(rest_end - rest.len() as u64);
        let (rest, following) = rest.split_at(rest.len().min(room as usize));
        self.cut_off = following;
        Continuation { rest, rest_end: rest_end - following.len() as u64, stops }
    }

    /// Returns `rest` with the records that were cut off.
    fn with_cut_off(&self, rest: &'a [Record]) -> &'a [Record] {
        match &self.source {
            RecordSource::Archive(walk) if !self.cut_off.is_empty() => {
                walk.with_cut_off(rest, self.cut_off.len())
            }
            _ => rest,
        }
    }

    /// Executes the begin of a loop or the end of an iteration, after which `rest` follows.
    #[inline(never)]
    fn execute_loop_record(
        &mut self,
        record: Record,
        behind: u64,
        rest: slice::Iter<'a, Record>,
    ) -> Continuation<'a> {
        let before = behind - rest.len() as u64 - 1;
        let position = self.actions(before);
        let again = match &mut self.source {
            RecordSource::Archive(walk) => walk.repeat_in_chunk(record, position),
            _ => None,
        };
        let (turned, stops) = match again {
            Some(body) => (body, false),
            None => self.execute_loop_record_slow(record, before, rest.as_slice()),
        };
        self.cut_at_insertion(Continuation { rest: turned, rest_end: before + turned.len() as u64, stops })
    }

    #[cold]
    fn execute_loop_record_slow(
        &mut self,
        record: Record,
        before: u64,
        rest: &'a [Record],
    ) -> (&'a [Record], bool) {
        self.try_execute_loop_record(record, before, self.with_cut_off(rest)).unwrap_or_else(|damage| {
            self.stop(damage);
            (&[], false)
        })
    }

    fn try_execute_loop_record(
        &mut self,
        record: Record,
        records: u64,
        rest: &'a [Record],
    ) -> Result<(&'a [Record], bool), Damage> {
        let reached = ReadPosition { actions: self.actions(records), records, inserts: self.insert_cursor };
        let RecordSource::Archive(walk) = &mut self.source else { return Err(Damage::of(record)) };
        let (depth, behind) = walk.depth_and_index(rest);
        let turned = walk.execute_loop_record(record, reached.actions, rest)?;
        Ok((turned, walk.track_boundaries(record, depth, behind, reached, &self.prefetched)?))
    }

    /// Unpacks the next values of a column and takes the bits of the first; returns `None` on damage.
    #[cold]
    fn unpack(&mut self, record: Record) -> Option<u64> {
        let RecordSource::Archive(walk) = &self.source else { return None };
        let unpacked =
            self.prefetched.refill_and_take(record.index(), walk.rank.shard(), walk.rank.blocks_offset);
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
    fn records_or_stop(&mut self, records: Result<&'a [Record], Damage>) -> &'a [Record] {
        records.unwrap_or_else(|damage| {
            self.stop(damage);
            &[]
        })
    }

    /// Reports damage and ends the source.
    #[cold]
    fn stop(&mut self, damage: Damage) {
        if let RecordSource::Archive(walk) = &self.source {
            walk.rank.report_damage(damage);
        }
        self.source = RecordSource::Damaged;
        (self.insert_cursor, self.cut_off) = (InsertCursor::default(), &[]);
    }

    /// Ends the cursor before a record that is not an action of the rank.
    #[cold]
    fn stop_before(
        &mut self,
        record: Record,
        behind: u64,
        rest: slice::Iter<'a, Record>,
    ) -> Continuation<'a> {
        self.stop(Damage::of(record));
        self.end_before(behind, rest)
    }

    /// Ends the cursor before the record that precedes `rest`.
    #[cold]
    fn end_before(&mut self, behind: u64, rest: slice::Iter<'a, Record>) -> Continuation<'a> {
        Continuation::end(behind - rest.len() as u64 - 1)
    }
}

impl Cursor<'_> {
    /// Returns the next action, as [`Iterator::next`] does, in line: for the one loop that replays.
    #[inline(always)]
    pub fn next_action(&mut self) -> Option<Action> {
        loop {
            let Some(record) = self.rest.next().copied() else {
                let next = self.state.advance(self.rest_end);
                if self.resume(next) {
                    continue;
                }
                let bits = std::mem::replace(&mut self.state.inserted, ABSENT);
                return (bits != ABSENT).then(|| Action::Compute { flops: f64::from_bits(bits) });
            };
            prefetch(self.rest.as_slice().as_ptr().wrapping_add(PREFETCH_DISTANCE));
            // One comparison separates actions from the kinds that occur only in archives, and from unknown kinds.
            if record.kind() < COLUMN {
                if self.limits.is_none_or(|limits| limits.admit(record)) {
                    return Some(record.decode());
                }
                let next = self.state.stop_before(record, self.rest_end, self.rest.clone());
                self.resume(next);
                return None;
            }
            if record.kind() > OPTIONAL {
                let next = self.state.execute_loop_record(record, self.rest_end, self.rest.clone());
                if self.resume(next) {
                    continue;
                }
                return None;
            }
            let mut bits = self.state.prefetched.take(record.index());
            if bits > MAX_AMOUNT_BITS && (bits != ABSENT || record.kind() != OPTIONAL) {
                let Some(unpacked) = self.state.unpack(record) else {
                    let next = self.state.end_before(self.rest_end, self.rest.clone());
                    self.resume(next);
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
}

impl Iterator for Cursor<'_> {
    type Item = Action;

    #[inline]
    fn next(&mut self) -> Option<Action> {
        self.next_action()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Damage may end a cursor over an archive early, so that only a cursor over memory has an exact length.
        let left = |len: u64| usize::try_from(len.saturating_sub(self.position())).ok();
        match &self.state.source {
            RecordSource::Memory { records, .. } => {
                let left = left(records.len());
                (left.unwrap_or(usize::MAX), left)
            }
            RecordSource::Archive(walk) => (0, left(walk.rank.class.actions)),
            RecordSource::Damaged => (0, Some(0)),
        }
    }
}
