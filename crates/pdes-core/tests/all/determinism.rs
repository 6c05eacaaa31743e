//! Process networks give the same final states under every schedule, and the states that a calculation by hand gives.

use crate::network::catalogue::{COMPUTE, interactions, programs_of, ring, wavefront};
use crate::network::schedule::{Network, Schedule};
use crate::network::station::Op;
use pdes_core::{Ending, SimTime};
use proptest::prelude::*;

fn picos(picos: u64) -> SimTime {
    SimTime::from_picos(picos)
}

#[test]
fn a_ring_takes_its_hops() {
    let outcome = ring(5, 40, 300).run_everywhere();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.states[0].clock, picos(40 * 5 * (COMPUTE + 300)));
}

#[test]
fn a_wavefront_fills_and_drains() {
    let (rows, columns, planes, latency) = (4, 5, 30, 250);
    let outcome = wavefront(rows, columns, planes, latency).run_everywhere();
    assert_eq!(outcome.ending, Ending::Completed);
    for (lp, state) in outcome.states.iter().enumerate() {
        // Plane k of a cell at distance d from the corner ends at d (compute + latency) + (k + 1) compute: it follows
        // plane k of its neighbours by a latency and a computation, and its own plane k - 1 by a computation.
        let distance = lp as u64 / u64::from(columns) + lp as u64 % u64::from(columns);
        assert_eq!(state.clock, picos(distance * (COMPUTE + latency) + planes * COMPUTE));
    }
}

#[test]
fn all_to_all_rounds_wait_for_the_slowest() {
    let (size, rounds) = (6, 15);
    let program = |me: u32| {
        let others = (0..size).filter(move |&other| other != me);
        let send = others.clone().map(|to| Op::Send { to, latency: 0 });
        let receive = others.map(|from| Op::Receive { from });
        [Op::Compute(u64::from(me + 1) * COMPUTE)].into_iter().chain(send).chain(receive).collect()
    };
    let outcome = Network::repeated(rounds, (0..size).map(program)).run_everywhere();
    // Without latency everybody leaves a round when the slowest, which computes `size` units, has sent.
    let end = picos(rounds * u64::from(size) * COMPUTE);
    assert!(outcome.states.iter().all(|state| state.clock == end));
}

#[test]
fn exchanges_without_latency_take_no_time() {
    let program = |me: u32| {
        let peer = me ^ 1;
        let (send, receive) = (Op::Send { to: peer, latency: 0 }, Op::Receive { from: peer });
        let (ask, answer) = (Op::Ask { to: (me + 3) % 8, latency: 0 }, Op::Answer { from: (me + 3) % 8 });
        if me < peer { vec![send, ask, receive, answer] } else { vec![ask, receive, answer, send] }
    };
    let outcome = Network::repeated(100, (0..8).map(program)).run_everywhere();
    assert_eq!(outcome.ending, Ending::Completed);
    assert!(outcome.states.iter().all(|state| state.clock == SimTime::ZERO && state.steps == 400));
}

#[test]
fn a_process_takes_tokens_in_and_answers_after_it_has_finished() {
    let (send, ask) = (Op::Send { to: 0, latency: 7 }, Op::Ask { to: 0, latency: 7 });
    let program = |me: u32| match me {
        0 => Vec::new(),
        _ => vec![Op::Compute(COMPUTE), send, ask, Op::Answer { from: 0 }],
    };
    let outcome = Network::repeated(50, (0..5).map(program)).run_everywhere();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!((outcome.states[0].clock, outcome.states[0].unread()), (SimTime::ZERO, 4 * 50));
    assert_eq!(outcome.states[4].clock, picos(50 * (COMPUTE + 7)));
}

#[test]
fn a_consumer_follows_a_producer_that_runs_free() {
    let producer = vec![Op::Compute(COMPUTE), Op::Send { to: 1, latency: 10 }];
    let consumer = vec![Op::Receive { from: 0 }, Op::Compute(COMPUTE)];
    let outcome = Network::repeated(500, [producer, consumer]).run_everywhere();
    assert_eq!(outcome.states[1].clock, picos(501 * COMPUTE + 10));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_do_not_notice_the_schedule(size in 1..12_u32, interactions in interactions(), first in 0..5_usize) {
        let outcome = programs_of(size, &interactions).run_under(Schedule::all().skip(first).step_by(6));
        prop_assert_eq!(outcome.ending, Ending::Completed);
        prop_assert!(outcome.states.iter().all(|state| state.unread() == 0));
    }

    #[test]
    fn random_grids_do_not_notice_the_schedule(
        rows in 1..5_u32,
        columns in 1..5_u32,
        planes in 1..12_u64,
        latency in 0..2_000_u64,
        first in 0..11_usize,
    ) {
        let outcome = wavefront(rows, columns, planes, latency).run_under(Schedule::all().skip(first).step_by(11));
        let distance = u64::from(rows + columns - 2);
        prop_assert_eq!(
            outcome.states.last().map(|state| state.clock),
            Some(picos(distance * (COMPUTE + latency) + planes * COMPUTE))
        );
    }
}
