//! Logs of Darshan: accesses as PyDarshan reads them, and logs of all versions.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdes_core::Rank;
use trace_mmap::{CallOp, FileCall, FileDirection, LoadOptions, Op, Trace, TraceError, nanos};

use crate::shared::shared;

fn load(path: &Path) -> Result<Trace, TraceError> {
    trace_tools::load(path, &LoadOptions::default())
}

/// The accesses of a rank: operation, position, size, file and measured time \[ns\].
fn accesses(trace: &Trace, rank: u32) -> Vec<(&'static str, u64, u64, String, u64)> {
    let rank = Rank::new(rank);
    let times = trace.rank(rank).measured().into_iter().flatten().map(|(_, time)| time.map(nanos));
    let access = |(op, nanos): (Op, Option<u64>)| {
        let Op::Call(CallOp::File { file, call, .. }) = op else { return None };
        let FileCall::Access { direction, offset, bytes, .. } = call else { return None };
        let name = if direction == FileDirection::Write { "write" } else { "read" };
        Some((name, offset?, bytes.get(), file.as_str().to_owned(), nanos?))
    };
    trace.ops(rank).zip(times).filter_map(access).collect()
}

/// `tests/data/darshan/accesses.csv` has what PyDarshan 3.5.0 reads of the samples, sorted by rank and begin.
#[test_with::shared]
fn accesses_are_those_of_pydarshan() {
    let samples = shared("samples/darshan/data");
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/darshan/accesses.csv");
    let expected = fs::read_to_string(expected).expect("the expected accesses");
    for (log, ranks, all) in [("ior_hdf5_example", 4, 59), ("sample-dxt-simple", 16, 2)] {
        let trace = load(&samples.join(format!("{log}.darshan"))).expect("a log");
        assert_eq!(trace.ranks(), ranks);
        let mut compared = 0;
        for rank in 0..ranks {
            let prefix = format!("{log},{rank},");
            let rows = expected.lines().filter_map(|line| line.strip_prefix(&prefix));
            let rows = rows.map(|row| {
                let fields: Vec<&str> = row.split(',').collect();
                let number = |at: usize| fields[at].parse::<u64>().expect("a number");
                let operation = if fields[0] == "write" { "write" } else { "read" };
                (operation, number(1), number(2), fields[5].to_owned(), number(4) - number(3))
            });
            let rows: Vec<_> = rows.collect();
            assert_eq!(accesses(&trace, rank), rows, "{log}, rank {rank}");
            compared += rows.len();
        }
        assert_eq!(compared, all, "{log}");
    }
    let error = load(&samples.join("ior-shared.darshan")).expect_err("it has counters only").to_string();
    assert!(error.ends_with("record the program with DXT_ENABLE_IO_TRACE=1"), "{error}");
}

/// A log that is written for a test.
struct LogWriter {
    version: &'static str,
    is_big_endian: bool,
    compression: u8,
    ranks: u64,
}

/// A record: file, rank, and accesses: a write or not, position, size, begin and end.
type Record<'a> = (u64, u64, &'a [(bool, u64, u64, f64, f64)]);

impl LogWriter {
    const NEWEST: Self = Self { version: "3.41", is_big_endian: false, compression: 0, ranks: 2 };

    fn number(&self, value: u64) -> Vec<u8> {
        if self.is_big_endian { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn version_number(&self, value: u32) -> Vec<u8> {
        if self.is_big_endian { value.to_be_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn region(&self, data: &[u8]) -> Vec<u8> {
        if self.compression != 0 {
            return data.to_vec();
        }
        // Two streams, as of two processes.
        let streams = data.chunks(data.len().div_ceil(2).max(1)).flat_map(|half| {
            let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
            stream.write_all(half).expect("memory takes all");
            stream.finish().expect("memory takes all")
        });
        streams.collect()
    }

    fn records(&self, records: &[Record<'_>], has_threads: bool) -> Vec<u8> {
        let mut data = Vec::new();
        for (file, rank, all) in records {
            let count = |is_write| all.iter().filter(|access| access.0 == is_write).count() as u64;
            let head = [self.number(*file), self.number(*rank), self.number(0), vec![b'n'; 64]];
            data.extend(head.concat());
            data.extend([self.number(count(true)), self.number(count(false))].concat());
            for (_, offset, bytes, begin, end) in
                all.iter().filter(|access| access.0).chain(all.iter().filter(|access| !access.0))
            {
                data.extend(
                    [*offset, *bytes, begin.to_bits(), end.to_bits()]
                        .iter()
                        .flat_map(|value| self.number(*value)),
                );
                data.extend(if has_threads { self.number(7) } else { Vec::new() });
            }
        }
        data
    }

    /// Returns a log with these records of POSIX, and those of MPI-IO.
    fn write(&self, posix: &[Record<'_>], mpi: &[Record<'_>]) -> Vec<u8> {
        let (modules, first, versions) = match self.version {
            "3.10" => (16, 8, [1, 2]),
            "3.41" => (64, 10, [2, 3]),
            _ => (16, 9, [1, 2]),
        };
        let is_new = modules == 64;
        let job = if is_new { 5 } else { 3 };
        let job = [self.number(0).repeat(job), self.number(self.ranks), vec![0; 1100]].concat();
        let names = [&self.number(1)[..], b"/scratch/a b\0", &self.number(2), b"/scratch/50%\0"].concat();
        let regions = [job, names, self.records(posix, is_new), self.records(mpi, is_new)]
            .map(|data| self.region(&data));
        let header = (if is_new { 32 } else { 24 }) + 16 * (1 + modules) + 4 * modules;
        let mut head =
            [self.version.as_bytes(), &[0; 4], &self.number(6_567_223), &[self.compression]].concat();
        head.resize(if is_new { 32 } else { 24 }, 0);
        let mut places = vec![0; 16 * (1 + modules) + 4 * modules];
        let mut begin = header + regions[0].len();
        for (number, region) in [0, 1 + first, 2 + first].into_iter().zip(&regions[1..]) {
            let place = [self.number(begin as u64), self.number(region.len() as u64)].concat();
            places[16 * number..16 * number + 16].copy_from_slice(&place);
            begin += region.len();
        }
        for (module, version) in versions.into_iter().enumerate() {
            let at = 16 * (1 + modules) + 4 * (first + module);
            places[at..at + 4].copy_from_slice(&self.version_number(version));
        }
        [head, places, regions.concat()].concat()
    }
}

fn saved(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log.darshan");
    fs::write(&path, bytes).expect("the log is written");
    (dir, path)
}

/// Two writes and a read of one file, of which the read came between, and one of another file by MPI-IO alone.
const POSIX: [Record<'_>; 1] =
    [(1, 1, &[(true, 0, 100, 0.5, 0.75), (true, 100, 50, 1.0, 1.25), (false, 10, 20, 0.625, 0.875)])];
const MPI: [Record<'_>; 2] = [(1, 0, &[(true, 0, 9, 0.25, 0.5)]), (2, 1, &[(false, 1 << 40, 5, 2.0, 2.5)])];

#[test]
fn logs_of_all_versions_and_machines_are_read() {
    let expected = "1 comm_create_group comm=0 new=2 members=1\n1 sleep 0.5\n1 io-open /scratch/a%20b 0 comm=2\n\
                    1 io-write_at /scratch/a%20b 0 100 comm=2\n1 io-read_at /scratch/a%20b 10 20 comm=2\n1 sleep 0.125\n\
                    1 io-write_at /scratch/a%20b 100 50 comm=2\n1 io-close /scratch/a%20b comm=2\n1 sleep 0.75\n\
                    1 io-open /scratch/50%25 0 comm=2\n1 io-read_at /scratch/50%25 1099511627776 5 comm=2\n1 io-close /scratch/50%25 comm=2\n";
    for version in ["3.10", "3.20", "3.21", "3.41"] {
        for (is_big_endian, compression) in [(false, 0), (true, 0), (true, 2)] {
            let writer = LogWriter { version, is_big_endian, compression, ranks: 2 };
            let (_dir, path) = saved(&writer.write(&POSIX, &MPI));
            let trace = load(&path).unwrap_or_else(|error| panic!("{version}: {error}"));
            let mut text = Vec::new();
            trace_tools::write_text(&trace, Rank::new(1), &mut text, None).expect("memory takes all");
            let text = String::from_utf8(text).expect("text");
            let lines =
                text.lines().map(|line| line.split(" time=").next().unwrap_or(line).to_owned() + "\n");
            assert_eq!(lines.collect::<String>(), expected, "{version} {is_big_endian} {compression}");
            let times: Vec<u64> = accesses(&trace, 1).into_iter().map(|access| access.4).collect();
            assert_eq!(times, [250_000_000, 250_000_000, 250_000_000, 500_000_000]);
            assert_eq!(trace.rank(Rank::new(0)).len(), 0, "its file has accesses by POSIX");
        }
    }
}

#[test]
fn incomplete_modules_are_named() {
    let warning = |version, is_big_endian, flags: u64| {
        let writer = LogWriter { version, is_big_endian, ..LogWriter::NEWEST };
        let mut log = writer.write(&POSIX, &MPI);
        let (at, size) = if version == "3.41" { (24, 8) } else { (20, 4) };
        let bytes = flags.to_le_bytes();
        log[at..at + size].copy_from_slice(&bytes[..size]);
        log[at..at + size].reverse();
        if !is_big_endian {
            log[at..at + size].reverse();
        }
        let (_dir, path) = saved(&log);
        let trace = load(&path).unwrap_or_else(|error| panic!("{error}"));
        trace.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let cases = [
        ("3.10", 8, "DXT_POSIX"),
        ("3.21", 9, "DXT_POSIX"),
        ("3.21", 10, "DXT_MPIIO"),
        ("3.41", 10, "DXT_POSIX"),
        ("3.41", 11, "DXT_MPIIO"),
        ("3.41", 9, "STDIO"),
    ];
    for (version, bit, name) in cases {
        for is_big_endian in [false, true] {
            let [warning] = &warning(version, is_big_endian, 1 << bit)[..] else { panic!("{version} {bit}") };
            assert!(
                warning.ends_with(&format!(
                    "Darshan had no memory for all records of {name}: the log is incomplete, and the trace is the part that was kept"
                )),
                "{warning}"
            );
        }
    }
    let both = warning("3.41", false, 3 << 10);
    assert!(both[0].contains("records of DXT_POSIX, DXT_MPIIO:"), "{both:?}");
    assert_eq!(warning("3.21", false, 0), [""; 0]);
}

#[test]
fn accesses_of_no_bytes_are_kept_but_failed_ones_are_not() {
    let failed = -1_i64 as u64;
    let posix = [(1, 0, &[(false, 100, 0, 0.5, 0.75), (false, 100, failed, 1.0, 1.25)][..])];
    let (_dir, path) = saved(&LogWriter::NEWEST.write(&posix, &[]));
    let trace = load(&path).expect("a log");
    assert_eq!(accesses(&trace, 0), [("read", 100, 0, "/scratch/a%20b".to_owned(), 250_000_000)]);
}

#[test]
fn damaged_logs_are_errors() {
    let good = LogWriter::NEWEST.write(&POSIX, &MPI);
    let error = |bytes: &[u8]| {
        let (_dir, path) = saved(bytes);
        load(&path).expect_err("the log is damaged").to_string()
    };
    let other = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        error(&bytes)
    };
    for (found, expected) in [
        (other(&|bytes| bytes[..4].copy_from_slice(b"2.06")), "a Darshan log of version 2.06, expected 3.10"),
        (other(&|bytes| bytes[16] = 1), "compressed with bzip2"),
        (other(&|bytes| bytes.truncate(good.len() - 1)), "cut short: the accesses by MPI-IO"),
        (other(&|bytes| bytes.truncate(20)), "the header"),
        (
            error(&LogWriter { ranks: 0, ..LogWriter::NEWEST }.write(&POSIX, &[])),
            "a number of processes of 0, expected 1 to",
        ),
        (
            error(&LogWriter { ranks: 1, ..LogWriter::NEWEST }.write(&POSIX, &[])),
            "accesses of rank 1, expected one from 0 to 0",
        ),
        (error(&LogWriter::NEWEST.write(&[], &[])), "without accesses (DXT)"),
        (
            error(&LogWriter::NEWEST.write(&[(1, 0, &[(true, 0, 1 << 49, 0.0, 1.0)])], &[])),
            "an access of rank 0 that a trace cannot have",
        ),
        (
            error(&LogWriter::NEWEST.write(&[(1, 0, &[(true, 0, 1, f64::NAN, 1.0)])], &[])),
            "the accesses by POSIX",
        ),
    ] {
        assert!(found.contains(expected), "{found}, expected {expected}");
    }
    // Any byte may be wrong.
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let (_dir, path) = saved(&bytes);
            drop(load(&path));
        }
    }
}
