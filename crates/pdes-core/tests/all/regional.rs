//! The regional engine: processes that belong to regions.

use std::ops::Range;

use pdes_core::{
    Cluster, ClusterError, Ending, EventQueue, ExchangeCounts, Fault, LpId, Outbox, Pause, Process, Progress,
    Region, RegionBlocks, RegionIndex, RegionalEngine, RegionalMemberRun, RegionalRun, Run, RunParameters,
    SimDuration, SimTime, SubmittedWork, Turn, UnorderedConditional, Wake,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

const EPOCH: u64 = 1000;

/// Work that a process submits to its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// A service of this length \[ps\], first come, first served.
    Serve(u64),
    /// A token to a process, after this delay \[ps\].
    Carry { to: LpId, home: RegionIndex, after: u64 },
}

/// A region with a first-come, first-served queue that also carries tokens to other regions.
struct TestRegion {
    me: RegionIndex,
    events: EventQueue<LpId>,
    free_at: SimTime,
    /// Tokens that leave at the next boundary (`leaving`), those that leave now (`sent`), and those that have arrived (`coming`).
    leaving: Vec<(RegionIndex, Parcel)>,
    sent: Vec<(RegionIndex, Parcel)>,
    coming: Vec<Parcel>,
    now: SimTime,
    rounds: u32,
    /// Number of exchanges in which the region has taken part.
    exchanges: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Parcel {
    at: SimTime,
    from: LpId,
    to: LpId,
}

impl TestRegion {
    fn new(me: RegionIndex) -> Self {
        let (events, leaving, sent, coming) = (EventQueue::default(), Vec::new(), Vec::new(), Vec::new());
        let (free_at, now) = (SimTime::ZERO, SimTime::ZERO);
        Self { me, events, free_at, leaving, sent, coming, now, rounds: 0, exchanges: 0 }
    }
}

impl Region<TestProcess> for TestRegion {
    type Message = Parcel;
    const MAX_ROUNDS: &'static [u32] = &[u32::MAX];

    fn submit(&mut self, filed: SubmittedWork<Order>) {
        let SubmittedWork { at, from, request: order, .. } = filed;
        match order {
            Order::Serve(picos) => {
                self.free_at = at.max(self.free_at) + SimDuration::from_picos(picos);
                self.events.add(self.free_at, from);
            }
            Order::Carry { to, home, after } if home == self.me => {
                self.events.add(at + SimDuration::from_picos(after), to);
            }
            Order::Carry { to, home, after } => {
                let at = at + SimDuration::from_picos(after.max(EPOCH));
                self.leaving.push((home, Parcel { at, from, to }));
            }
        }
    }

    fn next_event_time(&mut self) -> Option<SimTime> {
        self.events.next()
    }

    fn advance(&mut self, outbox: &mut Outbox<SimTime, Order>) -> Result<(), (LpId, Fault<&'static str>)> {
        let Some((at, lp)) = self.events.pop_before(SimTime::MAX) else { return Ok(()) };
        assert!(at >= self.now);
        self.now = at;
        outbox.send(lp, at);
        Ok(())
    }

    fn receive(&mut self, mail: Parcel) {
        self.coming.push(mail);
    }

    fn next_boundary(&self) -> Option<SimTime> {
        let next = (self.now.as_picos() / EPOCH + 1) * EPOCH;
        (!self.leaving.is_empty()).then(|| SimTime::from_picos(next))
    }

    fn take_messages(&mut self, messages: &mut Vec<(RegionIndex, Parcel)>) {
        messages.append(&mut self.sent);
    }

    fn exchange_round(&mut self, epoch: Range<SimTime>, _: u32, round: u32) {
        self.rounds = self.rounds.max(round);
        self.exchanges += u32::from(round == 0);
        self.now = self.now.max(epoch.start);
        self.sent.append(&mut self.leaving);
    }

    fn begin_epoch(&mut self, epoch: Range<SimTime>) {
        self.coming.sort_unstable();
        for Parcel { at, to, .. } in std::mem::take(&mut self.coming) {
            assert!(at >= epoch.start);
            self.events.add(at, to);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Order(Order),
    /// Sends its clock to a process as a token.
    Tell(LpId),
    /// Waits for a token.
    Await,
    Checkpoint,
    Fail,
    Panic,
}

struct TestProcess {
    program: Vec<Step>,
    next: usize,
    clock: SimTime,
    tokens: Vec<SimTime>,
    seen: Vec<SimTime>,
}

impl Process for TestProcess {
    type Token = SimTime;
    type WorkRequest = Order;
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
                return Ok(Pause::OutOfSteps);
            }
            match step {
                Step::Order(order) => outbox.submit(self.clock, 0, order),
                Step::Tell(to) => outbox.send(to, self.clock + SimDuration::from_picos(EPOCH)),
                Step::Await => {
                    // A process must not depend on the order of arrival: it takes the token with the least time.
                    if self.tokens.is_empty() {
                        return Ok(Pause::Blocked);
                    }
                    let at = self.tokens.remove(0);
                    self.clock = self.clock.max(at);
                    self.seen.push(at);
                }
                Step::Checkpoint => {
                    (self.next, turn.steps) = (self.next + 1, turn.steps - 1);
                    return Ok(Pause::AtCheckpoint);
                }
                Step::Fail => return Err(Fault { at: self.clock, order: 0, error: "failed" }),
                Step::Panic => panic!("a citizen panics"),
            }
            self.next += 1;
            turn.steps -= 1;
        }
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

/// Final clocks and tokens of all processes, the ending, the number of steps, and the exchange counts.
type Answer = (Vec<(SimTime, Vec<SimTime>)>, String, u64, ExchangeCounts);

fn citizen(program: &[Step]) -> TestProcess {
    let (tokens, seen) = (Vec::new(), Vec::new());
    TestProcess { program: program.to_owned(), next: 0, clock: SimTime::ZERO, tokens, seen }
}

fn engine(workers: usize, jitter: Option<u64>) -> RegionalEngine {
    jitter.into_iter().fold(RegionalEngine::new(workers), RegionalEngine::jitter)
}

fn regions(homes: &[RegionIndex]) -> u32 {
    homes.iter().max().map_or(0, |&last| last + 1)
}

fn run(programs: &[Vec<Step>], homes: &[RegionIndex], workers: usize, jitter: Option<u64>) -> Answer {
    let (engine, regions) = (engine(workers, jitter), regions(homes));
    let done = engine.run(
        SimDuration::from_picos(EPOCH),
        programs.iter().map(|program| citizen(program)).collect(),
        homes,
        (0..regions).map(TestRegion::new).collect(),
        &Progress::new(workers),
    );
    let RegionalRun { run, regions: towns, exchange_counts: crossings, .. } = done.unwrap();
    assert!(towns.iter().all(|town| town.rounds <= 1));
    let ends = run.processes.into_iter().map(|citizen| (citizen.clock, citizen.seen)).collect();
    (ends, format!("{:?}", run.ending), run.steps, crossings)
}

/// The part of a member of a cluster.
fn run_part(
    cluster: &mut Cluster,
    engine: &RegionalEngine,
    programs: &[Vec<Step>],
    homes: &[RegionIndex],
) -> Result<RegionalMemberRun<TestProcess, TestRegion>, ClusterError> {
    let (me, members) = (cluster.member(), cluster.members());
    let blocks = RegionBlocks::new(homes.to_vec(), regions(homes), members);
    let citizens = blocks.lps(me).map(|lp| citizen(&programs[lp.index()])).collect();
    let towns = blocks.regions(me).map(TestRegion::new).collect();
    // As many as any engine of these tests has workers.
    let (epoch, progress) = (SimDuration::from_picos(EPOCH), Progress::new(3));
    let done = engine.run_distributed(cluster, epoch, citizens, &blocks, towns, &progress)?;
    Ok(done.expect("no citizen asks who comes first"))
}

/// As [`run`], on members of a cluster with `workers` workers each. Only the member of a failed process has the error.
fn run_on(
    members: usize,
    (programs, homes): (&[Vec<Step>], &[RegionIndex]),
    workers: usize,
    jitter: Option<u64>,
) -> Answer {
    let parts = Cluster::in_memory(members, |mut cluster| {
        run_part(&mut cluster, &engine(workers, jitter), programs, homes).unwrap()
    });
    let blocks = RegionBlocks::new(homes.to_vec(), regions(homes), members);
    let mut ends = vec![(SimTime::ZERO, Vec::new()); programs.len()];
    let mut answers = Vec::new();
    for (member, part) in parts.into_iter().enumerate() {
        let RegionalRun { run, exchange_counts: crossings, .. } = part.unwrap();
        let ending = match run.ending {
            Ending::Failed(lp, Fault { at, order, error }) => {
                assert_eq!(error.is_some(), blocks.lps(member).any(|own| own == lp));
                Ending::Failed(lp, Fault { at, order, error: "failed" })
            }
            Ending::Completed => Ending::Completed,
            Ending::Deadlocked(lps) => Ending::Deadlocked(lps),
            Ending::StoppedAtCheckpoint => Ending::StoppedAtCheckpoint,
        };
        for (lp, citizen) in blocks.lps(member).zip(run.processes) {
            ends[lp.index()] = (citizen.clock, citizen.seen);
        }
        answers.push((format!("{ending:?}"), run.steps, crossings));
    }
    let (ending, steps, crossings) = answers[0].clone();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "all members know the same: {answers:?}");
    (ends, ending, steps, crossings)
}

/// Returns programs in which every process repeatedly submits a service and waits for it, and now and then sends a token to
/// one that waits for it.
fn busy_programs() -> (Vec<Vec<Step>>, Vec<RegionIndex>) {
    let homes: Vec<RegionIndex> = (0..24).map(|lp| lp % 5).collect();
    let mut programs = vec![Vec::new(); 24];
    for round in 0..40_u64 {
        for (lp, program) in (0..).zip(&mut programs) {
            let length = 1 + (round * 7919 + lp * 104_729) % 577;
            program.extend([Step::Order(Order::Serve(length)), Step::Await]);
        }
        let (from, to) = ((round * 5 % 24) as usize, (round * 11 + 7) as usize % 24);
        if from != to {
            let receiver = LpId::new(to as u32);
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
    let (programs, homes) = busy_programs();
    let expected = run(&programs, &homes, 1, None);
    assert_eq!(expected.1, "Completed");
    assert!(expected.3.messages > 0 && expected.3.boundaries > 0, "{:?}", expected.3);
    for workers in [1, 2, 3, 7] {
        for jitter in [None, Some(1), Some(2)] {
            assert_eq!(run(&programs, &homes, workers, jitter), expected, "{workers} workers, {jitter:?}");
        }
    }
}

#[test]
fn any_number_of_members_gives_the_same_answer() {
    let (programs, homes) = busy_programs();
    let expected = run(&programs, &homes, 1, None);
    for members in [1, 2, 3, 4, 7] {
        for (workers, jitter) in [(1, None), (1, Some(1)), (2, None), (3, Some(2))] {
            let found = run_on(members, (&programs, &homes), workers, jitter);
            assert_eq!(found, expected, "{members} members, {workers} workers, {jitter:?}");
        }
    }
}

/// Runs the part of a member from cut to cut; returns the number of cuts, and their instants.
fn run_part_in_cuts(
    cluster: &mut Cluster,
    workers: usize,
    (programs, homes): (&[Vec<Step>], &[RegionIndex]),
) -> (Vec<SimTime>, RegionalMemberRun<TestProcess, TestRegion>) {
    let (me, members) = (cluster.member(), cluster.members());
    let blocks = RegionBlocks::new(homes.to_vec(), regions(homes), members);
    let mut processes: Vec<_> = blocks.lps(me).map(|lp| citizen(&programs[lp.index()])).collect();
    let mut towns: Vec<_> = blocks.regions(me).map(TestRegion::new).collect();
    let (mut engine, mut cuts, mut steps) = (engine(workers, Some(3)), Vec::new(), 0);
    let mut counts = ExchangeCounts::default();
    loop {
        let (epoch, progress) = (SimDuration::from_picos(EPOCH), Progress::new(workers));
        let done = engine.run_distributed(cluster, epoch, processes, &blocks, towns, &progress).unwrap();
        let RegionalRun { run, regions, cut, exchange_counts, timing } = done.unwrap();
        steps += run.steps;
        counts.boundaries += exchange_counts.boundaries;
        counts.rounds += exchange_counts.rounds;
        counts.messages += exchange_counts.messages;
        let Some(cut) = cut else {
            let run = Run { steps, ..run };
            return (cuts, RegionalRun { run, regions, cut, exchange_counts: counts, timing });
        };
        assert!(matches!(run.ending, Ending::StoppedAtCheckpoint));
        cuts.push(cut);
        (processes, towns, engine) = (run.processes, regions, engine.continuing_from(cut));
    }
}

#[test]
fn runs_from_cut_to_cut_add_up() {
    let (mut programs, homes) = busy_programs();
    let whole = run(&programs, &homes, 1, None);
    for (place, lp) in [(5, 0), (30, 0), (31, 0), (32, 7), (60, 11)] {
        programs[lp].insert(place, Step::Checkpoint);
    }
    let mut first: Option<Vec<SimTime>> = None;
    for (members, workers) in [(1, 1), (1, 3), (2, 2), (3, 1)] {
        let parts = Cluster::in_memory(members, |mut cluster| {
            run_part_in_cuts(&mut cluster, workers, (&programs, &homes))
        });
        let blocks = RegionBlocks::new(homes.clone(), regions(&homes), members);
        for (member, part) in parts.into_iter().enumerate() {
            let (cuts, RegionalRun { run, exchange_counts, .. }) = part.unwrap();
            assert!(cuts.len() > 2 && cuts.is_sorted(), "{cuts:?}");
            assert_eq!(*first.get_or_insert(cuts.clone()), cuts, "{members} members, {workers} workers");
            assert!(matches!(run.ending, Ending::Completed));
            assert_eq!((run.steps, exchange_counts), (whole.2 + 5, whole.3));
            for (lp, citizen) in blocks.lps(member).zip(run.processes) {
                assert_eq!((citizen.clock, citizen.seen), whole.0[lp.index()]);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Interaction {
    Serve(u64),
    Carry {
        to: usize,
        after: u64,
    },
    Tell(usize),
    /// Waits for something that may never come.
    Await,
    Fail,
}

fn interactions() -> impl Strategy<Value = Vec<(usize, Interaction)>> {
    let deed = prop_oneof![
        40 => (1..2500_u64).prop_map(Interaction::Serve),
        20 => (0..12_usize, 1..3000_u64).prop_map(|(to, after)| Interaction::Carry { to, after }),
        20 => (0..12_usize).prop_map(Interaction::Tell),
        1 => Just(Interaction::Await),
        1 => Just(Interaction::Fail),
    ];
    proptest::collection::vec((0..12_usize, deed), 0..120)
}

proptest! {
    /// Random programs, also those that deadlock or fail, give the same answer on any number of members.
    #[test]
    fn random_programs_give_the_same_on_members(
        deeds in interactions(),
        homes in proptest::collection::vec(0..6_u32, 12),
        members in 1..5_usize,
        workers in 1..4_usize,
    ) {
        let mut programs = vec![Vec::new(); 12];
        for (lp, deed) in deeds {
            let steps = match deed {
                Interaction::Serve(picos) => vec![Step::Order(Order::Serve(picos)), Step::Await],
                Interaction::Carry { to, after } => {
                    let home = homes[to];
                    vec![Step::Order(Order::Carry { to: LpId::new(to as u32), home, after })]
                }
                Interaction::Tell(to) => vec![Step::Tell(LpId::new(to as u32))],
                Interaction::Await => vec![Step::Await],
                Interaction::Fail => vec![Step::Fail],
            };
            programs[lp].extend(steps);
            if let Interaction::Carry { to, .. } | Interaction::Tell(to) = deed {
                programs[to].push(Step::Await);
            }
        }
        let expected = run(&programs, &homes, 1, None);
        prop_assert_eq!(run_on(members, (&programs, &homes), workers, None), expected);
    }
}

#[test]
fn a_panic_ends_all_members() {
    for panicking in [0, 4, 9] {
        let (mut programs, homes) = busy_programs();
        programs[panicking].push(Step::Panic);
        let blocks = RegionBlocks::new(homes.clone(), regions(&homes), 3);
        let its_member = (0..3).find(|&member| blocks.lps(member).any(|lp| lp.index() == panicking));
        let parts = Cluster::in_memory(3, |mut cluster| {
            run_part(&mut cluster, &engine(2, None), &programs, &homes).map(|done| done.run.ending)
        });
        for (member, part) in parts.into_iter().enumerate() {
            match part {
                Ok(result) => {
                    let message = Some("a citizen panics".to_owned());
                    assert_eq!(
                        result,
                        Err(ClusterError::MemberLeft { member: its_member.unwrap(), message })
                    );
                }
                Err(panic) => {
                    assert_eq!(Some(member), its_member);
                    assert_eq!(*panic.downcast::<&str>().unwrap(), "a citizen panics");
                }
            }
        }
    }
}

#[test]
fn a_member_that_leaves_ends_the_run() {
    let (programs, homes) = busy_programs();
    let parts = Cluster::in_memory(3, |mut cluster| {
        let me = cluster.member();
        (me != 1)
            .then(|| run_part(&mut cluster, &engine(2, None), &programs, &homes).map(|done| done.run.steps))
    });
    let missed = || Some(Err(ClusterError::MemberLeft { member: 1, message: None }));
    let parts: Vec<_> = parts.into_iter().map(Result::unwrap).collect();
    assert_eq!(parts, [missed(), None, missed()]);
}

#[test]
fn members_with_different_parameters_get_an_error() {
    let (programs, homes) = busy_programs();
    let parts = Cluster::in_memory(2, |mut cluster| {
        let workers = 1 + cluster.member();
        run_part(&mut cluster, &engine(workers, None), &programs, &homes).map(|done| done.run.steps)
    });
    let terms = |workers| RunParameters { lps: 24, workers, token_bytes: 16 };
    let mismatch = |member: usize| ClusterError::Mismatch {
        member,
        theirs: terms(member as u32 + 1),
        ours: terms(2 - member as u32),
    };
    let parts: Vec<_> = parts.into_iter().map(Result::unwrap).collect();
    assert_eq!(parts, [Err(mismatch(1)), Err(mismatch(0))]);
}

/// One cluster serves collective calls and several runs in turn.
#[test]
fn one_cluster_serves_many_runs() {
    let (programs, homes) = busy_programs();
    let (.., steps, _) = run(&programs, &homes, 1, None);
    let parts = Cluster::in_memory(3, |mut cluster| {
        for _ in 0..5 {
            let done = run_part(&mut cluster, &engine(1, None), &programs, &homes).unwrap();
            assert_eq!(done.run.steps, steps);
            assert_eq!(cluster.first_failure(true), Ok(None));
        }
    });
    assert!(parts.iter().all(Result::is_ok));
}

#[test]
fn a_service_takes_turns_within_a_region_only() {
    let program = vec![Step::Order(Order::Serve(10)), Step::Await];
    let (ends, ..) = run(&vec![program; 4], &[0, 0, 1, 1], 2, None);
    assert_eq!(ends.iter().map(|(end, _)| end.as_picos()).collect::<Vec<_>>(), [10, 20, 10, 20]);
}

#[test]
fn a_token_crosses_regions_at_its_time() {
    let carry = Step::Order(Order::Carry { to: LpId::new(1), home: 1, after: 2500 });
    let (ends, ending, ..) = run(&[vec![carry], vec![Step::Await, Step::Await]], &[0, 1], 2, None);
    assert_eq!((ends[1].0.as_picos(), ending.as_str()), (2500, "Deadlocked([LpId(1)])"));
}

#[test]
fn the_earliest_failure_is_reported() {
    let late = vec![Step::Order(Order::Serve(1500)), Step::Await, Step::Fail];
    let early = vec![Step::Order(Order::Serve(1200)), Step::Await, Step::Fail];
    let forever = vec![Step::Order(Order::Serve(1_000_000)), Step::Await];
    for workers in [1, 2, 3] {
        let (ends, ending, ..) =
            run(&[late.clone(), early.clone(), forever.clone()], &[0, 1, 2], workers, None);
        assert!(ending.contains("Failed(LpId(1)"), "{ending}");
        assert_eq!(ends[2].0, SimTime::ZERO);
    }
}

#[test]
fn idle_epochs_cost_nothing() {
    let long = u64::MAX / 4;
    let program = vec![Step::Order(Order::Serve(long)), Step::Await, Step::Tell(LpId::new(1))];
    let (ends, ending, ..) = run(&[program, vec![Step::Await]], &[0, 1], 2, None);
    assert_eq!((ends[1].0.as_picos(), ending.as_str()), (long + EPOCH, "Completed"));
}

/// The first region sends one token at the first boundary, the other two send each other two more at the next ones.
#[test]
fn regions_without_work_take_no_part_in_exchanges() {
    let carry = |to: u32| Step::Order(Order::Carry { to: LpId::new(to), home: to, after: 0 });
    let programs = [vec![carry(1)], vec![Step::Await, carry(2), Step::Await], vec![Step::Await, carry(1)]];
    let done = RegionalEngine::new(1).run(
        SimDuration::from_picos(EPOCH),
        programs.iter().map(|program| citizen(program)).collect(),
        &[0, 1, 2],
        (0..3).map(TestRegion::new).collect(),
        &Progress::new(1),
    );
    let RegionalRun { regions, exchange_counts, .. } = done.unwrap();
    assert_eq!(exchange_counts.boundaries, 3);
    assert_eq!(regions.iter().map(|region| region.exchanges).collect::<Vec<_>>(), [1, 1, 1]);
}

/// A process that asks who comes first.
struct Curious;
impl Process for Curious {
    type Token = SimTime;
    type WorkRequest = Order;
    type Error = &'static str;
    fn deliver(&mut self, _: SimTime, _: &mut Outbox<SimTime, Order>) -> Result<Wake, Fault<&'static str>> {
        Ok(Wake::No)
    }
    fn resume(&mut self, _: &mut Turn, _: &mut Outbox<SimTime, Order>) -> Result<Pause, Fault<&'static str>> {
        Ok(Pause::Conditional(SimTime::ZERO))
    }
    fn clock(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// A region without events.
struct Void;
impl Region<Curious> for Void {
    type Message = ();
    fn submit(&mut self, _: SubmittedWork<Order>) {}
    fn next_event_time(&mut self) -> Option<SimTime> {
        None
    }
    fn advance(&mut self, _: &mut Outbox<SimTime, Order>) -> Result<(), (LpId, Fault<&'static str>)> {
        Ok(())
    }
}

#[test]
fn a_conditional_event_is_refused() {
    let epoch = SimDuration::from_picos(1);
    let done = RegionalEngine::new(2).run(epoch, vec![Curious], &[0], vec![Void, Void], &Progress::new(2));
    let unordered = UnorderedConditional { lp: LpId::new(0), at: SimTime::ZERO };
    assert_eq!(done.err(), Some(unordered));
    let parts = Cluster::in_memory(2, |mut cluster| {
        let me = cluster.member();
        let blocks = RegionBlocks::new(vec![0, 1], 2, 2);
        let (engine, progress) = (RegionalEngine::new(1), Progress::new(1));
        let processes = blocks.lps(me).map(|_| Curious).collect();
        let done = engine.run_distributed(&mut cluster, epoch, processes, &blocks, vec![Void], &progress);
        (done.unwrap().err(), cluster.first_failure(true))
    });
    assert!(parts.into_iter().all(|part| part.unwrap() == (Some(unordered), Ok(None))));
}

#[test]
#[should_panic(expected = "an engine with 2 workers has the progress counters of 1")]
fn each_worker_needs_its_counters() {
    let epoch = SimDuration::from_picos(1);
    let _ = RegionalEngine::new(2).run(epoch, vec![Curious], &[0], vec![Void, Void], &Progress::new(1));
}
