//! Distributed replays, on several operating-system processes.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use ::timeline::Spool;
use mpi_model::{
    CriticalPath, Distributions, Machine, RankProcess, Replay, ReplayError, Statistics, WaitReason,
};
use netmodel::epoch::EpochSummary;
use netmodel::{ContentionFree, RouteError};
use pdes_core::{
    Cluster, Ending, ExchangeCounts, Partition, Process, Progress, Rank, RegionBlocks, RegionalRun, Run,
    SimTime, UnorderedConditional,
};
use trace_mmap::TraceError;

use crate::contention::SharedMachine;
use crate::contention_free::ContentionFreeMachine;
use crate::deadlock::Deadlock;
use crate::job::Job;
use crate::models::Execution;
use crate::partition::{PartitionSource, RankAssignment};
use crate::region_adapter::RegionAdapter;
use crate::report::peak_rss_bytes;
use crate::simulation::{Outcome, RunError, Simulation, last_critical_path, latest_path};

/// Makes all processes succeed or fail together: if one has failed, the others get [`RunError::OtherProcess`]. If several have
/// failed, the first of them keeps its error, to report it.
pub(crate) fn agree<T>(cluster: &mut Cluster, own: Result<T, RunError>) -> Result<T, RunError> {
    match cluster.first_failure(own.is_ok())? {
        Some(process) if process != cluster.member() => Err(RunError::OtherProcess { process }),
        _ => own,
    }
}

impl Simulation {
    /// Loads the inputs of a job on each process, and checks that all have the same. Each process loads only its own ranks of an
    /// archive; with contention and without regions the first process loads all.
    ///
    /// # Errors
    /// As [`load_with_progress`](Simulation::load_with_progress), on any of the processes.
    pub fn load_distributed(job: &Job, actions: &AtomicU64, cluster: &mut Cluster) -> Result<Self, RunError> {
        let mut simulation = agree(cluster, Self::open(job, actions))?;
        let own = simulation.fingerprint();
        let first = cluster.broadcast(Some(own))?;
        agree(cluster, if own == first { Ok(()) } else { Err(RunError::ProcessMismatch) })?;
        let (me, members, ranks) = (cluster.member(), cluster.members(), simulation.trace().ranks());
        let mine = if simulation.model().distributes_ranks() {
            let division = simulation.assign_ranks(cluster)?;
            let mine = simulation.engine(division.partition.clone()).ranks(me, members, ranks);
            simulation.rank_assignment = Some(division);
            mine
        } else {
            let blocks = simulation.partition_regions(members);
            simulation.region_blocks = agree(cluster, blocks)?;
            match &simulation.region_blocks {
                Some(blocks) => blocks.ranks(me).collect(),
                None => (0..ranks).filter(|_| me == 0).map(Rank::new).collect(),
            }
        };
        agree(cluster, simulation.load_ranks(mine.into_iter()))?;
        simulation.check_total_actions(cluster).map(|()| simulation)
    }

    /// Assigns the regions of the platform to `members` processes with balanced costs: the costs of an earlier replay if known, else
    /// the number of actions. Returns `None` if regions cannot be separated, or there is only one.
    fn partition_regions(&self, members: usize) -> Result<Option<RegionBlocks>, RunError> {
        let Some(plan) = self.epochs().filter(|plan| members > 1 && plan.regions() > 1) else {
            return Ok(None);
        };
        let homes = plan.homes(self.placement(), self.trace().ranks());
        let costs = match self.region_costs() {
            Some(costs) => costs.to_vec(),
            None => {
                let mut costs = vec![0_u64; plan.regions() as usize];
                for (rank, &home) in (0..).zip(&homes) {
                    let (actions, _) = self.trace().outline(Rank::new(rank)).map_err(TraceError::from)?;
                    // One more, so that a rank without actions has a cost, too.
                    costs[home as usize] = costs[home as usize].saturating_add(actions).saturating_add(1);
                }
                costs
            }
        };
        Ok(Some(RegionBlocks::with_costs(homes, &costs, members)))
    }

    /// Returns the number of processes that have regions with ranks; `None` if regions are not distributed.
    pub fn processes_of_regions(&self) -> Option<usize> {
        let blocks = self.region_blocks.as_ref()?;
        Some((0..blocks.members()).filter(|&member| blocks.ranks(member).next().is_some()).count())
    }

    /// Checks that the ranks of all processes together have as many actions as the archive says.
    fn check_total_actions(&self, cluster: &mut Cluster) -> Result<(), RunError> {
        let held = cluster.gather(self.trace().loaded_actions())?;
        let all = held.into_iter().fold(0, u64::saturating_add);
        let own = if cluster.member() == 0 { self.trace().check_actions(all) } else { Ok(()) };
        agree(cluster, own.map_err(|error| TraceError::from(error).into()))
    }

    /// Returns a hash of everything that must be the same on all processes.
    fn fingerprint(&self) -> [u8; 32] {
        let job = Job { reading_threads: 0, ..self.job().clone() };
        let trace = (self.trace().ranks(), self.trace().actions());
        let epochs = self.epochs().map(|plan| (plan.epoch(), plan.regions()));
        let costs = self.region_costs();
        let text = format!("{} {job:?} {trace:?} {epochs:?} {costs:?}", env!("CARGO_PKG_VERSION"));
        blake3::hash(text.as_bytes()).into()
    }

    /// Replays the trace on all processes of a cluster. The first process gets the outcome, which is that of
    /// [`replay`](Simulation::replay). With contention each process runs its own regions. The first process does all the work if
    /// rates change at every event, if there is only one region, or if a rank depends on the global event order.
    ///
    /// # Errors
    /// As [`replay`](Simulation::replay): one of the processes has the error, the others have [`RunError::OtherProcess`].
    pub fn replay_distributed(
        &self,
        cluster: &mut Cluster,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let blocks = match &self.region_blocks {
            Some(blocks) => Some(blocks.clone()),
            None => agree(cluster, self.partition_regions(cluster.members()))?,
        };
        let outcome = match (&self.model().execution, &blocks) {
            (Execution::Uncontended, _) => self.replay_own_ranks(cluster, progress)?,
            (_, Some(blocks)) => self.replay_regions_distributed(cluster, blocks, progress)?,
            (_, None) => {
                let own = (cluster.member() == 0).then(|| self.replay(progress)).transpose();
                agree(cluster, own)?
            }
        };
        let peaks = cluster.gather(peak_rss_bytes())?;
        let (processes, peak_rss_bytes) = (cluster.members() as u32, peaks.into_iter().flatten().max());
        Ok(outcome.map(|outcome| Outcome { processes, peak_rss_bytes, ..outcome }))
    }

    /// Replays the ranks of this process without contention.
    fn replay_own_ranks(
        &self,
        cluster: &mut Cluster,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let started = Instant::now();
        let machine = ContentionFreeMachine::new(
            self.platform(),
            self.placement(),
            ContentionFree::new(&self.job().network),
        );
        let (me, members, ranks) = (cluster.member(), cluster.members(), self.trace().ranks());
        let RankAssignment { partition, cuts } = match &self.rank_assignment {
            Some(division) => division.clone(),
            None => self.assign_ranks(cluster)?,
        };
        let engine = self.engine(partition);
        let others = (0..members).filter(|&member| member != me);
        let elsewhere = others.filter_map(|other| engine.ranks(other, members, ranks).first().copied());
        let spool = self.spool();
        let world = self
            .world(&machine)
            .with_recording(self.recording(spool.as_ref()))
            .with_other_processes(elsewhere.collect());
        let mine = engine.ranks(me, members, ranks);
        let followed = self.job().critical_path.then(|| mine.iter().copied());
        let world = match followed {
            Some(ranks) => world.with_critical_paths(ranks),
            None => world,
        };
        let processes = world.processes_of(mine.iter().copied()).map_err(|error| self.locate(error));
        let processes = agree(cluster, processes)?;
        let run = engine.run_distributed(cluster, ranks, processes, progress)?;
        let ranks_of = |member| engine.ranks(member, members, ranks);
        let outcome = self.gather_outcome(cluster, started, (&world, spool.as_ref()), ranks_of, run)?;
        Ok(outcome.map(|outcome| Outcome { cuts, ..outcome }))
    }

    /// Replays the regions of this process, and the ranks on their hosts, with contention.
    fn replay_regions_distributed(
        &self,
        cluster: &mut Cluster,
        blocks: &RegionBlocks,
        progress: &Progress,
    ) -> Result<Option<Outcome>, RunError> {
        let started = Instant::now();
        let me = cluster.member();
        let plan = self.epochs().expect("where there are regions there are epochs");
        let machine = SharedMachine::new(self.platform(), self.placement(), &self.job().network)
            .with_compute_run_ahead(self.trace().ranks());
        let spool = self.spool();
        let others = (0..blocks.members()).filter(|&member| member != me);
        let elsewhere = others.filter_map(|other| blocks.ranks(other).next());
        let world = self
            .world(&machine)
            .with_recording(self.recording(spool.as_ref()))
            .with_other_processes(elsewhere.collect());
        let world =
            if self.job().critical_path { world.with_critical_paths(blocks.ranks(me)) } else { world };
        let processes = world.processes_of(blocks.ranks(me)).map_err(|error| self.locate(error));
        let processes = agree(cluster, processes)?;
        let epoch_machine =
            agree(cluster, plan.machine(self.platform(), &self.job().network).map_err(RunError::from))?;
        let epoch_machine = epoch_machine.with_link_loads(self.records_links());
        let numbers = blocks.regions(me);
        let adapters = RegionAdapter::create_all(
            numbers.clone(),
            &epoch_machine,
            self.placement(),
            blocks.region_of_rank(),
        );
        let engine = self.regional_engine();
        let done = engine.run_distributed(cluster, plan.epoch(), processes, blocks, adapters, progress)?;
        let RegionalRun { run, mut regions, exchange_counts: crossings, .. } = match done {
            Ok(done) => done,
            Err(unordered) => {
                let own = (me == 0).then(|| self.replay_all_ranks(unordered, started, progress)).transpose();
                return agree(cluster, own);
            }
        };
        let ranks_of = |member| blocks.ranks(member).collect();
        let outcome = self.gather_outcome(cluster, started, (&world, spool.as_ref()), ranks_of, run)?;
        // A single process sends no critical paths between regions: subtract theirs, so that the counts are equal.
        let paths: u64 = cluster.gather(world.path_tokens())?.iter().sum();
        let crossings = ExchangeCounts { messages: crossings.messages.saturating_sub(paths), ..crossings };
        let epochs = gather_epochs(cluster, RegionAdapter::summary(&regions, crossings))?;
        let links = if self.records_links() {
            let end = cluster.broadcast(outcome.as_ref().map(Outcome::simulated_time))?;
            let own = RegionAdapter::link_totals(&epoch_machine, numbers, &mut regions, end);
            let totals = cluster.gather(own)?.into_iter().flatten().collect();
            Some(epoch_machine.combine_link_totals(totals, end).ok_or(RunError::ProcessMismatch)?)
        } else {
            None
        };
        Ok(outcome.map(|outcome| Outcome { epochs: Some(epochs), links, ..outcome }))
    }

    /// Replays all ranks on this process in time order, because one of them depends on the global event order.
    fn replay_all_ranks(
        &self,
        unordered: UnorderedConditional,
        started: Instant,
        progress: &Progress,
    ) -> Result<Outcome, RunError> {
        self.warn_sequential(unordered);
        progress.continue_after(0);
        if self.trace().is_in_memory() {
            return self.replay_sequential(started, progress);
        }
        Self::load(self.job())?.replay_sequential(started, progress)
    }

    /// Gathers the results of all processes on the first one.
    fn gather_outcome<M>(
        &self,
        cluster: &mut Cluster,
        started: Instant,
        (world, spool): (&Replay<'_, M>, Option<&Spool>),
        ranks_of: impl Fn(usize) -> Vec<Rank>,
        run: Run<RankProcess<'_, M>, Option<Failure>>,
    ) -> Result<Option<Outcome>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        let replay_time = started.elapsed();
        let sound = self.trace().integrity().map_err(|damage| TraceError::from(damage).into());
        agree(cluster, sound)?;
        let path = last_critical_path(&run.processes);
        let parts = self.gather_results(cluster, &ranks_of(cluster.member()), run)?;
        let distributions = gather_distributions(cluster, world.distributions())?;
        let critical_path = gather_path(cluster, path)?;
        let timeline = self.write_timeline_distributed(spool, cluster)?;
        if cluster.member() > 0 {
            return Ok(None);
        }
        let empty = Outcome::empty(self.trace().ranks(), replay_time);
        let mut outcome = Outcome { distributions, critical_path, timeline, ..empty };
        for (member, part) in parts.into_iter().enumerate() {
            for (rank, (end, statistics)) in ranks_of(member).into_iter().zip(part) {
                outcome.ends[rank.index()] = end;
                outcome.statistics[rank.index()] = statistics;
            }
        }
        Ok(Some(outcome))
    }

    /// Assigns ranks to workers; the first process decides for all.
    fn assign_ranks(&self, cluster: &mut Cluster) -> Result<RankAssignment, RunError> {
        let workers = cluster.members() * self.job().threads;
        if self.job().partition == PartitionSource::Blocks {
            return Ok(PartitionSource::Blocks.assign(self.trace(), workers)?);
        }
        let own = (cluster.member() == 0).then(|| self.job().partition.assign(self.trace(), workers));
        let own = agree(cluster, own.transpose().map_err(RunError::from))?;
        let ranks = || (0..self.trace().ranks()).map(Rank::new);
        let owners = own.as_ref().map(|RankAssignment { partition, .. }| {
            ranks().map(|rank| partition.worker(rank) as u32).collect::<Vec<_>>()
        });
        let owners = cluster.broadcast(owners)?;
        let cuts = own.and_then(|division| division.cuts);
        Ok(RankAssignment { partition: Partition::new(&owners, workers), cuts })
    }

    /// Gathers the results of all processes on the first one, or returns the reason why there are none.
    fn gather_results<M>(
        &self,
        cluster: &mut Cluster,
        mine: &[Rank],
        run: Run<RankProcess<'_, M>, Option<Failure>>,
    ) -> Result<Vec<Vec<(SimTime, Statistics)>>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        match run.ending {
            Ending::Completed => {
                let result = |process: RankProcess<'_, M>| (process.clock(), process.into_statistics());
                Ok(cluster.gather(run.processes.into_iter().map(result).collect())?)
            }
            Ending::Failed(_, fault) => {
                let own = fault.error.map_or(Ok(Vec::new()), |error| Err(self.locate(error)));
                agree(cluster, own)
            }
            Ending::StoppedAtCheckpoint => unreachable!("no rank halts on several processes"),
            Ending::Deadlocked(ranks) => {
                let waits = mine.iter().zip(&run.processes);
                let waits = waits.filter_map(|(&rank, process)| Some((rank, process.wait_reason()?)));
                let waits = cluster.gather(waits.collect::<Vec<_>>())?;
                let own = if cluster.member() == 0 {
                    Err(RunError::Deadlock(self.deadlock(&ranks, waits.into_iter().flatten())))
                } else {
                    Ok(Vec::new())
                };
                agree(cluster, own)
            }
        }
    }

    fn deadlock(&self, stalled: &[Rank], reasons: impl Iterator<Item = (Rank, WaitReason)>) -> Deadlock {
        let mut waits = vec![None; self.trace().ranks() as usize];
        reasons.for_each(|(rank, waiting)| waits[rank.index()] = Some(waiting));
        Deadlock::find(self.trace(), stalled, |rank| waits[rank.index()])
    }
}

/// Adds up the histograms of all processes on the first one.
fn gather_distributions(
    cluster: &mut Cluster,
    own: Option<Distributions>,
) -> Result<Option<Distributions>, RunError> {
    let Some(own) = own else { return Ok(None) };
    let mut all = Distributions::default();
    cluster.gather(own)?.iter().for_each(|part| all.add(part));
    Ok(Some(all))
}

/// Returns the path that ends last of all processes, on the first one.
fn gather_path(cluster: &mut Cluster, own: Option<CriticalPath>) -> Result<Option<CriticalPath>, RunError> {
    Ok(latest_path(cluster.gather(own)?.into_iter().flatten()))
}

/// Adds up the epoch statistics of all processes on the first one; the others get their own.
fn gather_epochs(cluster: &mut Cluster, own: EpochSummary) -> Result<EpochSummary, RunError> {
    let mut all = own;
    cluster.gather(own)?.iter().skip(1).for_each(|part| all.add_part(part));
    Ok(all)
}

type Failure = Box<ReplayError<RouteError>>;
