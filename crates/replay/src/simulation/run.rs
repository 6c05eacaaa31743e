//! Replays on the processes of a cluster; one process is a cluster of one.

use std::time::Instant;

use mpi_model::{Completion, Machine, RankProcess, Replay, ReplayError};
use netmodel::epoch::EpochMachine;
use netmodel::{ContentionFree, NetworkModel, RouteError, UncontendedNetwork, WindowMachine};
use pdes_core::{
    Cluster, Ending, ExchangeCounts, Fault, LpId, Partition, Process, Progress, Rank, RegionBlocks,
    RegionIndex, RegionalEngine, RegionalTiming, Run, SimDuration, UnorderedConditional,
};
use timeline::Spool;
use trace_mmap::{NoteKind, TraceError};

use super::ordered::OrderedReplay;
use super::outcome::{RankResults, agree, gather, peak_rss_bytes, sum};
use super::{Outcome, ProgramOutcome, RunError, ServerUse, Simulation, rank_of};
use crate::checkpoint::{CheckpointPlan, FreeRunning, run_to_end};
use crate::contention::{EpochPlan, SharedMachine, WindowPlan};
use crate::contention_free::ContentionFreeMachine;
use crate::deadlock::Deadlock;
use crate::execution::{ExecutionMode, Feature};
use crate::fast_forward::{ForwardedRun, run_forwarded};
use crate::partition::{PartitionSource, RankAssignment};
use crate::region_adapter::{InRegions, Part, RegionAdapter};
use crate::storage::{FileRules, StorageResources};

type Failure = Box<ReplayError<RouteError>>;

/// The regions of a replay, and how they are run.
#[derive(Clone, Copy)]
struct RegionalSources<'r> {
    engine: &'r RegionalEngine,
    blocks: &'r RegionBlocks,
    /// Region of each host.
    hosts: &'r [RegionIndex],
    checkpoints: Option<&'r CheckpointPlan>,
    /// Skips iterations that repeat.
    forwards: bool,
    /// Length of epochs or windows.
    span: SimDuration,
}

/// The result of a replay on regions.
struct RegionalReplay<'r, N> {
    outcome: Option<Outcome>,
    regions: Vec<RegionAdapter<'r, N>>,
    exchange_counts: ExchangeCounts,
    timing: Option<RegionalTiming>,
}

/// The run of a machine's ranks on one process of a cluster: a failure carries its error on the process that has it only.
pub(crate) type MemberRun<'t, M> = Run<RankProcess<'t, M>, Option<Failure>>;

impl Simulation {
    /// Replays the trace on the platform, on this process alone.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn replay(&self, progress: &Progress) -> Result<Outcome, RunError> {
        let outcome = self.run(&mut Cluster::alone(), progress)?;
        Ok(outcome.expect("the first process gets the outcome"))
    }

    /// Replays the trace on the platform, on all processes of a cluster. The first process gets the outcome.
    ///
    /// The outcome is the same for any number of processes and of threads, and any bound on run-ahead. With contention each process
    /// runs its own regions. The first process does all the work, on one thread, if rates change at every event, or if a rank
    /// depends on the global event order; it does all if there is only one region.
    ///
    /// # Errors
    /// Returns an error if the program is wrong: a deadlock, a message longer than its receive, ranks in different collectives. One
    /// of the processes has the error, the others have [`RunError::OtherProcess`].
    pub fn run(&self, cluster: &mut Cluster, progress: &Progress) -> Result<Option<Outcome>, RunError> {
        let started = Instant::now();
        let provenance = self.trace.provenance();
        if provenance.is_deadlocked {
            let calls = provenance.notes_of(NoteKind::CallInProgress).cloned().collect();
            let own = if cluster.member() == 0 { Err(RunError::RecordedDeadlock(calls)) } else { Ok(()) };
            agree(cluster, own)?;
        }
        let execution = self.execution(cluster.members());
        let outcome = if execution.obstacle(Feature::Processes).is_some() {
            self.run_on_first(cluster, |simulation| simulation.replay(progress))?
        } else {
            match execution.mode {
                ExecutionMode::Uncontended => self.run_uncontended(cluster, progress)?,
                ExecutionMode::InTimeOrder => Some(self.run_in_order(started, progress)?),
                ExecutionMode::Windows(window) => Some(self.run_exactly(window, started, progress)?),
                ExecutionMode::Epochs | ExecutionMode::Regions => {
                    self.run_by_regions(cluster, started, progress)?
                }
                ExecutionMode::Schedule => unreachable!("a job is for traces"),
            }
        };
        let peaks = cluster.gather(peak_rss_bytes())?;
        let (processes, peak_rss_bytes) = (cluster.members() as u32, peaks.into_iter().flatten().max());
        Ok(outcome.map(|outcome| Outcome { processes, peak_rss_bytes, ..outcome }))
    }

    /// Runs a replay of all ranks on the first process, which loads the ranks of the others.
    fn run_on_first(
        &self,
        cluster: &mut Cluster,
        replay: impl FnOnce(&Self) -> Result<Outcome, RunError>,
    ) -> Result<Option<Outcome>, RunError> {
        let own = (cluster.member() == 0).then(|| {
            let holds_all = self.region_blocks.is_none() || self.trace.is_in_memory();
            if holds_all {
                replay(self)
            } else {
                replay(&Self::load(&self.job)?.with_stop(self.stop.clone()))
            }
        });
        agree(cluster, own.transpose())
    }

    /// Replays with exact contention in windows; in time order if that cannot be done, or takes longer.
    fn run_exactly(
        &self,
        window: SimDuration,
        started: Instant,
        progress: &Progress,
    ) -> Result<Outcome, RunError> {
        let plan = self.window_plan(window, self.job.threads);
        // Tests that perturb the schedule are for windows.
        let (engine, is_on_trial) = (self.regional_engine(), self.jitter.is_none());
        let mut checkpoints = self.job.checkpoints.as_ref();
        let in_windows = self.forwarding(&mut Cluster::alone(), progress, |_, forwards| {
            self.run_windows(&plan, &engine, (checkpoints.take(), forwards), is_on_trial, progress)
        })?;
        match in_windows {
            Some((outcome, _)) => Ok(outcome),
            None => self.run_in_order(started, progress),
        }
    }

    /// Replays region by region; on the first process in time order if a rank depends on the global event order.
    fn run_by_regions(
        &self,
        cluster: &mut Cluster,
        started: Instant,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let blocks = match &self.region_blocks {
            Some(blocks) => blocks.clone(),
            None => agree(cluster, self.partition_regions(&vec![true; cluster.members()]))?,
        };
        let (mut checkpoints, engine) = (self.job.checkpoints.as_ref(), self.regional_engine());
        let done = self.forwarding(cluster, progress, |cluster, forwards| {
            self.run_regions(cluster, &engine, &blocks, (checkpoints.take(), forwards), progress)
        });
        match done {
            Err(error @ (RunError::Unordered(_) | RunError::InTimeOrder)) => {
                if let RunError::Unordered(unordered) = error {
                    self.warn_sequential(unordered);
                }
                progress.continue_after(0);
                self.run_on_first(cluster, |simulation| simulation.run_in_order(started, progress))
            }
            done => Ok(done?.0),
        }
    }

    /// Replays on one thread, in time order.
    fn run_in_order(&self, started: Instant, progress: &Progress) -> Result<Outcome, RunError> {
        let mut checkpoints = self.job.checkpoints.as_ref();
        self.forwarding(&mut Cluster::alone(), progress, |_, forwards| {
            let checkpoints = checkpoints.take();
            let replay = OrderedReplay { simulation: self, started, progress, forwards, checkpoints };
            (self.network().replay)(replay)
        })
    }

    /// Replays by regions or with contention, and skips iterations if this was requested and no rank fails.
    fn forwarding<T>(
        &self,
        cluster: &mut Cluster,
        progress: &Progress,
        mut replay: impl FnMut(&mut Cluster, bool) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let forwards = self.fast_forwards();
        let done = replay(cluster, forwards);
        let has_failed = matches!(done, Err(RunError::Replay { .. } | RunError::Deadlock(_)));
        if forwards && sum(cluster, has_failed.into())? > 0 {
            // Only a replay of all tells the index of an action before which iterations were to be skipped.
            progress.continue_after(0);
            return replay(cluster, false);
        }
        done
    }

    /// Replays the ranks of this process without contention.
    fn run_uncontended(
        &self,
        cluster: &mut Cluster,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let started = Instant::now();
        let model = ContentionFree::new(&self.job.network);
        let machine = ContentionFreeMachine::new(&self.platform, &self.placement, model);
        let (me, members, ranks) = (cluster.member(), cluster.members(), self.trace.ranks());
        let RankAssignment { partition, cuts } = match &self.rank_assignment {
            Some(assignment) => assignment.clone(),
            None => self.assign_ranks(cluster, &vec![true; cluster.members()])?,
        };
        let engine = self.engine(partition);
        let mine: Vec<Rank> = engine.lps(me, members, ranks).into_iter().map(rank_of).collect();
        let mut checkpoints = self.job.checkpoints.as_ref();
        let others = (0..members).filter(|&member| member != me);
        let elsewhere = others.filter_map(|other| engine.lps(other, members, ranks).first().copied());
        let elsewhere: Vec<Rank> = elsewhere.map(rank_of).collect();
        let mut free = FreeRunning { engine, ranks };
        if self.fast_forwards() {
            let world = self.world(&machine, &mine, None).with_other_processes(elsewhere.clone());
            let world = world.stopping_at_iterations();
            let (checkpoints, sources) = (checkpoints.take(), (&world, None, &*mine));
            let done = run_forwarded(self, cluster, checkpoints, true, &mut free, sources, progress)?;
            let ForwardedRun { run, checkpoints, fast_forward } = done;
            if !matches!(run.ending, Ending::Failed(..)) {
                let outcome = self.collect(cluster, started, (&world, None, mine), run)?;
                return Ok(outcome.map(|outcome| Outcome { cuts, fast_forward, checkpoints, ..outcome }));
            }
            // A rank failed. Only a run without stops at iteration boundaries finds the first failure in time order: replay all.
            progress.continue_after(0);
        }
        let spool = self.spool();
        let world = self.world(&machine, &mine, spool.as_ref()).with_other_processes(elsewhere);
        let sources = (&world, spool.as_ref(), &*mine);
        let (run, checkpoints) = run_to_end(self, cluster, checkpoints, &mut free, sources, progress)?;
        let outcome = self.collect(cluster, started, (&world, spool.as_ref(), mine), run)?;
        Ok(outcome.map(|outcome| Outcome { cuts, checkpoints, ..outcome }))
    }

    /// Replays the regions of this process, and the ranks on their hosts.
    pub(crate) fn run_regions(
        &self,
        cluster: &mut Cluster,
        engine: &RegionalEngine,
        blocks: &RegionBlocks,
        (checkpoints, forwards): (Option<&CheckpointPlan>, bool),
        progress: &Progress,
    ) -> Result<(Option<Outcome>, Option<RegionalTiming>), RunError> {
        let EpochPlan { regions, hosts, epoch } = self.regions.as_ref().expect("regions have a plan");
        let machine = SharedMachine::new(&self.platform, &self.placement, &self.job.network);
        let (platform, parameters) = (&self.platform, &self.job.network);
        let sources = RegionalSources { engine, blocks, hosts, checkpoints, forwards, span: *epoch };
        if self.epochs().is_none() {
            let region =
                |index| UncontendedNetwork::new(platform, parameters).of_region(index, hosts, *epoch);
            let own = blocks.regions(cluster.member()).map(region).collect();
            let done = self.run_on_regions(cluster, (&machine, own), sources, progress)?;
            return Ok((done.outcome, done.timing));
        }
        let machine = machine.with_compute_run_ahead(self.trace.ranks());
        let epoch_machine = EpochMachine::new(platform, parameters, regions.clone(), *epoch);
        let epoch_machine =
            agree(cluster, epoch_machine.map_err(RunError::from))?.with_link_loads(self.records_links());
        let numbers = blocks.regions(cluster.member());
        let own = epoch_machine.make_regions(numbers.clone());
        let done = self.run_on_regions(cluster, (&machine, own), sources, progress)?;
        let RegionalReplay { outcome, mut regions, exchange_counts, timing } = done;
        let summary = RegionAdapter::summary(&regions, exchange_counts);
        let epochs = gather(cluster, Some(summary))?;
        let links = if self.records_links() {
            let end = cluster.broadcast(outcome.as_ref().map(Outcome::simulated_time))?;
            let own = regions.iter_mut().map(RegionAdapter::network);
            let own = epoch_machine.link_totals(numbers, own, end);
            let totals = cluster.gather(own)?.into_iter().flatten().collect();
            Some(epoch_machine.combine_link_totals(totals, end).ok_or(RunError::ProcessMismatch)?)
        } else {
            None
        };
        Ok((outcome.map(|outcome| Outcome { epochs, links, ..outcome }), timing))
    }

    /// Replays the ranks on the hosts of some regions of a network.
    fn run_on_regions<'r, 'm, N>(
        &'r self,
        cluster: &mut Cluster,
        (machine, own): (&'r SharedMachine<'m>, Vec<N>),
        sources: RegionalSources<'r>,
        progress: &Progress,
    ) -> Result<RegionalReplay<'r, N>, RunError>
    where
        N: NetworkModel<Completion> + Send,
    {
        let started = Instant::now();
        let RegionalSources { engine, blocks, hosts, checkpoints, forwards, span } = sources;
        let me = cluster.member();
        let spool = self.spool();
        let mine: Vec<Rank> = blocks.lps(me).map(rank_of).collect();
        let others = (0..blocks.members()).filter(|&member| member != me);
        let elsewhere = others.filter_map(|other| blocks.lps(other).next());
        let world =
            self.world(machine, &mine, spool.as_ref()).with_other_processes(elsewhere.map(rank_of).collect());
        let world = if forwards { world.stopping_at_iterations() } else { world };
        let rules = self.file_rules();
        let lp_regions = blocks.region_of_lp();
        let adapter = |(index, network)| {
            let part = Some(Part { index, hosts, lp_regions });
            RegionAdapter::new(network, self.region_storage(&rules, part), self.placement.hosts(), part)
        };
        let adapters = blocks.regions(me).zip(own).map(adapter).collect();
        let mut regions = InRegions::new(engine.clone(), span, blocks, adapters, &world);
        let sources = (&world, spool.as_ref(), &*mine);
        let done = run_forwarded(self, cluster, checkpoints, forwards, &mut regions, sources, progress)?;
        let ForwardedRun { run, checkpoints, fast_forward } = done;
        let exchange_counts = regions.exchange_counts(cluster)?;
        let (regions, timing) = regions.into_parts();
        let own = regions.iter().flat_map(RegionAdapter::server_use).collect();
        let file_servers = self.gather_server_use(cluster, own, spool.as_ref())?;
        let outcome = self.collect(cluster, started, (&world, spool.as_ref(), mine), run)?;
        let outcome = outcome.map(|outcome| Outcome { file_servers, checkpoints, fast_forward, ..outcome });
        Ok(RegionalReplay { outcome, regions, exchange_counts, timing })
    }

    /// Replays with exact contention on several threads. Returns `None`, and warns, if that cannot be done, or, on trial, if it takes
    /// longer than one thread does. Skips iterations that repeat if `forwards` is true.
    pub(crate) fn run_windows(
        &self,
        plan: &WindowPlan,
        engine: &RegionalEngine,
        (checkpoints, forwards): (Option<&CheckpointPlan>, bool),
        is_on_trial: bool,
        progress: &Progress,
    ) -> Result<Option<(Outcome, Option<RegionalTiming>)>, RunError> {
        let machine = SharedMachine::new(&self.platform, &self.placement, &self.job.network);
        let homes = self.placement.regions(&plan.hosts, self.trace.ranks());
        let blocks = RegionBlocks::new(homes, plan.regions, 1);
        let (platform, parameters) = (&self.platform, &self.job.network);
        let regions = (&*plan.hosts, plan.regions);
        let windows = WindowMachine::new(platform, parameters, plan.window, regions, self.records_links());
        let windows = if is_on_trial { windows.on_trial() } else { windows };
        let hosts = &*plan.hosts;
        let span = windows.window();
        let sources = RegionalSources { engine, blocks: &blocks, hosts, checkpoints, forwards, span };
        let alone = &mut Cluster::alone();
        let done = match self.run_on_regions(alone, (&machine, windows.make_regions()), sources, progress) {
            Ok(done) => done,
            Err(RunError::Unordered(unordered)) => {
                if windows.is_futile() {
                    tracing::warn!(
                        "messages share links with nearly all others, or are few: one thread is faster than {}",
                        self.job.threads
                    );
                } else {
                    self.warn_sequential(unordered);
                }
                progress.continue_after(0);
                return Ok(None);
            }
            // It was written by a run in which windows had failed.
            Err(RunError::InTimeOrder) => return Ok(None),
            Err(error) => return Err(error),
        };
        let RegionalReplay { outcome, mut regions, timing, .. } = done;
        let outcome = outcome.expect("the first process gets the outcome");
        let regions = regions.iter_mut().map(|region| &*region.network());
        let links = windows.link_loads(regions, outcome.simulated_time());
        Ok(Some((Outcome { links, ..outcome }, timing)))
    }

    /// Returns the storage of a region, if ranks access any.
    pub(super) fn region_storage<'a>(
        &'a self,
        rules: &FileRules,
        part: Option<Part<'a>>,
    ) -> Option<StorageResources<'a>> {
        let storage = self.uses_storage().then(|| self.platform.storage())?;
        Some(StorageResources::new(storage, rules, self.placement.hosts(), part))
    }

    /// Gathers the use of the I/O servers of all processes on the first one, in the order of their numbers, also for a timeline.
    pub(super) fn gather_server_use(
        &self,
        cluster: &mut Cluster,
        own: Vec<(u32, ServerUse)>,
        spool: Option<&Spool>,
    ) -> Result<Vec<ServerUse>, RunError> {
        let mut all: Vec<(u32, ServerUse)> = cluster.gather(own)?.into_iter().flatten().collect();
        all.sort_by_key(|(number, _)| *number);
        let all: Vec<ServerUse> = all.into_iter().map(|(_, server)| server).collect();
        if let Some((plan, spool)) = self.job.timeline.as_ref().zip(spool) {
            plan.add_servers(spool, &self.platform, &all);
        }
        Ok(all)
    }

    fn warn_sequential(&self, UnorderedConditional { lp, at }: UnorderedConditional) {
        tracing::warn!(
            "rank {lp} depends at {at} s on the global event order, which needs one thread for all regions: {} thread(s) do not help",
            self.job.threads
        );
    }

    /// Creates the world of the ranks of this process on `machine`.
    pub(super) fn world<'a, M: Machine>(
        &'a self,
        machine: &'a M,
        mine: &[Rank],
        spool: Option<&'a Spool>,
    ) -> Replay<'a, M> {
        let world = Replay::new(&self.trace, machine, &self.job.mpi)
            .with_breakdowns(self.analyses_waits())
            .with_causes(self.job().causes)
            .with_distributions(self.job.histograms)
            .with_matrix(self.job.matrix_groups)
            .with_recording(self.recording(spool));
        let world = if self.job.region_times { world.with_region_times() } else { world };
        if self.job.critical_path { world.with_critical_paths(mine.iter().copied()) } else { world }
    }

    /// Merges the results of all processes on the first one, or returns the reason why there are none. Takes the ranks of this
    /// process in the order of the processes of its run.
    pub(super) fn collect<M>(
        &self,
        cluster: &mut Cluster,
        started: Instant,
        (world, spool, mine): (&Replay<'_, M>, Option<&Spool>, Vec<Rank>),
        run: MemberRun<'_, M>,
    ) -> Result<Option<Outcome>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        // A damaged archive is detected while it is read; results computed meanwhile are invalid.
        agree(cluster, self.trace.integrity().map_err(|damage| TraceError::from(damage).into()))?;
        let findings = world.findings(&run.processes);
        let results = self.rank_results(cluster, mine, run)?;
        let replay_time = started.elapsed();
        let findings = gather(cluster, Some(findings))?.unwrap_or_default();
        let timeline = self.write_timeline(spool, cluster)?;
        let Some(results) = results else { return Ok(None) };
        let (ends, statistics) = results.in_rank_order();
        let programs = vec![ProgramOutcome { ends, statistics, findings, timeline }];
        Ok(Some(Outcome { programs, replay_time, ..Outcome::default() }))
    }

    /// Merges the results of the ranks of all processes on the first one, or returns the failure or the deadlock.
    fn rank_results<M>(
        &self,
        cluster: &mut Cluster,
        mine: Vec<Rank>,
        run: MemberRun<'_, M>,
    ) -> Result<Option<RankResults>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        match run.ending {
            Ending::Completed => {
                let ends = run.processes.iter().map(Process::clock).collect();
                // One rank at a time, so that the peak memory does not grow.
                let statistics = run.processes.into_iter().map(RankProcess::into_statistics).collect();
                gather(cluster, Some(RankResults { ranks: mine, ends, statistics }))
            }
            Ending::Failed(_, fault) => {
                let own = fault.error.map_or(Ok(()), |error| Err(self.locate(error)));
                Err(agree(cluster, own).expect_err("one of the processes has the error"))
            }
            Ending::StoppedAtCheckpoint => unreachable!("ranks that halt are run again"),
            Ending::Deadlocked(stalled) => {
                let waits = mine.into_iter().zip(&run.processes);
                let waits = waits.filter_map(|(rank, process)| Some((rank, process.wait_reason()?)));
                let waits = cluster.gather(waits.collect::<Vec<_>>())?.into_iter().flatten();
                let mut reasons = vec![None; self.trace.ranks() as usize];
                waits.for_each(|(rank, reason)| reasons[rank.index()] = Some(reason));
                let stalled: Vec<Rank> = stalled.into_iter().map(rank_of).collect();
                let find = || Deadlock {
                    advice: self.any_source_advice(),
                    ..Deadlock::find(&self.trace, &stalled, |rank| reasons[rank.index()])
                };
                let own =
                    if cluster.member() == 0 { Err(RunError::Deadlock(Box::new(find()))) } else { Ok(()) };
                Err(agree(cluster, own).expect_err("the first process has the error"))
            }
        }
    }

    /// Assigns ranks to the workers of the processes that work; the first process decides for all.
    pub(super) fn assign_ranks(
        &self,
        cluster: &mut Cluster,
        works: &[bool],
    ) -> Result<RankAssignment, RunError> {
        let threads = self.job.threads;
        let workers = works.iter().filter(|works| **works).count() * threads;
        let spread = |partition: Partition| partition.spread_over(works, threads);
        if cluster.members() == 1 || self.job.partition == PartitionSource::Blocks {
            let RankAssignment { partition, cuts } = self.job.partition.assign(&self.trace, workers)?;
            return Ok(RankAssignment { partition: spread(partition), cuts });
        }
        let own = (cluster.member() == 0).then(|| self.job.partition.assign(&self.trace, workers));
        let own = agree(cluster, own.transpose().map_err(RunError::from))?;
        let owners = own.as_ref().map(|RankAssignment { partition, .. }| {
            (0..self.trace.ranks()).map(|lp| partition.worker(LpId::new(lp)) as u32).collect::<Vec<_>>()
        });
        let owners = cluster.broadcast(owners)?;
        let cuts = own.and_then(|assignment| assignment.cuts);
        Ok(RankAssignment { partition: spread(Partition::new(&owners, workers)), cuts })
    }
}

/// Returns a run of one process as the run of a member of a cluster.
pub(crate) fn on_cluster<M: Machine<Error = RouteError>>(run: Run<RankProcess<'_, M>>) -> MemberRun<'_, M> {
    let ending = match run.ending {
        Ending::Completed => Ending::Completed,
        Ending::Failed(rank, Fault { at, order, error }) => {
            Ending::Failed(rank, Fault { at, order, error: Some(error) })
        }
        Ending::Deadlocked(ranks) => Ending::Deadlocked(ranks),
        Ending::StoppedAtCheckpoint => Ending::StoppedAtCheckpoint,
    };
    Run { processes: run.processes, ending, steps: run.steps }
}
