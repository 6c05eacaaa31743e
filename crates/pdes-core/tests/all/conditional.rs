//! Conditional events are granted in the order of (time, process), after all that happens before them.

use crate::network::schedule::Network;
use crate::network::station::Op;
use pdes_core::{Ending, LpId, SimTime};
use proptest::prelude::*;

fn event(picos: u64, lp: u32) -> (SimTime, LpId) {
    (SimTime::from_picos(picos), LpId::new(lp))
}

#[test]
fn events_come_in_the_order_of_time_and_rank() {
    // Ranks 0 to 8 have events at 3000, 2000, 1000, 3000, ..., and each one more at 5000.
    let first = |me: u32| 1_000 * u64::from(3 - me % 3);
    let program = |me| {
        let again = Op::Commit { after: 5_000 - first(me) - 10 };
        vec![Op::Commit { after: first(me) }, Op::Compute(10), again, Op::Compute(1)]
    };
    let outcome = Network::of((0..9).map(program)).run_everywhere();
    let by_hand = [
        [event(1_000, 2), event(1_000, 5), event(1_000, 8)],
        [event(2_000, 1), event(2_000, 4), event(2_000, 7)],
        [event(3_000, 0), event(3_000, 3), event(3_000, 6)],
    ];
    let expected: Vec<_> = by_hand.into_iter().flatten().chain((0..9).map(|me| event(5_000, me))).collect();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.log, expected);
}

#[test]
fn an_event_finds_all_tokens_that_were_sent_before_it() {
    // Three senders send at 100, 200, ..., 2000, some of them long before and some long after the events in
    // wall-clock time; 1050 is past ten of their tokens each, 2001 past all.
    let counter = vec![Op::Commit { after: 1_050 }, Op::Commit { after: 951 }];
    let sender = [Op::Compute(100), Op::Send { to: 0, latency: 40 }];
    let senders = (1..4).map(|_| sender.repeat(20));
    let outcome = Network::of([counter].into_iter().chain(senders)).run_everywhere();
    assert_eq!(outcome.states[0].censuses, [30, 60]);
}

#[test]
fn an_event_finds_tokens_that_earlier_events_gave_rise_to() {
    // Process 4 sends a token after its event at 500, and that goes by processes 3, 2 and 1 to process 0, 100 each. They send
    // at 500, 600, 700 and 800: process 0 finds nothing at 750, and the token at 900.
    let send = |to| Op::Send { to, latency: 100 };
    let relay = |me: u32| vec![Op::Receive { from: me + 1 }, send(me - 1)];
    let observer = vec![Op::Commit { after: 750 }, Op::Commit { after: 150 }, Op::Receive { from: 1 }];
    let source = vec![Op::Commit { after: 500 }, send(3)];
    let outcome = Network::of([observer, relay(1), relay(2), relay(3), source]).run_everywhere();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.states[0].censuses, [0, 1]);
    assert_eq!(outcome.log, [event(500, 4), event(750, 0), event(900, 0)]);
}

#[test]
fn equal_times_on_all_workers_go_round_by_rank() {
    let program = vec![Op::Compute(50), Op::Commit { after: 50 }];
    let outcome = Network::repeated(20, vec![program; 7]).run_everywhere();
    let expected: Vec<_> = (1..=20).flat_map(|lap| (0..7).map(move |lp| event(100 * lap, lp))).collect();
    assert_eq!(outcome.log, expected);
}

#[test]
fn a_process_may_have_many_events_at_one_instant() {
    // All events have one time, and no token lies between them: only the grants tell them apart.
    let program = |me| vec![Op::Commit { after: if me == 1 { 30 } else { 20 } }];
    let again = vec![Op::Commit { after: 0 }; 10];
    let outcome = Network::of((0..4).map(|me| [program(me), again.clone()].concat())).run_everywhere();
    let events = |at, me| std::iter::repeat_n(event(at, me), 11);
    let expected: Vec<_> =
        [(20, 0), (20, 2), (20, 3), (30, 1)].into_iter().flat_map(|(at, me)| events(at, me)).collect();
    assert_eq!(outcome.log, expected);
}

#[test]
fn events_past_a_failure_are_not_granted() {
    // Process 0 learns at 200 that it must fail at 300; the events of the others lie at 200, 300 and 400.
    let failing = vec![Op::Receive { from: 1 }, Op::Compute(100), Op::Fail];
    let source = vec![Op::Commit { after: 200 }, Op::Send { to: 0, latency: 0 }];
    let event_at = |after| vec![Op::Commit { after }];
    let outcome = Network::of([failing, source, event_at(300), event_at(400)]).run_everywhere();
    assert!(matches!(outcome.ending, Ending::Failed(..)));
    assert_eq!(outcome.log, [event(200, 1), event(300, 2)]);
}

/// One process: computations, each followed by a wait for an event or a token to the next process.
fn program(me: u32, size: u32, parts: &[(u64, Option<u64>)]) -> Vec<Op> {
    let deed = |after: Option<u64>| match after {
        Some(after) => Op::Commit { after },
        None => Op::Send { to: (me + 1) % size, latency: 10 },
    };
    parts.iter().flat_map(|&(compute, after)| [Op::Compute(compute), deed(after)]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_events_are_sorted(
        parts in prop::collection::vec(
            prop::collection::vec((0..300_u64, prop::option::of(1..300_u64)), 0..12),
            1..9,
        ),
    ) {
        let size = parts.len() as u32;
        let programs = parts.iter().zip(0..).map(|(parts, me)| program(me, size, parts));
        let outcome = Network::of(programs).run_everywhere();
        prop_assert_eq!(outcome.ending, Ending::Completed);
        // Nobody waits for a token: every event has a time of its own accord, and all times of a process differ.
        let mut sorted = outcome.log.clone();
        sorted.sort();
        prop_assert_eq!(&outcome.log, &sorted);
        let events = parts.iter().flatten().filter(|(_, after)| after.is_some()).count();
        prop_assert_eq!(outcome.log.len(), events);
    }
}

/// Process 1 sends at 300, process 2 at 100, process 3 at 200, latencies 50; process 0 takes them as they arrive, and answers each
/// before the next: process 2's second token, sent at 260 because the answer came at 210, overtakes that of process 1.
#[test]
fn tokens_of_any_process_come_as_they_arrive() {
    let send = |to, latency| Op::Send { to, latency };
    let observer = vec![Op::ReceiveAny, send(2, 60), Op::ReceiveAny, Op::ReceiveAny, Op::ReceiveAny];
    let lps = [
        observer,
        vec![Op::Compute(300), send(0, 50)],
        vec![Op::Compute(100), send(0, 50), Op::Receive { from: 0 }, Op::Compute(50), send(0, 40)],
        vec![Op::Compute(200), send(0, 50)],
    ];
    let outcome = Network::of(lps).run_everywhere();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.states[0].clock, SimTime::from_picos(350));
    // The order shows in the digest: the same tokens received by name.
    let named = [2, 3, 2, 1].map(|from| Op::Receive { from });
    let observer = vec![named[0], send(2, 60), named[1], named[2], named[3]];
    let by_name = Network::of([
        observer,
        vec![Op::Compute(300), send(0, 50)],
        vec![Op::Compute(100), send(0, 50), Op::Receive { from: 0 }, Op::Compute(50), send(0, 40)],
        vec![Op::Compute(200), send(0, 50)],
    ]);
    assert_eq!(outcome.states[0].digest, by_name.run_everywhere().states[0].digest);
}

#[test]
fn a_process_that_waits_for_any_token_in_vain_stalls() {
    let outcome = Network::of([vec![Op::ReceiveAny, Op::ReceiveAny], vec![Op::Send { to: 0, latency: 5 }]]);
    assert_eq!(outcome.run_everywhere().ending, Ending::Deadlocked(vec![LpId::new(0)]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Masters that serve whoever comes first: any schedule serves in the same order.
    #[test]
    fn masters_do_not_notice_the_schedule(
        works in prop::collection::vec(prop::collection::vec(1_u64..500, 1..6), 2..7),
        latency in 1_u64..40,
    ) {
        let tasks: usize = works.iter().map(Vec::len).sum();
        let master = [Op::ReceiveAny, Op::Compute(7)].repeat(tasks);
        let workers = works.iter().map(|works| {
            works.iter().flat_map(|&work| [Op::Compute(work), Op::Send { to: 0, latency }]).collect()
        });
        let outcome = Network::of([master].into_iter().chain(workers)).run_everywhere();
        prop_assert_eq!(outcome.ending, Ending::Completed);
    }
}
