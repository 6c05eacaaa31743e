//! An engine for processes that share a resource which is cut into regions.

mod crew;
mod domain;
mod meeting;
mod post;
mod timing;

use std::sync::Mutex;

use crate::engine::first_fault::FirstFault;
use crate::{Fault, Outbox, Process, Progress, Rank, Run, SimDuration, SimTime};
use crew::{Commons, Crew};
use domain::Domain;
use post::PostOffice;
use timing::Stopwatch;

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
    /// How many conversations regions have at a boundary, one after the other.
    const CONVERSATIONS: u32;

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

/// Runs processes and their regions on threads, epoch by epoch.
///
/// Within an epoch each region runs on its own, on whichever thread has nothing else to do; at a boundary all threads meet
/// a few times. Epochs in which nothing happens are skipped.
///
/// # Determinism
/// The result is the same for any number of workers and any jitter: what is exchanged is ordered by the region that
/// sends it.
///
/// # Cost
/// As of [`OrderedEngine`](crate::OrderedEngine) for what happens in a region; at each boundary that matters, about four meetings of all
/// workers, of a microsecond each where every worker has a core of its own.
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
        assert!(epoch > SimDuration::ZERO, "an epoch lasts for a picosecond at least");
        assert_eq!(processes.len(), homes.len(), "each process lives in a region");
        let count = regions.len();
        let mut seats = vec![Seat::default(); processes.len()];
        let mut residents: Vec<Vec<(Rank, P)>> = (0..count).map(|_| Vec::new()).collect();
        for ((rank, process), &home) in (0..).zip(processes).zip(homes) {
            let residents = &mut residents[home as usize];
            seats[rank as usize] = Seat { home, place: residents.len() as u32 };
            residents.push((Rank::new(rank), process));
        }
        let office = PostOffice::new(count);
        let domain = |(index, (region, residents)): (u32, (R, Vec<(Rank, P)>))| {
            Mutex::new(Domain::new(index, region, residents, self.jitter))
        };
        let domains: Box<[_]> = (0..).zip(regions.into_iter().zip(residents)).map(domain).collect();
        let commons = Commons::new(&domains, &seats, &office, epoch, self.workers, progress);
        let (crossings, stopwatch) = std::thread::scope(|scope| {
            let crew = |me| Crew::new(&commons, me);
            let threads: Vec<_> = (1..self.workers).map(|me| scope.spawn(move || crew(me).run())).collect();
            let mut first = crew(0);
            first.stopwatch = self.is_timed.then(|| Stopwatch::new(count));
            let crossings = first.run();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
            crossings
        });
        let timing = stopwatch.map(Stopwatch::timing);
        Ok(RegionalRun { timing, ..gather(domains, &seats, crossings, progress)? })
    }
}

/// What is left after a run.
pub struct RegionalRun<P: Process, R> {
    /// The processes, and how the run ended.
    pub run: Run<P>,
    /// The regions.
    pub regions: Vec<R>,
    /// What was exchanged.
    pub crossings: Crossings,
    /// What the regions took, where that was to be timed.
    pub timing: Option<RegionalTiming>,
}

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

/// Puts the processes of all domains back into their order.
fn gather<P: Process, R: Region<P>>(
    domains: Box<[Mutex<Domain<P, R>>]>,
    seats: &[Seat],
    crossings: Crossings,
    progress: &Progress,
) -> Result<RegionalRun<P, R>, Unordered> {
    let mut fault = FirstFault::none();
    let (mut waiting, mut steps) = (Vec::new(), 0);
    let (mut processes, mut regions) = (Vec::new(), Vec::new());
    let mut conditional = None;
    for domain in domains {
        let left = domain.into_inner().expect("no worker has panicked").finish();
        fault.merge(left.fault);
        waiting.extend(left.waiting);
        steps += left.steps;
        processes.push(left.processes.into_iter());
        regions.push(left.region);
        conditional = conditional.into_iter().chain(left.conditional).min();
    }
    if let Some((at, rank)) = conditional {
        return Err(Unordered { rank, at });
    }
    // The residents of a region are in the order of their ranks.
    let next = |seat: &Seat| processes[seat.home as usize].next().expect("each process has one seat");
    let processes: Vec<P> = seats.iter().map(next).collect();
    let reached = processes.iter().map(Process::clock).max();
    progress.publish(0, steps, reached.unwrap_or_default());
    let run = Run { ending: fault.ending(waiting), processes, steps };
    Ok(RegionalRun { run, regions, crossings, timing: None })
}
