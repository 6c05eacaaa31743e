//! Message matching at a rank that receives from any source (`MPI_ANY_SOURCE`).
//!
//! The mailbox (SimGrid's word) holds the unexpected messages and the posted receives of such a rank.
//! Messages prefer the receive that was posted first, receives the message that was sent first: matching is a stable
//! marriage with common preferences on both sides, which has one solution, whatever the order in which pairs are found.
//! A pair is certain once no message that was sent earlier can arrive. Where the first receive that accepts a
//! message names its source, that is at once, because messages of one source arrive in their order; otherwise a conditional event
//! at the later of the two posts decides. A receive that the trace cancels is certain of nothing at once, nor is any where the program is a
//! graph: operations that overlap send and post in any order.

use std::collections::BTreeMap;

use pdes_core::{LpId, Rank, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, RankTrace};

use super::matching::{Context, Receive, UnexpectedMessage};
use super::{PointToPoint, RequestId};
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::source::{CallEnd, Decision};
use crate::token::Message;

/// All messages to a rank and all its receives that are not matched.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mailbox {
    /// No pair is certain before its time.
    awaits_time: bool,
    /// The trace cancels receives.
    pub(crate) cancels: bool,
    /// Request of the receive that is posted next, if the trace cancels it: it takes no message before its time.
    pub(crate) cancelled: Option<RequestId>,
    unexpected: BTreeMap<SendOrder, UnexpectedMessage>,
    /// Posted receives, in the order of their posts, by time and round.
    receives: Vec<PostedReceive>,
}

/// Order of messages by the time of their send; at one instant, the order in which their senders take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SendOrder {
    at: SimTime,
    round: u32,
    from: Rank,
}

/// A posted receive, with the messages that it accepts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PostedReceive {
    pub(super) receive: Receive,
    pub(super) wanted: MatchFilter,
    /// Source of its message in the recorded run, where it is from any source.
    pub(super) recorded: Option<Rank>,
    /// It takes no message before its time.
    pub(super) awaits_time: bool,
}

/// Messages that a receive or a probe accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatchFilter {
    /// `None` for any.
    pub(crate) source: Option<Rank>,
    /// `None` for any.
    pub(super) tag: Option<u32>,
    pub(super) communicator: CommId,
}

/// A matched message and receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) from: Rank,
    pub(super) unexpected: UnexpectedMessage,
    pub(super) posted: PostedReceive,
}

impl MatchFilter {
    fn accepts(&self, from: Rank, message: &Message) -> bool {
        self.source.is_none_or(|source| source == from)
            && self.tag.is_none_or(|tag| tag == message.tag)
            && self.communicator == message.communicator
    }
}

impl PostedReceive {
    /// Returns the source whose messages it takes at once, unless an earlier receive does.
    fn certain_source(&self) -> Option<Rank> {
        self.wanted.source.filter(|_| !self.awaits_time)
    }
}

impl Mailbox {
    /// Creates the mailbox of a program.
    pub(super) fn new(trace: &RankTrace) -> Self {
        let (awaits_time, cancels) = (trace.graph().is_some(), trace.cancels_receives());
        Self { awaits_time, cancels, ..Self::default() }
    }

    /// Visits the messages to a rank and its receives in their order.
    pub(super) fn visit(&mut self, lp: LpId, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self { awaits_time: _, cancels: _, cancelled: _, unexpected, receives } = self;
        visitor.compare(&(unexpected.len(), receives.len()));
        let visited =
            std::mem::take(unexpected).into_iter().map(|(SendOrder { at: _, round, from }, mut message)| {
                visitor.compare(&from);
                // They are ordered by the times of their sends, however long ago these were.
                let tag = message.message.tag;
                message.visit(lp, (SimTime::ZERO, tag), visitor);
                (SendOrder { at: message.message.posted, round, from }, message)
            });
        *unexpected = visited.collect();
        for PostedReceive { receive, wanted, recorded, awaits_time } in receives {
            visitor.compare(&(*wanted, *recorded, *awaits_time));
            receive.visit({ receive.wanted }.tag(), visitor);
        }
    }

    /// Returns whether a posted receive is not matched.
    pub(super) fn has_receives(&self) -> bool {
        !self.receives.is_empty()
    }

    /// Adds a message; returns the pair that it makes, if that is certain.
    pub(super) fn arrive(&mut self, from: Rank, unexpected: UnexpectedMessage) -> Option<Pair> {
        let Message { posted, round, .. } = unexpected.message;
        let index = self.receives.iter().position(|queued| queued.wanted.accepts(from, &unexpected.message));
        let is_certain = |index: &usize| self.receives[*index].certain_source().is_some();
        if let Some(index) = index.filter(is_certain) {
            return Some(Pair { from, unexpected, posted: self.receives.remove(index) });
        }
        self.unexpected.insert(SendOrder { at: posted, round, from }, unexpected);
        None
    }

    /// Adds a receive; returns the pair that it makes, if that is certain.
    pub(super) fn post(
        &mut self,
        receive: Receive,
        wanted: MatchFilter,
        recorded: Option<Rank>,
    ) -> Option<Pair> {
        let awaits_time = self.awaits_time || self.cancelled.take() == Some(receive.request);
        let posted = PostedReceive { receive, wanted, recorded, awaits_time };
        let order = |posted: &PostedReceive| (posted.receive.posted, posted.receive.round);
        let index = self.receives.partition_point(|earlier| order(earlier) <= order(&posted));
        if self.receives.capacity() == 0 {
            // Most ranks wait for one message at a time: of a million, each byte counts.
            self.receives.reserve_exact(1);
        }
        self.receives.insert(index, posted);
        self.certain(index)
    }

    /// Removes and returns a pair that is certain, if there is one.
    pub(super) fn pop_certain(&mut self) -> Option<Pair> {
        (0..self.receives.len()).find_map(|index| self.certain(index))
    }

    /// Removes and returns the pair of a receive if it names its source and no earlier receive accepts its first message.
    fn certain(&mut self, index: usize) -> Option<Pair> {
        let posted = self.receives[index];
        let source = posted.certain_source()?;
        let accepts = |(sent, unexpected): &(&SendOrder, &UnexpectedMessage)| {
            sent.from == source && posted.wanted.accepts(source, &unexpected.message)
        };
        let (&sent, &unexpected) = self.unexpected.iter().find(accepts)?;
        let earlier = &self.receives[..index];
        if earlier.iter().any(|earlier| earlier.wanted.accepts(source, &unexpected.message)) {
            return None;
        }
        self.unexpected.remove(&sent);
        Some(Pair { from: source, unexpected, posted: self.receives.remove(index) })
    }

    /// Returns the time of the next pair, as far as it is known.
    pub(crate) fn due(&self) -> Option<SimTime> {
        self.next_pair().map(|(at, _, _)| at)
    }

    /// Removes and returns the pair that is due.
    pub(super) fn pop_due(&mut self) -> Option<Pair> {
        let (_, sent, index) = self.next_pair()?;
        let unexpected = self.unexpected.remove(&sent)?;
        Some(Pair { from: sent.from, unexpected, posted: self.receives.remove(index) })
    }

    /// Finds the pair with the earliest time. Each message in turn gets the first receive that accepts it and that no earlier
    /// message takes.
    fn next_pair(&self) -> Option<(SimTime, SendOrder, usize)> {
        let mut first: Option<(SimTime, SendOrder, usize)> = None;
        let mut taken = vec![false; self.receives.len()];
        let mut left = self.receives.len();
        for (&sent, unexpected) in &self.unexpected {
            if left == 0 || first.is_some_and(|(at, _, _)| at <= sent.at) {
                break;
            }
            let free = |index: &usize| !taken[*index];
            let accepts =
                |index: &usize| self.receives[*index].wanted.accepts(sent.from, &unexpected.message);
            let Some(index) = (0..self.receives.len()).filter(free).find(accepts) else { continue };
            (taken[index], left) = (true, left - 1);
            let at = sent.at.max(self.receives[index].receive.posted);
            if first.is_none_or(|(first, _, _)| at < first) {
                first = Some((at, sent, index));
            }
        }
        first
    }

    /// Returns the sources whose messages a receive or a probe accepts, each once, in the order of their first messages.
    pub(super) fn sources(&self, wanted: MatchFilter) -> Vec<Rank> {
        let mut sources = Vec::new();
        for (sent, unexpected) in &self.unexpected {
            if wanted.accepts(sent.from, &unexpected.message) && !sources.contains(&sent.from) {
                sources.push(sent.from);
            }
        }
        sources
    }

    /// Returns the first message that a probe finds: one that no posted receive takes, as far as is known.
    pub(super) fn first(&self, wanted: MatchFilter) -> Option<(Rank, &Message)> {
        let mut taken = vec![false; self.receives.len()];
        for (sent, unexpected) in &self.unexpected {
            let takes = |index: &usize| {
                !taken[*index] && self.receives[*index].wanted.accepts(sent.from, &unexpected.message)
            };
            match (0..self.receives.len()).find(takes) {
                Some(index) => taken[index] = true,
                None if wanted.accepts(sent.from, &unexpected.message) => {
                    return Some((sent.from, &unexpected.message));
                }
                None => {}
            }
        }
        None
    }

    /// Removes an unmatched receive; returns whether there was one.
    pub(crate) fn cancel_receive(&mut self, request: RequestId) -> bool {
        let index = self.receives.iter().position(|posted| posted.receive.request == request);
        index.map(|index| self.receives.remove(index)).is_some()
    }
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Matches the pair of the mailbox that is due, and all that are certain then; returns the request of the first if that is complete.
    pub(crate) fn match_due_pair(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let Some(due) = self.mailbox.as_mut().and_then(|mailbox| mailbox.pop_due()) else { return Ok(None) };
        if self.replay.sources.is_some() && due.posted.wanted.source.is_none() {
            let mut sources = vec![due.from];
            let others = self.mailbox.iter().flat_map(|mailbox| mailbox.sources(due.posted.wanted));
            sources.extend(others.filter(|other| *other != due.from));
            self.report(due.posted.receive.action, due.from, &sources);
        }
        let completed = self.start_pair(context, due, outbox)?;
        while let Some(certain) = self.mailbox.as_mut().and_then(|mailbox| mailbox.pop_certain()) {
            self.start_pair(context, certain, outbox)?;
        }
        Ok(completed)
    }

    /// Starts the transfer of a matched pair; returns the request if it is complete.
    pub(super) fn start_pair(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        pair: Pair,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let Pair { from, unexpected, posted } = pair;
        if posted.wanted.source.is_none() {
            let as_recorded = posted.recorded.is_none_or(|recorded| recorded == from);
            context.observers.outcome_decided(posted.receive.action, as_recorded);
        } else {
            self.report(posted.receive.action, from, &[from]);
        }
        let port = self.mailbox_port(context, from)?;
        let request = posted.receive.request;
        if let Some(statuses) = &mut self.statuses {
            statuses.insert(from, &unexpected.message, request);
        }
        Ok(self.start_transfer(context, port, &unexpected, posted.receive, outbox)?.then_some(request))
    }

    /// Reports that the receive of an action has taken a message of one of these sources.
    fn report(&self, action: u64, source: Rank, sources: &[Rank]) {
        if let Some(program) = &self.replay.sources {
            let end = CallEnd::Message { source: Some(source), sources };
            program.decided(&Decision { rank: self.me, action, end });
        }
    }

    /// Returns the port that holds the route of messages from a rank to the mailbox.
    pub(super) fn mailbox_port(
        &mut self,
        context: &RankContext<'t, M, A>,
        from: Rank,
    ) -> Result<usize, Failure<M::Error>> {
        let port = self.ports.port_of(Context::Mailbox, from);
        self.route_of_port(context, port)?;
        Ok(port)
    }
}
