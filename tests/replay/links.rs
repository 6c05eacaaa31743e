//! Link loads: in the report, on the terminal, and without effect on the result.

use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Config, ContendedLink, Outcome, Report, SavedReport, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, Folder, command};
use crate::determinism::all_calls;
use crate::matrix::digest;

const ASKED: &str = "analysis.links=true";
const EPOCHS: &str = "network.epoch_s='auto'";

/// Two messages of a megabyte share the link of host 2.
const TRACE: &str = "0 init\n1 init\n2 init\n0 send 2 0 999984\n1 send 2 0 999984\n2 irecv 0 0 999984\n2 irecv 1 0 999984\n2 waitall\n";

fn cluster(hosts: u32) -> String {
    format!(
        "platform.topology={{ kind = 'cluster', hosts = {hosts}, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }}"
    )
}

fn scene_on(hosts: u32, trace: &Path, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [&[&*cluster(hosts), "network.preset='raw'"], settings].concat() {
        config.set(setting).unwrap();
    }
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn simulation_of(trace: &Path, settings: &[&str]) -> Simulation {
    scene_on(8, trace, settings)
}

fn replay(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

#[test]
fn the_report_names_the_link_that_holds_messages_back() {
    let folder = Folder::new();
    for settings in [&[ASKED][..], &[ASKED, EPOCHS]] {
        let simulation = simulation_of(&folder.write("trace.txt", TRACE), settings);
        let outcome = replay(&simulation);
        let report = Report::new(&simulation, &outcome);
        report.write(&folder.path("report.json")).unwrap();
        let saved = SavedReport::from_path(&folder.path("report.json")).unwrap();
        assert_eq!(saved.sections.links, report.sections.links);
        let links = saved.sections.links.unwrap();
        let [shared, one, other] = &links.top[..] else { panic!("{links:?}") };
        let names = links.all.names.as_ref().unwrap();
        let place = |link: &ContendedLink| names.iter().position(|name| *name == link.name).unwrap();
        // Two links per host, up and down.
        assert_eq!([place(one), place(other), place(shared)], [0, 2, 5], "{settings:?}");
        assert_eq!((shared.bytes, one.bytes, other.bytes), (2_000_000, 1_000_000, 1_000_000));
        assert_eq!(links.all.bytes[..6], [1_000_000, 0, 1_000_000, 0, 0, 2_000_000]);
        assert_eq!(links.all.utilisation[5], (shared.utilisation * 1e6).round() / 1e6);
        // Both take two milliseconds after 2 us of latency, in epochs of 2 us without the first and the last one.
        assert!(shared.saturated_ps.abs_diff(2_000_000_000) <= 4_000_000, "{settings:?}: {shared:?}");
        assert_eq!((one.saturated_ps, other.saturated_ps), (0, 0));
        assert!((shared.utilisation - 2000.0 / 2002.0).abs() < 1e-3 && (shared.peak - 1.0).abs() < 1e-3);
        assert!((one.utilisation - 0.5).abs() < 1e-3 && (one.peak - 0.5).abs() < 0.1);
        let end = outcome.simulated_time().as_picos();
        assert_eq!(shared.series.len() as u64, end.div_ceil(links.bin_ps));
    }
}

#[test]
fn loads_do_not_depend_on_threads() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for settings in [&[ASKED][..], &[ASKED, EPOCHS]] {
        let mut simulation = simulation_of(&trace, settings);
        let expected = replay(&simulation).links.expect("they are asked for");
        assert!(expected.links.len() > 3);
        for (threads, jitter) in [(1, Some(1)), (2, None), (3, Some(7))] {
            simulation = simulation.with_threads(threads).with_jitter(jitter);
            assert_eq!(replay(&simulation).links.as_ref(), Some(&expected), "{settings:?}");
        }
    }
}

#[test]
fn link_loads_do_not_change_results() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for settings in [&[][..], &[EPOCHS]] {
        let with = replay(&simulation_of(&trace, &[settings, &[ASKED]].concat()));
        let without = replay(&simulation_of(&trace, &[settings, &["analysis.links=false"]].concat()));
        assert_eq!(without.links, None);
        assert_eq!(digest(&with), digest(&without));
    }
}

#[test]
fn a_model_without_links_is_warned_of() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let warns = |simulation: &Simulation| {
        simulation.warnings().iter().any(|warning| warning.contains("knows no links"))
    };
    let asked = simulation_of(&trace, &[ASKED, "network.model='contention-free'"]);
    assert!(warns(&asked));
    assert_eq!(replay(&asked).links, None);
    assert!(!warns(&simulation_of(&trace, &["network.model='contention-free'"])));
}

#[test]
fn names_of_many_links_are_left_out() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    for (hosts, is_named) in [(2048, true), (2049, false)] {
        let simulation = scene_on(hosts, &trace, &[ASKED]);
        let links = Report::new(&simulation, &replay(&simulation)).sections.links.unwrap();
        assert_eq!(links.all.names.is_some(), is_named);
        assert_eq!(
            (links.all.bytes.len(), links.all.utilisation.len()),
            (2 * hosts as usize, 2 * hosts as usize)
        );
    }
}

/// Two links for each host.
#[test]
fn few_links_are_recorded_unless_that_is_switched_off() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    for (hosts, settings, is_recorded) in [
        (1 << 15, &[][..], true),
        ((1 << 15) + 1, &[], false),
        ((1 << 15) + 1, &[ASKED], true),
        (8, &["analysis.links=false"], false),
    ] {
        let outcome = replay(&scene_on(hosts, &trace, settings));
        assert_eq!(outcome.links.is_some(), is_recorded, "{hosts} hosts, {settings:?}");
    }
}

#[test]
fn the_table_shows_contended_links() {
    let folder = Folder::new();
    let simulation = simulation_of(&folder.write("trace.txt", TRACE), &[ASKED, "analysis.waits=false"]);
    let report = Report::new(&simulation, &replay(&simulation));
    report.write(&folder.path("report.json")).unwrap();
    let links = report.sections.links.unwrap();
    let name = links.top[0].connects.as_ref().unwrap();
    assert_eq!(name, "the switch to host 2");
    command().arg("report").arg(folder.path("report.json")).assert().code(DONE).stdout(
        contains("most contended links").and(contains(format!("{name:<32} "))).and(contains(" 2000000 ")),
    );
}
