//! Breakdown of the time: who waits for whom, and for how long.

use mpi_model::{ActionKind, Breakdown, Parameters, Region, Selection, Selector, WaitState};
use pdes_core::SimDuration;

use crate::runs::{breakdowns, reenact};

/// Returns the waiting time of a rank in actions of a kind [ns]: for other ranks, by state, and for data.
fn waits(breakdown: &Breakdown, kind: ActionKind) -> (Vec<(WaitState, f64)>, f64) {
    let share = breakdown.total(kind);
    let ns = |time: SimDuration| time.as_picos() as f64 / 1e3;
    let waiting = WaitState::ALL.into_iter().zip(share.waiting.map(ns)).filter(|&(_, time)| time > 0.0);
    (waiting.collect(), ns(share.transfer))
}

fn analytic() -> Parameters {
    Parameters { collectives: Selection::new(Selector::Analytic), ..reenact() }
}

#[test]
fn a_receive_waits_until_the_message_is_sent() {
    let ranks = breakdowns(&["compute 5000; send 1 0 984", "recv 0 0 984"], &reenact());
    assert_eq!(waits(&ranks[1], ActionKind::Recv), (vec![(WaitState::LateSender, 5000.0)], 2000.0));
    assert_eq!(waits(&ranks[0], ActionKind::Send), (vec![], 0.0), "a detached send does not wait");
    let ranks = breakdowns(&["send 1 0 984", "compute 5000; recv 0 0 984"], &reenact());
    assert_eq!(waits(&ranks[1], ActionKind::Recv), (vec![], 2000.0), "the data flow when it is posted");
}

#[test]
fn a_rendezvous_send_waits_until_its_receive_is_posted() {
    let ranks = breakdowns(&["send 1 0 99984", "compute 3000; recv 0 0 99984"], &reenact());
    let late = vec![(WaitState::LateReceiver, 3000.0)];
    assert_eq!(waits(&ranks[0], ActionKind::Send), (late, 101_000.0));
    assert_eq!(waits(&ranks[1], ActionKind::Recv), (vec![], 101_000.0));
}

/// Waiting before the call does not count as waiting of the call.
#[test]
fn only_what_is_left_is_waited_for() {
    let receiver = "irecv 0 0 984; compute 3000; wait 0 1 0";
    let ranks = breakdowns(&["compute 5000; send 1 0 984", receiver], &reenact());
    assert_eq!(waits(&ranks[1], ActionKind::Wait), (vec![(WaitState::LateSender, 2000.0)], 2000.0));
    let receiver = "irecv 0 0 984; compute 6000; wait 0 1 0";
    let ranks = breakdowns(&["compute 5000; send 1 0 984", receiver], &reenact());
    assert_eq!(waits(&ranks[1], ActionKind::Wait), (vec![], 1000.0), "until 7000, the last 1000 of 2000");
}

/// The message of rank 0 arrives at 1000 + 3000, that of rank 1, which was sent last, at 2500 + 1100.
#[test]
fn of_several_peers_the_last_one_counts() {
    let programs =
        ["compute 1000; send 2 0 1984", "compute 2500; send 2 0 84", "irecv 0 0 1984; irecv 1 0 84; waitall"];
    let overhead = Parameters { receive: "0:100ns:0".parse().unwrap(), ..reenact() };
    for parameters in [reenact(), overhead] {
        let ranks = breakdowns(&programs, &parameters);
        let is_free = parameters.receive.is_zero();
        // With an overhead, the 100 ns of the first message hide a part of the transfer of the second one.
        let transfer = if is_free { 1500.0 } else { 1400.0 };
        let late = vec![(WaitState::LateSender, 2500.0)];
        assert_eq!(waits(&ranks[2], ActionKind::Waitall), (late, transfer));
    }
}

#[test]
fn all_wait_for_the_last_one_at_a_barrier() {
    let programs = ["compute 1000; barrier", "compute 2000; barrier", "compute 5000; barrier"];
    let ranks = breakdowns(&programs, &analytic());
    let cost = 2.0 * 1016.0;
    for (rank, waited) in [(0, 4000.0), (1, 3000.0)] {
        let expected = (vec![(WaitState::WaitAtBarrier, waited)], cost);
        assert_eq!(waits(&ranks[rank], ActionKind::Barrier), expected);
    }
    assert_eq!(waits(&ranks[2], ActionKind::Barrier), (vec![], cost));
}

/// Rank 0 waits in an expanded operation for the message of rank 1.
#[test]
fn what_a_collective_waits_for_is_its_own_state() {
    let parameters = reenact();
    for (call, kind, state) in [
        ("allreduce 1 0 6", ActionKind::Allreduce, WaitState::WaitAtNxN),
        ("barrier", ActionKind::Barrier, WaitState::WaitAtBarrier),
        ("bcast 100 1 6", ActionKind::Bcast, WaitState::LateBroadcast),
        ("reduce 100 0 0 6", ActionKind::Reduce, WaitState::EarlyReduce),
        ("gather 100 100 0 6 6", ActionKind::Gather, WaitState::EarlyReduce),
    ] {
        let ranks = breakdowns(&[call, &format!("compute 5000; {call}")], &parameters);
        let (waiting, _) = waits(&ranks[0], kind);
        assert_eq!(waiting, [(state, 5000.0)], "{call}");
    }
    let scan = "scan 100 0 6";
    let ranks = breakdowns(&[&format!("compute 5000; {scan}"), scan], &parameters);
    assert_eq!(waits(&ranks[1], ActionKind::Scan).0, [(WaitState::EarlyScan, 5000.0)]);
}

#[test]
fn the_data_of_a_broadcast_in_closed_form_is_transfer() {
    let ranks = breakdowns(&["compute 5000; bcast 984 0 6", "bcast 984 0 6"], &analytic());
    assert_eq!(waits(&ranks[1], ActionKind::Bcast), (vec![(WaitState::LateBroadcast, 5000.0)], 2000.0));
}

/// Rank 0 waits from 1000 on for rank 1, which comes at 9000; what the operation waited before does not count.
#[test]
fn an_operation_beside_the_program_is_waited_for() {
    let programs = ["ibarrier req=1; compute 1000; wait req=1", "compute 9000; ibarrier req=1; wait req=1"];
    let ranks = breakdowns(&programs, &analytic());
    let late = vec![(WaitState::WaitAtBarrier, 8000.0)];
    assert_eq!(waits(&ranks[0], ActionKind::Wait), (late, 1016.0));
    assert_eq!(waits(&ranks[1], ActionKind::Wait), (vec![], 1016.0));
    assert_eq!(waits(&ranks[0], ActionKind::NonBlocking), (vec![], 0.0));
}

#[test]
fn a_probe_waits_for_the_message() {
    let ranks = breakdowns(&["compute 5000; send 1 0 984", "probe 0 0; recv 0 0 984"], &reenact());
    assert_eq!(waits(&ranks[1], ActionKind::Probe), (vec![(WaitState::LateSender, 5000.0)], 0.0));
    assert_eq!(waits(&ranks[1], ActionKind::Recv), (vec![], 2000.0));
}

#[test]
fn call_sites_are_regions() {
    let receiver = "compute 100; location a.c 7; recv 0 0 984; compute 10; location b.c 9; compute 20; location a.c 7; compute 30";
    let ranks = breakdowns(&["compute 5000; send 1 0 984", receiver], &reenact());
    let of = |site: Option<u32>| {
        let mut times = [0, 0];
        let is_there = |region: &&Region| region.site().map(|site| site.get()) == site;
        for (kind, share) in ranks[1].regions().filter(is_there).flat_map(Region::shares) {
            match kind {
                ActionKind::Compute => times[0] += share.time.as_picos() / 1000,
                ActionKind::Recv => times[1] += share.time.as_picos() / 1000,
                _ => {}
            }
        }
        times
    };
    assert_eq!([of(None), of(Some(0)), of(Some(1))], [[100, 0], [40, 6900], [20, 0]]);
    assert_eq!(ranks[0].regions().count(), 1);
}
