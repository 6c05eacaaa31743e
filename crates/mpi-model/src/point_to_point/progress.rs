//! Progress inside calls: a library without a thread of its own moves data only while its process is in one of its calls.
//!
//! The data of a message that is not eager begin to move at the first instant, not before the two posts, at which the receiver is in a
//! call. If the receive is posted later than the send, that is its post. Otherwise the envelope may come after the calls in question have
//! been replayed, so a rank keeps the calls that have ended while one of its receives is not matched; or it comes before, and then
//! the message is delayed, if it was sent after the begin of the call in progress, and the call does not wait for it. A delayed message is
//! decided when the rank begins its next action. The call may also wait, directly or not, for its sender. So the rank has a conditional
//! event at the time of the send: when that is granted, nothing can end the call before.

use pdes_core::{SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::CallId;

use super::transfer::MatchedMessage;
use super::{PointToPoint, RequestId};
use crate::cause::Cause;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::Analysis;

/// Calls of a rank, and the messages that wait for the next one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CallProgress {
    /// Call in progress, or the last one until the next action begins; `None` while the rank computes.
    call: Option<InCall>,
    /// Calls that have ended, since the rank has unmatched receives.
    ended: Vec<EndedCall>,
    /// Messages that were sent after the begin of the call in progress, or while the rank computes.
    delayed: Vec<MatchedMessage>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct InCall {
    begin: SimTime,
    /// Cause of the lateness of the rank at its begin.
    #[state(plain)]
    cause: Cause,
    #[state(plain)]
    awaits: AwaitedByCall,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct EndedCall {
    begin: SimTime,
    end: SimTime,
    #[state(plain)]
    cause: Cause,
}

/// Receives without which a call cannot end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AwaitedByCall {
    /// None, as far as is known.
    Nothing,
    /// This one.
    Request(RequestId),
    /// Those of the requests of this call.
    Listed(CallId),
    /// All that are pending.
    All,
}

impl CallProgress {
    /// Returns the first instant from `posted` on at which the rank is in a call, with the cause of the lateness of the call if that is
    /// later; `None` where it is not known yet.
    fn first_instant(
        &self,
        posted: SimTime,
        is_awaited: impl FnOnce(AwaitedByCall) -> bool,
    ) -> Option<(SimTime, Cause)> {
        let next = self.ended.partition_point(|ended| ended.end < posted);
        if let Some(ended) = self.ended.get(next) {
            return Some((ended.begin.max(posted), ended.cause));
        }
        let call = self.call?;
        (posted <= call.begin || is_awaited(call.awaits)).then(|| (call.begin.max(posted), call.cause))
    }

    /// Ends the call in progress, and begins another one.
    fn begin(&mut self, now: SimTime, call: Option<(AwaitedByCall, Cause)>) {
        if let Some(InCall { begin, cause, .. }) = self.call {
            self.ended.push(EndedCall { begin, end: now, cause });
        }
        self.call = call.map(|(awaits, cause)| InCall { begin: now, cause, awaits });
    }

    /// Returns the time of the first delayed message, which begins then if the rank is still in its call.
    pub(crate) fn due(&self) -> Option<SimTime> {
        self.call.and_then(|_| self.delayed.iter().map(|delayed| delayed.message.posted).min())
    }

    /// Visits the calls. Without unmatched receives, no earlier call makes a difference.
    pub(super) fn visit(&mut self, has_receives: bool, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self { call, ended, delayed } = self;
        call.visit(visitor);
        if has_receives || !visitor.is_observing() {
            ended.visit(visitor);
        }
        visitor.compare(&delayed.len());
        delayed.iter_mut().for_each(|matched| matched.visit(visitor));
    }
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Begins an action of the program, a call if it awaits something: starts the delayed messages whose begin is known now.
    #[cold]
    pub(crate) fn begin_action(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        call: Option<AwaitedByCall>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<(), Failure<M::Error>> {
        let Some(progress) = &mut self.progress else { return Ok(()) };
        progress.begin(context.thread.clock, call.map(|awaits| (awaits, context.observers.cause())));
        for matched in std::mem::take(&mut progress.delayed) {
            self.start_in_call(context, matched, outbox)?;
        }
        let has_receives = self.has_receives();
        if let Some(progress) = self.progress.as_mut().filter(|_| !has_receives) {
            progress.ended.clear();
        }
        Ok(())
    }

    /// Returns whether earlier calls, or messages, are kept because receives are not matched.
    pub(crate) fn keeps_calls(&self) -> bool {
        let keeps = |progress: &CallProgress| {
            !progress.delayed.is_empty() || (!progress.ended.is_empty() && self.has_receives())
        };
        self.progress.as_deref().is_some_and(keeps)
    }

    /// Returns whether the next call starts a message.
    pub(crate) fn has_delayed(&self) -> bool {
        self.progress.as_deref().is_some_and(|progress| !progress.delayed.is_empty())
    }

    /// Returns whether some receive is not matched.
    pub(super) fn has_receives(&self) -> bool {
        self.ports.has_receives() || self.mailbox.as_ref().is_some_and(|mailbox| mailbox.has_receives())
    }

    /// Starts a matched message of the program that was sent after its receive was posted, if its begin is known; delays it otherwise.
    /// Returns whether the receive is complete.
    pub(super) fn start_in_call(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        matched: MatchedMessage,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let (posted, request) = (matched.message.posted, matched.receive.request);
        let is_awaited = |awaits| match awaits {
            AwaitedByCall::Nothing => false,
            AwaitedByCall::Request(awaited) => awaited == request,
            AwaitedByCall::All => true,
            AwaitedByCall::Listed(call) => {
                let completion = context.trace.call(call).completion();
                completion.is_some_and(|all| all.requests.iter().any(|&slot| self.request(slot) == request))
            }
        };
        let progress = self.progress.as_deref().expect("progress is inside calls");
        match progress.first_instant(posted, is_awaited) {
            Some((instant, _)) if instant == posted => self.begin_delayed(context, &matched, outbox),
            Some((instant, cause)) => {
                let late = MatchedMessage { ready: instant, cause, ..matched };
                self.begin_delayed(context, &late, outbox)
            }
            None => {
                self.progress.iter_mut().for_each(|progress| progress.delayed.push(matched));
                Ok(false)
            }
        }
    }

    /// Starts the first delayed message, during the call in progress.
    pub(crate) fn start_due_message(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<(), Failure<M::Error>> {
        let delayed = self.progress.as_mut().map(|progress| &mut progress.delayed);
        let Some(delayed) = delayed.filter(|delayed| !delayed.is_empty()) else { return Ok(()) };
        let order = |index: &usize| {
            let MatchedMessage { message, port, .. } = &delayed[*index];
            (message.posted, message.round, *port)
        };
        let first = (0..delayed.len()).min_by_key(order).unwrap_or_default();
        let matched = delayed.remove(first);
        self.begin_delayed(context, &matched, outbox)?;
        Ok(())
    }
}
