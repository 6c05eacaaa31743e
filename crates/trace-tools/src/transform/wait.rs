//! `wait`: ranks wait in place of testing again and again.

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Direction, Op, Peer, Request, Slot};

use super::keys::Keys;
use super::selector::Tracker;
use super::state::{Stateful, describe};
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "wait",
    subject: Subject::Polls,
    keys: &[],
    semantics: "Failed tests and probes disappear, and the one that succeeds becomes a wait with the same requests and outcome: `test` a `wait`, `testall` a \
                `waitall`, `testany` a `waitany`, `testsome` a `waitsome`, `iprobe` a `probe`; a `request_get_status` that succeeds stays. Computations between failed tests \
                stay, before the wait. Tests without a recorded outcome disappear if the program waits for the request later, or names it again, else the last \
                one becomes the wait; a request without a number must be the only pending one of its name.",
    read,
};

#[derive(Debug)]
struct Wait {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Wait { selector }))
}

/// Follows the requests of a rank, and its tests without an outcome.
#[derive(Default)]
struct UndecidedTests {
    /// Pending requests without numbers.
    pending: FxHashMap<u32, Request>,
    /// The last test of each request for which the rank has not waited yet.
    last: FxHashMap<u32, u64>,
    /// Number of tests.
    number: u64,
}

impl Stateful for UndecidedTests {
    fn state(&mut self, state: &mut State<'_>) {
        if self.number > 0 {
            // Which test becomes a wait is known by its number.
            state.unknown();
        }
        self.pending.state(state);
    }
}

impl Stateful for Request {
    fn state(&mut self, state: &mut State<'_>) {
        describe(self, state);
    }
}

impl Wait {
    /// Returns the numbers of the tests without an outcome, among those of a rank that are selected, that become waits.
    fn last_tests(&self, program: &Program<'_>, rank: Rank) -> Result<Vec<u64>, Refusal> {
        let mut values = (Tracker::new(&self.selector, rank), UndecidedTests::default());
        program.walk(rank, &mut values, |(tracker, UndecidedTests { pending, last, number }), step| {
            tracker.follow(&step.op);
            if let (Some(slot), Some(request)) = (step.posted, request(&step.op)) {
                pending.insert(slot.get(), request);
            }
            let slot = step.awaited.map(Slot::get);
            match &step.op {
                Op::Wait(_) | Op::Test(_) => {
                    slot.into_iter().for_each(|slot| {
                        last.remove(&slot);
                    });
                    if let (Op::Wait(_), Some(slot)) = (&step.op, slot) {
                        pending.remove(&slot);
                    }
                }
                Op::WaitAll => {
                    pending.clear();
                    last.clear();
                }
                Op::Call(CallOp::Free { request }) => {
                    last.remove(&request.get());
                }
                Op::Call(call) => {
                    // A request that the program names again had not completed.
                    let named = call.completion().map_or(&[][..], |completion| completion.requests);
                    named.iter().for_each(|name| {
                        last.remove(&name.get());
                    });
                }
                _ => {}
            }
            if tracker.is_here() && is_undecided(&step.op) && self.selector.accepts_call(&step.op) {
                if let Op::Test(name) = &step.op
                    && pending
                        .iter()
                        .any(|(other, request)| Some(*other) != slot && is_alike(request, name, rank))
                {
                    let reason = "a test of one of several pending requests with the same source, destination and tag; record the program with trace acquire, or add req=";
                    return Err(Refusal::at(rank, step.action, reason));
                }
                last.extend(slot.map(|slot| (slot, *number)));
                *number += 1;
            }
            Ok(())
        })?;
        let mut numbers: Vec<u64> = values.1.last.into_values().collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Returns whether an operation is a test without a recorded outcome.
fn is_undecided(op: &Op) -> bool {
    matches!(op, Op::Test(_) | Op::Call(CallOp::Test { done: None, .. }))
}

/// Returns the name of the request without a number that an operation posts.
fn request(op: &Op) -> Option<Request> {
    let (direction, peer, tag) = match op {
        Op::Isend { peer, tag, .. } => (Direction::Send, *peer, Some(*tag)),
        Op::Irecv { peer, tag, .. } => (Direction::Receive, *peer, *tag),
        Op::Call(CallOp::Isend { to, request: None, .. }) => (Direction::Send, to.peer, Some(to.tag)),
        Op::Call(CallOp::Irecv { from, request: None, .. }) => match from.peer {
            Peer::Rank(peer) => (Direction::Receive, Some(peer), from.tag),
            Peer::ProcNull => (Direction::Receive, None, from.tag),
            Peer::Any { .. } => (Direction::ReceiveFromAny, None, from.tag),
        },
        _ => return None,
    };
    Some(Request { direction, peer, tag })
}

/// Returns whether two requests of a rank have one name: of messages to itself those of both directions have.
fn is_alike(one: &Request, other: &Request, me: Rank) -> bool {
    let from_any = Direction::ReceiveFromAny;
    one.tag == other.tag
        && match (one.direction == from_any, other.direction == from_any) {
            (true, true) => true,
            (false, false) => {
                one.peer == other.peer && (one.direction == other.direction || one.peer == Some(me))
            }
            _ => false,
        }
}

impl Transform for Wait {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let last = program.ranks().map(|rank| self.last_tests(program, rank)).collect::<Result<_, _>>()?;
        Ok(Box::new(Waits { selector: self.selector.clone(), last }))
    }
}

#[derive(Debug)]
struct Waits {
    selector: Selector,
    /// The numbers of undecided tests of each rank that become waits.
    last: Vec<Vec<u64>>,
}

impl Plan for Waits {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(WithoutPolls {
            selector: &self.selector,
            tracker: Tracker::new(&self.selector, rank),
            last: &self.last[rank.index()],
            number: 0,
        })
    }
}

/// Waits where a test succeeded.
///
/// The program does not wait forever if it did not before: a replay waits at a test that succeeded in the recorded run.
#[derive(Debug)]
struct WithoutPolls<'p> {
    selector: &'p Selector,
    tracker: Tracker<'p>,
    last: &'p [u64],
    /// Number of undecided tests so far.
    number: u64,
}

impl WithoutPolls<'_> {
    /// Returns the operation in place of a test or a probe, if any.
    fn replace(&mut self, op: Op) -> Option<Op> {
        let mut becomes_wait = || {
            self.number += 1;
            self.last.binary_search(&(self.number - 1)).is_ok()
        };
        let call = match op {
            Op::Test(request) => return becomes_wait().then_some(Op::Wait(request)),
            Op::Call(CallOp::Test { request, done: None }) => {
                becomes_wait().then_some(CallOp::Wait { request })
            }
            Op::Call(CallOp::Test { request, done: Some(done) }) => done.then_some(CallOp::Wait { request }),
            Op::Call(CallOp::Testall { requests, done }) => done.then_some(CallOp::Waitall { requests }),
            Op::Call(CallOp::Testany { requests, done }) => {
                done.is_some().then_some(CallOp::Waitany { requests, done })
            }
            Op::Call(CallOp::Testsome { requests, done }) => {
                (!done.is_empty()).then_some(CallOp::Waitsome { requests, done })
            }
            Op::Call(CallOp::Iprobe { from, found }) => found.then_some(CallOp::Probe { from }),
            Op::Call(call @ CallOp::GetStatus { done, .. }) => done.then_some(call),
            other => return Some(other),
        };
        call.map(Op::Call)
    }
}

impl Rewrite for WithoutPolls<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        if !self.tracker.is_here() || !self.selector.accepts_call(&step.op) {
            out.push(step);
        } else if let Some(op) = self.replace(step.op.clone()) {
            let nanos = step.nanos.filter(|_| op == step.op);
            out.push(Step { op, nanos, ..step });
        }
    }

    fn state(&mut self, state: &mut State<'_>) {
        self.tracker.state(state);
        if !self.last.is_empty() {
            state.unknown();
        }
        state.counter(&mut self.number, u64::MAX);
    }
}
