//! Probes: looks for messages that no receive has taken.

use pdes_core::SimTime;
use trace_mmap::{Call, CallId, Incoming, Source};

use super::mailbox::Wanted;
use super::partners::Partner;
use super::pending::{Look, Pending};
use super::{Outcome, RankProcess};
use crate::machine::Machine;
use crate::request::Awaited;
use crate::statistics::ActionKind;
use crate::token::{Lane, Message};
use crate::wait_state::WaitState;

impl<M: Machine> RankProcess<'_, M> {
    /// Waits until there is a message.
    pub(super) fn probe(&mut self, call: CallId, kind: ActionKind) -> Outcome<M::Error> {
        if self.probed_source(call) == Source::Nobody {
            return Ok(self.end(kind));
        }
        self.probe_any(call, kind, false)
    }

    /// Goes on once a message is certain to be the first one.
    pub(super) fn probe_any(&mut self, call: CallId, kind: ActionKind, granted: bool) -> Outcome<M::Error> {
        match self.first_probed(call) {
            Some(at) if granted => {
                self.gather_probed(call);
                self.wait_until(at, kind, Partner { ready: at, state: WaitState::LateSender });
                Ok(self.end(kind))
            }
            _ => Ok(self.hold(Pending::Probe { call, kind })),
        }
    }

    /// Looks whether there is a message by now.
    pub(super) fn iprobe(&mut self, call: CallId) -> Outcome<M::Error> {
        if self.is_reenacted() {
            return Ok(self.hold(Pending::Look { look: Look::Call(call), paid: false }));
        }
        self.strand.clock += self.world.parameters.iprobe;
        match self.trace.call(call) {
            Call::Iprobe { found: true, .. } => self.probe(call, ActionKind::Iprobe),
            _ => Ok(self.end(ActionKind::Iprobe)),
        }
    }

    /// Decides a look for a message that has been paid for. One that found a message in the recorded run waits for it.
    pub(super) fn decide_iprobe(&mut self, call: CallId) -> Outcome<M::Error> {
        let found = match self.probed_source(call) {
            Source::Nobody => true,
            _ => self.first_probed(call).is_some_and(|at| at <= self.strand.clock),
        };
        let was_found = matches!(self.trace.call(call), Call::Iprobe { found: true, .. });
        self.statistics.add_outcome(self.strand.action, found == was_found);
        if found {
            self.world.probes.succeed();
        } else if was_found {
            return self.probe(call, ActionKind::Iprobe);
        } else if self.world.parameters.test_grows {
            self.world.probes.fail();
        }
        Ok(self.end(ActionKind::Iprobe))
    }

    fn probed_source(&self, call: CallId) -> Source {
        match *self.trace.call(call) {
            Call::Probe { from } | Call::Iprobe { from, .. } => from,
            _ => unreachable!("only probes look for messages"),
        }
    }

    /// When the first message was sent that a probe finds, as far as is known. Where the trace says whose message it found,
    /// it is that rank's, because what follows in the trace receives it by name.
    pub(super) fn first_probed(&self, call: CallId) -> Option<SimTime> {
        self.first_message(call).map(|(_, message)| message.posted)
    }

    /// The first message that a probe finds, and how it came.
    pub(super) fn first_message(&self, call: CallId) -> Option<(Lane, &Message)> {
        let from = self.probed_source(call);
        let wanted = self.wanted(from)?;
        match (&self.mailbox, from) {
            (Some(mailbox), _) => {
                let (from, message) = mailbox.first(wanted)?;
                Some((Lane::Mailbox(from.get()), message))
            }
            (None, Source::Rank(channel)) => {
                let incoming = &self.trace.incoming()[channel.index()];
                let message = self.ports.first(incoming.port.index(), wanted.tag)?;
                Some((Lane::Port(incoming.port), message))
            }
            (None, _) => None,
        }
    }

    /// What a source accepts; `None` for nothing.
    pub(super) fn wanted(&self, from: Source) -> Option<Wanted> {
        match from {
            Source::Nobody => None,
            Source::Rank(channel) => Some(self.wanted_from(&self.trace.incoming()[channel.index()])),
            Source::Any { tag, communicator, recorded } => {
                let communicator = self.communicator(communicator);
                Some(Wanted { source: recorded, tag: tag.map(|tag| tag.get() as u32), communicator })
            }
        }
    }

    /// What an incoming channel accepts.
    pub(super) fn wanted_from(&self, incoming: &Incoming) -> Wanted {
        let communicator = self.communicator(incoming.communicator);
        Wanted { source: Some(incoming.peer), tag: incoming.tag.map(|tag| tag.get() as u32), communicator }
    }

    /// For whose message a probe waits.
    pub(super) fn probed(&self, call: CallId) -> Awaited {
        let source = self.wanted(self.probed_source(call)).and_then(|wanted| wanted.source);
        source.map_or(Awaited::AnySender, Awaited::Sender)
    }
}
