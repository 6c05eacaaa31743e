//! Plans: the experiments of a measurement and their order.

use fastrand::Rng;

/// Size up to which all sizes are measured \[B\].
const EXHAUSTIVE_UP_TO: u64 = 16;

/// Extent of a measurement.
///
/// Sizes above 16 B are drawn at random with constant density of their logarithm, one from each of as many parts of equal
/// ratio. All experiments are repeated many times in random order: a temporary disturbance affects all sizes alike, and no
/// size inherits the alignment or the caches of its neighbour (Hunold and Carpen-Amarie: Reproducible MPI benchmarking is
/// still not as easy as you think, TPDS 27(12), 2016; Cornebize and Legrand: Simulation-based optimization and sensibility
/// analysis of MPI applications, JPDC 166, 2022). The same seed yields the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Largest message \[B\]; it is one of the sizes.
    pub largest: u64,
    /// Number of sizes above 16 B.
    pub sizes: u32,
    /// Number of visits of each experiment; each visit repeats it several times in a row.
    pub visits: u32,
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Ping-pong of messages of this size \[B\].
    PingPong(u64),
    /// Blocking sends of this size \[B\] to a receiver that is late.
    LateReceiver(u64),
    /// Blocking sends of this size \[B\] to a receiver that has posted its receive, and computes.
    ComputingReceiver(u64),
    /// Non-blocking sends of this size \[B\] to a receiver that is late.
    Isend(u64),
    /// Many messages of this size \[B\] in one direction, in flight together.
    Stream(u64),
    /// Non-blocking receives of messages that come later.
    Irecv,
    /// Tests and probes that fail.
    Poll,
    /// Floating-point operations.
    Compute,
}

impl Plan {
    /// Returns the sizes \[B\], in growing order.
    pub fn message_sizes(&self) -> Vec<u64> {
        self.draw_sizes(&mut Rng::with_seed(self.seed))
    }

    /// Returns all experiments in the order in which they are run.
    pub fn experiments(&self) -> Vec<Experiment> {
        let mut random = Rng::with_seed(self.seed);
        let sizes = self.draw_sizes(&mut random);
        let of_size = |size: &u64| {
            let size = *size;
            let stream = (size > 0).then_some(Experiment::Stream(size));
            [Experiment::PingPong(size), Experiment::LateReceiver(size), Experiment::Isend(size)]
                .into_iter()
                .chain(stream)
        };
        let overlap = Experiment::ComputingReceiver(self.largest);
        let others = [overlap, Experiment::Irecv, Experiment::Poll, Experiment::Compute];
        let once: Vec<Experiment> = sizes.iter().flat_map(of_size).chain(others).collect();
        let mut all = once.repeat(self.visits as usize);
        random.shuffle(&mut all);
        all
    }

    fn draw_sizes(&self, random: &mut Rng) -> Vec<u64> {
        let from = (EXHAUSTIVE_UP_TO as f64).ln();
        let part = ((self.largest as f64).ln() - from).max(0.0) / f64::from(self.sizes.max(1));
        let drawn =
            (0..self.sizes).map(|place| (from + part * (f64::from(place) + random.f64())).exp() as u64);
        let mut sizes: Vec<u64> = drawn.chain(0..=EXHAUSTIVE_UP_TO).chain([self.largest]).collect();
        sizes.retain(|&size| size <= self.largest);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan { seed: 7, largest: 1 << 20, sizes: 100, visits: 3 };

    #[test]
    fn sizes_are_all_small_ones_and_some_of_each_part() {
        let sizes = PLAN.message_sizes();
        assert!((0..=16).all(|size| sizes.contains(&size)) && sizes.last() == Some(&(1 << 20)), "{sizes:?}");
        // Parts of equal ratio: between two sizes lie less than two parts.
        let part = (65536.0_f64).powf(0.01);
        let gap = |pair: &[u64]| pair[1] as f64 / (pair[0] as f64);
        assert!(sizes[17..].windows(2).all(|pair| gap(pair) < part.powi(2) * 1.06), "{sizes:?}");
        assert_eq!(Plan { largest: 5, ..PLAN }.message_sizes(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn all_experiments_in_an_order_of_the_seed() {
        let all = PLAN.experiments();
        let sizes = PLAN.message_sizes();
        assert_eq!(all.len(), 3 * (4 * sizes.len() - 1 + 4));
        for size in sizes {
            for experiment in
                [Experiment::PingPong(size), Experiment::LateReceiver(size), Experiment::Isend(size)]
            {
                assert_eq!(all.iter().filter(|&&other| other == experiment).count(), 3, "{experiment:?}");
            }
        }
        assert_eq!(all, PLAN.experiments());
        assert_ne!(all, Plan { seed: 8, ..PLAN }.experiments());
        let mut visited: Vec<usize> =
            (0..all.len()).filter(|&place| all[place] == Experiment::PingPong(0)).collect();
        visited.dedup_by(|next, last| *next == *last + 1);
        assert!(visited.len() > 1, "visits of one size lie apart");
    }
}
