//! Dispatch of the actions of a trace.

use pdes_core::{Bytes, SimDuration};
use trace_mmap::{Action, Call, CallId, LocationId, SendRecv, Slot};

use super::pending::Pending;
use super::{Control, Outcome, RankProcess};
use crate::breakdown::region_name;
use crate::charged_call::ChargedCall;
use crate::collective::runner::Origin;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::{Machine, Work};
use crate::observer::{ActionSpan, Analysis};
use crate::point_to_point::{AwaitedByCall, OperationIndex};
use crate::statistics::ActionKind;

/// Every 64th computation that the rank could run ahead of is scheduled instead, which bounds the run-ahead.
pub(super) const MAX_AHEAD: u8 = 64;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    #[inline]
    pub(super) fn begin(&mut self, action: Action, outbox: &mut RankOutbox<'_, M>) -> Outcome<M::Error> {
        if self.context.prepares_actions {
            self.prepare(action, outbox)?;
        }
        let Self { context, point_to_point, .. } = self;
        match action {
            Action::Compute { flops } => self.compute(flops, outbox),
            Action::Send { to, bytes } => {
                match point_to_point.send(context, to, bytes, point_to_point.is_detached(bytes), outbox) {
                    Some(request) => Ok(self.complete_one(request, ActionKind::Send)),
                    None => Ok(self.end(ActionKind::Send)),
                }
            }
            Action::Recv { from, bytes } => {
                let request = point_to_point.requests.blocking_receive();
                point_to_point.receive(context, from, bytes, request, outbox);
                Ok(self.complete_one(request, ActionKind::Recv))
            }
            Action::Isend { to, bytes, slot } => {
                let (detached, request) = (point_to_point.is_detached(bytes), point_to_point.request(slot));
                point_to_point.isend(context, to, bytes, detached, (request, ActionKind::Isend), outbox);
                Ok(self.end(ActionKind::Isend))
            }
            Action::Irecv { from, bytes, slot } => {
                self.foresee_cancellation(slot);
                let Self { context, point_to_point, .. } = self;
                point_to_point.pay_for_irecv(context, ActionKind::Irecv);
                point_to_point.receive(context, from, bytes, point_to_point.request(slot), outbox);
                Ok(self.end(ActionKind::Irecv))
            }
            Action::Wait { slot } => {
                let request = point_to_point.request(slot);
                Ok(self.complete_one(request, ActionKind::Wait))
            }
            Action::WaitAll => {
                let (from, to) =
                    (point_to_point.requests.slot(Slot::new(0)), point_to_point.requests.blocking_send());
                self.complete(Pending::all(from, to, ActionKind::Waitall))
            }
            Action::SendRecv(id) => {
                let both = *context.trace.send_recv(id);
                if context.is_self_exchange(&both) {
                    return Ok(self.end(ActionKind::SendRecv));
                }
                if let Some(to) = both.to {
                    let detached = point_to_point.is_detached(both.send_bytes);
                    let request = (point_to_point.requests.blocking_send(), ActionKind::SendRecv);
                    point_to_point.isend(context, to, both.send_bytes, detached, request, outbox);
                }
                if let Some(from) = both.from {
                    let request = point_to_point.requests.blocking_receive();
                    point_to_point.receive(context, from, both.recv_bytes, request, outbox);
                }
                self.complete(self.pending_send_recv())
            }
            Action::Test { slot } => self.test(slot),
            Action::Sleep { seconds } => self.sleep(seconds, outbox),
            Action::Init | Action::Communicator => Ok(self.end(ActionKind::Marker)),
            Action::Location(site) => {
                context.observers.region_entered(site);
                if self.offload.is_some() {
                    return self.change_region(site, outbox);
                }
                self.enter_region(site);
                Ok(self.end(ActionKind::Marker))
            }
            Action::Finalize => Ok(self.end(ActionKind::Finalize)),
            Action::ProcNull { slot } => {
                let kind = if slot.is_some() { ActionKind::Isend } else { ActionKind::Send };
                Ok(self.end(kind))
            }
            Action::Collective(id) => self.start_operation(Origin::Collective(id), outbox),
            Action::Call(id) => self.call(id, outbox),
        }
    }

    /// Prepares an action where data move in calls only, or calls have costs.
    #[cold]
    #[inline(never)]
    fn prepare(&mut self, action: Action, outbox: &mut RankOutbox<'_, M>) -> Result<(), Failure<M::Error>> {
        self.begin_call(self.awaited_by(action), outbox)?;
        if self.context.charges_calls {
            self.context.charge_start(action);
        }
        Ok(())
    }

    /// Returns what a call awaits; `None` for actions in which no data move.
    fn awaited_by(&self, action: Action) -> Option<AwaitedByCall> {
        if !ActionKind::of(action, self.context.trace).makes_progress() {
            return None;
        }
        let point_to_point = &self.point_to_point;
        let blocking_receive = AwaitedByCall::Request(point_to_point.requests.blocking_receive());
        Some(match action {
            Action::Recv { .. } | Action::SendRecv(_) => blocking_receive,
            Action::Wait { slot } => AwaitedByCall::Request(point_to_point.request(slot)),
            Action::WaitAll => AwaitedByCall::All,
            Action::Call(id) => match self.context.trace.call(id) {
                Call::Recv { .. } | Call::SendRecv { .. } => blocking_receive,
                Call::Waitall { .. } => AwaitedByCall::Listed(id),
                _ => AwaitedByCall::Nothing,
            },
            _ => AwaitedByCall::Nothing,
        })
    }

    /// Begins an action of the program, where data move inside calls only: a call, if it awaits something.
    pub(super) fn begin_call(
        &mut self,
        call: Option<AwaitedByCall>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<(), Failure<M::Error>> {
        self.point_to_point.begin_action(&mut self.context, call, outbox)
    }

    /// Ends the action in progress and attributes its time.
    #[inline]
    pub(super) fn end(&mut self, kind: ActionKind) -> Control {
        let action = ActionSpan { kind, begin: self.action_begin, end: self.context.thread.clock };
        self.action_begin = action.end;
        self.context.observers.action_ended(&action);
        Control::Continue
    }

    /// Ends a call that completes requests, those of a list if it has a number.
    #[inline]
    pub(super) fn end_completion(&mut self, kind: ActionKind, call: Option<CallId>) -> Control {
        if self.context.charges_calls && kind.is_completion() {
            self.context.charge_completion(kind, call);
        }
        self.end(kind)
    }

    /// Sets the speed of computations to that of a region of the program, where regions have speeds.
    #[inline]
    pub(super) fn enter_region(&mut self, site: LocationId) {
        if self.context.replay.parameters.distinguishes_regions() {
            self.compute_factor = self.context.compute_factor(region_name(self.context.trace.location(site)));
        }
    }

    /// Returns the remainder of a combined send and receive: waiting for both requests.
    pub(super) fn pending_send_recv(&self) -> Pending {
        let requests = &self.point_to_point.requests;
        Pending::all(requests.blocking_send(), requests.end(), ActionKind::SendRecv)
    }

    /// Replays a computation of the program.
    #[inline]
    fn compute(&mut self, flops: f64, outbox: &mut RankOutbox<'_, M>) -> Outcome<M::Error> {
        if self.offload.is_some()
            && let Some(outcome) = self.offload(flops, outbox)
        {
            return outcome;
        }
        let is_ahead = self.runs_ahead();
        if self.context.start_computation(flops * self.compute_factor, is_ahead, None, outbox)? {
            return Ok(self.await_work(ActionKind::Compute));
        }
        Ok(self.end(ActionKind::Compute))
    }

    /// Returns whether the program runs ahead of its computation. Not while non-blocking operations may compute, and not for one
    /// in [`MAX_AHEAD`], so that a rank that only computes and sends does not submit all its messages at once.
    #[inline]
    fn runs_ahead(&mut self) -> bool {
        if !self.context.replay.machine.has_dedicated_core(self.context.me) || !self.collectives.is_idle() {
            return false;
        }
        self.computations_ahead = (self.computations_ahead + 1) % MAX_AHEAD;
        self.computations_ahead != 0
    }

    fn sleep(&mut self, seconds: f64, outbox: &mut RankOutbox<'_, M>) -> Outcome<M::Error> {
        // SimGrid's shortest sleep, but for none at all, is one nanosecond.
        let shortest = if seconds > 0.0 { 1e-9 } else { 0.0 };
        let duration = SimDuration::try_from_secs_f64(seconds.max(shortest));
        self.sleep_for(duration, || format!("{seconds} s"), outbox)
    }

    /// Lets the rank sleep for a time; `None` is more than a [`SimDuration`] holds.
    pub(super) fn sleep_for(
        &mut self,
        duration: Option<SimDuration>,
        amount: impl FnOnce() -> String,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        if let Some(duration) = duration.filter(|&duration| duration > SimDuration::ZERO)
            && self.context.submit_work(Work::Sleep { duration }, None, outbox)
        {
            return Ok(self.await_work(ActionKind::Sleep));
        }
        self.context.advance(duration, "a sleep", amount)?;
        Ok(self.end(ActionKind::Sleep))
    }

    pub(super) fn await_work(&mut self, kind: ActionKind) -> Control {
        self.keep_pending(Pending::Work { kind, done: false })
    }

    /// Begins a collective operation.
    #[inline(never)]
    pub(super) fn start_operation(
        &mut self,
        origin: Origin,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let (collectives, mut means) = self.collectives(outbox);
        let (index, request) = collectives.begin(origin, &mut means);
        if request.is_none() {
            return self.resume_blocking_operation(index, outbox);
        }
        collectives.run(index, &mut means)?;
        let call = origin.call().expect("an operation with a request is a call");
        let trace = self.context.trace;
        Ok(self.end(ActionKind::of_call(trace.call(call), trace)))
    }

    /// Resumes the operation for which the program waits.
    pub(super) fn resume_blocking_operation(
        &mut self,
        index: OperationIndex,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let (collectives, mut means) = self.collectives(outbox);
        match collectives.run(index, &mut means)? {
            Some(kind) => Ok(self.end(kind)),
            None => Ok(self.keep_pending(Pending::Operation { index })),
        }
    }
}

impl<M: Machine, A: Analysis> RankContext<'_, M, A> {
    /// Charges the time of the library itself in a call that starts something, before it does.
    #[cold]
    #[inline(never)]
    fn charge_start(&mut self, action: Action) {
        let kind = ActionKind::of(action, self.trace);
        if !kind.is_completion()
            && let Some((call, size)) = ChargedCall::of(action, self.trace)
        {
            self.charge(call, size, kind);
        }
    }

    /// Charges the time of the library itself in a call that completes requests, after what it waited for.
    #[cold]
    #[inline(never)]
    fn charge_completion(&mut self, kind: ActionKind, call: Option<CallId>) {
        let listed = call.and_then(|call| ChargedCall::of(Action::Call(call), self.trace));
        self.charge(ChargedCall::Kind(kind), listed.map_or(0, |(_, requests)| requests), kind);
    }

    fn charge(&mut self, call: ChargedCall, size: u64, kind: ActionKind) {
        if let Some(overhead) = self.replay.parameters.call_overheads.get(&call) {
            self.spend(overhead.cost(Bytes::new(size)));
            self.worked(kind);
        }
    }

    /// Returns whether both sides of a combined send and receive are the rank itself, which is a copy in memory.
    fn is_self_exchange(&self, both: &SendRecv) -> bool {
        let (trace, me) = (self.trace, Some(self.me));
        let to = both.to.map(|to| trace.outgoing_channel(to).peer);
        let from = both.from.map(|from| trace.incoming_channel(from).peer);
        to == me && from == me
    }
}
