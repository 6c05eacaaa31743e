//! Timelines: the same bytes for any division of a replay, and their content.

use std::collections::BTreeMap;
use std::path::Path;

use pdes_core::{Progress, Rank};
use pdes_replay::{Config, Outcome, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, Folder, MISUSE, command, skip};
use crate::determinism::{all_calls, committed_platform, tests_of_requests};
use crate::matrix::{Way, digest};
use crate::reference::repository;

fn simulation_of(trace: &Path, timeline: &Path, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &committed_platform("fattree-hdr.toml"));
    config.set_path("timeline", "file", timeline);
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn replay(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

/// Returns the files of a folder whose names have this prefix, with their contents.
fn files(folder: &Folder, name: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap());
    let named = entries.filter_map(|entry| {
        let file = entry.file_name().into_string().unwrap();
        file.starts_with(name).then(|| (file, std::fs::read(entry.path()).unwrap()))
    });
    named.collect()
}

/// Runs a program on a file; `None` if there is no such program.
fn read_with(program: &str, arguments: &[&str], file: &Path) -> Option<String> {
    let Ok(output) = std::process::Command::new(program).args(arguments).arg(file).output() else {
        skip(&format!("there is no {program}"));
        return None;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{program}: {told}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// In every n-th division, on threads and on processes emulated by threads.
#[test]
fn the_bytes_are_the_same_however_the_work_is_divided() {
    let folder = Folder::new();
    let settings = [
        "network.model='contention-free'",
        "timeline.collectives=true",
        "timeline.ranks='1..3'",
        "timeline.window='1us..'",
    ];
    for (trace, every) in [(all_calls(3), 121), (tests_of_requests(), 263)] {
        let trace = folder.write("trace.txt", &trace);
        for (number, file) in ["run.csv", "run.json", "run.parquet", "run.trace"].into_iter().enumerate() {
            let mut simulation = simulation_of(&trace, &folder.path(file), &settings);
            let written = replay(&simulation).program().timeline.unwrap();
            let expected = files(&folder, "run");
            assert!(written.states > 0 && written.messages > 0, "{written:?}");
            assert_eq!(written.bytes, expected.values().map(|bytes| bytes.len() as u64).sum::<u64>());
            for way in Way::part(every, number, 4) {
                let partition = way.partition(simulation.trace().ranks(), &folder);
                simulation = way.apply(simulation.with_threads(way.threads).with_partition(partition));
                assert_eq!(way.replay(&simulation).program().timeline, Some(written), "{way:?}");
                assert!(files(&folder, "run") == expected, "{file} {way:?}");
            }
            expected.keys().for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
        }
    }
}

/// With contention, in time order and region by region.
#[test]
fn the_bytes_are_the_same_with_contention() {
    let folder = Folder::new();
    let trace = repository().join("configs/traces/lu.S.8");
    let epochs = ["network.epoch_s='auto'", "network.regions=2"];
    for settings in [&[][..], &epochs[..]] {
        let settings = [&["network.model='flow'"], settings].concat();
        let written =
            replay(&simulation_of(&trace, &folder.path("run.csv"), &settings)).program().timeline.unwrap();
        assert!(written.messages > 10_000, "{written:?}");
        let expected = files(&folder, "run");
        for seed in 0..2 {
            let disturbed = simulation_of(&trace, &folder.path("run.csv"), &settings)
                .with_jitter(Some(seed))
                .with_threads(2);
            assert_eq!(replay(&disturbed).program().timeline, Some(written));
            assert!(files(&folder, "run") == expected, "{settings:?}, seed {seed}");
        }
    }
}

fn rows(folder: &Folder, name: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.path(name)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column].parse().unwrap()
}

/// Returns a merged trace with call sites and a region before every 29th action.
pub(crate) fn with_places(trace: &str) -> String {
    let place = |(number, line): (usize, &str)| match line.split_once(' ') {
        Some((rank, action)) if number % 29 == 28 && action != "init" => {
            format!("{rank} location solve.c {}\n{line}\n", number % 3)
        }
        _ => format!("{line}\n"),
    };
    trace.lines().enumerate().map(place).collect()
}

/// States of all ranks sum up to their time, by kind and place; waits to their waiting time; messages are those that the report counts.
#[test]
fn a_timeline_agrees_with_the_report() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &with_places(&all_calls(3)));
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        let simulation =
            simulation_of(&trace, &folder.path("run.csv"), &[model, "timeline.collectives=true"]);
        let outcome = replay(&simulation);
        let (states, waits) = (rows(&folder, "run.csv"), rows(&folder, "run.waits.csv"));
        let length = |row: &BTreeMap<String, String>| number(row, "end_ps") - number(row, "begin_ps");
        for (rank, statistics) in outcome.program().statistics.iter().enumerate() {
            let of_rank = |row: &&BTreeMap<String, String>| number(row, "rank") == rank as u64;
            let regions: Vec<_> = statistics.breakdown().unwrap().regions().collect();
            assert!(regions.len() > 2, "before the first place, and several places");
            let mut all = 0;
            for region in regions {
                let location = |site| simulation.trace().rank(Rank::new(rank as u32)).location(site);
                let site = region.site().map_or("", |site| mpi_model::region_name(location(site)));
                for (kind, share) in region.shares() {
                    let is_here = |row: &&BTreeMap<String, String>| {
                        of_rank(row) && row["state"] == kind.name() && row["site"] == site
                    };
                    let sum: u64 = states.iter().filter(is_here).map(length).sum();
                    assert_eq!(sum, share.time.as_picos(), "{kind:?} at {site:?} of rank {rank}, {model}");
                    all += sum;
                    let sum: u64 = waits.iter().filter(is_here).map(length).sum();
                    assert_eq!(
                        sum,
                        share.waited().as_picos(),
                        "{kind:?} at {site:?} of rank {rank}, {model}"
                    );
                }
            }
            assert_eq!(all, states.iter().filter(of_rank).map(length).sum::<u64>(), "rank {rank}, {model}");
        }
        let messages = rows(&folder, "run.messages.csv");
        assert!(messages.iter().all(|row| number(row, "arrived_ps") >= number(row, "sent_ps")));
        let sent: u64 = outcome.program().statistics.iter().map(|statistics| statistics.messages).sum();
        let received = outcome.program().timeline.unwrap().messages;
        assert_eq!(messages.len() as u64, received);
        assert!(received <= sent && received > sent / 2, "{received} of {sent}: some are not received");
    }
}

/// A window of a real trace, in the middle of its main loop.
const EXCERPT: [&str; 3] =
    ["timeline.window='1ms..2ms'", "timeline.ranks='1..5'", "timeline.collectives=true"];

#[test]
fn pajeng_reads_real_timelines() {
    let folder = Folder::new();
    let (trace, file) = (repository().join("configs/traces/lu.S.8"), folder.path("run.trace"));
    for excerpt in [&EXCERPT[..], &[]] {
        let settings = [&["network.model='flow'"], excerpt].concat();
        let written = replay(&simulation_of(&trace, &file, &settings)).program().timeline.unwrap();
        let Some(found) = read_with("pj_dump", &[], &file) else { return };
        let lines = |begin: &str| found.lines().filter(|line| line.starts_with(begin)).count() as u64;
        let found = (lines("State"), lines("Link"));
        assert_eq!(found, (written.states + written.waits, written.messages), "{settings:?}");
    }
}

#[test]
#[cfg_attr(not(feature = "otf2"), ignore = "needs the feature otf2")]
fn otf2_print_reads_real_timelines() {
    let folder = Folder::new();
    let (trace, file) = (repository().join("configs/traces/lu.S.8"), folder.path("run.otf2"));
    for excerpt in [&EXCERPT[..], &[]] {
        let settings = [&["network.model='contention-free'", "engine.threads=2"], excerpt].concat();
        let written = replay(&simulation_of(&trace, &file, &settings)).program().timeline.unwrap();
        let Some(found) = read_with("otf2-print", &["-Werror"], &file) else { return };
        let lines = |begin: &str| found.lines().filter(|line| line.starts_with(begin)).count() as u64;
        assert_eq!([lines("ENTER"), lines("LEAVE")], [written.states + written.waits; 2], "{settings:?}");
        assert_eq!([lines("MPI_SEND"), lines("MPI_RECV")], [written.messages; 2], "{settings:?}");
    }
}

#[test]
#[cfg_attr(feature = "otf2", ignore = "the program has OTF2")]
fn a_program_without_otf2_says_so() {
    expect_refusal("otf2");
}

#[test]
#[cfg_attr(feature = "parquet", ignore = "the program has Parquet")]
fn a_program_without_parquet_says_so() {
    expect_refusal("parquet");
}

fn expect_refusal(format: &str) {
    let config = repository().join("configs/lu-s-8.toml");
    let run = command().arg("--config").arg(config).arg(format!("--timeline=run.{format}")).assert();
    run.code(MISUSE).stderr(contains(format!("built without {format}: build it with --features {format}")));
}

#[test]
fn timelines_do_not_change_results() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        let with = replay(&simulation_of(&trace, &folder.path("run.json"), &[model]));
        let mut config = Config::default();
        config.set_path("trace", "path", &trace);
        config.set_path("platform", "file", &committed_platform("fattree-hdr.toml"));
        config.set(model).unwrap();
        let without = replay(&Simulation::load(&config.resolve().unwrap()).unwrap());
        assert_eq!((digest(&with), without.program().timeline), (digest(&without), None), "{model}");
    }
}

/// What is said before a run holds after it: of LU, whose messages are all outside of collective operations.
#[test]
fn the_size_is_estimated_before_the_run() {
    let folder = Folder::new();
    let trace = folder.path("lu.pdt");
    let arguments = ["trace", "generate", "npb-lu", "--class", "S", "--ranks", "8", "--steps", "5", "-o"];
    command().args(arguments).arg(&trace).assert().code(DONE);
    for (file, ranks) in
        [("run.json", "0..8"), ("run.json.gz", "0..8"), ("run.csv", "2..4"), ("run.trace", "0..4")]
    {
        let simulation = simulation_of(&trace, &folder.path(file), &[&format!("timeline.ranks='{ranks}'")]);
        let estimate = simulation.timeline_estimate().unwrap().unwrap();
        let written = replay(&simulation).program().timeline.unwrap();
        assert_eq!(estimate.messages, written.messages, "{file}");
        let shares = [estimate.states as f64 / written.states as f64, estimate.bytes / written.bytes as f64];
        assert!(shares.iter().all(|share| (0.5..2.0).contains(share)), "{file}: {estimate:?}, {written:?}");
    }
    let mut run = command();
    run.arg(&trace).arg("--platform").arg(committed_platform("fattree-hdr.toml")).arg("--timeline");
    run.arg(folder.path("run.json")).assert().code(DONE).stderr(contains("the timeline will have at most"));
}

#[test]
fn the_command_writes_a_timeline() {
    let folder = Folder::new();
    let timeline = folder.path("run.json.gz");
    let config = repository().join("configs/lu-s-8.toml");
    let run = |more: &[&str]| command().arg("--config").arg(&config).args(more).assert();
    let file = format!("--timeline={}", timeline.display());
    let few = ["--timeline-ranks=0..2", "--timeline-window=1ms..1.1ms", file.as_str()];
    run(&few).code(DONE).stderr(contains("wrote the timeline").and(contains("states")));
    assert_eq!(&std::fs::read(&timeline).unwrap()[..2], [0x1f, 0x8b]);
    for (arguments, words) in [
        (&["--timeline=run.txt"][..], "--timeline: found run.txt, expected a name that ends in one of .json"),
        (&["--timeline=run.json", "--timeline-format=svg"], "--timeline-format: found \"svg\""),
        (&["--timeline=run.json", "--timeline-window=2s..1s"], "--timeline-window: found \"2s..1s\""),
        (&["--timeline=run.json", "--timeline-ranks=3..3"], "--timeline-ranks: found \"3..3\""),
        (&["--timeline-ranks=0..3"], "[timeline] file: is missing"),
    ] {
        run(arguments).code(MISUSE).stderr(contains(words));
    }
    // A window in which nothing ran is empty, and ranks that there are not: not in silence.
    let plain = format!("--timeline={}", folder.path("run.json").display());
    run(&[&plain, "--timeline-window=1s.."]).code(DONE).stderr(
        contains("is empty: its window begins at 1 s, and the run ends at 0.0011411").and(contains(" WARN ")),
    );
    run(&[&plain, "--timeline-ranks=8..9"])
        .code(DONE)
        .stderr(contains("is empty: its ranks begin with 8, and the run has 8"));
    run(&[&plain, "--timeline-window=1ms..1s"]).code(DONE).stderr(contains("is empty").not());
    let below_a_file = format!("--timeline={}", folder.write("file", "").join("run.json").display());
    run(&[&below_a_file]).code(crate::command_line::FAILED).stderr(contains("the directory of the timeline"));
}
