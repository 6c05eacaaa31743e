//! Calls whose outcome depends on time: waitany, waitsome, and tests, of which `MPI_Request_get_status` completes nothing.
//!
//! Where outcomes are [recorded](crate::Outcomes::Recorded), the calls complete the requests of the recorded run, and
//! need no conditional events. Where they are [reenacted](crate::Outcomes::Reenact), the calls complete as many requests as in
//! the recorded run, but those that are complete first in the simulated one. Later uses in the trace of a request that
//! should be complete by then concern one that is still pending in its place. Requests that a test completed earlier than in
//! the recorded run are inactive from then on.

use std::slice;

use pdes_core::SimTime;
use trace_mmap::{Call, CallId, Slot};

use super::pending::{Pending, Poll};
use super::{Control, Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{Awaited, Request, RequestCompletion};
use crate::source::{CallEnd, Decision};
use crate::statistics::ActionKind;

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Returns the requests that a call waits for, or tests.
    pub(super) fn slots(&self, call: CallId) -> &'t [Slot] {
        self.context.trace.call(call).completion().map_or(&[], |completion| completion.requests)
    }

    /// Returns the requests that a call completed, or found complete, in the recorded run.
    pub(super) fn recorded(&self, call: CallId) -> &'t [Slot] {
        match self.context.trace.call(call) {
            Call::GetStatus { slot, done: true } => slice::from_ref(slot),
            call => call.completion().map_or(&[], |completion| completion.done()),
        }
    }

    /// Returns the requests that a call has to complete where there is no choice.
    fn needed(&self, call: CallId) -> &'t [Slot] {
        if self.point_to_point.is_reenacted() { self.slots(call) } else { self.recorded(call) }
    }

    /// Completes the requests of a call where there is no choice.
    pub(super) fn complete_listed(&mut self, call: CallId, mut scanned: usize, kind: ActionKind) -> Control {
        let slots = self.needed(call);
        while let Some(&slot) = slots.get(scanned) {
            if let Request::Pending(_) = self.state(slot) {
                let request = self.point_to_point.request(slot);
                return self.block(Pending::RequestList { call, scanned, kind }, request);
            }
            scanned += 1;
        }
        if matches!(self.context.trace.call(call), Call::GetStatus { .. }) {
            self.wait_for_status(slots, kind);
        } else {
            self.point_to_point.settle_slots(&mut self.context, slots, kind);
        }
        self.end_completion(kind, Some(call))
    }

    /// Waits until requests are complete, and leaves them so: the call that completes them pays for that.
    fn wait_for_status(&mut self, slots: &[Slot], kind: ActionKind) {
        for &slot in slots {
            if let Request::Complete(completion) = self.state(slot) {
                let request = self.point_to_point.request(slot);
                self.point_to_point.wait_for(&mut self.context, Some(request), completion.at, kind);
            }
        }
    }

    fn state(&self, slot: Slot) -> Request {
        self.point_to_point.requests.get(self.point_to_point.request(slot))
    }

    fn is_active(&self, slot: &Slot) -> bool {
        !matches!(self.state(*slot), Request::Inactive)
    }

    /// Begins a call that completes as many requests as in the recorded run.
    pub(super) fn begin_wait_for_first(&mut self, call: CallId, kind: ActionKind) -> Outcome<M::Error> {
        let active = self.slots(call).iter().filter(|slot| self.is_active(slot)).count();
        let left = self.recorded(call).iter().filter(|slot| self.is_active(slot)).count();
        if !self.point_to_point.is_reenacted() || active == left {
            return self.complete(Pending::RequestList { call, scanned: 0, kind });
        }
        self.point_to_point.slot_map().chosen.clear();
        self.choose_first(call, left as u32, kind, false, false)
    }

    /// Completes the requests that are complete first, until there are as many as in the recorded run.
    pub(super) fn choose_first(
        &mut self,
        call: CallId,
        mut left: u32,
        kind: ActionKind,
        differs: bool,
        mut granted: bool,
    ) -> Outcome<M::Error> {
        let complete = self.complete_slots(call);
        while left > 0 {
            let Some(first) = self.first_complete(call) else {
                return Ok(self.keep_pending(Pending::First { call, left, kind, differs }));
            };
            let at = self.context.thread.clock.max(first);
            if !granted && !self.are_ends_known(call) {
                return Ok(self.keep_pending(Pending::First { call, left, kind, differs }));
            }
            (granted, left) = (false, left - 1);
            let chosen = self.complete_by(call, at).next();
            let (slot, completion) = chosen.expect("a request is complete by now");
            self.choose(slot, completion, kind);
        }
        // A trace knows how many were complete in its run, a program that runs asks.
        if self.context.trace.grows() && matches!(self.context.trace.call(call), Call::Waitsome { .. }) {
            let others: Vec<(Slot, RequestCompletion)> =
                self.complete_by(call, self.context.thread.clock).collect();
            others.into_iter().for_each(|(slot, completion)| self.choose(slot, completion, kind));
            let chosen = self.point_to_point.slot_map().chosen.clone();
            self.report_requests(&chosen, &complete);
            // As in a trace, where nothing is left to be decided.
            if !self.slots(call).iter().any(|slot| self.is_active(slot)) {
                return Ok(self.end_completion(kind, Some(call)));
            }
        }
        if self.context.trace.grows() && matches!(self.context.trace.call(call), Call::Waitany { .. }) {
            let chosen = self.point_to_point.slot_map().chosen.clone();
            self.report_requests(&chosen, &complete);
        }
        let is_recorded = self.swap_chosen(call);
        self.context.observers.outcome_decided(self.context.thread.action, is_recorded && !differs);
        Ok(self.end_completion(kind, Some(call)))
    }

    fn are_ends_known(&self, call: CallId) -> bool {
        self.slots(call).iter().all(|&slot| !matches!(self.state(slot), Request::Pending(_)))
    }

    /// Returns whether the pending call needs no conditional event any more, as all its requests have ended: where a trace knows that it takes
    /// all of them, it does not wait for such an event either, and does not come after those of its instant.
    pub(super) fn is_outcome_certain(&self) -> bool {
        matches!(self.pending, Pending::First { call, .. } if self.are_ends_known(call))
    }

    /// Returns the requests of a call that could be completed, for a program that runs.
    fn complete_slots(&self, call: CallId) -> Vec<Slot> {
        match self.context.replay.sources {
            Some(_) => self.complete_by(call, SimTime::MAX).map(|(slot, _)| slot).collect(),
            None => Vec::new(),
        }
    }

    /// Tells a program that runs how a wait or a test of requests has ended.
    fn report_requests(&self, completed: &[Slot], complete: &[Slot]) {
        if let Some(program) = &self.context.replay.sources {
            let end = CallEnd::Requests { completed, complete };
            program.decided(&Decision { rank: self.context.me, action: self.context.thread.action, end });
        }
    }

    fn choose(&mut self, slot: Slot, completion: RequestCompletion, kind: ActionKind) {
        let request = self.point_to_point.request(slot);
        self.point_to_point.requests.set(request, Request::Inactive);
        self.point_to_point.settle(&mut self.context, request, completion, kind);
        self.point_to_point.slot_map().chosen.push(slot);
    }

    /// Keeps an action pending until its next event is due.
    pub(super) fn keep_pending(&mut self, pending: Pending) -> Control {
        self.pending = pending;
        self.awaited = None;
        self.blocked()
    }

    /// Returns the earliest completion of a request of a call, as far as it is known.
    pub(super) fn first_complete(&self, call: CallId) -> Option<SimTime> {
        self.complete_by(call, SimTime::MAX).map(|(_, completion)| completion.at).min()
    }

    /// Returns the requests of a call that are complete by an instant, in the order of the call.
    pub(super) fn complete_by(
        &self,
        call: CallId,
        at: SimTime,
    ) -> impl Iterator<Item = (Slot, RequestCompletion)> + '_ {
        self.slots(call).iter().filter_map(move |&slot| match self.state(slot) {
            Request::Complete(completion) if completion.at <= at => Some((slot, completion)),
            _ => None,
        })
    }

    /// Swaps the slots of requests that were complete in the recorded run but not chosen now with those of the chosen ones; returns
    /// whether the same requests were chosen.
    fn swap_chosen(&mut self, call: CallId) -> bool {
        // A program that runs is told which ones were chosen.
        if self.context.trace.grows() {
            return true;
        }
        let recorded = self.recorded(call);
        let chosen = std::mem::take(&mut self.point_to_point.slot_map().chosen);
        let mut instead = recorded.iter().filter(|slot| !chosen.contains(slot) && self.is_active(slot));
        let swaps: Vec<(Slot, Slot)> = chosen
            .iter()
            .filter(|slot| !recorded.contains(slot))
            .filter_map(|&slot| Some((slot, *instead.next()?)))
            .collect();
        for &(chosen, recorded) in &swaps {
            self.point_to_point.slot_map().swap(chosen, recorded);
        }
        self.point_to_point.slot_map().chosen = chosen;
        swaps.is_empty()
    }

    /// Returns the time at which the pending call is decided, as far as it is known.
    pub(super) fn outcome_due(&self) -> Option<SimTime> {
        let at = match self.pending {
            Pending::First { call, .. } => self.first_complete(call)?,
            Pending::Poll { .. } => self.context.thread.clock,
            Pending::Probe { call, .. } => self.first_probed(call)?,
            _ => return None,
        };
        Some(at.max(self.context.thread.clock))
    }

    /// Returns the event for which the pending call waits, where nothing decides it.
    pub(super) fn outcome_awaits(&self) -> Option<Awaited> {
        match self.pending {
            Pending::First { call, .. } => self.slots(call).iter().find_map(|&slot| match self.state(slot) {
                Request::Pending(awaited) => Some(awaited),
                Request::Inactive | Request::Complete(_) => None,
            }),
            Pending::Probe { call, .. } => Some(self.probe_awaits(call)),
            _ => None,
        }
    }

    /// Begins a test of requests.
    pub(super) fn begin_test(&mut self, call: CallId) -> Outcome<M::Error> {
        if !self.point_to_point.is_reenacted() {
            self.context.spend(self.context.replay.parameters.test);
            return self.complete(Pending::RequestList { call, scanned: 0, kind: ActionKind::Test });
        }
        if !self.slots(call).iter().any(|slot| self.is_active(slot)) {
            return Ok(self.end(ActionKind::Test));
        }
        Ok(self.begin_poll(Poll::Call(call)))
    }

    /// Decides a test that has been paid for.
    pub(super) fn decide_test_call(&mut self, call: CallId) -> Outcome<M::Error> {
        let now = self.context.thread.clock;
        let active = self.slots(call).iter().filter(|slot| self.is_active(slot)).count();
        let complete: Vec<(Slot, RequestCompletion)> = self.complete_by(call, now).collect();
        let takes_first =
            matches!(self.context.trace.call(call), Call::Testany { .. } | Call::Testsome { .. });
        let succeeds = if takes_first { !complete.is_empty() } else { complete.len() == active };
        let recorded = self.recorded(call).iter().filter(|slot| self.is_active(slot)).count();
        let was_recorded = recorded > 0;
        if succeeds {
            self.context.replay.tests.record_success();
        } else if !was_recorded && self.context.replay.parameters.test_grows {
            self.context.replay.tests.record_failure();
        }
        if takes_first && was_recorded {
            self.point_to_point.slot_map().chosen.clear();
            return self.choose_first(call, recorded as u32, ActionKind::Test, !succeeds, succeeds);
        }
        let most = match self.context.trace.call(call) {
            Call::Testany { .. } => 1,
            Call::GetStatus { .. } => 0,
            _ => usize::MAX,
        };
        if self.context.trace.grows() && most > 0 {
            let possible = self.complete_slots(call);
            let possible = if takes_first || possible.len() == active { possible } else { Vec::new() };
            let completed = complete.iter().take(most).filter(|_| succeeds).map(|(slot, _)| *slot);
            self.report_requests(&completed.collect::<Vec<_>>(), &possible);
        }
        let is_recorded = succeeds == was_recorded || self.context.trace.grows();
        self.context.observers.outcome_decided(self.context.thread.action, is_recorded);
        if succeeds {
            for (slot, completion) in complete.into_iter().take(most) {
                let request = self.point_to_point.request(slot);
                self.point_to_point.requests.set(request, Request::Inactive);
                self.point_to_point.settle(&mut self.context, request, completion, ActionKind::Test);
            }
        } else if was_recorded {
            return self.complete(Pending::RequestList { call, scanned: 0, kind: ActionKind::Test });
        } else {
            self.keep_quiet(call);
        }
        Ok(self.end(ActionKind::Test))
    }
}
