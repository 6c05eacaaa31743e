use std::convert::Infallible;

use super::*;
use crate::{Engine, Fault, LpId, Outbox, Pause, SimTime, Turn, Wake};

/// Receives a token in each round but the first, works, and sends one on: a pipeline, or a ring of all.
struct Stage {
    me: u32,
    size: u32,
    rounds: u32,
    is_ring: bool,
    received: u32,
    done: u32,
    clock: SimTime,
    tokens: Vec<SimTime>,
}

impl Stage {
    fn has_input(&self) -> bool {
        self.me == 0 && (!self.is_ring || self.done == 0)
            || self.received > self.done - u32::from(self.is_ring && self.me == 0)
    }
}

impl Process for Stage {
    type Token = SimTime;
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn deliver(&mut self, token: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Infallible>> {
        self.received += 1;
        self.tokens.push(token);
        Ok(Wake::Ready)
    }

    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<SimTime>) -> Result<Pause, Fault<Infallible>> {
        while self.done < self.rounds {
            if !self.has_input() {
                return Ok(Pause::Blocked);
            }
            if turn.steps == 0 {
                return Ok(Pause::OutOfSteps);
            }
            turn.steps -= 1;
            let first = usize::from(self.is_ring && self.me == 0);
            if let Some(&token) = (self.done as usize).checked_sub(first).and_then(|nth| self.tokens.get(nth))
            {
                self.clock = self.clock.max(token);
            }
            self.clock += SimDuration::from_picos(1_000);
            self.done += 1;
            let next = self.me + 1;
            if next < self.size || self.is_ring && self.done < self.rounds {
                outbox.send(LpId::new(next % self.size), self.clock);
            }
        }
        Ok(Pause::Finished)
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}

fn stages(size: u32, rounds: u32, is_ring: bool) -> Vec<Stage> {
    let stage = |me| Stage {
        me,
        size,
        rounds,
        is_ring,
        received: 0,
        done: 0,
        clock: SimTime::ZERO,
        tokens: Vec::new(),
    };
    (0..size).map(stage).collect()
}

fn profile(size: u32, rounds: u32, is_ring: bool, threads: usize) -> (Profile, Vec<SimTime>) {
    let run = Engine::new(threads).run(Profile::wrap(stages(size, rounds, is_ring)));
    (Profile::of(&run.processes), run.processes.iter().map(Process::clock).collect())
}

#[test]
fn a_ring_has_no_parallelism() {
    let (profile, clocks) = profile(8, 3, true, 1);
    assert_eq!((profile.steps, profile.critical_path), (24, 24));
    assert_eq!(clocks[7], SimTime::from_picos(24_000));
    // All tokens but the last go to the next process; 2, 4 and 8 workers have as many borders, the last of which the two
    // closing tokens cross.
    let cuts: Vec<_> = profile.levels.iter().map(|level| (level.workers, level.cut_tokens)).collect();
    assert_eq!(cuts, [(2, 3 + 2), (4, 3 * 3 + 2), (8, 3 * 7 + 2)]);
}

#[test]
fn a_pipeline_is_as_deep_as_its_length_and_its_rounds() {
    for threads in [1, 2, 3] {
        let (profile, _) = profile(16, 100, false, threads);
        assert_eq!((profile.steps, profile.critical_path), (1600, 100 + 15), "{threads} threads");
        assert_eq!(profile.tokens, 1500);
        // 16 stages, each of which has 100 of 1600 steps: over the whole run all workers have the same.
        let even = |level: &ProfileLevel| level.busiest_total == 1600 / u64::from(level.workers);
        assert!(profile.levels.iter().all(even), "{:?}", profile.levels);
    }
}

/// Picoseconds.
fn costs(step: u64, token: u64, message: u64, latency: u64) -> Costs {
    let [step, token, message, latency] = [step, token, message, latency].map(SimDuration::from_picos);
    Costs { step, token, message, latency, quiescence: SimDuration::ZERO }
}

#[test]
fn each_border_of_a_ring_costs_a_message_and_its_latency() {
    let (size, rounds) = (8, 3);
    for level in &profile(size, rounds, true, 1).0.levels {
        let costs = costs(1_000, 20, 100, 5_000);
        let emulation = Emulation::of(stages(size, rounds, true), level.workers, &costs);
        assert_eq!(emulation.cut_tokens, level.cut_tokens);
        // One token is in transit at any time.
        assert_eq!((emulation.messages, emulation.hops), (level.cut_tokens, level.cut_tokens));
        let alone = 1_000 * u64::from(size * rounds);
        assert_eq!(emulation.elapsed.as_picos(), alone + level.cut_tokens * (20 + 100 + 5_000));
    }
}

#[test]
fn one_worker_takes_its_steps_and_many_take_no_less_than_the_longest_chain() {
    for workers in [1_u32, 2, 3, 5, 16] {
        let costs = costs(1_000, 20, 100, 300);
        let emulation = Emulation::of(stages(16, 2_000, false), workers, &costs);
        let (profile, _) = profile(16, 2_000, false, 1);
        assert_eq!(emulation.steps, profile.steps);
        let elapsed = emulation.elapsed.as_picos();
        assert!(elapsed >= profile.critical_path * 1_000, "{workers} workers: {elapsed}");
        assert!(elapsed >= profile.steps * 1_000 / u64::from(workers), "{workers} workers: {elapsed}");
        if workers == 1 {
            assert_eq!((elapsed, emulation.messages, emulation.hops), (32_000_000, 0, 0));
        }
        let known = profile.levels.iter().find(|level| level.workers == workers);
        assert!(known.is_none_or(|level| level.cut_tokens == emulation.cut_tokens));
    }
}

#[test]
fn a_longer_latency_costs_as_often_as_messages_are_waited_for() {
    let elapsed = |latency| Emulation::of(stages(64, 50, true), 4, &costs(1_000, 0, 0, latency));
    let (short, long) = (elapsed(1_000), elapsed(4_000));
    assert_eq!(long.elapsed, short.elapsed + SimDuration::from_picos(3_000 * short.hops));
}

#[test]
fn blocks_of_fewer_workers_are_made_of_whole_ones() {
    for lps in [1, 2, 5, 8, 1000, 4097, 16384] {
        let blocks = Blocks::new(lps);
        for level in 0..blocks.levels() {
            let workers = 2_u64 << level;
            for lp in 0..lps {
                // The engine's rule: worker `w` begins at process `w * processes / workers`.
                let block = u64::from(blocks.of(lp)) >> (blocks.levels() - 1 - level);
                let first = |worker: u64| worker * u64::from(lps) / workers;
                assert!(
                    (first(block)..first(block + 1)).contains(&u64::from(lp)),
                    "{lp} of {lps}, {workers}"
                );
            }
        }
    }
}

#[test]
fn bins_keep_their_steps_when_they_grow() {
    let mut bins = Bins::default();
    for time in [0, 1, 1023, 1024, 1 << 20, u64::MAX >> 1] {
        bins.add(SimTime::from_picos(time), 7);
    }
    let mut sum = Vec::new();
    bins.add_to(&mut sum, bins.width() + 1);
    assert_eq!((sum.iter().sum::<u64>(), bins.total()), (42, 42));
    assert!(sum.len() <= 512);
}
