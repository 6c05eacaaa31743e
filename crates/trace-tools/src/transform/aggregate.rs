//! `aggregate`: several messages between two ranks become one.

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, Op, RequestName, Slot, Tag};

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::messages::{
    Endpoints, Event, MessageTracker, Received, SelectedMessages, Sent, Sides, as_isend, buffer_mut,
    received, sent, sent_bytes_mut,
};
use super::requests::{NewRequests, PerRequest, RemovedRequests};
use super::selector::collective;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "aggregate",
    subject: Subject::Messages,
    keys: &[Key::optional(
        "count",
        KeyValues::Whole(1, u64::MAX),
        "Number of consecutive messages of a channel that become one; without it those of an exchange do.",
    )],
    semantics: "With `count`, each `count` consecutive messages of a channel (source, destination, tag, communicator) become one message of the sum of their sizes; \
                fewer ones do before a collective operation of the sender or the receiver, and at the end. Without `count`, so do consecutive messages of one exchange between two ranks, whatever their tags: \
                on the side of the sender and on that of the receiver nothing between them waits, tests, probes or is a collective operation, nor receives \
                on the side of the sender, and receives are posted in the order of the sends. The message is sent where the last one was, and received where \
                the first one was, with its tag and its wait. A program that needs the first message before it sends the last one waits forever: its replay fails. Combined \
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
    let count = keys.whole("count", 1..=u64::MAX, "the messages that become one")?;
    Ok(Box::new(Aggregate { selector, count }))
}

/// Messages that may become one: source, destination, communicator and, with `count`, tag.
type Series = (Rank, Rank, CommId, Option<Tag>);

/// A selected message of a series.
#[derive(Clone, Copy, Debug)]
struct Part {
    tag: Tag,
    bytes: u64,
    /// True if it does not become one with the message before.
    is_first: bool,
}

/// The selected messages of each series, in the order of their sends.
type Parts = FxHashMap<Series, Vec<Part>>;

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
    fn sent_parts(&self, program: &Program<'_>, messages: &SelectedMessages) -> Result<Parts, Refusal> {
        let mut parts = Parts::default();
        for rank in program.ranks() {
            let (mut tracker, mut exchange) = (messages.follow(rank), 0_u64);
            let mut last: FxHashMap<Series, u64> = FxHashMap::default();
            for step in program.steps(rank) {
                let sides = tracker.follow(&step.op);
                if sides != Sides::default() && sent(&step.op).is_some() && received(&step.op).is_some() {
                    let reason = "a combined send and receive, which cannot become one with others; select others (call)";
                    return Err(Refusal::at(rank, step.action, reason));
                }
                exchange += u64::from(self.ends(&step.op, true));
                let Some(Sent { to, tag, communicator, bytes, .. }) = sent(&step.op).filter(|_| sides.send)
                else {
                    continue;
                };
                let series = self.series(rank, to, communicator, tag);
                let list = parts.entry(series).or_default();
                let is_first = last.insert(series, exchange) != Some(exchange);
                list.push(Part { tag, bytes: bytes.get(), is_first });
            }
        }
        Ok(parts)
    }

    /// Ends exchanges where the receiver does not post the receives of consecutive messages one after the other.
    fn check_receives(
        &self,
        program: &Program<'_>,
        messages: &SelectedMessages,
        places: &Places,
        parts: &mut Parts,
    ) -> Result<(), Refusal> {
        let mut receives = Receives::default();
        for rank in program.ranks() {
            let (mut tracker, mut endpoints, mut exchange) =
                (messages.follow(rank), Endpoints::default(), 0_u64);
            let mut last: FxHashMap<Series, (usize, u64)> = FxHashMap::default();
            for step in program.steps(rank) {
                let sides = tracker.follow(&step.op);
                let mut receive = None;
                endpoints.events(&step.op, |event| {
                    if let Event::Receive(received, _) = event {
                        receive = Some(received);
                    }
                });
                exchange += u64::from(self.ends(&step.op, false));
                let Some(receive) = receive.filter(|_| sides.receive) else { continue };
                let Some((from, tag, communicator)) = receive.named() else {
                    let reason =
                        "a receive of any tag or from any source takes selected messages; select others";
                    return Err(Refusal::at(rank, step.action, reason));
                };
                let series = self.series(from, rank, communicator, tag);
                let Some(index) = receives.next(places, series, tag) else { continue };
                let follows =
                    last.insert(series, (index, exchange)) == Some((index.wrapping_sub(1), exchange));
                if let Some(list) = parts.get_mut(&series).filter(|_| !follows) {
                    list[index].is_first = true;
                }
            }
        }
        Ok(())
    }
}

/// Begins a new message after each `count` parts of one.
fn limit(parts: &mut Parts, count: u64) {
    for list in parts.values_mut() {
        let mut number = 0;
        for part in list {
            number = if part.is_first || number == count { 1 } else { number + 1 };
            part.is_first = number == 1;
        }
    }
}

/// The places of messages in their series, by tag, in the order of sends.
type Places = FxHashMap<(Series, Tag), Vec<usize>>;

fn places(parts: &Parts) -> Places {
    let mut places = Places::default();
    for (series, list) in parts {
        for (index, part) in list.iter().enumerate() {
            places.entry((*series, part.tag)).or_default().push(index);
        }
    }
    places
}

/// Counts the receives of a rank.
#[derive(Debug, Default)]
struct Receives(FxHashMap<(Series, Tag), usize>);

impl Receives {
    /// Returns the place of the message that the next receive of a tag takes.
    fn next(&mut self, places: &Places, series: Series, tag: Tag) -> Option<usize> {
        let number = self.0.entry((series, tag)).or_default();
        *number += 1;
        places.get(&(series, tag))?.get(*number - 1).copied()
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
        let mut parts = self.sent_parts(program, &messages)?;
        let places = places(&parts);
        self.check_receives(program, &messages, &places, &mut parts)?;
        if let Some(count) = self.count {
            limit(&mut parts, count);
        }
        Ok(Box::new(Aggregated { messages, parts, places, has_count: self.count.is_some() }))
    }
}

#[derive(Debug)]
struct Aggregated {
    messages: SelectedMessages,
    parts: Parts,
    places: Places,
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
            receives: Receives::default(),
        })
    }
}

#[derive(Debug)]
struct FewerMessages<'p> {
    plan: &'p Aggregated,
    rank: Rank,
    messages: MessageTracker<'p>,
    removed: RemovedRequests,
    requests: NewRequests,
    /// New names of requests without names, whose tags have changed.
    renamed: PerRequest<RequestName>,
    /// Number of messages of each series that this rank has sent.
    sends: FxHashMap<Series, usize>,
    receives: Receives,
}

impl FewerMessages<'_> {
    /// Returns the first tag and the size of the message of which a part is the last; `None` if another one follows.
    fn ended(list: &[Part], index: usize) -> Option<(Tag, Bytes)> {
        let goes_on = list.get(index + 1).is_some_and(|next| !next.is_first);
        let first = list[..=index].iter().rposition(|part| part.is_first).unwrap_or_default();
        let bytes = list[first..=index].iter().map(|part| part.bytes).sum();
        (!goes_on).then(|| (list[first].tag, Bytes::new(bytes)))
    }

    fn send(&mut self, mut step: Step, Sent { to, tag, communicator, .. }: Sent, out: &mut Vec<Step>) {
        let series = (self.rank, to, communicator, self.plan.has_count.then_some(tag));
        let index = self.sends.entry(series).or_default();
        *index += 1;
        let list = self.plan.parts.get(&series).map_or(&[][..], Vec::as_slice);
        let Some((first, bytes)) = Self::ended(list, *index - 1) else {
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
            *size = bytes;
        }
        step.nanos = None;
        out.extend(self.removed.keep(step));
    }

    fn receive(&mut self, mut step: Step, receive: &Received, out: &mut Vec<Step>) {
        let Some((from, tag, communicator)) = receive.named() else { return out.push(step) };
        let series = (from, self.rank, communicator, self.plan.has_count.then_some(tag));
        let list = self.plan.parts.get(&series).map_or(&[][..], Vec::as_slice);
        let index = self.receives.next(&self.plan.places, series, tag);
        let Some(index) = index else { return out.push(step) };
        if !list[index].is_first {
            self.removed.add(&step);
            return;
        }
        let rest = list[index + 1..].iter().take_while(|part| !part.is_first);
        let bytes = list[index].bytes + rest.map(|part| part.bytes).sum::<u64>();
        if let Some(size) = buffer_mut(&mut step.op) {
            *size = Bytes::new(bytes.max(size.get()));
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
}
