//! Cancelled receives.

use trace_mmap::{Call, CallId};

use super::pending::{Pending, Poll};
use super::{Control, Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Cancels a receive where it was cancelled in the recorded run. Where it got a message there, it does so here, because the
    /// program went on to use the message.
    pub(super) fn cancel(&mut self, call: CallId) -> Outcome<M::Error> {
        match self.context.trace.call(call) {
            Call::Cancel { cancelled: true, .. } => {
                Ok(self.keep_pending(Pending::Poll { poll: Poll::Call(call), paid: true }))
            }
            _ => Ok(self.end(ActionKind::Cancel)),
        }
    }

    /// Cancels the receive, unless it has matched a message in the simulated run.
    pub(super) fn decide_cancel(&mut self, call: CallId) -> Control {
        let Call::Cancel { slot, .. } = *self.context.trace.call(call) else {
            unreachable!("the call is a cancellation");
        };
        let request = self.point_to_point.request(slot);
        let withdrawn = self.point_to_point.cancel_receive(&self.context, request);
        // A trace says so where the receive had matched, and nothing is decided then.
        if withdrawn || !self.context.trace.grows() {
            self.context.observers.outcome_decided(self.context.thread.action, withdrawn);
        }
        self.end(ActionKind::Cancel)
    }
}
