//! Traces in Paraver's format: all kinds of records and calls, all errors, hostile bytes, and traces of Extrae.

mod samples;
mod written;

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use pdes_core::Rank;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use trace_mmap::{LoadOptions, OpError, Trace, TraceError};
use trace_tools::{InputError, ParaverError, convert, load, write_text};

/// Names of the calls of the traces in this file.
const LABELS: &str = "\
DEFAULT_OPTIONS

LEVEL               THREAD

STATES
0    Idle
1    Running

EVENT_TYPE
9   50000001    MPI Point-to-point
VALUES
1   MPI_Send
2   MPI_Recv
3   MPI_Isend
4   MPI_Irecv
5   MPI_Wait
6   MPI_Waitall
7   MPI_Sendrecv
8   MPI_Ssend
9   MPI_Test
10   MPI_Waitany
11   MPI_Startall
12   MPI_Iprobe
13   MPI_Testall
0   Outside MPI

EVENT_TYPE
9   50000002    MPI Collective Comm
VALUES
1   MPI_Barrier
2   MPI_Bcast
3   MPI_Allreduce
4   MPI_Alltoallv
5   MPI_Gatherv
6   MPI_Scatter
7   MPI_Ibarrier
8   MPI_Reduce_scatter
9   MPI_Neighbor_alltoall
0   Outside MPI

EVENT_TYPE
9   50000003    MPI Other
VALUES
1   MPI_Init
2   MPI_Finalize
3   MPI_Comm_split
0   Outside MPI

EVENT_TYPE
1    50100001    Send Size in MPI Global OP
7  42000050 PAPI_TOT_INS [Instr completed]
VALUES
x   no number, of no call
";

/// The header of a trace of two ranks, and its communicators.
const TWO: &str = "#Paraver (09/10/2019 at 16:09):1000_ns:1(2):1:2(1:1,2:1),3\n\
                   c:1:1:2:1:2\nc:1:2:1:2\nc:1:3:2:2:1\n";

/// A trace and its `.pcf` in a directory.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn new(trace: &[u8], labels: &str) -> Self {
        let files = Self { dir: tempfile::tempdir().expect("a directory") };
        fs::write(files.path("trace.prv"), trace).expect("the trace is written");
        fs::write(files.path("trace.pcf"), labels).expect("the names are written");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self) -> Result<Trace, TraceError> {
        load(&self.path("trace.prv"), &LoadOptions::default())
    }
}

fn read(records: &str) -> Result<Trace, TraceError> {
    Files::new(format!("{TWO}{records}").as_bytes(), LABELS).load()
}

/// Returns the text of a rank.
fn text(trace: &Trace, rank: u32) -> String {
    let mut text = Vec::new();
    write_text(trace, Rank::new(rank), &mut text, None).expect("memory takes all");
    String::from_utf8(text).expect("text")
}

/// Makes the records of calls: rank, from 1, type and value of the event, begin, end and further events.
fn calls(calls: &[(u32, u32, u32, u64, u64, &str)]) -> String {
    let record = |&(task, kind, value, begin, end, more): &(u32, u32, u32, u64, u64, &str)| {
        let event = 50_000_000 + kind;
        format!("2:1:1:{task}:1:{begin}:{event}:{value}{more}\n2:1:1:{task}:1:{end}:{event}:0\n")
    };
    calls.iter().map(record).collect()
}

/// Makes the record of a message.
fn message(from: u32, sent: u64, to: u32, received: u64, arrival: u64, bytes: u64) -> String {
    format!("3:1:1:{from}:1:{sent}:{sent}:1:1:{to}:1:{received}:{arrival}:{bytes}:7\n")
}

/// Asserts the texts of both ranks of records.
fn assert_texts(records: &str, expected: [&str; 2]) {
    let trace = read(records).unwrap_or_else(|error| panic!("{error}"));
    for (rank, expected) in (0..).zip(expected) {
        let lines: Vec<&str> = expected.split('\n').map(str::trim).collect();
        assert_eq!(text(&trace, rank).trim_end(), lines.join("\n"));
    }
}

/// All kinds of records: the second thread of rank 1 counts nothing.
const ALL_RECORDS: &str = "\
1:1:1:1:1:0:10:2
1:1:1:1:1:10:100:1
1:2:1:2:1:0:90:1
1:2:1:2:2:0:500:1
2:1:1:1:1:10:40000018:1:42000050:-3
# a comment
2:2:1:2:1:90:50000003:1
2:1:1:1:1:100:50000003:1:42000050:77
1:1:1:1:1:100:120:15
2:1:1:1:1:120:50000003:0
2:2:1:2:1:121:50000003:0
1:1:1:1:1:120:130:1
1:1:1:1:1:130:150:12
1:1:1:1:1:150:160:1
2:1:1:1:1:160:50000001:1
3:1:1:1:1:160:165:2:1:2:1:125:170:4096:7
2:2:1:2:1:125:50000001:2
2:1:1:1:1:165:50000001:0
2:2:1:2:1:170:50000001:0
2:1:1:1:1:165:50000002:2:50100001:64:50100002:0:50100004:1:50100003:1
2:2:1:2:1:170:50000002:2:50100001:0:50100002:64:50100004:1
2:1:1:1:1:180:50000002:0
2:2:1:2:1:180:50000002:0
2:2:1:2:2:185:42000050:12
2:1:1:1:1:180:50000003:2
2:2:1:2:1:180:50000003:2
2:1:1:1:1:200:50000003:0
2:2:1:2:1:199:50000003:0
1:1:1:1:1:200:210:1
";

#[test]
fn running_time_is_computed_and_other_time_slept() {
    assert_texts(
        ALL_RECORDS,
        [
            "0 sleep 1e-8 time=10
             0 compute 90 time=90
             0 init time=20
             0 compute 10 time=10
             0 sleep 2e-8 time=20
             0 compute 10 time=10
             0 send 1 7 4096 6 time=5
             0 bcast 64 0 6 time=15
             0 finalize time=20
             0 compute 10 time=10",
            "1 compute 90 time=90
             1 init time=31
             1 sleep 4e-9 time=4
             1 recv 0 7 4096 6 time=45
             1 bcast 64 0 6 time=10
             1 finalize time=19",
        ],
    );
}

#[test]
fn times_without_a_unit_are_microseconds() {
    let trace = "#Paraver (01/01/01 at 00:00):1000:0:1:1(1:0)\n1:1:1:1:1:2:5:1\n";
    let trace = Files::new(trace.as_bytes(), "").load().expect("a trace");
    assert_eq!(text(&trace, 0), "0 sleep 2e-6 time=2000\n0 compute 3000 time=3000\n");
}

#[test]
fn calls_without_a_message_have_no_peer() {
    let records = calls(&[
        (1, 1, 1, 10, 20, ""),
        (1, 1, 7, 20, 30, ""),
        (2, 1, 7, 20, 31, ""),
        (1, 1, 8, 30, 40, ""),
        (2, 1, 2, 31, 40, ""),
    ]) + &message(1, 20, 2, 20, 31, 5)
        + &message(1, 30, 2, 31, 40, 6);
    assert_texts(
        &records,
        [
            "0 sleep 1e-8 time=10
             0 send -666 0 0 6 time=10
             0 sendRecv 5 1 0 -666 6 6 stag=7 rtag=-444 time=10
             0 ssend 1 7 6 6 time=10",
            "1 sleep 2e-8 time=20
             1 sendRecv 0 -666 5 0 6 6 stag=0 rtag=7 time=11
             1 recv 0 7 6 6 time=9",
        ],
    );
}

#[test]
fn posted_receives_have_their_message_at_their_end() {
    let records = calls(&[
        (1, 1, 4, 0, 1, ""),
        (1, 1, 4, 1, 2, ""),
        (1, 1, 2, 2, 3, ""),
        (1, 1, 6, 3, 4, ""),
        (2, 1, 1, 0, 1, ""),
        (2, 1, 1, 1, 2, ""),
        (2, 1, 1, 2, 3, ""),
    ]) + &message(2, 2, 1, 2, 3, 3)
        + &message(2, 0, 1, 1, 4, 1)
        + &message(2, 1, 1, 2, 4, 2);
    assert_texts(
        &records,
        [
            "0 irecv 1 7 1 6 req=0 time=1
             0 irecv 1 7 2 6 req=1 time=1
             0 recv 1 7 3 6 time=1
             0 waitall req=0,1 time=1",
            "1 send 0 7 1 6 time=1
             1 send 0 7 2 6 time=1
             1 send 0 7 3 6 time=1",
        ],
    );
}

#[test]
fn waits_complete_what_has_arrived_then_the_oldest() {
    let records = calls(&[
        (1, 1, 4, 0, 1, ""),
        (1, 1, 4, 1, 2, ""),
        (1, 1, 3, 2, 3, ""),
        (1, 1, 4, 3, 4, ""),
        (1, 1, 5, 4, 10, ""),
        (1, 1, 9, 10, 11, ""),
        (1, 1, 10, 11, 12, ""),
        (1, 1, 9, 12, 20, ""),
        (1, 1, 12, 20, 21, ""),
        (1, 1, 11, 21, 22, ""),
        (1, 1, 6, 22, 30, ""),
        (1, 1, 5, 30, 31, ""),
        (2, 1, 1, 0, 1, ""),
        (2, 1, 1, 1, 2, ""),
        (2, 1, 2, 2, 9, ""),
        (2, 1, 7, 9, 22, ""),
    ]) + &message(2, 0, 1, 1, 20, 1)
        + &message(2, 1, 1, 2, 10, 2)
        + &message(1, 2, 2, 2, 9, 3)
        + &message(2, 9, 1, 21, 30, 4)
        + &message(1, 21, 2, 9, 22, 5);
    assert_texts(
        &records,
        [
            "0 irecv 1 7 1 6 req=0 time=1
             0 irecv 1 7 2 6 req=1 time=1
             0 isend 1 7 3 6 req=2 time=1
             0 isend -666 0 0 6 req=3 time=1
             0 wait req=1 time=6
             0 unmodelled MPI_Test time=1
             0 wait req=2 time=1
             0 testsome req=0 done=0 time=8
             0 unmodelled MPI_Iprobe time=1
             0 irecv 1 7 4 6 req=0 time=0
             0 isend 1 7 5 6 req=1 time=1
             0 waitall req=0,3,1 time=8
             0 waitall req=- time=1",
            "1 send 0 7 1 6 time=1
             1 send 0 7 2 6 time=1
             1 recv 0 7 3 6 time=7
             1 sendRecv 4 0 5 0 6 6 stag=7 rtag=7 time=13",
        ],
    );
}

#[test]
fn collective_operations_find_the_counts_of_others() {
    let sizes = |sent: u64, received: u64, communicator: u32| {
        format!(":50100001:{sent}:50100002:{received}:50100004:{communicator}")
    };
    let root = |sent, received, communicator| sizes(sent, received, communicator) + ":50100003:1";
    let records = calls(&[
        (1, 2, 4, 0, 1, &sizes(5, 3, 1)),
        (1, 2, 5, 1, 2, &sizes(8, 0, 3)),
        (1, 2, 6, 2, 3, &root(8, 4, 1)),
        (1, 2, 7, 3, 4, &sizes(0, 0, 3)),
        (1, 1, 13, 4, 5, ""),
        (1, 1, 6, 5, 6, ""),
        (1, 2, 8, 6, 7, &sizes(24, 16, 1)),
        (1, 2, 9, 7, 8, ""),
        (1, 3, 3, 8, 9, ""),
        (2, 2, 4, 0, 1, &sizes(2, 4, 1)),
        (2, 2, 5, 1, 2, &root(16, 24, 3)),
        (2, 2, 6, 2, 3, &sizes(0, 4, 1)),
        (2, 2, 7, 3, 4, &sizes(0, 0, 3)),
        (2, 1, 5, 4, 6, ""),
        (2, 2, 8, 6, 7, &sizes(24, 8, 1)),
        (2, 2, 1, 7, 8, &sizes(0, 0, 2)),
    ]);
    assert_texts(
        &records,
        [
            "0 alltoallv 5 3 2 4 3 1 6 6 time=1
             0 comm_create_group comm=0 new=3 members=1-0:-1 time=0
             0 gatherv 8 16 8 0 6 6 comm=3 time=1
             0 scatter 4 4 0 6 6 time=1
             0 ibarrier comm=3 req=0 time=1
             0 unmodelled MPI_Testall time=1
             0 waitall req=0 time=1
             0 reducescatter 16 8 0 6 time=1
             0 unmodelled MPI_Neighbor_alltoall time=1
             0 comm_size time=1",
            "1 alltoallv 2 1 1 3 2 1 6 6 time=1
             1 comm_create_group comm=0 new=3 members=1-0:-1 time=0
             1 gatherv 16 16 8 0 6 6 comm=3 time=1
             1 scatter 4 4 0 6 6 time=1
             1 ibarrier comm=3 req=0 time=1
             1 wait req=0 time=2
             1 reducescatter 16 8 0 6 time=1
             1 comm_create_group comm=0 new=2 members=1 time=0
             1 barrier comm=2 time=1",
        ],
    );
}

/// A trace of 900 ns without its ends: the calls of rank 0 and 1, and a message between them.
const WHOLE: &str = "\
1:1:1:1:1:0:200:1
1:2:1:2:1:0:100:1
2:2:1:2:1:100:50000001:2
1:2:1:2:1:100:300:3
2:1:1:1:1:200:50000001:1
1:1:1:1:1:200:250:4
3:1:1:1:1:200:210:2:1:2:1:100:290:1000:7
2:1:1:1:1:250:50000001:0
1:1:1:1:1:250:900:1
2:2:1:2:1:300:50000001:0
1:2:1:2:1:300:900:1
";

#[test]
fn ends_outside_of_calls_change_nothing() {
    let whole = read(WHOLE).expect("a trace");
    let ends: String = [50_000_001, 50_000_002, 50_000_003, 50_100_001, 50_100_004, 60_000_019, 40_000_004]
        .map(|event| format!(":{event}:0"))
        .concat();
    let cut =
        format!("2:1:1:1:1:0{ends}\n2:2:1:2:1:0{ends}\n{WHOLE}2:1:1:1:1:900{ends}\n2:2:1:2:1:900{ends}\n");
    let cut = read(&cut).unwrap_or_else(|error| panic!("{error}"));
    (0..2).for_each(|rank| assert_eq!(text(&cut, rank), text(&whole, rank)));
    // Nor do ends of other types in a call, whose collective operation keeps its communicator.
    let sizes = ":50100001:8:50100002:8:50100004:1";
    let records = |end: &str| {
        let record = |task| {
            format!(
                "2:1:1:{task}:1:0:50000002:3{sizes}\n{}2:1:1:{task}:1:9:50000002:0\n",
                end.replace('T', task)
            )
        };
        record("1") + &record("2")
    };
    let inside =
        read(&records("2:1:1:T:1:5:50000001:0:50100004:0\n")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(text(&inside, 0), text(&read(&records("")).expect("a trace"), 0));
    assert_eq!(text(&inside, 0), "0 allreduce 8 0 6 time=9\n");
}

#[test]
fn a_cut_may_begin_and_end_in_calls() {
    // Rank 0 has begun its send, and rank 1 its receive, before the trace; both end in a call, and only rank 0 in an operation.
    let records = "\
        1:1:1:1:1:0:50:4\n1:2:1:2:1:0:60:3\n2:1:1:1:1:50:50000001:0\n3:1:1:1:1:0:10:2:1:2:1:0:55:1000:7\n\
        1:1:1:1:1:50:800:1\n2:2:1:2:1:60:50000001:0\n1:2:1:2:1:60:700:1\n2:2:1:2:1:700:50000001:2\n1:2:1:2:1:700:1000:3\n\
        2:1:1:1:1:800:50000002:1:50100004:1\n1:1:1:1:1:800:1000:5\n";
    let expected = [
        "0 sleep 5e-8 time=50
         0 compute 750 time=750
         0 comm_size time=200",
        "1 sleep 6e-8 time=60
         1 compute 640 time=640
         1 send -666 0 0 6 time=300",
    ];
    assert_texts(records, expected);
    let ends =
        "2:1:1:1:1:1000:50000001:0:50000002:0:50000003:0\n2:2:1:2:1:1000:50000001:0:50000002:0:50000003:0\n";
    assert_texts(&format!("{records}{ends}"), expected);
    // Where a rank was in an operation at the begin, it is not known which ones match.
    let records = "1:1:1:1:1:0:50:5\n2:1:1:1:1:50:50000002:0\n2:2:1:2:1:900:50000002:1:50100004:1\n1:2:1:2:1:900:1000:5\n";
    let (line, error) = error_of::<ParaverError>(records);
    assert_eq!((line, matches!(error, ParaverError::CollectiveMissing { .. })), (7, true), "{error}");
}

#[test]
fn traces_may_be_compressed_and_become_archives() {
    let files = Files::new(format!("{TWO}{ALL_RECORDS}").as_bytes(), LABELS);
    let plain = files.load().expect("a trace");
    let (bytes, compressed) =
        (fs::read(files.path("trace.prv")).expect("the trace"), files.path("trace.prv.gz"));
    let mut encoder = GzEncoder::new(fs::File::create(&compressed).expect("a file"), Compression::fast());
    encoder.write_all(&bytes).and_then(|()| encoder.finish()).expect("the trace is written");
    fs::write(files.path("trace.prv.zst"), compress_to_vec(&bytes[..], CompressionLevel::Fastest))
        .expect("the trace is written");
    for name in ["trace.prv.gz", "trace.prv.zst"] {
        let trace = load(&files.path(name), &LoadOptions::default()).expect("a trace");
        let archive = files.path("trace.pdt");
        convert(&files.path(name), &archive, &Default::default()).expect("it converts");
        let archived = load(&archive, &LoadOptions::default()).expect("an archive");
        for rank in 0..2 {
            assert_eq!(text(&trace, rank), text(&plain, rank));
            assert_eq!(text(&archived, rank), text(&plain, rank));
        }
    }
    let cut = &fs::read(&compressed).expect("the trace")[..200];
    fs::write(&compressed, cut).expect("the trace is written");
    let error = load(&compressed, &LoadOptions::default()).expect_err("the stream is cut");
    assert!(matches!(error.kind(), Some(InputError::Compressed { format: "gzip", .. })), "{error}");
}

#[test]
fn actions_have_the_lines_of_their_records() {
    let files = Files::new(format!("{TWO}{ALL_RECORDS}").as_bytes(), LABELS);
    let trace = files.load().expect("a trace");
    let lines = |rank| {
        let line = |action| trace.locate(Rank::new(rank), action).expect("an action").line;
        (0..trace.rank(Rank::new(rank)).len()).map(line).collect::<Vec<_>>()
    };
    assert_eq!(lines(0), [5, 6, 12, 16, 17, 18, 19, 24, 29, 33]);
    assert!(matches!(trace.locate(Rank::new(1), 6), Err(TraceError::NoSuchAction { .. })));
}

#[test]
fn a_trace_needs_the_names_of_its_calls_and_enough_ranks() {
    let files = Files::new(TWO.as_bytes(), LABELS);
    let options = LoadOptions { ranks: Some(1), ..LoadOptions::default() };
    let error = load(&files.path("trace.prv"), &options).expect_err("it has two ranks");
    assert!(matches!(error, TraceError::TooFewRanks { asked: 1, found: 2, .. }), "{error}");
    fs::remove_file(files.path("trace.pcf")).expect("the file is there");
    let error = files.load().expect_err("names are missing");
    assert!(
        matches!(error.kind(), Some(InputError::LabelsMissing { labels, .. }) if labels.ends_with("trace.pcf")),
        "{error}"
    );
}

/// Returns the line of the error of records, which begin at line 5, and the error.
fn error_of<E: Error + Clone + 'static>(records: &str) -> (u64, E) {
    match read(records).expect_err(records) {
        TraceError::Action { location, kind } => {
            (location.line, kind.downcast_ref::<E>().expect("an error of this type").clone())
        }
        error => panic!("{records}: {error}"),
    }
}

#[test]
fn errors_of_records_have_their_line() {
    let cases: [(&str, u64, &str); 27] = [
        ("9:1", 5, "a record of kind \"9\", expected 1 (state), 2 (events), 3 (message) or c (communicator)"),
        ("1:1:1:1:1:0", 5, "the line ends before the end"),
        ("1:1:1:1:1:0:5:1:7", 5, "\"7\" follows the last field of the record"),
        ("1:1:1:3:1:0:5:1", 5, "the task is 3, expected 1 to 2"),
        ("1:1:2:1:1:0:5:1", 5, "the application is 2, expected 1 to 1"),
        ("1:1:1:1:1:x:5:1", 5, "the begin is \"x\", expected a whole number of up to 999999999999999 ns"),
        (
            "1:1:1:1:1:0:1000000000000000:1",
            5,
            "the end is \"1000000000000000\", expected a whole number of up to 999999999999999 ns",
        ),
        ("1:1:1:1:1:6:5:1", 5, "the state begins at 6 ns and ends at 5 ns"),
        (
            "1:1:1:1:1:0:5:1\n1:1:1:1:1:4:6:1",
            6,
            "rank 0: a state begins at 4 ns, before the end of the one before at 5 ns",
        ),
        (
            "2:1:1:1:1:5:7:1\n2:1:1:1:1:4:7:1",
            6,
            "rank 0: an event begins at 4 ns, before the end of the one before at 5 ns",
        ),
        ("2:1:1:1:1:5:7", 5, "the line ends before the value of an event"),
        ("2:1:1:1:1:5:7:y", 5, "the value of an event is \"y\", expected a whole number"),
        (
            "2:1:1:2:2:5:50000001:1",
            5,
            "thread 2 of rank 1 communicates, expected MPI in the first thread only",
        ),
        ("2:1:1:1:1:5:50000001:99", 5, "event 50000001 has the value 99, for which the .pcf has no name"),
        (
            "2:1:1:1:1:5:50000001:1\n2:1:1:1:1:6:50000002:1",
            6,
            "rank 0 calls MPI_Barrier within MPI_Send, which began in line 5",
        ),
        ("c:1:1:1:1", 5, "the communicator 1 is there twice"),
        ("c:1:4:2:1:1", 5, "the task 1 is there twice"),
        ("c:1:4:2:1", 5, "the line ends before the member"),
        ("c:1:0:1:1", 5, "the number of the communicator is 0, expected 1 to 4294967295"),
        ("c:1:4:3:1:2:1", 5, "the size of the communicator is 3, expected 1 to 2"),
        ("3:1:1:1:1:5:5:1:1:2:1:6:6:8:-1", 5, "the tag is \"-1\", expected a whole number below 2^31"),
        (
            "3:1:1:1:2:5:5:1:1:2:1:6:6:8:1",
            5,
            "thread 2 of rank 0 communicates, expected MPI in the first thread only",
        ),
        (
            "3:1:1:1:1:5:5:1:1:2:1:6:6:8:1",
            5,
            "rank 0 sends a message at 5 ns, when it is in no call that sends one",
        ),
        (
            "2:1:1:1:1:5:50000002:1\n2:1:1:1:1:6:50000002:0",
            5,
            "MPI_Barrier has no event 50100004, which tells its communicator",
        ),
        (
            "2:1:1:1:1:5:50000002:1:50100004:9\n2:1:1:1:1:6:50000002:0",
            5,
            "MPI_Barrier is on communicator 9, whose members no line tells",
        ),
        (
            "2:1:1:1:1:5:50000002:1:50100004:2\n2:1:1:1:1:6:50000002:0",
            5,
            "rank 0 calls MPI_Barrier on communicator 2, of which it is no member",
        ),
        (
            "2:1:1:1:1:5:50000002:1:50100004:1\n2:1:1:1:1:6:50000002:0",
            5,
            "MPI_Barrier is collective call 1 on communicator 1, but rank 1 makes only 0",
        ),
    ];
    for (records, line, message) in cases {
        let (found, kind) = error_of::<ParaverError>(records);
        assert_eq!((found, kind.to_string().as_str()), (line, message), "{records}");
    }
}

#[test]
fn errors_of_calls_name_them() {
    let world = ":50100001:8:50100002:8:50100004:1";
    let differ = calls(&[(1, 2, 1, 5, 6, world), (2, 2, 3, 5, 6, world)]);
    let roots = calls(&[(1, 2, 2, 5, 6, world), (2, 2, 2, 5, 6, world)]);
    let several = calls(&[(1, 1, 1, 5, 9, ""), (2, 1, 2, 5, 6, ""), (2, 1, 2, 6, 7, "")])
        + &message(1, 5, 2, 5, 6, 8)
        + &message(1, 6, 2, 6, 7, 8);
    let late = calls(&[(1, 1, 1, 5, 9, ""), (2, 1, 4, 5, 6, "")]) + &message(1, 5, 2, 7, 8, 8);
    let large = calls(&[(1, 1, 1, 5, 9, ""), (2, 1, 2, 5, 6, "")]) + &message(1, 5, 2, 5, 6, 1 << 50);
    let (rank, other) = (Rank::new(1), Rank::new(0));
    let cases = [
        (
            differ,
            7,
            ParaverError::CollectivesDiffer {
                id: 1,
                round: 1,
                rank,
                found: "MPI_Allreduce".into(),
                other,
                expected: "MPI_Barrier".into(),
            },
        ),
        (roots, 5, ParaverError::Roots { name: "MPI_Bcast".into(), found: 0 }),
        (several, 5, ParaverError::SeveralMessages { name: "MPI_Send".into(), verb: "sends", found: 2 }),
        (late, 9, ParaverError::MessageOutsideCall { rank, verb: "receives", time: 7 }),
    ];
    for (records, line, expected) in cases {
        assert_eq!(error_of(&records), (line, expected), "{records}");
    }
    assert_eq!(error_of(&large), (5, OpError::Size { found: 1 << 50, limit: 1 << 48 }));
}

#[test]
fn errors_of_names_have_their_line() {
    for (row, line, message) in [
        ("x MPI_Send", 4, "the value of an event is \"x\", expected a number"),
        ("1", 4, "the line ends before the name of the value"),
    ] {
        let labels = format!("EVENT_TYPE\n9 50000001 MPI\nVALUES\n{row}\n");
        let error = Files::new(TWO.as_bytes(), &labels).load().expect_err(row);
        let place = format!("trace.pcf:{line}: {message}");
        assert!(error.to_string().ends_with(&place), "{error}");
    }
    let labels = "EVENT_TYPE\n9 50000005 MPI\nVALUES\n1 a=b\n";
    let records = format!("{TWO}2:1:1:1:1:5:50000005:1\n2:1:1:1:1:6:50000005:0\n");
    let error = Files::new(records.as_bytes(), labels).load().expect_err("no name");
    assert!(matches!(error.kind(), Some(ParaverError::Unmodelled(_))), "{error}");
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let whole = format!("{TWO}{ALL_RECORDS}").into_bytes();
    let files = Files::new(&whole, LABELS);
    let path = files.path("trace.prv");
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).expect("the trace is written");
        let _ = files.load();
    }
    let bytes = [b'0', b'9', b':', b'\n', 0xff];
    let is_campaign = std::env::var_os("PDES_CAMPAIGN").is_some();
    for place in 0..whole.len() {
        // One of the bytes at each place, or all.
        let every = if is_campaign { 1 } else { bytes.len() };
        for &byte in bytes.iter().skip(place % every).step_by(every) {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            fs::write(&path, &damaged).expect("the trace is written");
            let _ = files.load();
        }
    }
    fs::write(&path, &whole).expect("the trace is written");
    for len in 0..LABELS.len() {
        fs::write(files.path("trace.pcf"), &LABELS[..len]).expect("the names are written");
        let _ = load(Path::new(&path), &LoadOptions::default());
    }
}
