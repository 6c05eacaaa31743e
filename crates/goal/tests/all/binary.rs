//! LogGOPSim's binary format: both layouts, and damaged or hostile files.

use goal::{BinaryError, LogGops, read_binary, read_text, simulate};
use proptest::prelude::*;

use crate::random::{Limits, encode, schedule};

const LIMITS: Limits = Limits { cpus: 3, nics: 3, bytes: 100_000, open: true };

fn small() -> goal::Schedule {
    read_text(b"num_ranks 2\nrank 0 {\na: calc 7\nb: send 8b to 1 tag 3\nb requires a\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n")
        .expect("the text is good")
}

proptest! {
    #[test]
    fn both_layouts_round_trip(schedule in schedule(LIMITS), wide in any::<bool>()) {
        let bytes = encode(&schedule, if wide { 104 } else { 39 });
        let read = read_binary(&bytes).expect("the file is good");
        // The binary format has dependencies on ends before those on starts, so the order between the two differs from
        // that of the text.
        for rank in 0..6 {
            let sorted = |schedule: &goal::Schedule| {
                let mut edges: Vec<_> = schedule.dependencies(rank).collect();
                edges.sort_by_key(|&(early, _, after)| (early, after == goal::After::Start));
                edges
            };
            prop_assert!(schedule.operations(rank).eq(read.operations(rank)));
            prop_assert_eq!(sorted(&schedule), sorted(&read));
        }
    }

    #[test]
    fn a_file_that_is_cut_short_is_an_error(schedule in schedule(LIMITS), part in 0.0..1.0_f64) {
        let bytes = encode(&schedule, 39);
        let len = (bytes.len() as f64 * part) as usize;
        prop_assert!(read_binary(&bytes[..len.min(bytes.len() - 1)]).is_err());
    }

    /// A damaged file is an error or another schedule, which may or may not simulate, but never causes a panic.
    #[test]
    fn damage_never_panics(
        schedule in schedule(LIMITS), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&schedule, 39);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(schedule) = read_binary(&bytes) {
            let _ = simulate(&schedule, &LogGops::default(), 2);
        }
    }

    #[test]
    fn noise_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..400), good_start in any::<bool>()) {
        if good_start && bytes.len() >= 12 {
            bytes[..8].copy_from_slice(&4223_u64.to_le_bytes());
            bytes[9..12].fill(0);
        }
        let _ = read_binary(&bytes);
    }
}

#[test]
fn a_counted_down_file_is_read() {
    let schedule = small();
    let mut bytes = encode(&schedule, 39);
    bytes[..8].copy_from_slice(&2342_u64.to_le_bytes());
    // Rank 0 starts at byte 8 + 6 + 32, with one root; the second of its operations waits for one.
    let count = 46 + 8 + 4 + 39;
    assert_eq!(bytes[count], 1);
    bytes[count] = 0;
    assert_eq!(read_binary(&bytes).expect("the list has all that counts"), schedule);
    bytes[..8].copy_from_slice(&4223_u64.to_le_bytes());
    let error = read_binary(&bytes).expect_err("the count is wrong");
    let expected = BinaryError::Field {
        rank: 0,
        operation: 1,
        field: "number of dependencies",
        found: 0,
        expected: "1, its number of occurrences in the dependents".to_owned(),
    };
    assert_eq!(error, expected);
}

/// Rank 0 has four operations of 104 bytes, of which the second sends to rank 65. Read as operations of 39 bytes, they
/// name 65 dependents, and as many numbers follow them.
#[test]
fn known_kinds_decide_an_ambiguous_layout() {
    let sends = "calc 1\nsend 8b to 65\ncalc 1\ncalc 1\n";
    let ranks = (0..66).map(|rank| format!("rank {rank} {{\n{}}}\n", if rank == 0 { sends } else { "" }));
    let text = format!("num_ranks 66\n{}", ranks.collect::<String>());
    let schedule = read_text(text.as_bytes()).expect("the text is good");
    for layout in [39, 104] {
        let read = read_binary(&encode(&schedule, layout)).expect("the file is good");
        assert_eq!(read, schedule);
    }
}

#[test]
fn errors_name_rank_and_operation() {
    let bytes = encode(&small(), 39);
    let error = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        read_binary(&bytes).expect_err("the file is damaged").to_string()
    };
    assert_eq!(
        error(0, 1),
        "found the number 4097 at its start, expected 4223 (or 2342) of a binary GOAL file"
    );
    let kind = 46 + 8 + 4 + 4;
    assert_eq!(
        error(kind, 9),
        "rank 0, operation 0: found type 9, expected 1 send, 2 receive or 3 calculation"
    );
    assert_eq!(error(kind + 39 + 1, 7), "rank 0, operation 1: found peer 7, expected a rank from 0 to 1");
    assert_eq!(
        error(kind + 17, 1),
        "rank 0, operation 0: found processor 1, expected at most 0, as the header says"
    );
    assert_eq!(
        error(46, 1),
        "rank 0: its 94 bytes hold 1 operations in neither layout (39 or 104 bytes per operation)"
    );
}
