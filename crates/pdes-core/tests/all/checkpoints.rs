//! Runs that stop where processes are at checkpoints, and later runs that continue from there.

use std::convert::Infallible;

use pdes_core::{
    Cluster, Ending, Engine, Fault, LpId, Outbox, Pause, Process, Progress, SimDuration, SimTime, Turn, Wake,
};

/// Passes a token on to the next process of a ring a number of times, and pauses at a checkpoint after each.
#[derive(Clone, Debug, PartialEq)]
struct Passer {
    me: u32,
    lps: u32,
    left: u32,
    has_sent: bool,
    arrived: Vec<SimTime>,
    taken: usize,
    clock: SimTime,
    /// Time of a conditional event, until it is granted.
    event: Option<SimTime>,
    /// Number of rounds left when it was granted.
    granted: Option<u32>,
}

impl Process for Passer {
    type Token = SimTime;
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn deliver(&mut self, token: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Infallible>> {
        self.arrived.push(token);
        Ok(Wake::Ready)
    }

    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<SimTime>) -> Result<Pause, Fault<Infallible>> {
        if let Some(at) = self.event {
            if !turn.granted {
                return Ok(Pause::Conditional(at));
            }
            (self.event, self.granted, self.clock) = (None, Some(self.left), at);
        }
        if self.left == 0 {
            return Ok(Pause::Finished);
        }
        if !std::mem::replace(&mut self.has_sent, true) {
            let delay = SimDuration::from_picos(10 + u64::from(self.me));
            outbox.send(LpId::new((self.me + 1) % self.lps), self.clock + delay);
        }
        let Some(at) = self.arrived.get(self.taken) else { return Ok(Pause::Blocked) };
        self.clock = self.clock.max(*at);
        (self.taken, self.left, self.has_sent) = (self.taken + 1, self.left - 1, false);
        turn.steps -= 1;
        Ok(if self.left > 0 { Pause::AtCheckpoint } else { Pause::Finished })
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

fn ring(lps: u32, rounds: u32) -> Vec<Passer> {
    let passer = |me| Passer {
        me,
        lps,
        left: rounds,
        has_sent: false,
        arrived: Vec::new(),
        taken: 0,
        clock: SimTime::ZERO,
        event: None,
        granted: None,
    };
    (0..lps).map(passer).collect()
}

/// Runs the processes from checkpoint to checkpoint; returns them at the end, and the number of runs.
fn run(engine: &Engine, mut processes: Vec<Passer>) -> (Vec<Passer>, u32) {
    for runs in 1.. {
        let run = engine.run(processes);
        processes = run.processes;
        match run.ending {
            Ending::StoppedAtCheckpoint => {}
            ending => {
                assert_eq!(ending, Ending::Completed);
                return (processes, runs);
            }
        }
    }
    unreachable!("a run ends")
}

#[test]
fn a_run_ends_where_all_are_at_checkpoints() {
    let first = run(&Engine::new(1), ring(5, 4));
    assert_eq!(first.1, 4);
    // Each round the slowest neighbour counts: 14 ps from process 4 to process 0, and from there on.
    assert_eq!(first.0[0].clock.as_picos(), 14 + 13 + 12 + 11);
    for threads in [2, 3, 7] {
        for seed in 0..4 {
            assert_eq!(run(&Engine::new(threads).jitter(seed), ring(5, 4)), first, "{threads} threads");
        }
    }
}

/// The first of two processes is at checkpoints at 10, 21 and 31: an event at 15 comes after the first and before the second.
#[test]
fn conditional_events_and_checkpoints_keep_their_order() {
    let with_event = |picos| {
        let mut processes = ring(3, 4);
        processes[2].event = Some(SimTime::from_picos(picos));
        processes[0].lps = 2;
        processes[1].lps = 2;
        processes[2].left = 0;
        processes
    };
    for threads in [1, 2, 3] {
        let engine = Engine::new(threads);
        for (picos, expected) in [(5, 1), (11, 2), (15, 2), (25, 3), (99, 4)] {
            let (mut processes, mut granted_in) = (with_event(picos), None);
            for run_number in 1.. {
                let run = engine.run(processes);
                processes = run.processes;
                granted_in = granted_in.or(processes[2].granted.map(|_| run_number));
                if run.ending == Ending::Completed {
                    break;
                }
            }
            assert_eq!(granted_in, Some(expected), "an event at {picos} with {threads} threads");
        }
    }
}

#[test]
fn several_members_stop_at_checkpoints() {
    let expected = run(&Engine::new(1), ring(6, 5));
    for members in [2, 3] {
        let parts = Cluster::in_memory(members, |mut cluster| {
            let engine = Engine::new(2);
            let lps = engine.lps(cluster.member(), members, 6);
            let all = ring(6, 5);
            let mut processes: Vec<_> = lps.iter().map(|lp| all[lp.index()].clone()).collect();
            for runs in 1.. {
                let run = engine
                    .run_distributed(&mut cluster, 6, processes, &Progress::new(2))
                    .expect("no member fails");
                processes = run.processes;
                match run.ending {
                    Ending::StoppedAtCheckpoint => {}
                    ending => {
                        assert!(matches!(ending, Ending::Completed));
                        return (processes, runs);
                    }
                }
            }
            unreachable!("a run ends")
        });
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert!(parts.iter().all(|(_, runs)| *runs == expected.1), "{members} members");
        assert_eq!(parts.into_iter().flat_map(|(processes, _)| processes).collect::<Vec<_>>(), expected.0);
    }
}
