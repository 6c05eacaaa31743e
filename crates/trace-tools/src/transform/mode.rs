//! `mode`: sends complete in another mode.

use pdes_core::Rank;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, CommId, Op, SendMode, SendTo, Tag};

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::messages::{Endpoints, Event, PersistentRequests, PersistentTracker, sent};
use super::selector::Tracker;
use super::state::Stateful;
use super::{FoldedForm, Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "mode",
    subject: Subject::Messages,
    keys: &[Key::required(
        "mode",
        KeyValues::Choice(&["standard", "synchronous", "buffered", "ready"]),
        "Mode of the sends.",
    )],
    semantics: "Sends become `mode = \"standard\"`, `\"synchronous\"`, `\"buffered\"` or `\"ready\"`, blocking or not as they were; of persistent requests \
                where these are made. The replay of a program that relies on buffers fails with synchronous sends. Combined sends and receives cannot be \
                selected.",
    read,
};

#[derive(Clone, Debug)]
pub(super) struct Mode {
    pub(super) selector: Selector,
    pub(super) mode: SendMode,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let mode = keys.require("mode", |value| match value.as_str()? {
        "standard" => Some(SendMode::Standard),
        "synchronous" => Some(SendMode::Synchronous),
        "buffered" => Some(SendMode::Buffered),
        "ready" => Some(SendMode::Ready),
        _ => None,
    })?;
    Ok(Box::new(Mode { selector, mode }))
}

impl Transform for Mode {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn folded(&self) -> Option<FoldedForm<'_>> {
        Some(FoldedForm::Mode(self.mode))
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let begin = |rank| (Tracker::new(&self.selector, rank), Endpoints::default());
        let is_selected = |tracker: &Tracker<'_>, event| matches!(event, Event::Send(sent, _) if tracker.is_here() && self.selector.accepts_message(&sent));
        let persistent = PersistentRequests::new(program, begin, |(tracker, endpoints), op| {
            tracker.follow(op);
            let mut flags = Vec::new();
            endpoints.events(op, |event| flags.push(is_selected(tracker, event)));
            flags
        })?;
        for rank in program.ranks().filter(|rank| self.selector.selects_rank(*rank)) {
            program.walk(rank, &mut begin(rank), |(tracker, endpoints), mut step| {
                tracker.follow(&step.op);
                let mut is_any = false;
                endpoints.events(&step.op, |event| is_any |= is_selected(tracker, event));
                let is_start = matches!(step.op, Op::Call(CallOp::Start { .. }));
                if is_any && !is_start && !set_mode(&mut step.op, self.mode) {
                    let reason =
                        "a combined send and receive, whose mode cannot be set; select others (call)";
                    return Err(Refusal::at(rank, step.action, reason));
                }
                Ok(())
            })?;
        }
        Ok(Box::new(Sends { mode: self.clone(), persistent }))
    }
}

#[derive(Debug)]
struct Sends {
    mode: Mode,
    persistent: PersistentRequests,
}

impl Plan for Sends {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(OtherModes {
            tracker: Tracker::new(&self.mode.selector, rank),
            persistent: self.persistent.follow(rank),
            mode: &self.mode,
        })
    }
}

#[derive(Debug)]
struct OtherModes<'p> {
    tracker: Tracker<'p>,
    persistent: PersistentTracker<'p>,
    mode: &'p Mode,
}

impl Rewrite for OtherModes<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        let accepts = |op| sent(op).is_some_and(|sent| self.mode.selector.accepts_message(&sent));
        let is_made = self.persistent.follow(&step.op).is_some();
        let is_selected = is_made || self.tracker.is_here() && accepts(&step.op);
        if is_selected && set_mode(&mut step.op, self.mode.mode) {
            step.nanos = None;
        }
        out.push(step);
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.tracker, &mut self.persistent).state(state);
    }
}

/// Gives a send another mode; returns false for other operations.
fn set_mode(op: &mut Op, new: SendMode) -> bool {
    let on_world =
        |peer: &Option<Rank>, tag: &Tag| SendTo { peer: *peer, tag: *tag, communicator: CommId::WORLD };
    *op = match op {
        Op::Send { peer, tag, bytes } => {
            Op::Call(CallOp::Send { to: on_world(peer, tag), mode: new, bytes: *bytes })
        }
        Op::Isend { peer, tag, bytes } => {
            Op::Call(CallOp::Isend { to: on_world(peer, tag), request: None, mode: new, bytes: *bytes })
        }
        Op::Call(CallOp::Send { mode, .. } | CallOp::Isend { mode, .. } | CallOp::SendInit { mode, .. }) => {
            *mode = new;
            return true;
        }
        _ => return false,
    };
    true
}
