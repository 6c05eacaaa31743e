//! `resize`: messages have another size.

use pdes_core::{Bytes, Rank};
use trace_mmap::folded::State;

use super::key::{Key, KeyValues};
use super::keys::{Keys, number};
use super::messages::{
    MessageTracker, PersistentRequests, PersistentTracker, SelectedMessages, buffer_mut, sent_bytes_mut,
};
use super::state::Stateful;
use super::{
    FoldedForm, Plan, Program, Refusal, Rewrite, Selector, SizeChange, Step, Subject, Transform,
    TransformKind,
};

pub(super) const KIND: TransformKind = TransformKind {
    key: "resize",
    subject: Subject::Messages,
    keys: &[Key::required("factor", KeyValues::Amount(f64::MAX), "Factor by which sizes are multiplied.")],
    semantics: "The size of messages, and of the buffers of their receives, is multiplied by `factor` and rounded to whole bytes; of persistent requests where \
                these are made.",
    read,
};

#[derive(Debug)]
struct Resize {
    selector: Selector,
    factor: f64,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let factor = keys.require("factor", number)?;
    Ok(Box::new(Resize { selector, factor }))
}

impl Transform for Resize {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn folded(&self) -> Option<FoldedForm<'_>> {
        Some(FoldedForm::Sizes(self))
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::with_persistent(&self.selector, program)?;
        let persistent = messages.persistent(program)?;
        Ok(Box::new(Resized { messages, persistent, factor: self.factor }))
    }
}

impl SizeChange for Resize {
    fn size(&self, bytes: Bytes) -> Option<Bytes> {
        Some(resized(bytes, self.factor))
    }
}

fn resized(bytes: Bytes, factor: f64) -> Bytes {
    Bytes::new((bytes.get() as f64 * factor).round() as u64)
}

#[derive(Debug)]
struct Resized {
    messages: SelectedMessages,
    persistent: PersistentRequests,
    factor: f64,
}

impl Plan for Resized {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(OtherSizes {
            messages: self.messages.follow(rank),
            persistent: self.persistent.follow(rank),
            factor: self.factor,
        })
    }
}

#[derive(Debug)]
struct OtherSizes<'p> {
    messages: MessageTracker<'p>,
    persistent: PersistentTracker<'p>,
    factor: f64,
}

impl OtherSizes<'_> {
    /// Returns whether the size changes.
    fn resize(&self, bytes: &mut Bytes) -> bool {
        let resized = resized(*bytes, self.factor);
        std::mem::replace(bytes, resized) != resized
    }
}

impl Rewrite for OtherSizes<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        let sides = self.messages.follow(&step.op);
        let is_made = self.persistent.follow(&step.op).is_some();
        let sent = if sides.send || is_made { sent_bytes_mut(&mut step.op) } else { None };
        let mut is_changed = sent.is_some_and(|bytes| self.resize(bytes));
        let buffer = if sides.receive || is_made { buffer_mut(&mut step.op) } else { None };
        is_changed |= buffer.is_some_and(|bytes| self.resize(bytes));
        step.nanos = step.nanos.filter(|_| !is_changed);
        out.push(step);
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.messages, &mut self.persistent).state(state);
    }
}
