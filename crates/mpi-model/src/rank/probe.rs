//! Probes for unexpected messages.

use pdes_core::SimTime;
use trace_mmap::{Call, CallId, Source};

use super::pending::{Pending, Poll};
use super::{Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::Awaited;
use crate::source::{CallEnd, Decision};
use crate::statistics::ActionKind;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Begins a blocking probe.
    pub(super) fn probe(&mut self, call: CallId, kind: ActionKind) -> Outcome<M::Error> {
        if self.probed_source(call) == Source::ProcNull {
            return Ok(self.end_completion(kind, None));
        }
        let from = self.probed_source(call);
        self.point_to_point.count_kept_source(&mut self.context, from);
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
                let request = self.point_to_point.requests.blocking_receive();
                let from = self.probed_source(call);
                self.keep_found(from);
                self.report_probe(from, true);
                self.point_to_point.report_probed(&mut self.context, from, request);
                self.point_to_point.wait_for(&mut self.context, Some(request), at, kind);
                Ok(self.end_completion(kind, None))
            }
            _ => Ok(self.keep_pending(Pending::Probe { call, kind })),
        }
    }

    /// Begins a non-blocking probe.
    pub(super) fn iprobe(&mut self, call: CallId) -> Outcome<M::Error> {
        if self.point_to_point.is_reenacted() {
            return Ok(self.begin_poll(Poll::Call(call)));
        }
        self.context.spend(self.context.replay.parameters.iprobe);
        match self.context.trace.call(call) {
            Call::Iprobe { found: true, .. } => self.probe(call, ActionKind::Iprobe),
            _ => Ok(self.end(ActionKind::Iprobe)),
        }
    }

    /// Decides a non-blocking probe that has been paid for. One that found a message in the recorded run waits for it.
    pub(super) fn decide_iprobe(&mut self, call: CallId) -> Outcome<M::Error> {
        let found = match self.probed_source(call) {
            Source::ProcNull => true,
            _ => self.first_probed(call).is_some_and(|at| at <= self.context.thread.clock),
        };
        let was_found = matches!(self.context.trace.call(call), Call::Iprobe { found: true, .. });
        let is_recorded = found == was_found || self.context.trace.grows();
        self.context.observers.outcome_decided(self.context.thread.action, is_recorded);
        self.report_probe(self.probed_source(call), found);
        if found {
            let from = self.probed_source(call);
            self.keep_found(from);
            self.point_to_point.count_kept_source(&mut self.context, from);
            self.context.replay.probes.record_success();
        } else if was_found {
            return self.probe(call, ActionKind::Iprobe);
        } else if self.context.replay.parameters.test_grows {
            self.context.replay.probes.record_failure();
        }
        Ok(self.end(ActionKind::Iprobe))
    }

    /// Tells a program that runs how a probe has ended.
    fn report_probe(&self, from: Source, found: bool) {
        if let Some(program) = &self.context.replay.sources {
            let first = self.point_to_point.first_message(&self.context, from).filter(|_| found);
            let source = first.map(|(queue, _)| self.point_to_point.sender_to(queue));
            let sources = self.point_to_point.probed_sources(&self.context, from);
            let end = CallEnd::Message { source, sources: &sources };
            program.decided(&Decision { rank: self.context.me, action: self.context.thread.action, end });
        }
    }

    fn probed_source(&self, call: CallId) -> Source {
        match *self.context.trace.call(call) {
            Call::Probe { from } | Call::Iprobe { from, .. } => from,
            _ => unreachable!("the call is a probe"),
        }
    }

    /// Returns the send time of the first message that a probe finds, as far as it is known.
    pub(super) fn first_probed(&self, call: CallId) -> Option<SimTime> {
        let found = self.point_to_point.first_message(&self.context, self.probed_source(call));
        found.map(|(_, message)| message.posted)
    }

    /// Returns the event for which a probe waits.
    pub(super) fn probe_awaits(&self, call: CallId) -> Awaited {
        let source = self.context.filter_of(self.probed_source(call)).and_then(|filter| filter.source);
        source.map_or(Awaited::AnySender, Awaited::Sender)
    }
}
