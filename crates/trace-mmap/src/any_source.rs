//! Receives from any source (`MPI_ANY_SOURCE`), and whether a program depends on whose messages they take.
//!
//! A trace has the course of one run: where the program answered the sender of a message, the trace sends to a rank. Such a program
//! does the right thing only if the receive takes the message of the recorded source. The trace does not say which of its actions
//! depend on a source, but the pattern does: an answer names the source that was last received from, again and again, while
//! other programs name the same ranks whatever the order in which messages came.

use std::collections::{BTreeMap, BTreeSet};

use pdes_core::Rank;

use crate::action::Action;
use crate::call::{Call, Indexed, Source, Visit};
use crate::channel::{InIdx, OutIdx, Slot};
use crate::trace::RankTrace;

/// The receives and probes from any source in a table of calls.
#[derive(Default)]
struct AnySources {
    /// Number of distinct ones.
    calls: usize,
    /// Number of those without a recorded source.
    unrecorded: usize,
    recorded: BTreeSet<Rank>,
}

impl Visit<'_, Indexed> for AnySources {
    fn source(&mut self, source: &Source) {
        if let Source::Any { recorded, .. } = source {
            self.calls += 1;
            self.unrecorded += usize::from(recorded.is_none());
            self.recorded.extend(recorded);
        }
    }
}

impl AnySources {
    fn of(trace: &RankTrace) -> Self {
        let mut found = Self::default();
        trace.calls().for_each(|call| call.visit(&mut found));
        found
    }
}

impl RankTrace {
    /// Returns whether some receive or probe is from any source, and whether the sources of all of them are recorded; `None` if there
    /// is none. Ranks with the same calls may share their table: the answer is then for all of them.
    pub fn any_sources_are_recorded(&self) -> Option<bool> {
        let AnySources { calls, unrecorded, .. } = AnySources::of(self);
        (calls > 0).then_some(unrecorded == 0)
    }

    /// Returns the sources of the messages that receives and probes from any source found in the recorded run, perhaps with those of
    /// other ranks.
    pub fn recorded_sources(&self) -> BTreeSet<Rank> {
        AnySources::of(self).recorded
    }

    /// Returns whether the program depends on the sources of the messages that its receives from any source took in the recorded run:
    /// whether most of what it then sends to one of these sources, or receives from it, is an answer to the last one. Reads
    /// all actions if several sources are recorded.
    pub fn depends_on_sources(&self) -> bool {
        let sources = self.recorded_sources();
        sources.len() > 1 && AnswerScan::new(self, sources).run()
    }
}

/// A persistent request.
#[derive(Clone, Copy)]
enum Persistent {
    Send(Option<OutIdx>),
    Receive(Source),
}

/// A scan of the actions of a rank for answers.
struct AnswerScan<'t> {
    trace: &'t RankTrace,
    sources: BTreeSet<Rank>,
    persistent: BTreeMap<Slot, Persistent>,
    /// Recorded source of each pending receive from any source.
    pending: BTreeMap<Slot, Rank>,
    /// Sources of the last messages from any source, after which no source has been named yet, or which are perhaps answered now.
    received: Vec<Rank>,
    /// Number of sources that were named since.
    named: usize,
    /// These begin with the sources in `received`, in their order, as far as they go.
    follow_order: bool,
    /// All of these are the last one in `received`.
    are_last: bool,
    answers: u64,
    contradictions: u64,
}

impl<'t> AnswerScan<'t> {
    fn new(trace: &'t RankTrace, sources: BTreeSet<Rank>) -> Self {
        Self {
            trace,
            sources,
            persistent: BTreeMap::new(),
            pending: BTreeMap::new(),
            received: Vec::new(),
            named: 0,
            follow_order: true,
            are_last: true,
            answers: 0,
            contradictions: 0,
        }
    }

    /// Returns whether there are more answers than cases in which other sources are named.
    fn run(mut self) -> bool {
        for action in self.trace.cursor() {
            self.visit(action);
        }
        self.judge();
        self.answers > self.contradictions
    }

    fn visit(&mut self, action: Action) {
        match action {
            Action::Send { to, .. } | Action::Isend { to, .. } => self.send(Some(to)),
            Action::Recv { from, .. } | Action::Irecv { from, .. } => self.receive_named(from),
            Action::SendRecv(id) => {
                let both = self.trace.send_recv(id);
                self.send(both.to);
                both.from.into_iter().for_each(|from| self.receive_named(from));
            }
            Action::Wait { slot } => self.complete(slot),
            Action::WaitAll => {
                let pending = std::mem::take(&mut self.pending);
                pending.into_values().for_each(|source| self.receive_from_any(source));
            }
            Action::Call(id) => self.call(self.trace.call(id)),
            _ => {}
        }
    }

    fn call(&mut self, call: &Call) {
        match *call {
            Call::Send { to, .. } | Call::Isend { to, .. } => self.send(to),
            Call::Recv { from, .. } => self.receive(from, None),
            Call::Irecv { from, slot, .. } => self.receive(from, Some(slot)),
            Call::SendRecv { to, from, .. } => {
                self.send(to);
                self.receive(from, None);
            }
            Call::SendInit { to, slot, .. } => {
                self.persistent.insert(slot, Persistent::Send(to));
            }
            Call::RecvInit { from, slot, .. } => {
                self.persistent.insert(slot, Persistent::Receive(from));
            }
            Call::Start { ref slots } => {
                for slot in slots {
                    match self.persistent.get(slot) {
                        Some(&Persistent::Send(to)) => self.send(to),
                        Some(&Persistent::Receive(from)) => self.receive(from, Some(*slot)),
                        None => {}
                    }
                }
            }
            ref call => {
                let completed = call.completion().map_or(&[][..], |completion| completion.done());
                completed.iter().for_each(|&slot| self.complete(slot));
            }
        }
    }

    fn send(&mut self, to: Option<OutIdx>) {
        to.into_iter().for_each(|to| self.name(self.trace.outgoing()[to.index()].peer));
    }

    fn receive_named(&mut self, from: InIdx) {
        self.name(self.trace.incoming()[from.index()].peer);
    }

    /// Posts a receive; without a slot, it is complete at once.
    fn receive(&mut self, from: Source, slot: Option<Slot>) {
        match (from, slot) {
            (Source::Rank(from), _) => self.receive_named(from),
            (Source::Any { recorded: Some(source), .. }, Some(slot)) => {
                self.pending.insert(slot, source);
            }
            (Source::Any { recorded: Some(source), .. }, None) => self.receive_from_any(source),
            (Source::Any { recorded: None, .. } | Source::ProcNull, _) => {}
        }
    }

    fn complete(&mut self, slot: Slot) {
        if let Some(source) = self.pending.remove(&slot) {
            self.receive_from_any(source);
        }
    }

    fn receive_from_any(&mut self, source: Rank) {
        if self.named > 0 {
            self.judge();
        }
        self.received.push(source);
    }

    /// Counts a message to a rank, or a receive from it.
    fn name(&mut self, peer: Rank) {
        let Some(last) = self.received.last() else { return };
        if self.sources.contains(&peer) {
            self.follow_order &= self.received.get(self.named).is_none_or(|source| *source == peer);
            self.are_last &= *last == peer;
            self.named += 1;
        }
    }

    /// Decides whether the sources that were named after the last messages are an answer.
    fn judge(&mut self) {
        let follow_order = self.follow_order && self.named >= self.received.len();
        // A program that names all its sources, in an order that happens to be that of the messages, need not depend on it.
        let is_choice = || match self.received.len() {
            0 | 1 => true,
            _ => self.received.iter().collect::<BTreeSet<_>>().len() < self.sources.len(),
        };
        if self.named > 0 {
            if self.are_last || (follow_order && is_choice()) {
                self.answers += 1;
            } else if !follow_order {
                self.contradictions += 1;
            }
        }
        self.received.clear();
        (self.named, self.follow_order, self.are_last) = (0, true, true);
    }
}
