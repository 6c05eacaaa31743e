//! `coalesce`: accesses to adjoining parts of a file become one.

use std::collections::VecDeque;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, FileCall, FileDirection, FileName, Op};

use super::key::{Key, KeyValues};
use super::keys::{Keys, whole};
use super::selector::Tracker;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "coalesce",
    subject: Subject::Accesses,
    keys: &[Key::optional(
        "count",
        KeyValues::Whole(1, u64::MAX),
        "Largest number of accesses that become one; by default all.",
    )],
    semantics: "Consecutive accesses of a rank to a file, in one direction, each beginning where the last one ended, become one access of their sum, of up to \
                `count` of them (by default all): where the last write was, or the first read. Between them the rank only computes, sleeps, or comes to \
                another place.",
    read,
};

#[derive(Clone, Debug)]
struct Coalesce {
    selector: Selector,
    /// Largest number of accesses that become one.
    count: u64,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let count = keys.get("count", whole)?;
    Ok(Box::new(Coalesce { selector, count: count.unwrap_or(u64::MAX) }))
}

impl Transform for Coalesce {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, _: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Coalesce {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(LargerPieces {
            plan: self,
            tracker: Tracker::new(&self.selector, rank),
            pointers: FxHashMap::default(),
            series: None,
            held: VecDeque::new(),
        })
    }
}

/// Accesses that become one.
#[derive(Debug)]
struct Series {
    communicator: CommId,
    file: FileName,
    direction: FileDirection,
    /// True if the accesses are at the individual pointer.
    is_at_pointer: bool,
    count: u64,
    bytes: u64,
    /// End of the last one \[B\].
    end: u64,
}

/// Accesses files in larger pieces.
#[derive(Debug)]
struct LargerPieces<'p> {
    plan: &'p Coalesce,
    tracker: Tracker<'p>,
    /// Individual pointers \[B\].
    pointers: FxHashMap<FileName, u64>,
    series: Option<Series>,
    /// The access of the series, and what the rank has done since.
    held: VecDeque<Step>,
}

impl LargerPieces<'_> {
    fn end_series(&mut self, out: &mut Vec<Step>) {
        self.series = None;
        out.extend(self.held.drain(..));
    }

    /// Adds a selected access to the series, or begins one.
    fn add(&mut self, step: Step, begin: u64, out: &mut Vec<Step>) {
        let Op::Call(CallOp::File { communicator, file, call, .. }) = &step.op else { return };
        let FileCall::Access { direction, offset, bytes, .. } = *call else { return };
        let (bytes, is_at_pointer) = (bytes.get(), offset.is_none());
        let continues = self.series.as_ref().is_some_and(|series| {
            series.count < self.plan.count
                && series.end == begin
                && (series.communicator, &series.file, series.direction, series.is_at_pointer)
                    == (*communicator, file, direction, is_at_pointer)
        });
        if !continues {
            self.end_series(out);
            let (communicator, file, end) = (*communicator, file.clone(), begin.saturating_add(bytes));
            self.series = Some(Series { communicator, file, direction, is_at_pointer, count: 1, bytes, end });
            self.held.push_back(step);
            return;
        }
        let Some(series) = &mut self.series else { return };
        series.count += 1;
        series.bytes = series.bytes.saturating_add(bytes);
        series.end = begin.saturating_add(bytes);
        let all = series.bytes;
        if direction == FileDirection::Write
            && let Some(first) = self.held.pop_front()
        {
            // What the rank did before the last write is over.
            out.extend(self.held.drain(..));
            self.held.push_back(Step { action: step.action, ..first });
        }
        if let Some(access) = self.held.front_mut()
            && let Op::Call(CallOp::File { call: FileCall::Access { bytes, .. }, .. }) = &mut access.op
        {
            *bytes = Bytes::new(all);
            access.nanos = None;
        }
    }
}

/// Returns whether an operation may come between accesses that become one.
fn is_local(op: &Op) -> bool {
    matches!(op, Op::Compute { .. } | Op::Sleep { .. } | Op::Location { .. })
}

impl Rewrite for LargerPieces<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        let mut begin = None;
        if let Op::Call(CallOp::File { file, call, .. }) = &step.op {
            begin = call.move_pointer(self.pointers.entry(file.clone()).or_default());
        }
        if let Op::Call(CallOp::SetView { file, .. }) = &step.op {
            self.pointers.insert(file.clone(), 0);
        }
        let is_selected = self.tracker.is_here() && self.plan.selector.accepts_call(&step.op);
        match begin.filter(|_| is_selected) {
            Some(begin) => self.add(step, begin, out),
            None if is_local(&step.op) && self.series.is_some() => self.held.push_back(step),
            None => {
                self.end_series(out);
                out.push(step);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        self.end_series(out);
    }
}
