//! External merge sort of the events of all threads of a process.

mod runs;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpi_model::{Event, EventSink};
use pdes_core::Rank;

use crate::counter::Counter;
use crate::error::TimelineError;
use crate::merge::Merge;
use crate::record::{Order, Record};
pub use runs::SavedSpool;
use runs::{FILE_PREFIX, FILE_SUFFIX, Runs};

/// Records per run, sorted in memory: 11 MB.
const RUN_RECORDS: usize = 1 << 18;

/// Takes events from all threads and sorts them (external merge sort: Knuth, The Art of Computer Programming 3, 5.4).
///
/// # Cost
/// Each event is sorted in memory in a run of 262,144, which is written to a temporary file, 42 B per record, and
/// merged with all other runs. Memory is bounded: 11 MB for records not yet in a run and as much for each thread that
/// sorts; later, 43 kB for each run. If one run suffices there is no file.
#[derive(Debug)]
pub struct Spool {
    order: Order,
    directory: PathBuf,
    /// The file has a name, under which it can be kept.
    is_named: bool,
    run_records: usize,
    state: Mutex<SpoolState>,
}

#[derive(Debug, Default)]
struct SpoolState {
    /// Records not yet in a run.
    unsorted: Vec<Record>,
    runs: Runs,
    /// For each rank, true if it has an event or an end of a message.
    seen: Vec<bool>,
    counters: Vec<Counter>,
    /// First write error, reported by [`Spool::finish`].
    failure: Option<io::Error>,
}

impl Spool {
    /// Makes a spool whose temporary file lies in `directory`, or in the system's temporary directory if that does not
    /// exist.
    pub fn new(order: Order, directory: &Path) -> Self {
        let directory = if directory.is_dir() { directory.to_owned() } else { std::env::temp_dir() };
        Self { order, directory, is_named: false, run_records: RUN_RECORDS, state: Mutex::default() }
    }

    /// Returns whether a file with this name is of a spool that was [saved](Spool::save).
    pub fn is_file_name(name: &str) -> bool {
        name.starts_with(FILE_PREFIX) && name.ends_with(FILE_SUFFIX)
    }

    /// Makes a spool that can be [saved](Spool::save), with its file in `directory`.
    pub fn in_checkpoints(order: Order, directory: &Path) -> Self {
        Self { is_named: true, directory: directory.to_owned(), ..Self::new(order, directory) }
    }

    /// Sets the number of records per run, at least one.
    pub fn with_run_records(self, records: usize) -> Self {
        Self { run_records: records.max(1), ..self }
    }

    /// Returns all events in order, and empties the spool.
    ///
    /// # Errors
    /// Fails if the temporary file could not be written.
    pub fn finish(&self) -> Result<SortedRecords, TimelineError> {
        let directory = self.directory.clone();
        let SpoolState { mut unsorted, mut runs, seen, counters, failure } =
            std::mem::take(&mut *self.lock_state());
        if let Some(source) = failure {
            return Err(TimelineError::Spool { directory, source });
        }
        unsorted.sort_unstable();
        runs.last = unsorted;
        let count = runs.count();
        match Merge::new(runs, count) {
            Ok(merge) => Ok(SortedRecords { directory, seen, counters, merge }),
            Err(source) => Err(TimelineError::Spool { directory, source }),
        }
    }

    /// Writes all events to the file, which remains when the spool is dropped, and describes it. Later events may follow in the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn save(&self) -> Result<SavedSpool, TimelineError> {
        let mut state = self.lock_state();
        let SpoolState { unsorted, runs, seen, failure, .. } = &mut *state;
        let source = match failure.take() {
            Some(failed) => failed,
            None => {
                unsorted.sort_unstable();
                match runs.save(&std::mem::take(unsorted), &self.directory, seen) {
                    Ok(saved) => return Ok(saved),
                    Err(source) => source,
                }
            }
        };
        // The events are lost: the run ends with this error, too.
        let source_again = io::Error::new(source.kind(), source.to_string());
        *failure = Some(source_again);
        Err(TimelineError::Spool { directory: self.directory.clone(), source })
    }

    /// Continues with the files of spools that were saved, whose later events are dropped. The spool is empty.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or is another one.
    pub fn restore(&self, saved: SavedSpool) -> Result<(), TimelineError> {
        let runs = Runs::restore(&saved, &self.directory)?;
        let mut state = self.lock_state();
        (state.runs, state.seen) = (runs, saved.into_seen());
        Ok(())
    }

    /// Adds a counter.
    pub fn add_counter(&self, counter: Counter) {
        self.lock_state().counters.push(counter);
    }

    fn lock_state(&self) -> MutexGuard<'_, SpoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events; returns the records of a full run.
    fn add(&self, events: &[Event]) -> Option<Vec<Record>> {
        let mut kept = self.lock_state();
        if kept.failure.is_some() {
            return None;
        }
        for event in events {
            kept.mark_ranks(event);
            Record::encode(event, self.order, |record| kept.unsorted.push(record));
        }
        (kept.unsorted.len() >= self.run_records).then(|| std::mem::take(&mut kept.unsorted))
    }
}

impl EventSink for Spool {
    fn record(&self, events: &[Event]) {
        // The run is sorted outside the lock: other threads go on recording.
        let Some(mut run) = self.add(events) else { return };
        run.sort_unstable();
        let mut kept = self.lock_state();
        if let Err(error) = kept.runs.write(&run, &self.directory, self.is_named) {
            kept.failure.get_or_insert(error);
        }
    }
}

impl SpoolState {
    fn mark_ranks(&mut self, event: &Event) {
        let (one, other) = match *event {
            Event::State { rank, .. } | Event::Wait { rank, .. } => (rank, rank),
            Event::Message { from, to, .. } => (from, to),
        };
        for rank in [one, other] {
            if self.seen.len() <= rank.index() {
                self.seen.resize(rank.index() + 1, false);
            }
            self.seen[rank.index()] = true;
        }
    }
}

/// Sorted records of a process.
#[derive(Debug)]
pub struct SortedRecords {
    directory: PathBuf,
    seen: Vec<bool>,
    counters: Vec<Counter>,
    merge: Merge<Runs>,
}

impl SortedRecords {
    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// Fails if the temporary file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot fail")]
    pub fn next(&mut self) -> Result<Option<Record>, TimelineError> {
        let directory = &self.directory;
        self.merge.next().map_err(|source| TimelineError::Spool { directory: directory.clone(), source })
    }

    /// Returns up to `most` next records.
    ///
    /// # Errors
    /// Fails if the temporary file cannot be read.
    pub fn next_batch(&mut self, most: usize) -> Result<Vec<Record>, TimelineError> {
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(record) = self.next()?
        {
            batch.push(record);
        }
        Ok(batch)
    }

    /// Returns the counters.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Yields the ranks that have events or ends of messages, in order.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.seen.iter().zip(0..).filter(|(seen, _)| **seen).map(|(_, rank)| Rank::new(rank))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::tests::events;

    fn sorted(events: &[Event], order: Order, room: usize, by: usize) -> Vec<Record> {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::new(order, directory.path()).with_run_records(room);
        events.chunks(by).for_each(|events| spool.record(events));
        let mut sorted = spool.finish().unwrap();
        sorted.next_batch(usize::MAX).unwrap()
    }

    proptest! {
        /// The output does not depend on the order of input or the length of runs.
        #[test]
        fn all_events_come_out_sorted(
            events in prop::collection::vec(events(), 0..200),
            room in 1..50_usize,
            by in 1..9_usize,
        ) {
            for order in [Order::Time, Order::Rank] {
                let mut expected = Vec::new();
                events.iter().for_each(|event| Record::encode(event, order, |record| expected.push(record)));
                expected.sort();
                prop_assert_eq!(&sorted(&events, order, room, by), &expected);
                let backwards: Vec<Event> = events.iter().rev().copied().collect();
                prop_assert_eq!(sorted(&backwards, order, usize::MAX, 1), expected);
            }
        }
    }

    fn event(rank: u32) -> Event {
        Event::State {
            rank: Rank::new(rank),
            kind: mpi_model::ActionKind::Compute,
            site: None,
            begin: pdes_core::SimTime::ZERO,
            end: pdes_core::SimTime::ZERO,
        }
    }

    #[test]
    fn runs_longer_than_a_batch_are_complete() {
        let events: Vec<Event> = (0..5000).map(|rank| event(rank * 7919 % 5000)).collect();
        let found = sorted(&events, Order::Time, 3000, 10);
        let ranks = found.iter().map(|record| record.decode(Order::Time));
        assert!(ranks.eq((0..5000).map(|rank| Some(event(rank)))));
    }

    /// Events before a checkpoint, events that are lost after it, and events of the run that resumes.
    #[test]
    fn a_saved_spool_continues() {
        let directory = tempfile::tempdir().unwrap();
        let spool = || Spool::in_checkpoints(Order::Time, directory.path()).with_run_records(3);
        let record = |spool: &Spool, ranks: std::ops::Range<u32>| {
            ranks.for_each(|rank| spool.record(&[event(rank)]));
        };
        let first = spool();
        let nothing = first.save().unwrap();
        spool().restore(nothing).unwrap();
        record(&first, 0..20);
        let saved = first.save().unwrap();
        record(&first, 50..70);
        drop(first);
        let second = spool();
        second.restore(saved.clone()).unwrap();
        record(&second, 20..30);
        let again = second.save().unwrap();
        let mut sorted = second.finish().unwrap();
        assert_eq!(sorted.ranks().count(), 30);
        let ranks = sorted.next_batch(usize::MAX).unwrap();
        assert!(
            ranks.iter().map(|record| record.decode(Order::Time)).eq((0..30).map(|rank| Some(event(rank))))
        );
        // A file that is too short, or has other events, is refused.
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(Spool::is_file_name(name) && again.has_file(name));
            let bytes = std::fs::read(&path).unwrap();
            let refuse = |bytes: &[u8]| {
                std::fs::write(&path, bytes).unwrap();
                let refused = spool().restore(again.clone());
                assert!(matches!(refused, Err(TimelineError::ForeignEvents { .. })), "{refused:?}");
            };
            refuse(&bytes[..41]);
            refuse(&[&[bytes[0] ^ 1], &bytes[1..]].concat());
            std::fs::write(&path, &bytes).unwrap();
            spool().restore(again.clone()).unwrap();
        }
        // Two processes continue with a file each.
        let [mut one, other] = [0, 1].map(|process| again.clone().part(process, 2));
        assert_eq!((one.ranks(), other.ranks()), (30, 0));
        one.merge(other);
        let all = spool();
        all.restore(one).unwrap();
        assert_eq!(all.finish().unwrap().next_batch(usize::MAX).unwrap().len(), 30);
    }

    #[test]
    fn a_directory_that_vanishes_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let spool = Spool::new(Order::Time, &path).with_run_records(1);
        directory.close().unwrap();
        spool.record(&[Event::State {
            rank: Rank::new(0),
            kind: mpi_model::ActionKind::Compute,
            site: None,
            begin: pdes_core::SimTime::ZERO,
            end: pdes_core::SimTime::ZERO,
        }]);
        let Err(TimelineError::Spool { directory, .. }) = spool.finish() else {
            panic!("it cannot be written")
        };
        assert_eq!(directory, path);
    }
}
