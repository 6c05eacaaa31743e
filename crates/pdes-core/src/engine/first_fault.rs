//! The earliest failure of a run, the one that it reports.

use super::Ending;
use super::frame::RunSummary;
use crate::{Fault, LpId, SimTime};

/// The earliest failure found so far, by (time, process, order).
#[derive(Debug)]
pub(crate) struct FirstFault<E>(Option<(LpId, Fault<E>)>);

impl<E> FirstFault<E> {
    /// No failure.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Keeps a failure if it is earlier than the one kept.
    pub(crate) fn record(&mut self, lp: LpId, fault: Fault<E>) {
        let key = (fault.at, lp, fault.order);
        if self.0.as_ref().is_none_or(|(lp, earliest)| key < (earliest.at, *lp, earliest.order)) {
            self.0 = Some((lp, fault));
        }
    }

    /// Keeps the earlier one of two failures.
    pub(crate) fn merge(&mut self, other: Self) {
        if let Some((lp, fault)) = other.0 {
            self.record(lp, fault);
        }
    }

    /// Returns time, process and order of the failure.
    pub(crate) fn key(&self) -> Option<(SimTime, LpId, u64)> {
        self.0.as_ref().map(|(lp, fault)| (fault.at, *lp, fault.order))
    }

    /// Returns the ending of a run on a cluster from the summary of all members. The error is present on the member of the
    /// failed process only.
    pub(crate) fn cluster_ending(self, all: RunSummary) -> Ending<Option<E>> {
        let Some((at, lp, order)) = all.fault else {
            return match Ending::from_unfinished(all.waiting) {
                Ending::Deadlocked(_) if all.is_stopped => Ending::StoppedAtCheckpoint,
                ending => ending,
            };
        };
        let here = self.key() == Some((at, lp, order));
        let error = self.0.filter(|_| here).map(|(_, fault)| fault.error);
        Ending::Failed(lp, Fault { at, order, error })
    }

    /// Returns the time of the failure, past which no event matters; [`SimTime::MAX`] if there is none.
    pub(crate) fn cutoff(&self) -> SimTime {
        self.0.as_ref().map_or(SimTime::MAX, |(_, fault)| fault.at)
    }

    /// Returns the ending of a run in which these processes have not finished.
    pub(crate) fn ending(self, waiting: Vec<LpId>) -> Ending<E> {
        match self.0 {
            Some((lp, fault)) => Ending::Failed(lp, fault),
            None => Ending::from_unfinished(waiting),
        }
    }
}
