//! `compress`: messages are smaller, and ranks compute to make them so.

use pdes_core::{Bytes, Rank};
use trace_mmap::Op;

use super::keys::Keys;
use super::messages::{MessageTracker, SelectedMessages, buffer_mut, sent_bytes_mut};
use super::requests::PerRequest;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "compress",
    subject: Subject::Messages,
    keys: &["factor", "compress", "expand"],
    semantics: "The size of messages, and of the buffers of the receives that match, is multiplied by `factor` and rounded to whole bytes. The sender computes \
                `compress` (by default 0) flop for each byte of the message before it sends, the receiver `expand` flop for each byte of its buffer after what \
                completes the receive; sizes are those before.",
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
    let cost = |key| if keys.has(key) { keys.amount(key, "flop for each byte") } else { Ok(0.0) };
    let factor = keys.amount("factor", "by which sizes are multiplied")?;
    let cost = Cost { factor, compress: cost("compress")?, expand: cost("expand")? };
    Ok(Box::new(Compress { selector, cost }))
}

impl Transform for Compress {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::new(&self.selector, program)?;
        Ok(Box::new(Compressed { messages, cost: self.cost }))
    }
}

#[derive(Debug)]
struct Compressed {
    messages: SelectedMessages,
    cost: Cost,
}

impl Plan for Compressed {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let expanded = PerRequest::default();
        Box::new(SmallerMessages { messages: self.messages.follow(rank), cost: self.cost, expanded })
    }
}

#[derive(Debug)]
struct SmallerMessages<'p> {
    messages: MessageTracker<'p>,
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
}
