//! Noise against LogGOPSim, host by host to the nanosecond, and against closed forms.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use goal::{LogGops, NANOSECOND, Noise, NoiseTrace, RecurringNoise, Schedule, simulate, simulate_with_noise};

fn shared(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/oracle/noise").join(path)
}

fn rows(path: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(shared(path)).expect("the table is there");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn schedule(name: &str) -> Schedule {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    Schedule::load(&if own.exists() { own } else { shared(name) }, 1).expect("the schedule is good")
}

fn trace(name: &str) -> NoiseTrace {
    let text = fs::read_to_string(shared(&format!("{name}.noise"))).expect("the trace is there");
    NoiseTrace::read(&text).expect("the trace is good")
}

#[test_with::shared]
fn ranks_begin_where_those_of_loggopsim_do() {
    let mut expected: BTreeMap<(String, String, String), Vec<u64>> = BTreeMap::new();
    for row in rows("starts.csv") {
        let [noise, seed, cosched, rank, start] = &row[..] else { panic!("{row:?}") };
        let starts = expected.entry((noise.clone(), seed.clone(), cosched.clone())).or_default();
        assert_eq!(starts.len().to_string(), *rank);
        starts.push(start.parse().unwrap());
    }
    for ((noise, seed, cosched), starts) in &expected {
        let ranks = starts.len() as u32;
        let found = RecurringNoise::new(trace(noise), ranks, seed.parse().unwrap(), cosched == "yes");
        let found: Vec<u64> = found.starts().iter().map(|start| start / NANOSECOND).collect();
        assert_eq!(found, *starts, "{noise} {seed} {cosched}");
    }
    assert_eq!(expected.len(), 8);
}

#[test_with::shared]
fn ranks_end_when_those_of_loggopsim_do() {
    let mut cases: BTreeMap<[String; 4], Vec<(u64, u64)>> = BTreeMap::new();
    for row in rows("expected.csv") {
        let [goal, noise, seed, cosched, _, end, injected] = row.try_into().expect("seven columns");
        let ends = cases.entry([goal, noise, seed, cosched]).or_default();
        ends.push((end.parse().unwrap(), injected.parse().unwrap()));
    }
    for ([goal, noise, seed, cosched], expected) in &cases {
        let (schedule, parameters) = (schedule(goal), LogGops::default());
        let outcome = match noise.as_str() {
            "none" => simulate(&schedule, &parameters, 1),
            _ => {
                let ranks = schedule.extent().ranks;
                let noise = RecurringNoise::new(trace(noise), ranks, seed.parse().unwrap(), cosched == "yes");
                simulate_with_noise(&schedule, &parameters, &noise, 1)
            }
        };
        let outcome = outcome.expect("the schedule ends");
        let injected = outcome.noise.iter().copied().chain(std::iter::repeat(0));
        let nanos = |(end, noise): (&u64, u64)| (end / NANOSECOND, noise / NANOSECOND);
        let found: Vec<(u64, u64)> = outcome.ends.iter().zip(injected).map(nanos).collect();
        assert_eq!(found, *expected, "{goal} {noise} {seed} {cosched}");
    }
    assert_eq!(cases.len(), 63);
}

/// A computation of 7 us over periodic noise of 250 ns every 10 us finds 178.125 ns on average: whole events that begin in it, and the
/// rest of one that runs at its begin, d (w + d / 2) / T.
#[test]
fn the_mean_noise_of_an_operation_is_that_of_the_closed_form() {
    let events: String = (1..=1000).map(|event| format!("{} 250\n", event * 10_000)).collect();
    let trace = NoiseTrace::read(&format!("0 0\n{events}")).unwrap();
    let begins = 20_000..9_970_000;
    let mean = |length: u64| {
        let step = 7;
        let phases = begins.clone().step_by(step);
        let count = phases.clone().count() as f64;
        phases.map(|at: u64| trace.between(at * 1000, (at + length) * 1000) as f64 / 1000.0).sum::<f64>()
            / count
    };
    // Whole nanoseconds: an event runs or begins at each of its instants but the first or the last.
    for (length, expected) in [(7_000, 178.125), (20_000, 503.125)] {
        let found = mean(length);
        assert!((found - expected).abs() < 0.2, "{length}: {found}, expected {expected}");
    }
}

#[test]
fn operations_longer_than_the_trace_are_refused() {
    let schedule = goal::read_text(b"num_ranks 1\nrank 0 {\n l1: calc 5\n l2: calc 100\n}\n").unwrap();
    let noise = RecurringNoise::new(NoiseTrace::read("0 0\n100 0\n").unwrap(), 1, 1, true);
    assert_eq!(noise.delay(0, 7, 5), 0);
    let error = simulate_with_noise(&schedule, &LogGops { overhead: 0, ..LogGops::default() }, &noise, 1)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 0, operation 1: it takes 100 ns, and the noise is one of 99 ns, at most: give a longer trace of noise"
    );
}
