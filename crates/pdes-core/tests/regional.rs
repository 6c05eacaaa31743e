//! Processes that live in regions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pdes_core::{
    Fault, Filed, Outbox, Pause, Process, Progress, Rank, Region, RegionIndex, RegionalEngine, RegionalRun,
    SimDuration, SimTime, Turn, Unordered, Wake,
};

const EPOCH: u64 = 1000;

/// What a process asks of its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// To be served for so long, after all who came before.
    Serve(u64),
    /// To bring a token to a process, after so long.
    Carry { to: Rank, home: RegionIndex, after: u64 },
}

/// A counter with a queue, and carriers to other regions.
struct Town {
    me: RegionIndex,
    events: BinaryHeap<Reverse<(SimTime, u64, Rank)>>,
    filed: u64,
    free_at: SimTime,
    /// Tokens that leave at the next boundary, and those that have come at this one.
    leaving: Vec<(RegionIndex, Parcel)>,
    coming: Vec<Parcel>,
    now: SimTime,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parcel {
    at: SimTime,
    from: Rank,
    to: Rank,
}

impl Town {
    fn new(me: RegionIndex) -> Self {
        let (events, leaving, coming) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { me, events, filed: 0, free_at: SimTime::ZERO, leaving, coming, now: SimTime::ZERO, rounds: 0 }
    }

    fn plan(&mut self, at: SimTime, rank: Rank) {
        self.filed += 1;
        self.events.push(Reverse((at, self.filed, rank)));
    }
}

impl Region<Citizen> for Town {
    type Mail = Parcel;
    const CONVERSATIONS: u32 = 1;

    fn file(&mut self, filed: Filed<Order>, _: &mut Vec<(RegionIndex, Parcel)>) {
        let Filed { at, from, order, .. } = filed;
        match order {
            Order::Serve(picos) => {
                self.free_at = at.max(self.free_at) + SimDuration::from_picos(picos);
                self.plan(self.free_at, from);
            }
            Order::Carry { to, home, after } if home == self.me => {
                self.plan(at + SimDuration::from_picos(after), to);
            }
            Order::Carry { to, home, after } => {
                let at = at + SimDuration::from_picos(after.max(EPOCH));
                self.leaving.push((home, Parcel { at, from, to }));
            }
        }
    }

    fn next(&mut self) -> Option<SimTime> {
        self.events.peek().map(|&Reverse((at, ..))| at)
    }

    fn advance(&mut self, outbox: &mut Outbox<SimTime, Order>) -> Result<(), (Rank, Fault<&'static str>)> {
        let Some(Reverse((at, _, rank))) = self.events.pop() else { return Ok(()) };
        assert!(at >= self.now);
        self.now = at;
        outbox.send(rank, at);
        Ok(())
    }

    fn receive(&mut self, mail: Parcel) {
        self.coming.push(mail);
    }

    fn next_boundary(&self) -> Option<SimTime> {
        let next = (self.now.as_picos() / EPOCH + 1) * EPOCH;
        (!self.leaving.is_empty()).then(|| SimTime::from_picos(next))
    }

    fn converse(&mut self, boundary: SimTime, _: u32, round: u32, mail: &mut Vec<(RegionIndex, Parcel)>) {
        self.rounds = self.rounds.max(round);
        self.now = self.now.max(boundary);
        mail.append(&mut self.leaving);
    }

    fn enter(&mut self, boundary: SimTime) {
        self.coming.sort_unstable();
        for Parcel { at, to, .. } in std::mem::take(&mut self.coming) {
            assert!(at >= boundary);
            self.plan(at, to);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Order(Order),
    /// Tells a process its clock, directly.
    Tell(Rank),
    /// Waits for a token.
    Await,
    Fail,
}

struct Citizen {
    program: Vec<Step>,
    next: usize,
    clock: SimTime,
    tokens: Vec<SimTime>,
    seen: Vec<SimTime>,
}

impl Process for Citizen {
    type Token = SimTime;
    type Order = Order;
    type Error = &'static str;

    fn deliver(&mut self, at: SimTime, _: &mut Outbox<SimTime, Order>) -> Result<Wake, Fault<&'static str>> {
        self.tokens.push(at);
        Ok(Wake::Ready)
    }

    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<SimTime, Order>,
    ) -> Result<Pause, Fault<&'static str>> {
        loop {
            let Some(&step) = self.program.get(self.next) else { return Ok(Pause::Finished) };
            if self.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::TurnOver);
            }
            match step {
                Step::Order(order) => outbox.file(self.clock, 0, order),
                Step::Tell(to) => outbox.send(to, self.clock + SimDuration::from_picos(EPOCH)),
                Step::Await => {
                    // Which token came first is not for a process to see: it takes the one that lies first.
                    if self.tokens.is_empty() {
                        return Ok(Pause::Blocked);
                    }
                    let at = self.tokens.remove(0);
                    self.clock = self.clock.max(at);
                    self.seen.push(at);
                }
                Step::Fail => return Err(Fault { at: self.clock, order: 0, error: "failed" }),
            }
            self.next += 1;
            turn.steps -= 1;
        }
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

/// Ends of all citizens, what they saw, and how it ended.
type Answer = (Vec<(SimTime, Vec<SimTime>)>, String, u64);

fn run(programs: &[Vec<Step>], homes: &[RegionIndex], workers: usize, jitter: Option<u64>) -> Answer {
    let citizen = |program: &Vec<Step>| {
        let (tokens, seen) = (Vec::new(), Vec::new());
        Citizen { program: program.clone(), next: 0, clock: SimTime::ZERO, tokens, seen }
    };
    let regions = homes.iter().max().map_or(0, |&last| last + 1);
    let engine = RegionalEngine::new(workers);
    let engine = jitter.into_iter().fold(engine, RegionalEngine::jitter);
    let done = engine.run(
        SimDuration::from_picos(EPOCH),
        programs.iter().map(citizen).collect(),
        homes,
        (0..regions).map(Town::new).collect(),
        &Progress::new(workers),
    );
    let RegionalRun { run, regions: towns, .. } = done.unwrap();
    assert!(towns.iter().all(|town| town.rounds <= 1));
    let ends = run.processes.into_iter().map(|citizen| (citizen.clock, citizen.seen)).collect();
    (ends, format!("{:?}", run.ending), run.steps)
}

/// Every citizen orders a service and waits for it, again and again; now and then it sends a token to one that waits for it.
fn bustle() -> (Vec<Vec<Step>>, Vec<RegionIndex>) {
    let homes: Vec<RegionIndex> = (0..24).map(|rank| rank % 5).collect();
    let mut programs = vec![Vec::new(); 24];
    for round in 0..40_u64 {
        for (rank, program) in (0..).zip(&mut programs) {
            let length = 1 + (round * 7919 + rank * 104_729) % 577;
            program.extend([Step::Order(Order::Serve(length)), Step::Await]);
        }
        let (from, to) = ((round * 5 % 24) as usize, (round * 11 + 7) as usize % 24);
        if from != to {
            let receiver = Rank::new(to as u32);
            let step = match round % 2 {
                0 => Step::Order(Order::Carry { to: receiver, home: homes[to], after: 300 + round }),
                _ => Step::Tell(receiver),
            };
            programs[from].push(step);
            programs[to].push(Step::Await);
        }
    }
    (programs, homes)
}

#[test]
fn any_number_of_workers_gives_the_same_answer() {
    let (programs, homes) = bustle();
    let expected = run(&programs, &homes, 1, None);
    assert_eq!(expected.1, "Completed");
    for workers in [1, 2, 3, 7] {
        for jitter in [None, Some(1), Some(2)] {
            assert_eq!(run(&programs, &homes, workers, jitter), expected, "{workers} workers, {jitter:?}");
        }
    }
}

#[test]
fn a_service_takes_turns_within_a_region_only() {
    let program = vec![Step::Order(Order::Serve(10)), Step::Await];
    let (ends, ..) = run(&vec![program; 4], &[0, 0, 1, 1], 2, None);
    assert_eq!(ends.iter().map(|(end, _)| end.as_picos()).collect::<Vec<_>>(), [10, 20, 10, 20]);
}

#[test]
fn a_token_crosses_regions_at_its_time() {
    let carry = Step::Order(Order::Carry { to: Rank::new(1), home: 1, after: 2500 });
    let (ends, ending, _) = run(&[vec![carry], vec![Step::Await, Step::Await]], &[0, 1], 2, None);
    assert_eq!((ends[1].0.as_picos(), ending.as_str()), (2500, "Stalled([Rank(1)])"));
}

#[test]
fn the_earliest_failure_is_reported() {
    let late = vec![Step::Order(Order::Serve(1500)), Step::Await, Step::Fail];
    let early = vec![Step::Order(Order::Serve(1200)), Step::Await, Step::Fail];
    let forever = vec![Step::Order(Order::Serve(1_000_000)), Step::Await];
    for workers in [1, 2, 3] {
        let (ends, ending, _) =
            run(&[late.clone(), early.clone(), forever.clone()], &[0, 1, 2], workers, None);
        assert!(ending.contains("Failed(Rank(1)"), "{ending}");
        assert_eq!(ends[2].0, SimTime::ZERO);
    }
}

#[test]
fn idle_epochs_cost_nothing() {
    let long = u64::MAX / 4;
    let program = vec![Step::Order(Order::Serve(long)), Step::Await, Step::Tell(Rank::new(1))];
    let (ends, ending, _) = run(&[program, vec![Step::Await]], &[0, 1], 2, None);
    assert_eq!((ends[1].0.as_picos(), ending.as_str()), (long + EPOCH, "Completed"));
}

#[test]
fn a_conditional_event_is_refused() {
    struct Curious;
    impl Process for Curious {
        type Token = SimTime;
        type Order = Order;
        type Error = &'static str;
        fn deliver(
            &mut self,
            _: SimTime,
            _: &mut Outbox<SimTime, Order>,
        ) -> Result<Wake, Fault<&'static str>> {
            Ok(Wake::No)
        }
        fn resume(
            &mut self,
            _: &mut Turn,
            _: &mut Outbox<SimTime, Order>,
        ) -> Result<Pause, Fault<&'static str>> {
            Ok(Pause::Conditional(SimTime::ZERO))
        }
        fn clock(&self) -> SimTime {
            SimTime::ZERO
        }
    }
    struct Void;
    impl Region<Curious> for Void {
        type Mail = ();
        const CONVERSATIONS: u32 = 0;
        fn file(&mut self, _: Filed<Order>, _: &mut Vec<(RegionIndex, ())>) {}
        fn next(&mut self) -> Option<SimTime> {
            None
        }
        fn advance(&mut self, _: &mut Outbox<SimTime, Order>) -> Result<(), (Rank, Fault<&'static str>)> {
            Ok(())
        }
        fn receive(&mut self, (): ()) {}
        fn next_boundary(&self) -> Option<SimTime> {
            None
        }
        fn converse(&mut self, _: SimTime, _: u32, _: u32, _: &mut Vec<(RegionIndex, ())>) {}
        fn enter(&mut self, _: SimTime) {}
    }
    let epoch = SimDuration::from_picos(1);
    let done = RegionalEngine::new(2).run(epoch, vec![Curious], &[0], vec![Void, Void], &Progress::new(2));
    assert_eq!(done.err(), Some(Unordered { rank: Rank::new(0), at: SimTime::ZERO }));
}
