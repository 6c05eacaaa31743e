//! `aggregate`: several messages between two ranks become one.

mod joining;

use std::collections::{BTreeMap, BTreeSet};

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::folded::{FoldedCursor, FoldedSequence, State};
use trace_mmap::{CallOp, CommId, Op, RequestName, Slot, Tag};

use self::joining::Joining;
use super::key::{Key, KeyValues};
use super::keys::{Keys, whole};
use super::messages::{
    Endpoints, Event, MessageTracker, Received, SelectedMessages, Sent, Sides, as_isend, buffer_mut,
    received, sent, sent_bytes_mut,
};
use super::requests::{NewRequests, PerRequest, RemovedRequests};
use super::selector::collective;
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "aggregate",
    subject: Subject::Messages,
    keys: &[Key::optional(
        "count",
        KeyValues::Whole(1, u64::MAX),
        "Number of consecutive messages of a channel that become one; without it those of an exchange do.",
    )],
    semantics: "With `count`, each `count` consecutive messages of a channel (source, destination, tag, communicator) become one of the sum of their sizes; \
                fewer do before a collective operation of the sender or the receiver, and at the end. Without `count`, so do consecutive messages of one \
                exchange between two ranks, whatever their tags: between them neither side waits, tests, probes or takes part in a collective operation, nor \
                does the sender receive, and receives are posted in the order of the sends. The message is sent where the last one was, and received where the \
                first one was, with its tag and its wait. The replay of a program that needs the first message before it sends the last one fails. Combined \
                sends and receives, probes, and receives of any tag or source cannot be selected.",
    read,
};

#[derive(Debug)]
struct Aggregate {
    selector: Selector,
    /// Number of messages that become one; `None` for those of an exchange.
    count: Option<u64>,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let count = keys.get("count", whole)?;
    Ok(Box::new(Aggregate { selector, count }))
}

/// Messages that may become one: source, destination, communicator and, with `count`, tag.
type Series = (Rank, Rank, CommId, Option<Tag>);

/// A selected message of a series, as its sender posts it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SentPart {
    tag: Tag,
    bytes: u64,
    /// True if it does not become one with the message before.
    is_first: bool,
}

/// A message of a series among those that become one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    tag: Tag,
    is_first: bool,
    is_last: bool,
    /// Size of all of them \[B\].
    bytes: u64,
    /// Tag of the first one.
    first: Tag,
}

/// The messages of each series, in the order of their sends.
type Parts<P> = FxHashMap<Series, FoldedSequence<P>>;

/// Follows the messages of one tag of a series.
#[derive(Debug)]
struct TagCursor<'p, P> {
    parts: FoldedCursor<'p, P>,
    /// Number of parts before the next one.
    index: u64,
}

impl<'p, P> TagCursor<'p, P> {
    /// Returns the next part of the tag, which `has_tag` finds, and its index.
    fn next(&mut self, has_tag: impl Fn(&P) -> bool) -> Option<(u64, &'p P)> {
        loop {
            let part = self.parts.next()?;
            self.index += 1;
            if has_tag(part) {
                return Some((self.index - 1, part));
            }
        }
    }
}

impl<P> Stateful for TagCursor<'_, P> {
    fn state(&mut self, state: &mut State<'_>) {
        Stateful::state(&mut self.parts, state);
        state.counter(&mut self.index, u64::MAX);
    }
}

/// Follows the receives of a rank.
struct Receives<'p, P> {
    all: &'p Parts<P>,
    cursors: BTreeMap<(Series, Tag), TagCursor<'p, P>>,
}

impl<'p, P> Receives<'p, P> {
    fn new(all: &'p Parts<P>) -> Self {
        Self { all, cursors: BTreeMap::new() }
    }

    /// Returns the message that the next receive of a tag takes, and its index.
    fn next(&mut self, series: Series, tag: Tag, has_tag: impl Fn(&P) -> bool) -> Option<(u64, &'p P)> {
        let parts = self.all.get(&series)?;
        let new = || TagCursor { parts: parts.cursor(), index: 0 };
        self.cursors.entry((series, tag)).or_insert_with(new).next(has_tag)
    }
}

/// The last receives of a rank, with the ends of exchanges on its side.
struct ReceiveOrder<'p> {
    receives: Receives<'p, SentPart>,
    /// The message after the last one that is received, of series whose exchange has not ended.
    next: BTreeMap<Series, u64>,
    /// A flag for each receive: true if its message does not become one with the message before.
    breaks: BTreeMap<(Series, Tag), FoldedSequence<bool>>,
}

impl Stateful for ReceiveOrder<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        let Self { receives: Receives { cursors, .. }, next, breaks } = self;
        for ((series, tag), cursor) in &mut *cursors {
            (*series, *tag).state(state);
            Stateful::state(&mut cursor.parts, state);
        }
        state.word(next.len() as u64);
        for series in next.keys() {
            ({ *series }).state(state);
        }
        // Within a series only differences of places matter.
        let places: BTreeSet<Series> = cursors.keys().map(|(series, _)| *series).collect();
        for series in places {
            let of_series = cursors.range_mut((series, Tag::new(0))..=(series, Tag::new(i32::MAX)));
            let indices = of_series.map(|(_, cursor)| &mut cursor.index);
            state.compared_counters(indices.chain(next.get_mut(&series)));
        }
        breaks.state(state);
    }
}

impl Aggregate {
    fn series(&self, from: Rank, to: Rank, communicator: CommId, tag: Tag) -> Series {
        (from, to, communicator, self.count.map(|_| tag))
    }

    /// Returns whether messages before and after an operation do not become one, on the side of their sender or receiver.
    fn ends(&self, op: &Op, is_sender: bool) -> bool {
        match self.count {
            Some(_) => collective(op).is_some(),
            None => ends_exchange(op) || (is_sender && is_blocking_receive(op)),
        }
    }

    /// Collects the selected messages, with the ends of exchanges on the side of their senders.
    fn sent_parts(
        &self,
        program: &Program<'_>,
        messages: &SelectedMessages,
    ) -> Result<Parts<SentPart>, Refusal> {
        let mut all = Parts::default();
        for rank in program.ranks() {
            // Series of the exchange that has not ended.
            let open = BTreeSet::<Series>::new();
            let mut values = (messages.follow(rank), open, Parts::default());
            program.walk(rank, &mut values, |(tracker, open, parts), step| {
                let sides = tracker.follow(&step.op);
                if sides != Sides::default() && sent(&step.op).is_some() && received(&step.op).is_some() {
                    let reason = "a combined send and receive, which cannot become one with others; select others (call)";
                    return Err(Refusal::at(rank, step.action, reason));
                }
                if self.ends(&step.op, true) {
                    open.clear();
                }
                let Some(Sent { to, tag, communicator, bytes, .. }) = sent(&step.op).filter(|_| sides.send)
                else {
                    return Ok(());
                };
                let series = self.series(rank, to, communicator, tag);
                let part = SentPart { tag, bytes: bytes.get(), is_first: open.insert(series) };
                parts.entry(series).or_default().push(part);
                Ok(())
            })?;
            all.extend(values.2);
        }
        Ok(all)
    }

    /// Ends exchanges where the receiver does not post the receives of consecutive messages one after the other, and makes messages
    /// one.
    fn join(
        &self,
        program: &Program<'_>,
        messages: &SelectedMessages,
        parts: &Parts<SentPart>,
    ) -> Result<Parts<Part>, Refusal> {
        let mut all_breaks = BTreeMap::new();
        for rank in program.ranks() {
            let order = ReceiveOrder {
                receives: Receives::new(parts),
                next: BTreeMap::new(),
                breaks: BTreeMap::new(),
            };
            let mut values = (messages.follow(rank), Endpoints::default(), order);
            program.walk(rank, &mut values, |(tracker, endpoints, order), step| {
                let sides = tracker.follow(&step.op);
                let mut receive = None;
                endpoints.events(&step.op, |event| {
                    if let Event::Receive(received, _) = event {
                        receive = Some(received);
                    }
                });
                if self.ends(&step.op, false) {
                    order.next.clear();
                }
                let Some(receive) = receive.filter(|_| sides.receive) else { return Ok(()) };
                let Some((from, tag, communicator)) = receive.named() else {
                    let reason =
                        "a receive of any tag or from any source takes selected messages; select others";
                    return Err(Refusal::at(rank, step.action, reason));
                };
                let series = self.series(from, rank, communicator, tag);
                let found = order.receives.next(series, tag, |part| part.tag == tag);
                let Some((index, _)) = found else { return Ok(()) };
                let follows = order.next.insert(series, index + 1) == Some(index);
                order.breaks.entry((series, tag)).or_default().push(!follows);
                Ok(())
            })?;
            let (_, _, ReceiveOrder { breaks, .. }) = values;
            all_breaks.extend(breaks);
        }
        let joined = parts.iter().map(|(series, parts)| {
            let tags = (*series, Tag::new(0))..=(*series, Tag::new(i32::MAX));
            let breaks = all_breaks.range(tags).map(|((_, tag), flags)| (*tag, flags.cursor())).collect();
            (*series, Joining::of(parts, breaks, self.count))
        });
        Ok(joined.collect())
    }
}

/// Returns whether what comes after an operation may depend on messages of other ranks that it waited for.
fn ends_exchange(op: &Op) -> bool {
    match op {
        Op::Wait(_) | Op::Test(_) | Op::WaitAll | Op::Collective(_) | Op::SendRecv { .. } => true,
        Op::Call(call) => !matches!(
            call,
            CallOp::Send { .. } | CallOp::Isend { .. } | CallOp::Recv { .. } | CallOp::Irecv { .. }
        ),
        _ => false,
    }
}

fn is_blocking_receive(op: &Op) -> bool {
    matches!(op, Op::Recv { .. } | Op::Call(CallOp::Recv { .. }))
}

impl Transform for Aggregate {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::new(&self.selector, program)?;
        messages.check_probes(program)?;
        let parts = self.sent_parts(program, &messages)?;
        let parts = self.join(program, &messages, &parts)?;
        Ok(Box::new(Aggregated { messages, parts, has_count: self.count.is_some() }))
    }
}

#[derive(Debug)]
struct Aggregated {
    messages: SelectedMessages,
    parts: Parts<Part>,
    has_count: bool,
}

impl Plan for Aggregated {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(FewerMessages {
            plan: self,
            rank,
            messages: self.messages.follow(rank),
            removed: RemovedRequests::default(),
            requests: program.new_requests(),
            renamed: PerRequest::default(),
            sends: FxHashMap::default(),
            receives: Receives::new(&self.parts),
        })
    }
}

struct FewerMessages<'p> {
    plan: &'p Aggregated,
    rank: Rank,
    messages: MessageTracker<'p>,
    removed: RemovedRequests,
    requests: NewRequests,
    /// New names of requests without names, whose tags have changed.
    renamed: PerRequest<RequestName>,
    /// The messages of each series that this rank has not sent yet.
    sends: FxHashMap<Series, FoldedCursor<'p, Part>>,
    receives: Receives<'p, Part>,
}

impl FewerMessages<'_> {
    fn send(&mut self, mut step: Step, Sent { to, tag, communicator, .. }: Sent, out: &mut Vec<Step>) {
        let series = (self.rank, to, communicator, self.plan.has_count.then_some(tag));
        let Some(parts) = self.plan.parts.get(&series) else { return out.push(step) };
        let part = self.sends.entry(series).or_insert_with(|| parts.cursor()).next();
        let Some(&Part { first, bytes, .. }) = part.filter(|part| part.is_last) else {
            self.removed.add(&step);
            return;
        };
        if first != tag {
            if step.posted.is_some() && matches!(step.op, Op::Isend { .. }) {
                let name = self.requests.next();
                self.renamed.add(&step, name);
                step.op = as_isend(&step.op, name).unwrap_or(step.op);
                step.posted = Some(Slot::new(name.get()));
            }
            set_tag(&mut step.op, first);
        }
        if let Some(size) = sent_bytes_mut(&mut step.op) {
            *size = Bytes::new(bytes);
        }
        step.nanos = None;
        out.extend(self.removed.keep(step));
    }

    fn receive(&mut self, mut step: Step, receive: &Received, out: &mut Vec<Step>) {
        let Some((from, tag, communicator)) = receive.named() else { return out.push(step) };
        let series = (from, self.rank, communicator, self.plan.has_count.then_some(tag));
        let found = self.receives.next(series, tag, |part| part.tag == tag);
        let Some((_, part)) = found else { return out.push(step) };
        if !part.is_first {
            self.removed.add(&step);
            return;
        }
        if let Some(size) = buffer_mut(&mut step.op) {
            *size = Bytes::new(part.bytes.max(size.get()));
        }
        step.nanos = None;
        out.extend(self.removed.keep(step));
    }
}

/// Gives a send another tag.
fn set_tag(op: &mut Op, new: Tag) {
    match op {
        Op::Send { tag, .. } | Op::Isend { tag, .. } => *tag = new,
        Op::Call(CallOp::Send { to, .. } | CallOp::Isend { to, .. }) => to.tag = new,
        _ => {}
    }
}

impl Rewrite for FewerMessages<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        let sides = self.messages.follow(&step.op);
        if sides.send
            && let Some(message) = sent(&step.op)
        {
            return self.send(step, message, out);
        }
        if sides.receive
            && let Some(receive) = received(&step.op)
        {
            return self.receive(step, &receive, out);
        }
        let renamed = self.renamed.awaited(&step).copied();
        self.renamed.completed(&step);
        if let Some(request) = renamed {
            let is_test = matches!(step.op, Op::Test(_));
            step.op = Op::Call(match is_test {
                true => CallOp::Test { request, done: None },
                false => CallOp::Wait { request },
            });
            step.awaited = None;
        }
        out.extend(self.removed.keep(step));
    }

    fn state(&mut self, state: &mut State<'_>) {
        let Self { messages, removed, renamed, sends, receives, .. } = self;
        ((messages, removed), renamed, sends, &mut receives.cursors).state(state);
    }
}
