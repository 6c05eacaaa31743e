//! Matching at a rank that receives from any source.
//!
//! Messages prefer the receive that was posted first, receives the message that was sent first: matching is a stable
//! marriage with common preferences on both sides, which has one solution, whatever the order in which pairs are found.
//! A pair is certain once no message can come any more that was sent earlier. Where the first receive that accepts a
//! message names its source, that is at once, because messages of one source come in their order; else a conditional event
//! at the later of the two posts decides. At a rank that cancels receives nothing is certain at once.

use std::collections::BTreeMap;

use pdes_core::{Outbox, Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::CommId;

use super::{Failure, RankProcess};
use crate::machine::Machine;
use crate::matching::{Context, Letter, Receive};
use crate::request::RequestId;
use crate::token::{Message, Token};

/// All messages to a rank and all its receives that have not met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Mailbox {
    /// Whether receives may be withdrawn before their messages are sent.
    withdraws: bool,
    letters: BTreeMap<Sent, Letter>,
    /// In the order in which they were posted.
    receives: Vec<Posted>,
}

/// Orders messages by when they were sent; those of one instant as their senders take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Sent {
    at: SimTime,
    round: u32,
    from: Rank,
}

/// A receive with what it accepts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Posted {
    pub(super) receive: Receive,
    pub(super) wanted: Wanted,
    /// Whose message it took in the recorded run, where it is from any source.
    pub(super) recorded: Option<Rank>,
}

/// Which messages a receive or a probe accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wanted {
    /// `None` for any.
    pub(super) source: Option<Rank>,
    /// `None` for any.
    pub(super) tag: Option<u32>,
    pub(super) communicator: CommId,
}

/// A message and the receive that gets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) from: Rank,
    pub(super) letter: Letter,
    pub(super) posted: Posted,
}

impl Wanted {
    fn accepts(&self, from: Rank, message: &Message) -> bool {
        self.source.is_none_or(|source| source == from)
            && self.tag.is_none_or(|tag| tag == message.tag)
            && self.communicator == message.communicator
    }
}

impl Mailbox {
    /// Makes the mailbox of a rank that cancels receives, or does not.
    pub(super) fn new(withdraws: bool) -> Self {
        Self { withdraws, ..Self::default() }
    }

    /// Takes a message in; returns the pair that it makes, if that is certain.
    pub(super) fn arrive(&mut self, from: Rank, letter: Letter) -> Option<Pair> {
        let Message { posted: at, round, .. } = letter.message;
        let index = self.receives.iter().position(|posted| posted.wanted.accepts(from, &letter.message));
        let is_certain = |index: &usize| !self.withdraws && self.receives[*index].wanted.source.is_some();
        if let Some(index) = index.filter(is_certain) {
            return Some(Pair { from, letter, posted: self.receives.remove(index) });
        }
        self.letters.insert(Sent { at, round, from }, letter);
        None
    }

    /// Takes a receive in; returns the pair that it makes, if that is certain.
    pub(super) fn post(&mut self, posted: Posted) -> Option<Pair> {
        self.receives.push(posted);
        self.certain(self.receives.len() - 1)
    }

    /// Takes out a pair that is certain, if there is one.
    pub(super) fn pop_certain(&mut self) -> Option<Pair> {
        (0..self.receives.len()).find_map(|index| self.certain(index))
    }

    /// Takes out the pair of a receive if it names the source, and if no earlier receive accepts its first message.
    fn certain(&mut self, index: usize) -> Option<Pair> {
        let posted = self.receives[index];
        let source = posted.wanted.source.filter(|_| !self.withdraws)?;
        let accepts = |(sent, letter): &(&Sent, &Letter)| {
            sent.from == source && posted.wanted.accepts(source, &letter.message)
        };
        let (&sent, &letter) = self.letters.iter().find(accepts)?;
        let earlier = &self.receives[..index];
        if earlier.iter().any(|earlier| earlier.wanted.accepts(source, &letter.message)) {
            return None;
        }
        self.letters.remove(&sent);
        Some(Pair { from: source, letter, posted: self.receives.remove(index) })
    }

    /// Returns when the next pair is made, as far as is known.
    pub(super) fn due(&self) -> Option<SimTime> {
        self.next_pair().map(|(at, _, _)| at)
    }

    /// Takes out the pair that is due.
    pub(super) fn pop_due(&mut self) -> Option<Pair> {
        let (_, sent, index) = self.next_pair()?;
        let letter = self.letters.remove(&sent)?;
        Some(Pair { from: sent.from, letter, posted: self.receives.remove(index) })
    }

    /// Finds the pair that is made first: of the messages in their order, each with the first receive that accepts it
    /// and that none before it takes.
    fn next_pair(&self) -> Option<(SimTime, Sent, usize)> {
        let mut first: Option<(SimTime, Sent, usize)> = None;
        let mut taken = vec![false; self.receives.len()];
        let mut left = self.receives.len();
        for (&sent, letter) in &self.letters {
            if left == 0 || first.is_some_and(|(at, _, _)| at <= sent.at) {
                break;
            }
            let free = |index: &usize| !taken[*index];
            let accepts = |index: &usize| self.receives[*index].wanted.accepts(sent.from, &letter.message);
            let Some(index) = (0..self.receives.len()).filter(free).find(accepts) else { continue };
            (taken[index], left) = (true, left - 1);
            let at = sent.at.max(self.receives[index].receive.posted);
            if first.is_none_or(|(first, _, _)| at < first) {
                first = Some((at, sent, index));
            }
        }
        first
    }

    /// Returns the first message that a probe finds: one that no receive takes, as far as is known.
    pub(super) fn first(&self, wanted: Wanted) -> Option<(Rank, &Message)> {
        let mut taken = vec![false; self.receives.len()];
        for (sent, letter) in &self.letters {
            let takes = |index: &usize| {
                !taken[*index] && self.receives[*index].wanted.accepts(sent.from, &letter.message)
            };
            match (0..self.receives.len()).find(takes) {
                Some(index) => taken[index] = true,
                None if wanted.accepts(sent.from, &letter.message) => {
                    return Some((sent.from, &letter.message));
                }
                None => {}
            }
        }
        None
    }

    /// Takes a receive back that has got no message.
    pub(super) fn withdraw(&mut self, request: RequestId) -> bool {
        let index = self.receives.iter().position(|posted| posted.receive.request == request);
        index.map(|index| self.receives.remove(index)).is_some()
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Makes the pair that is due where the granted event is its; returns whether it was.
    pub(super) fn open_mail(
        &mut self,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some(due) = self.mailbox.as_ref().and_then(|mailbox| mailbox.due()) else { return Ok(false) };
        if [self.outcome_due(), self.look_due()].into_iter().flatten().any(|other| other < due) {
            return Ok(false);
        }
        let mut pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.pop_due());
        while let Some(found) = pair {
            self.pair(found, outbox)?;
            pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.pop_certain());
        }
        Ok(true)
    }

    /// Lets a message and a receive meet; returns the request if it is complete.
    pub(super) fn pair(
        &mut self,
        pair: Pair,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let Pair { from, letter, posted } = pair;
        if posted.wanted.source.is_none() {
            let as_recorded = posted.recorded.is_none_or(|recorded| recorded == from);
            self.statistics.add_outcome(posted.receive.action, as_recorded);
        }
        let port = self.mail_port(from)?;
        let request = posted.receive.request;
        Ok(self.matched(port, &letter, posted.receive, outbox)?.then_some(request))
    }

    /// Returns the port that has the path of messages from a rank to the mailbox.
    pub(super) fn mail_port(&mut self, from: Rank) -> Result<usize, Failure<M::Error>> {
        let port = self.ports.of(Context::Mailbox, from);
        self.path(port)?;
        Ok(port)
    }
}
