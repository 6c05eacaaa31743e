//! Processes that share a resource in time order.

use pdes_core::{
    Ending, Fault, LpId, OrderedEngine, Outbox, Pause, Process, Progress, Region, SimDuration, SimTime,
    SubmittedWork, Turn, Wake,
};

/// A counter where processes queue: each is served for ten picoseconds, in the order of arrival.
#[derive(Default)]
struct Counter {
    /// Time of completion and process of each customer.
    queue: Vec<(SimTime, LpId)>,
    free_at: SimTime,
    served: Vec<LpId>,
}

const SERVICE: SimDuration = SimDuration::from_picos(10);

impl Region<Customer> for Counter {
    type Message = ();

    fn submit(&mut self, SubmittedWork { at, from, .. }: SubmittedWork<()>) {
        let end = at.max(self.free_at) + SERVICE;
        self.free_at = end;
        self.queue.push((end, from));
    }

    fn next_event_time(&mut self) -> Option<SimTime> {
        self.queue.first().map(|&(at, _)| at)
    }

    fn advance(&mut self, outbox: &mut Outbox<SimTime, ()>) -> Result<(), (LpId, Fault<&'static str>)> {
        let (at, lp) = self.queue.remove(0);
        self.served.push(lp);
        if lp.get() == 99 {
            return Err((lp, Fault { at, order: 0, error: "the counter is closed" }));
        }
        outbox.send(lp, at);
        Ok(())
    }
}

/// A step of a customer's program.
#[derive(Clone, Copy)]
enum Step {
    /// Lets this much time pass \[ps\].
    Walk(u64),
    /// Submits work to the counter and waits for it.
    Queue,
    /// Records, at a conditional event, how often it was served before.
    Look,
    /// Waits for somebody who never comes.
    Wait,
    Fail,
    /// Queues in the past.
    Cheat,
    /// Decides outside what it does next.
    Leave,
}

struct Customer {
    me: LpId,
    program: Vec<Step>,
    next: usize,
    clock: SimTime,
    served: u32,
    seen: Vec<u32>,
    granted: bool,
}

impl Customer {
    fn new(me: u32, program: &[Step]) -> Self {
        let program = program.to_vec();
        let (clock, seen) = (SimTime::ZERO, Vec::new());
        Self { me: LpId::new(me), program, next: 0, clock, served: 0, seen, granted: false }
    }
}

impl Process for Customer {
    type Token = SimTime;
    type WorkRequest = ();
    type Error = &'static str;

    fn deliver(&mut self, at: SimTime, _: &mut Outbox<SimTime, ()>) -> Result<Wake, Fault<&'static str>> {
        self.clock = self.clock.max(at);
        self.served += 1;
        Ok(Wake::Ready)
    }

    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<SimTime, ()>,
    ) -> Result<Pause, Fault<&'static str>> {
        self.granted = turn.granted;
        loop {
            let Some(&step) = self.program.get(self.next) else { return Ok(Pause::Finished) };
            if self.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            match step {
                Step::Look if !std::mem::take(&mut self.granted) => {
                    return Ok(Pause::Conditional(self.clock));
                }
                Step::Look => self.seen.push(self.served),
                Step::Walk(picos) => self.clock += SimDuration::from_picos(picos),
                Step::Fail => {
                    let error = "failed";
                    return Err(Fault { at: self.clock, order: u64::from(self.me.get()), error });
                }
                Step::Cheat => outbox.submit(SimTime::ZERO, 0, ()),
                Step::Queue | Step::Wait | Step::Leave => {}
            }
            self.next += 1;
            match step {
                Step::Leave => return Ok(Pause::Outside),
                Step::Queue => {
                    outbox.submit(self.clock, 0, ());
                    return Ok(Pause::Blocked);
                }
                Step::Wait => return Ok(Pause::Blocked),
                _ => {}
            }
        }
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

struct Outcome {
    ends: Vec<u64>,
    seen: Vec<Vec<u32>>,
    served: Vec<u32>,
    ending: Ending<&'static str>,
}

fn run(programs: &[&[Step]], jitter: Option<u64>) -> Outcome {
    let customers = programs.iter().enumerate();
    let customers = customers.map(|(me, program)| Customer::new(me as u32, program)).collect();
    let mut counter = Counter::default();
    let engine = OrderedEngine::default();
    let engine = jitter.map_or(engine.clone(), |seed| engine.jitter(seed));
    let run = engine.run(customers, &mut counter, &Progress::new(1));
    Outcome {
        ends: run.processes.iter().map(|customer| customer.clock.as_picos()).collect(),
        seen: run.processes.iter().map(|customer| customer.seen.clone()).collect(),
        served: counter.served.iter().map(|lp| lp.get()).collect(),
        ending: run.ending,
    }
}

/// Process 1 arrives at 3 and is served until 13, process 0 arrives at 5 and is served until 23; process 2 arrives with process 0
/// and comes after it.
#[test]
fn orders_are_carried_out_in_the_order_of_time_then_rank() {
    use Step::{Queue, Walk};
    for jitter in [None, Some(1), Some(2), Some(3)] {
        let outcome = run(&[&[Walk(5), Queue], &[Walk(3), Queue, Walk(1)], &[Walk(5), Queue]], jitter);
        assert_eq!(outcome.ending, Ending::Completed);
        assert_eq!(outcome.served, [1, 0, 2]);
        assert_eq!(outcome.ends, [23, 14, 33]);
    }
}

/// Work of those that decide outside what they do next comes in the order of time and process, too: nothing happens before.
#[test]
fn processes_that_are_outside_are_waited_for() {
    use Step::{Leave, Queue, Walk};
    for jitter in [None, Some(1), Some(2), Some(3)] {
        let programs: [&[Step]; 3] =
            [&[Leave, Walk(5), Leave, Queue], &[Walk(3), Leave, Queue, Leave, Walk(1)], &[Walk(5), Queue]];
        let outcome = run(&programs, jitter);
        assert_eq!(outcome.ending, Ending::Completed);
        assert_eq!(outcome.served, [1, 0, 2]);
        assert_eq!(outcome.ends, [23, 14, 33]);
    }
}

/// Process 0 is served until 10. A look at 9 sees nothing; one at 10 sees it, because the arbiter comes first.
#[test]
fn the_arbiter_comes_before_a_conditional_event_of_the_same_instant() {
    use Step::{Look, Queue, Walk};
    let outcome = run(&[&[Queue, Look], &[Walk(9), Look, Walk(1), Queue]], None);
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.seen, [vec![1], vec![0]]);
    assert_eq!(outcome.ends, [10, 20]);
}

#[test]
fn who_waits_for_nobody_stalls() {
    let outcome = run(&[&[Step::Queue], &[Step::Wait], &[Step::Walk(7)]], None);
    assert_eq!(outcome.ending, Ending::Deadlocked(vec![LpId::new(1)]));
}

/// Process 1 runs into its failure at 50 before process 0 meets the one at 20 in simulated time.
#[test]
fn the_earliest_failure_is_reported() {
    use Step::{Fail, Queue, Walk};
    for jitter in [None, Some(1), Some(2), Some(3)] {
        let outcome = run(&[&[Walk(10), Queue, Fail], &[Walk(50), Fail]], jitter);
        let fault = Fault { at: SimTime::from_picos(20), order: 0, error: "failed" };
        assert_eq!(outcome.ending, Ending::Failed(LpId::new(0), fault));
    }
}

#[test]
fn a_failure_of_the_arbiter_ends_the_run() {
    let mut programs: Vec<&[Step]> = vec![&[]; 99];
    programs.push(&[Step::Queue]);
    let outcome = run(&programs, None);
    let fault = Fault { at: SimTime::from_picos(10), order: 0, error: "the counter is closed" };
    assert_eq!(outcome.ending, Ending::Failed(LpId::new(99), fault));
}

#[test]
#[should_panic(expected = "before the present of 0.000000000010 s")]
fn work_in_the_past_panics() {
    run(&[&[Step::Queue, Step::Cheat]], None);
}
