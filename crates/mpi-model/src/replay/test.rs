//! Tests and non-blocking probes: their prices, and the conditional events that grant them.

use pdes_core::SimDuration;
use trace_mmap::{Call, Slot};

use super::pending::{Pending, Poll};
use super::shared_state::FailedPolls;
use super::{Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::request::{Request, RequestId};
use crate::statistics::ActionKind;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Tests a request where the trace has no outcome.
    pub(super) fn test(&mut self, slot: Slot) -> Outcome<M::Error> {
        let request = self.request(slot);
        match self.requests.get(request) {
            // A test after one that succeeded: the request is gone.
            Request::Inactive => Ok(self.end(ActionKind::Test)),
            Request::Pending(_) | Request::Complete(_) => {
                Ok(self.keep_pending(Pending::Poll { poll: Poll::Test { request }, paid: false }))
            }
        }
    }

    /// Pays for a poll, then carries it out. Both are conditional events, because the price depends on the polls of all ranks, and
    /// the outcome on what arrives before now.
    pub(super) fn poll(&mut self, poll: Poll, paid: bool, granted: bool) -> Outcome<M::Error> {
        if !granted {
            return Ok(self.keep_pending(Pending::Poll { poll, paid }));
        }
        if !paid {
            let (price, failed_polls) = self.poll_price(poll);
            self.thread.clock += price * failed_polls.price_factor();
            return Ok(self.keep_pending(Pending::Poll { poll, paid: true }));
        }
        match poll {
            Poll::Test { request } => Ok(self.decide_test(request)),
            Poll::Call(call) => match self.trace.call(call) {
                Call::Iprobe { .. } => self.decide_iprobe(call),
                Call::Cancel { .. } => Ok(self.decide_cancel(call)),
                _ => self.decide_test_call(call),
            },
        }
    }

    fn poll_price(&self, poll: Poll) -> (SimDuration, &FailedPolls) {
        let is_probe = match poll {
            Poll::Test { .. } => false,
            Poll::Call(call) => matches!(self.trace.call(call), Call::Iprobe { .. }),
        };
        let replay = self.replay;
        if is_probe {
            (replay.parameters.iprobe, &replay.probes)
        } else {
            (replay.parameters.test, &replay.tests)
        }
    }

    fn decide_test(&mut self, request: RequestId) -> super::Control {
        match self.requests.get(request) {
            Request::Complete(completion) if completion.at <= self.thread.clock => {
                self.requests.set(request, Request::Inactive);
                self.settle(request, completion, ActionKind::Test);
                self.replay.tests.record_success();
            }
            _ if self.replay.parameters.test_grows => self.replay.tests.record_failure(),
            _ => {}
        }
        self.end(ActionKind::Test)
    }
}
