//! A measurement of the latency of a token between two threads.

use std::convert::Infallible;
use std::time::Instant;

use crate::{Engine, Fault, LpId, Outbox, Pause, Process, SimDuration, SimTime, Turn, Wake};

/// Number of hops of one measurement; the result is the median of several.
const HOPS: u32 = 4_000;
const MEASUREMENTS: usize = 7;

/// A process of a ping-pong between two processes.
struct PingPong {
    me: u32,
    left: u32,
    received: u32,
    has_started: bool,
}

impl Process for PingPong {
    type Token = ();
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn deliver(&mut self, (): (), _: &mut Outbox<()>) -> Result<Wake, Fault<Infallible>> {
        self.received += 1;
        Ok(Wake::Ready)
    }

    fn resume(&mut self, _: &mut Turn, outbox: &mut Outbox<()>) -> Result<Pause, Fault<Infallible>> {
        if self.me == 0 && !self.has_started {
            self.has_started = true;
            outbox.send(LpId::new(1), ());
        }
        while self.received > 0 && self.left > 0 {
            self.received -= 1;
            self.left -= 1;
            if self.left > 0 || self.me == 1 {
                outbox.send(LpId::new(1 - self.me), ());
            }
        }
        Ok(if self.left == 0 { Pause::Finished } else { Pause::Blocked })
    }

    fn clock(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// Measures the wall-clock latency of a token from one thread of this process to another that waits for it, with the overhead
/// at both ends: the median of several runs of two workers. Takes a few milliseconds.
pub fn measure_token_latency() -> SimDuration {
    let mut hops: Vec<u64> = (0..MEASUREMENTS).map(|_| measure().as_picos()).collect();
    hops.sort_unstable();
    SimDuration::from_picos(hops[MEASUREMENTS / 2])
}

fn measure() -> SimDuration {
    let player = |me| PingPong { me, left: HOPS / 2, received: 0, has_started: false };
    let started = Instant::now();
    Engine::new(2).run(vec![player(0), player(1)]);
    SimDuration::from_picos((started.elapsed().as_nanos() as u64).saturating_mul(1_000) / u64::from(HOPS))
}
