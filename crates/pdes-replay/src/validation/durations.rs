//! Replayed durations of single actions.

use std::sync::Mutex;

use mpi_model::{Event, EventSink};

/// Durations of all actions of all ranks \[s\], without those that a timeline omits because they take no time: 4 bytes each.
#[derive(Debug)]
pub(super) struct Durations(Vec<Mutex<Vec<f32>>>);

impl Durations {
    pub(super) fn new(ranks: u32) -> Self {
        Self((0..ranks).map(|_| Mutex::default()).collect())
    }

    /// Returns the durations of the actions of each rank, in their order.
    pub(super) fn into_ranks(self) -> impl Iterator<Item = Vec<f32>> {
        self.0.into_iter().map(|rank| rank.into_inner().expect("no recorder has panicked"))
    }
}

impl EventSink for Durations {
    fn record(&self, events: &[Event]) {
        for event in events {
            if let Event::State { rank, begin, end, .. } = event {
                let mut rank = self.0[rank.index()].lock().expect("no recorder has panicked");
                rank.push((*end - *begin).as_secs_f64() as f32);
            }
        }
    }

    fn begin_anew(&self) {
        self.0.iter().for_each(|rank| rank.lock().expect("no recorder has panicked").clear());
    }
}
