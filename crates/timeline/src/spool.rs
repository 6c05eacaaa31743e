//! External merge sort of the events of all threads of a process.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpi_model::{Event, EventSink};
use pdes_core::Rank;

use crate::counter::Counter;
use crate::error::TimelineError;
use crate::merge::{Merge, RecordStreams};
use crate::record::{Order, Record};

/// Records per run, sorted in memory: 11 MB.
const RUN_RECORDS: usize = 1 << 18;
/// Records read from a run at once: 43 kB.
const BATCH_RECORDS: usize = 1 << 10;

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

/// Sorted runs: all but the last in a file, the last in memory.
#[derive(Debug, Default)]
struct Runs {
    file: Option<File>,
    /// Unread byte range of each run in the file.
    unread: Vec<Range<u64>>,
    last: Vec<Record>,
}

impl Spool {
    /// Makes a spool whose temporary file lies in `directory`, or in the system's temporary directory if that does not
    /// exist.
    pub fn new(order: Order, directory: &Path) -> Self {
        let directory = if directory.is_dir() { directory.to_owned() } else { std::env::temp_dir() };
        Self { order, directory, run_records: RUN_RECORDS, state: Mutex::default() }
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
        let SpoolState { unsorted: mut fresh, mut runs, seen, counters, failure } =
            std::mem::take(&mut *self.lock_state());
        if let Some(source) = failure {
            return Err(TimelineError::Spool { directory, source });
        }
        fresh.sort_unstable();
        runs.last = fresh;
        let count = runs.unread.len() + 1;
        match Merge::new(runs, count) {
            Ok(merge) => Ok(SortedRecords { directory, seen, counters, merge }),
            Err(source) => Err(TimelineError::Spool { directory, source }),
        }
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
        let mut bytes = Vec::with_capacity(run.len() * Record::SIZE);
        run.iter().for_each(|record| bytes.extend_from_slice(record.as_bytes()));
        let mut kept = self.lock_state();
        if let Err(error) = kept.runs.write(&bytes, &self.directory) {
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

impl Runs {
    fn write(&mut self, bytes: &[u8], directory: &Path) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(directory)?,
        };
        file.write_all(bytes)?;
        let start = self.unread.last().map_or(0, |last| last.end);
        self.unread.push(start..start + bytes.len() as u64);
        self.file = Some(file);
        Ok(())
    }
}

impl RecordStreams for Runs {
    type Error = io::Error;

    fn next_batch(&mut self, stream: usize) -> io::Result<Vec<Record>> {
        let (Some(place), Some(file)) = (self.unread.get_mut(stream), &mut self.file) else {
            return Ok(std::mem::take(&mut self.last));
        };
        let length = (place.end - place.start).min((BATCH_RECORDS * Record::SIZE) as u64);
        let mut bytes = vec![0; length as usize];
        file.seek(SeekFrom::Start(place.start))?;
        file.read_exact(&mut bytes)?;
        place.start += length;
        Ok(Record::from_bytes(&bytes))
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

    #[test]
    fn runs_longer_than_a_batch_are_complete() {
        let event = |rank| Event::State {
            rank: Rank::new(rank),
            kind: mpi_model::ActionKind::Compute,
            site: None,
            begin: pdes_core::SimTime::ZERO,
            end: pdes_core::SimTime::ZERO,
        };
        let events: Vec<Event> = (0..5000).map(|rank| event(rank * 7919 % 5000)).collect();
        let found = sorted(&events, Order::Time, 3000, 10);
        let ranks = found.iter().map(|record| record.decode(Order::Time));
        assert!(ranks.eq((0..5000).map(|rank| Some(event(rank)))));
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
