//! SST's own DUMPI trace, as SST/macro simulates it.

use std::fs;
use std::path::Path;

use pdes_core::{Progress, Rank};
use pdes_replay::{Config, Simulation};
use trace_mmap::LoadOptions;
use trace_tools::{load, write_text};

use crate::command_line::Folder;
use crate::shared::shared;

/// The node of SST's tests (`configurations/small_torus.ini`), on which all four ranks run: their messages go through its memory.
const NODE: &str = "platform.topology={ kind='cluster', hosts=1, cores=96, speed='1Gf', bandwidth='0.8GBps', latency='100ns', \
                    loopback={ bandwidth='6GBps', latency='15ns' } }";

/// Returns the simulated time of a trace \[s\].
fn simulated(trace: &Path) -> f64 {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [NODE, "network.model='contention-free'"] {
        config.set(setting).unwrap();
    }
    let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
    simulation.replay(&Progress::new(1)).unwrap().simulated_time().as_secs_f64()
}

/// SST/macro adds the start and the end of a job, which take the same time where it stops the trace at its second collective operation
/// (`parsedumpi_terminate_count = 1`) and where it does not. The one run tells that time, the other compares.
#[test_with::shared]
fn the_time_of_the_trace_of_sst_is_that_of_sst() {
    let samples = shared("samples/dumpi");
    let table = fs::read_to_string(samples.join("expected.csv")).expect("the table is there");
    let published = |name: &str| -> f64 {
        let row = table.lines().find_map(|line| line.strip_prefix(&format!("testtrace,sst_macro_{name},")));
        row.expect("a row").split(',').next().expect("a value").parse().expect("a number")
    };
    let trace = load(&samples.join("data"), &LoadOptions::default()).expect("the trace loads");
    let folder = Folder::new();
    let text = |name: &str, is_whole: bool| {
        let mut all = String::new();
        for rank in (0..trace.ranks()).map(Rank::new) {
            let mut text = Vec::new();
            write_text(&trace, rank, &mut text, None).expect("memory takes all");
            let text = String::from_utf8(text).expect("text");
            // The computation before an operation belongs to it.
            let last = text.find(&format!("{rank} allreduce")).map(|at| text[..at].trim_end().rfind('\n'));
            let end = last.flatten().filter(|_| !is_whole);
            all += &text[..end.unwrap_or(text.len() - 1)];
            all += "\n";
        }
        folder.write(name, &all)
    };
    let [whole, begin] =
        [("whole.txt", true), ("begin.txt", false)].map(|(name, is)| simulated(&text(name, is)));
    let job = published("dumpi_terminate") - begin;
    let (found, expected) = (whole + job, published("dumpi_manager"));
    assert!((found / expected - 1.0).abs() < 0.001, "{found} s, SST/macro {expected} s");
    let (found, expected) = (whole - begin, expected - published("dumpi_terminate"));
    assert!((found / expected - 1.0).abs() < 0.005, "{found} s, SST/macro {expected} s");
    // The start and the end of a job are 8 % of it.
    assert!((8.0e-6..8.3e-6).contains(&job), "{job}");
}
