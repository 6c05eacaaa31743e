//! Clusters: failures of members, and several runs of one cluster. The tests that run networks under all schedules check that
//! results do not depend on the number of members.

use crate::network::catalogue::{COMPUTE, one_of_each, ring};
use crate::network::schedule::{Network, Schedule, guarded};
use crate::network::station::{Log, Op, Phase};
use std::convert::Infallible;

use pdes_core::{
    Cluster, ClusterError, Ending, Engine, Fault, LpId, Outbox, Pause, Process, Progress, RunAhead,
    RunParameters, SimDuration, SimTime, Turn, Wake,
};
use serde::{Deserialize, Serialize};

fn member_left(member: usize, message: Option<&str>) -> ClusterError {
    ClusterError::MemberLeft { member, message: message.map(str::to_owned) }
}

/// A number of laps of a nanosecond that takes longer than any test.
const FOR_DAYS: u64 = 1 << 50;

#[test]
fn one_cluster_serves_many_runs() {
    guarded(|| {
        let networks = one_of_each();
        let expected: Vec<_> = networks.iter().map(|(_, network)| network.run(&Engine::new(1))).collect();
        let parts = Cluster::in_memory(3, |mut cluster| {
            for ((name, network), expected) in networks.iter().zip(&expected) {
                for schedule in Schedule::of(3, 2).step_by(7) {
                    network.check_part(&mut cluster, &schedule, expected, name);
                }
            }
        });
        assert!(parts.iter().all(Result::is_ok));
    });
}

#[test]
fn a_panic_ends_all_members_and_is_passed_on_by_its_own() {
    guarded(|| {
        for panicking in [0, 3, 5] {
            let idle = |me: u32| vec![Op::Commit { after: 10 }, Op::Receive { from: (me + 1) % 6 }];
            let mut network = Network::of((0..6).map(idle));
            network.programs[panicking][0].ops = vec![Op::Compute(1), Op::Panic];
            network.programs[1] = vec![Phase { ops: vec![Op::Compute(1_000)], laps: FOR_DAYS }];
            let parts = Cluster::in_memory(3, |mut cluster| {
                network.run_part(&Engine::new(2), &mut cluster, &Log::default()).map(|run| run.ending)
            });
            let message = format!("station {panicking} panics");
            for (member, part) in parts.into_iter().enumerate() {
                match part {
                    Ok(result) => assert_eq!(result, Err(member_left(panicking / 2, Some(&message)))),
                    Err(panic) => {
                        assert_eq!(member, panicking / 2);
                        assert_eq!(*panic.downcast::<String>().expect("a message"), message);
                    }
                }
            }
        }
    });
}

#[test]
fn a_member_that_leaves_early_ends_the_run() {
    guarded(|| {
        let parts = Cluster::in_memory(3, |mut cluster| {
            if cluster.member() == 1 {
                return None;
            }
            let network = ring(6, 3, 10);
            let first = network.run_part(&Engine::new(1), &mut cluster, &Log::default());
            let second = network.run_part(&Engine::new(1), &mut cluster, &Log::default());
            Some([first, second].map(|result| result.map(|run| run.ending)))
        });
        let missed = || Err(member_left(1, None));
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert_eq!(parts, [Some([missed(), missed()]), None, Some([missed(), missed()])]);
    });
}

#[test]
fn a_member_that_leaves_after_the_run_does_no_harm() {
    let parts = Cluster::in_memory(4, |mut cluster| {
        let run = ring(6, 3, 10).run_part(&Engine::new(1), &mut cluster, &Log::default());
        drop(cluster);
        run.map(|run| run.ending)
    });
    assert!(parts.into_iter().all(|part| part.expect("no panic") == Ok(Ending::Completed)));
}

#[test]
fn members_with_different_parameters_get_an_error() {
    guarded(|| {
        let parts = Cluster::in_memory(2, |mut cluster| {
            let network = ring(6 + cluster.member() as u32, 3, 10);
            network.run_part(&Engine::new(1), &mut cluster, &Log::default()).map(|run| run.ending)
        });
        let terms = |lps| RunParameters { lps, workers: 1, token_bytes: 32 };
        let mismatch = |member, theirs, ours| ClusterError::Mismatch {
            member,
            theirs: terms(theirs),
            ours: terms(ours),
        };
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert_eq!(parts, [Err(mismatch(1, 7, 6)), Err(mismatch(0, 6, 7))]);
    });
}

#[test]
fn a_window_bounds_the_tokens_that_wait_on_two_members() {
    // A token per nanosecond, for a consumer that is ten times as busy.
    let mut consume = vec![Op::Receive { from: 0 }];
    consume.resize(10, Op::Compute(0));
    let produce = vec![Op::Compute(COMPUTE), Op::Send { to: 1, latency: 0 }];
    let network = Network::repeated(100_000, [produce, consume]);
    for jitter in [None, Some(1), Some(2)] {
        let run_ahead = RunAhead::Window(SimDuration::from_picos(100 * COMPUTE));
        let schedule = Schedule { members: 2, workers: 1, run_ahead, batch: 256, jitter, shuffle: false };
        let outcome = network.run_in(&schedule);
        assert_eq!(outcome.ending, Ending::Completed);
        // The producer runs at most 17 windows of 101 tokens past its lower bound: 16, and the one by which it raises its
        // horizon. A message of an idle consumer raises the bound to the producer's own clock when it arrives. The last one
        // from a consumer that is idle at a clock C may be written before tokens arrive and be sent after. By then the
        // consumer has read all that left before its message before that, which therefore raises the bound to at most C + 17
        // windows; the last one raises it to C + 34, and the producer stops at C + 51. Later messages have the clock of a
        // busy consumer.
        let peak = outcome.peaks[1];
        assert!(peak <= 51 * 101, "{peak} tokens wait with {schedule:?}");
    }
}

#[test]
fn more_tokens_than_the_credits_get_through() {
    guarded(|| {
        // 13 MB of tokens in each direction, with no bound on run-ahead: more than credits and backlogs hold.
        let flood = 400_000;
        let program = |me: u32| {
            let phase = |op, laps| Phase { ops: vec![op], laps };
            let send = phase(Op::Send { to: 1 - me, latency: 5 }, flood);
            vec![send, phase(Op::Receive { from: 1 - me }, flood)]
        };
        let network = Network { programs: (0..2).map(program).collect() };
        let run_ahead = RunAhead::Window(SimDuration::from_picos(u64::MAX));
        for batch in [1, 256] {
            let outcome = network.run_in(&Schedule {
                members: 2,
                workers: 1,
                run_ahead,
                batch,
                jitter: None,
                shuffle: false,
            });
            assert_eq!(outcome.ending, Ending::Completed);
            assert!(outcome.states.iter().all(|state| state.steps == 2 * flood && state.unread() == 0));
        }
    });
}

#[test]
fn collective_calls_work_between_runs() {
    guarded(|| {
        let sizes = [0, 1, 3_900, 3_901, 1_000_000];
        let parts = Cluster::in_memory(3, |mut cluster| {
            let me = cluster.member();
            for size in sizes {
                let mine = |member: usize| vec![member as u8; size + member];
                let all = cluster.gather(mine(me)).expect("all members are there");
                let expected: Vec<_> = if me == 0 { (0..3).map(mine).collect() } else { Vec::new() };
                assert!(all == expected, "{size} bytes of each");
                let run = ring(6, 3, 10).run_part(&Engine::new(1), &mut cluster, &Log::default());
                assert_eq!(run.map(|run| run.ending), Ok(Ending::Completed));
                assert!(cluster.broadcast(Some(mine(me))) == Ok(mine(0)), "{size} bytes for all");
            }
            assert_eq!(cluster.first_failure(true), Ok(None));
            cluster.first_failure(me == 0)
        });
        assert!(parts.into_iter().all(|part| part.expect("no panic") == Ok(Some(1))));
    });
}

#[test]
fn a_member_that_leaves_fails_collective_calls() {
    guarded(|| {
        let parts = Cluster::in_memory(3, |mut cluster| match cluster.member() {
            1 => Ok(None),
            _ => cluster.first_failure(true),
        });
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert_eq!(parts, [Err(member_left(1, None)), Ok(None), Err(member_left(1, None))]);
    });
}

#[test]
fn undecodable_values_end_the_call_for_all() {
    guarded(|| {
        let parts = Cluster::in_memory(2, |mut cluster| match cluster.member() {
            0 => cluster.gather(true).map(drop),
            _ => cluster.gather(7_u8).and_then(|_| cluster.broadcast::<bool>(None).map(drop)),
        });
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert_eq!(parts, [Err(ClusterError::Undecodable { receiver: 0 }), Err(member_left(0, None))]);
    });
}

/// A token that can be encoded but not decoded.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
struct Foreign;

impl From<Foreign> for u8 {
    fn from(Foreign: Foreign) -> Self {
        0
    }
}

impl TryFrom<u8> for Foreign {
    type Error = &'static str;

    fn try_from(_: u8) -> Result<Self, &'static str> {
        Err("foreign")
    }
}

/// Process 0 sends such a token to each other process, and all wait.
struct Sender(u32);

impl Process for Sender {
    type Token = Foreign;
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn deliver(&mut self, _: Foreign, _: &mut Outbox<Foreign>) -> Result<Wake, Fault<Infallible>> {
        Ok(Wake::No)
    }

    fn resume(&mut self, _: &mut Turn, outbox: &mut Outbox<Foreign>) -> Result<Pause, Fault<Infallible>> {
        if self.0 == 0 {
            (1..6).for_each(|to| outbox.send(LpId::new(to), Foreign));
        }
        Ok(Pause::Blocked)
    }

    fn clock(&self) -> SimTime {
        SimTime::ZERO
    }
}

#[test]
fn undecodable_tokens_end_the_run_for_all() {
    guarded(|| {
        let parts = Cluster::in_memory(2, |mut cluster| {
            let engine = Engine::new(2);
            let senders = engine.lps(cluster.member(), 2, 6).into_iter().map(|lp| Sender(lp.get()));
            engine
                .run_distributed(&mut cluster, 6, senders.collect(), &Progress::new(2))
                .map(|run| run.ending)
        });
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no panic")).collect();
        assert_eq!(parts, [Err(member_left(1, None)), Err(ClusterError::Undecodable { receiver: 1 })]);
    });
}
