//! An engine for processes that share a resource which is cut into regions.

mod balance;
mod blocks;
mod crew;
mod domain;
mod gateway;
mod post;
mod standing;
mod timing;

use std::sync::Mutex;

use crate::engine::first_fault::FirstFault;
use crate::engine::frame::Tally;
use crate::{Cluster, ClusterError, Fault, Outbox, Process, Progress, Rank, Run, SimDuration, SimTime, Wire};
use crew::{Commons, Crew, Trail};
use domain::Domain;
use gateway::{Codec, Gateway, RegionalTally};
use post::PostOffice;
use timing::Stopwatch;

pub use blocks::RegionBlocks;
pub use timing::{RegionalLevel, RegionalTiming};

/// A part of a resource that processes share, such as the links and hosts of a pod of a fat tree, and what the processes
/// that live there order from it.
///
/// Time is cut into epochs of one length. During an epoch a region and its processes depend on nothing outside; at its
/// end, a boundary, regions tell each other what they must know for the next one.
///
/// # Laws
/// 1. What a region does depends on the orders, the mail and the calls that it gets, and on their order, alone.
/// 2. [`advance`](Region::advance) sends tokens for processes of the region only. They lie at the instant that
///    [`next`](Region::next) named, or after it.
/// 3. What processes and regions send each other across regions in an epoch matters at its end at the earliest: a process
///    that gets such a token does not act before.
pub trait Region<P: Process>: Send {
    /// What regions tell each other.
    type Mail: Send;
    /// The conversations that regions have at a boundary, one after the other: the most rounds of each. What is sent in the last
    /// one is received with the next conversation.
    const MOST_ROUNDS: &'static [u32];

    /// Takes in an order of a process of the region. Orders come sorted by (time, place, rank, order of filing) between
    /// two events of the region.
    fn file(&mut self, filed: Filed<P::Order>, mail: &mut Vec<(RegionIndex, Self::Mail)>);

    /// Returns the instant of the next thing to happen in the region, if there is any.
    fn next(&mut self) -> Option<SimTime>;

    /// Lets happen what happens at the next instant, and tells the processes concerned. Where that is nobody, it may go on in the
    /// same epoch until it is somebody.
    ///
    /// # Errors
    /// Where that is impossible; the rank is that of the order.
    fn advance(&mut self, outbox: &mut Outbox<P::Token, P::Order>) -> Result<(), (Rank, Fault<P::Error>)>;

    /// Takes in what another region, or this one, has sent.
    fn receive(&mut self, mail: Self::Mail);

    /// Returns the next boundary at which the region has something to say to others or to find out for itself.
    fn next_boundary(&self) -> Option<SimTime>;

    /// Takes part in a conversation at a boundary: in round 0 all regions do in which something is to happen or to be said, or
    /// that have received something since, in later rounds those that have received something in the one before. A conversation is over when nobody sends any more.
    fn converse(
        &mut self,
        boundary: SimTime,
        conversation: u32,
        round: u32,
        mail: &mut Vec<(RegionIndex, Self::Mail)>,
    );

    /// Begins the epoch that begins at a boundary, after all conversations, where the region could have had a part in them.
    fn enter(&mut self, boundary: SimTime);
}

/// The number of a region among those of a run.
pub type RegionIndex = u32;

/// An order, by whom it was filed and when.
#[derive(Clone, Copy, Debug)]
pub struct Filed<O> {
    /// When it is to be carried out.
    pub at: SimTime,
    /// Where it stands among the orders of one instant.
    pub place: u64,
    /// Who filed it.
    pub from: Rank,
    /// The order.
    pub order: O,
}

/// Runs processes and their regions on threads, and on the members of a [`Cluster`], epoch by epoch.
///
/// Within an epoch each region runs on its own, on whichever thread of its member has nothing else to do; at a boundary all
/// threads meet a few times, and the members after them. Epochs in which nothing happens are skipped.
///
/// # Determinism
/// The result is the same for any number of workers and of members, and any jitter: what is exchanged is ordered by the region
/// that sends it.
///
/// # Cost
/// As of [`OrderedEngine`](crate::OrderedEngine) for what happens in a region; at each boundary that matters, about four meetings of all
/// workers, of a microsecond each where every worker has a core of its own. Each of these is as many messages of each member, one
/// after the other, as the number of members has digits in base 2; they have all letters.
#[derive(Clone, Debug)]
pub struct RegionalEngine {
    workers: usize,
    jitter: Option<u64>,
    is_timed: bool,
}

impl RegionalEngine {
    /// Makes an engine with this many workers, one thread each.
    ///
    /// # Panics
    /// Where `workers` is zero.
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "an engine needs at least one worker");
        Self { workers, jitter: None, is_timed: false }
    }

    /// Disturbs the order of turns and the pace of workers at random, to test that results do not depend on them.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed), ..self }
    }

    /// Takes the time of each region, on one worker: a tenth of a microsecond more whenever a region does something.
    pub fn timed(self) -> Self {
        Self { workers: 1, is_timed: true, ..self }
    }

    /// Runs processes to their end; process `i` of the list is rank `i`, and lives in region `homes[i]`.
    ///
    /// # Errors
    /// Where a process pauses for a conditional event: what others do in the same epoch is not known then.
    ///
    /// # Panics
    /// Where a process or a region does, where the epoch is zero, and where `homes` are not as many as the processes or name
    /// no region.
    pub fn run<P, R>(
        &self,
        epoch: SimDuration,
        processes: Vec<P>,
        homes: &[RegionIndex],
        regions: Vec<R>,
        progress: &Progress,
    ) -> Result<RegionalRun<P, R>, Unordered>
    where
        P: Process,
        R: Region<P>,
    {
        let blocks = RegionBlocks::new(homes.to_vec(), regions.len() as u32, 1);
        let seats = take_seats(&blocks, 0);
        let (whole, trail) = self.drive(epoch, (processes, regions), (&seats, &blocks, 0), progress, None);
        let Whole { fault, tally: RegionalTally { tally, conditional }, processes, regions } = whole;
        if let Some((at, rank)) = conditional {
            return Err(Unordered { rank, at });
        }
        progress.reach(last_clock(&processes));
        let run = Run { ending: fault.ending(tally.waiting), processes, steps: tally.steps };
        let timing = trail.stopwatch.map(Stopwatch::timing);
        Ok(RegionalRun { run, regions, crossings: trail.crossings, timing })
    }

    /// Runs processes to their end on all members of a cluster. Each member calls this with the same settings and with
    /// its own part: the regions that the blocks name for it, and the processes of the ranks that live there, both in
    /// ascending order. It gets them back, with the steps of all processes, the ending of the whole run and what all have
    /// exchanged.
    ///
    /// A failure carries its error on the member of the failed process only; the others get `None`, and know when
    /// and where it happened.
    ///
    /// # Determinism
    /// As of [`run`](RegionalEngine::run), whatever the number of members.
    ///
    /// # Errors
    /// Where another member panics, or leaves the cluster before the run has ended, or runs something else; and, as of `run`,
    /// where a process of any member pauses for a conditional event.
    ///
    /// # Panics
    /// As of `run`; other members get an error then. Where the blocks are for another number of members, where `processes` and
    /// `regions` are not those of the member, and where this member has failed before.
    pub fn run_across<P, R>(
        &self,
        cluster: &mut Cluster,
        epoch: SimDuration,
        processes: Vec<P>,
        blocks: &RegionBlocks,
        regions: Vec<R>,
        progress: &Progress,
    ) -> Result<Result<RegionalPart<P, R>, Unordered>, ClusterError>
    where
        P: Process,
        P::Token: Wire,
        R: Region<P>,
        R::Mail: Wire,
    {
        assert_eq!(blocks.members(), cluster.members(), "there is a block for each member");
        cluster.telling_of_panics(|cluster| {
            let me = cluster.member();
            let seats = take_seats(blocks, me);
            // A member that is alone has nobody to talk to.
            let gateway = (cluster.members() > 1)
                .then(|| Gateway::new(cluster, blocks, &seats, progress, Codec::new(), self.workers))
                .transpose()?;
            let part = (processes, regions);
            let (whole, trail) = self.drive(epoch, part, (&seats, blocks, me), progress, gateway);
            let Whole { fault, tally, processes, regions } = whole;
            let RegionalTally { tally: all, conditional } = match trail.gateway {
                Some(mut gateway) => match gateway.take_error() {
                    Some(error) => return Err(error),
                    None => gateway.finish(tally)?,
                },
                None => tally,
            };
            if let Some((at, rank)) = conditional {
                return Ok(Err(Unordered { rank, at }));
            }
            progress.reach(last_clock(&processes));
            let steps = all.steps;
            let run = Run { ending: fault.on_cluster(all), processes, steps };
            Ok(Ok(RegionalRun { run, regions, crossings: trail.crossings, timing: None }))
        })
    }

    /// Runs the processes and the regions of a member on its workers, the first of which is the calling thread.
    fn drive<'a, P: Process, R: Region<P>>(
        &self,
        epoch: SimDuration,
        (processes, regions): (Vec<P>, Vec<R>),
        (seats, blocks, me): (&[Seat], &RegionBlocks, usize),
        progress: &Progress,
        gateway: Option<Gateway<'a, P::Token, R::Mail>>,
    ) -> (Whole<P, R>, Trail<'a, P::Token, R::Mail>) {
        assert!(epoch > SimDuration::ZERO, "an epoch lasts for a picosecond at least");
        let own = blocks.regions(me);
        assert_eq!(regions.len(), own.len(), "the regions of a member are those of its block");
        assert_eq!(processes.len(), blocks.ranks(me).count(), "each process lives in a region");
        let mut residents: Vec<Vec<(Rank, P)>> = own.clone().map(|_| Vec::new()).collect();
        for (rank, process) in blocks.ranks(me).zip(processes) {
            residents[(seats[rank.index()].home - own.start) as usize].push((rank, process));
        }
        let office = PostOffice::new(blocks.count());
        let domain = |(index, (region, residents)): (u32, (R, Vec<(Rank, P)>))| {
            Mutex::new(Domain::new(index, region, residents, self.jitter))
        };
        let domains: Box<[_]> = own.clone().zip(regions.into_iter().zip(residents)).map(domain).collect();
        let commons = Commons::new(&domains, own.clone(), seats, &office, (epoch, self.workers), progress);
        let commons = commons.with_regions_elsewhere(gateway.is_some());
        let trail = std::thread::scope(|scope| {
            let crew = |me| Crew::new(&commons, me);
            let threads: Vec<_> = (1..self.workers)
                .map(|me| {
                    scope.spawn(move || {
                        crew(me).run();
                    })
                })
                .collect();
            let mut first = crew(0);
            first.stopwatch = self.is_timed.then(|| Stopwatch::new(own.len()));
            first.gateway = gateway;
            let trail = first.run();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            trail
        });
        (gather(domains, blocks, me), trail)
    }
}

/// What is left after a run.
pub struct RegionalRun<P: Process, R, E = <P as Process>::Error> {
    /// The processes, and how the run ended; of a member of a cluster, its own ones.
    pub run: Run<P, E>,
    /// The regions; of a member, its own ones.
    pub regions: Vec<R>,
    /// What was exchanged.
    pub crossings: Crossings,
    /// What the regions took, where that was to be timed.
    pub timing: Option<RegionalTiming>,
}

/// What is left after a run on a cluster, of a member.
pub type RegionalPart<P, R> = RegionalRun<P, R, Option<<P as Process>::Error>>;

/// What regions and their processes have told each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossings {
    /// Boundaries at which regions talked.
    pub boundaries: u64,
    /// Exchanges of letters by all regions at once.
    pub rounds: u64,
    /// Letters: tokens and mail.
    pub letters: u64,
}

/// A process met a conditional event, which regions that run on their own cannot order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unordered {
    /// The process; where several did in the same epoch, the one with the earliest event.
    pub rank: Rank,
    /// When the event was due.
    pub at: SimTime,
}

/// Where a process lives.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    home: RegionIndex,
    /// Its number among the processes of its region.
    place: u32,
}

/// What is left of the domains of a member.
struct Whole<P: Process, R> {
    fault: FirstFault<P::Error>,
    tally: RegionalTally,
    processes: Vec<P>,
    regions: Vec<R>,
}

/// Gives all processes seats in their regions; places are those of the processes of a member.
fn take_seats(blocks: &RegionBlocks, me: usize) -> Vec<Seat> {
    let own = blocks.regions(me);
    let mut taken = vec![0; own.len()];
    let seat = |&home: &RegionIndex| {
        let place = if own.contains(&home) {
            let next = &mut taken[(home - own.start) as usize];
            *next += 1;
            *next - 1
        } else {
            0
        };
        Seat { home, place }
    };
    blocks.homes().iter().map(seat).collect()
}

/// Puts the processes of all domains of a member back into their order.
fn gather<P: Process, R: Region<P>>(
    domains: Box<[Mutex<Domain<P, R>>]>,
    blocks: &RegionBlocks,
    me: usize,
) -> Whole<P, R> {
    let (mut fault, mut tally, mut conditional) = (FirstFault::none(), Tally::default(), None);
    let (mut residents, mut regions) = (Vec::new(), Vec::new());
    for domain in domains {
        let left = domain.into_inner().expect("no worker has panicked").finish();
        fault.merge(left.fault);
        tally.waiting.extend(left.waiting);
        tally.steps += left.steps;
        residents.push(left.processes.into_iter());
        regions.push(left.region);
        conditional = conditional.into_iter().chain(left.conditional).min();
    }
    tally.fault = fault.key();
    let first = blocks.regions(me).start;
    // The residents of a region are in the order of their ranks.
    let next = |rank: Rank| {
        let home = (blocks.homes()[rank.index()] - first) as usize;
        residents[home].next().expect("each process has one seat")
    };
    let processes = blocks.ranks(me).map(next).collect();
    Whole { fault, tally: RegionalTally { tally, conditional }, processes, regions }
}

fn last_clock<P: Process>(processes: &[P]) -> SimTime {
    processes.iter().map(Process::clock).max().unwrap_or_default()
}
