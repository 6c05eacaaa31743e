//! Quiescence of one member: none of its workers can run and no message is under way between them.

use parking_lot::Mutex;

use super::exchange::Traffic;
use crate::{Rank, SimTime};

/// Detects quiescence by counting (Mattern 1987): a worker that has nothing to do registers, after it has sent all
/// that it holds, with the numbers of messages that it sent and received. Where all are registered and the sums agree,
/// no message is under way, and nobody can start one.
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

/// Nothing can run; with the earliest conditional event, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiet(pub(crate) Option<(SimTime, Rank)>);

/// What is to be done where nothing can run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing can happen any more that matters.
    Stop,
    /// The conditional event of this process, the earliest of all, is to be granted.
    Commit(Rank),
}

impl Verdict {
    /// Grants the earliest event, unless the run has failed before its time.
    pub(crate) fn new(candidate: Option<(SimTime, Rank)>, cutoff: SimTime) -> Self {
        match candidate {
            Some((at, rank)) if at <= cutoff => Self::Commit(rank),
            _ => Self::Stop,
        }
    }
}

impl Quiescence {
    pub(crate) fn new(workers: usize) -> Self {
        Self { state: Mutex::new(State { idle: 0, sent: 0, received: 0, candidates: vec![None; workers] }) }
    }

    /// Registers a worker as idle; returns whether that makes the member quiescent.
    pub(crate) fn arrive(
        &self,
        worker: usize,
        traffic: Traffic,
        candidate: Option<(SimTime, Rank)>,
    ) -> Option<Quiet> {
        let mut state = self.state.lock();
        state.idle += 1;
        state.candidates[worker] = candidate;
        state.add(traffic);
        state.quiet()
    }

    /// Adds the traffic of a worker that passes messages on while it is registered; returns whether the member is
    /// quiescent then.
    pub(crate) fn add(&self, traffic: Traffic) -> Option<Quiet> {
        let mut state = self.state.lock();
        state.add(traffic);
        state.quiet()
    }

    /// Counts a message to one of the workers that are all registered.
    pub(crate) fn disturb(&self) {
        self.state.lock().sent += 1;
    }

    /// Takes a worker that has got something to do out of the register.
    pub(crate) fn leave(&self) {
        self.state.lock().idle -= 1;
    }
}

impl State {
    fn add(&mut self, traffic: Traffic) {
        self.sent += traffic.sent;
        self.received += traffic.received;
    }

    fn quiet(&self) -> Option<Quiet> {
        let quiet = self.idle == self.candidates.len() && self.sent == self.received;
        quiet.then(|| Quiet(self.candidates.iter().flatten().min().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Traffic = Traffic { sent: 0, received: 0 };

    #[test]
    fn a_message_under_way_is_not_quiescence() {
        let quiescence = Quiescence::new(2);
        assert_eq!(quiescence.arrive(0, Traffic { sent: 1, received: 0 }, None), None);
        assert_eq!(quiescence.arrive(1, NONE, None), None);
        quiescence.leave();
        assert_eq!(quiescence.arrive(1, Traffic { sent: 0, received: 1 }, None), Some(Quiet(None)));
        quiescence.disturb();
        assert_eq!(quiescence.add(NONE), None);
        assert_eq!(quiescence.add(Traffic { sent: 0, received: 1 }), Some(Quiet(None)));
    }

    #[test]
    fn the_earliest_event_is_committed_and_ties_go_to_the_lower_rank() {
        let quiescence = Quiescence::new(2);
        let at = SimTime::from_picos;
        assert_eq!(quiescence.arrive(0, NONE, Some((at(7), Rank::new(3)))), None);
        let earliest = Some((at(7), Rank::new(3)));
        assert_eq!(quiescence.arrive(1, NONE, Some((at(7), Rank::new(5)))), Some(Quiet(earliest)));
        assert_eq!(Verdict::new(earliest, at(7)), Verdict::Commit(Rank::new(3)));
        assert_eq!(Verdict::new(earliest, at(6)), Verdict::Stop);
    }
}
