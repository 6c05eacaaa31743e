//! Remainder of an action that waits.

use pdes_core::Pause;
use serde::{Deserialize, Serialize};
use trace_mmap::CallId;

use super::{Control, Outcome, RankProcess};
use crate::context::RankOutbox;
use crate::machine::Machine;
use crate::observer::{ActionSpan, Analysis};
use crate::point_to_point::{OperationIndex, Request, RequestId};
use crate::statistics::ActionKind;

/// Remainder of the action in progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Pending {
    /// No action is in progress.
    Nothing,
    /// An action waits for one request.
    One { request: RequestId, kind: ActionKind },
    /// An action waits for all requests in `from..to`, in the order in which they end. None is pending before `scanned`.
    All { from: RequestId, to: RequestId, scanned: RequestId, kind: ActionKind },
    /// An action waits for all requests of a call, none of which is pending before number `scanned`.
    RequestList { call: CallId, scanned: usize, kind: ActionKind },
    /// A blocking collective operation.
    Operation { index: OperationIndex },
    /// The end of the trace waits for requests that are still pending, from number `next` on.
    AtEnd { next: usize },
    /// The machine does work for the rank, or has done it.
    Work { kind: ActionKind, done: bool },
    /// The machine copies data from the accelerator of the region that the program leaves for that of a call site, or to that of the
    /// region that begins there, or has done it.
    Copy { site: u32, leaves: bool, done: bool },
    /// The machine does a step of an access to a file, or has done it; `steps_done` includes it.
    Access { call: CallId, offset: u64, steps_done: u8, done: bool },
    /// A call completes those of its requests that are complete first; `left` are still to be chosen. `differs` from the recorded
    /// outcome already, or not.
    First { call: CallId, left: u32, kind: ActionKind, differs: bool },
    /// A poll of requests or messages waits to be granted: first to pay for it, then to carry it out.
    Poll { poll: Poll, paid: bool },
    /// Operations of a graph are in progress, or are to be started.
    Graph,
    /// A blocking probe.
    Probe { call: CallId, kind: ActionKind },
}

/// A poll whose price and outcome depend on earlier events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Poll {
    /// Test of one request, with no recorded outcome.
    Test { request: RequestId },
    /// Test or probe of a call, with a recorded outcome.
    Call(CallId),
}

impl Pending {
    pub(super) fn all(from: RequestId, to: RequestId, kind: ActionKind) -> Self {
        Self::All { from, to, scanned: from, kind }
    }

    /// Returns whether an action is in progress.
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Returns whether a conditional event decides the action.
    #[inline]
    pub(super) fn depends_on_time(&self) -> bool {
        matches!(self, Self::First { .. } | Self::Poll { .. } | Self::Probe { .. })
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Resumes the action in progress, if there is one; a graph takes steps.
    #[inline]
    pub(super) fn resume_action(
        &mut self,
        granted: bool,
        steps: &mut u32,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => Ok(Control::Continue),
            Pending::Work { kind, done: true } => Ok(self.end(kind)),
            pending @ Pending::Work { .. } => Ok(self.keep_pending(pending)),
            Pending::Copy { site, leaves, done: true } => self.resume_copy(site, leaves, outbox),
            pending @ Pending::Copy { .. } => Ok(self.keep_pending(pending)),
            Pending::Access { call, offset, steps_done, done: true } => {
                self.resume_access(call, offset, steps_done, outbox)
            }
            pending @ Pending::Access { .. } => Ok(self.keep_pending(pending)),
            Pending::Operation { index } => self.resume_blocking_operation(index, outbox),
            Pending::Graph => self.resume_graph(steps, outbox),
            Pending::First { call, left, kind, differs } => {
                self.choose_first(call, left, kind, differs, granted)
            }
            Pending::Poll { poll, paid } => self.poll(poll, paid, granted),
            Pending::Probe { call, kind } => self.continue_probe(call, kind, granted),
            pending => self.complete(pending),
        }
    }

    /// Completes the only request of an action, or keeps the action pending while it is.
    #[inline]
    pub(super) fn complete_one(&mut self, request: RequestId, kind: ActionKind) -> Control {
        match self.point_to_point.requests.get(request) {
            Request::Complete(completion) => {
                self.point_to_point.requests.set(request, Request::Inactive);
                self.point_to_point.settle(&mut self.context, request, completion, kind);
                self.end_completion(kind, None)
            }
            // The request was completed by a test, or its peer is MPI_PROC_NULL.
            Request::Inactive => self.end_completion(kind, None),
            Request::Pending(_) => self.block(Pending::One { request, kind }, request),
        }
    }

    /// Completes the requests of an action, or keeps the action pending while one of them is.
    pub(super) fn complete(&mut self, pending: Pending) -> Outcome<M::Error> {
        match pending {
            Pending::One { request, kind } => Ok(self.complete_one(request, kind)),
            Pending::All { from, to, scanned, kind } => {
                match self.point_to_point.requests.first_pending(scanned, to) {
                    Some(missing) => {
                        Ok(self.block(Pending::All { from, to, scanned: missing, kind }, missing))
                    }
                    None => {
                        self.point_to_point.settle_range(&mut self.context, (from, to), kind);
                        Ok(self.end_completion(kind, None))
                    }
                }
            }
            Pending::RequestList { call, scanned, kind } => Ok(self.complete_listed(call, scanned, kind)),
            Pending::AtEnd { next } => self.complete_at_end(next),
            _ => unreachable!("the pending action waits for requests"),
        }
    }

    pub(super) fn block(&mut self, pending: Pending, missing: RequestId) -> Control {
        self.pending = pending;
        self.awaited = Some(missing);
        self.blocked()
    }

    /// Returns whether the program can resume, now that the awaited request is complete; otherwise it waits for the next request of
    /// its action.
    #[inline]
    pub(super) fn is_last_awaited(&mut self) -> bool {
        let Pending::All { to, scanned, .. } = &mut self.pending else { return true };
        let Some(missing) = self.point_to_point.requests.first_pending(*scanned, *to) else { return true };
        *scanned = missing;
        self.awaited = Some(missing);
        false
    }

    fn complete_at_end(&mut self, mut next: usize) -> Outcome<M::Error> {
        let trace = self.context.trace;
        while let Some(&slot) = trace.pending_at_end().get(next) {
            let request = self.point_to_point.request(slot);
            match self.point_to_point.requests.get(request) {
                Request::Pending(_) => return Ok(self.block(Pending::AtEnd { next }, request)),
                Request::Complete(completion) => {
                    self.point_to_point.requests.set(request, Request::Inactive);
                    self.point_to_point.settle(&mut self.context, request, completion, ActionKind::Finalize);
                }
                Request::Inactive => {}
            }
            next += 1;
        }
        let (kind, begin, end) = (ActionKind::Finalize, self.action_begin, self.context.thread.clock);
        self.context.observers.rank_ended(&ActionSpan { kind, begin, end });
        self.action_begin = end;
        Ok(Control::Pause(Pause::Finished))
    }
}
