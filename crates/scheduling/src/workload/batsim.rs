//! Batsim's workloads in JSON: <https://batsim.readthedocs.io/en/latest/input-workload.html>.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::{Builder, Workload, WorkloadError};
use crate::{Date, Span, Work};

/// Rates of a node, by which profiles in flops and bytes take time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeRates {
    /// Computing speed \[flop/s\].
    pub speed: Option<f64>,
    /// Bandwidth of the link of a node, in each direction \[B/s\].
    pub bandwidth: Option<f64>,
}

/// The source of the run times of jobs that do not tell them in seconds.
#[derive(Clone, Copy, Debug)]
pub enum RunTimes {
    /// Their amounts at the rates of a node.
    Fixed(NodeRates),
    /// A simulation.
    Simulated,
}

#[derive(Deserialize)]
struct File {
    nb_res: Option<u32>,
    jobs: Vec<JobEntry>,
    profiles: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct JobEntry {
    id: Value,
    subtime: f64,
    walltime: Option<f64>,
    res: u32,
    profile: String,
}

/// How long a job runs.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Profile {
    /// So many seconds.
    Delay { delay: f64 },
    /// So many flops on each node, and so many bytes from each node to each other.
    ParallelHomogeneous {
        cpu: f64,
        #[serde(default)]
        com: f64,
    },
    /// The program of a trace.
    #[serde(alias = "smpi", alias = "replay_smpi")]
    Trace {
        #[serde(alias = "trace_file")]
        trace: PathBuf,
    },
}

/// Reads a workload of Batsim. A job ends at its walltime at the latest; without one (or with -1) its run time is its estimate, with a
/// warning. Profiles are `delay`, `parallel_homogeneous`, and traces (`trace`, or `smpi` and `replay_smpi`); with fixed run times the second takes
/// the longer of its computation and of its communication through the link of a node, without latencies, as a parallel task on an uncontended
/// machine. A simulation needs walltimes of all jobs whose run times it decides.
///
/// # Errors
/// Returns an error if the text is not such a workload, or a job has no sensible times, or a profile that is not known.
pub fn read(text: &str, run_times: RunTimes) -> Result<Workload, WorkloadError> {
    let file: File = serde_json::from_str(text)?;
    let mut builder = Builder::default();
    let mut names = HashSet::new();
    for entry in &file.jobs {
        let name = entry.id.as_str().map_or_else(|| entry.id.to_string(), str::to_owned);
        let failed = |message| WorkloadError::Job { job: name.clone(), message };
        if !names.insert(name.clone()) {
            return Err(failed("two jobs have this id: give each its own".to_owned()));
        }
        let Asked { submitted, estimate, run } = asked(entry, &file.profiles, run_times).map_err(failed)?;
        builder.add(name, submitted, entry.res, estimate, run);
    }
    Ok(builder.build(file.nb_res))
}

/// The request of a job.
struct Asked {
    submitted: Date,
    estimate: Option<Span>,
    /// Its run time and its work.
    run: (Span, Work),
}

fn asked(entry: &JobEntry, profiles: &BTreeMap<String, Value>, run_times: RunTimes) -> Result<Asked, String> {
    let seconds = |what: &str, found: f64| {
        Span::from_seconds(found).ok_or_else(|| format!("found the {what} {found}, expected seconds from 0"))
    };
    if entry.res == 0 {
        return Err("found res 0, expected a number of nodes from 1".to_owned());
    }
    let submitted = Date::ZERO + seconds("subtime", entry.subtime)?;
    let walltime = entry.walltime.filter(|&walltime| walltime != -1.0);
    let estimate = walltime.map(|walltime| seconds("walltime", walltime)).transpose()?;
    let profile = profiles.get(&entry.profile).ok_or_else(|| {
        format!("there is no profile {:?}: add it to \"profiles\", or name another one", entry.profile)
    })?;
    let profile: Profile = serde_json::from_value(profile.clone()).map_err(|error| {
        format!(
            "the profile {:?} cannot be used: {error}; a profile has the type delay or parallel_homogeneous, or trace",
            entry.profile
        )
    })?;
    let simulated = |work: Work| match estimate {
        Some(estimate) => Ok((estimate, work)),
        None => Err("its run time is that of its simulation, and schedulers plan by walltimes: give it one"
            .to_owned()),
    };
    let run = match (profile, run_times) {
        (Profile::Delay { delay }, _) => (seconds("delay", delay)?, Work::Wait),
        (Profile::ParallelHomogeneous { cpu, com }, RunTimes::Simulated) => {
            for (key, found) in [("cpu", cpu), ("com", com)] {
                if !(0.0..1e18).contains(&found) {
                    return Err(format!("found {key} {found}, expected a number from 0"));
                }
            }
            simulated(Work::Parallel { flops: cpu, bytes: com as u64 })?
        }
        (Profile::Trace { trace }, RunTimes::Simulated) => simulated(Work::Trace(trace))?,
        (Profile::Trace { trace }, RunTimes::Fixed(_)) => {
            return Err(format!(
                "its profile is the trace {}, which runs on a platform: give --platform",
                trace.display()
            ));
        }
        (Profile::ParallelHomogeneous { cpu, com }, RunTimes::Fixed(rates)) => {
            let computation = amount_time(cpu, "cpu", rates.speed, "speed")?;
            let bytes = com * f64::from(entry.res - 1);
            (computation.max(amount_time(bytes, "com", rates.bandwidth, "bandwidth")?), Work::Wait)
        }
    };
    Ok(Asked { submitted, estimate, run })
}

/// Returns the time of an amount at a rate, which is needed unless the amount is zero.
fn amount_time(amount: f64, key: &str, rate: Option<f64>, name: &str) -> Result<Span, String> {
    if amount == 0.0 {
        return Ok(Span::default());
    }
    let rate =
        rate.ok_or_else(|| format!("its profile has {key}: tell the {name} of a node with --{name}"))?;
    Span::from_seconds(amount / rate).ok_or_else(|| format!("found {key} {amount}, expected a number from 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(job: &str) -> String {
        format!(
            r#"{{"nb_res": 4, "jobs": [{{"id": "a!1", "subtime": 0.5, "res": 3, "profile": "d"}}, {job}],
            "profiles": {{"d": {{"type": "delay", "delay": 20}},
            "p": {{"type": "parallel_homogeneous", "cpu": 4e9, "com": 5e8}}, "s": {{"type": "msg_par"}}}}}}"#
        )
    }

    #[test]
    fn profiles_take_time() {
        let rates = NodeRates { speed: Some(1e9), bandwidth: Some(1e8) };
        let parallel = r#"{"id": 2, "subtime": 1, "walltime": 100, "res": 3, "profile": "p"}"#;
        let found = read(&workload(parallel), RunTimes::Fixed(rates)).unwrap();
        // 4 s of computation, and 1e9 B to two other nodes.
        let runtimes: Vec<f64> = found.jobs.iter().map(|job| job.runtime.seconds()).collect();
        assert_eq!(runtimes, [20.0, 10.0]);
        assert_eq!((found.jobs[1].name.as_str(), found.nodes), ("2", Some(4)));
        assert!(found.warnings[0].contains("a!1"), "{:?}", found.warnings);
    }

    #[test]
    fn impossible_jobs_are_named() {
        let job = |rest: &str| format!(r#"{{"id": "b", "subtime": 1, {rest}}}"#);
        for (job, word) in [
            (job(r#""res": 1, "profile": "p""#), "--speed"),
            (job(r#""res": 1, "profile": "s""#), "delay or parallel_homogeneous"),
            (job(r#""res": 1, "profile": "x""#), "no profile \"x\""),
            (job(r#""res": 0, "profile": "d""#), "res 0"),
            (job(r#""res": 1, "walltime": -5, "profile": "d""#), "walltime -5"),
            (job(r#""res": 1, "profile": "d""#).replace("\"b\"", "\"a!1\""), "two jobs"),
        ] {
            let fixed = RunTimes::Fixed(NodeRates::default());
            let error = read(&workload(&job), fixed).unwrap_err().to_string();
            assert!(error.starts_with("job ") && error.contains(word), "{error}");
        }
        assert!(read("{\n\"jobs\": 3}", RunTimes::Simulated).unwrap_err().to_string().contains("line 2"));
    }
}
