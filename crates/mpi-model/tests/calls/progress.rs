//! Progress inside calls: data move from the first instant on at which the receiver is in a call.

use std::sync::Mutex;

use mpi_model::{
    ActionKind, ActionSpan, Analysis, Match, ObservedRank, Observer, Parameters, Progress, Replay, RequestId,
    WaitState,
};
use pdes_core::{Ending, Engine, Rank, SimTime};
use proptest::prelude::*;

use crate::runs::{Simple, breakdowns, ends_with, program, reenact};

/// Transfer time of a message of 99984 bytes [ns].
const DATA: f64 = 101_000.0;

fn in_calls() -> Parameters {
    Parameters { progress: Progress::Calls, ..reenact() }
}

fn ends(ranks: &[&str]) -> Vec<f64> {
    ends_with(ranks, &in_calls()).0
}

#[test]
fn a_receiver_that_computes_delays_the_data_until_its_next_call() {
    let sender = "compute 1000; send 1 0 99984";
    assert_eq!(ends(&[sender, "irecv 0 0 99984; compute 5000; wait 0 1 0"]), [5000.0 + DATA; 2]);
    // A call that has nothing to do with the message; the start of a send is none.
    let receiver =
        "irecv 0 0 99984; compute 1000; isend 2 1 84; compute 1000; send 2 0 84; compute 9000; wait 0 1 0";
    assert_eq!(ends(&[sender, receiver, "recv 1 0 84; recv 1 1 84"])[..2], [2000.0 + DATA; 2]);
    let later = "compute 2001; send 1 0 99984";
    assert_eq!(ends(&[later, receiver, "recv 1 0 84; recv 1 1 84"])[..2], [11_000.0 + DATA; 2]);
    let ready = ends_with(&[later, receiver, "recv 1 0 84"], &reenact()).0;
    assert_eq!(ready[0], 2001.0 + DATA, "a thread of the library needs no call");
}

#[test]
fn data_move_in_a_call_that_waits_for_another_message() {
    let receiver = "irecv 0 0 99984; recv 2 0 984; compute 200000; wait 0 1 0";
    let other = "compute 8000; send 1 0 984";
    assert_eq!(ends(&["compute 3000; send 1 0 99984", receiver, other])[0], 3000.0 + DATA);
    // The call has ended at 8000 + 2000.
    assert_eq!(ends(&["compute 10001; send 1 0 99984", receiver, other])[0], 210_000.0 + DATA);
}

/// Each send waits for the other side, which waits in its own send.
#[test]
fn sends_across_each_other() {
    let programs = [
        "irecv 1 0 99984; compute 1000; send 1 0 99984; wait 1 0 0",
        "irecv 0 0 99984; compute 4000; send 0 0 99984; wait 0 1 0",
    ];
    assert_eq!(ends(&programs), [4000.0 + DATA; 2]);
    let one_behind_the_other =
        ["irecv 1 0 99984; recv 1 1 99984", "compute 7; send 0 0 99984; send 0 1 99984"];
    assert_eq!(ends(&one_behind_the_other), [7.0 + 2.0 * DATA; 2]);
}

#[test]
fn the_sender_waits_for_the_receiver() {
    let programs = ["compute 1000; send 1 0 99984", "irecv 0 0 99984; compute 5000; wait 0 1 0"];
    let ranks = breakdowns(&programs, &in_calls());
    let share = ranks[0].total(ActionKind::Send);
    let late = share.waiting[WaitState::LateReceiver as usize];
    assert_eq!((late.as_picos(), share.transfer.as_picos()), (4_000_000, 101_000_000));
}

/// Calls and computations of all ranks, and the messages that they received.
#[derive(Default)]
struct Log(Mutex<Vec<(Rank, RankLog)>>);

#[derive(Clone, Default)]
struct RankLog {
    spans: Vec<ActionSpan>,
    /// Last message of each request: its send, the post of its receive, and its arrival.
    received: Vec<(RequestId, SimTime, SimTime, Option<SimTime>)>,
}

struct RankObserver<'a>(&'a Log, Rank, RankLog);

impl Analysis for Log {
    type Observer<'a> = RankObserver<'a>;

    fn observer<'a>(&'a self, rank: &ObservedRank<'a>) -> RankObserver<'a> {
        RankObserver(self, rank.rank, RankLog::default())
    }
}

impl Observer for RankObserver<'_> {
    fn message_matched(&mut self, matched: &Match<'_>, _: &mut dyn mpi_model::Carrier) {
        self.2.received.push((matched.request, matched.message.posted, matched.posted, None));
    }

    fn data_arrived(&mut self, request: RequestId, at: SimTime) {
        let message = self.2.received.iter_mut().rev().find(|message| message.0 == request);
        message.expect("it has been matched").3 = Some(at);
    }

    fn action_ended(&mut self, action: &ActionSpan) {
        self.2.spans.push(*action);
    }

    fn rank_ended(&mut self, last: &ActionSpan) {
        self.action_ended(last);
        self.0.0.lock().unwrap().push((self.1, self.2.clone()));
    }
}

/// A step of both sides of a pair of ranks: what the first does, what the second does.
fn step() -> impl Strategy<Value = [String; 2]> {
    let other = |me: usize| 1 - me;
    let both = move |line: &dyn Fn(usize) -> String| [line(0), line(1)];
    prop_oneof![
        [0_u32..9, 0..9].prop_map(|amounts| amounts.map(|amount| format!("compute {}", 1000 * amount))),
        (0_usize..2, 0_u32..9).prop_map(move |(sender, compute)| {
            let mut lines = [String::new(), String::new()];
            lines[sender] = format!("compute {}; send {} 1 99984", 900 * compute, other(sender));
            lines[other(sender)] = format!(
                "irecv {sender} 1 99984; compute 3000; isend {sender} 2 84; compute 2000; wait {sender} {} 1",
                other(sender)
            );
            lines[sender] += &format!("; recv {} 2 84", other(sender));
            lines
        }),
        (0_u32..9).prop_map(move |compute| both(&|me| format!(
            "irecv {0} 3 99984; compute {1}; send {0} 3 99984; compute 500; wait {0} {me} 3",
            other(me),
            compute * 700 * me as u32
        ))),
        (0_u32..9).prop_map(move |compute| both(&|me| format!(
            "irecv {0} 4 99984; isend {0} 4 99984; compute {1}; allreduce 8 0; compute {1}; waitall",
            other(me),
            compute * 20_000 * (1 + me as u32)
        ))),
        Just(["barrier".to_owned(), "barrier".to_owned()]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the schedule, data of messages of the program move at the first instant in a call of the receiver.
    #[test]
    fn data_move_at_the_first_instant_in_a_call(steps in prop::collection::vec(step(), 1..12)) {
        let sides = [0, 1].map(|side| steps.iter().map(|step| step[side].as_str()).collect::<Vec<_>>().join("; "));
        let programs = [&*sides[0], &*sides[1]];
        ends(&programs);
        let (trace, log, parameters) = (trace_tools::from_text(&program(&programs)).unwrap(), Log::default(), in_calls());
        let replay = Replay::with_only(&trace, &Simple, &parameters, log);
        let run = Engine::new(1).run(replay.processes().unwrap());
        prop_assert!(matches!(run.ending, Ending::Completed));
        for (rank, RankLog { spans, received }) in replay.analysis().0.lock().unwrap().iter() {
            use ActionKind::{Compute, Irecv, Isend, Marker, Sleep};
            let is_call = |span: &&ActionSpan| !matches!(span.kind, Compute | Sleep | Irecv | Isend | Marker);
            let calls: Vec<_> = spans.iter().filter(is_call).collect();
            for &(request, sent, posted, arrived) in received {
                // A receive finds a message that was sent before.
                let found = || calls.iter().find(|call| call.end >= sent).map(|call| call.begin.max(sent));
                let begin = if sent > posted { found().expect("the last call ends with the rank") } else { posted };
                let bytes = (arrived.unwrap() - begin).as_picos() / 1000 - 1000;
                prop_assert!([16, 24, 100, 100_000].contains(&bytes), "rank {rank} {request:?}: {bytes} B since {begin}");
            }
        }
    }
}
