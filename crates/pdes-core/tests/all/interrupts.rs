//! Runs that are interrupted, and later runs that continue from there.

use std::convert::Infallible;

use pdes_core::{
    Cluster, Ending, Engine, Fault, Interrupt, LpId, Outbox, Pause, Process, Progress, SimDuration, SimTime,
    Turn, Wake,
};

/// Steps between two conditional events of a walker.
const EVENT_EVERY: u32 = 7;

/// Works through steps; every third waits for a token of the previous process of a ring, every seventh is a conditional event.
#[derive(Clone, Debug, PartialEq)]
struct Walker {
    me: u32,
    lps: u32,
    step: u32,
    steps: u32,
    has_sent: bool,
    arrived: Vec<SimTime>,
    taken: usize,
    clock: SimTime,
    /// Times of the conditional events, in the order in which they were granted.
    events: Vec<SimTime>,
    /// Step that fails, if one does.
    fails_at: Option<u32>,
}

impl Walker {
    fn advance(&mut self, picos: u64) {
        self.clock += SimDuration::from_picos(picos);
        (self.step, self.has_sent) = (self.step + 1, false);
    }

    /// Sends a token on, once a step; returns true if the token of the previous process has arrived.
    fn meet(&mut self, outbox: &mut Outbox<SimTime>) -> bool {
        if !std::mem::replace(&mut self.has_sent, true) {
            outbox.send(LpId::new((self.me + 1) % self.lps), self.clock + SimDuration::from_picos(3));
        }
        let Some(&at) = self.arrived.get(self.taken) else { return false };
        self.taken += 1;
        self.clock = self.clock.max(at);
        true
    }
}

impl Process for Walker {
    type Token = SimTime;
    type WorkRequest = Infallible;
    type Error = u32;

    fn deliver(&mut self, token: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<u32>> {
        self.arrived.push(token);
        Ok(if self.step.is_multiple_of(EVENT_EVERY) { Wake::No } else { Wake::Ready })
    }

    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<SimTime>) -> Result<Pause, Fault<u32>> {
        while self.step < self.steps {
            if self.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::OutOfSteps);
            }
            if self.fails_at == Some(self.step) {
                return Err(Fault { at: self.clock, order: u64::from(self.step), error: self.me });
            }
            if self.step.is_multiple_of(EVENT_EVERY) {
                if !std::mem::take(&mut turn.granted) {
                    return Ok(Pause::Conditional(self.clock));
                }
                self.events.push(self.clock);
            } else if self.step.is_multiple_of(3) && !self.meet(outbox) {
                return Ok(Pause::Blocked);
            }
            turn.steps -= 1;
            self.advance(u64::from(1 + self.me % 3));
        }
        Ok(Pause::Finished)
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

fn ring(lps: u32, steps: u32) -> Vec<Walker> {
    let walker = |me| Walker {
        me,
        lps,
        step: 0,
        steps,
        has_sent: false,
        arrived: Vec::new(),
        taken: 0,
        clock: SimTime::ZERO,
        events: Vec::new(),
        fails_at: None,
    };
    (0..lps).map(walker).collect()
}

/// Runs the processes to their end in runs that are interrupted as soon as possible; returns them, the ending and the number
/// of runs.
fn run_with_interrupts(engine: &Engine, mut processes: Vec<Walker>) -> (Vec<Walker>, Ending<u32>, u32) {
    let interrupt = Interrupt::default();
    interrupt.request();
    let engine = engine.clone().interrupted_by(interrupt);
    for runs in 1.. {
        let run = engine.run(processes);
        processes = run.processes;
        if run.ending != Ending::StoppedAtCheckpoint {
            return (processes, run.ending, runs);
        }
    }
    unreachable!("each leg comes further")
}

fn engines() -> impl Iterator<Item = Engine> {
    [1, 2, 3].into_iter().flat_map(|threads| {
        (0..4).map(move |seed| Engine::new(threads).jitter(seed)).chain([Engine::new(threads)])
    })
}

#[test]
fn interrupted_runs_add_up_to_the_whole_run() {
    let whole = Engine::new(1).run(ring(5, 200));
    assert_eq!(whole.ending, Ending::Completed);
    for engine in engines() {
        let (processes, ending, runs) = run_with_interrupts(&engine, ring(5, 200));
        assert_eq!((ending, runs > 5), (Ending::Completed, true), "{runs} runs");
        assert_eq!(processes, whole.processes);
    }
}

/// Members that are interrupted at different times, or not at all, stop together.
#[test]
fn interrupted_runs_of_several_members_add_up() {
    let whole = Engine::new(1).run(ring(7, 200));
    for (members, interrupted) in [(2, 2), (2, 1), (3, 3), (3, 2)] {
        let parts = Cluster::in_memory(members, |mut cluster| {
            let (me, interrupt) = (cluster.member(), Interrupt::default());
            if me < interrupted {
                interrupt.request();
            }
            let engine = Engine::new(2).interrupted_by(interrupt);
            let all = ring(7, 200);
            let lps = engine.lps(me, members, 7);
            let mut processes: Vec<_> = lps.iter().map(|lp| all[lp.index()].clone()).collect();
            for runs in 1.. {
                let run = engine.run_distributed(&mut cluster, 7, processes, &Progress::new(2)).unwrap();
                processes = run.processes;
                if !matches!(run.ending, Ending::StoppedAtCheckpoint) {
                    assert!(matches!(run.ending, Ending::Completed), "{:?}", run.ending);
                    return (processes, runs);
                }
            }
            unreachable!("each leg comes further")
        });
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert!(parts.iter().all(|(_, runs)| *runs == parts[0].1 && *runs > 5), "{members} members");
        let found: Vec<Walker> = parts.into_iter().flat_map(|(processes, _)| processes).collect();
        assert_eq!(found, whole.processes, "{members} members, {interrupted} of them interrupted");
    }
}

/// A suspended process may fail before the one that is known to fail.
#[test]
fn the_first_failure_is_found_whichever_process_was_suspended() {
    let failing = || {
        let mut processes = ring(5, 200);
        (processes[0].fails_at, processes[4].fails_at) = (Some(141), Some(140));
        processes
    };
    let whole = Engine::new(1).run(failing());
    assert!(matches!(whole.ending, Ending::Failed(..)), "{:?}", whole.ending);
    for engine in engines() {
        assert_eq!(run_with_interrupts(&engine, failing()).1, whole.ending);
    }
}

#[test]
fn interrupted_runs_find_the_same_deadlock() {
    let stuck = || {
        let mut processes = ring(3, 60);
        processes[1].steps = 40;
        processes
    };
    let whole = Engine::new(1).run(stuck());
    assert!(matches!(whole.ending, Ending::Deadlocked(_)), "{:?}", whole.ending);
    for engine in engines() {
        assert_eq!(run_with_interrupts(&engine, stuck()).1, whole.ending);
    }
}

/// A counter has an event at 5 ps; a sender moves to 5 ps in a step, and then sends it a token.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meeting {
    Counter { tokens: u32, counted: Option<u32> },
    Sender { clock: SimTime },
}

impl Process for Meeting {
    type Token = ();
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn deliver(&mut self, (): (), _: &mut Outbox<()>) -> Result<Wake, Fault<Infallible>> {
        if let Self::Counter { tokens, .. } = self {
            *tokens += 1;
        }
        Ok(Wake::No)
    }

    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<()>) -> Result<Pause, Fault<Infallible>> {
        let meeting = SimTime::from_picos(5);
        match self {
            Self::Counter { counted: Some(_), .. } => {}
            Self::Counter { .. } if !turn.granted => return Ok(Pause::Conditional(meeting)),
            Self::Counter { tokens, counted } => *counted = Some(*tokens),
            Self::Sender { clock } if *clock < meeting => {
                turn.steps -= 1;
                *clock = meeting;
                return Ok(Pause::OutOfSteps);
            }
            Self::Sender { .. } => outbox.send(LpId::new(0), ()),
        }
        Ok(Pause::Finished)
    }

    fn clock(&self) -> SimTime {
        if let Self::Sender { clock } = self { *clock } else { SimTime::ZERO }
    }
}

/// A suspended process may still send at its instant. The worker of the counter has not done a step then: it may continue.
#[test]
fn an_event_comes_after_suspended_processes_of_its_instant() {
    let interrupt = Interrupt::default();
    interrupt.request();
    let sender = Meeting::Sender { clock: SimTime::ZERO };
    let processes = vec![Meeting::Counter { tokens: 0, counted: None }, sender];
    let stopped = Engine::new(2).interrupted_by(interrupt).run(processes);
    assert_eq!(stopped.ending, Ending::StoppedAtCheckpoint);
    let run = Engine::new(2).run(stopped.processes);
    assert_eq!(run.processes[0], Meeting::Counter { tokens: 1, counted: Some(1) });
}

/// A run whose interrupt is not requested ends as usual.
#[test]
fn an_interrupt_without_request_has_no_effect() {
    let engine = Engine::new(2).interrupted_by(Interrupt::default());
    let run = engine.run(ring(4, 100));
    assert_eq!(run.ending, Ending::Completed);
}
