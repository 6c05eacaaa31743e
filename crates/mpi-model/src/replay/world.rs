//! What all ranks of a replay share.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use pdes_core::{Outbox, Rank};
use trace_mmap::{CommId, Communicator, Trace};

use super::shelf::Shelves;
use super::{RankProcess, RankState, RestoreError};
use crate::collective::Layout;
use crate::distribution::{Distributions, Pool};
use crate::error::ReplayError;
use crate::machine::Machine;
use crate::parameters::Parameters;
use crate::timeline::Recording;
use crate::token::Token;

/// What all ranks of a replay share.
#[derive(Debug)]
pub struct World<'t, M> {
    pub(super) machine: &'t M,
    pub(super) parameters: &'t Parameters,
    pub(super) trace: &'t Trace,
    layouts: BTreeMap<CommId, OnceLock<Layout>>,
    pub(super) tests: Looks,
    pub(super) probes: Looks,
    /// A rank of each other process of the operating system.
    elsewhere: Vec<Rank>,
    /// Whether ranks halt at the heads of iterations.
    pub(super) halts: bool,
    /// Whether ranks find out where their time goes.
    pub(super) breaks_down: bool,
    /// Where messages and waits are counted, if they are.
    pub(super) pool: Option<Pool>,
    /// Where the critical paths are that come with messages, if they are followed.
    pub(super) shelves: Option<Shelves>,
    /// What is recorded, if anything is.
    pub(super) recording: Option<Recording<'t>>,
}

/// One plus how often ranks have looked in vain since one found something. Read and written only in turns that the
/// engine has granted, and these are totally ordered; other processes of the operating system are told.
#[derive(Debug)]
pub(super) struct Looks(AtomicU64);

impl Looks {
    /// What the next look costs, in the price of a first one.
    pub(super) fn factor(&self) -> u64 {
        // Relaxed: granted turns are ordered by the engine's quiescence.
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn succeed(&self) {
        self.set(1);
    }

    pub(super) fn fail(&self) {
        self.set(self.factor() + 1);
    }

    fn set(&self, factor: u64) {
        self.0.store(factor, Ordering::Relaxed);
    }
}

impl<'t, M: Machine> World<'t, M> {
    /// Puts a trace on a machine; only ranks that it [holds](Trace::hold) can be replayed.
    pub fn new(trace: &'t Trace, machine: &'t M, parameters: &'t Parameters) -> Self {
        let looks = || Looks(AtomicU64::new(1));
        let communicators = trace.held().flat_map(|rank| trace.rank(rank).communicators());
        let layouts = communicators.map(|communicator| (communicator.id, OnceLock::new())).collect();
        let (tests, probes) = (looks(), looks());
        Self {
            machine,
            parameters,
            trace,
            layouts,
            tests,
            probes,
            elsewhere: Vec::new(),
            halts: false,
            breaks_down: false,
            pool: None,
            shelves: None,
            recording: None,
        }
    }

    /// Makes the world one of several processes of the operating system that share a replay: takes a rank of each
    /// other one that has ranks.
    pub fn beside(self, elsewhere: Vec<Rank>) -> Self {
        Self { elsewhere, ..self }
    }

    /// Has ranks halt at the heads of iterations that others like them follow, so that these can be passed over: see
    /// [`RankProcess::snapshot`].
    pub fn by_iterations(self) -> Self {
        Self { halts: true, ..self }
    }

    /// Has ranks find out where their time goes, or not: see [`Statistics::breakdown`](crate::Statistics::breakdown).
    pub fn with_breakdowns(self, breaks_down: bool) -> Self {
        Self { breaks_down, ..self }
    }

    /// Has ranks count messages and waits, if they find out [where their time goes](World::with_breakdowns).
    pub fn with_distributions(self, counts: bool) -> Self {
        Self { pool: counts.then(Pool::default), ..self }
    }

    /// Has ranks follow critical paths: see [`RankProcess::critical_path`]. Takes the ranks of this process of the operating
    /// system: all, unless there are [others](World::beside).
    ///
    /// Each rank then takes 1 kB more, 110 B for each of its requests, 300 B for each of its ports, and 90 B for each message that is
    /// under way to a port at the same time as others, their number rounded up to a power of two.
    pub fn with_critical_paths(self, of: impl Iterator<Item = Rank>) -> Self {
        Self { shelves: Some(Shelves::new(of, self.trace)), ..self }
    }

    /// Has ranks record what they do, for a timeline. Waits are recorded if ranks find out [where their time
    /// goes](World::with_breakdowns).
    ///
    /// A rank that is passed over for some iterations ([`RankProcess::repeat`]) records nothing of them, and what a rank has
    /// recorded is not part of its [state](RankProcess::save).
    pub fn with_recording(self, recording: Option<Recording<'t>>) -> Self {
        Self { recording, ..self }
    }

    /// Returns how the messages and the waits of all ranks are distributed that have ended, where that was asked for.
    pub fn distributions(&self) -> Option<Distributions> {
        self.pool.as_ref().map(Pool::distributions)
    }

    /// Returns how many tokens have brought [critical paths](World::with_critical_paths) to [other processes](World::beside).
    pub fn tokens_of_paths(&self) -> u64 {
        self.shelves.as_ref().map_or(0, Shelves::pieces)
    }

    /// Returns what the next test and the next probe cost, in the price of a first one: all of the state of a replay that is not
    /// in that of a rank.
    pub fn looks(&self) -> (u64, u64) {
        (self.tests.factor(), self.probes.factor())
    }

    /// Takes over what looks have changed in another process, or before a checkpoint.
    pub fn set_looks(&self, tests: u64, probes: u64) {
        self.tests.set(tests);
        self.probes.set(probes);
    }

    /// Tells other processes what looks have changed here, before the next look is granted: that happens at a global
    /// quiescence, when no token is under way.
    pub(super) fn tell_looks<O: Copy>(&self, before: (u64, u64), outbox: &mut Outbox<Token, O>) {
        let (tests, probes) = self.looks();
        if (tests, probes) != before {
            self.elsewhere.iter().for_each(|&rank| outbox.send(rank, Token::Looks { tests, probes }));
        }
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
        self.processes_of((0..self.trace.ranks()).map(Rank::new))
    }

    /// Makes the processes of some ranks, in this order.
    ///
    /// # Errors
    /// Where one of them has no path from a rank that sends to it.
    pub fn processes_of(
        &'t self,
        ranks: impl Iterator<Item = Rank>,
    ) -> Result<Vec<RankProcess<'t, M>>, Box<ReplayError<M::Error>>> {
        ranks.map(|rank| RankProcess::new(self, rank)).collect()
    }

    /// Makes the process of a rank that goes on from a [state](RankProcess::save).
    ///
    /// # Errors
    /// Where it has no path from a rank that sends to it, and where the state is none of the rank.
    pub fn process_in(
        &'t self,
        rank: Rank,
        state: RankState,
    ) -> Result<RankProcess<'t, M>, RestoreError<M::Error>>
    where
        M: Machine<Order = Infallible>,
    {
        let mut process = RankProcess::new(self, rank)?;
        process.take_up(state)?;
        Ok(process)
    }
}
