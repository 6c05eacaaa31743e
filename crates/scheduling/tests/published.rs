//! Published schedules, start for start and node for node, and laws of all policies.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use scheduling::{
    Date, Job, NodeSet, POLICIES, Reservations, Schedule, Span, Work, Workload, find_policy, read_swf,
    simulate,
};

use Reservations::{Counted, Named};

fn oracle(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/oracle/scheduling").join(name)
}

type Row = HashMap<String, String>;

fn table(name: &str) -> Vec<Row> {
    csv::Reader::from_path(oracle(name)).unwrap().deserialize().map(Result::unwrap).collect()
}

/// Quantities of a case.
fn expected(case: &str) -> HashMap<String, String> {
    let rows = table("expected.csv").into_iter().filter(|row| row["case"] == case);
    // The computed value is the last one, and has more digits.
    let found: HashMap<_, _> = rows.map(|row| (row["quantity"].clone(), row["value"].clone())).collect();
    assert!(!found.is_empty(), "{case}");
    found
}

fn seconds(text: &str) -> f64 {
    text.parse().unwrap()
}

fn job(row: &Row, submitted: &str, estimate: &str, runtime: &str) -> Job {
    Job {
        name: row["job"].clone(),
        submitted: Date::from_seconds(seconds(&row[submitted])).unwrap(),
        nodes: row["nodes"].parse().unwrap(),
        estimate: Span::from_seconds(seconds(&row[estimate])).unwrap(),
        runtime: Span::from_seconds(seconds(&row[runtime])).unwrap(),
        work: Work::Wait,
    }
}

fn schedule(jobs: &[Job], machine: u32, policy: &str, reservations: Reservations) -> Schedule {
    simulate(jobs, machine, find_policy(policy).unwrap().policy(reservations)).unwrap()
}

/// Compares the measures that a case has.
fn check_summary(case: &str, schedule: &Schedule, jobs: &[Job]) {
    let expected = expected(case);
    let summary = schedule.summary(jobs);
    let starts: f64 = schedule.runs.iter().map(|run| run.start.seconds()).sum();
    for (key, found) in [
        ("jobs", summary.jobs as f64),
        ("makespan_s", summary.makespan_s),
        ("mean_wait_s", summary.mean_wait_s),
        ("max_wait_s", summary.max_wait_s),
        ("jobs_that_wait", summary.jobs_that_wait as f64),
        ("sum_of_starts_s", starts),
        ("utilisation", summary.utilisation),
    ] {
        let expected = seconds(&expected[key]);
        assert!((found - expected).abs() <= 1e-11 * expected.abs(), "{case} {key}: {found}, not {expected}");
    }
    let bounded = expected.get("mean_bounded_slowdown_10s").or(expected.get("mean_bounded_slowdown"));
    let bounded = seconds(bounded.unwrap());
    assert!((summary.mean_bounded_slowdown - bounded).abs() <= 1e-11 * bounded, "{case}");
    if let Some(slowdown) = expected.get("mean_slowdown") {
        assert!((summary.mean_slowdown - seconds(slowdown)).abs() < 5.1e-7, "{case}");
        assert!((summary.mean_turnaround_s - seconds(&expected["mean_turnaround_s"])).abs() < 5.1e-7);
    }
}

#[test_with::shared]
fn batsim_starts_801_jobs_at_these_instants_on_these_nodes() {
    let rows = table("batsim-easy.csv");
    let jobs: Vec<Job> = rows.iter().map(|row| job(row, "submit_s", "walltime_s", "runtime_s")).collect();
    let easy = schedule(&jobs, 32, "easy", Named);
    for (row, run) in rows.iter().zip(&easy.runs) {
        let found = (run.start, run.nodes.to_string());
        let start = Date::from_seconds(seconds(&row["start_s"])).unwrap();
        assert_eq!(found, (start, row["machines"].clone()), "job {}", row["job"]);
    }
    check_summary("batsim-easy", &easy, &jobs);
    check_summary("batsim-fcfs", &schedule(&jobs, 32, "fcfs", Named), &jobs);
    let counted = schedule(&jobs, 32, "easy", Counted);
    check_summary("batsim-easy-by-count", &counted, &jobs);
    let equal = easy.runs.iter().zip(&counted.runs).filter(|(named, other)| named.start == other.start);
    assert_eq!(equal.count().to_string(), expected("batsim-easy-by-count")["starts_equal_to_batsim"]);
}

#[test_with::shared]
fn jobs_of_pyss_end_at_these_instants() {
    let mut jobs: HashMap<String, Vec<(Job, f64)>> = HashMap::new();
    for row in table("pyss-jobs.csv") {
        let job = job(&row, "submit_s", "estimate_s", "runtime_s");
        jobs.entry(row["case"].clone()).or_default().push((job, seconds(&row["finish_s"])));
    }
    let cases = table("pyss-cases.csv");
    let mut checked = 0;
    for row in &cases {
        let (jobs, finishes): (Vec<Job>, Vec<f64>) = jobs[&row["case"]].iter().cloned().unzip();
        assert_eq!(jobs.len().to_string(), row["jobs"]);
        for policy in row["policies"].split(' ') {
            let mut workload = Workload { jobs: jobs.clone(), ..Workload::default() };
            let policy =
                policy.strip_suffix("-perfect").inspect(|_| workload.perfect_estimates()).unwrap_or(policy);
            let found = schedule(&workload.jobs, 100, policy, Counted);
            let found: Vec<f64> = found.runs.iter().map(|run| run.finish.seconds()).collect();
            assert_eq!(found, finishes, "{} {policy}", row["case"]);
            checked += 1;
        }
    }
    assert_eq!((cases.len(), checked), (40, 105));
}

#[test_with::shared]
fn flux_starts_jobs_in_this_order() {
    let whole: Vec<Job> =
        table("flux-jobs.csv").iter().map(|row| job(row, "submit_s", "limit_s", "elapsed_s")).collect();
    let mut cut = whole.clone();
    cut.iter_mut().for_each(|job| job.runtime = job.runtime.min(job.estimate));
    for (policy, machine) in [("easy", 143), ("easy", 152), ("easy", 163), ("fcfs", 152)] {
        for (jobs, suffix) in [(&whole, ""), (&cut, "-cut-at-limit")] {
            let found = schedule(jobs, machine, policy, Counted);
            let order = found.order();
            let names: Vec<&str> = order.iter().map(|id| &*jobs[id.0].name).collect();
            assert_eq!(names.join(" "), expected(&format!("flux-{policy}"))["order_of_starts"]);
            let start =
                |id: &scheduling::JobId| format!("{}:{}", jobs[id.0].name, found.runs[id.0].start.seconds());
            let starts: Vec<String> = order.iter().map(start).collect();
            let case = format!("flux-{policy}-{machine}-nodes{suffix}");
            assert_eq!(starts.join(" "), expected(&case)["starts_s"], "{case}");
        }
    }
}

#[test_with::shared]
fn a_log_of_a_real_machine_is_scheduled_as_computed_by_others() {
    let workload = read_swf(&fs::read_to_string(oracle("sdsc-sp2-2500.swf")).unwrap()).unwrap();
    let jobs = &workload.jobs;
    assert_eq!(workload.nodes, Some(128));
    assert_eq!(jobs.len().to_string(), expected("sdsc-sp2-2500")["jobs_kept"]);
    for policy in ["easy", "conservative"] {
        let rows = table(&format!("sdsc-sp2-2500-{policy}.csv"));
        for (reservations, column, suffix) in
            [(Counted, "start_by_count_s", "by-count"), (Named, "start_named_s", "named")]
        {
            let found = schedule(jobs, 128, policy, reservations);
            for ((row, job), run) in rows.iter().zip(jobs).zip(&found.runs) {
                let expected = (row["job"].as_str(), seconds(&row[column]));
                assert_eq!((&*job.name, run.start.seconds()), expected, "{policy} {suffix}");
            }
            check_summary(&format!("sdsc-sp2-2500-{policy}-{suffix}"), &found, jobs);
        }
    }
    check_summary("sdsc-sp2-2500-fcfs-by-count", &schedule(jobs, 128, "fcfs", Counted), jobs);
}

fn any_job() -> impl Strategy<Value = Job> {
    (0..40_u64, 1..=6_u32, 0..20_u64, 0..30_u64).prop_map(|(submitted, nodes, estimate, runtime)| Job {
        name: String::new(),
        submitted: Date::from_micros(submitted),
        nodes,
        estimate: Span::from_micros(estimate),
        runtime: Span::from_micros(runtime),
        work: Work::Wait,
    })
}

proptest! {
    /// Also with jobs that run longer than estimated, or no time at all.
    #[test]
    fn no_node_runs_two_jobs_and_no_job_is_forgotten(jobs in prop::collection::vec(any_job(), 0..30)) {
        for entry in &POLICIES {
            for reservations in [Named, Counted] {
                let found = simulate(&jobs, 6, entry.policy(reservations)).unwrap();
                for (place, (job, run)) in jobs.iter().zip(&found.runs).enumerate() {
                    prop_assert!(run.start >= job.submitted && run.finish == run.start + job.runtime);
                    prop_assert_eq!(run.nodes.len(), job.nodes);
                    for other in &found.runs[..place] {
                        let mut common: NodeSet = run.nodes.clone();
                        common.intersect(&other.nodes);
                        let overlap = run.start < other.finish && other.start < run.finish;
                        prop_assert!(common.is_empty() || !overlap, "{}: {:?} {:?}", entry.name, run, other);
                    }
                }
            }
        }
    }

    /// A job is not delayed by jobs behind it, whatever is backfilled, if no job runs longer than estimated.
    #[test]
    fn the_head_of_the_queue_is_not_delayed_by_others(mut jobs in prop::collection::vec(any_job(), 1..20)) {
        jobs.iter_mut().for_each(|job| job.runtime = job.estimate);
        jobs.sort_by_key(|job| job.submitted);
        let alone = |policy, count: usize| {
            schedule(&jobs[..count], 6, policy, Named).runs[count - 1].start
        };
        let all = schedule(&jobs, 6, "conservative", Named);
        for count in 1..=jobs.len() {
            prop_assert_eq!(all.runs[count - 1].start, alone("conservative", count));
        }
    }
}
