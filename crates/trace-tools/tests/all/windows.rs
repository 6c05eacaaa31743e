//! Calls on windows: their text, and what follows from the calls before them.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Action, Call, ConvertOptions, LoadOptions, Slot, Trace};
use trace_tools::{convert, write_text};

const TEXT: &str = "0 init\n0 win_create comm=0 new=1\n0 put 1 64 comm=1\n0 put 1 8 comm=1\n0 get 1 8 comm=1\n0 put 0 8 comm=1\n\
    0 win_fence comm=1\n0 win_post to=1 comm=1\n0 win_start to=1 comm=1\n0 put 1 8 comm=1\n0 win_complete comm=1\n\
    0 win_wait comm=1\n0 win_post to=1 comm=1\n0 win_iwait comm=1 req=0\n0 wait req=0\n0 win_lock 1 comm=1\n0 put 1 8 comm=1\n0 rget 1 8 comm=1 req=4\n0 get 1 8 comm=1\n\
    0 win_flush_local 1 comm=1\n0 wait req=4\n0 rput 1 8 comm=1 req=4\n0 wait req=4\n0 win_unlock 1 comm=1\n0 win_lock_all comm=1\n\
    0 raccumulate 1 8 comm=1 req=0\n0 wait req=0\n0 win_flush_all comm=1\n0 win_unlock_all comm=1\n\
    0 win_lock_exclusive 1 comm=1\n0 compare_and_swap 1 8 comm=1\n0 fetch_and_op 1 8 comm=1 done=no\n0 get_accumulate 1 8 comm=1\n\
    0 win_unlock 1 comm=1\n0 win_free comm=1\n";

/// A call, the puts that it ends, and the requests that it completes.
type Ended = (&'static str, Vec<(u32, Bytes)>, Vec<Slot>);

fn load(text: &str) -> Trace {
    let other = "1 init\n1 win_create new=1\n1 win_fence comm=1\n1 win_free comm=1\n";
    trace_tools::from_text(&format!("{text}{other}")).expect("a valid trace")
}

/// Returns the puts that the calls of rank 0 end, and the requests that they complete, where there are any.
fn ended(trace: &Trace) -> Vec<Ended> {
    let rank = trace.rank(Rank::new(0));
    let ended = |action| match action {
        Action::Call(id) => match rank.call(id) {
            call @ Call::Window { completed, puts, .. } if !(completed.is_empty() && puts.is_empty()) => {
                Some((call.name(), puts.to_vec(), completed.to_vec()))
            }
            _ => None,
        },
        _ => None,
    };
    rank.cursor().filter_map(ended).collect()
}

#[test]
fn synchronisations_end_the_accesses_before_them() {
    let bytes = Bytes::new;
    let slots = |numbers: &[u32]| numbers.iter().map(|&number| Slot::new(number)).collect::<Vec<_>>();
    let expected = [
        // The put into its own memory is a copy.
        ("win_fence", vec![(1, bytes(64)), (1, bytes(8))], slots(&[0])),
        ("win_complete", vec![(1, bytes(8))], vec![]),
        // The put at 0 is complete at the target not before the lock is given back, as the later one at 1.
        ("win_flush_local", vec![], slots(&[2])),
        ("win_unlock", vec![], slots(&[0, 2])),
        ("win_unlock", vec![], slots(&[0])),
    ];
    let dir = tempfile::tempdir().expect("a directory");
    let (input, output) = (dir.path().join("text"), dir.path().join("archive.pdt"));
    let trace = load(TEXT);
    std::fs::write(
        &input,
        format!("{TEXT}1 init\n1 win_create new=1\n1 win_fence comm=1\n1 win_free comm=1\n"),
    )
    .expect("written");
    convert(&input, &output, &ConvertOptions::default()).expect("converted");
    for trace in [trace, trace_tools::load(&output, &LoadOptions::default()).expect("an archive")] {
        assert_eq!(ended(&trace), expected);
        assert!(trace_mmap::check(&trace, None).findings.is_empty());
        let mut written = Vec::new();
        write_text(&trace, Rank::new(0), &mut written, None).expect("memory takes all");
        // Requests have the numbers of their slots.
        assert_eq!(String::from_utf8_lossy(&written), TEXT.replace("req=4", "req=1"));
    }
}

#[test]
fn calls_without_an_epoch_are_errors() {
    let error = |lines: &str| {
        let text: String =
            format!("win_create new=1\n{lines}").lines().map(|line| format!("0 {line}\n")).collect();
        trace_tools::from_text(&format!("0 init\n{text}")).expect_err("an error")
    };
    for (lines, begin) in [
        ("win_complete comm=1", "win_start"),
        ("win_wait comm=1", "win_post"),
        ("win_unlock 0 comm=1", "win_lock"),
        ("win_lock 0 comm=1\nwin_unlock_all comm=1", "win_lock_all"),
    ] {
        let found = error(lines).to_string();
        let expected = format!("window 1 has no epoch that this call ends: {begin} has to be called before");
        assert!(found.contains(&expected), "{lines}: {found}");
    }
    for (line, expected) in [
        ("put 0 8", "is no window"),
        ("comm_free comm=1", "is a window: end it by win_free"),
        ("put 1 8 comm=1", "expected a rank of the window"),
    ] {
        let found = error(line).to_string();
        assert!(found.contains(expected), "{line}: {found}");
    }
}
