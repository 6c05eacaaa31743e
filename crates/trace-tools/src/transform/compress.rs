//! `compress`: messages are smaller, and ranks compute to make them so.

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, RequestName};

use super::key::{Key, KeyValues};
use super::keys::{Keys, number};
use super::messages::{
    MessageTracker, PersistentRequests, PersistentTracker, SelectedMessages, buffer_mut, sent_bytes_mut,
};
use super::requests::PerRequest;
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "compress",
    subject: Subject::Messages,
    keys: &[
        Key::required("factor", KeyValues::Amount(f64::MAX), "Factor by which sizes are multiplied."),
        Key::optional(
            "compress",
            KeyValues::Amount(f64::MAX),
            "Computation of the sender [flop/B], 0 by default.",
        ),
        Key::optional(
            "expand",
            KeyValues::Amount(f64::MAX),
            "Computation of the receiver [flop/B], 0 by default.",
        ),
    ],
    semantics: "As `resize`; in addition the sender computes `compress` (by default 0) flop for each byte of the message before it sends, the receiver \
                `expand` flop for each byte of its buffer after the receive is complete; bytes are those before. Ranks compute at each start of a persistent \
                request.",
    read,
};

#[derive(Clone, Copy, Debug)]
struct Cost {
    factor: f64,
    /// Amount for each byte that is sent \[flop\].
    compress: f64,
    /// Amount for each byte of a buffer \[flop\].
    expand: f64,
}

#[derive(Debug)]
struct Compress {
    selector: Selector,
    cost: Cost,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let cost = |key| Ok::<_, String>(keys.get(key, number)?.unwrap_or_default());
    let factor = keys.require("factor", number)?;
    let cost = Cost { factor, compress: cost("compress")?, expand: cost("expand")? };
    Ok(Box::new(Compress { selector, cost }))
}

impl Transform for Compress {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::with_persistent(&self.selector, program)?;
        let persistent = messages.persistent(program)?;
        Ok(Box::new(Compressed { messages, persistent, cost: self.cost }))
    }
}

#[derive(Debug)]
struct Compressed {
    messages: SelectedMessages,
    persistent: PersistentRequests,
    cost: Cost,
}

impl Plan for Compressed {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(SmallerMessages {
            messages: self.messages.follow(rank),
            persistent: self.persistent.follow(rank),
            started: FxHashMap::default(),
            cost: self.cost,
            expanded: PerRequest::default(),
        })
    }
}

#[derive(Debug)]
struct SmallerMessages<'p> {
    messages: MessageTracker<'p>,
    persistent: PersistentTracker<'p>,
    /// Amounts of the persistent requests of selected messages, before a start and after its completion \[flop\].
    started: FxHashMap<RequestName, (f64, f64)>,
    cost: Cost,
    /// Amounts due when receives are complete \[flop\].
    expanded: PerRequest<f64>,
}

impl SmallerMessages<'_> {
    /// Makes a message or a buffer smaller; returns its size before \[B\].
    fn shrink(&self, bytes: Option<&mut Bytes>) -> f64 {
        let Some(bytes) = bytes else { return 0.0 };
        let before = bytes.get() as f64;
        *bytes = Bytes::new((before * self.cost.factor).round() as u64);
        before
    }
}

/// Returns a computation beside an operation; `None` if it is none.
fn computation(step: &Step, flops: f64) -> Option<Step> {
    let op = Op::Compute { flops };
    (flops > 0.0).then(|| Step { op, posted: None, awaited: None, nanos: None, ..step.clone() })
}

impl Rewrite for SmallerMessages<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        let sides = self.messages.follow(&step.op);
        if let Some(request) = self.persistent.follow(&step.op) {
            let sent = self.shrink(sent_bytes_mut(&mut step.op)) * self.cost.compress;
            let received = self.shrink(buffer_mut(&mut step.op)) * self.cost.expand;
            self.started.insert(request, (sent, received));
        } else if let Op::Call(CallOp::SendInit { request, .. } | CallOp::RecvInit { request, .. }) = &step.op
        {
            self.started.remove(request);
        }
        if let Op::Call(CallOp::Start { requests }) = &step.op {
            let amounts = requests.iter().filter_map(|name| Some((name, self.started.get(name)?)));
            let mut before = 0.0;
            for (name, (sent, received)) in amounts {
                before += sent;
                self.expanded.add_named(*name, *received);
            }
            out.extend(computation(&step, before));
            out.push(step);
            return;
        }
        let completed = self.expanded.completed(&step).into_iter().sum::<f64>();
        let mut after = computation(&step, completed);
        if sides.send {
            let before = self.shrink(sent_bytes_mut(&mut step.op));
            out.extend(computation(&step, before * self.cost.compress));
        }
        if sides.receive {
            let before = self.shrink(buffer_mut(&mut step.op));
            match step.posted {
                Some(_) => self.expanded.add(&step, before * self.cost.expand),
                None => after = computation(&step, before * self.cost.expand),
            }
        }
        if sides.send || sides.receive {
            step.nanos = None;
        }
        out.push(step);
        out.extend(after);
    }

    fn state(&mut self, state: &mut State<'_>) {
        let Self { messages, persistent, started, expanded, .. } = self;
        (messages, persistent, started, expanded).state(state);
    }
}
