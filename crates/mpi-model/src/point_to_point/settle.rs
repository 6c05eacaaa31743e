//! Completion of requests by the current thread of control: waits, and what the receiver pays.

use pdes_core::SimTime;
use trace_mmap::Slot;

use super::{PointToPoint, RequestCompletion, RequestId, Requests};
use crate::context::RankContext;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Waits for the completion of a request, and charges the receive overhead.
    #[inline(always)]
    pub(crate) fn settle(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        request: RequestId,
        completion: RequestCompletion,
        kind: ActionKind,
    ) {
        if completion.received.is_some() {
            context.observers.received(request, kind);
        }
        self.wait_for(context, Some(request), completion.at, kind);
        self.pay(context, completion);
    }

    /// Advances the clock to `at`, the completion of a request or of [several](crate::Wait::request), unless it has passed.
    #[inline(always)]
    pub(crate) fn wait_for(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        request: Option<RequestId>,
        at: SimTime,
        kind: ActionKind,
    ) {
        let now = context.thread.clock;
        if at > now {
            context.observers.waited(kind, (now, at), request, self);
            context.thread.clock = at;
        }
    }

    /// Charges the receive overhead of a completion.
    #[inline]
    fn pay(&self, context: &mut RankContext<'t, M, A>, completion: RequestCompletion) {
        if let Some(bytes) = completion.received {
            context.spend(self.parameters().receive.cost(bytes));
        }
    }

    /// Reports requests that are about to be completed together.
    #[inline]
    fn report_completing(
        &self,
        context: &mut RankContext<'t, M, A>,
        requests: impl Iterator<Item = RequestId> + Clone,
    ) {
        context.observers.completing(self.requests.complete_after(context.thread.clock, requests));
    }

    /// Completes all requests in `from..to`, none of which is pending.
    pub(crate) fn settle_range(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        (from, to): (RequestId, RequestId),
        kind: ActionKind,
    ) {
        self.report_completing(context, Requests::range(from, to));
        if self.parameters().receive.is_zero() {
            let last = self.requests.take_completions(from, to).map(|completion| completion.at).max();
            self.wait_for(context, None, last.unwrap_or(SimTime::ZERO), kind);
        } else {
            let completions = self.requests.take_completions(from, to).collect();
            self.settle_completions(context, completions, kind);
        }
    }

    /// Completes the requests of slots, none of which is pending.
    pub(crate) fn settle_slots(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        slots: &[Slot],
        kind: ActionKind,
    ) {
        self.report_completing(context, slots.iter().map(|&slot| self.request(slot)));
        let take = |&slot: &Slot| self.requests.take_completion(self.request(slot));
        let completions = slots.iter().filter_map(take).collect();
        self.settle_completions(context, completions, kind);
    }

    /// Completes requests of an operation, none of which is pending, and frees them.
    pub(crate) fn settle_parts(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        parts: &[RequestId],
        kind: ActionKind,
    ) {
        self.report_completing(context, parts.iter().copied());
        let completions = parts.iter().filter_map(|&part| self.take_part(part)).collect();
        self.settle_completions(context, completions, kind);
    }

    /// Completes and frees a request of an operation, at no cost.
    pub(crate) fn take_part(&mut self, request: RequestId) -> Option<RequestCompletion> {
        let completion = self.requests.take_completion(request);
        self.requests.release_part(request);
        completion
    }

    /// Waits for completions in the order of time and charges each; among those of one instant, the order does not change the
    /// sum.
    fn settle_completions(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        mut completions: Vec<RequestCompletion>,
        kind: ActionKind,
    ) {
        if !self.parameters().receive.is_zero() {
            completions.sort_by_key(|completion| completion.at);
        }
        for completion in completions {
            self.wait_for(context, None, completion.at, kind);
            self.pay(context, completion);
        }
    }
}
