//! Damaged archives are rejected or read correctly: never a crash, never a wrong result.

pub(crate) mod seal;

use std::fs;
use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use seal::seal;
use trace_mmap::{
    Action, ArchiveError, Call, ConvertOptions, Cut, Damage, Finding, Folding, Info, LoadOptions, RankTrace,
    TraceError, check, cut,
};
use trace_tools::convert;

/// Makes a trace with every kind of action, a part of which folds.
fn text() -> String {
    let mut text = String::new();
    for rank in 0..3 {
        let (next, before) = ((rank + 1) % 3, (rank + 2) % 3);
        text +=
            &format!("{rank} init\n{rank} location solver.f90 12\n{rank} bcast 7 1 0\n{rank} sleep 1e-3\n");
        text += &calls(rank, next, before);
        for index in 0..150 {
            let flops = if index % 5 == 0 {
                String::new()
            } else {
                format!("{rank} compute {} time={}\n", 1000 + index * 7 % 99, 2000 + index * 11 % 97)
            };
            // A rare computation, stored between the records of a folded program.
            let seldom =
                if index % 23 == 7 { format!("{rank} compute {index} time=9\n") } else { String::new() };
            text += &format!(
                "{rank} irecv {before} 3 64 6\n{flops}{rank} send {next} 3 64 6 time={index}\n{seldom}{rank} wait {before} {rank} 3 time=77\n"
            );
        }
        text += &format!("{rank} sendRecv 8 {next} 8 {before} 6 6\n{rank} alltoallv 6 1 2 3 6 1 2 3 6 6\n");
        text +=
            &format!("{rank} isend -666 0 1 6\n{rank} test {rank} -666 0\n{rank} waitall\n{rank} finalize\n");
    }
    text
}

/// Calls of every kind.
fn calls(rank: u32, next: u32, before: u32) -> String {
    let mut lines = vec![
        "comm_split new=7 members=2-0:-1".to_owned(),
        "comm_dup comm=7 new=8".to_owned(),
        format!("issend {next} 5 16 6 comm=7 req=1"),
        format!("irecv -555 5 16 6 comm=7 req=2 source={before}"),
        "iprobe -555 -444 done=no".to_owned(),
        "waitany req=1,2 done=2".to_owned(),
        "testsome req=1 done=-".to_owned(),
        "request_get_status req=1 done=yes".to_owned(),
        "wait req=1".to_owned(),
        "io-open /data 5 comm=7 cb_nodes=3".to_owned(),
        format!("io-set_view /data {rank} 64 0:8:16:2,40:{}", rank + 1),
        format!("io-write_at /data {} 17 comm=7", u64::from(rank) << 40),
        "io-read /data 4 comm=7".to_owned(),
        "io-close /data comm=7".to_owned(),
        format!("send_init {next} 6 8 6 req=1"),
        format!("recv_init {before} 6 8 6 req=2"),
        "bcast 7 2 6 comm=8".to_owned(),
        "ireducescatter 1 2 3 0 6 comm=7 req=3".to_owned(),
        "neighbor_alltoallv 6 6 comm=8 to=0,2 from=1 scounts=4,5 rcounts=6".to_owned(),
        "waitsome req=3 done=3".to_owned(),
        format!("sendRecv 8 {next} 8 {before} 6 6 stag=4 rtag=4"),
        format!("irecv {before} 9 8 req=3"),
        "cancel req=3 done=yes".to_owned(),
        "testany req=3 done=3".to_owned(),
        format!("unmodelled MPI_File_open file=/scratch/out%20{rank} mode=create+wronly comm=0 new=0"),
    ];
    for _ in 0..20 {
        lines.push(format!("unmodelled MPI_Put target={next} disp=0 bytes=800 win=0 time=40"));
        lines.extend(["startall req=1,2", "waitall req=1-2", "allreduce 4 0 0 comm=7"].map(str::to_owned));
    }
    lines.extend(["request_free req=1", "request_free req=2", "comm_free comm=8"].map(str::to_owned));
    lines.into_iter().map(|line| format!("{rank} {line}\n")).collect()
}

fn folding(fold: bool) -> Folding {
    if fold { Folding::Always } else { Folding::Never }
}

fn archive(dir: &Path, fold: bool) -> Vec<u8> {
    let (merged, pdt) = (dir.join("trace.txt"), dir.join("trace.pdt"));
    fs::write(&merged, text()).expect("the text is written");
    convert(&merged, &pdt, &ConvertOptions { folding: folding(fold), ..ConvertOptions::default() })
        .expect("the trace converts");
    fs::read(pdt).expect("the archive is there")
}

/// All data of a trace.
#[derive(Debug, PartialEq)]
struct AllData {
    actions: Vec<Vec<Action>>,
    tables: String,
}

/// Reads all data, or returns the error.
fn read(path: &Path) -> Result<AllData, TraceError> {
    let trace = trace_tools::load(path, &LoadOptions::default())?;
    let ranks = || (0..trace.ranks()).map(|rank| trace.rank(Rank::new(rank)));
    // A count that is wrong must not make this test run for ever.
    let limit = 10_000;
    let actions = ranks().map(|rank| rank.cursor().take(limit).collect()).collect();
    let mut tables = format!("{:?}", trace.unreceived());
    for rank in ranks() {
        tables += &format!("{:?} {:?} {:?}", rank.outgoing(), rank.incoming(), rank.pending_at_end());
        tables += &format!("{:?} {}", rank.communicators(), rank.has_timing_dependent_matching());
        let times =
            rank.measured().map(|measured| measured.take(limit).map(|(_, time)| time).collect::<Vec<_>>());
        tables += &format!("{times:?}");
        for action in rank.cursor().take(limit) {
            match action {
                Action::Collective(id) => tables += &format!("{:?}", rank.collective(id)),
                Action::SendRecv(id) => tables += &format!("{:?}", rank.send_recv(id)),
                Action::Location(id) => tables += rank.location(id),
                Action::Call(id) => tables += &call(rank, rank.call(id)),
                _ => {}
            }
        }
    }
    trace.integrity()?;
    Ok(AllData { actions, tables })
}

/// Describes a call, following what a replay follows.
fn call(rank: &RankTrace, call: &Call) -> String {
    let Call::Collective { operation, communicator, .. } = *call else { return format!("{call:?}") };
    let (operation, communicator) = (rank.collective(operation), &rank.communicators()[communicator.index()]);
    let size = communicator.group.len();
    assert!(communicator.rank < size && operation.root().is_none_or(|root| root.get() < size));
    assert!(operation.vectors().iter().all(|vector| vector.len() == size as usize));
    format!("{call:?} {operation:?}")
}

/// Changes an archive at many places, and reads it each time.
fn check_changes(fold: bool, change: impl Fn(&mut Vec<u8>, usize)) -> (usize, usize) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bytes = archive(dir.path(), fold);
    let path = dir.path().join("changed.pdt");
    fs::write(&path, &bytes).expect("the archive is written");
    let expected = read(&path).expect("the archive is whole");
    let (mut refused, mut harmless) = (0, 0);
    // Every offset of a small archive, and thousands of a large one.
    let step = (bytes.len() / 2500).max(1);
    for place in (0..bytes.len()).step_by(step) {
        let mut changed = bytes.clone();
        change(&mut changed, place);
        fs::write(&path, &changed).expect("the archive is written");
        match read(&path) {
            Err(_) => refused += 1,
            Ok(found) => {
                assert_eq!(found, expected, "byte {place}");
                harmless += 1;
            }
        }
    }
    (refused, harmless)
}

#[test]
fn flipped_bits_are_found_or_harmless() {
    for fold in [true, false] {
        for bit in [0, 7] {
            let (refused, harmless) = check_changes(fold, |bytes, place| bytes[place] ^= 1 << bit);
            // Only the padding between sections and behind the data is not under a checksum.
            assert!(refused > 2000 && harmless < 50, "fold {fold}: {refused} refused, {harmless} harmless");
        }
    }
}

#[test]
fn cut_archives_are_refused() {
    for fold in [true, false] {
        let (_, harmless) = check_changes(fold, |bytes, place| bytes.truncate(place));
        assert_eq!(harmless, 0);
    }
}

#[test]
fn errors_name_the_damage() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bytes = archive(dir.path(), true);
    let path = dir.path().join("changed.pdt");
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.clone();
        change(&mut changed);
        fs::write(&path, &changed).expect("the archive is written");
        match trace_tools::load(&path, &LoadOptions::default()) {
            Err(TraceError::Archive(error)) => error,
            other => panic!("expected an error of the archive, found {other:?}"),
        }
    };
    let found = error(&|bytes| bytes[8] = 3);
    assert!(matches!(found, ArchiveError::Version { found: 3, expected: 8, .. }), "{found}");
    let found = error(&|bytes| bytes[12..16].reverse());
    assert!(matches!(found, ArchiveError::ByteOrder { found: 0x0d0c_0b0a, .. }), "{found}");
    let found = error(&|bytes| bytes.push(0));
    assert!(matches!(found, ArchiveError::Length { .. }), "{found}");
    let found = error(&|bytes| bytes.truncate(100));
    assert!(matches!(found, ArchiveError::Length { found: 100, .. }), "{found}");
    let found = error(&|bytes| bytes[20] ^= 1);
    assert!(matches!(found, ArchiveError::Checksum { section: "header", .. }), "{found}");
    let found = error(&|bytes| bytes[4096] ^= 1);
    let page = Damage::Page { shard: 0, page: 0, offset: 4096 };
    assert!(matches!(found, ArchiveError::Data { damage, .. } if damage == page), "{found}");
    let found = error(&|bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    assert!(matches!(found, ArchiveError::Checksum { section: "table of times", .. }), "{found}");
}

#[test]
fn an_archive_that_changes_while_it_is_open_is_void() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bytes = archive(dir.path(), true);
    let path = dir.path().join("trace.pdt");
    let trace = trace_tools::load(&path, &LoadOptions::default()).expect("the archive opens");
    trace.integrity().expect("nothing happened");
    // A new file under the same name does not affect the open trace.
    fs::rename(&path, dir.path().join("moved.pdt")).expect("the archive moves");
    fs::write(&path, "something else").expect("a file is written");
    trace.integrity().expect("the open file is as it was");
    let longer = [&bytes[..], b"more"].concat();
    fs::write(dir.path().join("moved.pdt"), longer).expect("the archive is written");
    assert!(matches!(trace.integrity(), Err(ArchiveError::Changed { .. })));
}

#[test]
fn a_missing_shard_is_reported_when_it_is_needed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (merged, pdt) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
    fs::write(&merged, text()).expect("the text is written");
    convert(&merged, &pdt, &ConvertOptions { shards: 3, ..ConvertOptions::default() })
        .expect("the trace converts");
    fs::remove_file(dir.path().join("trace.pdt.2")).expect("the shard goes");
    let trace = trace_tools::load(&pdt, &LoadOptions::default()).expect("the tables are there");
    assert!(trace.rank(Rank::new(0)).cursor().count() > 500);
    trace.integrity().expect("nobody needed the last shard");
    assert_eq!(trace.rank(Rank::new(2)).cursor().count(), 0);
    let (rank, damage) = (Rank::new(2), Damage::Shard { shard: 2 });
    let found = trace.integrity();
    assert!(
        matches!(found, Err(ArchiveError::Damaged { rank: r, damage: d, .. }) if (r, d) == (rank, damage)),
        "{found:?}"
    );
}

/// Returns a number that a forger would try.
fn forged() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        Just(1 << 48),
        Just(20),
        Just(21),
        any::<u64>(),
        (0_u32..64).prop_map(|bit| 1 << bit),
        (0_u64..40, 0_u64..40).prop_map(|(low, high)| low | high << 32),
    ]
}

/// Returns whether `tests/campaign` runs.
fn is_campaign() -> bool {
    std::env::var_os("PDES_CAMPAIGN").is_some()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_campaign() { 3000 } else { 1000 }, ..ProptestConfig::default() })]

    /// A forged archive, all of whose checksums are right, opens and is read without a crash, or is refused.
    #[test]
    fn forged_archives_never_crash(
        fold in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..19, forged(), any::<bool>()), 1..4),
    ) {
        thread_local! {
            static ARCHIVES: [Vec<u8>; 2] = {
                let dir = tempfile::tempdir().expect("a temporary directory");
                [archive(dir.path(), false), archive(dir.path(), true)]
            };
        }
        let mut bytes = ARCHIVES.with(|archives| archives[usize::from(fold)].clone());
        for (place, part, number, adds) in changes {
            // The sections are small beside the data: choose one first, then a word of it.
            let at = 40 + 24 * part.min(14);
            let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes")) as usize;
            let (start, len) = match part {
                15 => (16, 40 - 16 + 360),
                16.. => (4096, word(40).saturating_sub(4096)),
                _ => (word(at), word(at + 8)),
            };
            if len < 8 || start.saturating_add(len) > bytes.len() {
                continue;
            }
            let at = start + place.index(len / 8) * 8;
            let old = u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
            let new = if adds { old.wrapping_add(number) } else { number };
            bytes[at..at + 8].copy_from_slice(&new.to_le_bytes());
        }
        seal(&mut bytes);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("forged.pdt");
        fs::write(&path, &bytes).expect("the archive is written");
        if let Ok(trace) = trace_tools::load(&path, &LoadOptions::default()) {
            let _ = read(&path);
            let _ = Info::of(&trace);
            for rank in 0..trace.ranks().min(8) {
                prop_assert!(trace.ops(Rank::new(rank)).take(3000).count() <= 3000);
            }
            let _ = check(&trace, None);
            for what in [Cut { ranks: None, iterations: Some(2) }, Cut { ranks: Some(0..1), iterations: None }] {
                let _ = cut(&trace, &dir.path().join("part.pdt"), &what, &ConvertOptions::default());
            }
        }
    }
}

/// Found by fuzzing: a record names channel 1.7e9, and sums up to there would take 68 GB.
#[test]
fn a_forged_channel_is_damage_and_not_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (text, path) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
    fs::write(&text, "0 init\n0 send 1 0 8 6\n0 unmodelled MPI_Put target=1\n1 init\n1 recv 0 0 8 6\n")
        .unwrap();
    convert(&text, &path, &ConvertOptions { folding: Folding::Never, ..ConvertOptions::default() }).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The second record of the first rank: kind 6 on channel 0.
    let record = &mut bytes[4096 + 16..4096 + 24];
    assert_eq!(record, 6_u64.to_le_bytes());
    record[4..].copy_from_slice(&1_700_000_000_u32.to_le_bytes());
    seal(&mut bytes);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let trace = trace_tools::load(file.path(), &LoadOptions::default()).unwrap();
    let info = Info::of(&trace).map(|info| info.ranks);
    assert!(matches!(info, Err(ArchiveError::Damaged { damage: Damage::Record { .. }, .. })), "{info:?}");
    let is_damage =
        |finding: &Finding| matches!(finding, Finding::Damaged { damage: Damage::Record { .. }, .. });
    assert!(check(&trace, None).findings.iter().any(is_damage));
}
