//! `neighborhood`: an exchange of messages becomes a neighbourhood collective operation.

use std::collections::BTreeMap;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, Op};

use super::keys::Keys;
use super::messages::{MessageTracker, SelectedMessages, Sides, buffer_mut, received, sent, without};
use super::requests::{PerRequest, RemovedRequests};
use super::selector::Tracker;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "neighborhood",
    subject: Subject::Messages,
    keys: &[],
    semantics: "In each visit of the `region` or `site` the messages become one `neighbor_alltoallv` on the world, in place of the last operation on them, a \
                wait included; sizes of messages to one rank add up. All ranks have equally many visits, in which messages are sent, received and waited for; \
                ranks without neighbours take part. `iterations`, `ranks`, and receives of any tag or source cannot be selected.",
    read,
};

#[derive(Debug)]
struct Neighborhood {
    selector: Selector,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    if !selector.has_place() || keys.has("iterations") || keys.has("ranks") {
        return Err("neighborhood: expected region or site, without iterations and ranks: the place of the exchange on all ranks".to_owned());
    }
    Ok(Box::new(Neighborhood { selector }))
}

/// An exchange of a rank in a visit.
#[derive(Debug, Default)]
struct Exchange {
    to: BTreeMap<u32, u64>,
    from: BTreeMap<u32, u64>,
    /// The last operation on its messages.
    last: Option<u64>,
}

impl Neighborhood {
    /// Collects the exchanges of a rank by visit, and counts messages by sender, receiver and visit: those sent, less those received.
    fn exchanges(
        &self,
        program: &Program<'_>,
        messages: &SelectedMessages,
        rank: Rank,
        counts: &mut FxHashMap<(Rank, Rank, u64), i64>,
    ) -> Result<Vec<Exchange>, Refusal> {
        let (mut tracker, mut followed) = (Tracker::new(&self.selector, rank), messages.follow(rank));
        let (mut exchanges, mut pending) = (Vec::<Exchange>::new(), PerRequest::<u64>::default());
        for mut step in program.steps(rank) {
            tracker.follow(&step.op);
            exchanges.resize_with(tracker.visits() as usize, Exchange::default);
            let (visit, sides) = (tracker.visits().wrapping_sub(1), followed.follow(&step.op));
            let completed = pending.completed(&step);
            let is_elsewhere = !tracker.is_here() || completed.iter().any(|posted| *posted != visit);
            if (sides != Sides::default() || !completed.is_empty()) && is_elsewhere {
                let reason = "a message of the exchange, sent, received or waited for outside of the visit: select others";
                return Err(Refusal::at(rank, step.action, reason));
            }
            let Some(exchange) = exchanges.last_mut() else { continue };
            if sides != Sides::default() || !completed.is_empty() {
                exchange.last = Some(step.action);
            }
            if sides.send
                && let Some(message) = sent(&step.op)
            {
                *exchange.to.entry(message.to.get()).or_default() += message.bytes.get();
                *counts.entry((rank, message.to, visit)).or_default() += 1;
            }
            if sides.receive
                && let Some(receive) = received(&step.op)
            {
                let Some((from, ..)) = receive.named() else {
                    let reason =
                        "a receive of any tag or from any source takes selected messages; select others";
                    return Err(Refusal::at(rank, step.action, reason));
                };
                let bytes = buffer_mut(&mut step.op).map_or(0, |bytes| bytes.get());
                *exchange.from.entry(from.get()).or_default() += bytes;
                *counts.entry((from, rank, visit)).or_default() -= 1;
            }
            if sides != Sides::default() {
                pending.add(&step, visit);
            }
        }
        Ok(exchanges)
    }
}

impl Transform for Neighborhood {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::new(&self.selector, program)?;
        messages.check_probes(program)?;
        let (mut exchanges, mut counts) = (Vec::<Vec<Exchange>>::new(), FxHashMap::default());
        for rank in program.ranks() {
            let own = self.exchanges(program, &messages, rank, &mut counts)?;
            let first = exchanges.first().map_or(own.len(), Vec::len);
            if own.len() != first {
                let reason = format!(
                    "it visits the place {} times, rank 0 {first} times: expected equal numbers",
                    own.len()
                );
                return Err(Refusal::Place { rank, action: None, reason });
            }
            exchanges.push(own);
        }
        let uneven = counts.iter().filter(|(_, count)| **count != 0).map(|(key, _)| *key).min();
        if let Some((from, to, visit)) = uneven {
            let reason = format!(
                "it does not receive all messages that rank {from} sends in visit {visit} in its own visit of this number"
            );
            return Err(Refusal::Place { rank: to, action: None, reason });
        }
        Ok(Box::new(Exchanged { selector: self.selector.clone(), messages, exchanges }))
    }
}

#[derive(Debug)]
struct Exchanged {
    selector: Selector,
    messages: SelectedMessages,
    /// The exchanges of each rank by visit.
    exchanges: Vec<Vec<Exchange>>,
}

impl Plan for Exchanged {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Collected {
            tracker: Tracker::new(&self.selector, rank),
            messages: self.messages.follow(rank),
            exchanges: &self.exchanges[rank.index()],
            removed: RemovedRequests::default(),
        })
    }
}

#[derive(Debug)]
struct Collected<'p> {
    tracker: Tracker<'p>,
    messages: MessageTracker<'p>,
    exchanges: &'p [Exchange],
    removed: RemovedRequests,
}

impl Rewrite for Collected<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        let visits = self.tracker.visits();
        self.tracker.follow(&step.op);
        let begins = self.tracker.visits() > visits;
        let exchange =
            self.tracker.visits().checked_sub(1).and_then(|visit| self.exchanges.get(visit as usize));
        let is_place = |exchange: &&Exchange| match exchange.last {
            Some(last) => last == step.action,
            None => begins,
        };
        let all = |sizes: &BTreeMap<u32, u64>| {
            sizes.iter().map(|(rank, bytes)| (*rank, Bytes::new(*bytes))).collect()
        };
        let collective = exchange.filter(is_place).map(|exchange| {
            let (communicator, request) = (CommId::WORLD, None);
            let (to, from) = (all(&exchange.to), all(&exchange.from));
            let op = Op::Call(CallOp::NeighborAlltoall { communicator, to, from, request });
            Step { op, posted: None, awaited: None, nanos: None, ..step.clone() }
        });
        let sides = self.messages.follow(&step.op);
        if sides == Sides::default() {
            out.extend(self.removed.keep(step));
        } else {
            self.removed.add(&step);
            if let Some(op) = without(step.op, sides) {
                (step.op, step.nanos) = (op, None);
                out.push(step);
            }
        }
        out.extend(collective);
    }
}
