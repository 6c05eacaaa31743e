//! Replays in segments between checkpoints, on one process or on several.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

use mpi_model::{Machine, RankProcess, Replay};
use netmodel::{NetworkModel, RouteError};
use pdes_core::{
    Cluster, Ending, Engine, ForeignState, Interrupt, LpId, OrderedEngine, Progress, SimDuration, SimTime,
    State as _, StateVisitor, load_state, save_state,
};
use timeline::{SavedSpool, Spool};

use super::common_past::run_sharing;
use super::file::{self, CheckpointReader, Header};
use super::state::{ProgramStates, encode, findings};
use super::{CheckpointError, CheckpointPlan, CheckpointSummary, RunIdentity, StopHandle};
use crate::contention::SharedMachine;
use crate::fast_forward::Cuttable;
use crate::network_tag::NetworkTag;
use crate::programs::processes_of;
use crate::region_adapter::RegionAdapter;
use crate::simulation::{MemberRun, RunError, Simulation, agree, gather, on_cluster, sum};

/// A simulation that can be interrupted and continued: ranks run on an engine, perhaps with a network that has a state of its own. On
/// several processes all call the same functions.
pub(crate) trait Segmented<'t, M: Machine> {
    /// Events are simulated in the order of time.
    fn is_in_time_order(&self) -> bool {
        false
    }

    /// Runs the ranks of this process to their end, or until the interrupt.
    fn run(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, M>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, M>, RunError>;

    /// Returns the state of the network between two segments; on several processes the first one gets the whole.
    fn save(&mut self, _cluster: &mut Cluster) -> Result<Vec<u8>, RunError> {
        Ok(Vec::new())
    }

    /// Returns the number of actions that were skipped so far.
    fn skipped_actions(&self) -> u64 {
        0
    }

    /// Restores the state of the network, which is idle.
    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        if state.is_empty() { Ok(()) } else { Err(ForeignState) }
    }
}

/// Without contention the ranks are all there is.
pub(crate) struct FreeRunning {
    pub(crate) engine: Engine,
    /// Number of logical processes of all processes of the operating system.
    pub(crate) lps: u32,
}

impl<'t, M> Segmented<'t, M> for FreeRunning
where
    M: Machine<WorkRequest = Infallible, Error = RouteError>,
{
    fn run(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, M>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, M>, RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        Ok(engine.run_distributed(cluster, self.lps, processes, progress)?)
    }
}

/// The whole machine is one region: ranks and network run in the order of time.
pub(crate) struct InTimeOrder<'r, 'm, N> {
    pub(crate) engine: OrderedEngine,
    pub(crate) region: &'r mut RegionAdapter<'m, N>,
}

impl<'t, 'm, N: NetworkModel<NetworkTag> + Send> Segmented<'t, SharedMachine<'m>> for InTimeOrder<'_, 'm, N> {
    fn is_in_time_order(&self) -> bool {
        true
    }

    fn run(
        &mut self,
        _: &mut Cluster,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, SharedMachine<'m>>, RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        Ok(on_cluster(engine.run(processes, self.region, progress)))
    }

    fn save(&mut self, _: &mut Cluster) -> Result<Vec<u8>, RunError> {
        Ok(save_state(self.region).expect("a model with checkpoints can be saved"))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        load_state(self.region, state)
    }
}

impl<'t, 'm, N: NetworkModel<NetworkTag> + Send> Cuttable<'t, SharedMachine<'m>> for InTimeOrder<'_, 'm, N> {
    fn run_to_cut(
        &mut self,
        _: &mut Cluster,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        from: Option<SimTime>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(MemberRun<'t, SharedMachine<'m>>, Option<SimTime>), RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        let engine = engine.continuing_from(from.unwrap_or_default());
        let (run, cut) = engine.run_to_cut(processes, self.region, progress);
        Ok((on_cluster(run), cut))
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.region.visit(visitor);
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.region.watch_period(now, period, repetitions);
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.region.repeat_loads(now);
    }
}

/// Runs the ranks of this process to their end, in segments between checkpoints if there are any, from the last checkpoint if that is
/// requested.
pub(crate) fn run_to_end<'t, M: Machine<Error = RouteError>>(
    simulation: &Simulation,
    cluster: &mut Cluster,
    checkpoints: Option<&CheckpointPlan>,
    segmented: &mut dyn Segmented<'t, M>,
    (worlds, spool, mine): (&'t [Replay<'t, M>], Option<&Spool>, &[LpId]),
    progress: &Progress,
) -> Result<(MemberRun<'t, M>, Option<CheckpointSummary>), RunError> {
    if let Some(sharing) = simulation.past() {
        let sources = (worlds, mine);
        let run = run_sharing(simulation, cluster, sharing, segmented, sources, progress)?;
        return Ok((run, None));
    }
    let Some(plan) = checkpoints else {
        let processes = processes_of(worlds, mine).map_err(|(lp, error)| simulation.locate(lp, error));
        let processes = agree(cluster, processes)?;
        return Ok((segmented.run(cluster, processes, &Interrupt::default(), progress)?, None));
    };
    let identity = agree(cluster, RunIdentity::of(simulation))?;
    let summary = CheckpointSummary::default();
    let mut segments =
        CheckpointSegments { simulation, plan, segmented, worlds, spool, mine, progress, identity, summary };
    let run = segments.run_guarded(cluster)?;
    Ok((run, Some(segments.summary)))
}

/// A replay in segments between checkpoints.
struct CheckpointSegments<'r, 't, M: Machine> {
    simulation: &'r Simulation,
    plan: &'r CheckpointPlan,
    segmented: &'r mut dyn Segmented<'t, M>,
    worlds: &'t [Replay<'t, M>],
    /// Events of the timeline, if there is one.
    spool: Option<&'r Spool>,
    /// Logical processes of this process of the operating system.
    mine: &'r [LpId],
    progress: &'r Progress,
    identity: RunIdentity,
    summary: CheckpointSummary,
}

impl<'t, M: Machine<Error = RouteError>> CheckpointSegments<'_, 't, M> {
    /// Runs all segments. A forged state may pass all checks and break a law later: that is an error of the file, not of the run.
    fn run_guarded(&mut self, cluster: &mut Cluster) -> Result<MemberRun<'t, M>, RunError> {
        match catch_unwind(AssertUnwindSafe(|| self.run(cluster))) {
            Ok(run) => run,
            Err(panic) if self.summary.resumed_from.is_some() => {
                let message = panic.downcast::<String>().map(|message| *message);
                let message =
                    message.or_else(|panic| panic.downcast::<&str>().map(|text| (*text).to_owned()));
                let what = message.unwrap_or_else(|_| "a panic".to_owned());
                Err(CheckpointError::BrokenLaw { path: self.plan.path(), what }.into())
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    fn run(&mut self, cluster: &mut Cluster) -> Result<MemberRun<'t, M>, RunError> {
        let is_first = cluster.member() == 0;
        let opened = self.plan.open(&self.identity, is_first).map_err(RunError::from);
        let mut opened = agree(cluster, opened)?;
        let in_time_order = self.segmented.is_in_time_order();
        match opened.as_ref().map(|opened| opened.header().in_time_order) {
            Some(true) if !in_time_order => return Err(RunError::InTimeOrder),
            // Regions were tried before, until a rank depended on the order of time.
            Some(false) if in_time_order => opened = None,
            _ => {}
        }
        let found = opened.as_ref().map(|opened| opened.header().actions);
        let is_common = cluster.broadcast(is_first.then_some(found))? == found;
        let processes = match opened {
            _ if !is_common => Err(CheckpointError::NotShared { path: self.plan.path() }.into()),
            Some(opened) => self.restore(opened, (cluster.member(), cluster.members())),
            None => {
                let processes = processes_of(self.worlds, self.mine);
                processes.map_err(|(lp, error)| self.simulation.locate(lp, error))
            }
        };
        let mut processes = agree(cluster, processes)?;
        let started = Instant::now();
        loop {
            let run = self.run_segment(cluster, processes)?;
            if !matches!(run.ending, Ending::StoppedAtCheckpoint) {
                return Ok(run);
            }
            processes = run.processes;
            // The state computed from a damaged trace must not become a checkpoint.
            agree(cluster, self.simulation.programs().check_integrity())?;
            let reached: u64 = processes.iter().map(RankProcess::actions).sum();
            let reached: u64 = sum(cluster, reached)?;
            let is_last = sum(cluster, self.simulation.stop_handle().is_requested().into())? > 0;
            let actions = reached.saturating_sub(self.segmented.skipped_actions());
            let replayed_s = self.summary.replayed_before_s + started.elapsed().as_secs_f64();
            let written = self.write(cluster, &mut processes, actions, replayed_s);
            match agree(cluster, written) {
                Ok(()) if is_last && is_first => {
                    return Err(RunError::Stopped { actions, checkpoint: self.plan.path() });
                }
                // The first process says so.
                Ok(()) if is_last => return Err(RunError::OtherProcess { process: 0 }),
                Ok(()) => {}
                Err(error @ RunError::Checkpoint(_)) if !is_last => {
                    tracing::warn!("{error}; the run continues, and the previous checkpoint remains")
                }
                // The first process has reported the error.
                Err(RunError::OtherProcess { .. }) if !is_last => {}
                Err(error) => return Err(error),
            }
            // The first process counts for all.
            self.progress.continue_after(if is_first { reached } else { 0 });
        }
    }

    /// Runs until the next checkpoint is due, the stop is requested, or all ranks have ended.
    fn run_segment(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, M>>,
    ) -> Result<MemberRun<'t, M>, RunError> {
        let StopHandle { interrupt, .. } = self.simulation.stop_handle();
        let interval = self.plan.interval;
        interrupt.clear();
        if self.simulation.stop_handle().is_requested() {
            interrupt.request();
        }
        std::thread::scope(|scope| {
            let (ended, timer) = mpsc::channel::<Infallible>();
            scope.spawn(move || {
                if timer.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    interrupt.request();
                }
            });
            let run = self.segmented.run(cluster, processes, interrupt, self.progress);
            // Disconnects the channel, which ends the timer.
            drop(ended);
            run
        })
    }

    /// Restores the state of a checkpoint on one of several processes; the first one gets what is of all.
    fn restore(
        &mut self,
        mut opened: CheckpointReader,
        (process, processes): (usize, usize),
    ) -> Result<Vec<RankProcess<'t, M>>, RunError> {
        let Header { actions, replayed_s, programs, events, .. } = opened.header().clone();
        (self.summary.resumed_from, self.summary.replayed_before_s) = (Some(actions), replayed_s);
        programs.restore(self.worlds, process == 0);
        let network = opened.network()?;
        self.segmented
            .restore(&network)
            .map_err(|ForeignState| CheckpointError::ImpossibleNetwork { path: opened.path().to_owned() })?;
        if process == 0 {
            tracing::info!("continuing after {actions} actions, from {}", opened.path().display());
            self.progress.continue_after(actions.saturating_add(self.segmented.skipped_actions()));
        }
        self.restore_events(events.map(|events| events.part(process, processes)), opened.path())?;
        let lps = self.simulation.programs().lps();
        opened.processes(self.worlds, (self.mine, lps), |lp, error| self.simulation.locate(lp, error))
    }

    /// Continues the timeline with the events before the checkpoint.
    fn restore_events(&self, events: Option<SavedSpool>, path: &Path) -> Result<(), CheckpointError> {
        let ranks = self.simulation.trace().ranks() as usize;
        match (self.spool, events) {
            (Some(spool), Some(events)) if events.ranks() <= ranks => spool
                .restore(events)
                .map_err(|source| CheckpointError::Events { path: path.to_owned(), source }),
            (None, None) => Ok(()),
            _ => Err(CheckpointError::Damaged {
                path: path.to_owned(),
                what: "its timeline is of another run",
            }),
        }
    }

    /// Writes a checkpoint on the first process, with the states of all.
    fn write(
        &mut self,
        cluster: &mut Cluster,
        processes: &mut [RankProcess<'t, M>],
        actions: u64,
        replayed_s: f64,
    ) -> Result<(), RunError> {
        let started = Instant::now();
        let events = self.spool.map(Spool::save).transpose();
        let events =
            events.map_err(|source| CheckpointError::Events { path: self.plan.path(), source }.into());
        let events = agree(cluster, events)?;
        let events = gather(cluster, events)?;
        let network = self.segmented.save(cluster)?;
        let findings = gather(cluster, Some(findings(self.worlds)))?;
        let is_first = cluster.member() == 0;
        let sent: Vec<(LpId, Vec<u8>)> = match is_first {
            true => Vec::new(),
            false => processes.iter_mut().map(|process| (process.lp(), encode(process))).collect(),
        };
        let received = cluster.gather(sent)?;
        if !is_first {
            return Ok(());
        }
        let mut others = vec![None; self.simulation.programs().lps() as usize];
        received.into_iter().flatten().for_each(|(lp, state)| others[lp.index()] = Some(state));
        let mut own: Vec<&mut RankProcess<'t, M>> = processes.iter_mut().collect();
        own.sort_unstable_by_key(|process| process.lp());
        let mut own = own.into_iter();
        // One rank at a time, so that the peak memory does not grow.
        let states = others
            .into_iter()
            .map(|state| state.unwrap_or_else(|| encode(own.next().expect("each rank is of one process"))));
        let header = Header {
            identity: self.identity.clone(),
            actions,
            replayed_s,
            programs: ProgramStates::of(self.worlds, findings.unwrap_or_default()),
            in_time_order: self.segmented.is_in_time_order(),
            events: events.clone(),
        };
        let bytes = file::write(&self.plan.path(), &header, network, states)?;
        self.plan.remove_events_but(events.as_ref())?;
        self.count(bytes, actions, started);
        Ok(())
    }

    /// Counts a checkpoint that was written.
    fn count(&mut self, bytes: u64, actions: u64, started: Instant) {
        let took_s = started.elapsed().as_secs_f64();
        (self.summary.written, self.summary.writing_s) =
            (self.summary.written + 1, self.summary.writing_s + took_s);
        tracing::info!("wrote a checkpoint after {actions} actions ({bytes} bytes in {took_s:.3} s)");
    }
}
