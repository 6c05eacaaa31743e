//! Processes that load only their own ranks of an archive.

#[path = "../../crates/trace-mmap/tests/all/hostile/seal.rs"]
mod seal;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use pdes_core::{Cluster, Progress};
use pdes_replay::{Config, Outcome, RunError, RunSpec, Simulation};

use crate::command_line::Folder;
use crate::determinism::committed_platform;
use crate::epochs;
use crate::matrix::{Way, digest, simulation_of};
use crate::trace_commands::trace;

const PROCESSES: usize = 3;

fn halo(folder: &Folder) -> PathBuf {
    let path = folder.path("halo.pdt");
    let arguments =
        ["generate", "halo3d", "--cells=24,24,24", "--processes=3,3,3", "--jitter=0.3", "--output"];
    trace(&arguments, &[&path]).success();
    path
}

fn spec(trace: &Path, settings: &[&str]) -> RunSpec {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &committed_platform("fattree-hdr.toml"));
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config.resolve().unwrap()
}

/// Loads and replays on all processes; returns the number of ranks that each loaded, and the outcome of the first one.
fn replay(spec: &RunSpec) -> Vec<Result<(usize, Option<Outcome>), RunError>> {
    let replayed = Cluster::in_memory(PROCESSES, |mut cluster| {
        let simulation = Simulation::load_on(&mut cluster, spec, &AtomicU64::new(0))?;
        let outcome = simulation.run(&mut cluster, &Progress::new(1))?;
        Ok((simulation.trace().loaded_ranks().len(), outcome))
    });
    replayed.into_iter().map(|replayed| replayed.expect("no process panics")).collect()
}

fn succeed(spec: &RunSpec) -> (Vec<usize>, Outcome) {
    let (held, outcomes): (Vec<usize>, Vec<Option<Outcome>>) =
        replay(spec).into_iter().map(|replayed| replayed.expect("the run succeeds")).unzip();
    (held, outcomes.into_iter().flatten().next().expect("the first process has the outcome"))
}

#[test]
fn each_process_holds_its_own_ranks() {
    let folder = Folder::new();
    let halo = halo(&folder);
    let expected = digest(&simulation_of(&halo, "contention-free").replay(&Progress::new(1)).unwrap());
    // The first three of these divisions have the three partitions.
    for way in Way::all().filter(|way| (way.threads, way.processes) == (1, PROCESSES)).take(3) {
        let partition = format!("parallel.partition={:?}", way.partition(27, &folder).name());
        let (held, outcome) = succeed(&spec(&halo, &["network.model='contention-free'", &partition]));
        assert_eq!(digest(&outcome), expected, "{partition}");
        assert_eq!(held.iter().sum::<usize>(), 27, "{partition}: {held:?}");
        assert!(held.iter().all(|&held| held < 15), "{partition}: {held:?}");
    }
}

#[test]
fn with_contention_the_first_process_holds_all_ranks() {
    let folder = Folder::new();
    let halo = halo(&folder);
    let expected = digest(&simulation_of(&halo, "flow").replay(&Progress::new(1)).unwrap());
    let (held, outcome) = succeed(&spec(&halo, &["network.model='flow'"]));
    assert_eq!((held, digest(&outcome)), (vec![27, 0, 0], expected));
}

/// A program on four regions of 16 hosts, of which the first has twice the actions of the second, which has twice those of each other.
fn uneven(folder: &Folder) -> PathBuf {
    let of_rank = |rank: usize| {
        let to = rank ^ 1;
        let round = match rank % 2 {
            0 => format!("{rank} send {to} 0 1000\n{rank} recv {to} 0 1000\n"),
            _ => format!("{rank} recv {to} 0 1000\n{rank} send {to} 0 1000\n"),
        };
        format!("{rank} init\n{}{rank} finalize\n", round.repeat([400, 200, 100, 100][rank / 16]))
    };
    let (text, archive) =
        (folder.write("uneven.txt", &(0..64).map(of_rank).collect::<String>()), folder.path("uneven.pdt"));
    trace(&["convert", "-o"], &[&archive, &text]).success();
    archive
}

fn region_spec(trace: &Path, settings: &[&str]) -> RunSpec {
    epochs::spec(trace, epochs::TREE, &[&["network.epoch_s='auto'"], settings].concat())
}

fn costs_setting(path: &Path) -> String {
    format!("parallel.region_costs={path:?}")
}

#[test]
fn processes_hold_regions_that_cost_as_much() {
    let folder = Folder::new();
    let uneven = uneven(&folder);
    let (held, outcome) = succeed(&region_spec(&uneven, &[]));
    assert_eq!(held, [16, 16, 32], "as many actions");
    // Other costs than the numbers of actions.
    let profile =
        r#"{"format": "pdes-replay region profile", "version": 1, "region_s": [0.1, 0.1, 0.1, 0.6]}"#;
    let measured = costs_setting(&folder.write("profile.json", profile));
    let (held, other) = succeed(&region_spec(&uneven, &[&measured]));
    assert_eq!(held, [48, 0, 16], "as they took");
    assert_eq!(digest(&other), digest(&outcome));
}

#[test]
fn the_profile_provides_region_costs() {
    let folder = Folder::new();
    let (uneven, path) = (uneven(&folder), folder.path("profile.json"));
    let simulation = Simulation::load(&region_spec(&uneven, &[])).unwrap();
    simulation.profile_regions(&Progress::new(1)).unwrap().write(&path).unwrap();
    let (held, outcome) = succeed(&region_spec(&uneven, &[&costs_setting(&path)]));
    assert_eq!(
        (held.iter().sum::<usize>(), digest(&outcome)),
        (64, digest(&simulation.replay(&Progress::new(1)).unwrap()))
    );
}

#[test]
fn invalid_region_costs_are_refused() {
    let folder = Folder::new();
    let uneven = uneven(&folder);
    let told = |text: Option<&str>| {
        let path = folder.path("costs.json");
        text.into_iter().for_each(|text| std::fs::write(&path, text).unwrap());
        let error =
            Simulation::load(&region_spec(&uneven, &[&costs_setting(&path)])).unwrap_err().to_string();
        error.replace(&path.display().to_string(), "costs.json")
    };
    let missing = told(None);
    assert!(missing.starts_with("parallel.region_costs costs.json: No such file"), "{missing}");
    let other = told(Some(r#"{"format": "pdes-replay parallel profile", "region_s": []}"#));
    assert!(
        other.contains("found a \"pdes-replay parallel profile\"; expected the file that --profile writes"),
        "{other}"
    );
    let damaged = told(Some(r#"{"format": "pdes-replay region profile"}"#));
    assert!(damaged.contains("missing field `region_s`"), "{damaged}");
    let fewer = told(Some(r#"{"format": "pdes-replay region profile", "region_s": [1, 2]}"#));
    assert!(fewer.contains("found a profile of 2 regions, expected one of 4"), "{fewer}");
}

/// Returns the errors of the processes for an archive that was changed, with valid checksums.
fn with_change(change: impl Fn(&mut [u8])) -> Vec<RunError> {
    let folder = Folder::new();
    let halo = halo(&folder);
    let mut bytes = std::fs::read(&halo).unwrap();
    change(&mut bytes);
    seal::seal(&mut bytes);
    std::fs::write(&halo, bytes).unwrap();
    let results = replay(&spec(&halo, &["network.model='contention-free'"]));
    results
        .into_iter()
        .map(|result| result.map(|(held, _)| held).expect_err("the archive is wrong"))
        .collect()
}

fn place_of_table(bytes: &[u8], number: usize) -> usize {
    u64::from_le_bytes(*bytes[40 + 24 * number..].first_chunk().unwrap()) as usize
}

/// The table of ranks is the fifth; the third number of four bytes in a row of 112 is that of ports.
#[test]
fn a_wrong_entry_is_reported_by_the_process_of_its_rank() {
    let errors = with_change(|bytes| {
        let table = place_of_table(bytes, 4);
        bytes[table + 112 * 26 + 8] = 200;
    });
    let elsewhere = |error: &RunError| matches!(error, RunError::OtherProcess { process: 2 });
    assert!(errors[..2].iter().all(elsewhere), "{errors:?}");
    assert!(errors[2].to_string().contains("number of ports"), "{}", errors[2]);
}

/// The second word of the first table, the overview, is the number of actions: no process alone can detect a change.
#[test]
fn a_wrong_sum_is_reported_by_the_first_process() {
    let errors = with_change(|bytes| bytes[place_of_table(bytes, 0) + 8] ^= 1);
    let elsewhere = |error: &RunError| matches!(error, RunError::OtherProcess { process: 0 });
    assert!(errors[1..].iter().all(elsewhere), "{errors:?}");
    assert!(errors[0].to_string().contains("number of all actions"), "{}", errors[0]);
}
