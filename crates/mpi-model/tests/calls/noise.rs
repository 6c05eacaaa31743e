//! Noise: what a rank remembers of the quiet time of its host changes nothing.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::ops::Range;

use mpi_model::{ComputationNoise, Machine, Parameters, Replay};
use pdes_core::{Bytes, Engine, Process as _, Rank, SimDuration, SimTime};

/// An event of 30 ps at the begin of each 100 ps, shifted by the number of the rank; a flop takes a picosecond.
struct Ticks;

impl Machine for Ticks {
    type Route = ();
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn route(&self, _: Rank, _: Rank) -> Result<(), Infallible> {
        Ok(())
    }

    fn transfer(&self, (): (), _: Bytes, _: SimTime) -> Option<SimDuration> {
        Some(SimDuration::ZERO)
    }

    fn speed(&self, _: Rank, _: SimTime) -> f64 {
        1e12
    }

    fn node(&self, rank: Rank) -> u32 {
        rank.get()
    }

    fn has_noise(&self) -> bool {
        true
    }

    fn noise(&self, rank: Rank, begin: SimTime, length: SimDuration, _: &Range<SimTime>) -> ComputationNoise {
        let begin = begin.as_picos() + 100 - u64::from(rank.get());
        let last = (begin + length.as_picos() - 1) / 100;
        let running = (begin / 100 * 100 + 30).saturating_sub(begin);
        let shift = |at: u64| SimTime::from_picos((at + u64::from(rank.get())).saturating_sub(100));
        ComputationNoise {
            delay: SimDuration::from_picos(running + 30 * (last - begin / 100)),
            quiet: shift(last * 100 + 30)..shift(last * 100 + 100),
        }
    }
}

#[test]
fn ranks_that_remember_quiet_times_have_the_same_noise() {
    let flops = |step: u64| step * 7_919 % 61;
    let mut text = String::new();
    for rank in 0..3 {
        (0..5_000).for_each(|step| writeln!(text, "{rank} compute {}", flops(step + rank)).unwrap());
    }
    let trace = trace_tools::from_text(&text).unwrap();
    let parameters = Parameters::default();
    let world = Replay::new(&trace, &Ticks, &parameters);
    for process in Engine::new(2).run(world.processes().unwrap()).processes {
        let rank = process.rank();
        let mut clock = SimTime::ZERO;
        let lengths = (0..5_000).map(|step| flops(step + u64::from(rank.get())));
        for length in lengths.filter(|&flops| flops > 0).map(SimDuration::from_picos) {
            clock += length + Ticks.noise(rank, clock, length, &(SimTime::ZERO..SimTime::ZERO)).delay;
        }
        assert_eq!(process.clock(), clock, "rank {rank}");
    }
}
