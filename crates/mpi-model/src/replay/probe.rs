//! Probes for unexpected messages.

use pdes_core::{Rank, SimTime};
use trace_mmap::{Call, CallId, Incoming, Source};

use super::mailbox::MatchFilter;
use super::pending::{Pending, Poll};
use super::{Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::request::{Awaited, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Message, ReceiveQueue};

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Begins a blocking probe.
    pub(super) fn probe(&mut self, call: CallId, kind: ActionKind) -> Outcome<M::Error> {
        if self.probed_source(call) == Source::ProcNull {
            return Ok(self.end(kind));
        }
        self.continue_probe(call, kind, false)
    }

    /// Ends a probe once a message is certain to be the first one.
    pub(super) fn continue_probe(
        &mut self,
        call: CallId,
        kind: ActionKind,
        granted: bool,
    ) -> Outcome<M::Error> {
        match self.first_probed(call) {
            Some(at) if granted => {
                // A probe blocks: no receive does so.
                let request = self.requests.blocking_receive();
                self.report_probed(call, request);
                self.wait_for(Some(request), at, kind);
                Ok(self.end(kind))
            }
            _ => Ok(self.keep_pending(Pending::Probe { call, kind })),
        }
    }

    fn report_probed(&mut self, call: CallId, request: RequestId) {
        if let Some((queue, &message)) = self.first_message(call) {
            let from = match queue {
                ReceiveQueue::Port(port) => self.point_to_point.ports.get(port.index()).peer,
                ReceiveQueue::Collective(from) | ReceiveQueue::Mailbox(from) | ReceiveQueue::Time(from) => {
                    Rank::new(from)
                }
            };
            self.observers.message_probed(request, from, queue, &message);
        }
    }

    /// Begins a non-blocking probe.
    pub(super) fn iprobe(&mut self, call: CallId) -> Outcome<M::Error> {
        if self.is_reenacted() {
            return Ok(self.keep_pending(Pending::Poll { poll: Poll::Call(call), paid: false }));
        }
        self.thread.clock += self.replay.parameters.iprobe;
        match self.trace.call(call) {
            Call::Iprobe { found: true, .. } => self.probe(call, ActionKind::Iprobe),
            _ => Ok(self.end(ActionKind::Iprobe)),
        }
    }

    /// Decides a non-blocking probe that has been paid for. One that found a message in the recorded run waits for it.
    pub(super) fn decide_iprobe(&mut self, call: CallId) -> Outcome<M::Error> {
        let found = match self.probed_source(call) {
            Source::ProcNull => true,
            _ => self.first_probed(call).is_some_and(|at| at <= self.thread.clock),
        };
        let was_found = matches!(self.trace.call(call), Call::Iprobe { found: true, .. });
        self.observers.outcome_decided(self.thread.action, found == was_found);
        if found {
            self.replay.probes.record_success();
        } else if was_found {
            return self.probe(call, ActionKind::Iprobe);
        } else if self.replay.parameters.test_grows {
            self.replay.probes.record_failure();
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
    pub(super) fn first_message(&self, call: CallId) -> Option<(ReceiveQueue, &Message)> {
        let from = self.probed_source(call);
        let filter = self.filter_of(from)?;
        match (&self.mailbox, from) {
            (Some(mailbox), _) => {
                let (from, message) = mailbox.first(filter)?;
                Some((ReceiveQueue::Mailbox(from.get()), message))
            }
            (None, Source::Rank(channel)) => {
                let incoming = &self.trace.incoming()[channel.index()];
                let message =
                    self.point_to_point.ports.first_unexpected(incoming.port.index(), filter.tag)?;
                Some((ReceiveQueue::Port(incoming.port), message))
            }
            (None, _) => None,
        }
    }

    /// Returns the filter of a source; `None` for `MPI_PROC_NULL`.
    pub(super) fn filter_of(&self, from: Source) -> Option<MatchFilter> {
        match from {
            Source::ProcNull => None,
            Source::Rank(channel) => Some(self.channel_filter(&self.trace.incoming()[channel.index()])),
            Source::Any { tag, communicator, recorded } => {
                let communicator = self.communicator(communicator);
                Some(MatchFilter { source: recorded, tag: tag.map(|tag| tag.get() as u32), communicator })
            }
        }
    }

    /// Returns the filter of an incoming channel.
    pub(super) fn channel_filter(&self, incoming: &Incoming) -> MatchFilter {
        let communicator = self.communicator(incoming.communicator);
        MatchFilter {
            source: Some(incoming.peer),
            tag: incoming.tag.map(|tag| tag.get() as u32),
            communicator,
        }
    }

    /// Returns the event for which a probe waits.
    pub(super) fn probe_awaits(&self, call: CallId) -> Awaited {
        let source = self.filter_of(self.probed_source(call)).and_then(|filter| filter.source);
        source.map_or(Awaited::AnySender, Awaited::Sender)
    }
}
