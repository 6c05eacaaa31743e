//! Critical paths to the ends of ranks: along which ranks and calls they lead.
//!
//! Messages take a microsecond and a nanosecond per byte, the 16 bytes of the envelope included.

use mpi_model::{ActionKind, CriticalPath, Parameters, PathParts, Selection, Selector};
use pdes_core::{Bytes, SimDuration};

use crate::runs::{critical_paths, reenact};

/// Returns the parts of a path [ns]: computation, library, latency, bandwidth.
fn parts(path: &CriticalPath) -> [f64; 4] {
    let PathParts { compute, library, latency, bandwidth, .. } = path.parts();
    [compute, library, latency, bandwidth].map(|time| time.as_picos() as f64 / 1e3)
}

/// Returns the times of kinds of actions [ns].
fn calls(path: &CriticalPath) -> Vec<(ActionKind, f64)> {
    path.calls().map(|(kind, time)| (kind, time.as_picos() as f64 / 1e3)).collect()
}

fn overheads() -> Parameters {
    Parameters {
        send: "0:200ns:0".parse().unwrap(),
        isend: "0:300ns:0".parse().unwrap(),
        receive: "0:100ns:0".parse().unwrap(),
        ..reenact()
    }
}

/// Six messages of 1100 ns, each after the one before it. Both sides of the first one are ready at once: its receiver waits for
/// no other rank.
#[test]
fn of_a_ping_pong_all_messages_are_on_the_path() {
    let ping = "send 1 0 84; recv 1 0 84;".repeat(3);
    let pong = "recv 0 0 84; send 0 0 84;".repeat(3);
    let paths = critical_paths(&[&ping, &pong], &reenact());
    assert_eq!(paths[0].hops(), 5);
    assert_eq!(parts(&paths[0]), [0.0, 0.0, 6000.0, 600.0]);
    assert_eq!(calls(&paths[0]), [(ActionKind::Recv, 6600.0)]);
    assert_eq!((paths[1].hops(), parts(&paths[1])), (4, [0.0, 0.0, 5000.0, 500.0]));
    let paths = critical_paths(&[&ping, &pong], &overheads());
    assert_eq!(paths[0].hops(), 6);
    assert_eq!(parts(&paths[0]), [0.0, 6.0 * 300.0, 6000.0, 600.0]);
    let expected = [(ActionKind::Send, 1200.0), (ActionKind::Recv, 6600.0 + 600.0)];
    assert_eq!(calls(&paths[0]), expected);
}

/// Ranks compute one after the other, the first one three times: what the others do at the same time is not on the path.
#[test]
fn a_pipeline_is_filled_and_emptied() {
    let first = "compute 1000; send 1 0 84;".repeat(3);
    let middle = "recv 0 0 84; compute 700; send 2 0 84;".repeat(3);
    let last = "recv 1 0 84; compute 700;".repeat(3);
    let paths = critical_paths(&[&first, &middle, &last], &reenact());
    assert_eq!(paths[2].hops(), 2);
    // A receive that is posted late lets its message begin: 1100 ns after each post of the middle rank, which needs 1800 ns
    // for an item, more than the first.
    assert_eq!(paths[1].end().as_picos(), (1000 + 3 * 1800) * 1000);
    assert_eq!(parts(&paths[1]), [1000.0 + 3.0 * 700.0, 0.0, 3000.0, 300.0]);
    assert_eq!(parts(&paths[2]), [1000.0 + 4.0 * 700.0, 0.0, 4000.0, 400.0]);
}

#[test]
fn one_slow_rank_is_all_of_the_path() {
    let parameters = Parameters { collectives: Selection::new(Selector::Analytic), ..reenact() };
    let (fast, slow) = ("compute 1000; barrier;".repeat(4), "compute 5000; barrier;".repeat(4));
    for parameters in [reenact(), parameters] {
        let paths = critical_paths(&[&fast, &fast, &slow, &fast], &parameters);
        let last = paths.iter().max_by_key(|path| path.end()).unwrap();
        assert_eq!(parts(last)[0], 20_000.0);
        let segments = last.segments();
        let on_slow = segments.iter().filter(|part| part.rank.get() == 2).map(|part| part.to - part.from);
        assert!(on_slow.sum::<SimDuration>().as_picos() > 19_000_000, "{segments:?}");
        let barriers: f64 = last.end().as_picos() as f64 / 1e3 - 20_000.0;
        assert_eq!(calls(last)[1], (ActionKind::Barrier, barriers));
    }
}

/// The data flow from the post of the receive on, whatever its rank does meanwhile.
#[test]
fn a_late_post_leads_to_both_sides() {
    let paths = critical_paths(
        &[
            "isend 1 0 99984; compute 500; wait 0 1 0",
            "compute 3000; irecv 0 0 99984; compute 7000; wait 0 1 0",
        ],
        &reenact(),
    );
    for path in &paths {
        assert_eq!(path.end().as_picos(), (3000 + 101_000) * 1000);
        assert_eq!(parts(path), [3000.0, 0.0, 1000.0, 100_000.0]);
    }
    assert_eq!((paths[0].hops(), paths[1].hops()), (1, 0));
    // What is computed meanwhile counts where it takes longer.
    let paths = critical_paths(
        &["isend 1 0 99984; compute 200000; wait 0 1 0", "compute 3000; irecv 0 0 99984; wait 0 1 0"],
        &reenact(),
    );
    assert_eq!((parts(&paths[0]), paths[0].hops()), ([200_000.0, 0.0, 0.0, 0.0], 0));
}

/// The message of rank 1 is complete last, though that of rank 0 takes longer.
#[test]
fn of_several_requests_the_last_one_leads_on() {
    let programs =
        ["compute 1000; send 2 0 1984", "compute 2500; send 2 0 84", "irecv 0 0 1984; irecv 1 0 84; waitall"];
    let paths = critical_paths(&programs, &reenact());
    assert_eq!(parts(&paths[2]), [1000.0, 0.0, 1000.0, 2000.0]);
    let programs =
        ["compute 1000; send 2 0 984", "compute 2500; send 2 0 84", "irecv 0 0 1984; irecv 1 0 84; waitall"];
    let paths = critical_paths(&programs, &reenact());
    assert_eq!(parts(&paths[2]), [2500.0, 0.0, 1000.0, 100.0]);
    // What is complete first is paid for first, but not on the path to the last.
    let paths = critical_paths(&programs, &overheads());
    assert_eq!(parts(&paths[2]), [2500.0, 300.0, 1000.0, 100.0]);
}

/// Two messages are complete at 2300 ns, after one that has been waited for, too.
#[test]
fn of_requests_that_are_complete_at_once_the_first_leads_on() {
    let last = "irecv 0 0 84; irecv 1 0 84; irecv 2 0 984; waitall";
    let programs = ["send 3 0 84", "compute 1000; send 3 0 84", "compute 100; send 3 0 984", last];
    let paths = critical_paths(&programs, &overheads());
    assert_eq!(parts(&paths[3]), [1000.0, 200.0 + 2.0 * 100.0, 1000.0, 100.0]);
}

/// Three messages of one port, each later than its receive: 2100 ns, 3100 ns and 8100 ns.
#[test]
fn receives_of_one_port_follow_their_own_messages() {
    let first = "compute 1000; send 1 0 84; compute 1000; send 1 0 84; compute 5000; send 1 0 84";
    let second = "irecv 0 0 84 req=1; irecv 0 0 84 req=2; wait req=1; compute 100; wait req=2; ";
    let paths = critical_paths(&[first, second], &reenact());
    assert_eq!((parts(&paths[1]), paths[1].hops()), ([2000.0, 0.0, 1000.0, 100.0], 1));
    let paths = critical_paths(&[first, &format!("{second} recv 0 0 84")], &reenact());
    assert_eq!((parts(&paths[1]), paths[1].hops()), ([7000.0, 0.0, 1000.0, 100.0], 1));
}

/// The second message is received first, at 4100 ns, and the first one then; the third one is waited for.
#[test]
fn receives_that_ask_for_tags_follow_messages_in_another_order() {
    let first = "compute 1000; send 1 5 84; compute 2000; send 1 6 84";
    let second = "recv 0 6 84; recv 0 -444 84";
    let paths = critical_paths(&[first, second], &reenact());
    assert_eq!((parts(&paths[1]), paths[1].hops()), ([3000.0, 0.0, 2000.0, 200.0], 1));
    let programs = [&format!("{first}; compute 7000; send 1 5 84"), &format!("{second}; recv 0 5 84")];
    let paths = critical_paths(&programs.map(String::as_str), &reenact());
    assert_eq!((parts(&paths[1]), paths[1].hops()), ([10_000.0, 0.0, 1000.0, 100.0], 1));
}

/// Nothing is waited for but the last message: the others are there already.
#[test]
fn eager_messages_that_are_there_lead_nowhere() {
    let parameters = Parameters { eager_below: Bytes::new(1000), ..reenact() };
    let first = "send 1 0 84; compute 3000; send 1 0 84; compute 6000; send 1 0 84";
    let second = "compute 5000; recv 0 0 84; irecv 0 0 84 req=1; wait req=1; ";
    let paths = critical_paths(&[first, second], &parameters);
    assert_eq!((parts(&paths[1]), paths[1].hops()), ([5000.0, 0.0, 0.0, 0.0], 0));
    let paths = critical_paths(&[first, &format!("{second} recv 0 0 84")], &parameters);
    assert_eq!((parts(&paths[1]), paths[1].hops()), ([9000.0, 0.0, 1000.0, 100.0], 1));
}

#[test]
fn a_probe_waits_for_the_send() {
    let programs = ["compute 5000; send 1 0 984", "probe 0 0; compute 100; recv 0 0 984"];
    let paths = critical_paths(&programs, &reenact());
    assert_eq!(calls(&paths[1]), [(ActionKind::Compute, 5100.0), (ActionKind::Recv, 2000.0)]);
    assert_eq!(paths[1].hops(), 1);
}

/// A non-blocking operation has a path of its own, which the program continues where it has to wait.
#[test]
fn operations_beside_the_program_have_paths_of_their_own() {
    let analytic = Parameters { collectives: Selection::new(Selector::Analytic), ..reenact() };
    for parameters in [reenact(), analytic] {
        let programs = [
            "compute 9000; ibcast 84 0 6 req=1; wait req=1",
            "ibcast 84 0 6 req=1; compute 1000; wait req=1",
        ];
        let paths = critical_paths(&programs, &parameters);
        assert_eq!(parts(&paths[1])[0], 9000.0, "{:?}", paths[1]);
        assert_eq!(paths[1].hops(), 1);
        assert_eq!(calls(&paths[1])[1].1, 1100.0);
    }
}
