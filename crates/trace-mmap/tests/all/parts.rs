//! Traces of which a process loads only some ranks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::hostile::seal::seal;
use pdes_core::Rank;
use trace_mmap::{ArchiveError, ConvertOptions, LoadOptions, PairTraffic, Trace};
use trace_tools::convert;

const RANKS: u32 = 6;

/// A ring, whose later ranks have more to do and leave a request pending, in an archive.
fn ring(dir: &Path) -> PathBuf {
    let mut text = String::new();
    for me in 0..RANKS {
        let (next, before) = ((me + 1) % RANKS, (me + RANKS - 1) % RANKS);
        text += &format!("{me} init\n{me} irecv {before} 0 8 6\n{me} send {next} 0 8 6\n");
        text += &format!("{me} compute 5\n").repeat(me as usize);
        if me < 4 {
            text += &format!("{me} wait {before} {me} 0\n");
        }
        text += &format!("{me} finalize\n");
    }
    let (merged, archive) = (dir.join("ring.txt"), dir.join("ring.pdt"));
    fs::write(&merged, text).expect("the text is written");
    convert(&merged, &archive, &ConvertOptions::default()).expect("the trace converts");
    archive
}

fn open(path: &Path) -> Trace {
    trace_tools::open(path, &LoadOptions::default()).expect("the archive opens")
}

fn ranks(numbers: impl IntoIterator<Item = u32>) -> impl Iterator<Item = Rank> {
    numbers.into_iter().map(Rank::new)
}

#[test]
fn a_partial_trace_agrees_with_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = ring(folder.path());
    let whole = trace_tools::load(&path, &LoadOptions::default()).expect("the archive loads");
    assert_eq!(whole.loaded_ranks().collect::<Vec<_>>(), ranks(0..RANKS).collect::<Vec<_>>());
    let mut part = open(&path);
    assert_eq!((part.loaded_ranks().len(), part.ranks(), part.actions()), (0, RANKS, whole.actions()));
    let mut sum = 0;
    for numbers in [vec![4, 1], vec![0], vec![5, 3, 2]] {
        part.load_ranks(ranks(numbers.clone())).expect("the ranks are right");
        assert_eq!(part.loaded_ranks().len(), numbers.len());
        for rank in part.loaded_ranks() {
            let (part, whole) = (part.rank(rank), whole.rank(rank));
            assert_eq!((part.outgoing(), part.incoming()), (whole.outgoing(), whole.incoming()));
            assert!(part.cursor().eq(whole.cursor()), "rank {rank}");
        }
        for rank in ranks(0..RANKS) {
            assert_eq!(part.outline(rank).expect("the tables are right"), {
                let rank = whole.rank(rank);
                (rank.len(), rank.pending_at_end().len() as u64)
            });
            let actions = part.with_rank(rank, |rank| rank.cursor().count());
            assert_eq!(actions.expect("the tables are right"), whole.rank(rank).cursor().count());
        }
        assert_eq!(
            PairTraffic::all(&part).expect("sums are small"),
            PairTraffic::all(&whole).expect("sums are small")
        );
        sum += part.loaded_actions();
    }
    part.check_actions(sum).expect("all ranks were held once");
    assert!(matches!(part.check_actions(sum - 1), Err(ArchiveError::Entry { .. })));
    part.integrity().expect("nobody wrote to the archive");
}

#[test]
#[should_panic(expected = "rank 3 is not loaded")]
fn a_rank_that_is_not_loaded_is_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut part = open(&ring(folder.path()));
    part.load_ranks(ranks(0..3)).expect("the ranks are right");
    part.rank(Rank::new(3));
}

/// The table of ranks is the fifth; the third number of four bytes in a row of 112 is that of ports.
#[test]
fn a_wrong_entry_is_found_by_the_process_that_loads_its_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = ring(folder.path());
    let mut bytes = fs::read(&path).expect("the archive is there");
    let table = u64::from_le_bytes(*bytes[40 + 24 * 4..].first_chunk().expect("eight bytes"));
    bytes[table as usize + 112 * 4 + 8] = 200;
    seal(&mut bytes);
    fs::write(&path, bytes).expect("the archive is written");
    let mut part = open(&path);
    part.load_ranks(ranks(0..3)).expect("these ranks are right");
    assert!(matches!(
        part.load_ranks(ranks(3..RANKS)),
        Err(ArchiveError::Entry { section: "table of ranks", entry: 4, field: "number of ports", .. })
    ));
    assert!(trace_tools::load(&path, &LoadOptions::default()).is_err());
}
