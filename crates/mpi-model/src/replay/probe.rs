//! Probes for unexpected messages.

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
    /// Begins a blocking probe.
    pub(super) fn probe(&mut self, call: CallId, kind: ActionKind) -> Outcome<M::Error> {
        if self.probed_source(call) == Source::Nobody {
            return Ok(self.end(kind));
        }
        self.probe_any(call, kind, false)
    }

    /// Ends a probe once a message is certain to be the first one.
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

    /// Begins a non-blocking probe.
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

    /// Decides a non-blocking probe that has been paid for. One that found a message in the recorded run waits for it.
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
            _ => unreachable!("the call is a probe"),
        }
    }

    /// Returns the send time of the first message that a probe finds, as far as it is known. Where the trace has the source of the
    /// message, it is a message of that rank, because the trace then receives it by name.
    pub(super) fn first_probed(&self, call: CallId) -> Option<SimTime> {
        self.first_message(call).map(|(_, message)| message.posted)
    }

    /// Returns the first message that a probe finds, and its queue.
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

    /// Returns the filter of a source; `None` for `MPI_PROC_NULL`.
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

    /// Returns the filter of an incoming channel.
    pub(super) fn wanted_from(&self, incoming: &Incoming) -> Wanted {
        let communicator = self.communicator(incoming.communicator);
        Wanted { source: Some(incoming.peer), tag: incoming.tag.map(|tag| tag.get() as u32), communicator }
    }

    /// Returns the event for which a probe waits.
    pub(super) fn probed(&self, call: CallId) -> Awaited {
        let source = self.wanted(self.probed_source(call)).and_then(|wanted| wanted.source);
        source.map_or(Awaited::AnySender, Awaited::Sender)
    }
}
