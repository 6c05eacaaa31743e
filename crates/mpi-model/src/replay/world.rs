//! What all ranks of a replay share.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pdes_core::Rank;
use trace_mmap::{CommId, Communicator, Trace};

use super::RankProcess;
use crate::collective::Layout;
use crate::error::ReplayError;
use crate::machine::Machine;
use crate::parameters::Parameters;

/// What all ranks of a replay share.
#[derive(Debug)]
pub struct World<'t, M> {
    pub(super) machine: &'t M,
    pub(super) parameters: &'t Parameters,
    pub(super) trace: &'t Trace,
    layouts: BTreeMap<CommId, OnceLock<Layout>>,
    pub(super) tests: Looks,
    pub(super) probes: Looks,
}

/// One plus how often ranks have looked in vain since one found something. Read and written only in turns that the engine has granted, and these are
/// totally ordered.
#[derive(Debug)]
pub(super) struct Looks(AtomicU64);

impl Looks {
    /// What the next look costs, in the price of a first one.
    pub(super) fn factor(&self) -> u64 {
        // Relaxed: granted turns are ordered by the engine's quiescence.
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn succeed(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    pub(super) fn fail(&self) {
        self.0.store(self.factor() + 1, Ordering::Relaxed);
    }
}

impl<'t, M: Machine> World<'t, M> {
    /// Puts a trace on a machine.
    pub fn new(trace: &'t Trace, machine: &'t M, parameters: &'t Parameters) -> Self {
        let looks = || Looks(AtomicU64::new(1));
        let ranks = (0..trace.ranks()).map(Rank::new);
        let communicators = ranks.flat_map(|rank| trace.rank(rank).communicators());
        let layouts = communicators.map(|communicator| (communicator.id, OnceLock::new())).collect();
        Self { machine, parameters, trace, layouts, tests: looks(), probes: looks() }
    }

    /// Returns which members of a communicator share a node; found out once and kept.
    pub(super) fn layout(&self, communicator: &Communicator) -> &Layout {
        self.layouts[&communicator.id].get_or_init(|| {
            let nodes: Vec<u32> = communicator.group.members().map(|rank| self.machine.node(rank)).collect();
            Layout::new(&nodes)
        })
    }

    /// Makes the processes of all ranks, in their order.
    ///
    /// # Errors
    /// Where two ranks that the trace connects have no path.
    pub fn processes(&'t self) -> Result<Vec<RankProcess<'t, M>>, Box<ReplayError<M::Error>>> {
        (0..self.trace.ranks()).map(|rank| RankProcess::new(self, Rank::new(rank))).collect()
    }
}
