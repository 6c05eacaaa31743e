//! A job on hosts that die.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use netmodel::{HostId, Platform};
use pdes_core::SimTime;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::component::{Component, FailureError};
use super::mortal_hosts::{MortalHosts, Resumption};
use super::section::{FailureList, FailuresSection, Recovery};
use crate::CheckpointRestart;

/// Largest length of an attempt, in mean times between failures: one in `e^10` gets through.
const LONGEST_ATTEMPT: f64 = 10.0;

/// A job whose hosts die, and what becomes of it then.
///
/// The job works as in a replay without these failures, writes a checkpoint after each interval of work and at its end, and loses at a failure
/// what it has done since the last one. Its work is a share of the whole: on other hosts the rest takes the same share of the time there.
/// Hosts fail also during checkpoints and restarts.
#[derive(Clone, Debug)]
pub struct FailingJob {
    mortal: MortalHosts,
    /// Host of each rank at the begin.
    hosts: Vec<HostId>,
    /// Start of the job \[s\].
    start_s: f64,
}

/// A failure of a host of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostFailure {
    /// Name of the component that fails: the host, or hosts that fail together.
    pub component: String,
    /// Its instant \[s\].
    pub at_s: f64,
    /// Time that the job has lost: since its last checkpoint, or the failure before \[s\].
    pub lost_s: f64,
    /// Instant at which the job works again \[s\]; `None` if it ends.
    pub resumed_s: Option<f64>,
    /// Hosts that take the place of others, each with the name of that one.
    pub replaced: Vec<(String, String)>,
}

/// A run of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRun {
    /// Time without failures and checkpoints \[s\].
    pub work_s: f64,
    /// Time from the start of the job to its end \[s\].
    pub time_s: f64,
    /// Number of checkpoints that were written.
    pub checkpoints: u64,
    /// Time lost by failures, without restarts \[s\].
    pub lost_s: f64,
    /// Failures of hosts of the job, in the order of time.
    pub failures: Vec<HostFailure>,
    /// Name of the component whose failure has ended the job; `None` if it has done its work.
    pub ended_by: Option<String>,
}

/// Error in a run of a job.
#[derive(Debug, thiserror::Error)]
pub enum JobRunError<E> {
    /// The job cannot be replayed.
    #[error(transparent)]
    Replay(E),
    /// Nearly every attempt fails.
    #[error(
        "an interval of {interval_s} s with its checkpoint and restart takes {attempt_s} s, and a host of the job fails every {mtbf_s} s: \
         hardly any gets through; set failures.interval to less, or give the job fewer hosts"
    )]
    NoProgress {
        /// Work between two checkpoints \[s\].
        interval_s: f64,
        /// Length of an attempt \[s\].
        attempt_s: f64,
        /// Mean time between failures of the hosts of the job \[s\].
        mtbf_s: f64,
    },
}

/// Failures of all components in the order of time, by the bits of their instants, which ascend as these do.
struct Failures<'a> {
    components: &'a [Component],
    streams: Vec<Box<dyn Iterator<Item = f64>>>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Failures<'a> {
    fn new(components: &'a [Component], seed: u64) -> Self {
        let streams = components.iter().map(|component| Box::new(component.instants(seed)) as Box<_>);
        let mut failures = Self { components, streams: streams.collect(), next: BinaryHeap::new() };
        (0..components.len()).for_each(|component| failures.advance(component));
        failures
    }

    fn advance(&mut self, component: usize) {
        self.next.extend(self.streams[component].next().map(|at: f64| Reverse((at.to_bits(), component))));
    }

    /// Returns the first failure of a component with one of some hosts; passes those before.
    fn next_of(&mut self, hosts: &BTreeSet<HostId>) -> Option<(f64, &'a Component)> {
        while let Some(&Reverse((at, number))) = self.next.peek() {
            let component = &self.components[number];
            if component.hosts.iter().any(|host| hosts.contains(host)) {
                return Some((f64::from_bits(at), component));
            }
            self.pop();
        }
        None
    }

    fn pop(&mut self) {
        if let Some(Reverse((_, component))) = self.next.pop() {
            self.advance(component);
        }
    }
}

impl FailingJob {
    /// Returns the job of a run with this outcome under these failures; `None` if no host ever dies.
    ///
    /// # Errors
    /// If the platform lacks a component or a spare host.
    pub fn of(
        simulation: &Simulation,
        outcome: &Outcome,
        (list, section): (&FailureList, &FailuresSection),
    ) -> Result<Option<Self>, FailureError> {
        let placed = (simulation.placement().hosts(), outcome.program().start);
        Self::new(simulation.platform(), list, section, placed)
    }

    fn new(
        platform: &Platform,
        list: &FailureList,
        section: &FailuresSection,
        (hosts, start): (&[HostId], SimTime),
    ) -> Result<Option<Self>, FailureError> {
        let mortal = MortalHosts::of(platform, (list, section), hosts)?;
        Ok(mortal.map(|mortal| Self { mortal, hosts: hosts.to_vec(), start_s: start.as_secs_f64() }))
    }

    /// Returns the host of each rank at the begin.
    pub fn hosts(&self) -> &[HostId] {
        &self.hosts
    }

    /// Returns whether the job goes on after a failure.
    pub fn recovers(&self) -> bool {
        self.mortal.recovery != Recovery::End
    }

    /// Returns the mean time between failures of the hosts of the job at the begin \[s\]; `None` if they fail at given instants only.
    pub fn mtbf_s(&self) -> Option<f64> {
        self.mortal.mtbf_s(&self.hosts)
    }

    /// Returns the model of the job with this work, by which expectation and best interval are known in closed form; `None` if hosts fail at
    /// given instants only, or the job writes no checkpoints.
    pub fn model(&self, work_s: f64) -> Option<CheckpointRestart> {
        let mtbf_s = self.mtbf_s().filter(|_| self.recovers())?;
        let MortalHosts { checkpoint_s, restart_s, .. } = self.mortal;
        Some(CheckpointRestart { work_s, interval_s: self.interval_s()?, checkpoint_s, restart_s, mtbf_s })
    }

    /// Returns the work between two checkpoints of the job \[s\]; `None` if it writes none.
    pub fn interval_s(&self) -> Option<f64> {
        self.mortal.interval_s(&self.hosts)
    }

    /// Runs the job under a seed. `time_s` returns the time of the whole work with ranks on some hosts. `O(checkpoints + failures)` without
    /// the times.
    ///
    /// # Errors
    /// If a time cannot be known, or hardly any attempt gets through.
    pub fn run<E>(
        &self,
        seed: u64,
        mut time_s: impl FnMut(&[HostId]) -> Result<f64, E>,
    ) -> Result<JobRun, JobRunError<E>> {
        let mut hosts = self.hosts.clone();
        let mut whole_s = time_s(&hosts).map_err(JobRunError::Replay)?;
        let interval_s = self.interval_s();
        let attempt_s =
            interval_s.map_or(whole_s, |interval_s| interval_s.min(whole_s) + self.mortal.checkpoint_s);
        let attempt_s = attempt_s + self.mortal.restart_s;
        if let Some(mtbf_s) =
            self.mtbf_s().filter(|mtbf_s| self.recovers() && attempt_s > LONGEST_ATTEMPT * mtbf_s)
        {
            let interval_s = interval_s.unwrap_or(whole_s);
            return Err(JobRunError::NoProgress { interval_s, attempt_s, mtbf_s });
        }
        let checkpoint_s = if interval_s.is_some() { self.mortal.checkpoint_s } else { 0.0 };
        let mut run = JobRun {
            work_s: whole_s,
            time_s: 0.0,
            checkpoints: 0,
            lost_s: 0.0,
            failures: Vec::new(),
            ended_by: None,
        };
        let mut failures = Failures::new(&self.mortal.components, seed);
        let mut spares = self.mortal.spares();
        // Work that is left after the last checkpoint; instants of that or of the last failure, and from which on the job works.
        let (mut left_s, mut safe_s, mut ready_s) = (whole_s, self.start_s, self.start_s);
        let mut used: BTreeSet<HostId> = hosts.iter().copied().collect();
        loop {
            let step_s = interval_s.map_or(left_s, |interval_s| interval_s.min(left_s));
            let end_s = ready_s + step_s + checkpoint_s;
            let failure = failures.next_of(&used).filter(|(at_s, _)| *at_s < end_s);
            let Some((at_s, component)) = failure else {
                run.checkpoints += u64::from(interval_s.is_some());
                (safe_s, ready_s, left_s) = (end_s, end_s, left_s - step_s);
                // What rounding leaves is no work.
                if left_s <= 1e-12 * whole_s {
                    run.time_s = end_s - self.start_s;
                    return Ok(run);
                }
                continue;
            };
            failures.pop();
            if at_s < self.start_s {
                continue;
            }
            let Resumption { at_s: resumed_s, replaced } =
                self.mortal.recover(&mut hosts, &component.hosts, at_s, &mut spares);
            let (component, lost_s) = (component.name.clone(), (at_s - safe_s).max(0.0));
            run.lost_s += lost_s;
            run.failures.push(HostFailure {
                component: component.clone(),
                at_s,
                lost_s,
                resumed_s,
                replaced,
            });
            let Some(resumed_s) = resumed_s else {
                (run.time_s, run.ended_by) = (at_s - self.start_s, Some(component));
                return Ok(run);
            };
            (safe_s, ready_s) = (at_s, resumed_s);
            used = hosts.iter().copied().collect();
            let before_s = whole_s;
            whole_s = time_s(&hosts).map_err(JobRunError::Replay)?;
            left_s *= if before_s > 0.0 { whole_s / before_s } else { 1.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::component::tests::platform;
    use super::*;

    #[derive(serde::Deserialize)]
    struct Sections {
        failure: FailureList,
        #[serde(default)]
        failures: FailuresSection,
    }

    /// A job with a rank on each of the first two hosts.
    fn job(text: &str) -> FailingJob {
        let Sections { failure, failures } = toml::from_str(text).unwrap();
        let hosts = [0, 1].map(HostId::new);
        FailingJob::new(&platform(), &failure, &failures, (&hosts, SimTime::ZERO)).unwrap().unwrap()
    }

    fn run(job: &FailingJob, seed: u64, work_s: f64) -> JobRun {
        job.run(seed, |_| Ok::<_, Infallible>(work_s)).unwrap()
    }

    /// 1,000 runs of a day of work on two hosts that fail every two hours each: Daly's expectation.
    #[test]
    fn the_mean_of_runs_is_dalys_expectation() {
        let job =
            job("failures = { recovery = 'restart', interval = 618, checkpoint = 60, restart = 120 }\n\
            failure = [{ host = 'node-*', mtbf = '2h' }]\n");
        let model = job.model(86_400.0).unwrap();
        assert!((model.expected_s() - 107_837.3).abs() < 0.05);
        let times: Vec<f64> = (0..1000).map(|seed| run(&job, seed, 86_400.0).time_s).collect();
        let mean = times.iter().sum::<f64>() / 1000.0;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 999.0;
        let error = 1.96 * (variance / 1000.0).sqrt();
        assert!((mean - model.expected_s()).abs() < error && error < 400.0, "{mean} +- {error}");
    }

    /// By hand: checkpoints after 10 s of work take 1 s each. The failure at 15 s loses 4 s.
    #[test]
    fn a_job_goes_on_from_its_last_checkpoint() {
        let failures = "failure = [{ host = 'node-1', at = 15, repair = 5 }, { host = 'node-3', at = 3 }]\n\
            failures = { interval = 10, checkpoint = 1, restart = 2, recovery = ";
        let restarted = run(&job(&format!("{failures}'restart' }}")), 1, 25.0);
        let JobRun { time_s, checkpoints, lost_s, failures: found, ended_by, .. } = &restarted;
        // Begin 0, checkpoint 11, failure 15, repaired 20, checkpoint 31, end 37.
        assert_eq!((*time_s, *checkpoints, *lost_s, ended_by), (37.0, 3, 4.0, &None));
        assert_eq!((found.len(), found[0].at_s, found[0].resumed_s), (1, 15.0, Some(20.0)));
        // A spare needs no repair; the rest of the work, 15 of 25 s, takes twice as long there: checkpoints at 28 and 39, the end at 50.
        let spare = job(&format!("{failures}'spare', spares = ['node-2'] }}"));
        let of_hosts = |hosts: &[HostId]| Ok::<_, Infallible>(if hosts[1].get() == 2 { 50.0 } else { 25.0 });
        let replaced = spare.run(1, of_hosts).unwrap();
        assert_eq!((replaced.time_s, replaced.checkpoints), (50.0, 4));
        assert_eq!(replaced.failures[0].replaced, [("node-1".to_owned(), "node-2".to_owned())]);
        let shrunk = job(&format!("{failures}'shrink' }}"));
        let mut asked = Vec::new();
        let shrunk = shrunk.run(1, |hosts| {
            asked.push(hosts.iter().map(|host| host.get()).collect::<Vec<_>>());
            Ok::<_, Infallible>(25.0)
        });
        assert_eq!((shrunk.unwrap().time_s, asked), (34.0, vec![vec![0, 1], vec![0, 0]]));
        let ended = run(&job(&format!("{failures}'end' }}")), 1, 25.0);
        assert_eq!((ended.time_s, ended.ended_by.as_deref(), ended.checkpoints), (15.0, Some("node-1"), 0));
    }

    /// A rack takes the job and the first spare; the second one waits elsewhere.
    #[test]
    fn hosts_that_fail_together_need_as_many_spares() {
        let rack = "failure = [{ leaf = 0, at = 5 }]\nfailures = { recovery = 'spare', spares = ['node-0', 'node-3'] }\n";
        let ended = run(&job(rack), 1, 10.0);
        assert_eq!((ended.time_s, ended.ended_by.as_deref()), (5.0, Some("leaf 0")));
        let enough = rack.replace("'node-0'", "'node-2'");
        let replaced = run(&job(&enough), 1, 10.0);
        assert_eq!((replaced.time_s, replaced.failures[0].replaced.len()), (15.0, 2));
    }

    #[test]
    fn what_hardly_ever_ends_is_refused() {
        let job = job("failure = [{ host = 'node-*', mtbf = 10 }]\nfailures = { recovery = 'restart' }\n");
        let error = job.run(1, |_| Ok::<_, Infallible>(100.0)).unwrap_err();
        assert!(matches!(error, JobRunError::NoProgress { .. }), "{error}");
    }
}
