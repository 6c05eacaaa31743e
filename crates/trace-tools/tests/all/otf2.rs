//! Archives of OTF2: those of Score-P with known contents, and damaged ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use otf2::writer::{Archive, Definitions, Role};
use pdes_core::Rank;
use trace_mmap::{CallOp, LoadOptions, Op, Trace, check, nanos};
use trace_tools::load;

use crate::shared::shared;

/// Returns the rows of a sample by their names.
fn rows<'a>(table: &'a str, sample: &str) -> BTreeMap<&'a str, &'a str> {
    let rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[0] == sample).map(|row| (row[1], row[2])).collect()
}

/// Numbers of calls by the names of their functions.
type Calls = BTreeMap<&'static str, u64>;

/// Sizes of the messages of each ordered pair of ranks.
type Pairs = BTreeMap<(u32, u32), Vec<u64>>;

fn count(trace: &Trace) -> (Calls, Pairs) {
    let (mut calls, mut pairs) = (Calls::new(), Pairs::new());
    for rank in (0..trace.ranks()).map(Rank::new) {
        for op in trace.ops(rank) {
            let name = match &op {
                Op::Compute { .. } => continue,
                Op::Init => "MPI_Init",
                Op::Finalize => "MPI_Finalize",
                Op::Communicator => "asks",
                Op::Send { peer: Some(peer), bytes, .. } => {
                    pairs.entry((rank.get(), peer.get())).or_default().push(bytes.get());
                    "MPI_Send"
                }
                Op::Recv { .. } => "MPI_Recv",
                Op::Irecv { .. } | Op::Call(CallOp::Irecv { .. }) => "MPI_Irecv",
                Op::WaitAll | Op::Call(CallOp::Waitall { .. }) => "MPI_Waitall",
                Op::Collective(operation) if operation.name() == "barrier" => "MPI_Barrier",
                other => panic!("{other:?} is no operation of the samples"),
            };
            *calls.entry(name).or_default() += 1;
        }
    }
    (calls, pairs)
}

#[test_with::shared]
fn archives_of_score_p_have_their_calls_bytes_and_times() {
    let samples = shared("samples/otf2");
    let table = fs::read_to_string(samples.join("expected.csv")).expect("the table is there");
    for sample in ["ping-pong", "stencil4d-32"] {
        let rows = rows(&table, sample);
        let directory = samples.join("data").join(sample);
        let trace =
            load(&directory, &LoadOptions { threads: 2, ..LoadOptions::default() }).expect("the trace loads");
        assert_eq!(trace.ranks().to_string(), rows["cpu_locations"]);
        assert_eq!(trace.unreceived(), None, "{sample}");
        assert_eq!(check(&trace, None).findings, [], "{sample}");
        let (mut calls, pairs) = count(&trace);
        let asks = calls.remove("asks");
        assert_eq!(asks, (sample == "ping-pong").then_some(4), "MPI_Comm_rank and MPI_Comm_size");
        for (name, count) in calls {
            assert_eq!(count.to_string(), rows[&*format!("calls_{name}")], "{sample}: {name}");
        }
        let (messages, bytes) = (pairs.values().flatten().count(), pairs.values().flatten().sum::<u64>());
        assert_eq!([messages.to_string(), bytes.to_string()], [rows["sent_messages"], rows["sent_bytes"]]);
        let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
        let is_switched_off = sample == "stencil4d-32";
        assert!(
            warnings.is_empty()
                || is_switched_off && warnings[0].contains("the measurement was switched off"),
            "{warnings:?}"
        );
        if sample == "ping-pong" {
            assert_eq!(pairs[&(0, 1)].iter().sum::<u64>().to_string(), rows["bytes_0_to_1"]);
            assert_eq!(pairs[&(1, 0)].iter().sum::<u64>().to_string(), rows["bytes_1_to_0"]);
            for size in pairs.values().flatten() {
                let count = pairs.values().flatten().filter(|other| *other == size).count();
                assert_eq!(count.to_string(), rows[&*format!("messages_of_{size}_B")]);
            }
            let all = |rank| {
                let times = trace.rank(Rank::new(rank)).measured().expect("it has measured times");
                times.map(|(_, time)| nanos(time.expect("every action has a time"))).sum::<u64>() as f64
                    * 1e-9
            };
            let duration: f64 = rows["duration"].parse().expect("a number");
            // The archive begins with one rank and may end with the other.
            assert!(all(0) <= duration && all(0) > 0.99 * duration, "{} s", all(0));
        } else {
            let with = |bytes: u64| pairs.values().filter(|sizes| sizes.iter().sum::<u64>() == bytes).count();
            assert_eq!(with(262_144).to_string(), rows["ordered_pairs_with_262144_B"]);
            assert_eq!(with(524_288).to_string(), rows["ordered_pairs_with_524288_B"]);
        }
    }
}

/// Copies a directory with its files and directories.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the directory is made");
    for entry in fs::read_dir(from).expect("the directory is there").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(&target, fs::read(entry.path()).expect("the file is there")).expect("it is written");
        }
    }
}

/// Writes definitions of an archive: its clock and its end, the calls of these names as regions, and ranks with so many events on a machine.
fn define(archive: Archive, end: u64, names: &[&str], events: &[u64]) -> Definitions {
    let mut definitions = archive.into_definitions().unwrap();
    definitions.clock(1_000_000_000, end).unwrap();
    let machine = definitions.string("machine").unwrap();
    definitions.machine(machine).unwrap();
    for (number, name) in (0..).zip(names) {
        let name = definitions.string(name).unwrap();
        definitions.region(number, name, Role::Call).unwrap();
    }
    for (rank, &events) in (0..).zip(events) {
        definitions.location(rank, rank as u32, machine, events).unwrap();
    }
    let ranks: Vec<u64> = (0..events.len() as u64).collect();
    definitions.communicator(machine, &ranks).unwrap();
    definitions
}

/// Writes an archive of two ranks: 100 and 250 of a counter before a message, 40 and 60 after it. Rank 1 has values only if told so.
fn write_counted(directory: &Path, has_values: bool) {
    let mut archive = Archive::create(directory, "run").unwrap();
    let mut events = Vec::new();
    for (rank, work) in [(0_u64, [100, 40]), (1, [250, 60])] {
        archive.begin_location(rank).unwrap();
        let mut counted = 7_u64;
        // The calls: init, message, finalize, of which each counts 5.
        for (call, work) in [(0_u32, 0), (1, work[0]), (2, work[1])] {
            counted += work;
            let begin = 1000 * u64::from(call);
            if rank == 0 || has_values {
                archive.counter(begin, 9, counted).unwrap();
            }
            archive.enter(begin, call).unwrap();
            match (call, rank) {
                (1, 0) => archive.send(begin + 5, 1, 3, 64).unwrap(),
                (1, _) => archive.receive(begin + 5, 0, 3, 64).unwrap(),
                _ => {}
            }
            counted += 5;
            if rank == 0 || has_values {
                archive.counter(begin + 10, 9, counted).unwrap();
            }
            archive.leave(begin + 10, call).unwrap();
        }
        events.push(archive.end_location().unwrap());
    }
    let mut definitions = define(archive, 5000, &["MPI_Init", "MPI_Sendrecv", "MPI_Finalize"], &events);
    let counter = definitions.string("PAPI_TOT_INS").unwrap();
    definitions.counter(9, counter).unwrap();
    definitions.close().unwrap();
}

/// A metric counts computations: what it counted between the calls, whatever they took.
#[test]
fn computations_are_counted_by_a_metric() {
    let dir = tempfile::tempdir().unwrap();
    write_counted(dir.path(), true);
    let (anchor, output) = (dir.path().join("run.otf2"), dir.path().join("run.pdt"));
    let convert = |counter| trace_tools::convert_counted(&anchor, &output, counter, &Default::default());
    convert("PAPI_TOT_INS").unwrap();
    let work = |trace: &Trace, rank| {
        let flops = |op| if let Op::Compute { flops } = op { Some(flops) } else { None };
        trace.ops(Rank::new(rank)).filter_map(flops).collect::<Vec<_>>()
    };
    let trace = Trace::load(&output).unwrap();
    assert_eq!((work(&trace, 0), work(&trace, 1)), (vec![100.0, 40.0], vec![250.0, 60.0]));
    assert_eq!(trace.provenance().work_metric, Some(trace_mmap::WorkMetric::Instructions));
    let timed = load(&anchor, &LoadOptions::default()).unwrap();
    assert_eq!(work(&timed, 0), [990.0, 990.0]);
    let error = convert("PAPI_FP_OPS").unwrap_err().to_string();
    assert!(error.contains("no counter \"PAPI_FP_OPS\", expected one of PAPI_TOT_INS"), "{error}");
    let text = dir.path().join("trace.txt");
    fs::write(&text, "0 init\n").unwrap();
    let error = trace_tools::convert_counted(&text, &output, "PAPI_TOT_INS", &Default::default());
    assert!(error.unwrap_err().to_string().contains("this is no archive of OTF2"));
    let without = tempfile::tempdir().unwrap();
    write_counted(without.path(), false);
    let error = trace_tools::convert_counted(
        &without.path().join("run.otf2"),
        &output,
        "PAPI_TOT_INS",
        &Default::default(),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("1.evt") && error.contains("has no value of the counter"), "{error}");
}

/// Accesses to windows and files have their sizes; operations on files outside of MPI are no computations.
#[test]
fn accesses_to_windows_and_files_are_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(dir.path(), "run").unwrap();
    archive.begin_location(0).unwrap();
    archive.enter(0, 0).unwrap();
    archive.leave(10, 0).unwrap();
    // A computation of 90 ns, an operation of 200, a computation of 50.
    archive.write_file([100, 300], 4, 512).unwrap();
    archive.enter(350, 1).unwrap();
    archive.put(355, 2, 0, 4096).unwrap();
    archive.leave(400, 1).unwrap();
    archive.enter(400, 2).unwrap();
    archive.write_file([410, 480], 4, 1000).unwrap();
    archive.leave(500, 2).unwrap();
    let events = archive.end_location().unwrap();
    define(archive, 500, &["MPI_Init", "MPI_Put", "MPI_File_write"], &[events]).close().unwrap();
    let trace = load(dir.path(), &LoadOptions::default()).unwrap();
    let mut text = Vec::new();
    trace_tools::write_text(&trace, Rank::new(0), &mut text, None).unwrap();
    let expected = "0 init time=10\n0 compute 90 time=90\n0 sleep 2e-7 time=200\n0 compute 50 time=50\n\
                    0 unmodelled MPI_Put target=0 bytes=4096 time=50\n0 unmodelled MPI_File_write bytes=1000 time=100\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let [warning] = trace.warnings() else { panic!("{:?}", trace.warnings()) };
    assert!(warning.to_string().contains("an operation on a file outside of MPI is a sleep of its time"));
}

/// Calls on a window are those that a replay models; the two ranks lock each other's memory, and put into it between fences.
#[test]
fn calls_on_windows_are_modelled() {
    const NAMES: [&str; 9] = [
        "MPI_Init",
        "MPI_Win_create",
        "MPI_Win_fence",
        "MPI_Put",
        "MPI_Win_lock",
        "MPI_Get",
        "MPI_Win_unlock",
        "MPI_Win_free",
        "MPI_Finalize",
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(dir.path(), "run").unwrap();
    let mut events = Vec::new();
    for rank in 0..2_u32 {
        archive.begin_location(rank.into()).unwrap();
        let (window, other) = (5, 1 - rank);
        for (begin, call) in (0..).step_by(100).zip([0, 1, 2, 3, 2, 4, 5, 6, 7, 8]) {
            archive.enter(begin, call).unwrap();
            let at = begin + 5;
            match NAMES[call as usize] {
                "MPI_Win_create" => archive.create_window(at, window),
                "MPI_Win_fence" => archive.fence(at, window),
                "MPI_Put" => archive.put(at, window, other, 4096),
                "MPI_Win_lock" => archive.lock(at, window, other),
                "MPI_Get" => archive.get(at, window, other, 100),
                "MPI_Win_unlock" => archive.unlock(at, window, other),
                "MPI_Win_free" => archive.destroy_window(at, window),
                _ => Ok(()),
            }
            .unwrap();
            archive.leave(begin + 10, call).unwrap();
        }
        events.push(archive.end_location().unwrap());
    }
    let mut definitions = define(archive, 5000, &NAMES, &events);
    let name = definitions.string("window").unwrap();
    definitions.window(5, name).unwrap();
    definitions.close().unwrap();
    let trace = load(dir.path(), &LoadOptions::default()).unwrap();
    assert_eq!((trace.warnings(), &check(&trace, None).findings[..]), (&[][..], &[][..]));
    for rank in 0..2 {
        let mut text = Vec::new();
        trace_tools::write_text(&trace, Rank::new(rank), &mut text, None).unwrap();
        let text = String::from_utf8(text).unwrap();
        let calls = text
            .lines()
            .filter(|line| !line.contains("compute"))
            .map(|line| line.split(" time=").next().unwrap());
        let other = 1 - rank;
        let expected = [
            "init".to_owned(),
            "win_create comm=0 new=9".to_owned(),
            "win_fence comm=9".to_owned(),
            format!("put {other} 4096 comm=9"),
            "win_fence comm=9".to_owned(),
            format!("win_lock_exclusive {other} comm=9"),
            format!("get {other} 100 comm=9"),
            format!("win_unlock {other} comm=9"),
            "win_free comm=9".to_owned(),
            "finalize".to_owned(),
        ];
        assert_eq!(calls.map(|line| &line[2..]).collect::<Vec<_>>(), expected);
    }
}

#[test_with::shared]
fn damaged_archives_are_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let sample = shared("samples/otf2/data/ping-pong");
    for file in ["traces.otf2", "traces.def", "traces/1.evt", "traces/1.def"] {
        let archive = dir.path().join(file.replace('/', "-"));
        copy(&sample, &archive);
        let path = archive.join(file);
        let bytes = fs::read(&path).expect("the file is there");
        // Each cut follows a reading of the whole file, which leaves its records in memory.
        for end in (0..bytes.len() - 1).rev().step_by(bytes.len() / 23 + 1) {
            fs::write(&path, &bytes).expect("the file is written");
            load(&archive.join("traces.otf2"), &LoadOptions::default()).expect("the archive is whole");
            fs::write(&path, &bytes[..end]).expect("the file is written");
            let error = load(&archive.join("traces.otf2"), &LoadOptions::default()).expect_err(file);
            let expected = if end == 0 && file == "traces.otf2" { "empty" } else { "OTF2 cannot read" };
            assert!(error.to_string().contains(expected), "{file}, {end} bytes: {error}");
        }
    }
    let archive = dir.path().join("missing");
    copy(&sample, &archive);
    fs::remove_file(archive.join("traces/0.evt")).expect("the file is there");
    let error = load(&archive, &LoadOptions::default()).expect_err("a file is missing");
    assert!(error.to_string().contains("the events of a location"), "{error}");
    let error = load(&archive.join("traces/1.evt"), &LoadOptions::default()).expect_err("it is no anchor");
    assert!(error.to_string().contains("name the anchor"), "{error}");
}
