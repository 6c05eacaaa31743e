//! File layouts: directories, lists, merged files, compression; independence of threads and of spilling.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use pdes_core::Rank;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;
use trace_mmap::{Action, LoadOptions, Location, Trace, TraceError, Warning};
use trace_tools::{InputError, TextError};

use crate::line_error;

const RANKS: [&str; 3] = [
    "0 init\n0 send 1 5 100\n0 compute 1e6\n0 finalize\n",
    // No newline at the end, carriage returns, and a comment.
    "# rank 1\r\n1 init\r\n1 recv 0 5 100\r\n\r\n1 finalize",
    "2 init 1\n2 bcast 4\n2 finalize\n",
];

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn zstd(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

/// Ranks are replayed by several threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Trace>();
};

/// A temporary directory with files.
struct Files(TempDir);

impl Files {
    fn new<C: AsRef<[u8]>>(files: impl IntoIterator<Item = (&'static str, C)>) -> Self {
        let dir = Self(tempfile::tempdir().expect("a temporary directory"));
        for (name, content) in files {
            let path = dir.path(name);
            fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a directory");
            fs::write(path, content).expect("a file");
        }
        dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, name: &str) -> Result<Trace, TraceError> {
        trace_tools::load(&self.path(name), &LoadOptions::default())
    }

    fn input_error(&self, name: &str) -> InputError {
        match self.load(name) {
            Err(TraceError::Source(error)) => *error.downcast().expect("an error of files"),
            other => panic!("{name} gave {other:?}"),
        }
    }
}

/// Checks that a trace is that of `RANKS`.
fn check(trace: &Trace) {
    assert_eq!((trace.ranks(), trace.actions()), (3, 10));
    let lens: Vec<u64> = (0..3).map(|rank| trace.rank(Rank::new(rank)).len()).collect();
    assert_eq!(lens, [4, 3, 3]);
    let third: Vec<Action> = trace.rank(Rank::new(1)).cursor().collect();
    assert!(matches!(third[..], [Action::Init, Action::Recv { .. }, Action::Finalize]));
}

#[test]
fn a_directory_of_rank_files_of_any_compression() {
    let files = Files::new([
        ("rank-0.txt", RANKS[0].as_bytes().to_vec()),
        ("rank-1.txt.gz", gzip(RANKS[1])),
        ("rank-2.txt.zst", zstd(RANKS[2])),
        ("README", b"not a rank".to_vec()),
    ]);
    let trace = files.load("").expect("a trace");
    check(&trace);
    let location = trace.locate(Rank::new(1), 1).expect("a line");
    assert_eq!((location.file, location.line), (files.path("rank-1.txt.gz"), 3));
}

#[test]
fn compression_shows_in_the_bytes_not_in_the_name() {
    let files = Files::new([
        ("rank-0.txt", gzip(RANKS[0])),
        ("rank-1.txt", zstd(RANKS[1])),
        ("rank-2.txt.gz", RANKS[2].as_bytes().to_vec()),
    ]);
    check(&files.load("").expect("a trace"));
}

#[test]
fn several_gzip_members_are_one_stream() {
    let (first, second) = RANKS[0].split_at(20);
    let files = Files::new([
        ("rank-0.txt", [gzip(first), gzip(second)].concat()),
        ("rank-1.txt", [zstd(RANKS[1]), zstd("")].concat()),
        ("rank-2.txt", zstd(RANKS[2])),
    ]);
    check(&files.load("").expect("a trace"));
}

#[test]
fn a_list_names_the_file_of_each_rank() {
    let list = "\nranks/a\n# a comment\n  ranks/b \r\nc";
    let ranks = [("ranks/a", RANKS[0]), ("ranks/b", RANKS[1]), ("c", RANKS[2])];
    let files = Files::new(ranks.into_iter().chain([("files.txt", list)]));
    check(&files.load("files.txt").expect("a trace"));
    fs::write(files.path("list"), gzip(list)).expect("a file");
    check(&files.load("list").expect("a trace"));
}

#[test]
fn a_merged_file_alone_or_in_a_list() {
    // Rank 1 comes first.
    let merged = format!("{}\n\n{}{}", RANKS[1], RANKS[0], RANKS[2]);
    for content in [merged.clone().into_bytes(), gzip(&merged), zstd(&merged)] {
        let files = Files::new([("merged", content), ("list", b"merged".to_vec())]);
        check(&files.load("merged").expect("a trace"));
        let trace = files.load("list").expect("a trace");
        check(&trace);
        assert_eq!(trace.locate(Rank::new(2), 1).map(|location| location.line).ok(), Some(12));
    }
    check(&trace_tools::from_text(&merged).expect("a trace"));
}

#[test]
fn the_number_of_ranks_may_be_given() {
    let merged = RANKS.map(|text| format!("{text}\n")).concat();
    let ranks = [("rank-0.txt", RANKS[0]), ("rank-1.txt", RANKS[1]), ("rank-2.txt", RANKS[2])];
    let files = Files::new(ranks.into_iter().chain([("merged", merged.as_str())]));
    let load = |name: &str, ranks| {
        trace_tools::load(&files.path(name), &LoadOptions { ranks: Some(ranks), ..LoadOptions::default() })
    };
    for name in ["", "merged"] {
        let trace = load(name, 5).expect("a trace");
        assert_eq!((trace.ranks(), trace.actions(), trace.rank(Rank::new(4)).is_empty()), (5, 10, true));
        assert!(matches!(trace.locate(Rank::new(4), 0), Err(TraceError::NoSuchAction { .. })));
    }
    assert!(matches!(load("", 2), Err(TraceError::TooFewRanks { asked: 2, found: 3, .. })));
    let expected = TextError::RankOutOfRange { found: 2, ranks: 2 };
    let error = load("merged", 2).expect_err("rank 2 is too high");
    let (place, kind) = line_error(&error);
    assert_eq!((place.line, kind), (11, &expected));
    assert!(matches!(load("", u32::MAX), Err(TraceError::TooManyRanks { .. })));
}

#[test]
fn files_that_are_missing_or_too_many() {
    let files = Files::new([("none/x", ""), ("gap/rank-0.txt", ""), ("gap/rank-3.txt", "")]);
    assert!(matches!(files.input_error("absent"), InputError::Io { .. }));
    assert!(matches!(files.input_error("none"), InputError::NoRankFiles { .. }));
    assert!(matches!(files.input_error("gap"), InputError::RankFileMissing { missing: 1, highest: 3, .. }));
    fs::write(files.path("gap/rank-3.txt.gz"), "").expect("a file");
    assert!(matches!(files.input_error("gap"), InputError::DuplicateRankFile { rank: 3, .. }));
    fs::write(files.path("list"), "none/x\nnone/y\n").expect("a file");
    match files.input_error("list") {
        InputError::ListedFileMissing { list, file } => {
            assert_eq!((list.line, file), (2, files.path("none/y")));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(files.input_error("none/x"), InputError::Empty { .. }));
}

#[test]
fn streams_that_are_damaged_or_not_text() {
    let text = "0 compute 12345\n".repeat(20_000);
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let mut flipped = gzip(&text);
    let last = flipped.len() - 6;
    flipped[last] ^= 0x10;
    for (content, expected) in [(cut(gzip(&text)), "gzip"), (cut(zstd(&text)), "zstd"), (flipped, "gzip")] {
        let files = Files::new([("rank-0.txt", content)]);
        match files.input_error("") {
            InputError::Compressed { file, format, .. } => {
                assert_eq!((file, format), (files.path("rank-0.txt"), expected));
            }
            other => panic!("{other:?}"),
        }
    }
    let files = Files::new([("lu.pdt", b"PDT\0\x01\0\0\0".to_vec())]);
    match files.input_error("lu.pdt") {
        InputError::Foreign { found, .. } => assert_eq!(found.name, "a binary file"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_line_is_named_with_its_file() {
    let files = Files::new([("rank-0.txt", "0 init\n"), ("rank-1.txt", "1 init\n\n0 compute 5\n")]);
    let error = files.load("").unwrap_err();
    let (place, kind) = line_error(&error);
    assert_eq!((place.line, kind), (3, &TextError::WrongRank { found: 0, expected: 1 }));
    let message = "rank-1.txt:3: the line is of rank 0 in the file of rank 1";
    assert!(error.to_string().ends_with(message), "{error}");
}

/// Writes rank files of different lengths, the first ones the longest.
fn many_files(ranks: usize) -> Files {
    let files = Files::new::<&str>([]);
    for rank in 0..ranks {
        let mut text = format!("{rank} init\n{rank} comm_dup\n");
        for step in 0..(ranks - rank) * 1500 {
            text += &format!("{rank} compute {step}\n");
        }
        fs::write(files.path(&format!("rank-{rank}.txt")), text).expect("a file");
    }
    files
}

fn all_actions(trace: &Trace) -> Vec<Vec<Action>> {
    (0..trace.ranks()).map(|rank| trace.rank(Rank::new(rank)).cursor().collect()).collect()
}

#[test]
fn threads_and_spilling_do_not_change_a_trace() {
    let files = many_files(7);
    let expected = files.load("").expect("a trace");
    let dir = files.path("");
    for (threads, memory_budget) in [(1, 0), (2, 1 << 30), (3, 100_000), (50, 0), (0, 65_536)] {
        let progress = AtomicU64::new(0);
        let options = LoadOptions {
            threads,
            memory_budget,
            spill_dir: Some(dir.clone()),
            progress: Some(&progress),
            ..LoadOptions::default()
        };
        let trace = trace_tools::load(&dir, &options).expect("a trace");
        assert!(all_actions(&trace) == all_actions(&expected), "{threads} threads, {memory_budget} bytes");
        assert_eq!(trace.warnings(), expected.warnings());
        assert_eq!(progress.load(Ordering::Relaxed), trace.actions());
    }
    assert!(matches!(expected.warnings(), [Warning::Communicators { lines: 7, .. }]));
    let names = fs::read_dir(&dir).expect("the directory is read").count();
    assert_eq!(names, 7, "the temporary file has no name");
}

#[test]
fn the_lowest_wrong_rank_is_reported_by_any_number_of_threads() {
    let files = many_files(6);
    for rank in [2, 5] {
        let file = files.path(&format!("rank-{rank}.txt"));
        let text = fs::read_to_string(&file).expect("a file");
        fs::write(file, text + "wrong").expect("a file");
    }
    for threads in [1, 2, 6] {
        let options = LoadOptions { threads, ..LoadOptions::default() };
        let error = trace_tools::load(&files.path(""), &options).expect_err("two files are wrong");
        let expected = Location { file: files.path("rank-2.txt"), line: 6003 };
        assert_eq!(line_error(&error).0, &expected);
    }
}

#[test]
fn a_spill_directory_that_is_absent_is_named() {
    let files = many_files(1);
    let spill_dir = Some(PathBuf::from("/absent/directory"));
    let options = LoadOptions { memory_budget: 0, spill_dir, ..LoadOptions::default() };
    match trace_tools::load(&files.path(""), &options) {
        Err(TraceError::Spill { dir, .. }) => assert_eq!(dir, Path::new("/absent/directory")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cursor_knows_its_position() {
    let files = many_files(3);
    let trace = files.load("").expect("a trace");
    let mut cursor = trace.rank(Rank::new(0)).cursor();
    assert_eq!((cursor.position(), cursor.size_hint()), (0, (4502, Some(4502))));
    for read in 1..=4502 {
        assert!(cursor.next().is_some());
        assert_eq!(cursor.position(), read);
    }
    let after = cursor.clone().next();
    assert_eq!((after, cursor.position(), cursor.next()), (None, 4502, None));
}
