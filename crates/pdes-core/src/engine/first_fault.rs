//! The earliest failure of a run, the one that it reports.

use super::Ending;
use super::frame::RunSummary;
use crate::{Fault, Rank, SimTime};

/// The earliest failure found so far, by (time, rank, order).
#[derive(Debug)]
pub(crate) struct FirstFault<E>(Option<(Rank, Fault<E>)>);

impl<E> FirstFault<E> {
    /// No failure.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Keeps a failure if it is earlier than the one kept.
    pub(crate) fn record(&mut self, rank: Rank, fault: Fault<E>) {
        let key = (fault.at, rank, fault.order);
        if self.0.as_ref().is_none_or(|(rank, earliest)| key < (earliest.at, *rank, earliest.order)) {
            self.0 = Some((rank, fault));
        }
    }

    /// Keeps the earlier one of two failures.
    pub(crate) fn merge(&mut self, other: Self) {
        if let Some((rank, fault)) = other.0 {
            self.record(rank, fault);
        }
    }

    /// Returns time, rank and order of the failure.
    pub(crate) fn key(&self) -> Option<(SimTime, Rank, u64)> {
        self.0.as_ref().map(|(rank, fault)| (fault.at, *rank, fault.order))
    }

    /// Returns the ending of a run on a cluster from the summary of all members. The error is present on the member of the
    /// failed process only.
    pub(crate) fn cluster_ending(self, all: RunSummary) -> Ending<Option<E>> {
        let Some((at, rank, order)) = all.fault else {
            return match Ending::from_unfinished(all.waiting) {
                Ending::Deadlocked(_) if all.is_stopped => Ending::StoppedAtCheckpoint,
                ending => ending,
            };
        };
        let here = self.key() == Some((at, rank, order));
        let error = self.0.filter(|_| here).map(|(_, fault)| fault.error);
        Ending::Failed(rank, Fault { at, order, error })
    }

    /// Returns the time of the failure, past which no event matters; [`SimTime::MAX`] if there is none.
    pub(crate) fn cutoff(&self) -> SimTime {
        self.0.as_ref().map_or(SimTime::MAX, |(_, fault)| fault.at)
    }

    /// Returns the ending of a run in which these processes have not finished.
    pub(crate) fn ending(self, waiting: Vec<Rank>) -> Ending<E> {
        match self.0 {
            Some((rank, fault)) => Ending::Failed(rank, fault),
            None => Ending::from_unfinished(waiting),
        }
    }
}
