//! `overlap`: messages are on their way during computations.

mod late;
mod window;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use toml::Value;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, RequestName, Slot};

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::messages::{MessageTracker, SelectedMessages, Sides, as_irecv, as_isend, without};
use super::requests::NewRequests;
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};
use late::LateWaits;
use window::Window;

/// Largest number of operations that are held back in a state that is compared with others.
const MAX_COMPARED: usize = 512;

pub(super) const KIND: TransformKind = TransformKind {
    key: "overlap",
    subject: Subject::Messages,
    keys: &[
        Key::optional(
            "early",
            KeyValues::Reach,
            "Computations before which receives are posted, 1 by default.",
        ),
        Key::optional("late", KeyValues::Reach, "Computations that waits pass, 0 by default."),
        Key::optional(
            "of",
            KeyValues::Choice(&["receives", "sends", "both"]),
            "The side that changes; both by default.",
        ),
        Key::optional(
            "independent",
            KeyValues::Flag,
            "True if data received are not sent on before the wait.",
        ),
    ],
    semantics: "Receives are posted before up to `early` preceding computations (by default 1), waits end behind up to `late` following ones (by default 0); \
                `\"place\"` means all, back to the last `location` or up to the next one. A blocking receive becomes an `irecv`, and a `wait` in its place; \
                with `late`, a blocking send becomes an `isend` and a `wait`. A receive passes computations, sends, receives and collective operations, but \
                not a receive of the same source and tag, a message of the rank to itself, a probe, a wait or a test. A wait passes computations only; a new \
                one also `irecv`, and that for a send also `isend`. A wait for other requests, too, stays. With `independent = true` data received are not \
                sent on before the wait, which then also passes `isend`. `of = \"receives\"` or `\"sends\"` is one side; `\"both\"` is the default.",
    read,
};

#[derive(Clone, Copy, Debug)]
struct Distance {
    /// Number of computations before which a receive is posted.
    early: Reach,
    /// Number of computations behind which a wait ends.
    late: Reach,
    of: Sides,
    /// True if waits for receives may pass sends.
    is_independent: bool,
}

/// Number of computations that an operation may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) computations: u32,
    /// True if it passes no `location`.
    within_place: bool,
}

impl Reach {
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value.as_str() {
            Some("place") => Some(Self { computations: u32::MAX, within_place: true }),
            Some(_) => None,
            None => Some(Self::of(u32::try_from(value.as_integer()?).ok()?)),
        }
    }

    pub(super) const fn of(computations: u32) -> Self {
        Self { computations, within_place: false }
    }

    /// Returns whether an operation ends the reach.
    pub(super) fn ends_at(self, op: &Op) -> bool {
        self.within_place && matches!(op, Op::Location { .. })
    }
}

#[derive(Debug)]
struct Overlap {
    selector: Selector,
    distance: Distance,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let early = keys.get("early", Reach::read)?.unwrap_or(Reach::of(1));
    let late = keys.get("late", Reach::read)?.unwrap_or(Reach::of(0));
    let independent = keys.get("independent", Value::as_bool)?;
    let both = Sides { send: true, receive: true };
    let of = keys.get("of", |value| match value.as_str()? {
        "receives" => Some(Sides { send: false, ..both }),
        "sends" => Some(Sides { receive: false, ..both }),
        "both" => Some(both),
        _ => None,
    })?;
    let of = of.unwrap_or(both);
    if late.computations == 0 && (early.computations == 0 || !of.receive) {
        return Err(
            "overlap: nothing would move, expected early (of receives) or late of 1 or more".to_owned()
        );
    }
    Ok(Box::new(Overlap {
        selector,
        distance: Distance { early, late, of, is_independent: independent.unwrap_or_default() },
    }))
}

impl Transform for Overlap {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::new(&self.selector, program)?;
        Ok(Box::new(Overlapped { messages, distance: self.distance }))
    }
}

#[derive(Debug)]
struct Overlapped {
    messages: SelectedMessages,
    distance: Distance,
}

impl Plan for Overlapped {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Movement {
            messages: self.messages.follow(rank),
            distance: self.distance,
            requests: program.new_requests(),
            pending: FxHashMap::default(),
            window: Window::new(rank),
            waits: LateWaits::default(),
        })
    }
}

/// Moves receives forwards and waits backwards.
///
/// Messages match as before. Of the messages from a source on a communicator, each takes the first receive in the order of posting
/// that it fits and that no earlier message has taken. Receives that no message fits both may change places, as these are first for
/// different messages; others do not. The message of a receive from any source depends on time, as before. Nor does the program wait forever if it did not before: an operation waits for no more
/// messages of other ranks than before, since receives and sends are posted no later with respect to waits.
#[derive(Debug)]
struct Movement<'p> {
    messages: MessageTracker<'p>,
    distance: Distance,
    requests: NewRequests,
    /// Requests of the program that may be pending, by slot: true if their messages are selected.
    pending: FxHashMap<u32, bool>,
    /// The last operations, from the first computation on before which a receive may be posted.
    window: Window,
    /// Waits that are late.
    waits: LateWaits,
}

/// An operation, and whether its time has come.
#[derive(Debug)]
struct Held {
    step: Step,
    role: Role,
}

/// The part of an operation in the movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An operation that stays.
    Other,
    /// A wait of the program for selected messages only.
    Wait,
    /// A new wait for a receive.
    NewReceive,
    /// A new wait for a send.
    NewSend,
}

impl Role {
    const ALL: [Self; 4] = [Self::Other, Self::Wait, Self::NewReceive, Self::NewSend];
}

impl Stateful for Held {
    fn state(&mut self, state: &mut State<'_>) {
        state.word(self.role as u64);
        self.step.state(state);
    }
}

impl Movement<'_> {
    /// Appends an operation to the window, and lets go those before which no receive can be posted any more.
    fn hold(&mut self, step: Step, role: Role, out: &mut Vec<Step>) {
        let is_end = role != Role::NewReceive
            && role != Role::NewSend
            && (!can_be_passed(&step.op) || self.distance.early.ends_at(&step.op));
        self.window.push(Held { step, role });
        // Receives are posted before computations only.
        while is_end
            || self.window.computations() > u64::from(self.distance.early.computations)
            || !self.window.begins_with_computation()
        {
            let Some(first) = self.window.pop() else { return };
            self.release(first, out);
        }
    }

    /// Appends an operation, after the waits that it ends, or makes it late itself.
    fn release(&mut self, held: Held, out: &mut Vec<Step>) {
        let Distance { late, is_independent, .. } = self.distance;
        if held.role != Role::Other && late.computations > 0 {
            self.waits.push(held, late.computations);
            return;
        }
        let op = &held.step.op;
        let is_end = late.ends_at(op);
        out.extend(self.waits.end_before(|role| !is_end && role.passes(op, is_independent)));
        let passes = is_computation(&held.step.op);
        out.push(held.step);
        if passes {
            out.extend(self.waits.pass_computation());
        }
    }

    /// Takes note of the requests that an operation posts and completes; returns whether it waits for selected messages only.
    fn is_wait(&mut self, step: &Step, is_selected: bool) -> bool {
        self.pending.extend(step.posted.map(|slot| (slot.get(), is_selected)));
        let mut complete = |names: &mut dyn Iterator<Item = u32>| {
            names
                .map(|name| self.pending.remove(&name) == Some(true))
                .fold(None, |all, is_selected| Some(all.unwrap_or(true) && is_selected))
        };
        let all = match &step.op {
            Op::Wait(_) => complete(&mut step.awaited.iter().map(|slot| slot.get())),
            Op::WaitAll => {
                let all = self.pending.values().all(|is_selected| *is_selected);
                let is_any = !self.pending.is_empty();
                self.pending.clear();
                is_any.then_some(all)
            }
            Op::Call(CallOp::Start { requests }) => {
                self.pending.extend(requests.iter().map(|name| (name.get(), false)));
                None
            }
            Op::Call(call) => {
                let done = call.completion().map_or(&[][..], |completion| completion.done());
                let all = complete(&mut done.iter().map(|name| name.get()));
                all.filter(|_| matches!(call, CallOp::Wait { .. } | CallOp::Waitall { .. }))
            }
            _ => None,
        };
        all == Some(true)
    }
}

/// Returns whether a receive may be posted before an operation rather than after it, unless both take the same messages.
fn can_be_passed(op: &Op) -> bool {
    is_local(op)
        || matches!(
            op,
            Op::Send { .. }
                | Op::Isend { .. }
                | Op::Recv { .. }
                | Op::Irecv { .. }
                | Op::SendRecv { .. }
                | Op::Collective(_)
                | Op::Call(
                    CallOp::Send { .. }
                        | CallOp::Isend { .. }
                        | CallOp::Recv { .. }
                        | CallOp::Irecv { .. }
                        | CallOp::SendRecv { .. }
                        | CallOp::Collective { .. }
                        | CallOp::NeighborAlltoall { .. }
                )
        )
}

pub(super) fn is_computation(op: &Op) -> bool {
    matches!(op, Op::Compute { .. })
}

pub(super) fn is_local(op: &Op) -> bool {
    matches!(op, Op::Compute { .. } | Op::Sleep { .. } | Op::Location { .. })
}

impl Role {
    /// Returns whether a wait can move behind an operation.
    fn passes(self, op: &Op, is_independent: bool) -> bool {
        let is_send = matches!(op, Op::Isend { .. } | Op::Call(CallOp::Isend { .. }));
        let is_receive = matches!(op, Op::Irecv { .. } | Op::Call(CallOp::Irecv { .. }));
        is_local(op)
            || (is_receive && matches!(self, Self::NewReceive | Self::NewSend))
            || (is_send && (self == Self::NewSend || (self == Self::NewReceive && is_independent)))
    }
}

impl Rewrite for Movement<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        let Sides { send, receive } = self.messages.follow(&step.op);
        let Distance { late, of, .. } = self.distance;
        let selected = Sides { send: send && of.send, receive: receive && of.receive };
        let is_wait = self.is_wait(&step, selected.send || selected.receive);
        let new = |op: Op, posted: Option<RequestName>| Step {
            op,
            posted: posted.map(|name| Slot::new(name.get())),
            awaited: None,
            nanos: None,
            ..step.clone()
        };
        let (mut waits, mut removed) = (Vec::new(), Sides::default());
        let is_blocking = step.posted.is_none();
        if selected.send && late.computations > 0 && is_blocking {
            let name = self.requests.next();
            waits.extend(as_isend(&step.op, name).map(|op| (new(op, Some(name)), Role::Other)));
            waits.push((new(Op::Call(CallOp::Wait { request: name }), None), Role::NewSend));
            removed.send = true;
        }
        if selected.receive && !is_blocking {
            return self.window.post(step, self.distance.early);
        }
        if selected.receive {
            let name = self.requests.next();
            let posted = as_irecv(&step.op, name).map(|op| new(op, Some(name)));
            posted.into_iter().for_each(|posted| self.window.post(posted, self.distance.early));
            waits.push((new(Op::Call(CallOp::Wait { request: name }), None), Role::NewReceive));
            removed.receive = true;
        }
        if removed == Sides::default() {
            let role = if is_wait { Role::Wait } else { Role::Other };
            return self.hold(step, role, out);
        }
        if let Some(op) = without(step.op.clone(), removed) {
            (step.op, step.nanos) = (op, None);
            self.hold(step, Role::Other, out);
        }
        waits.into_iter().for_each(|(step, role)| self.hold(step, role, out));
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        while let Some(first) = self.window.pop() {
            self.release(first, out);
        }
        out.extend(self.waits.end_before(|_| false));
    }

    fn state(&mut self, state: &mut State<'_>) {
        let Self { messages, pending, window, waits, .. } = self;
        // Without limits both grow in each iteration.
        if window.len() + waits.waits.len() > MAX_COMPARED {
            return state.unknown();
        }
        (messages, pending).state(state);
        window.state(state);
        waits.state(state);
    }
}
