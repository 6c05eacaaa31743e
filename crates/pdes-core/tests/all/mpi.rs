//! Clusters of processes: this program starts itself under `mpirun`.
//!
//! The ignored tests are the programs of the processes. The launcher is `mpirun`, or that in the variable `MPIRUN`.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::network::catalogue::{one_of_each, ring};
use crate::network::schedule::{Network, Schedule, is_campaign};
use crate::network::station::{Log, Op, Phase};
use pdes_core::{Cluster, ClusterError, Engine};

/// Environment variable with the number of workers of each member.
const WORKERS: &str = "PDES_CORE_TEST_WORKERS";
/// Longer than any of these runs takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(200);

/// Result of the launcher and output of all members.
struct MpirunOutput {
    success: bool,
    output: String,
}

/// Runs one of the ignored tests on `members` members with `workers` workers each.
fn mpirun(members: usize, workers: usize, test: &str) -> MpirunOutput {
    let launcher = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let mut child = Command::new(&launcher)
        .args(["-np", &members.to_string()])
        .arg(std::env::current_exe().expect("a test has a file"))
        .args(["--ignored", "--exact", &format!("mpi::{test}"), "--nocapture", "--test-threads=1"])
        .env(WORKERS, workers.to_string())
        // For Open MPI: allow more processes than processors, and any user.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{launcher}: {error}"));
    let mut streams: Vec<Box<dyn Read + Send>> = Vec::new();
    streams.extend(child.stdout.take().map(|stream| Box::new(stream) as _));
    streams.extend(child.stderr.take().map(|stream| Box::new(stream) as _));
    let readers: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stream.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        })
        .collect();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the state of a child") {
            break status;
        }
        if started.elapsed() > DEADLINE {
            let _ = child.kill();
            panic!("{members} members with {workers} workers hang in {test}");
        }
        thread::sleep(Duration::from_millis(20));
    };
    let output = readers.into_iter().map(|reader| reader.join().expect("a reader ends")).collect();
    MpirunOutput { success: status.success(), output }
}

/// Writes a line at once, so that those of several members do not mix.
fn print_line(line: &str) {
    std::io::stderr().write_all(line.as_bytes()).expect("there is a standard error");
}

fn workers() -> usize {
    std::env::var(WORKERS).ok().and_then(|workers| workers.parse().ok()).unwrap_or(1)
}

#[test]
fn any_number_of_processes_gives_the_same() {
    for members in [1, 2, 3, 4] {
        for workers in [1, 2, 3] {
            if !is_campaign() && workers != members % 3 + 1 {
                continue;
            }
            let MpirunOutput { success, output } = mpirun(members, workers, "member_compares");
            assert!(success, "{members} members with {workers} workers:\n{output}");
            // Each member has run the test, and has found the right number of members.
            let lines = output.matches(&format!("compared as one of {members}")).count();
            assert_eq!(lines, members, "{output}");
        }
    }
}

#[test]
#[ignore = "a member of a cluster"]
fn member_compares() {
    let mut cluster = Cluster::from_mpi().expect("mpi");
    let (members, workers) = (cluster.members(), workers());
    for (name, network) in one_of_each() {
        let expected = network.run(&Engine::new(1));
        for schedule in Schedule::of(members, workers).step_by(7) {
            network.check_part(&mut cluster, &schedule, &expected, name);
        }
    }
    print_line(&format!("compared as one of {members}\n"));
}

#[test]
fn a_panic_ends_all_processes_with_one_message() {
    for (members, workers) in [(2, 1), (3, 2)] {
        let MpirunOutput { success, output } = mpirun(members, workers, "member_panics");
        assert!(!success, "{output}");
        assert_eq!(output.matches("station 5 panics").count(), 1, "{output}");
        assert_eq!(output.matches("was told").count(), members - 1, "{output}");
        assert!(!output.contains("MPI_ABORT"), "{output}");
    }
}

/// Process 5 of six panics, while process 1 runs free.
#[test]
#[ignore = "a member of a cluster"]
fn member_panics() {
    let mut cluster = Cluster::from_mpi().expect("mpi");
    let mut network = Network::of((0..6).map(|me: u32| vec![Op::Receive { from: (me + 1) % 6 }]));
    network.programs[5][0].ops = vec![Op::Compute(1), Op::Panic];
    network.programs[1] = vec![Phase { ops: vec![Op::Compute(1_000)], laps: 1 << 50 }];
    let last = cluster.members() - 1;
    match network.run_part(&Engine::new(workers()), &mut cluster, &Log::default()) {
        Err(ClusterError::MemberLeft { member, message: Some(_) }) if member == last => {
            print_line("was told\n")
        }
        other => panic!("not the panic of member {last}: {:?}", other.map(|run| run.ending)),
    }
}

#[test]
fn a_process_that_ends_early_blocks_nobody() {
    let MpirunOutput { success, output } = mpirun(3, 1, "member_leaves");
    assert!(success, "{output}");
    assert_eq!(output.matches("was told").count(), 2, "{output}");
}

/// Member 1 leaves before there is a run.
#[test]
#[ignore = "a member of a cluster"]
fn member_leaves() {
    let mut cluster = Cluster::from_mpi().expect("mpi");
    if cluster.member() == 1 {
        return;
    }
    let run = ring(6, 3, 10).run_part(&Engine::new(workers()), &mut cluster, &Log::default());
    assert_eq!(run.err(), Some(ClusterError::MemberLeft { member: 1, message: None }));
    print_line("was told\n");
}
