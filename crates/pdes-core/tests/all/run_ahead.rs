//! The bound on run-ahead bounds how many tokens wait to be read.

use crate::network::schedule::Network;
use crate::network::station::{Op, Phase};
use pdes_core::{Ending, Engine, RunAhead, SimDuration};

/// Tokens that the producer sends.
const TOKENS: u64 = 100_000;
/// A token per nanosecond.
const PERIOD: u64 = 1_000;

/// A producer that never waits, and a consumer that has `work` more operations to do for each token, in no time.
fn pipeline(work: usize) -> Network {
    let mut consume = vec![Op::Receive { from: 0 }];
    consume.resize(1 + work, Op::Compute(0));
    Network::repeated(TOKENS, [vec![Op::Compute(PERIOD), Op::Send { to: 1, latency: 0 }], consume])
}

fn peak(network: &Network, engine: &Engine) -> usize {
    let outcome = network.run(engine);
    assert_eq!(outcome.ending, Ending::Completed);
    outcome.peaks[1]
}

#[test]
fn a_window_bounds_the_tokens_that_wait_on_one_worker() {
    let window = RunAhead::Window(SimDuration::from_picos(100 * PERIOD));
    // The horizon lies 100 periods after the producer's clock, at which the consumer has caught up; the producer
    // passes it by one.
    let peak = peak(&pipeline(9), &Engine::new(1).run_ahead(window));
    assert!(peak <= 101, "{peak} tokens wait");
}

#[test]
fn a_window_bounds_the_tokens_that_wait_on_two_workers() {
    let window = RunAhead::Window(SimDuration::from_picos(100 * PERIOD));
    // A worker may be 16 windows ahead when it raises its horizon by one more, so that 17 may be in transit when the worker
    // of the consumer publishes that it is idle; the next window, sent before the producer notices, lowers the consumer's
    // bound again, for 17 more. A window holds 101 tokens.
    let bound = 35 * 101;
    for seed in 0..4 {
        let peak = peak(&pipeline(9), &Engine::new(2).run_ahead(window).jitter(seed));
        assert!(peak <= bound, "{peak} tokens wait with seed {seed}");
    }
    for batch in [1, 16, 256] {
        let peak = peak(&pipeline(9), &Engine::new(2).run_ahead(window).batch(batch));
        assert!(peak <= bound, "{peak} tokens wait in batches of {batch}");
    }
}

#[test]
fn the_window_of_a_sparse_phase_does_not_hold_for_a_dense_one() {
    // Forty steps of a second teach the engine a window of half a minute, which holds 10^10 tokens of what follows.
    let mut network = pipeline(9);
    let seconds = Phase { ops: vec![Op::Compute(1_000_000_000_000)], laps: 40 };
    network.programs.iter_mut().for_each(|program| program.insert(0, seconds.clone()));
    for workers in [1, 2] {
        let peak = peak(&network, &Engine::new(workers));
        assert!(peak <= TOKENS as usize / 10, "{peak} tokens wait on {workers} workers");
    }
}
