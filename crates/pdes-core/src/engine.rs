//! The free-running engine: workers that run each logical process until it lacks a token.

pub(crate) mod conditional_events;
mod endpoint;
pub(crate) mod first_fault;
pub(crate) mod frame;
mod gateway;
pub(crate) mod jitter;
mod partition;
mod quiescence;
pub(crate) mod run_ahead;
pub(crate) mod run_queue;
mod termination;
mod worker;

use std::convert::Infallible;
use std::sync::atomic::Ordering;

use crate::cluster::{Cluster, ClusterError, RunParameters};
use crate::{Fault, Interrupt, LpId, Process, Progress, SimDuration};
use first_fault::FirstFault;
use frame::RunSummary;
use gateway::ClusterGateway;
use partition::MemberPartition;
pub use partition::Partition;
use worker::{SharedState, Worker, WorkerResult};

/// Default number of tokens for one worker that are sent as a batch.
pub(crate) const BATCH: usize = 256;

/// Runs processes on threads, and on the members of a [`Cluster`].
///
/// # Determinism
/// The processes' final states are the same for any number of workers, any bound on run-ahead, any batch size and any
/// jitter, provided that they obey the laws of [`Process`].
///
/// # Cost
/// A token between processes of one worker costs a push and a call. A token between workers costs its share of a
/// batch. Workers synchronise only when they have nothing to do.
#[derive(Clone, Debug)]
pub struct Engine {
    workers: usize,
    run_ahead: RunAhead,
    batch: usize,
    jitter: Option<u64>,
    partition: Option<Partition>,
    interrupt: Option<Interrupt>,
}

/// The bound on how far processes may run ahead of the slowest runnable process.
///
/// It bounds memory (tokens waiting to be read) and keeps the working set in the cache. It never changes a result, and
/// it cannot deadlock: the process with the least clock may always run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunAhead {
    /// A window that the engine adapts to the density of steps in simulated time.
    #[default]
    Auto,
    /// A fixed window of simulated time.
    Window(SimDuration),
}

/// The result of a run: the processes, in the order in which they were given, and the ending.
#[derive(Debug)]
pub struct Run<P: Process, E = <P as Process>::Error> {
    /// Processes in their final states; on a member of a cluster, its own ones.
    pub processes: Vec<P>,
    /// Ending of the run.
    pub ending: Ending<E>,
    /// Number of steps taken by all processes.
    pub steps: u64,
}

/// The ending of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending<E> {
    /// Every process finished.
    Completed,
    /// Processes are at a checkpoint ([`Pause::AtCheckpoint`](crate::Pause::AtCheckpoint)), or the run was
    /// [interrupted](Engine::interrupted_by). No token is in transit, so another run of all processes can continue here.
    StoppedAtCheckpoint,
    /// Deadlock: nothing can happen any more, and these processes wait for tokens that nobody will send.
    Deadlocked(Vec<LpId>),
    /// This process failed, and no other one failed earlier in (simulated time, process).
    Failed(LpId, Fault<E>),
}

impl<E> Ending<E> {
    /// Returns the ending of a run without failures in which these processes have not finished.
    pub(crate) fn from_unfinished(mut waiting: Vec<LpId>) -> Self {
        waiting.sort_unstable();
        if waiting.is_empty() { Self::Completed } else { Self::Deadlocked(waiting) }
    }
}

impl Engine {
    /// Makes an engine with this many workers, one thread each.
    ///
    /// # Panics
    /// If `workers` is zero.
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "an engine needs at least one worker");
        Self {
            workers,
            run_ahead: RunAhead::default(),
            batch: BATCH,
            jitter: None,
            partition: None,
            interrupt: None,
        }
    }

    /// Sets the bound on run-ahead.
    pub fn run_ahead(self, run_ahead: RunAhead) -> Self {
        Self { run_ahead, ..self }
    }

    /// Sets the number of tokens for one worker that are sent as a batch; at least one.
    pub fn batch(self, tokens: usize) -> Self {
        Self { batch: tokens.max(1), ..self }
    }

    /// Perturbs the schedule at random (order of turns, length of turns, pauses of threads), to test that results do
    /// not depend on it.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed), ..self }
    }

    /// Sets the assignment of processes to workers; the default is contiguous blocks. The partition must be for the run's
    /// number of processes and its number of workers over all members of a cluster.
    pub fn partition(self, partition: Partition) -> Self {
        Self { partition: Some(partition), ..self }
    }

    /// Makes runs interruptible. An interrupted run ends as [`Ending::StoppedAtCheckpoint`] within a few thousand steps of
    /// each worker, with all tokens delivered, and another run of the processes continues from there; it ends otherwise if
    /// all processes end before, or one of them fails. On a cluster each member interrupts its own workers, and the run ends when
    /// nothing else can happen before their processes.
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt: Some(interrupt), ..self }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Runs processes to their end; process `i` of the list has the number `i`.
    ///
    /// # Panics
    /// If a process panics; the panic is propagated after all workers have stopped.
    pub fn run<P: Process<WorkRequest = Infallible>>(&self, processes: Vec<P>) -> Run<P> {
        self.run_with_progress(processes, &Progress::new(self.workers))
    }

    /// Runs processes to their end and publishes their progress.
    ///
    /// # Panics
    /// If a process panics, and if `progress` was made for fewer workers.
    pub fn run_with_progress<P>(&self, processes: Vec<P>, progress: &Progress) -> Run<P>
    where
        P: Process<WorkRequest = Infallible>,
    {
        let share = self.member_partition(0, 1, processes.len() as u32);
        let shared = SharedState::new(self.workers, 0, 1);
        let processes = share.global.to_slot_order(processes);
        let (whole, _) = self.run_workers(processes, &share, &shared, progress, None);
        let MemberResult { processes, waiting, is_stopped, fault, steps } = whole;
        let ending = match fault.ending(waiting) {
            Ending::Deadlocked(_) if is_stopped => Ending::StoppedAtCheckpoint,
            ending => ending,
        };
        Run { processes: share.global.to_lp_order(processes), ending, steps }
    }

    /// Returns the processes of one member of a cluster of `members`, in the order in which
    /// [`run_distributed`](Engine::run_distributed) takes and returns their processes.
    ///
    /// # Panics
    /// If the partition was made for other numbers of processes or of workers.
    pub fn lps(&self, member: usize, members: usize, lps: u32) -> Vec<LpId> {
        let share = self.member_partition(member, members, lps);
        share.slots().map(|slot| share.global.lp(slot)).collect()
    }

    fn member_partition(&self, member: usize, members: usize, lps: u32) -> MemberPartition {
        let workers = self.workers * members;
        let blocks = || Partition::blocks(lps, workers);
        let whole = self.partition.clone().unwrap_or_else(blocks);
        let (found, expected) = ((whole.len(), whole.workers()), (lps, workers));
        assert_eq!(found, expected, "a partition is for as many lps and workers as the run has");
        MemberPartition::new(whole, self.workers, member)
    }

    /// Runs processes to their end on all members of a cluster. Each member calls this with the same settings and
    /// with its own part of the processes: those that [`lps`](Engine::lps) lists, in that order. It gets
    /// them back, with the steps of all processes and the ending of the whole run.
    ///
    /// A failure carries its error on the member of the failed process only; the other members get its time and its number, and
    /// `None` for the error.
    ///
    /// # Determinism
    /// That of [`run`](Engine::run), for any number of members.
    ///
    /// # Errors
    /// If another member panics, leaves the cluster before the run has ended, or runs something else.
    ///
    /// # Panics
    /// If a process panics (other members get an error), if `processes` are not as many as the member has, if the
    /// partition was made for other numbers of processes or workers, if `progress` was made for fewer workers, and if this
    /// member has failed before.
    ///
    /// ```
    /// # use std::convert::Infallible;
    /// # use pdes_core::{Fault, Outbox, Pause, Process, SimDuration, Turn, Wake};
    /// use pdes_core::{Cluster, Ending, Engine, Progress, LpId, SimTime};
    ///
    /// # struct Hop { me: u32, token: Option<SimTime>, clock: SimTime }
    /// # impl Process for Hop {
    /// #     type Token = SimTime;
    /// #     type WorkRequest = Infallible;
    /// #     type Error = Infallible;
    /// #     fn deliver(&mut self, token: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Infallible>> {
    /// #         self.token = Some(token);
    /// #         Ok(Wake::Ready)
    /// #     }
    /// #     fn resume(&mut self, _: &mut Turn, outbox: &mut Outbox<SimTime>) -> Result<Pause, Fault<Infallible>> {
    /// #         if self.me == 0 { self.token = Some(SimTime::ZERO); }
    /// #         let Some(token) = self.token else { return Ok(Pause::Blocked) };
    /// #         self.clock = token + SimDuration::from_picos(5);
    /// #         if self.me < 5 { outbox.send(LpId::new(self.me + 1), self.clock); }
    /// #         Ok(Pause::Finished)
    /// #     }
    /// #     fn clock(&self) -> SimTime { self.clock }
    /// # }
    /// # let hop = |me| Hop { me, token: None, clock: SimTime::ZERO };
    /// // Six processes on three members with two threads each; under `mpirun`, `Cluster::from_mpi` is a member.
    /// let ends = Cluster::in_memory(3, |mut cluster| {
    ///     let engine = Engine::new(2);
    ///     let lps = engine.lps(cluster.member(), cluster.members(), 6);
    ///     let processes = lps.iter().map(|lp| hop(lp.get())).collect();
    ///     let run = engine.run_distributed(&mut cluster, 6, processes, &Progress::new(2)).unwrap();
    ///     assert!(matches!(run.ending, Ending::Completed));
    ///     (lps[0], run.processes.last().unwrap().clock)
    /// });
    /// assert_eq!(*ends[2].as_ref().unwrap(), (LpId::new(4), SimTime::from_picos(30)));
    /// ```
    pub fn run_distributed<P>(
        &self,
        cluster: &mut Cluster,
        lps: u32,
        processes: Vec<P>,
        progress: &Progress,
    ) -> Result<Run<P, Option<P::Error>>, ClusterError>
    where
        P: Process<WorkRequest = Infallible>,
    {
        let share = self.member_partition(cluster.member(), cluster.members(), lps);
        assert_eq!(processes.len(), share.slots().len(), "the processes of a member are those of its lps");
        cluster.reporting_panics(|cluster| self.run_member(cluster, &share, lps, processes, progress))
    }

    fn run_member<P>(
        &self,
        cluster: &mut Cluster,
        share: &MemberPartition,
        lps: u32,
        processes: Vec<P>,
        progress: &Progress,
    ) -> Result<Run<P, Option<P::Error>>, ClusterError>
    where
        P: Process<WorkRequest = Infallible>,
    {
        let shared = SharedState::new(self.workers, cluster.member(), cluster.members());
        let token_bytes = size_of::<P::Token>() as u32;
        let terms = RunParameters { lps, workers: self.workers as u32, token_bytes };
        // A single member has no peers, hence no gateway.
        let gateway = (cluster.members() > 1)
            .then(|| ClusterGateway::new(cluster, &shared.lower_bounds, share.clone(), terms, progress));
        let (whole, gateway) = self.run_workers(processes, share, &shared, progress, gateway);
        let MemberResult { processes, waiting, is_stopped, fault, steps } = whole;
        let tally = RunSummary { fault: fault.key(), steps, waiting, is_stopped };
        let all = match gateway {
            Some(gateway) if shared.is_undecodable.load(Ordering::Relaxed) => {
                return Err(gateway.fail_undecodable());
            }
            Some(gateway) => gateway.finish(tally)?,
            None => tally,
        };
        let steps = all.steps;
        Ok(Run { processes, ending: fault.cluster_ending(all), steps })
    }

    /// Runs the processes of this member on its workers, the first of which is the calling thread.
    fn run_workers<'a, P>(
        &self,
        processes: Vec<P>,
        share: &MemberPartition,
        shared: &'a SharedState,
        progress: &'a Progress,
        gateway: Option<ClusterGateway<'a>>,
    ) -> (MemberResult<P>, Option<ClusterGateway<'a>>)
    where
        P: Process<WorkRequest = Infallible>,
    {
        progress.assert_workers(self.workers);
        let batch = self.batch;
        let mut rest = processes;
        let mut parts = Vec::with_capacity(self.workers);
        for (worker, builder) in endpoint::connect(self.workers).into_iter().enumerate() {
            let lps = share.global.slots(share.first_worker() + worker);
            let later = rest.split_off(lps.len());
            parts.push((std::mem::replace(&mut rest, later), builder));
        }
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let (processes, builder) = parts.next().expect("an engine has at least one worker");
            let threads: Vec<_> = parts
                .map(|(processes, builder)| {
                    scope.spawn(move || {
                        let exchange = builder.build(share, batch, shared, None);
                        Worker::new(self, processes, exchange, shared, progress).run().0
                    })
                })
                .collect();
            let exchange = builder.build(share, batch, shared, gateway);
            let (first, gateway) = Worker::new(self, processes, exchange, shared, progress).run();
            let mut whole = MemberResult::new(first);
            for thread in threads {
                match thread.join() {
                    Ok(part) => whole.append(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            (whole, gateway)
        })
    }
}

/// The merged results of all workers of a member.
struct MemberResult<P: Process> {
    processes: Vec<P>,
    waiting: Vec<LpId>,
    is_stopped: bool,
    fault: FirstFault<P::Error>,
    steps: u64,
}

impl<P: Process> MemberResult<P> {
    fn new(first: WorkerResult<P>) -> Self {
        let WorkerResult { processes, waiting, is_stopped, fault, steps } = first;
        Self { processes, waiting, is_stopped, fault, steps }
    }

    fn append(&mut self, mut part: WorkerResult<P>) {
        self.processes.append(&mut part.processes);
        self.waiting.append(&mut part.waiting);
        self.is_stopped |= part.is_stopped;
        self.fault.merge(part.fault);
        self.steps += part.steps;
    }
}
