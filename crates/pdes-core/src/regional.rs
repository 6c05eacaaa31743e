//! The regional engine: logical processes and a resource that is cut into regions, synchronised in epochs.

mod balance;
mod blocks;
mod contribution;
mod gateway;
mod mailboxes;
pub(crate) mod region_group;
mod team;
mod timing;
mod worker;

use std::ops::Range;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::first_fault::FirstFault;
use crate::engine::frame::RunSummary;
use crate::{
    Cluster, ClusterError, Ending, Fault, Interrupt, LpId, Outbox, Process, Progress, Run, SimDuration,
    SimTime,
};
use gateway::{RegionGateway, RegionalSummary};
use mailboxes::Mailboxes;
use region_group::RegionGroup;
use team::Pace;
use timing::Stopwatch;
use worker::{RegionWorker, SharedState, Stop, WorkerResult};

pub use blocks::RegionBlocks;
pub use timing::{RegionalLevel, RegionalTiming};

/// A part of a resource that processes share, such as the links and hosts of a pod of a fat tree; it serves the work of the
/// processes that belong to it.
///
/// Time is divided into epochs of one length. During an epoch a region and its processes depend on nothing outside, so the
/// epoch plays the role of the lookahead; at its end, a boundary, regions exchange the messages that they need for the next.
///
/// # Laws
/// 1. The region's behaviour depends only on the work, the messages and the calls that it gets, and on their order.
/// 2. [`advance`](Region::advance) sends tokens to processes of the region only, at or after the instant that
///    [`next_event_time`](Region::next_event_time) returned.
/// 3. Tokens and messages from one region to another take effect at the end of the epoch at the earliest: a process that
///    gets such a token does not act before.
///
/// A region that has all processes, as an [`OrderedEngine`](crate::OrderedEngine) runs it, has no messages and no boundaries: these have
/// methods that do nothing.
pub trait Region<P: Process>: Send {
    /// Message between regions; encoded only on its way to another member of a [`Cluster`].
    type Message: Send + Serialize + DeserializeOwned;
    /// Maximum number of rounds of each exchange at a boundary; the exchanges follow each other. Messages of the last round
    /// are received with the next exchange.
    const MAX_ROUNDS: &'static [u32] = &[];
    /// Epochs may begin at any instant, and be shorter: results do not depend on it. Without exchanges, messages of regions may be received
    /// as the next epoch is run: what they cause in other regions takes effect after it.
    const BEGINS_ANYWHERE: bool = false;

    /// Accepts work of a process of the region. Between two events of the region, work comes sorted by (time, tie-break,
    /// process, order of submission).
    fn submit(&mut self, work: SubmittedWork<P::WorkRequest>);

    /// Returns the time of the region's next event, if there is one.
    fn next_event_time(&mut self) -> Option<SimTime>;

    /// Returns an instant before which no process gets a token of the work of others, if processes submit none before `submission` but after
    /// events of the region.
    fn undisturbed_until(&mut self, submission: SimTime) -> SimTime {
        self.next_event_time().map_or(submission, |next| next.min(submission))
    }

    /// Executes the events of that instant and sends tokens to the processes concerned. If there are none, it may execute
    /// later events of the same epoch, until there is one.
    ///
    /// # Errors
    /// If the work cannot be served; the process is the one that submitted it.
    fn advance(
        &mut self,
        outbox: &mut Outbox<P::Token, P::WorkRequest>,
    ) -> Result<(), (LpId, Fault<P::Error>)>;

    /// Receives a message of another region or of this one.
    fn receive(&mut self, _: Self::Message) {}

    /// Appends the messages that the region has sent since the last call, with their receivers. The engine calls it at the end of an
    /// epoch, after each round of an exchange, and after the begin of an epoch: they are received before the region does anything else.
    fn take_messages(&mut self, _: &mut Vec<(RegionIndex, Self::Message)>) {}

    /// Returns the next boundary at which the region has messages to send or work of its own.
    fn next_boundary(&self) -> Option<SimTime> {
        None
    }

    /// Takes part in one round of an exchange at the boundary before an epoch, which may end earlier than others. The engine calls
    /// it in round 0 for all regions that are active or have received a message, in later rounds for those that have received a
    /// message of the round before. An exchange ends when a round sends no messages.
    fn exchange_round(&mut self, _epoch: Range<SimTime>, _exchange: u32, _round: u32) {}

    /// Begins the epoch after a boundary. The engine calls it after all exchanges, for the regions that are active or have
    /// received a message.
    fn begin_epoch(&mut self, _epoch: Range<SimTime>) {}

    /// Returns work that was submitted too late to be served in the order of time, if there was any; it ends the run.
    fn late_work(&self) -> Option<(SimTime, LpId)> {
        None
    }
}

/// The index of a region among those of a run.
pub type RegionIndex = u32;

/// A piece of work, with its submitter and its time.
#[derive(Clone, Copy, Debug)]
pub struct SubmittedWork<O> {
    /// Time at which the work begins.
    pub at: SimTime,
    /// Tie-break among the work of one instant; smaller values come first.
    pub tie_break: u64,
    /// Process that submitted the work.
    pub from: LpId,
    /// Work itself.
    pub request: O,
}

/// Runs processes and their regions on threads, and on the members of a [`Cluster`], epoch by epoch.
///
/// Within an epoch regions run independently, each on any free thread of its member; at a boundary all threads, and then
/// all members, synchronise by one to a few barriers. Epochs without events are skipped. If one worker alone is faster, because others
/// have no core or epochs have little work, the others sleep.
///
/// # Determinism
/// The result is the same for any number of workers and of members, and any jitter: messages are sorted by the region that
/// sends them.
///
/// # Cost
/// That of [`OrderedEngine`](crate::OrderedEngine) for the events of a region; at each active boundary about four barriers of
/// all workers, of a microsecond each if every worker has a core of its own. On a cluster each barrier takes
/// log2(members), rounded up, messages of each member, one after the other; they carry the messages between regions.
#[derive(Clone, Debug)]
pub struct RegionalEngine {
    workers: usize,
    jitter: Option<u64>,
    is_timed: bool,
    interrupt: Interrupt,
    origin: Option<SimTime>,
}

impl RegionalEngine {
    /// Makes an engine with this many workers, one thread each.
    ///
    /// # Panics
    /// If `workers` is zero.
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "an engine needs at least one worker");
        Self { workers, jitter: None, is_timed: false, interrupt: Interrupt::default(), origin: None }
    }

    /// Perturbs the order of turns and the pace of workers at random, to test that results do not depend on them.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed), ..self }
    }

    /// Measures the wall-clock time of each region, on one worker; costs 0.1 us more per task of a region.
    pub fn timed(self) -> Self {
        Self { workers: 1, is_timed: true, ..self }
    }

    /// Makes runs interruptible, by the interrupt of any member. An interrupted run ends as [`Ending::StoppedAtCheckpoint`] at the end
    /// of an epoch, with nothing in transit; another run of the same processes and the same regions, with any number of workers and
    /// of members, continues from there.
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Continues a run that has stopped at a [cut](RegionalRun::cut), perhaps shifted in time: epochs are counted from there. A run that
    /// was interrupted after that cut continues from it, too.
    pub fn continuing_from(self, cut: SimTime) -> Self {
        Self { origin: Some(cut), ..self }
    }

    /// Runs processes to their end, or to a cut; process `i` of the list has the number `i`, and belongs to region `homes[i]`.
    ///
    /// # Errors
    /// If a process pauses for a conditional event: regions of one epoch run in no common order.
    ///
    /// # Panics
    /// If a process or a region panics, if the epoch is zero, if `progress` has fewer workers, and if `homes` has another length
    /// than the processes or an entry that is no region.
    pub fn run<P, R>(
        &self,
        epoch: SimDuration,
        processes: Vec<P>,
        homes: &[RegionIndex],
        regions: Vec<R>,
        progress: &Progress,
    ) -> Result<RegionalRun<P, R>, UnorderedConditional>
    where
        P: Process,
        R: Region<P>,
    {
        let blocks = RegionBlocks::new(homes.to_vec(), regions.len() as u32, 1);
        let locations = locate_processes(&blocks, 0);
        let (whole, worker_result) =
            self.run_workers(epoch, (processes, regions), (&locations, &blocks, 0), progress, None);
        let MemberResult {
            fault,
            tally: RegionalSummary { summary, conditional, cut, exchange_counts },
            processes,
            regions,
        } = whole;
        if let Some((at, lp)) = conditional {
            return Err(UnorderedConditional { lp, at });
        }
        progress.publish_end(last_clock(&processes));
        let ending = match fault.ending(summary.waiting) {
            Ending::Deadlocked(_) if summary.is_stopped => Ending::StoppedAtCheckpoint,
            ending => ending,
        };
        let run = Run { ending, processes, steps: summary.steps };
        let timing = worker_result.stopwatch.map(Stopwatch::timing);
        Ok(RegionalRun { run, regions, cut, exchange_counts, timing })
    }

    /// Runs processes to their end, or to a cut, on all members of a cluster. Each member calls this with the same settings and with
    /// its own part: the regions that `blocks` assigns to it, and the processes that belong to them, both in
    /// ascending order. It gets them back, with the steps of all processes, the ending of the whole run and the exchange
    /// counts of all members.
    ///
    /// A failure carries its error on the member of the failed process only; the other members get its time and its number, and
    /// `None` for the error.
    ///
    /// # Determinism
    /// That of [`run`](RegionalEngine::run), for any number of members.
    ///
    /// # Errors
    /// If another member panics, leaves the cluster before the run has ended, or runs something else; and, as in `run`, if a
    /// process of any member pauses for a conditional event.
    ///
    /// # Panics
    /// As `run` (other members get an error then); also if the blocks are for another number of members, if `processes` and
    /// `regions` are not those of the member, and if this member has failed before.
    pub fn run_distributed<P, R>(
        &self,
        cluster: &mut Cluster,
        epoch: SimDuration,
        processes: Vec<P>,
        blocks: &RegionBlocks,
        regions: Vec<R>,
        progress: &Progress,
    ) -> Result<Result<RegionalMemberRun<P, R>, UnorderedConditional>, ClusterError>
    where
        P: Process,
        R: Region<P>,
    {
        assert_eq!(blocks.members(), cluster.members(), "there is a block for each member");
        cluster.reporting_panics(|cluster| {
            let me = cluster.member();
            let locations = locate_processes(blocks, me);
            // A single member has no peers, hence no gateway.
            let gateway = (cluster.members() > 1)
                .then(|| RegionGateway::new(cluster, blocks, &locations, progress, self.workers))
                .transpose()?;
            let part = (processes, regions);
            let placement = (&*locations, blocks, me);
            let (whole, worker_result) = self.run_workers(epoch, part, placement, progress, gateway);
            let MemberResult { fault, tally, processes, regions } = whole;
            let RegionalSummary { summary, conditional, cut, exchange_counts } = match worker_result.gateway {
                Some(mut gateway) => match gateway.take_error() {
                    Some(error) => return Err(error),
                    None => gateway.finish(tally)?,
                },
                None => tally,
            };
            if let Some((at, lp)) = conditional {
                return Ok(Err(UnorderedConditional { lp, at }));
            }
            progress.publish_end(last_clock(&processes));
            let steps = summary.steps;
            let run = Run { ending: fault.cluster_ending(summary), processes, steps };
            let timing = worker_result.stopwatch.map(Stopwatch::timing);
            Ok(Ok(RegionalRun { run, regions, cut, exchange_counts, timing }))
        })
    }

    /// Runs the processes and the regions of a member on its workers, the first of which is the calling thread.
    fn run_workers<'a, P: Process, R: Region<P>>(
        &self,
        epoch: SimDuration,
        (processes, regions): (Vec<P>, Vec<R>),
        (locations, blocks, me): (&[ProcessLocation], &RegionBlocks, usize),
        progress: &Progress,
        gateway: Option<RegionGateway<'a, P::Token, R::Message>>,
    ) -> (MemberResult<P, R>, WorkerResult<'a, P::Token, R::Message>) {
        progress.assert_workers(self.workers);
        assert!(epoch > SimDuration::ZERO, "an epoch lasts for a picosecond at least");
        let own = blocks.regions(me);
        assert_eq!(regions.len(), own.len(), "the regions of a member are those of its block");
        assert_eq!(processes.len(), blocks.lps(me).count(), "each process lives in a region");
        let mut by_region: Vec<Vec<(LpId, P)>> = own.clone().map(|_| Vec::new()).collect();
        for (lp, process) in blocks.lps(me).zip(processes) {
            by_region[(locations[lp.index()].region - own.start) as usize].push((lp, process));
        }
        let mailboxes = Mailboxes::new(blocks.count());
        let group = |(index, (region, by_region)): (u32, (R, Vec<(LpId, P)>))| {
            Mutex::new(RegionGroup::new(index, region, by_region, false, self.jitter))
        };
        let groups: Box<[_]> = own.clone().zip(regions.into_iter().zip(by_region)).map(group).collect();
        let shared = SharedState::new(
            &groups,
            own.clone(),
            locations,
            &mailboxes,
            (epoch, self.origin, self.workers),
            &self.interrupt,
            progress,
        );
        let shared = shared.with_distributed(gateway.is_some());
        if own.is_empty() && gateway.is_some() {
            // Other members work; this one waits for the end of the run.
            let exchange_counts = ExchangeCounts::default();
            let idle = WorkerResult { gateway, stopwatch: None, exchange_counts, stop: None };
            return (collect_results(groups, blocks, me, &idle), idle);
        }
        let worker_result = std::thread::scope(|scope| {
            let worker = |me| RegionWorker::new(&shared, me);
            let pace = (self.workers > 1).then(|| Pace::new(self.jitter));
            let threads: Vec<_> = (1..self.workers)
                .map(|me| {
                    scope.spawn(move || {
                        worker(me).run();
                    })
                })
                .collect();
            let mut first = worker(0);
            first.stopwatch = self.is_timed.then(|| Stopwatch::new(own.len()));
            first.gateway = gateway;
            first.pace = pace;
            let worker_result = first.run();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            worker_result
        });
        (collect_results(groups, blocks, me, &worker_result), worker_result)
    }
}

/// The result of a run with regions.
pub struct RegionalRun<P: Process, R, E = <P as Process>::Error> {
    /// Processes and ending of the run; on a member of a cluster, its own processes.
    pub run: Run<P, E>,
    /// Regions; on a member, its own ones.
    pub regions: Vec<R>,
    /// Instant of the cut at which the run has stopped, if it has.
    ///
    /// A run with a process that comes to a [checkpoint](crate::Pause::AtCheckpoint) stops at the next cut: all events before that
    /// instant have taken place, and nothing is in transit. It lies an epoch after the checkpoint where epochs may [begin at any
    /// instant](Region::BEGINS_ANYWHERE), else at the end of the epoch in which the process gets there. What happens later
    /// depends on the processes and the regions alone. After a failure there is no cut.
    pub cut: Option<SimTime>,
    /// Numbers of exchanges and of messages between regions.
    pub exchange_counts: ExchangeCounts,
    /// Wall-clock times of the regions, if they were measured.
    pub timing: Option<RegionalTiming>,
}

/// The result of a run with regions on one member of a cluster.
pub type RegionalMemberRun<P, R> = RegionalRun<P, R, Option<<P as Process>::Error>>;

/// Numbers of exchanges between regions, over all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExchangeCounts {
    /// Number of boundaries at which regions exchanged messages.
    pub boundaries: u64,
    /// Number of rounds in which messages were sent.
    pub rounds: u64,
    /// Number of messages between regions: tokens of processes and messages of regions.
    pub messages: u64,
}

/// The error that a process pauses for a conditional event, or submits [late work](Region::late_work), which regions that run independently cannot order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnorderedConditional {
    /// The process; of several in the same epoch, the one with the earliest event.
    pub lp: LpId,
    /// Time of the event.
    pub at: SimTime,
}

/// The region of a process, and its index there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessLocation {
    pub(crate) region: RegionIndex,
    /// Index of the process among those of its region; 0 if the region belongs to another member.
    pub(crate) index: u32,
}

/// The merged results of a member's region groups.
struct MemberResult<P: Process, R> {
    fault: FirstFault<P::Error>,
    tally: RegionalSummary,
    processes: Vec<P>,
    regions: Vec<R>,
}

/// Returns the location of each process; indices are set for the processes of member `me` only.
fn locate_processes(blocks: &RegionBlocks, me: usize) -> Vec<ProcessLocation> {
    let own = blocks.regions(me);
    let mut taken = vec![0; own.len()];
    let location = |&region: &RegionIndex| {
        let index = if own.contains(&region) {
            let next = &mut taken[(region - own.start) as usize];
            *next += 1;
            *next - 1
        } else {
            0
        };
        ProcessLocation { region, index }
    };
    blocks.region_of_lp().iter().map(location).collect()
}

/// Merges the results of all region groups of a member, and puts the processes back into the order of their numbers.
fn collect_results<P: Process, R: Region<P>>(
    groups: Box<[Mutex<RegionGroup<P, R>>]>,
    blocks: &RegionBlocks,
    me: usize,
    worker: &WorkerResult<'_, P::Token, R::Message>,
) -> MemberResult<P, R> {
    let (mut fault, mut tally, mut conditional) = (FirstFault::none(), RunSummary::default(), None);
    let (mut by_region, mut regions) = (Vec::new(), Vec::new());
    for group in groups {
        let left = group.into_inner().finish();
        fault.merge(left.fault);
        tally.waiting.extend(left.waiting);
        tally.steps += left.steps;
        by_region.push(left.processes.into_iter());
        regions.push(left.region);
        conditional = conditional.into_iter().chain(left.conditional).min();
    }
    (tally.fault, tally.is_stopped) = (fault.key(), worker.stop.is_some());
    let cut = match worker.stop {
        Some(Stop::AtCut(at)) => Some(at),
        Some(Stop::Interrupted) | None => None,
    };
    let first = blocks.regions(me).start;
    // the processes of a region are in the order of their numbers.
    let next = |lp: LpId| {
        let region = (blocks.region_of_lp()[lp.index()] - first) as usize;
        by_region[region].next().expect("each process is in one region")
    };
    let processes = blocks.lps(me).map(next).collect();
    let tally = RegionalSummary { summary: tally, conditional, cut, exchange_counts: worker.exchange_counts };
    MemberResult { fault, tally, processes, regions }
}

pub(crate) fn last_clock<P: Process>(processes: &[P]) -> SimTime {
    processes.iter().map(Process::clock).max().unwrap_or_default()
}
