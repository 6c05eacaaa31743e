//! What is left to do of an action that waits for requests.

use pdes_core::{Pause, SimTime};
use trace_mmap::Slot;

use super::{Flow, Outcome, RankProcess};
use crate::machine::Machine;
use crate::request::{Completion, Request, RequestId};
use crate::statistics::ActionKind;

/// The rest of the action in progress.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    /// No action is in progress.
    Nothing,
    /// An action of the program waits for one request.
    One { request: RequestId, kind: ActionKind },
    /// A step of a collective operation waits for one request.
    Part { request: RequestId },
    /// All requests of a range, in the order in which they end; `kind` where that ends an action of the program.
    /// None is pending before `scanned`.
    All { from: RequestId, to: RequestId, scanned: RequestId, kind: Option<ActionKind> },
    /// All requests of the collective operation from `next` on, one after the other.
    EachOfCollective { next: RequestId },
    /// The requests that are still pending at the end of the trace, from number `next` on.
    AtEnd { next: usize },
    /// The machine works for the rank; `kind` where that ends an action of the program.
    Work { kind: Option<ActionKind> },
    /// A test that waits to be granted.
    Test { slot: Slot, paid: bool },
}

impl Pending {
    pub(super) fn all(from: RequestId, to: RequestId, kind: Option<ActionKind>) -> Self {
        Self::All { from, to, scanned: from, kind }
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Goes on with the action in progress, if there is one.
    #[inline]
    pub(super) fn proceed(&mut self, granted: bool) -> Outcome<M::Error> {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => Ok(Flow::Continue),
            Pending::Test { slot, paid } if granted => self.granted_test(slot, paid),
            Pending::Test { .. } => unreachable!("a conditional event goes on only where it is granted"),
            Pending::Work { kind } => Ok(kind.map_or(Flow::Continue, |kind| self.end(kind))),
            pending => self.complete(pending),
        }
    }

    /// Completes the requests of an action, or keeps the action pending where one of them is.
    #[inline]
    pub(super) fn complete(&mut self, pending: Pending) -> Outcome<M::Error> {
        match pending {
            Pending::One { request, kind } => match self.take(request) {
                Ok(()) => Ok(self.end(kind)),
                Err(missing) => Ok(self.block(pending, missing)),
            },
            Pending::Part { request } => match self.take(request) {
                Ok(()) => Ok(Flow::Continue),
                Err(missing) => Ok(self.block(pending, missing)),
            },
            Pending::All { from, to, scanned, kind } => match self.requests.first_pending(scanned, to) {
                Some(missing) => Ok(self.block(Pending::All { from, to, scanned: missing, kind }, missing)),
                None => Ok(self.take_all(from, to, kind)),
            },
            Pending::EachOfCollective { next } => self.complete_each(next),
            Pending::AtEnd { next } => self.complete_at_end(next),
            Pending::Nothing | Pending::Work { .. } | Pending::Test { .. } => {
                unreachable!("there are no requests to complete")
            }
        }
    }

    /// Completes one request, or says that it is missing.
    #[inline]
    fn take(&mut self, request: RequestId) -> Result<(), RequestId> {
        match self.requests.get(request) {
            Request::Complete(completion) => {
                self.requests.set(request, Request::Inactive);
                self.settle(completion);
                Ok(())
            }
            // The request was completed by a test, or its peer is MPI_PROC_NULL.
            Request::Inactive => Ok(()),
            Request::Pending(_) => Err(request),
        }
    }

    fn block(&mut self, pending: Pending, missing: RequestId) -> Flow {
        self.pending = pending;
        self.awaited = Some(missing);
        Flow::Pause(Pause::Blocked)
    }

    /// Completes all requests of a range, none of which is pending.
    fn take_all(&mut self, from: RequestId, to: RequestId, kind: Option<ActionKind>) -> Flow {
        if self.world.parameters.receive.is_zero() {
            let last = self.requests.take_completions(from, to).map(|completion| completion.at).max();
            self.clock = self.clock.max(last.unwrap_or(SimTime::ZERO));
        } else {
            let mut completions: Vec<Completion> = self.requests.take_completions(from, to).collect();
            // The library takes what is complete first and pays for one after the other; among those that are
            // complete at once, the order does not change the sum.
            completions.sort_by_key(|completion| completion.at);
            completions.into_iter().for_each(|completion| self.settle(completion));
        }
        match kind {
            Some(kind) => self.end(kind),
            None => {
                if from == self.requests.first_collective() {
                    self.requests.clear_collective();
                }
                Flow::Continue
            }
        }
    }

    fn complete_each(&mut self, mut next: RequestId) -> Outcome<M::Error> {
        while next < self.requests.end() {
            if let Err(missing) = self.take(next) {
                return Ok(self.block(Pending::EachOfCollective { next }, missing));
            }
            next = next.next();
        }
        self.requests.clear_collective();
        Ok(Flow::Continue)
    }

    fn complete_at_end(&mut self, mut next: usize) -> Outcome<M::Error> {
        let trace = self.trace;
        while let Some(&slot) = trace.pending_at_end().get(next) {
            if let Err(missing) = self.take(self.requests.slot(slot)) {
                return Ok(self.block(Pending::AtEnd { next }, missing));
            }
            next += 1;
        }
        self.statistics.add_time(ActionKind::Finalize, self.clock - self.began);
        self.began = self.clock;
        Ok(Flow::Pause(Pause::Finished))
    }
}
