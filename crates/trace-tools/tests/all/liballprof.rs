//! Traces of liballprof: those of its authors with LogGOPSim's answer, traces that are written here, and wrong lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use goal::{LogGops, simulate};
use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{Action, LoadOptions, Trace, TraceError, check, nanos};
use trace_tools::{LiballprofError, load, schedule, write_text};

use crate::shared::shared;

/// Writes the files of ranks, each with `MPI_Init` and `MPI_Finalize` around its calls.
fn directory(programs: &[String]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    for (rank, calls) in programs.iter().enumerate() {
        let text = format!("# a comment\n\nMPI_Init:-:14:14:1.0\n{calls}MPI_Finalize:90.5:-\n");
        fs::write(dir.path().join(format!("pmpi-rank-{rank}.txt")), text).expect("the file is written");
    }
    let first = dir.path().join("pmpi-rank-0.txt");
    (dir, first)
}

fn read(programs: &[String]) -> Result<Trace, TraceError> {
    let (_dir, first) = directory(programs);
    load(&first, &LoadOptions { threads: 2, ..LoadOptions::default() })
}

/// Returns the text of a rank without its computations, `init`, `finalize` and measured times.
fn text(trace: &Trace, rank: u32) -> Vec<String> {
    let mut text = Vec::new();
    write_text(trace, Rank::new(rank), &mut text, None).expect("memory takes all");
    let text = String::from_utf8(text).expect("text");
    let lines = text.lines().map(|line| line.split(" time=").next().unwrap_or_default());
    let is_kept = |line: &&str| !["compute", "init", "finalize"].iter().any(|name| line.contains(name));
    lines.filter(is_kept).map(|line| line[2..].to_owned()).collect()
}

#[test_with::shared]
fn the_traces_of_its_authors_have_their_calls_times_and_ends_in_loggopsim() {
    let samples = shared("samples/liballprof");
    let table = fs::read_to_string(samples.join("expected.csv")).expect("the table is there");
    for sample in ["bcast", "ring-allreduce"] {
        let prefix = format!("{sample},");
        let rows = table.lines().filter_map(|line| line.strip_prefix(&prefix));
        let rows: BTreeMap<&str, &str> =
            rows.map(|row| row.split(',').collect::<Vec<_>>()).map(|fields| (fields[0], fields[1])).collect();
        let trace =
            load(&samples.join("data").join(sample), &LoadOptions::default()).expect("the trace loads");
        assert_eq!(trace.ranks().to_string(), rows["ranks"]);
        assert_eq!((trace.unreceived(), trace.warnings()), (None, &[][..]), "{sample}");
        assert_eq!(check(&trace, None).findings, [], "{sample}");
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for rank in (0..trace.ranks()).map(Rank::new) {
            let times = trace.rank(rank).measured().expect("it has measured times");
            let all: u64 = times.map(|(_, time)| nanos(time.expect("every action has a time"))).sum();
            assert_eq!((all / 1000).to_string(), rows[&*format!("rank_{rank}_init_end_to_finalize_start")]);
            for line in text(&trace, rank.get()) {
                let name = line.split(' ').next().unwrap_or_default();
                *calls.entry(format!("calls_MPI_{}{}", name[..1].to_uppercase(), &name[1..])).or_default() +=
                    1;
            }
        }
        // MPI_Comm_rank and MPI_Comm_size.
        let asks = calls.remove("calls_MPI_Comm_size");
        assert_eq!(asks, (sample == "ring-allreduce").then_some(8));
        for (name, count) in calls {
            assert_eq!(count.to_string(), rows[&*name], "{sample}: {name}");
        }
        if sample == "bcast" {
            let scheduled = schedule(&trace, None).expect("a schedule");
            let ends = simulate(&scheduled.schedule, &LogGops::default(), 1).expect("it ends").ends;
            for (rank, end) in ends.iter().enumerate() {
                assert_eq!((end / 1000).to_string(), rows[&*format!("rank_{rank}_loggopsim")], "rank {rank}");
            }
        }
    }
}

#[test]
fn calls_of_a_rank_have_their_arguments_and_times() {
    let world = "7,0,2";
    let first = format!(
        "MPI_Isend:2:900:3:1,4,4:1:5:{world}:100:3\nMPI_Irecv:4:900:2:1,8,8:1:-1:{world}:108:5\n\
         MPI_Waitall:6:3:100:0:7\nMPI_Sendrecv:8:1:2:1,4,4:-2:0:2:3:1,4,4:-1:6:{world}:0:9\nMPI_Test:10:108:4:4:11\n"
    );
    let second = format!(
        "MPI_Recv:2:900:3:1,4,4:0:5:{world}:0:3\nMPI_Send:4.25:900:2:1,8,8:0:9:{world}:5\nMPI_Send:6:900:1:1,8,8:0:6:{world}:7\n"
    );
    let trace = read(&[first, second]).expect("a trace");
    assert_eq!(
        text(&trace, 0),
        [
            "isend 1 5 12 6 req=0",
            "irecv 1 -444 16 6 req=1",
            "waitall req=0,1",
            "sendRecv 8 -666 12 -555 6 6 stag=0 rtag=6",
            "comm_size",
        ]
    );
    assert_eq!(text(&trace, 1), ["recv 0 5 12 6", "send 0 9 16 6", "send 0 6 8 6"]);
    let computations = |(action, time)| match action {
        Action::Compute { flops } => Some((flops, nanos(time?))),
        _ => None,
    };
    let found: Vec<_> =
        trace.rank(Rank::new(1)).measured().expect("times").filter_map(computations).collect();
    assert_eq!(found, [(1000.0, 1000), (1250.0, 1250), (1000.0, 1000), (83_500.0, 83_500)]);
    let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
    assert!(
        matches!(&warnings[..], [one] if one.contains("rank-0.txt:8: requests of no recorded call")),
        "{warnings:?}"
    );
}

#[test]
fn handles_are_those_of_the_calls_that_made_communicators() {
    let programs: Vec<String> = (0..4)
        .map(|rank| {
            format!(
                "MPI_Comm_dup:2:7,{rank},4:500:3\nMPI_Comm_split:4:7,{rank},4:{}:0:508:5\n\
                 MPI_Barrier:6:9,{rank},4:7\nMPI_Allreduce:8:1:900:1:10,8,8:3:11,{},2:9\nMPI_Barrier:10:5,0,1:11\n",
                rank / 2,
                rank % 2
            )
        })
        .collect();
    let trace = read(&programs).expect("a trace");
    assert_eq!(
        text(&trace, 3),
        [
            "comm_dup comm=0 new=1",
            "comm_split comm=0 new=3 members=2-3",
            "barrier comm=1",
            "allreduce 8 0 6 comm=3",
            "comm_create_group comm=0 new=7 members=3",
            "barrier comm=7",
        ]
    );
    // Handle 9 could also be that of a split of all ranks.
    let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
    assert!(
        matches!(&warnings[..], [one] if one.contains("rank-0.txt:6: a call is on a communicator")),
        "{warnings:?}"
    );
    let one = |calls: &str| read(&[calls.to_owned(), String::new()]).expect_err(calls);
    let error = one("MPI_Barrier:2:9,0,3:4\n");
    let unknown = LiballprofError::Communicator { name: "MPI_Barrier".into(), handle: 9, size: 3 };
    assert_eq!(error.kind(), Some(&unknown));
}

#[test]
fn vectors_are_read_where_the_tracer_wrote_them() {
    let with = |rank: u32| {
        let (world, counts) = (format!("7,{rank},2"), "8:1,2:16:0,1");
        format!(
            "MPI_Gatherv:2:900:{}:1,4,4:901:{counts}:1,4,4:0:{world}:3\n\
             MPI_Allgatherv:4:900:{}:1,4,4:901:{counts}:1,4,4:{world}:5\n\
             MPI_Alltoallv:6:900:{counts}:1,4,4:901:{counts}:1,4,4:{world}:7\n\
             MPI_Reduce_scatter:8:900:901:8:1,2:1,4,4:3:{world}:9\n",
            rank + 1,
            rank + 1
        )
    };
    let trace = read(&[with(0), with(1)]).expect("a trace");
    let expected = [
        "gatherv 4 4 8 0 6 6",
        "allgatherv 4 4 8 6 6",
        "alltoallv 12 4 8 12 4 8 6 6",
        "reducescatter 4 8 0 6",
    ];
    assert_eq!(text(&trace, 0), expected);
    let without = |rank: u32| format!("MPI_Gatherv:2:900:1:1,4,4:901:8:16:1,4,4:0:7,{rank},2:3\n");
    let trace = read(&[without(0), without(1)]).expect("a trace");
    assert_eq!(text(&trace, 0), ["unmodelled MPI_Gatherv"]);
    let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
    assert!(
        matches!(&warnings[..], [one] if one.contains("no counts") && one.ends_with("(2 such record(s))")),
        "{warnings:?}"
    );
}

#[test]
fn wrong_lines_are_named() {
    let cases = [
        ("hello\n", "pmpi-rank-0.txt:4: found \"hello\", expected a call"),
        ("MPI_Send:2:900:1:1,4,4:1:0:4\n", "MPI_Send ends before its communicator"),
        (
            "MPI_Send:2:900:-1:1,4,4:1:0:7,0,2:4\n",
            "MPI_Send has the count \"-1\", expected a whole number that is not negative",
        ),
        (
            "MPI_Send:2:900:1:1,4:1:0:7,0,2:4\n",
            "MPI_Send has the datatype \"1,4\", expected handle,size,extent",
        ),
        (
            "MPI_Send:2:900:1:1,4,4:2:0:7,0,2:4\n",
            "MPI_Send has the peer or root 2 in a communicator of 2 ranks",
        ),
        (
            "MPI_Barrier:9999999999999:7,0,2:9999999999999\n",
            "takes 9999999999998000 ns, expected at most 999999999999999",
        ),
        ("MPI_Barrier:x:7,0,2:4\n", "MPI_Barrier has the time \"x\", expected microseconds"),
    ];
    for (calls, expected) in cases {
        let error = read(&[calls.to_owned(), String::new()]).expect_err(calls).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn no_lines_make_the_reader_panic(lines in prop::collection::vec(("MPI_(Send|Irecv|Waitall|Start|Wait|Allreduce|Gatherv|Alltoallv|Comm_split|Comm_dup|Reduce_scatter)", prop::collection::vec("-?[0-9]{1,3}(,[0-9]{1,20}){0,2}", 0..14)), 0..8)) {
        let calls: String = lines.iter().map(|(name, fields)| format!("{name}:{}\n", fields.join(":"))).collect();
        let _ = read(&[calls]);
    }
}
