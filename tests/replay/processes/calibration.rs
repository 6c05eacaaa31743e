//! Measurements by two processes.

use ::calibration::{Operation, Plan, read};

use super::{expect_failure, mpirun, text};
use crate::command_line::{DONE, FAILED, Folder, command};

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn two_processes_make_a_machine() {
    let folder = Folder::new();
    let (machine, data) = (text(&folder.path("machine.toml")), text(&folder.path("data")));
    let arguments =
        ["calibrate", "-o", &machine, "--data", &data, "--largest=400", "--sizes=3", "--visits=1"];
    let assert = mpirun(2, &arguments);
    assert.code(DONE);
    let measurements = read(&folder.path("data/observations.csv")).unwrap();
    let sizes = Plan { seed: 1, largest: 400, sizes: 3, visits: 1 }.message_sizes();
    for operation in [Operation::PingPong, Operation::Isend, Operation::Stream] {
        let found = measurements.points(operation).into_iter().map(|point| point.amount);
        let expected = sizes.iter().copied().filter(|&size| size > 0 || operation != Operation::Stream);
        assert!(found.eq(expected), "{operation}");
    }
    // A visit has four rounds; the search for the threshold may have added some of the others.
    assert!(measurements.points(Operation::PingPong).iter().all(|point| point.count == 4));
    for operation in [Operation::SendLate, Operation::Receive] {
        let points = measurements.points(operation);
        assert!(sizes.iter().all(|&size| points.iter().any(|point| point.amount == size)), "{operation}");
    }
    for operation in [Operation::Test, Operation::Iprobe, Operation::Compute] {
        assert_eq!(measurements.points(operation).len(), 1, "{operation}");
    }
    assert!(measurements.note("mpi").is_some_and(|mpi| !mpi.is_empty()), "{:?}", measurements.notes);
    // Programs online run on this machine, and others may not have measured on it.
    let speeds = |machine: &str| {
        let sections: toml::Table = std::fs::read_to_string(machine).unwrap().parse().unwrap();
        let online = sections.get("online").map(|online| online["speed"].clone());
        (sections["platform"]["topology"]["speed"].clone(), online)
    };
    let (speed, online) = speeds(&machine);
    assert_eq!(online, Some(speed));
    let read_again = text(&folder.path("read.toml"));
    let mut calibrate = command();
    calibrate.args(["calibrate", "-o", &read_again, "--from"]).arg(folder.path("data/observations.csv"));
    calibrate.assert().code(DONE);
    assert_eq!(speeds(&read_again).1, None);
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 send 1 0 64\n1 recv 0 0 64\n");
    command().arg("--config").arg(&machine).arg("--trace").arg(trace).assert().code(DONE);
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn three_processes_are_too_many() {
    expect_failure(&["calibrate", "-o", "machine.toml"], FAILED, "found 3 process(es), expected two");
}
