//! Quiescence detection within one member: no worker can run and no message is in transit between them.

use parking_lot::Mutex;

use super::conditional_events::Candidate;
use super::endpoint::MessageCounts;
use crate::{LpId, SimTime};

/// Detects quiescence by counting messages (Mattern 1987): an idle worker, which has sent all its queued tokens, registers
/// with the numbers of messages that it sent and received. If all workers are registered and the sums agree, no message is
/// in transit, and no worker can send one. One mutex makes the registrations atomic, so plain sums suffice here.
pub(crate) struct Quiescence {
    state: Mutex<State>,
}

struct State {
    idle: usize,
    sent: u64,
    received: u64,
    /// Earliest candidate of each worker.
    candidates: Vec<Option<Candidate>>,
}

/// The member is quiescent; carries its earliest candidate, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiescent(pub(crate) Option<Candidate>);

/// The decision at quiescence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// End the run.
    Stop,
    /// Grant the conditional event of this process, the earliest of all.
    Commit(LpId),
}

impl Decision {
    /// Decides to grant the earliest event, or to stop if there is none before the earliest failure.
    pub(crate) fn new(candidate: Option<Candidate>, cutoff: SimTime) -> Self {
        match candidate {
            Some(first) if first.at <= cutoff => Self::Commit(first.lp),
            _ => Self::Stop,
        }
    }
}

impl Quiescence {
    pub(crate) fn new(workers: usize) -> Self {
        Self { state: Mutex::new(State { idle: 0, sent: 0, received: 0, candidates: vec![None; workers] }) }
    }

    /// Registers a worker as idle; returns [`Quiescent`] if the member is quiescent then.
    pub(crate) fn register_idle(
        &self,
        worker: usize,
        counts: MessageCounts,
        candidate: Option<Candidate>,
    ) -> Option<Quiescent> {
        let mut state = self.state.lock();
        state.idle += 1;
        state.candidates[worker] = candidate;
        state.add_counts(counts);
        state.quiescent()
    }

    /// Adds the message counts of a worker that forwards messages while it is registered; returns [`Quiescent`] if
    /// the member is quiescent then.
    pub(crate) fn add_counts(&self, counts: MessageCounts) -> Option<Quiescent> {
        let mut state = self.state.lock();
        state.add_counts(counts);
        state.quiescent()
    }

    /// Counts a message to a worker while all are registered: the commit that follows a decision.
    pub(crate) fn count_sent(&self) {
        self.state.lock().sent += 1;
    }

    /// Unregisters a worker that has received a message.
    pub(crate) fn unregister(&self) {
        self.state.lock().idle -= 1;
    }
}

impl State {
    fn add_counts(&mut self, counts: MessageCounts) {
        self.sent += counts.sent;
        self.received += counts.received;
    }

    fn quiescent(&self) -> Option<Quiescent> {
        let quiet = self.idle == self.candidates.len() && self.sent == self.received;
        quiet.then(|| Quiescent(self.candidates.iter().flatten().min().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditional_events::CandidateKind;
    use super::*;

    const NONE: MessageCounts = MessageCounts { sent: 0, received: 0 };

    #[test]
    fn a_message_under_way_is_not_quiescence() {
        let quiescence = Quiescence::new(2);
        assert_eq!(quiescence.register_idle(0, MessageCounts { sent: 1, received: 0 }, None), None);
        assert_eq!(quiescence.register_idle(1, NONE, None), None);
        quiescence.unregister();
        assert_eq!(
            quiescence.register_idle(1, MessageCounts { sent: 0, received: 1 }, None),
            Some(Quiescent(None))
        );
        quiescence.count_sent();
        assert_eq!(quiescence.add_counts(NONE), None);
        assert_eq!(quiescence.add_counts(MessageCounts { sent: 0, received: 1 }), Some(Quiescent(None)));
    }

    #[test]
    fn the_earliest_event_is_committed_and_ties_go_to_the_lower_lp() {
        let quiescence = Quiescence::new(2);
        let at = SimTime::from_picos;
        let event = |lp| Some(Candidate { at: at(7), kind: CandidateKind::Conditional, lp: LpId::new(lp) });
        let earliest = event(3);
        assert_eq!(quiescence.register_idle(0, NONE, earliest), None);
        assert_eq!(quiescence.register_idle(1, NONE, event(5)), Some(Quiescent(earliest)));
        assert_eq!(Decision::new(earliest, at(7)), Decision::Commit(LpId::new(3)));
        assert_eq!(Decision::new(earliest, at(6)), Decision::Stop);
    }
}
