//! Traces for Paraver: programs with measured times there and back.

use std::fs;

use pdes_core::Rank;
use trace_mmap::{LoadOptions, Trace, check};
use trace_tools::{Export, ExportError, Exported, from_text, load, write_text};

use crate::shared::shared;

/// Writes a trace, and reads it.
fn there_and_back(trace: &Trace) -> (Trace, Exported) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("written.prv");
    let exported = Export::of(&file).expect("a format").write(trace, &file, None).expect("it is written");
    let again = load(&file, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(file.with_extension("row").exists());
    assert_eq!(check(&again, None).findings, []);
    (again, exported)
}

/// Returns the text of a rank with measured times, but without numbers of requests: these follow the order of completions.
fn text(trace: &Trace, rank: u32) -> String {
    let mut text = Vec::new();
    write_text(trace, Rank::new(rank), &mut text, None).expect("memory takes all");
    let text = String::from_utf8(text).expect("text");
    let without = |line: &str| -> String {
        let words = line.split(' ').filter(|word| !word.starts_with("req=") && !word.starts_with("done="));
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    text.lines().map(without).collect()
}

#[test]
fn calls_and_times_come_back_as_they_were() {
    let calls = "init time=10\ncomm_size time=2\ncompute 250 time=250\nisend @ 5 64 6 req=0 time=4\nirecv @ 5 64 6 req=1 time=4\n\
                 waitall req=0,1 time=9\nsleep 0.0000001 time=100\nssend @ 6 8 6 time=7\n\
                 irecv @ 7 8 6 req=0 time=2\nirecv @ 8 8 6 req=1 time=2\nisend @ 8 8 6 req=2 time=3\nisend @ 7 8 6 req=3 time=3\n\
                 wait req=1 time=5\nwait req=0 time=5\nwaitall req=2,3 time=6\nsendRecv 16 @ 16 @ 6 6 stag=3 rtag=3 time=8\n\
                 bcast 100 1 6 time=9\nreduce 10 0 1 6 time=9\ngatherv 8 8 8 1 6 6 time=9\nallreduce 12 0 6 time=9\nbarrier time=9\n\
                 send -666 0 0 6 time=2\nunmodelled MPI_Win_fence time=3\nfinalize time=20";
    let of = |rank: u32| -> String {
        let calls = if rank == 0 { calls.to_owned() } else { calls.replace("ssend @ 6 8 6", "recv @ 6 8 6") };
        calls.lines().map(|line| format!("{rank} {}\n", line.replace('@', &(1 - rank).to_string()))).collect()
    };
    let trace = from_text(&(of(0) + &of(1))).expect("a trace");
    let (again, exported) = there_and_back(&trace);
    assert_eq!(exported.left_out.into_keys().collect::<Vec<_>>(), [""; 0]);
    for rank in 0..2 {
        // A computation in nanoseconds.
        assert_eq!(text(&again, rank), text(&trace, rank));
    }
}

#[test]
fn what_the_format_does_not_hold_is_named() {
    let untimed = from_text("0 init\n0 compute 5\n").expect("a trace");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("a.prv");
    let export = Export::of(&file).expect("a format");
    assert!(matches!(export.write(&untimed, &file, None), Err(ExportError::NoTimes)));
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
    let trace = from_text(
        "0 init time=1\n0 comm_split new=3 members=1,0 time=5\n0 irecv -555 4 8 6 req=1 time=3\n0 wait req=1 time=9\n\
         0 exscan 8 100 6 comm=3 time=4\n0 location a.c 3 time=0\n\
         1 init time=1\n1 comm_split new=3 members=1,0 time=5\n1 send 0 4 8 6 time=3\n1 exscan 8 100 6 comm=3 time=4\n",
    )
    .expect("a trace");
    let (again, exported) = there_and_back(&trace);
    let expected = [
        "call of less than 2 ns, which takes 2 ns,",
        "call site",
        "computation of a reduction",
        "difference of MPI_Exscan from MPI_Scan",
        "message of a receive from any source whose sender is not recorded",
        "message that nobody receives",
    ];
    assert_eq!(exported.left_out.into_keys().collect::<Vec<_>>(), expected);
    assert!(text(&again, 1).contains("1 scan 8 0 6 comm=2 time=4"), "{}", text(&again, 1));
}

#[test_with::shared]
fn traces_of_extrae_come_back_as_they_were() {
    for sample in ["epoch_1proc.prv.gz", "epoch_2proc.prv.gz", "epoch_8proc.prv.gz"] {
        let trace =
            load(&shared("samples/paraver/data").join(sample), &LoadOptions::default()).expect("a trace");
        let (again, exported) = there_and_back(&trace);
        assert!(
            exported.left_out.keys().all(|what| what.starts_with("call of less")),
            "{:?}",
            exported.left_out
        );
        for rank in 0..trace.ranks() {
            // Calls have a record at each end, which follow each other.
            let expected = text(&trace, rank).replace("comm_size time=0\n", "comm_size time=2\n");
            assert_eq!(text(&again, rank), expected, "{sample}: rank {rank}");
        }
    }
}
