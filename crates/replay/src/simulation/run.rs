//! Replays on the processes of a cluster; one process is a cluster of one.

use std::time::Instant;

use mpi_model::{Findings, Machine, RankProcess, Replay, ReplayError};
use netmodel::{ContentionFree, RouteError};
use pdes_core::{
    Cluster, Ending, Fault, LpId, Partition, Process, Progress, RegionBlocks, RegionalEngine, Run, SimTime,
    UnorderedConditional,
};
use timeline::Spool;
use trace_mmap::NoteKind;

use super::ordered::OrderedReplay;
use super::outcome::{LpResults, agree, gather, peak_rss_bytes, sum};
use super::{Outcome, ProgramOutcome, RegionalOutcome, RegionalReplay, RunError, ServerUse, Simulation};
use crate::checkpoint::{CheckpointPlan, FreeRunning, run_to_end};
use crate::contention::{RegionPlan, SharedMachine};
use crate::contention_free::ContentionFreeMachine;
use crate::execution::{ExecutionMode, Feature};
use crate::fast_forward::{ForwardedRun, run_forwarded};
use crate::launches::{Launches, Start};
use crate::models::RegionalNetwork;
use crate::partition::{PartitionSource, RankAssignment};
use crate::placement::{LpHosts, Placement};
use crate::programs::Program;
use crate::region_adapter::Part;
use crate::storage::{FileRules, StorageResources};

type Failure = Box<ReplayError<RouteError>>;

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
        let provenances = self.programs.iter().map(|program| program.trace.provenance());
        if let Some(provenance) = { provenances }.find(|provenance| provenance.is_deadlocked) {
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
                ExecutionMode::Windows(window) => {
                    let plan = self.window_plan(window, self.spec.threads);
                    self.run_by_regions(cluster, &plan, started, progress)?
                }
                ExecutionMode::Epochs | ExecutionMode::Regions => {
                    self.run_by_regions(cluster, self.region_plan(), started, progress)?
                }
                ExecutionMode::Schedule => unreachable!("a run has ranks"),
            }
        };
        let peaks = cluster.gather(peak_rss_bytes())?;
        let (processes, peak_rss_bytes) = (cluster.members() as u32, peaks.into_iter().flatten().max());
        let has_rank_loads = self.spec.host_loads && !self.network().capabilities.cores;
        let outcome =
            if has_rank_loads { outcome.map(|outcome| self.with_rank_loads(outcome)) } else { outcome };
        let finished = outcome.map(|outcome| self.finish_timeline(outcome)).transpose();
        let outcome = agree(cluster, finished)?;
        Ok(outcome.map(|outcome| Outcome { processes, peak_rss_bytes, ..outcome }))
    }

    /// Runs a replay of all ranks on the first process, which loads the ranks of the others.
    fn run_on_first(
        &self,
        cluster: &mut Cluster,
        replay: impl FnOnce(&Self) -> Result<Outcome, RunError>,
    ) -> Result<Option<Outcome>, RunError> {
        let own = (cluster.member() == 0).then(|| {
            let are_in_memory = || self.programs.iter().all(|program| program.trace.is_in_memory());
            let holds_all = self.region_blocks.is_none() || are_in_memory();
            if holds_all {
                replay(self)
            } else {
                replay(&Self::load(&self.spec)?.with_stop(self.stop.clone()))
            }
        });
        agree(cluster, own.transpose())
    }

    /// Replays region by region; on the first process in time order if a rank depends on the global event order, or if that is faster.
    fn run_by_regions(
        &self,
        cluster: &mut Cluster,
        plan: &RegionPlan,
        started: Instant,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let blocks = match &self.region_blocks {
            Some(blocks) => blocks.clone(),
            None => agree(cluster, self.partition_regions(plan, &vec![true; cluster.members()]))?,
        };
        // Tests that perturb the schedule are for regions.
        let (engine, is_on_trial) = (self.regional_engine(), self.jitter.is_none());
        let mut checkpoints = self.spec.checkpoints.as_ref();
        let done = self.forwarding(cluster, progress, |cluster, forwards| {
            let (plan, checkpoints) = ((plan, &blocks), checkpoints.take());
            self.run_regions(cluster, &engine, plan, (checkpoints, forwards), is_on_trial, progress)
        });
        match done {
            Ok(RegionalOutcome { outcome, .. }) => return Ok(outcome),
            Err(RunError::Unordered(unordered)) => self.warn_sequential(unordered),
            Err(RunError::Futile) => tracing::warn!(
                "messages share links with nearly all others, or are few: one thread is faster than {}",
                self.spec.threads
            ),
            // The checkpoint was written by a run in which regions had failed.
            Err(RunError::InTimeOrder) => {}
            Err(error) => return Err(error),
        }
        self.begin_anew(progress);
        self.run_on_first(cluster, |simulation| simulation.run_in_order(started, progress))
    }

    /// Replays the regions of this process, and the ranks on their hosts, as the row of the model does it.
    pub(crate) fn run_regions(
        &self,
        cluster: &mut Cluster,
        engine: &RegionalEngine,
        (plan, blocks): (&RegionPlan, &RegionBlocks),
        (checkpoints, forwards): (Option<&CheckpointPlan>, bool),
        is_on_trial: bool,
        progress: &Progress,
    ) -> Result<RegionalOutcome, RunError> {
        let regions = self.network().regions;
        let RegionalNetwork { replay, .. } =
            regions.expect("the mode of execution was chosen because there are regions");
        let (simulation, computes_ahead) = (self, false);
        replay(RegionalReplay {
            simulation,
            cluster,
            engine,
            plan,
            blocks,
            checkpoints,
            forwards,
            is_on_trial,
            computes_ahead,
            progress,
        })
    }

    /// Replays on one thread, in time order.
    fn run_in_order(&self, started: Instant, progress: &Progress) -> Result<Outcome, RunError> {
        let mut checkpoints = self.spec.checkpoints.as_ref();
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
            self.begin_anew(progress);
            return replay(cluster, false);
        }
        done
    }

    /// Forgets what was told of a replay that did not get to its end, before another one of the same run.
    fn begin_anew(&self, progress: &Progress) {
        progress.continue_after(0);
        if let Some((_, sink)) = self.event_sink() {
            sink.begin_anew();
        }
    }

    /// Replays the ranks of this process without contention.
    fn run_uncontended(
        &self,
        cluster: &mut Cluster,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let started = Instant::now();
        let model = ContentionFree::new(&self.spec.network);
        let noise = self.spec.noise.as_deref();
        let machine = |placement| {
            ContentionFreeMachine::new(&self.platform, placement, model.clone())
                .with_noise(noise)
                .with_accelerators(self.accelerators.as_ref())
        };
        let lp_hosts = LpHosts::new(self.programs.lp_hosts());
        let launches = self.launches(&lp_hosts);
        let machines: Vec<_> = self.placements(launches.as_ref()).into_iter().map(machine).collect();
        let (me, members, lps) = (cluster.member(), cluster.members(), self.programs.lps());
        let RankAssignment { partition, cuts } = match &self.rank_assignment {
            Some(assignment) => assignment.clone(),
            None => self.assign_ranks(cluster, &vec![true; cluster.members()])?,
        };
        let engine = self.engine(partition);
        let mine = engine.lps(me, members, lps);
        let mut checkpoints = self.spec.checkpoints.as_ref();
        let others = (0..members).filter(|&member| member != me);
        let elsewhere = others.flat_map(|other| self.programs.first_lps(engine.lps(other, members, lps)));
        let elsewhere: Vec<LpId> = elsewhere.collect();
        let mut free = FreeRunning { engine, lps };
        if self.fast_forwards() {
            let worlds = self.worlds(&machines, (&mine, &elsewhere), None, true, None);
            let (checkpoints, sources) = (checkpoints.take(), (&*worlds, None, &*mine));
            let done = run_forwarded(self, cluster, checkpoints, true, &mut free, sources, progress)?;
            let ForwardedRun { run, checkpoints, fast_forward } = done;
            if !matches!(run.ending, Ending::Failed(..)) {
                let outcome = self.collect(cluster, started, (&worlds, None, mine), run)?;
                return Ok(outcome.map(|outcome| Outcome { cuts, fast_forward, checkpoints, ..outcome }));
            }
            // A rank failed. Only a run without stops at iteration boundaries finds the first failure in time order: replay all.
            self.begin_anew(progress);
        }
        let spool = self.spool();
        let worlds = self.worlds(&machines, (&mine, &elsewhere), spool.as_ref(), false, launches.as_ref());
        let sources = (&*worlds, spool.as_ref(), &*mine);
        let (run, checkpoints) = run_to_end(self, cluster, checkpoints, &mut free, sources, progress)?;
        let mut outcome = self.collect(cluster, started, (&worlds, spool.as_ref(), mine), run)?;
        if let (Some(outcome), Some(launches)) = (&mut outcome, &launches) {
            launches.complete(outcome);
        }
        Ok(outcome.map(|outcome| Outcome { cuts, checkpoints, ..outcome }))
    }

    /// Returns the storage of a region, if ranks access any.
    pub(super) fn region_storage<'a>(
        &'a self,
        rules: &FileRules,
        part: Option<Part<'a>>,
    ) -> Option<StorageResources<'a>> {
        let storage = self.uses_storage().then(|| self.platform.storage())?;
        Some(StorageResources::new(storage, rules, self.programs.lp_hosts(), part))
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
        if let Some((plan, spool)) = self.spec.timeline.as_ref().zip(spool) {
            plan.add_servers(spool, &self.platform, &all);
        }
        Ok(all)
    }

    fn warn_sequential(&self, UnorderedConditional { lp, at }: UnorderedConditional) {
        let (_, rank) = self.programs.locate(lp);
        tracing::warn!(
            "rank {rank} depends at {at} s on the global event order, which needs one thread for all regions: {} thread(s) do not help",
            self.spec.threads
        );
    }

    /// Returns the starts of programs, if they are not known before the run, or programs may die.
    pub(super) fn launches<'a>(&'a self, lp_hosts: &'a LpHosts) -> Option<Launches<'a>> {
        Launches::of(&self.programs, lp_hosts, &self.platform, &self.spec)
    }

    /// Returns the placement of each program.
    fn placements<'a>(&'a self, launches: Option<&'a Launches<'_>>) -> Vec<&'a Placement> {
        launches.map_or_else(
            || self.programs.placements().collect(),
            |launches| launches.placements().iter().collect(),
        )
    }

    /// Creates the machine of each program, with contention.
    pub(super) fn shared_machines<'a>(
        &'a self,
        launches: Option<&'a Launches<'_>>,
    ) -> Vec<SharedMachine<'a>> {
        let (parameters, noise) = (&self.spec.network, self.spec.noise.as_deref());
        let worlds = self.switch_communicators.worlds.iter();
        let machine = |(placement, &world)| {
            SharedMachine::new(&self.platform, placement, parameters)
                .with_noise(noise)
                .with_accelerators(self.accelerators.as_ref())
                .with_switch_communicators(world)
        };
        self.placements(launches).into_iter().zip(worlds).map(machine).collect()
    }

    /// Creates the replays of all programs on their machines. Takes the logical processes of this process of the operating system, and
    /// one of each program on each other one.
    pub(super) fn worlds<'a, M: Machine>(
        &'a self,
        machines: &'a [M],
        (mine, elsewhere): (&[LpId], &[LpId]),
        spool: Option<&'a Spool>,
        stops_at_iterations: bool,
        launches: Option<&'a Launches<'_>>,
    ) -> Vec<Replay<'a, M>> {
        let world = |(number, (program, machine)): (usize, (&'a Program, &'a M))| {
            // A timeline is of the first program.
            let is_first = program.first_lp == LpId::new(0);
            let world = program
                .replay(machine)
                .with_breakdowns(self.analyses_waits())
                .with_causes(self.spec().causes)
                .with_distributions(self.spec.histograms)
                .with_matrix(self.spec.matrix_groups)
                .with_recording(self.recording(spool).filter(|_| is_first))
                .with_other_processes(program.ranks_of(elsewhere).collect());
            let world = match launches {
                Some(launches) => world.with_launcher(launches, number),
                None => world,
            };
            let world = if self.records_region_times() { world.with_region_times() } else { world };
            let world = if stops_at_iterations { world.stopping_at_iterations() } else { world };
            if self.spec.critical_path { world.with_critical_paths(program.ranks_of(mine)) } else { world }
        };
        self.programs.iter().zip(machines).enumerate().map(world).collect()
    }

    /// Merges the results of all processes on the first one, or returns the reason why there are none. Takes the logical processes of this
    /// process in the order of its run.
    pub(super) fn collect<M>(
        &self,
        cluster: &mut Cluster,
        started: Instant,
        (worlds, spool, mine): (&[Replay<'_, M>], Option<&Spool>, Vec<LpId>),
        run: MemberRun<'_, M>,
    ) -> Result<Option<Outcome>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        // A damaged archive is detected while it is read.
        agree(cluster, self.programs.check_integrity())?;
        let findings = worlds.iter().zip(self.programs.iter()).map(|(world, program)| {
            let is_own = |process: &&RankProcess<'_, M>| program.has(process.lp());
            world.findings(run.processes.iter().filter(is_own))
        });
        let findings: Vec<Findings> = findings.collect();
        let results = self.lp_results(cluster, mine, run)?;
        let replay_time = started.elapsed();
        let findings = gather(cluster, Some(findings))?.unwrap_or_default();
        let open_timeline = self.write_timeline(spool, cluster)?;
        let Some(results) = results else { return Ok(None) };
        let (mut ends, mut statistics) = results.in_order();
        let mut programs = Vec::new();
        for (program, findings) in self.programs.iter().zip(findings) {
            let later = program.trace.ranks() as usize;
            let (later_ends, later_statistics) = (ends.split_off(later), statistics.split_off(later));
            let start = match program.spec.start {
                Start::At(start) => start,
                Start::After(_) | Start::Submitted(_) => SimTime::ZERO,
            };
            programs.push(ProgramOutcome {
                start,
                deaths: Vec::new(),
                placement: None,
                ends,
                statistics,
                findings,
                timeline: None,
            });
            (ends, statistics) = (later_ends, later_statistics);
        }
        Ok(Some(Outcome { programs, replay_time, open_timeline, ..Outcome::default() }))
    }

    /// Merges the results of the logical processes of all processes of the operating system on the first one, or returns the failure or the
    /// deadlock.
    fn lp_results<M>(
        &self,
        cluster: &mut Cluster,
        mine: Vec<LpId>,
        run: MemberRun<'_, M>,
    ) -> Result<Option<LpResults>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        match run.ending {
            Ending::Completed => {
                let ends = run.processes.iter().map(Process::clock).collect();
                // One rank at a time, so that the peak memory does not grow.
                let statistics = run.processes.into_iter().map(RankProcess::into_statistics).collect();
                gather(cluster, Some(LpResults { lps: mine, ends, statistics }))
            }
            Ending::Failed(lp, fault) => {
                let own = fault.error.map_or(Ok(()), |error| Err(self.locate(lp, error)));
                Err(agree(cluster, own).expect_err("one of the processes has the error"))
            }
            Ending::StoppedAtCheckpoint => unreachable!("ranks that halt are run again"),
            Ending::Deadlocked(stalled) => {
                let lps = mine.clone();
                let waits = mine.into_iter().zip(&run.processes);
                let waits = waits.filter_map(|(lp, process)| Some((lp, process.wait_reason()?)));
                let waits = cluster.gather(waits.collect::<Vec<_>>())?.into_iter().flatten().collect();
                let owners = lps.into_iter().zip(&run.processes);
                let locks = owners.flat_map(|(lp, process)| process.lock_waits().map(move |wait| (lp, wait)));
                let locks = cluster.gather(locks.collect::<Vec<_>>())?.into_iter().flatten().collect();
                let own =
                    if cluster.member() == 0 { Err(self.deadlock(&stalled, waits, locks)) } else { Ok(()) };
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
        let threads = self.spec.threads;
        let workers = works.iter().filter(|works| **works).count() * threads;
        let spread = |partition: Partition| partition.spread_over(works, threads);
        if self.spec.partition == PartitionSource::Blocks || !self.programs.others().is_empty() {
            let partition = Partition::blocks(self.programs.lps(), workers);
            return Ok(RankAssignment { partition: spread(partition), cuts: None });
        }
        if cluster.members() == 1 {
            let RankAssignment { partition, cuts } = self.spec.partition.assign(self.trace(), workers)?;
            return Ok(RankAssignment { partition: spread(partition), cuts });
        }
        let own = (cluster.member() == 0).then(|| self.spec.partition.assign(self.trace(), workers));
        let own = agree(cluster, own.transpose().map_err(RunError::from))?;
        let owners = own.as_ref().map(|RankAssignment { partition, .. }| {
            (0..self.programs.lps()).map(|lp| partition.worker(LpId::new(lp)) as u32).collect::<Vec<_>>()
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
