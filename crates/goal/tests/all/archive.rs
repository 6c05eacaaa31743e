//! Schedule archives: round trips, and detection of damage.

use std::fs;

use goal::{ArchiveError, FileProblem, Schedule, is_schedule_file, read_text, write_archive, write_text};
use proptest::prelude::*;

use crate::random::{Limits, schedule};

const LIMITS: Limits = Limits { cpus: 3, nics: 3, bytes: 100_000, open: true };

fn problem(bytes: &[u8]) -> FileProblem {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("damaged.pdt");
    fs::write(&path, bytes).expect("the file is written");
    Schedule::load(&path, 2).expect_err("the file is damaged").problem
}

/// Returns the bytes of a schedule's archive.
fn archive(schedule: &Schedule) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("schedule.pdt");
    let length = write_archive(schedule, &path).expect("the file is written");
    assert!(is_schedule_file(&path));
    let bytes = fs::read(&path).expect("the file is there");
    assert_eq!(bytes.len() as u64, length);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_and_archive_round_trip(schedule in schedule(LIMITS)) {
        let mut text = Vec::new();
        write_text(&schedule, &mut text).expect("a vector takes all");
        let read = read_text(&text).expect("the text is good");
        for rank in 0..6 {
            // Text has no interface for computations.
            prop_assert!(schedule.operations(rank).eq(read.operations(rank)));
            prop_assert!(schedule.dependencies(rank).eq(read.dependencies(rank)));
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("schedule.pdt");
        write_archive(&schedule, &path).expect("the file is written");
        prop_assert_eq!(Schedule::load(&path, 2).expect("the archive is good"), schedule);
    }

    #[test]
    fn every_damaged_byte_is_found(schedule in schedule(LIMITS), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = archive(&schedule);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let _ = problem(&bytes);
    }

    #[test]
    fn every_cut_is_found(schedule in schedule(LIMITS), at in any::<prop::sample::Index>()) {
        let bytes = archive(&schedule);
        let _ = problem(&bytes[..at.index(bytes.len())]);
    }
}

/// Updates the checksums as the writer does, so that only the checks of the tables can find the damage.
fn seal(bytes: &mut [u8]) {
    let data = xxhash_rust::xxh3::xxh3_64(&bytes[72..]);
    bytes[56..64].copy_from_slice(&data.to_le_bytes());
    let header = xxhash_rust::xxh3::xxh3_64(&bytes[..64]);
    bytes[64..72].copy_from_slice(&header.to_le_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A file with valid checksums can contain anything: it is refused, or simulates or not, but never causes a panic.
    #[test]
    fn a_hostile_file_never_panics(
        schedule in schedule(LIMITS), at in any::<prop::sample::Index>(), value in any::<u8>(),
    ) {
        let mut bytes = archive(&schedule);
        let at = 16 + at.index(bytes.len() - 16);
        bytes[at] = value;
        seal(&mut bytes);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("hostile.pdt");
        fs::write(&path, &bytes).expect("the file is written");
        // The result does not depend on the number of threads.
        let found = [1, 2, 5].map(|threads| match Schedule::load(&path, threads) {
            Ok(schedule) => {
                let outcome = goal::simulate(&schedule, &goal::LogGops::default(), threads);
                (format!("{:?}", schedule.extent()), Some(outcome))
            }
            Err(error) => (error.problem.to_string(), None),
        });
        prop_assert_eq!(&found[0], &found[1]);
        prop_assert_eq!(&found[0], &found[2]);
    }
}

#[test]
fn errors_name_the_damage() {
    let schedule = read_text(b"num_ranks 1\nrank 0 {\n calc 5\n}\n").expect("the text is good");
    let good = archive(&schedule);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        problem(&bytes)
    };
    assert!(matches!(with(8, 2), FileProblem::Archive(ArchiveError::Version { found: 2, expected: 1 })));
    assert!(matches!(with(40, 9), FileProblem::Archive(ArchiveError::Header)));
    assert!(matches!(with(good.len() - 1, 9), FileProblem::Archive(ArchiveError::Data)));
    let (found, expected) = (good.len() as u64 - 1, good.len() as u64);
    let FileProblem::Archive(error) = problem(&good[..good.len() - 1]) else { panic!("an archive") };
    assert_eq!(error, ArchiveError::Length { found, expected });
    // Without the magic it would be text.
    assert!(matches!(with(0, b'x'), FileProblem::Text(_)));
}
