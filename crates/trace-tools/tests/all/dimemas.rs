//! Traces of Dimemas: all kinds of records, calls there and back, all errors, and hostile bytes.

use std::fs;
use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{LoadOptions, Trace, TraceError, check};
use trace_tools::{Export, ExportError, ParaverError, from_text, load, write_text};

const HEADER: &str = "#DIMEMAS:\"ring.exe\":0:3(1,1,1),2\n";

fn read(records: &str) -> Result<Trace, TraceError> {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("trace.dim");
    fs::write(&file, format!("{HEADER}{records}")).expect("the file is written");
    load(&file, &LoadOptions::default())
}

fn text(trace: &Trace) -> String {
    let mut text = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        write_text(trace, rank, &mut text, None).expect("memory takes all");
    }
    String::from_utf8(text).expect("text")
}

/// Writes a trace at 1 Gflop/s, and reads it.
fn there_and_back(program: &str) -> (Trace, Vec<String>) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("trace.dim");
    let trace = from_text(program).unwrap_or_else(|error| panic!("{error}\n{program}"));
    let export = Export::of(&file).expect("it is a format");
    let exported = export.write(&trace, &file, Some(1e9)).expect("the file is written");
    let read = load(&file, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(check(&read, None).findings, []);
    (read, exported.left_out.into_keys().collect())
}

#[test]
fn records_without_events_are_calls() {
    let trace = read(
        "d:1:1:3:0:1:2\nd:1:7:2:2:0\nd:2:1:a file\n\
         1:0:0:0.000250000\n2:0:0:1:-1:64:5:1:0\n2:0:0:1:64:6:1:3\n3:0:0:-1:-1:32:-1:1:1\n3:0:0:-1:-1:32:-1:1:2\n\
         2:0:0:2:-1:8:1:7:2\n10:0:0:1:7:1:0:40:0:1\n10:0:0:11:7:0:0:8:8:0\n10:0:0:11:7:0:0:8:8:2\n\n\
         1:0:1:5.0\n2:0:0:0:1:99:0:1:0\n11:0:0:1.0\n20:0:0:60000019:4\n0:0:0\n\
         1:1:0:1.5\n3:1:0:0:-1:64:5:1:0\n3:1:0:0:-1:64:6:1:0\n2:1:0:0:-1:32:9:1:1\n\
         3:2:0:0:-1:8:1:7:0\n10:2:0:1:7:0:0:0:40:1\n10:2:0:11:7:0:0:8:8:0\n10:2:0:11:7:0:0:8:8:2\ns:0:9\ns:1:99\n",
    )
    .expect("a trace");
    let expected = "0 compute 250000\n0 comm_create_group comm=0 new=2 members=2-0:-2\n0 send 1 5 64 6\n0 issend 1 6 64 6 req=0\n\
                    0 irecv -555 -444 32 6 req=1\n0 wait req=1\n0 isend 2 1 8 6 comm=2 req=1\n0 bcast 40 1 6 comm=2\n\
                    0 iallreduce 8 0 6 comm=2 req=2\n0 wait req=2\n\
                    1 compute 1500000000\n1 recv 0 5 64 6\n1 recv 0 6 64 6\n1 ssend 0 9 32 6\n\
                    2 comm_create_group comm=0 new=2 members=2-0:-2\n2 recv 0 1 8 6 comm=2\n2 bcast 40 1 6 comm=2\n\
                    2 iallreduce 8 0 6 comm=2 req=0\n2 wait req=0\n";
    assert_eq!(text(&trace), expected);
    let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
    let left_out = ["threads other than", "messages between threads", "computations of GPUs", "events other"];
    assert!(
        left_out.iter().all(|what| warnings.iter().any(|warning| warning.contains(what))),
        "{warnings:?}"
    );
}

#[test]
fn calls_come_back_as_they_were() {
    let all = |calls: &str| -> String {
        let of = |rank: u32| {
            let peer = 1 - rank;
            let lines =
                calls.lines().map(|line| format!("{rank} {}\n", line.replace('P', &peer.to_string())));
            lines.collect::<String>()
        };
        of(0) + &of(1)
    };
    let program = all(
        "init\ncomm_size\ncompute 250\ncompute 0.125\nisend P 5 64 6 req=0\nirecv P 5 64 6 req=1\nwaitall\n\
         issend P 6 8 6 req=0\nirecv P 6 8 6 req=1\nwait req=1\nwait req=0\nsendRecv 16 P 16 P 6 6 stag=3 rtag=3\n\
         isend P 7 8 6 req=0\nrecv P 7 8 6\nwait req=0\nbarrier\nbcast 100 1 6\nreduce 10 0 1 6\nallreduce 12 0 6\n\
         alltoall 8 8 6 6\ngather 8 8 1 6 6\nscatter 8 8 1 6 6\nallgather 8 8 6 6\ngatherv 8 8 8 1 6 6\n\
         scatterv 8 8 8 1 6 6\nallgatherv 8 8 8 6 6\nreducescatter 8 8 0 6\nscan 8 0 6\nialltoall 8 8 6 6 req=0\n\
         ireduce 8 0 1 6 req=1\nwait req=0\nwait req=1\nsend -666 0 0 6\nisend P 8 8 6 req=0\nirecv P 8 8 6 req=1\n\
         waitall req=0,1\nfinalize",
    );
    let (trace, left_out) = there_and_back(&program);
    // A wait for all pending requests has no list.
    assert_eq!(text(&trace), program.replace("waitall req=0,1", "waitall"));
    assert_eq!(left_out, [""; 0]);
    assert_eq!(trace.provenance().work_metric.and_then(trace_mmap::WorkMetric::rate), Some(1e9));
}

#[test]
fn what_the_format_does_not_hold_is_named() {
    let program = "0 init\n0 sleep 1\n0 comm_split new=4 members=0-1\n0 allreduce 8 100 6 comm=4\n0 alltoallv 16 4 12 16 8 8 6 6\n\
                   0 irecv -555 3 8 6 source=1 req=0\n0 waitany req=0 done=0\n0 exscan 8 0 6\n0 unmodelled MPI_Put\n0 location a.c 5\n\
                   1 init\n1 comm_split new=4 members=0-1\n1 allreduce 8 100 6 comm=4\n1 alltoallv 16 8 8 16 12 4 6 6\n1 send 0 3 8 6\n\
                   1 exscan 8 0 6\n";
    let (trace, left_out) = there_and_back(program);
    let expected = [
        "MPI_Put",
        "call site",
        "computation of a reduction",
        "difference of MPI_Exscan from MPI_Scan",
        "recorded sender of a receive from any source",
        "sleep, which is written as a computation,",
        "time of making a communicator",
        "vector of counts of MPI_Alltoallv, of which there is the sum,",
    ];
    assert_eq!(left_out, expected);
    let found = text(&trace);
    for line in ["compute 1000000000", "alltoallv 16 8 8 16 8 8 6 6", "wait req=0", "scan 8 0 6"] {
        assert!(found.contains(&format!("0 {line}")), "{line}:\n{found}");
    }
    assert!(found.contains("0 comm_create_group comm=0 new=2 members=0-1"), "{found}");
    let export = Export::of(Path::new("a.dim")).expect("it is a format");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("a.dim");
    let computing = from_text("0 init\n0 compute 5\n").expect("a trace");
    assert!(matches!(export.write(&computing, &file, None), Err(ExportError::NoSpeed)));
    assert!(!file.exists());
}

#[test]
fn errors_have_their_line() {
    let cases = [
        ("9:0:0", 2, "a record of kind \"9\", expected 0 (nothing)"),
        ("1:3:0:1.0", 2, "the task is \"3\""),
        ("1:0:0:-1.0", 2, "the time is \"-1.0\", expected a decimal number"),
        ("1:0:0:.", 2, "the time is \".\""),
        ("1:0:0", 2, "the line ends before the time"),
        ("2:0:0:1:64:5:1", 2, "the line ends before the mode or kind"),
        ("2:0:0:1:-1:64:5:1:4", 2, "the mode or kind is \"4\""),
        ("2:0:0:1:-1:64:-1:1:0", 2, "the tag is \"-1\""),
        ("2:0:0:1:-1:64:5:9:0", 2, "a message is on communicator 9, whose members no line tells"),
        (
            "3:0:0:1:-1:64:5:0:2",
            2,
            "a wait for a receive from task 1 with tag 5 on communicator 0, of which none",
        ),
        ("d:1:1:4:0:1:2:3", 2, "the size of the communicator is \"4\""),
        ("d:1:1:2:0:0", 2, "the task 1 is there twice"),
        ("d:1:5:2:0:1\nd:1:5:2:0:1", 3, "the communicator 5 is there twice"),
        ("10:0:0:32:0:0:0:1:1:1", 2, "the operation is \"32\""),
        (
            "d:1:1:3:0:1:2\n10:0:0:0:1:0:0:0:0:1",
            3,
            "MPI_Barrier is collective call 1 on communicator 1, but rank 1",
        ),
        ("d:1:1:1:0\n10:0:0:1:1:0:0:0:8:1", 3, "MPI_Bcast has 0 roots"),
        (
            "20:0:0:50000001:1\n20:0:0:50000001:2",
            3,
            "rank 0 calls MPI_Recv within MPI_Send, which began in line 2",
        ),
        ("20:0:0:50000001:999", 2, "event 50000001 has the value 999"),
    ];
    for (records, line, message) in cases {
        let error = read(records).expect_err(records);
        let TraceError::Action { location, kind } = &error else { panic!("{records}: {error}") };
        assert!(kind.downcast_ref::<ParaverError>().is_some(), "{records}: {error}");
        assert_eq!(location.line, line, "{records}: {error}");
        assert!(error.to_string().contains(message), "{records}: {error}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("trace.dim");
    for header in ["#DIMEMAS:ring:0:1(1),0", "#DIMEMAS:\"a\":0:0(),0", "#DIMEMAS:\"a\":0:2,0"] {
        fs::write(&file, header).expect("the file is written");
        let error = load(&file, &LoadOptions::default()).expect_err(header).to_string();
        assert!(error.contains("expected #DIMEMAS:\"name\":0:tasks(threads,...)"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any change of a trace makes another one or an error.
    #[test]
    fn hostile_bytes_are_a_trace_or_an_error(changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..6)) {
        let records = "d:1:1:3:0:1:2\n20:0:0:50000003:31\n20:0:0:50000003:0\n1:0:0:0.000250000\n2:0:0:1:-1:64:5:1:2\n\
                       20:0:0:50000001:6\n3:0:0:1:-1:8:5:1:2\n20:0:0:50000001:0\n10:0:0:1:1:1:0:40:0:1\n\
                       3:1:0:0:-1:64:5:1:0\n10:1:0:1:1:0:0:0:40:1\n10:2:0:1:1:0:0:0:40:1\n";
        let mut bytes = records.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        if let Ok(trace) = read(&String::from_utf8_lossy(&bytes)) {
            check(&trace, None);
        }
    }
}
