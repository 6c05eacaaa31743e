//! Tests and non-blocking probes: their prices, and the conditional events that grant them.

use pdes_core::SimDuration;
use trace_mmap::{Call, Slot};

use super::pending::{Look, Pending};
use super::world::Looks;
use super::{Outcome, RankProcess};
use crate::machine::Machine;
use crate::request::{Request, RequestId};
use crate::statistics::ActionKind;

impl<M: Machine> RankProcess<'_, M> {
    /// Tests a request where the trace has no outcome.
    pub(super) fn test(&mut self, slot: Slot) -> Outcome<M::Error> {
        let request = self.request(slot);
        match self.requests.get(request) {
            // A test after one that succeeded: the request is gone.
            Request::Inactive => Ok(self.end(ActionKind::Test)),
            Request::Pending(_) | Request::Complete(_) => {
                Ok(self.hold(Pending::Look { look: Look::Test { request }, paid: false }))
            }
        }
    }

    /// Pays for a poll, then carries it out. Both are conditional events, because the price depends on the polls of all ranks, and
    /// the outcome on what arrives before now.
    pub(super) fn look(&mut self, look: Look, paid: bool, granted: bool) -> Outcome<M::Error> {
        if !granted {
            return Ok(self.hold(Pending::Look { look, paid }));
        }
        if !paid {
            let (price, looks) = self.price(look);
            self.strand.clock += price * looks.factor();
            return Ok(self.hold(Pending::Look { look, paid: true }));
        }
        match look {
            Look::Test { request } => Ok(self.decide_test(request)),
            Look::Call(call) => match self.trace.call(call) {
                Call::Iprobe { .. } => self.decide_iprobe(call),
                Call::Cancel { .. } => Ok(self.decide_cancel(call)),
                _ => self.decide(call),
            },
        }
    }

    fn price(&self, look: Look) -> (SimDuration, &Looks) {
        let is_probe = match look {
            Look::Test { .. } => false,
            Look::Call(call) => matches!(self.trace.call(call), Call::Iprobe { .. }),
        };
        let world = self.world;
        if is_probe {
            (world.parameters.iprobe, &world.probes)
        } else {
            (world.parameters.test, &world.tests)
        }
    }

    fn decide_test(&mut self, request: RequestId) -> super::Flow {
        match self.requests.get(request) {
            Request::Complete(completion) if completion.at <= self.strand.clock => {
                self.requests.set(request, Request::Inactive);
                self.settle(request, completion, ActionKind::Test);
                self.world.tests.succeed();
            }
            _ if self.world.parameters.test_grows => self.world.tests.fail(),
            _ => {}
        }
        self.end(ActionKind::Test)
    }
}
