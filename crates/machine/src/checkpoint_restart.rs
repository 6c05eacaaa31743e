//! The time of a job that writes checkpoints on a machine that fails.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::TimeDistribution;

/// Largest length of an attempt, in mean times between failures: one in `e^10` gets through.
const LONGEST_ATTEMPT: f64 = 10.0;

/// A job that writes a checkpoint after each interval of work, and goes on from the last one when the machine fails.
///
/// Failures are a Poisson process, also during checkpoints and restarts. An attempt is an interval of work and its checkpoint, after a
/// failure also the restart; what an attempt has done until a failure is lost.
///
/// ```
/// use machine::CheckpointRestart;
/// let job = CheckpointRestart { work_s: 86_400.0, interval_s: 618.0, checkpoint_s: 60.0, restart_s: 120.0, mtbf_s: 3_600.0 };
/// assert_eq!(job.expected_s().round(), 107_837.0);
/// assert_eq!((job.young_interval_s().round(), job.daly_interval_s().round()), (657.0, 618.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CheckpointRestart {
    /// Work, as the time of the job on a machine that does not fail and without checkpoints \[s\].
    pub work_s: f64,
    /// Work between two checkpoints \[s\].
    pub interval_s: f64,
    /// Time of a checkpoint \[s\].
    pub checkpoint_s: f64,
    /// Time from a failure until the work goes on from the last checkpoint \[s\].
    pub restart_s: f64,
    /// Mean time between failures \[s\].
    pub mtbf_s: f64,
}

/// Error in the parameters of a job.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RestartError {
    /// A time is not above 0, or not finite.
    #[error("found {found} s as the {what}, expected a time above 0")]
    Time {
        /// Meaning of the time.
        what: &'static str,
        /// The time \[s\].
        found: f64,
    },
    /// Nearly every attempt fails.
    #[error(
        "an interval with its checkpoint and restart takes {attempt_s} s, and the machine fails every {mtbf_s} s: hardly any gets through; \
         take a shorter interval"
    )]
    NoProgress {
        /// Length of an attempt \[s\].
        attempt_s: f64,
        /// Mean time between failures \[s\].
        mtbf_s: f64,
    },
}

/// A simulated run of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RestartedRun {
    /// Seed of its failures.
    pub seed: u64,
    /// Time of the run \[s\].
    pub time_s: f64,
    /// Number of failures.
    pub failures: u64,
    /// Time of the attempts that failed \[s\].
    pub lost_s: f64,
}

/// Runs of a job with other failures each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ensemble {
    /// Number of runs.
    pub runs: u64,
    /// Mean time of a run \[s\].
    pub mean_s: f64,
    /// Half the width of the interval that holds the mean of all possible runs with a probability of 95 % \[s\].
    pub confidence_s: f64,
    /// Mean number of failures.
    pub failures: f64,
    /// Mean time of the attempts that failed \[s\].
    pub lost_s: f64,
    /// The shortest run.
    pub best: RestartedRun,
    /// The longest run.
    pub worst: RestartedRun,
}

impl CheckpointRestart {
    /// Checks the parameters.
    ///
    /// # Errors
    /// If a time is not above 0 (of checkpoints and restarts, below 0), or hardly any attempt gets through.
    pub fn check(&self) -> Result<(), RestartError> {
        let Self { work_s, interval_s, checkpoint_s, restart_s, mtbf_s } = *self;
        let positive = [("work", work_s), ("interval", interval_s), ("mean time between failures", mtbf_s)];
        let others = [("time of a checkpoint", checkpoint_s), ("time of a restart", restart_s)];
        let is_wrong = |found: f64, is_zero_wrong: bool| {
            !found.is_finite() || found < 0.0 || is_zero_wrong && found == 0.0
        };
        let positive = positive.into_iter().filter(|&(_, found)| is_wrong(found, true));
        let others = others.into_iter().filter(|&(_, found)| is_wrong(found, false));
        if let Some((what, found)) = positive.chain(others).next() {
            return Err(RestartError::Time { what, found });
        }
        let attempt_s = interval_s.min(work_s) + checkpoint_s + restart_s;
        match attempt_s > LONGEST_ATTEMPT * mtbf_s {
            true => Err(RestartError::NoProgress { attempt_s, mtbf_s }),
            false => Ok(()),
        }
    }

    /// Returns the expected time of a run \[s\]: `M e^(R/M) (e^((t + C)/M) - 1) W/t` (Daly, "A Higher Order Estimate of the Optimum
    /// Checkpoint Interval for Restart Dumps", FGCS 22(3), 2006).
    pub fn expected_s(&self) -> f64 {
        let Self { work_s, interval_s, checkpoint_s, restart_s, mtbf_s } = *self;
        let attempt = ((interval_s + checkpoint_s) / mtbf_s).exp_m1();
        mtbf_s * (restart_s / mtbf_s).exp() * attempt * work_s / interval_s
    }

    /// Returns the interval that is best to the first order \[s\]: `sqrt(2 C M)` (Young, "A First Order Approximation to the Optimum
    /// Checkpoint Interval", CACM 17(9), 1974).
    pub fn young_interval_s(&self) -> f64 {
        (2.0 * self.checkpoint_s * self.mtbf_s).sqrt()
    }

    /// Returns Daly's estimate of the best interval \[s\], of a higher order.
    pub fn daly_interval_s(&self) -> f64 {
        let ratio = self.checkpoint_s / (2.0 * self.mtbf_s);
        match ratio < 1.0 {
            true => self.young_interval_s() * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - self.checkpoint_s,
            false => self.mtbf_s,
        }
    }

    /// Simulates a run. `O(work / interval + failures)`.
    pub fn run(&self, seed: u64) -> RestartedRun {
        let mut random = fastrand::Rng::with_seed(xxh3_64(&seed.to_le_bytes()));
        let mut run = RestartedRun { seed, ..RestartedRun::default() };
        let mut left_s = self.work_s;
        while left_s > 0.0 {
            let interval_s = self.interval_s.min(left_s);
            let mut attempt_s = interval_s + self.checkpoint_s;
            loop {
                let failure_s = -(1.0 - random.f64()).ln() * self.mtbf_s;
                if failure_s >= attempt_s {
                    break;
                }
                run.failures += 1;
                run.lost_s += failure_s;
                attempt_s = interval_s + self.checkpoint_s + self.restart_s;
            }
            run.time_s += attempt_s;
            left_s -= interval_s;
        }
        run.time_s += run.lost_s;
        run
    }

    /// Simulates runs with seeds from a first one on.
    ///
    /// # Panics
    /// If there are no runs.
    pub fn ensemble(&self, first_seed: u64, runs: u64) -> Ensemble {
        assert!(runs > 0, "an ensemble has runs");
        let all: Vec<RestartedRun> = (0..runs).map(|run| self.run(first_seed.wrapping_add(run))).collect();
        let mean = |value: &dyn Fn(&RestartedRun) -> f64| all.iter().map(value).sum::<f64>() / runs as f64;
        let times: Vec<f64> = all.iter().map(|run| run.time_s).collect();
        let TimeDistribution { mean_s, confidence_s, .. } =
            TimeDistribution::of(&times).expect("there are runs");
        let by_time = |one: &&RestartedRun, other: &&RestartedRun| one.time_s.total_cmp(&other.time_s);
        Ensemble {
            runs,
            mean_s,
            confidence_s,
            failures: mean(&|run| run.failures as f64),
            lost_s: mean(&|run| run.lost_s),
            best: *all.iter().min_by(by_time).expect("there are runs"),
            worst: *all.iter().max_by(by_time).expect("there are runs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: CheckpointRestart = CheckpointRestart {
        work_s: 86_400.0,
        interval_s: 618.0,
        checkpoint_s: 60.0,
        restart_s: 120.0,
        mtbf_s: 3_600.0,
    };

    #[test]
    fn the_expectation_is_dalys() {
        assert!((JOB.expected_s() - 107_837.3).abs() < 0.05, "{}", JOB.expected_s());
        let at = |interval_s| CheckpointRestart { interval_s, ..JOB }.expected_s();
        let best = JOB.daly_interval_s();
        assert!((best - 617.9).abs() < 0.1, "{best}");
        assert!(
            at(best) < at(best - 30.0) && at(best) < at(best + 30.0) && at(best) < at(JOB.young_interval_s())
        );
        let frequent = CheckpointRestart { checkpoint_s: 9_000.0, ..JOB };
        assert_eq!(frequent.daly_interval_s(), 3_600.0);
    }

    /// The last interval is shorter, and its checkpoint whole: a second in 107,837.
    #[test]
    fn the_mean_of_runs_is_the_expectation() {
        let ensemble = JOB.ensemble(1, 4_000);
        let difference = (ensemble.mean_s - JOB.expected_s()).abs();
        assert!(difference < 2.5 * ensemble.confidence_s && ensemble.confidence_s < 250.0, "{ensemble:?}");
        assert!((ensemble.failures - ensemble.mean_s / JOB.mtbf_s).abs() < 0.5, "{ensemble:?}");
        assert!(ensemble.best.time_s < ensemble.mean_s && ensemble.mean_s < ensemble.worst.time_s);
        assert_eq!(JOB.run(ensemble.worst.seed), ensemble.worst);
    }

    #[test]
    fn a_machine_that_does_not_fail_only_writes_checkpoints() {
        let safe = CheckpointRestart { mtbf_s: 1e18, interval_s: 800.0, ..JOB };
        let run = safe.run(7);
        assert_eq!((run.failures, run.time_s), (0, 86_400.0 + 108.0 * 60.0));
        assert_eq!(safe.ensemble(1, 1).confidence_s, 0.0);
    }

    #[test]
    fn what_never_ends_is_refused() {
        JOB.check().unwrap();
        let refuse = |job: CheckpointRestart| job.check().unwrap_err().to_string();
        assert_eq!(
            refuse(CheckpointRestart { work_s: 0.0, ..JOB }),
            "found 0 s as the work, expected a time above 0"
        );
        assert!(refuse(CheckpointRestart { restart_s: -1.0, ..JOB }).contains("restart"));
        assert!(refuse(CheckpointRestart { mtbf_s: 20.0, ..JOB }).contains("take a shorter interval"));
    }
}
