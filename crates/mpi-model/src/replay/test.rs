//! Tests of requests, whose price and outcome depend on simulated time.

use std::sync::atomic::Ordering;

use pdes_core::Pause;
use trace_mmap::Slot;

use super::pending::Pending;
use super::{Flow, Outcome, RankProcess};
use crate::machine::Machine;
use crate::request::Request;
use crate::statistics::ActionKind;

impl<M: Machine> RankProcess<'_, M> {
    pub(super) fn test(&mut self, slot: Slot) -> Outcome<M::Error> {
        match self.requests.get(self.requests.slot(slot)) {
            // A test after one that succeeded: the request is gone.
            Request::Inactive => Ok(self.end(ActionKind::Test)),
            Request::Pending(_) | Request::Complete(_) => {
                self.pending = Pending::Test { slot, paid: false };
                Ok(Flow::Pause(Pause::Conditional(self.clock)))
            }
        }
    }

    /// Pays for a test, then looks at the request: both are conditional events, because the price depends on the
    /// tests of all ranks, and the outcome on what arrives before now.
    pub(super) fn granted_test(&mut self, slot: Slot, paid: bool) -> Outcome<M::Error> {
        let parameters = self.world.parameters;
        // Relaxed: granted turns are ordered by the engine's quiescence.
        let factor = self.world.test_factor.load(Ordering::Relaxed);
        if !paid {
            self.clock += parameters.test * factor;
            self.pending = Pending::Test { slot, paid: true };
            return Ok(Flow::Pause(Pause::Conditional(self.clock)));
        }
        self.pending = Pending::Nothing;
        let request = self.requests.slot(slot);
        match self.requests.get(request) {
            Request::Complete(completion) if completion.at <= self.clock => {
                self.requests.set(request, Request::Inactive);
                self.settle(completion);
                self.world.test_factor.store(1, Ordering::Relaxed);
            }
            _ if parameters.test_grows => {
                self.world.test_factor.store(factor + 1, Ordering::Relaxed);
            }
            _ => {}
        }
        Ok(self.end(ActionKind::Test))
    }
}
