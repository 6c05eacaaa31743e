//! Global quiescence: no worker can run and no batch is under way.

use parking_lot::Mutex;

use super::exchange::Traffic;
use crate::{Rank, SimTime};

/// Detects quiescence by counting (Mattern 1987): a worker that has nothing to do registers, after it has sent all
/// that it holds, with the numbers of batches that it sent and received. Where all are registered and the sums agree,
/// no batch is under way, and nobody can start one.
pub(crate) struct Quiescence {
    state: Mutex<State>,
}

struct State {
    idle: usize,
    sent: u64,
    received: u64,
    /// The earliest conditional event of each worker.
    candidates: Vec<Option<(SimTime, Rank)>>,
}

/// What the worker that completes quiescence has to see to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing can happen any more.
    Stop,
    /// The earliest conditional event of all: grant it, unless the run has failed before its time.
    Commit(SimTime, Rank),
}

impl Quiescence {
    pub(crate) fn new(workers: usize) -> Self {
        Self { state: Mutex::new(State { idle: 0, sent: 0, received: 0, candidates: vec![None; workers] }) }
    }

    /// Registers a worker as idle; returns a verdict where that makes the run quiescent.
    pub(crate) fn arrive(
        &self,
        worker: usize,
        traffic: Traffic,
        candidate: Option<(SimTime, Rank)>,
    ) -> Option<Verdict> {
        let mut state = self.state.lock();
        state.idle += 1;
        state.sent += traffic.sent;
        state.received += traffic.received;
        state.candidates[worker] = candidate;
        if state.idle < state.candidates.len() || state.sent != state.received {
            return None;
        }
        let earliest = state.candidates.iter().flatten().min();
        Some(earliest.map_or(Verdict::Stop, |&(at, rank)| Verdict::Commit(at, rank)))
    }

    /// Takes a worker that has got something to do out of the register.
    pub(crate) fn leave(&self) {
        self.state.lock().idle -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Traffic = Traffic { sent: 0, received: 0 };

    #[test]
    fn a_batch_under_way_is_not_quiescence() {
        let quiescence = Quiescence::new(2);
        assert_eq!(quiescence.arrive(0, Traffic { sent: 1, received: 0 }, None), None);
        assert_eq!(quiescence.arrive(1, NONE, None), None);
        quiescence.leave();
        assert_eq!(quiescence.arrive(1, Traffic { sent: 0, received: 1 }, None), Some(Verdict::Stop));
    }

    #[test]
    fn the_earliest_event_is_committed_and_ties_go_to_the_lower_rank() {
        let quiescence = Quiescence::new(2);
        let at = SimTime::from_picos;
        assert_eq!(quiescence.arrive(0, NONE, Some((at(7), Rank::new(3)))), None);
        assert_eq!(
            quiescence.arrive(1, NONE, Some((at(7), Rank::new(5)))),
            Some(Verdict::Commit(at(7), Rank::new(3)))
        );
    }
}
