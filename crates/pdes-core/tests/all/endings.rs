//! The endings of runs: completed, deadlocked, failed, or a panic; on any number of workers.

use std::panic::AssertUnwindSafe;

use crate::network::schedule::{Network, Schedule, guarded};
use crate::network::station::{Failure, Op, Phase};
use pdes_core::{Ending, Engine, Fault, LpId, SimTime};

/// A number of laps of a nanosecond that takes longer than any test.
const FOR_DAYS: u64 = 1 << 50;

fn failed(lp: u32, picos: u64, error: Failure) -> Ending<Failure> {
    let order = match error {
        Failure::PoisonedBy(from) => u64::from(from),
        Failure::Programmed => 0,
    };
    Ending::Failed(LpId::new(lp), Fault { at: SimTime::from_picos(picos), order, error })
}

fn stalled(lps: &[u32]) -> Ending<Failure> {
    Ending::Deadlocked(lps.iter().copied().map(LpId::new).collect())
}

fn receive(from: u32) -> Op {
    Op::Receive { from }
}

fn send(to: u32) -> Op {
    Op::Send { to, latency: 0 }
}

/// Programs of two processes that run for long in wall-clock time and for no simulated time.
fn slow_pair(one: u32, other: u32, exchanges: usize) -> [Vec<Op>; 2] {
    [[send(other), receive(other)].repeat(exchanges), [receive(one), send(one)].repeat(exchanges)]
}

#[test]
fn stalled_processes_are_listed_and_no_others() {
    // Ranks 1 and 4 wait for each other, 2 for 1, 6 for a process that has finished, 7 for an answer that it did not
    // ask for; 0, 3 and 5 finish, after they have exchanged tokens.
    let outcome = Network::of([
        vec![Op::Commit { after: 5 }, send(3), receive(3)],
        vec![receive(4), send(4)],
        vec![receive(1)],
        vec![receive(0), send(0), Op::Compute(9)],
        vec![receive(1), send(1)],
        vec![Op::Compute(100)],
        vec![Op::Compute(1), receive(5)],
        vec![Op::Answer { from: 0 }],
    ])
    .run_everywhere();
    assert_eq!(outcome.ending, stalled(&[1, 2, 4, 6, 7]));
}

#[test]
fn the_first_failure_in_simulated_time_counts_whenever_it_happens() {
    // Process 0 fails at once, at 9000; process 6 after long work, at 700; processes 3 and 5 at 500 after longer work.
    let [mut three, mut four] = slow_pair(3, 4, 200);
    three.extend([Op::Compute(500), Op::Fail]);
    four.push(send(5));
    let [mut six, seven] = slow_pair(6, 7, 200);
    six.extend([Op::Compute(700), Op::Fail]);
    let outcome = Network::of([
        vec![Op::Compute(9_000), Op::Fail],
        vec![receive(2)],
        vec![Op::Compute(1)],
        three,
        four,
        vec![receive(4), Op::Compute(500), Op::Fail],
        six,
        seven,
    ])
    .run_everywhere();
    assert_eq!(outcome.ending, failed(3, 500, Failure::Programmed));
}

#[test]
fn a_failure_stops_processes_that_run_free() {
    guarded(|| {
        let mut network = Network::repeated(FOR_DAYS, vec![vec![Op::Compute(1_000)]; 4]);
        let [mut five, six] = slow_pair(4, 5, 20);
        five.extend([Op::Compute(1_000_000), Op::Fail]);
        network.programs.extend([five, six].map(|ops| vec![Phase { ops, laps: 1 }]));
        for schedule in Schedule::all() {
            let outcome = network.run_in(&schedule);
            assert_eq!(outcome.ending, failed(4, 1_000_000, Failure::Programmed), "under {schedule:?}");
        }
    });
}

#[test]
fn a_token_that_cannot_be_taken_in_does_not_hide_an_earlier_failure() {
    // The poison arrives at 1000, most often before process 1 has run to its own failure at 500.
    let [mut two, three] = slow_pair(2, 3, 200);
    two.push(send(1));
    let poison = vec![Op::Poison { to: 1, latency: 1_000 }];
    let victim = |at| vec![receive(2), Op::Compute(at), Op::Fail];
    let outcome = Network::of([poison.clone(), victim(500), two.clone(), three.clone()]).run_everywhere();
    assert_eq!(outcome.ending, failed(1, 500, Failure::Programmed));
    let outcome = Network::of([poison, victim(1_500), two, three]).run_everywhere();
    assert_eq!(outcome.ending, failed(1, 1_000, Failure::PoisonedBy(0)));
}

#[test]
fn a_token_that_cannot_be_taken_in_leaves_what_happens_before_it() {
    // Until the poison arrives at 1000, process 1 continues: it sends a token at 300 that lets process 0 fail at 400, or waits for
    // its event at 600 and fails then.
    let poison = Op::Poison { to: 1, latency: 1_000 };
    let sender = vec![Op::Compute(300), send(0), Op::Compute(5_000)];
    let outcome =
        Network::of([vec![poison, receive(1), Op::Compute(100), Op::Fail], sender]).run_everywhere();
    assert_eq!(outcome.ending, failed(0, 400, Failure::Programmed));
    let waiter = vec![Op::Commit { after: 600 }, Op::Fail];
    let outcome = Network::of([vec![poison], waiter]).run_everywhere();
    assert_eq!(outcome.ending, failed(1, 600, Failure::Programmed));
}

#[test]
fn a_failed_process_still_answers() {
    // Process 1 fails at 500; before that, at 100, process 0 asks it, and fails at 300 after the answer.
    let [mut zero, two] = slow_pair(0, 2, 200);
    let ask = Op::Ask { to: 1, latency: 0 };
    zero.extend([Op::Compute(100), ask, Op::Answer { from: 1 }, Op::Compute(200), Op::Fail]);
    let outcome = Network::of([zero, vec![Op::Compute(500), Op::Fail], two]).run_everywhere();
    assert_eq!(outcome.ending, failed(0, 300, Failure::Programmed));
}

#[test]
fn a_panic_is_passed_on_whichever_worker_it_hits() {
    guarded(|| {
        let idle = |me: u32| vec![Op::Commit { after: 10 }, receive((me + 1) % 6)];
        for panicking in [0, 3, 5] {
            let mut network = Network::of((0..6).map(idle));
            network.programs[panicking][0].ops = vec![Op::Compute(1), Op::Panic];
            network.programs[1] = vec![Phase { ops: vec![Op::Compute(1_000)], laps: FOR_DAYS }];
            for engine in [1, 2, 3, 7].map(Engine::new) {
                let run = std::panic::catch_unwind(AssertUnwindSafe(|| network.run(&engine)));
                let message = run.expect_err("a panic").downcast::<String>().expect("a message");
                assert_eq!(*message, format!("station {panicking} panics"));
            }
        }
    });
}

#[test]
fn workers_without_processes_do_no_harm() {
    let nothing = Network::default().run_everywhere();
    assert_eq!((nothing.ending, nothing.states.len()), (Ending::Completed, 0));
    let one = Network::of([vec![Op::Compute(5), Op::Commit { after: 5 }, send(0), receive(0)]]);
    let one = one.run_everywhere();
    assert_eq!((one.ending, one.states[0].clock), (Ending::Completed, SimTime::from_picos(10)));
    let two = Network::of([vec![receive(1), Op::Fail], vec![Op::Compute(7), send(0)]]);
    for workers in [4, 16] {
        assert_eq!(two.run(&Engine::new(workers)).ending, failed(0, 7, Failure::Programmed));
    }
}

#[test]
#[should_panic(expected = "an engine needs at least one worker")]
fn an_engine_without_workers_is_refused() {
    let _ = Engine::new(0);
}
