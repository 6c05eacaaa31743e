//! An analysis of another crate: bytes that each rank sends to each other, and the time that ranks wait for each other.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mpi_model::{
    ActionSpan, Analysis, Carrier, Network, ObservedRank, Observer, RankProcess, Replay, Sent, Wait,
};
use pdes_core::{Ending, Engine, Process, Rank, StateVisitor, save_state};
use trace_mmap::Trace;

use crate::runs::{Simple, program, reenact};

/// Bytes and waiting time [ns] of each pair of ranks.
type Pairs = BTreeMap<(u32, u32), (u64, u64)>;

/// Sums of all ranks that have ended.
#[derive(Default)]
struct PeerSums(Mutex<Pairs>);

/// Sums of one rank, with the end of its last action [ns].
struct RankSums<'a> {
    all: &'a PeerSums,
    me: Rank,
    pairs: Pairs,
    end: u64,
}

fn ns(picos: u64) -> u64 {
    picos / 1000
}

impl Analysis for PeerSums {
    type Observer<'a> = RankSums<'a>;

    fn observer<'a>(&'a self, rank: &ObservedRank<'a>) -> RankSums<'a> {
        RankSums { all: self, me: rank.rank, pairs: Pairs::new(), end: 0 }
    }

    fn needs_wait_states(&self) -> bool {
        true
    }
}

impl Observer for RankSums<'_> {
    /// The pairs with this rank, and the end of its last action.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { all: _, me: _, pairs, end } = self;
        visitor.saved(pairs);
        visitor.saved(end);
    }

    fn message_sent(&mut self, sent: &Sent, _: &mut dyn Carrier) {
        self.pairs.entry((self.me.get(), sent.to.get())).or_default().0 += sent.message.bytes.get();
    }

    fn waited(&mut self, wait: &Wait, _: &mut dyn Network) {
        if let Some(peer) = wait.peer.filter(|peer| peer.ready > wait.begin) {
            let waiting = &mut self.pairs.entry((self.me.get(), peer.rank.get())).or_default().1;
            *waiting += ns((peer.ready - wait.begin).as_picos());
        }
    }

    fn action_ended(&mut self, action: &ActionSpan) {
        assert_eq!(ns(action.begin.as_picos()), self.end, "actions follow each other");
        self.end = ns(action.end.as_picos());
    }

    fn rank_ended(&mut self, last: &ActionSpan) {
        self.action_ended(last);
        self.all.0.lock().unwrap().append(&mut self.pairs);
    }
}

/// A rendezvous, a late sender, a non-blocking barrier, and messages in both directions.
const PROGRAMS: [&str; 3] = [
    "compute 3000; send 1 0 99984; ibarrier req=0; recv 2 0 84; waitall",
    "recv 0 0 99984; compute 1000; send 2 0 984; ibarrier req=0; waitall",
    "recv 1 0 984; compute 70000; send 0 0 84; ibarrier req=0; waitall",
];

fn trace(programs: &[&str]) -> Trace {
    trace_tools::from_text(&program(programs)).unwrap_or_else(|error| panic!("{error}"))
}

fn point_to_point() -> Vec<String> {
    PROGRAMS.iter().map(|lines| lines.replace("ibarrier req=0; ", "").replace("; waitall", "")).collect()
}

#[test]
fn an_analysis_of_another_crate_sees_bytes_and_waits_of_all_peers() {
    let programs = point_to_point();
    let trace = trace(&programs.iter().map(String::as_str).collect::<Vec<_>>());
    let parameters = reenact();
    for threads in [1, 3] {
        let replay = Replay::with_only(&trace, &Simple, &parameters, PeerSums::default());
        let run = Engine::new(threads).run(replay.processes().unwrap());
        assert!(matches!(run.ending, Ending::Completed));
        let found = replay.analysis().0.lock().unwrap().clone();
        // Rank 1 sends at 3000 + 101,000 + 1000, rank 2 goes on at 2000 later, computes and sends.
        let expected = [
            ((0, 1), (99_984, 0)),
            ((0, 2), (0, 73_000)),
            ((1, 0), (0, 3000)),
            ((1, 2), (984, 0)),
            ((2, 0), (84, 0)),
            ((2, 1), (0, 105_000)),
        ];
        assert_eq!(found, Pairs::from(expected));
    }
}

/// Non-blocking operations, too: the program waits for the last peer of the barrier, which waits for rank 2.
#[test]
fn analyses_are_composed_and_change_nothing() {
    let trace = trace(&PROGRAMS);
    let parameters = reenact();
    let alone = Replay::with_only(&trace, &Simple, &parameters, ());
    let alone = Engine::new(1).run(alone.processes().unwrap());
    let ranks = (0..trace.ranks()).map(Rank::new);
    let all = Replay::new(&trace, &Simple, &parameters)
        .with_critical_paths(ranks)
        .with_analysis(PeerSums::default())
        .with_analysis(());
    let run = Engine::new(2).run(all.processes().unwrap());
    assert!(matches!(run.ending, Ending::Completed));
    for (bare, observed) in alone.processes.iter().zip(&run.processes) {
        assert_eq!(bare.clock(), observed.clock());
        assert!(bare.statistics().breakdown().is_none() && observed.statistics().breakdown().is_some());
        assert_eq!(observed.observer().0.1.end, ns(observed.clock().as_picos()));
    }
    let pairs = all.analysis().0.1.0.lock().unwrap();
    assert!(pairs[&(1, 0)].1 > 3000, "rank 1 waits at the barrier, too: {pairs:?}");
}

#[test]
fn observers_are_saved_and_restored_with_their_ranks() {
    let programs = point_to_point();
    let trace = trace(&programs.iter().map(String::as_str).collect::<Vec<_>>());
    let parameters = reenact();
    let replay = || Replay::with_only(&trace, &Simple, &parameters, PeerSums::default());
    let first = replay();
    let run = Engine::new(1).run(first.processes().unwrap());
    // The sums of a rank that has ended lie with those of the others; the end of its last action does not.
    let mut processes = run.processes;
    let states: Vec<_> = processes.iter_mut().map(|process| save_state(process).unwrap()).collect();
    let again = replay();
    for (rank, state) in (0..).map(Rank::new).zip(states) {
        let restored: RankProcess<'_, _, _> = again.restore_process(rank, &state).unwrap();
        assert_eq!(restored.observer().end, ns(restored.clock().as_picos()));
        assert!(restored.observer().end > 0);
    }
}
