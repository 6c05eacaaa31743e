//! `split`: messages travel in parts.

use pdes_core::{Bytes, Rank};
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, RequestName, Slot};

use super::key::{Key, KeyValues};
use super::keys::{Keys, whole};
use super::messages::{
    MessageTracker, SelectedMessages, Sides, as_irecv, as_isend, buffer_mut, sent_bytes_mut,
};
use super::requests::{NewRequests, PerRequest, wait_for};
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "split",
    subject: Subject::Messages,
    keys: &[Key::required(
        "parts",
        KeyValues::Whole(1, MAX_PARTS as u64),
        "Number of messages that one becomes.",
    )],
    semantics: "Each message becomes `parts` messages of about equal sizes, posted one after the other, and so do their receives. Combined sends and receives \
                become `irecv`, `isend` and a `waitall`. After what completes a request, a `waitall` completes the other parts. Receives from any source \
                cannot be selected.",
    read,
};

/// Largest number of parts.
const MAX_PARTS: u32 = 1 << 16;

#[derive(Debug)]
struct Split {
    selector: Selector,
    parts: u32,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let parts = keys.require("parts", |value| u32::try_from(whole(value)?).ok())?;
    Ok(Box::new(Split { selector, parts }))
}

impl Transform for Split {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::new(&self.selector, program)?;
        messages.check_sources(program)?;
        Ok(Box::new(Splitting { messages, parts: self.parts }))
    }
}

#[derive(Debug)]
struct Splitting {
    messages: SelectedMessages,
    parts: u32,
}

impl Plan for Splitting {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(InParts {
            messages: self.messages.follow(rank),
            parts: self.parts,
            requests: program.new_requests(),
            others: PerRequest::default(),
        })
    }
}

/// Posts messages in parts.
///
/// Messages match as before: the parts of a message, which fit the same receives, follow each other, and so do those of a receive, so
/// that each message as a whole takes the first receive that it fits. Nor does the program wait forever if it did not before: nothing
/// comes between parts on either side.
#[derive(Debug)]
struct InParts<'p> {
    messages: MessageTracker<'p>,
    parts: u32,
    requests: NewRequests,
    /// Requests of the parts after the first one, which has the request of the program, by the slot of that one.
    others: PerRequest<Vec<RequestName>>,
}

impl InParts<'_> {
    /// Returns the size of a part; those of the first parts are the largest. No buffer is smaller than its message, nor its parts
    /// than those of the message.
    fn part(&self, bytes: Bytes, part: u32) -> Bytes {
        let (bytes, parts, part) = (bytes.get(), u64::from(self.parts), u64::from(part));
        Bytes::new(bytes / parts + u64::from(part < bytes % parts))
    }

    /// Returns a part of an operation on one side.
    fn part_of(&self, mut op: Op, part: u32) -> Op {
        for bytes in [sent_bytes_mut, buffer_mut] {
            if let Some(bytes) = bytes(&mut op) {
                *bytes = self.part(*bytes, part);
            }
        }
        op
    }

    /// Appends an operation on one side in parts; returns the requests of all parts but the first.
    fn post(&mut self, step: &Step, out: &mut Vec<Step>) -> Vec<RequestName> {
        let mut names = Vec::new();
        for part in 0..self.parts {
            let (mut op, mut posted) = (self.part_of(step.op.clone(), part), step.posted);
            if part > 0 && posted.is_some() {
                let name = self.requests.next();
                (op, posted) =
                    (as_isend(&op, name).or(as_irecv(&op, name)).unwrap_or(op), Some(Slot::new(name.get())));
                names.push(name);
            }
            out.push(Step { op, posted, nanos: None, ..step.clone() });
        }
        names
    }

    /// Appends a combined operation as ones that do not block, and a wait for all.
    fn post_both(&mut self, step: &Step, sides: Sides, out: &mut Vec<Step>) {
        let mut requests = Vec::new();
        for (is_receive, is_split) in [(true, sides.receive), (false, sides.send)] {
            let name = self.requests.next();
            let half = if is_receive { as_irecv(&step.op, name) } else { as_isend(&step.op, name) };
            let Some(op) = half else { continue };
            let posted = Some(Slot::new(name.get()));
            let step = Step { op, posted, nanos: None, ..step.clone() };
            requests.push(name);
            match is_split {
                true => requests.extend(self.post(&step, out)),
                false => out.push(step),
            }
        }
        out.extend(wait_for(step, requests));
    }
}

impl Rewrite for InParts<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        let sides = self.messages.follow(&step.op);
        let wait = self.others.wait_after(&step);
        if sides == Sides::default() || self.parts == 1 {
            out.push(step.clone());
        } else if let Op::SendRecv { .. } | Op::Call(CallOp::SendRecv { .. }) = step.op {
            self.post_both(&step, sides, out);
        } else {
            let names = self.post(&step, out);
            self.others.add(&step, names);
        }
        out.extend(wait);
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.messages, &mut self.others).state(state);
    }
}
