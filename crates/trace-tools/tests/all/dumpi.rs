//! DUMPI traces: SST's own, traces of all kinds of calls that are written here, and wrong bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{LoadOptions, Op, Trace, TraceError, check, nanos};
use trace_tools::{CallsError, CommunicatorError, DumpiError, InputError, load, write_text};

use crate::shared::shared;

/// Numbers of functions.
const SEND: u16 = 0;
const RECV: u16 = 1;
const ISEND: u16 = 8;
const IRECV: u16 = 12;
const WAIT: u16 = 13;
const WAITANY: u16 = 16;
const WAITSOME: u16 = 20;
const CONTIGUOUS: u16 = 35;
const BARRIER: u16 = 52;
const GATHERV: u16 = 55;
const ALLREDUCE: u16 = 65;
const COMM_GROUP: u16 = 72;
const GROUP_INCL: u16 = 76;
const COMM_RANK: u16 = 82;
const COMM_DUP: u16 = 84;
const COMM_CREATE: u16 = 85;
const COMM_SPLIT: u16 = 86;
const CART_CREATE: u16 = 99;
const CART_SUB: u16 = 111;
const INIT: u16 = 124;
const FINALIZE: u16 = 125;

const INT: u16 = 9;
const WORLD: u16 = 2;
const OWN: u16 = 3;

/// An argument of a call.
#[derive(Clone, Debug)]
enum Argument {
    Byte(u8),
    Short(u16),
    Int(i32),
    Array(Vec<i32>),
    /// Statuses with these sources.
    Statuses(Vec<i32>),
}

use Argument::{Array, Byte, Int, Short, Statuses};

/// A file of a rank, whose calls take 10 ns and are 100 ns apart.
struct File {
    bytes: Vec<u8>,
    calls: u32,
    counters: BTreeMap<u16, [u32; 2]>,
}

impl File {
    fn new() -> Self {
        let bytes = [&b"\xff\xaa\xddDUMPI"[..], &[0; 8]].concat();
        let mut file = Self { bytes, calls: 0, counters: BTreeMap::new() };
        file.call(INIT, &[Int(0)]);
        file
    }

    fn call(&mut self, function: u16, arguments: &[Argument]) {
        self.counters.entry(function).or_default()[0] += 1;
        let begin = 100 * self.calls;
        self.calls += 1;
        self.bytes.extend(function.to_be_bytes());
        // Statuses, wall time and thread.
        self.bytes.extend([3 | 8 | 64, 0, 0]);
        for nanos in [begin, begin + 10] {
            self.bytes.extend([0; 2]);
            self.bytes.extend(nanos.to_be_bytes());
        }
        for argument in arguments {
            match argument {
                Byte(byte) => self.bytes.push(*byte),
                Short(short) => self.bytes.extend(short.to_be_bytes()),
                Int(int) => self.bytes.extend(int.to_be_bytes()),
                Array(elements) => {
                    self.bytes.extend((elements.len() as i32).to_be_bytes());
                    self.bytes.extend(elements.iter().flat_map(|element| element.to_be_bytes()));
                }
                Statuses(sources) => {
                    self.bytes.extend((sources.len() as i32).to_be_bytes());
                    for source in sources {
                        self.bytes.extend([4, *source].iter().flat_map(|number| number.to_be_bytes()));
                        self.bytes.extend([0; 6]);
                    }
                }
            }
        }
    }

    fn send(&mut self, to: i32, tag: i32, communicator: u16) {
        self.call(SEND, &[Int(2), Short(INT), Int(to), Int(tag), Short(communicator)]);
    }

    fn recv(&mut self, from: i32, tag: i32, communicator: u16, source: i32) {
        let status = Statuses(vec![source]);
        self.call(RECV, &[Int(2), Short(INT), Int(from), Int(tag), Short(communicator), status]);
    }

    /// Notes calls that are not recorded.
    fn unrecorded(&mut self, function: u16, calls: u32) {
        let counters = self.counters.entry(function).or_default();
        *counters = [counters[0] + calls, calls];
    }

    fn finish(mut self) -> Vec<u8> {
        self.call(FINALIZE, &[]);
        self.bytes.extend(293_u16.to_be_bytes());
        let header = self.bytes.len() as u64;
        self.bytes.extend([1, 0, 0]);
        let footer = self.bytes.len() as u64;
        self.bytes.extend(0xf007_fee7_u64.to_be_bytes());
        for kind in 0..2 {
            let counter = |function| self.counters.get(&function).map_or(0, |counters| counters[kind]);
            let counters: Vec<u8> =
                (0..291).flat_map(|function| u32::to_be_bytes(counter(function))).collect();
            self.bytes.extend(counters);
        }
        let sizes = self.bytes.len() as u64;
        self.bytes.extend(28_u32.to_be_bytes());
        for datatype in 0..28 {
            self.bytes.extend(u32::to_be_bytes(if datatype == u32::from(INT) { 4 } else { 1 }));
        }
        self.bytes.extend(b"\xff\xaa\xddDUMPI");
        for offset in [sizes, 0, 0, header, 8, footer, 0] {
            self.bytes.extend(offset.to_be_bytes());
        }
        self.bytes
    }
}

/// A directory with the files of a trace.
fn directory(files: Vec<Vec<u8>>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    for (rank, bytes) in files.iter().enumerate() {
        fs::write(dir.path().join(format!("dumpi-{rank:04}.bin")), bytes).expect("the file is written");
    }
    let first = dir.path().join("dumpi-0000.bin");
    (dir, first)
}

fn read(files: Vec<File>) -> Result<Trace, TraceError> {
    let (_dir, first) = directory(files.into_iter().map(File::finish).collect());
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
fn the_trace_of_sst_has_the_calls_and_times_of_its_own_decoder() {
    let samples = shared("samples/dumpi");
    let table = fs::read_to_string(samples.join("expected.csv")).expect("the table is there");
    let rows: BTreeMap<&str, &str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("testtrace,"))
        .filter_map(|row| row.split(',').collect::<Vec<_>>()[..2].try_into().ok())
        .map(|[name, value]: [&str; 2]| (name, value))
        .collect();
    let data = samples.join("data");
    for name in ["", "testtrace.meta", "testtrace-0002.bin"] {
        let trace = load(&data.join(name), &LoadOptions::default()).expect("the trace loads");
        assert_eq!(trace.ranks().to_string(), rows["ranks"], "{name}");
        assert_eq!((trace.unreceived(), trace.warnings()), (None, &[][..]), "{name}");
        assert_eq!(check(&trace, None).findings, [], "{name}");
        let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
        for rank in (0..trace.ranks()).map(Rank::new) {
            let measured = trace.rank(rank).measured().expect("it has measured times");
            let times: Vec<u64> =
                measured.map(|(_, time)| nanos(time.expect("every action has a time"))).collect();
            let all = times.iter().sum::<u64>();
            assert_eq!(all.to_string(), rows[&*format!("rank_{rank}_init_start_to_finalize_end")]);
            let inner = all - times[0] - times[times.len() - 1];
            assert_eq!(inner.to_string(), rows[&*format!("rank_{rank}_init_end_to_finalize_start")]);
            for op in trace.ops(rank) {
                let name = match op {
                    Op::Compute { .. } => continue,
                    Op::Init => "MPI_Init",
                    Op::Finalize => "MPI_Finalize",
                    Op::Communicator => "asks",
                    Op::Call(trace_mmap::CallOp::Isend { bytes, .. }) | Op::Isend { bytes, .. } => {
                        assert_eq!(bytes.get().to_string(), rows["isend_bytes_per_rank"]);
                        "MPI_Isend"
                    }
                    Op::Recv { .. } => "MPI_Recv",
                    Op::Call(trace_mmap::CallOp::Wait { .. }) | Op::Wait(_) => "MPI_Wait",
                    Op::Collective(operation) if operation.name() == "barrier" => "MPI_Barrier",
                    Op::Collective(operation) if operation.name() == "allreduce" => "MPI_Allreduce",
                    other => panic!("{other:?} is no operation of the sample"),
                };
                *calls.entry(name).or_default() += 1;
            }
        }
        let asks = calls.remove("asks").expect("MPI_Comm_rank and MPI_Comm_size");
        assert_eq!(asks, 8);
        for (name, count) in calls {
            assert_eq!(count.to_string(), rows[&*format!("calls_{name}")], "{name}");
        }
        // The times of rank 0 are those of the text.
        let decoded = fs::read_to_string(data.join("testtrace-0000.txt")).expect("the text is there");
        let stamp = |line: &str| -> Option<u64> {
            let (_, rest) = line.split_once(" at walltime ")?;
            let (seconds, nanos) = rest.split_once(',')?.0.split_once('.')?;
            Some((seconds.parse::<u64>().ok()? - 1_296_777_956) * 1_000_000_000 + nanos.parse::<u64>().ok()?)
        };
        let stamps: Vec<u64> = decoded.lines().filter_map(stamp).collect();
        let expected: Vec<u64> = stamps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let found = trace.rank(Rank::new(0)).measured().expect("it has measured times");
        assert!(found.map(|(_, time)| nanos(time.expect("a time"))).eq(expected));
    }
}

#[test]
fn messages_requests_and_datatypes_are_those_of_the_calls() {
    let (mut first, mut second) = (File::new(), File::new());
    first.call(CONTIGUOUS, &[Int(3), Short(INT), Short(28)]);
    first.call(ISEND, &[Int(2), Short(28), Int(1), Int(7), Short(WORLD), Int(5)]);
    first.call(ISEND, &[Int(2), Short(INT), Int(-1), Int(7), Short(WORLD), Int(6)]);
    first.call(WAITSOME, &[Int(3), Array(vec![6, 1, 5]), Int(2), Array(vec![2, 0]), Statuses(vec![])]);
    first.send(1, 8, WORLD);
    second.call(IRECV, &[Int(9), Short(INT), Int(-1), Int(-1), Short(WORLD), Int(2)]);
    second.recv(-1, -1, WORLD, 0);
    second.call(WAITANY, &[Int(1), Array(vec![2]), Int(0), Statuses(vec![0])]);
    second.recv(-1, 3, WORLD, -1);
    second.call(WAIT, &[Int(1), Statuses(vec![])]);
    let trace = read(vec![first, second]).expect("a trace");
    assert_eq!(
        text(&trace, 0),
        [
            "comm_size",
            "isend 1 7 24 6 req=0",
            "isend -666 0 0 6 req=1",
            "waitsome req=1,0 done=1,0",
            "send 1 8 8 6",
        ]
    );
    assert_eq!(
        text(&trace, 1),
        [
            "irecv -555 -444 36 6 source=0 req=0",
            "recv -555 -444 8 6 source=0",
            "wait req=0",
            "send -666 0 0 6",
            "comm_size"
        ]
    );
    assert_eq!(trace.warnings(), []);
}

#[test]
fn communicators_follow_from_the_calls_of_all_ranks() {
    let mut files: Vec<File> = (0..4).map(|_| File::new()).collect();
    for (rank, file) in (0..).zip(&mut files) {
        // Odd and even ranks, the highest one first.
        file.call(COMM_SPLIT, &[Short(WORLD), Int(rank % 2), Int(-rank), Short(4)]);
        file.call(COMM_RANK, &[Short(4), Int(1 - rank / 2)]);
        file.call(BARRIER, &[Short(4)]);
        file.call(COMM_DUP, &[Short(4), Short(5)]);
        if rank / 2 == 1 {
            file.send(1, 0, 5);
        } else {
            file.recv(0, 0, 5, 0);
        }
        // A grid of 2 x 2, and its rows.
        let extents = Array(vec![2, 2]);
        file.call(CART_CREATE, &[Short(WORLD), Int(2), extents.clone(), extents, Int(0), Short(6)]);
        file.call(CART_SUB, &[Int(2), Short(6), Array(vec![0, 1]), Short(7)]);
        file.call(ALLREDUCE, &[Int(1), Short(INT), Byte(3), Short(7)]);
        // Ranks 3 and 1.
        file.call(COMM_GROUP, &[Short(WORLD), Short(3)]);
        file.call(GROUP_INCL, &[Short(3), Int(2), Array(vec![3, 1]), Short(4)]);
        file.call(COMM_CREATE, &[Short(WORLD), Short(4), Short(if rank % 2 == 1 { 8 } else { 1 })]);
        let counts = [Array(vec![1, 2]), Array(vec![0, 1])];
        if rank % 2 == 1 {
            let place = i32::from(rank == 1);
            let mut arguments = vec![Int(place), Int(2), Int(1 + place), Short(INT), Int(0), Short(8)];
            arguments.extend(counts.into_iter().filter(|_| place == 0));
            file.call(GATHERV, &[arguments, vec![Short(INT)]].concat());
        }
        file.call(BARRIER, &[Short(OWN)]);
    }
    let trace = read(files).expect("a trace");
    assert_eq!(check(&trace, None).findings, []);
    assert_eq!(
        text(&trace, 3),
        [
            "comm_split comm=0 new=2 members=3-1:-2",
            "comm_size",
            "barrier comm=2",
            "comm_dup comm=2 new=3",
            "send 1 0 8 6 comm=3",
            "comm_create comm=0 new=5 members=0-3",
            "comm_split comm=5 new=7 members=2-3",
            "allreduce 4 0 6 comm=7",
            "comm_size",
            "comm_size",
            "comm_create comm=0 new=8 members=3-1:-2",
            "gatherv 4 4 8 0 6 6 comm=8",
            "comm_create_group comm=0 new=12 members=3",
            "barrier comm=12",
        ]
    );
    assert_eq!(
        text(&trace, 0)[10..],
        ["comm_create comm=0", "comm_create_group comm=0 new=9 members=0", "barrier comm=9"]
    );
}

#[test]
fn what_is_not_recorded_is_named() {
    let (mut first, second) = (File::new(), File::new());
    first.unrecorded(ISEND, 2071);
    first.call(WAIT, &[Int(9), Statuses(vec![])]);
    let trace = read(vec![first, second]).expect("a trace");
    let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
    let [requests, calls] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(requests.contains("dumpi-0000.bin:2: requests of no recorded call"), "{requests}");
    assert!(calls.contains(":4: MPI_Isend was called and not recorded"), "{calls}");
    assert!(calls.ends_with("(2071 such record(s))"), "{calls}");
}

#[test]
fn a_receive_whose_source_is_known_late_holds_few_actions_back() {
    let (mut first, mut second) = (File::new(), File::new());
    first.call(IRECV, &[Int(9), Short(INT), Int(-1), Int(-1), Short(WORLD), Int(2)]);
    first.call(IRECV, &[Int(9), Short(INT), Int(-1), Int(-1), Short(WORLD), Int(3)]);
    (0..70_000).for_each(|_| first.call(COMM_RANK, &[Short(WORLD), Int(0)]));
    first.call(WAIT, &[Int(2), Statuses(vec![1])]);
    first.call(IRECV, &[Int(9), Short(INT), Int(-1), Int(-1), Short(WORLD), Int(2)]);
    first.call(WAIT, &[Int(2), Statuses(vec![1])]);
    first.call(WAIT, &[Int(3), Statuses(vec![1])]);
    (0..3).for_each(|_| second.send(0, 1, WORLD));
    let trace = read(vec![first, second]).expect("a trace");
    let text: Vec<String> = text(&trace, 0).into_iter().filter(|line| line != "comm_size").collect();
    assert_eq!(
        text,
        [
            "irecv -555 -444 36 6 req=0",
            "irecv -555 -444 36 6 req=1",
            "wait req=0",
            "irecv -555 -444 36 6 source=1 req=0",
            "wait req=0",
            "wait req=1",
        ]
    );
}

#[test]
fn errors_name_the_record_and_the_call() {
    let one = |call: &dyn Fn(&mut File)| {
        let mut file = File::new();
        call(&mut file);
        read(vec![file, File::new()]).expect_err("the call is wrong")
    };
    let line = |error: &TraceError| match error {
        TraceError::Action { location, .. } => location.line,
        other => panic!("{other}"),
    };
    let error = one(&|file| file.send(2, 0, WORLD));
    let name = || "MPI_Send".to_owned();
    assert_eq!(error.kind(), Some(&CallsError::Peer { name: name(), found: 2, ranks: 2 }));
    assert_eq!(line(&error), 2);
    let error = one(&|file| file.send(1, 0, 9));
    assert_eq!(error.kind(), Some(&CallsError::UnknownCommunicator { name: name(), communicator: 9 }));
    let error = one(&|file| file.call(SEND, &[Int(-1), Short(INT), Int(1), Int(0), Short(WORLD)]));
    assert_eq!(error.kind(), Some(&DumpiError::Count { name: "MPI_Send", found: -1 }));
    let error = one(&|file| file.call(SEND, &[Int(1), Short(99), Int(1), Int(0), Short(WORLD)]));
    assert_eq!(error.kind(), Some(&DumpiError::Datatype { name: "MPI_Send", datatype: 99 }));
    let error = one(&|file| file.call(WAITANY, &[Int(1), Int(5)]));
    assert!(
        matches!(error.kind(), Some(DumpiError::Length { name: "MPI_Waitany", found: 5, .. })),
        "{error}"
    );
    let error = one(&|file| file.call(400, &[]));
    assert!(matches!(error.kind(), Some(DumpiError::Function { found: 400, .. })), "{error}");
    let error = one(&|file| file.call(COMM_DUP, &[Short(WORLD), Short(4)]));
    let missing = CommunicatorError::Missing { name: "MPI_Comm_dup", rank: Rank::new(1) };
    assert_eq!((error.kind(), line(&error)), (Some(&missing), 2));
    let error = one(&|file| {
        file.call(COMM_DUP, &[Short(WORLD), Short(4)]);
        file.counters.clear();
    });
    let uncounted = CallsError::UnknownCommunicator { name: "MPI_Comm_dup".to_owned(), communicator: 4 };
    assert_eq!(error.kind(), Some(&uncounted));
    let error = one(&|file| file.call(COMM_RANK, &[Short(WORLD), Int(1)]));
    assert_eq!(error.kind(), Some(&CallsError::Reordered { found: 1, expected: 0 }));
}

#[test]
fn missing_and_foreign_files_are_named() {
    let (dir, first) = directory(vec![File::new().finish(), File::new().finish(), File::new().finish()]);
    fs::remove_file(dir.path().join("dumpi-0001.bin")).expect("the file is there");
    for path in [dir.path(), &first] {
        let error = load(path, &LoadOptions::default()).expect_err("rank 1 is missing");
        assert!(
            matches!(error.kind(), Some(InputError::NumberedFileMissing { rank: 1, highest: Some(2), .. })),
            "{error}"
        );
    }
    fs::write(dir.path().join("other-0.bin"), File::new().finish()).expect("the file is written");
    let error = load(dir.path(), &LoadOptions::default()).expect_err("there are two traces");
    assert!(matches!(error.kind(), Some(InputError::SeveralTraces { .. })), "{error}");
    let bytes = File::new().finish();
    fs::write(dir.path().join("other-0.bin"), &bytes[..bytes.len() - 8]).expect("the file is written");
    let error = load(&dir.path().join("other-0.bin"), &LoadOptions::default()).expect_err("the index is cut");
    assert!(
        matches!(
            error.kind(),
            Some(InputError::Dumpi { problem: DumpiError::Part { .. } | DumpiError::NoIndex, .. })
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), length in any::<prop::sample::Index>()) {
        let mut file = File::new();
        file.call(COMM_SPLIT, &[Short(WORLD), Int(0), Int(0), Short(4)]);
        file.call(CONTIGUOUS, &[Int(3), Short(INT), Short(28)]);
        file.call(IRECV, &[Int(9), Short(28), Int(0), Int(-1), Short(4), Int(2)]);
        file.send(0, 7, 4);
        file.call(WAITANY, &[Int(1), Array(vec![2]), Int(0), Statuses(vec![0])]);
        let mut bytes = file.finish();
        for (place, value) in changes {
            // Half of the changes are in the records, which are short beside the footer.
            let end = if value % 2 == 0 { 200 } else { bytes.len() };
            bytes[place.index(end)] = value;
        }
        let (_whole, first) = directory(vec![bytes.clone()]);
        let _ = load(&first, &LoadOptions::default());
        bytes.truncate(length.index(bytes.len()));
        let (_cut, first) = directory(vec![bytes]);
        let _ = load(&first, &LoadOptions::default());
    }
}
