//! A replay: the state that all ranks of a process of the operating system share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use elsa::sync::FrozenBTreeMap;
use pdes_core::{ForeignState, LpId, Rank, SimTime, load_state};
use trace_mmap::{CommId, Communicator, Trace};

use crate::collective::Layout;
use crate::context::{RankOutbox, lp_of};
use crate::error::{ReplayError, RestoreError};
use crate::launcher::Launcher;
use crate::machine::Machine;
use crate::observer::{Analyses, Analysis};
use crate::parameters::Parameters;
use crate::rank::RankProcess;
use crate::rank::file::CollectiveAccesses;
use crate::rank::launch::Launched;
use crate::source::ActionSources;
use crate::token::Token;

/// A replay: a trace on a machine with the parameters of an MPI library, and the options of the analysis.
///
/// It makes the processes of ranks and is shared by them.
#[derive(Debug)]
pub struct Replay<'t, M, A = Analyses<'t>> {
    pub(crate) machine: &'t M,
    pub(crate) parameters: &'t Parameters,
    pub(crate) trace: &'t Trace,
    layouts: BTreeMap<CommId, OnceLock<Layout>>,
    /// Layouts of communicators that programs make while they run.
    added_layouts: FrozenBTreeMap<CommId, Box<Layout>>,
    /// Programs of the ranks whose traces grow.
    pub(crate) sources: Option<Arc<dyn ActionSources>>,
    pub(crate) tests: FailedPolls,
    pub(crate) probes: FailedPolls,
    /// Logical process of rank 0; those of the other ranks follow.
    pub(crate) first_lp: LpId,
    /// Instant at which the program starts, unless a launcher starts it.
    start: SimTime,
    /// Launcher that starts the program during the run, and the number of the program there.
    launcher: Option<(&'t dyn Launcher, usize)>,
    /// One rank of each other process of the operating system.
    other_processes: Vec<Rank>,
    /// Stops ranks at the boundaries of iterations.
    pub(crate) stops_at_iterations: bool,
    pub(crate) analysis: A,
    /// Computed on first use: it reads all ranks.
    collective_accesses: OnceLock<CollectiveAccesses>,
    /// Computed on first use: it reads the calls of all ranks.
    exclusive_locks: OnceLock<bool>,
}

/// Processes of some ranks.
type Processes<'t, M, A> = Result<Vec<RankProcess<'t, M, A>>, Box<ReplayError<<M as Machine>::Error>>>;

/// One plus the number of failed polls of all ranks since the last successful one. Read and written only in turns that the
/// engine has granted, which are totally ordered; changes are broadcast to other processes of the operating system.
#[derive(Debug)]
pub(crate) struct FailedPolls(AtomicU64);

impl FailedPolls {
    /// Returns the price of the next poll, as a multiple of the first.
    pub(crate) fn price_factor(&self) -> u64 {
        // Relaxed: granted turns are ordered by the engine's quiescence.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn record_success(&self) {
        self.set(1);
    }

    pub(crate) fn record_failure(&self) {
        self.set(self.price_factor() + 1);
    }

    fn set(&self, factor: u64) {
        self.0.store(factor, Ordering::Relaxed);
    }
}

impl<'t, M: Machine> Replay<'t, M> {
    /// Creates the replay of a trace on a machine. Only ranks that the trace [holds](Trace::load_ranks) can be replayed.
    pub fn new(trace: &'t Trace, machine: &'t M, parameters: &'t Parameters) -> Self {
        Self::with_only(trace, machine, parameters, Analyses::default())
    }
}

impl<'t, M: Machine, A: Analysis> Replay<'t, M, A> {
    /// Creates the replay of a trace with this analysis and none of those that come with this crate. With `()`, ranks have
    /// [statistics](RankProcess::statistics) only.
    pub fn with_only(trace: &'t Trace, machine: &'t M, parameters: &'t Parameters, analysis: A) -> Self {
        let no_polls = || FailedPolls(AtomicU64::new(1));
        let communicators = trace.loaded_ranks().flat_map(|rank| trace.rank(rank).communicators());
        let layouts = communicators.map(|communicator| (communicator.id, OnceLock::new())).collect();
        let (tests, probes) = (no_polls(), no_polls());
        Self {
            machine,
            parameters,
            trace,
            layouts,
            added_layouts: FrozenBTreeMap::default(),
            sources: None,
            tests,
            probes,
            first_lp: LpId::new(0),
            start: SimTime::ZERO,
            launcher: None,
            other_processes: Vec::new(),
            stops_at_iterations: false,
            analysis,
            collective_accesses: OnceLock::new(),
            exclusive_locks: OnceLock::new(),
        }
    }

    /// Adds an analysis.
    pub fn with_analysis<B: Analysis>(self, other: B) -> Replay<'t, M, (A, B)> {
        let Self {
            machine,
            parameters,
            trace,
            layouts,
            added_layouts,
            sources,
            tests,
            probes,
            first_lp,
            start,
            launcher,
            other_processes,
            stops_at_iterations,
            analysis,
            collective_accesses,
            exclusive_locks,
        } = self;
        Replay {
            machine,
            parameters,
            trace,
            layouts,
            added_layouts,
            sources,
            tests,
            probes,
            first_lp,
            start,
            launcher,
            other_processes,
            stops_at_iterations,
            analysis: (analysis, other),
            collective_accesses,
            exclusive_locks,
        }
    }

    /// Returns the analysis, which all ranks share.
    pub fn analysis(&self) -> &A {
        &self.analysis
    }

    /// Makes the program one of several in a run: the logical process of its rank 0 has this number.
    pub fn with_first_lp(self, first_lp: LpId) -> Self {
        Self { first_lp, ..self }
    }

    /// Starts the program at an instant, until which its ranks sleep.
    pub fn starting_at(self, start: SimTime) -> Self {
        Self { start, ..self }
    }

    /// Lets a launcher start the program during the run; it knows the program by this number. Until then the machine may place its ranks
    /// anywhere.
    pub fn with_launcher(self, launcher: &'t dyn Launcher, program: usize) -> Self {
        Self { launcher: Some((launcher, program)), ..self }
    }

    /// Returns the instant at which the program starts, as far as it is known.
    pub(crate) fn start(&self) -> SimTime {
        let of_launcher = |(launcher, program): (&dyn Launcher, usize)| launcher.start(program);
        self.launcher.map_or(self.start, |launcher| of_launcher(launcher).unwrap_or(SimTime::ZERO))
    }

    /// Returns whether the ranks of the program are on their hosts.
    pub(crate) fn is_placed(&self) -> bool {
        self.launcher.is_none_or(|(launcher, program)| launcher.start(program).is_some())
    }

    /// Returns the progress of a rank of a program that a launcher starts.
    pub(crate) fn launched(&self, me: Rank) -> Option<Launched<'t>> {
        let (launcher, program) = self.launcher?;
        Some(Launched::new(launcher, program, self.trace.ranks(), me == Rank::new(0)))
    }

    /// Returns the logical process of a rank.
    #[inline]
    pub fn lp(&self, rank: Rank) -> LpId {
        lp_of(self.first_lp, rank)
    }

    /// Takes the actions of ranks whose traces [grow](trace_mmap::RankTrace::grows) from these sources.
    pub fn with_sources(self, sources: Arc<dyn ActionSources>) -> Self {
        Self { sources: Some(sources), ..self }
    }

    /// Returns whether receives take messages that are longer than they have room for.
    pub(crate) fn truncates(&self) -> bool {
        self.sources.as_ref().is_some_and(|sources| sources.truncates())
    }

    /// Makes this process of the operating system one of several that share the replay; takes one rank of each other process that
    /// has ranks.
    pub fn with_other_processes(self, other_processes: Vec<Rank>) -> Self {
        Self { other_processes, ..self }
    }

    /// Stops ranks at the boundaries of iterations that similar ones follow, so that these can be fast-forwarded.
    pub fn stopping_at_iterations(self) -> Self {
        Self { stops_at_iterations: true, ..self }
    }

    /// Returns the price of the next test and of the next probe, as multiples of the first: the only state of a replay outside its
    /// ranks.
    pub fn poll_prices(&self) -> (u64, u64) {
        (self.tests.price_factor(), self.probes.price_factor())
    }

    /// Sets the prices of polls to those of another process, or of a checkpoint.
    pub fn set_poll_prices(&self, tests: u64, probes: u64) {
        self.tests.set(tests);
        self.probes.set(probes);
    }

    /// Broadcasts changed prices of polls to other processes. They arrive before the next poll is granted: that happens at global
    /// quiescence, when no token is in transit.
    pub(crate) fn broadcast_poll_prices(&self, before: (u64, u64), outbox: &mut RankOutbox<'_, M>) {
        let (tests, probes) = self.poll_prices();
        if (tests, probes) != before {
            self.other_processes
                .iter()
                .for_each(|&rank| outbox.send(rank, Token::FailedPolls { tests, probes }));
        }
    }

    /// Returns the collective accesses to files of all ranks.
    pub(crate) fn collective_accesses(&self) -> &CollectiveAccesses {
        self.collective_accesses.get_or_init(|| CollectiveAccesses::of(self.trace))
    }

    /// Returns whether some rank locks the memory of another one for itself alone.
    pub(crate) fn has_exclusive_locks(&self) -> bool {
        *self.exclusive_locks.get_or_init(|| self.trace.has_exclusive_locks())
    }

    /// Returns the layout of a communicator on nodes, computed once.
    pub(crate) fn layout(&self, communicator: &Communicator) -> &Layout {
        let new = || {
            let nodes: Vec<u32> = communicator.group.members().map(|rank| self.machine.node(rank)).collect();
            Layout::new(&nodes)
        };
        if let Some(layout) = self.layouts.get(&communicator.id) {
            return layout.get_or_init(new);
        }
        let added = self.added_layouts.get(&communicator.id);
        added.unwrap_or_else(|| self.added_layouts.insert(communicator.id, Box::new(new())))
    }

    /// Returns the processes of all ranks, in their order.
    ///
    /// # Errors
    /// Two ranks that the trace connects have no route.
    pub fn processes(&'t self) -> Processes<'t, M, A> {
        self.processes_of((0..self.trace.ranks()).map(Rank::new))
    }

    /// Returns the processes of some ranks, in this order.
    ///
    /// # Errors
    /// One of them has no route from a rank that sends to it.
    pub fn processes_of(&'t self, ranks: impl Iterator<Item = Rank>) -> Processes<'t, M, A> {
        ranks.map(|rank| self.process(rank)).collect()
    }

    /// Returns the process of a rank.
    ///
    /// # Errors
    /// It has no route from a rank that sends to it.
    pub fn process(&'t self, rank: Rank) -> Result<RankProcess<'t, M, A>, Box<ReplayError<M::Error>>> {
        RankProcess::new(self, rank)
    }

    /// Returns the process of a rank that continues from a [saved](pdes_core::save_state) state.
    ///
    /// # Errors
    /// The rank has no route from a rank that sends to it, or the state is not one of this rank.
    pub fn restore_process(
        &'t self,
        rank: Rank,
        state: &[u8],
    ) -> Result<RankProcess<'t, M, A>, RestoreError<M::Error>> {
        let mut process = RankProcess::new(self, rank)?;
        match load_state(&mut process, state) {
            Ok(()) => Ok(process),
            Err(ForeignState) => Err(RestoreError::Foreign { rank, actions: process.actions() }),
        }
    }
}
