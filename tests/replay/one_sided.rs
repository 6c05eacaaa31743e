//! One-sided communication: SMPI's times, on any threads and processes, with checkpoints and fast-forward.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Config, Feature, Simulation};
use trace_mmap::{ConvertOptions, Folding};
use trace_tools::convert;

use crate::checkpoints::replay_in_parts;
use crate::command_line::Folder;
use crate::determinism::committed_platform;
use crate::matrix::{Way, digest, results};
use crate::reference::{Row, rows};
use crate::shared::shared;

/// Date at which all ranks begin the case \[s\].
const BEGIN: f64 = 0.1;

/// Difference between the dates at which ranks begin, so that the first one is known \[s\].
const APART: f64 = 2e-9;

/// Returns the name of the call of a step of the oracle.
fn state(case: &str, step: &str) -> &'static str {
    match step.trim_end_matches(char::is_numeric) {
        "put" | "rput" => "put",
        "get" | "rget" => "get",
        "accumulate" => "accumulate",
        "get_accumulate" | "fetch_and_op" | "swap" => "get_accumulate",
        "fence" => "win_fence",
        "post" => "win_post",
        "start" => "win_start",
        "complete" => "win_complete",
        "wait" if case.starts_with("pscw") => "win_wait",
        "wait" => "wait",
        "lock" | "lock_all" => "win_lock",
        "unlock" | "unlock_all" => "win_unlock",
        "flush" | "flush_local" | "flush_all" => "win_flush",
        other => panic!("{other} is no call"),
    }
}

/// Returns the calls of a rank in a case.
fn calls(case: &str, bytes: &str, me: u32, np: u32) -> Vec<String> {
    let others: Vec<String> = (1..np).map(|rank| rank.to_string()).collect();
    let fence = "win_fence".to_owned();
    let access = |call: &str, target: u32| format!("{call} {target} {bytes}");
    let mut calls: Vec<String> = match case {
        "fence" => Vec::new(),
        "put_fence" | "get_fence" | "accumulate_fence" if me == 0 => vec![access(&case[..case.len() - 6], 1)],
        "put_fence" | "get_fence" | "accumulate_fence" => Vec::new(),
        "puts_two_fence" if me == 0 => vec![access("put", 1), access("put", np - 1)],
        "put_all_fence" if me > 0 => vec![access("put", 0)],
        "put_late_fence" if me == 0 => vec![access("put", 1)],
        "put_late_fence" if me == 1 => vec!["sleep 0.002".to_owned()],
        "put_self_fence" => vec![access("put", me)],
        "rput_fence" | "rget_fence" if me == 0 => {
            vec![format!("{} req=1", access(&case[..4], 1)), "wait req=1".to_owned()]
        }
        "puts_two_fence" | "put_all_fence" | "put_late_fence" | "rput_fence" | "rget_fence" => Vec::new(),
        _ if case.starts_with("pscw") && me == 0 => {
            let late = (case == "pscw_late_origin").then(|| "sleep 0.002".to_owned());
            let puts = (1..np).map(|target| access("put", target));
            let begin = late.into_iter().chain([format!("win_start to={}", others.join(","))]);
            begin.chain(puts).chain(["win_complete".to_owned()]).collect()
        }
        _ if case.starts_with("pscw") => {
            let late = (case == "pscw_late_target" && me == 1).then(|| "sleep 0.002".to_owned());
            late.into_iter().chain(["win_post to=0".to_owned(), "win_wait".to_owned()]).collect()
        }
        "lock_all_put" => {
            let calls = ["win_lock_all", &access("put", (me + 1) % np), "win_flush_all", "win_unlock_all"];
            calls.map(str::to_owned).into()
        }
        _ if me == 0 => Vec::new(),
        "lock_put_shared" => ["win_lock 0", &access("put", 0), "win_unlock 0"].map(str::to_owned).into(),
        "lock_put" => ["win_lock_exclusive 0", &access("put", 0), "win_unlock 0"].map(str::to_owned).into(),
        "lock_fetch_and_op" | "lock_get_accumulate" | "lock_swap" => {
            // In SMPI, the put of a comparison of one origin comes too late for its next one.
            let second = if np == 2 { "" } else { " done=no" };
            let calls = match case {
                "lock_swap" => {
                    let swap = access("compare_and_swap", 0);
                    [swap.clone(), swap + second]
                }
                _ => [access(&case[5..], 0), access(&case[5..], 0)],
            };
            ["win_lock 0".to_owned()].into_iter().chain(calls).chain(["win_unlock 0".to_owned()]).collect()
        }
        "lock_get" => {
            ["win_lock 0", &access("get", 0), "win_flush_local 0", "win_unlock 0"].map(str::to_owned).into()
        }
        "lock_put_flush" => {
            let calls = ["win_lock 0", &access("put", 0), "win_flush_local 0", "win_flush 0", "win_unlock 0"];
            calls.map(str::to_owned).into()
        }
        _ => panic!("{case} is not known"),
    };
    if case.ends_with("fence") {
        calls.push(fence);
    }
    calls
}

/// Returns the merged trace of a case; before it, each rank sleeps for its time.
fn trace(case: &str, bytes: &str, np: u32, sleeps: Option<&[f64]>) -> String {
    let mut text = String::new();
    for rank in 0..np {
        let mut line = |call: &str| {
            let words: Vec<&str> = call.split(' ').collect();
            let is_on_window = !["init", "barrier", "sleep", "wait", "win_create"].contains(&words[0]);
            let (call, done) = call.split_at(call.find(" done=").unwrap_or(call.len()));
            writeln!(text, "{rank} {call}{}{done}", if is_on_window { " comm=1" } else { "" }).unwrap();
        };
        line("init");
        line("win_create new=1");
        if !case.starts_with("lock") && !case.starts_with("pscw") {
            line("win_fence");
        }
        line("barrier");
        if let Some(sleeps) = sleeps {
            line(&format!("sleep {:.12}", sleeps[rank as usize]));
            calls(case, bytes, rank, np).iter().for_each(|call| line(call));
            line("sleep 0.05");
            line("barrier");
            line("win_free");
        }
    }
    text
}

fn simulation(folder: &Folder, text: &str, platform: &str, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", &folder.write("trace.txt", text));
    config.set_path("platform", "file", &shared("oracle").join(format!("{platform}.xml")));
    config.set_path("platform", "hosts", &shared("oracle").join("hosts.txt"));
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

/// Returns the states of ranks that take time, in their order: rank, name, and end \[s\].
fn states(timeline: &Path) -> Vec<(usize, String, f64)> {
    let table = std::fs::read_to_string(timeline).unwrap();
    let states = table.lines().skip(1).filter_map(|row| {
        let [rank, state, begin, end, _] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let end_s = end.parse::<f64>().unwrap() * 1e-12;
        (begin != end).then(|| (rank.parse().unwrap(), state.to_owned(), end_s))
    });
    let mut states: Vec<_> = states.collect();
    states.sort_by(|(_, _, one), (_, _, other)| one.total_cmp(other));
    states
}

/// Returns steps of a rule for exclusive locks that exclude: SMPI's let transfers overlap.
fn with_sane_locks(steps: &mut [(usize, &'static str, f64, f64)]) {
    const TRANSFER: f64 = 0.002014932;
    for (rank, state, begin, end) in steps {
        let place = (*rank - 1) as f64;
        (*begin, *end) = match *state {
            "win_lock" => (0.0, place * TRANSFER),
            "win_unlock" => (place * TRANSFER, (place + 1.0) * TRANSFER),
            _ => (*end, *end),
        };
    }
}

#[test_with::shared]
fn one_sided_communication_takes_the_time_of_smpi() {
    let folder = Folder::new();
    let mut cases: BTreeMap<(String, String, String, String), Vec<Row>> = BTreeMap::new();
    for row in rows(&shared("oracle/rma/expected.csv")) {
        let case = (row["case"].clone(), row["bytes"].clone(), row["np"].clone(), row["platform"].clone());
        cases.entry(case).or_default().push(row);
    }
    assert_eq!(cases.len(), 69);
    let replay = |simulation: Simulation| {
        let outcome = simulation.replay(&Progress::new(1)).unwrap();
        outcome.program().ends.iter().map(|end| end.as_secs_f64()).collect::<Vec<f64>>()
    };
    let mut wrong = String::new();
    for ((case, bytes, np, platform), steps) in &cases {
        let np: u32 = np.parse().unwrap();
        let steps = steps.iter().map(|row| {
            let [rank, begin, end] = ["rank", "begin_s", "end_s"].map(|key| row[key].parse::<f64>().unwrap());
            (rank as usize, state(case, &row["step"]), begin, end)
        });
        let mut steps: Vec<(usize, &str, f64, f64)> = steps.collect();
        if case == "lock_put" && np > 2 {
            with_sane_locks(&mut steps);
        }
        let mut first: Vec<usize> = (0..np as usize).collect();
        first.sort_by(|one, other| {
            let end = |rank| steps.iter().find(|step| step.0 == rank).map_or(0.0, |step| step.3);
            end(*one).total_cmp(&end(*other))
        });
        let place = |rank: usize| first.iter().position(|first| *first == rank).unwrap() as f64;
        let settings = ["network.model='flow'"];
        let ends = replay(simulation(&folder, &trace(case, bytes, np, None), platform, &settings));
        let begin = |rank| BEGIN + if case.starts_with("lock") { APART * place(rank) } else { 0.0 };
        let sleeps: Vec<f64> = ends.iter().enumerate().map(|(rank, end)| begin(rank) - end).collect();
        let text = trace(case, bytes, np, Some(&sleeps));
        let timeline = folder.path("states.csv");
        let settings = [settings[0], &format!("timeline.file={timeline:?}")];
        replay(simulation(&folder, &text, platform, &settings));
        let found = states(&timeline);
        for rank in 0..np as usize {
            let of_case = |state: &&str, end: f64| {
                end > BEGIN + 1e-9 && !["sleep", "barrier", "win_free"].contains(state)
            };
            let found = found.iter().filter(|(of, state, end)| *of == rank && of_case(&state.as_str(), *end));
            let found: Vec<(&str, f64)> =
                found.map(|(_, state, end)| (state.as_str(), end - BEGIN)).collect();
            let expected = steps.iter().filter(|(of, _, begin, end)| *of == rank && end - begin > 1e-9);
            let expected: Vec<(&str, f64)> = expected.map(|(_, state, _, end)| (*state, *end)).collect();
            let is_close = |((_, found), (_, expected)): (&(&str, f64), &(&str, f64))| {
                (found - expected).abs() <= 1.1e-8 + if np == 2 { 0.0 } else { 1e-5 * expected }
            };
            let is_right = found.iter().map(|found| found.0).eq(expected.iter().map(|step| step.0))
                && found.iter().zip(&expected).all(is_close);
            if !is_right {
                writeln!(wrong, "{case} {bytes} {np} {platform} {rank}: {found:?}, SMPI {expected:?}")
                    .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Number of ranks of the program below.
const RANKS: u32 = 5;

/// A program whose iterations make all calls, those with a place in the order of time on request: to neighbours on a ring, with
/// computations that differ by rank.
fn all_calls(iterations: u32, in_order: bool) -> String {
    let mut text = String::new();
    for rank in 0..RANKS {
        let [before, next] = [(rank + RANKS - 1) % RANKS, (rank + 1) % RANKS];
        let mut line = |call: &str| writeln!(text, "{rank} {call}").unwrap();
        line("init");
        line("win_create new=1");
        line("win_fence comm=1");
        for _ in 0..iterations {
            line(&format!("compute {}e5", 1 + rank * rank));
            for bytes in [8, 40_000, 300_000] {
                line(&format!("put {next} {bytes} comm=1"));
                line(&format!("put {} {bytes} comm=1", (rank + 3) % RANKS));
                line(&format!("get {before} {bytes} comm=1"));
            }
            line(&format!("rget {next} 70000 comm=1 req=1"));
            line(&format!("rput {rank} 70000 comm=1 req=2"));
            line("compute 2e5");
            line("waitall req=1,2");
            line("win_fence comm=1");
            line(&format!("win_post to={before} comm=1"));
            line(&format!("win_start to={next} comm=1"));
            line(&format!("put {next} 100000 comm=1"));
            line(&format!("get {next} 1000 comm=1"));
            line("win_complete comm=1");
            line("win_wait comm=1");
            line(&format!("win_lock {next} comm=1"));
            line(&format!("put {next} 90000 comm=1"));
            line(&format!("get {next} 90000 comm=1"));
            line(&format!("win_flush_local {next} comm=1"));
            line(&format!("accumulate {next} 800 comm=1"));
            line(&format!("win_unlock {next} comm=1"));
            if in_order {
                line(&format!("win_lock_exclusive {} comm=1", rank % 2));
                line(&format!("put {} 60000 comm=1", rank % 2));
                line(&format!("win_unlock {} comm=1", rank % 2));
                line("fetch_and_op 0 8 comm=1");
                line(&format!("rget_accumulate {next} 5000 comm=1 req=4"));
                line("wait req=4");
                line("compare_and_swap 1 4 comm=1 done=no");
                line("compare_and_swap 1 4 comm=1");
            }
            line("win_lock_all comm=1");
            line(&format!("raccumulate {rank} 8 comm=1 req=3"));
            line(&format!("put {before} 8 comm=1"));
            line("wait req=3");
            line("win_flush_all comm=1");
            line("win_unlock_all comm=1");
        }
        line("win_free comm=1");
    }
    text
}

/// Ways in which messages take time, and data move.
const MODELS: [&[&str]; 6] = [
    &["network.model='contention-free'"],
    &["network.model='contention-free'", "mpi.eager_below_bytes=0", "mpi.send_overhead='0:1us:1ns'"],
    &["network.model='contention-free'", "mpi.progress='calls'"],
    &["network.model='flow'", "network.precision_s=0", "network.solve_scope='complete'"],
    &["network.model='flow'", "network.epoch_s='auto'"],
    &["network.model='packets'"],
];

fn config(trace: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &committed_platform("fattree-hdr.toml"));
    config.set("parallel.oversubscribe=true").unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

#[test]
fn the_result_is_the_same_on_any_threads_and_processes() {
    let folder = Folder::new();
    for (settings, in_order) in MODELS.into_iter().flat_map(|settings| [(settings, false), (settings, true)])
    {
        let trace = folder.write("trace.txt", &all_calls(3, in_order));
        let settings = [settings, &["analysis.critical_path=true", "analysis.matrix=true"]].concat();
        let simulation = Simulation::load(&config(&trace, &settings).resolve().unwrap()).unwrap();
        let expected = results(&simulation.replay(&Progress::new(1)).unwrap());
        for way in Way::all().step_by(143) {
            let simulation = Simulation::load(&config(&trace, &settings).resolve().unwrap()).unwrap();
            let simulation = way.apply(simulation.with_threads(way.threads));
            // Exact contention runs on one process.
            let mut way = way;
            if settings.contains(&"network.precision_s=0") {
                way.processes = 1;
            }
            let found = results(&way.replay(&simulation));
            assert!(found == expected, "{settings:?} {in_order} {way:?}");
        }
    }
}

#[test]
fn replays_resume_in_the_midst_of_epochs() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &all_calls(1, true));
    for settings in MODELS {
        let config = config(&trace, settings);
        let simulation = Simulation::load(&config.clone().resolve().unwrap()).unwrap();
        let expected = digest(&simulation.replay(&Progress::new(1)).unwrap());
        let (resumed, runs) = replay_in_parts(config, &Folder::new());
        // In the order of time a run stops some dozen events later only.
        assert_eq!((digest(&resumed.unwrap()), runs > 2), (expected, true), "{settings:?}");
    }
}

#[test]
fn iterations_with_windows_are_skipped() {
    let folder = Folder::new();
    for (settings, in_order) in [(MODELS[0], false), (MODELS[3], false), (MODELS[0], true), (MODELS[3], true)]
    {
        let (text, path) = (folder.write("trace.txt", &all_calls(300, in_order)), folder.path("trace.pdt"));
        let options = ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() };
        convert(&text, &path, &options).unwrap();
        let simulation = |more: &[&str]| {
            let config = config(&path, &[settings, more].concat());
            Simulation::load(&config.resolve().unwrap()).unwrap()
        };
        let replay = |more| simulation(more).replay(&Progress::new(1)).unwrap();
        let forward = ["engine.fast_forward=true"];
        let (whole, forwarded) = (replay(&[]), replay(&forward));
        assert_eq!(digest(&forwarded), digest(&whole), "{settings:?}");
        let skipped = forwarded.fast_forward.map_or(0, |found| found.skipped_iterations);
        let is_refused = simulation(&forward).execution(1).obstacle(Feature::FastForward).is_some();
        // Locks are decided in the order of time, which ranks without contention do not share.
        let expected = if in_order && settings == MODELS[0] { (false, true) } else { (true, false) };
        assert_eq!((skipped > 150, is_refused), expected, "{settings:?} {in_order}: {skipped}");
    }
}
