//! Parts of the run time, by replays on ideal machines.

use pdes_core::Progress;
use pdes_replay::{Config, IdealMachines, Report, Simulation};
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, command};

/// Two senders of one host share its link to a third rank, which computes after the data have come.
const TRACE: &str = "0 init\n1 init\n2 init\n0 compute 1e6\n1 compute 4e6\n0 send 2 0 1000000\n1 send 2 0 1000000\n2 recv 0 0 1000000\n\
    2 recv 1 0 1000000\n2 compute 1e6\n";
const CLUSTER: &str =
    "{ kind = 'cluster', hosts = 2, cores = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";

fn machines(trace: &str, settings: &[&str]) -> IdealMachines {
    let folder = Folder::new();
    let mut config = Config::default();
    config.set_path("trace", "path", &folder.write("trace.txt", trace));
    let topology = format!("platform.topology={CLUSTER}");
    settings.iter().chain([&&*topology]).for_each(|setting| config.set(setting).unwrap());
    let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
    let outcome = simulation.replay(&Progress::new(1)).unwrap();
    let mut report = Report::new(&simulation, &outcome);
    report.add_ideal_machines(&simulation, &outcome).unwrap();
    report.sections.ideal_machines.unwrap()
}

/// By hand: 2 ms of computation on average, 4 ms at most; 1 ms of rank 2 after the 4 of rank 1; 2 us of latency; 1 ms for a megabyte.
#[test]
fn each_cost_adds_its_part() {
    let found = machines(TRACE, &["mpi.envelope_bytes=0", "network.preset=raw"]);
    assert_eq!((found.mean_compute_ps, found.max_compute_ps), (2_000_000_000, 4_000_000_000));
    assert_eq!((found.no_communication_ps, found.library_ps), (5_000_000_000, 5_000_000_000));
    // A thousand-millionth of a millisecond is left of the data.
    assert_eq!(found.latency_ps, 5_002_000_001);
    assert_eq!((found.bandwidth_ps, found.run_ps), (6_002_000_000, 6_002_000_000));
    let parts: f64 = found.parts().iter().map(|part| part.time_s).sum();
    assert!((parts - 0.006_002).abs() < 1e-15, "{parts}");
}

/// Two messages that leave at once share the link: the second millisecond is contention. Waits that cost 10 us are the library's.
#[test]
fn shared_links_and_overheads_are_parts() {
    let received = "2 irecv 0 0 1000000 req=0\n2 irecv 1 0 1000000 req=1\n2 wait req=0\n2 wait req=1\n";
    let together = TRACE.replace("compute 4e6", "compute 1e6");
    let together = together.replace("2 recv 0 0 1000000\n2 recv 1 0 1000000\n", received);
    let found = machines(&together, &["mpi.envelope_bytes=0", "network.preset=raw"]);
    assert_eq!((found.bandwidth_ps, found.run_ps), (3_002_000_000, 4_002_000_000));
    let contention = found.parts()[6];
    assert_eq!((contention.name, contention.time_s), ("contention", 0.001));
    let found = machines(&together, &["mpi.call_overhead={ wait = '10us' }", "network.preset=raw"]);
    assert_eq!(found.library_ps - found.no_communication_ps, 20_000_000);
}

/// The section comes with the report of a short run, unless it is not wanted, and the verdict is made of it.
#[test]
fn the_verdict_names_the_largest_part() {
    let folder = Folder::new();
    let (trace, report) = (folder.write("trace.txt", TRACE), folder.path("run.json"));
    let topology = format!("platform.topology={CLUSTER}");
    let run = |more: &[&str]| {
        let mut run = command();
        run.arg(&trace)
            .args(["--set", &topology, "--set", "network.preset=raw", "--report"])
            .arg(&report)
            .args(more);
        run.assert().code(DONE);
        let mut shown = command();
        shown.arg("report").arg(&report);
        shown.assert().code(DONE)
    };
    run(&[]).stdout(contains(
        "33.3 % of the run time is computation: it is shorter with faster hosts, or less work.",
    ));
    let without = run(&["--set", "analysis.ideal_machines=false"]);
    let text = String::from_utf8(without.get_output().stdout.clone()).unwrap();
    assert!(
        !text.contains("of the run time is") && text.contains("With analysis.critical_path = true"),
        "{text}"
    );
}

/// A program that takes messages from any source need not end where times are others: the run succeeds, and says what it leaves out.
#[test]
fn a_program_that_depends_on_times_is_not_divided() {
    let folder = Folder::new();
    // Rank 0 hears rank 2 first on the machine, and on an ideal one rank 1, which it then waits for again.
    let trace = "0 init\n1 init\n2 init\n3 init\n3 send 1 0 4\n1 recv 3 0 4\n1 send 0 0 4\n2 compute 1e3\n2 send 0 0 4\n\
        0 recv -555 0 4\n0 recv 1 0 4\n";
    let (trace, report) = (folder.write("trace.txt", trace), folder.path("run.json"));
    let cluster = "platform.topology={ kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
    let run = |more: &str| {
        let mut run = command();
        run.arg(&trace)
            .args(["--set", cluster, "--set", "network.preset=raw", "--set", more, "--report"])
            .arg(&report);
        run.assert()
    };
    run("analysis.waits=true")
        .code(DONE)
        .stderr(contains("the run time is not divided, as the program does not end"));
    run("analysis.ideal_machines=true").code(FAILED).stderr(contains("a replay on an ideal machine"));
}
