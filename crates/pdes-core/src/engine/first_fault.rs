//! The failure that a run reports.

use super::Ending;
use super::frame::Tally;
use crate::{Fault, Rank, SimTime};

/// The earliest failure met so far, by (time, rank, order).
#[derive(Debug)]
pub(crate) struct FirstFault<E>(Option<(Rank, Fault<E>)>);

impl<E> FirstFault<E> {
    /// No failure.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Keeps a failure, if it is earlier than the one kept.
    pub(crate) fn record(&mut self, rank: Rank, fault: Fault<E>) {
        let key = (fault.at, rank, fault.order);
        if self.0.as_ref().is_none_or(|(rank, earliest)| key < (earliest.at, *rank, earliest.order)) {
            self.0 = Some((rank, fault));
        }
    }

    /// Keeps the earlier one of two.
    pub(crate) fn merge(&mut self, other: Self) {
        if let Some((rank, fault)) = other.0 {
            self.record(rank, fault);
        }
    }

    /// Returns time, rank and order of the failure.
    pub(crate) fn key(&self) -> Option<(SimTime, Rank, u64)> {
        self.0.as_ref().map(|(rank, fault)| (fault.at, *rank, fault.order))
    }

    /// Says how a run on a cluster ended that did so for all its processes like this, with a failure here or elsewhere.
    pub(crate) fn on_cluster(self, all: Tally) -> Ending<Option<E>> {
        let Some((at, rank, order)) = all.fault else { return Ending::of_waiting(all.waiting) };
        let here = self.key() == Some((at, rank, order));
        let error = self.0.filter(|_| here).map(|(_, fault)| fault.error);
        Ending::Failed(rank, Fault { at, order, error })
    }

    /// The instant past which nothing matters any more.
    pub(crate) fn cutoff(&self) -> SimTime {
        self.0.as_ref().map_or(SimTime::MAX, |(_, fault)| fault.at)
    }

    /// Says how a run ended in which these processes have not finished.
    pub(crate) fn ending(self, waiting: Vec<Rank>) -> Ending<E> {
        match self.0 {
            Some((rank, fault)) => Ending::Failed(rank, fault),
            None => Ending::of_waiting(waiting),
        }
    }
}
