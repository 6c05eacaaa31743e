//! Tests and non-blocking probes: their prices, and the conditional events that grant them.

use pdes_core::SimDuration;
use trace_mmap::{Call, Slot};

use super::pending::{Pending, Poll};
use super::{Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{Request, RequestId};
use crate::replay::FailedPolls;
use crate::statistics::ActionKind;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Tests a request where the trace has no outcome.
    pub(super) fn test(&mut self, slot: Slot) -> Outcome<M::Error> {
        let request = self.point_to_point.request(slot);
        match self.point_to_point.requests.get(request) {
            // A test after one that succeeded: the request is gone.
            Request::Inactive => Ok(self.end(ActionKind::Test)),
            Request::Pending(_) | Request::Complete(_) => Ok(self.begin_poll(Poll::Test { request })),
        }
    }

    /// Begins a poll. A price that does not depend on the polls of other ranks is paid at once, without a conditional event.
    pub(super) fn begin_poll(&mut self, poll: Poll) -> super::Control {
        let paid = !self.context.replay.parameters.test_grows;
        if paid {
            self.context.spend(self.poll_price(poll).0);
        }
        self.keep_pending(Pending::Poll { poll, paid })
    }

    /// Pays for a poll, then carries it out. Both are conditional events, because a price that grows depends on the polls of all ranks,
    /// and the outcome on what arrives before now.
    pub(super) fn poll(&mut self, poll: Poll, paid: bool, granted: bool) -> Outcome<M::Error> {
        if !granted {
            return Ok(self.keep_pending(Pending::Poll { poll, paid }));
        }
        if !paid {
            let (price, failed_polls) = self.poll_price(poll);
            self.context.spend(price * failed_polls.price_factor());
            return Ok(self.keep_pending(Pending::Poll { poll, paid: true }));
        }
        match poll {
            Poll::Test { request } => Ok(self.decide_test(request)),
            Poll::Call(call) => match self.context.trace.call(call) {
                Call::Iprobe { .. } => self.decide_iprobe(call),
                Call::Cancel { .. } => Ok(self.decide_cancel(call)),
                _ => self.decide_test_call(call),
            },
        }
    }

    fn poll_price(&self, poll: Poll) -> (SimDuration, &FailedPolls) {
        let is_probe = match poll {
            Poll::Test { .. } => false,
            Poll::Call(call) => matches!(self.context.trace.call(call), Call::Iprobe { .. }),
        };
        let replay = self.context.replay;
        if is_probe {
            (replay.parameters.iprobe, &replay.probes)
        } else {
            (replay.parameters.test, &replay.tests)
        }
    }

    fn decide_test(&mut self, request: RequestId) -> super::Control {
        match self.point_to_point.requests.get(request) {
            Request::Complete(completion) if completion.at <= self.context.thread.clock => {
                self.point_to_point.requests.set(request, Request::Inactive);
                self.point_to_point.settle(&mut self.context, request, completion, ActionKind::Test);
                self.context.replay.tests.record_success();
            }
            _ if self.context.replay.parameters.test_grows => self.context.replay.tests.record_failure(),
            _ => {}
        }
        self.end(ActionKind::Test)
    }
}
