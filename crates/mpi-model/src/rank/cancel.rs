//! Cancelled receives.

use trace_mmap::{Action, Call, CallId, Slot};

use super::pending::{Pending, Poll};
use super::{Control, Outcome, RankProcess};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;

/// Maximum number of actions among which the end of a receive is looked for.
const MOST_ACTIONS: usize = 1000;

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

    /// Lets a receive that is posted next, and that the trace cancels, wait for its time: a message that comes later is not for it. A program
    /// that runs takes it, as nothing is known of what it does next.
    pub(super) fn foresee_cancellation(&mut self, slot: Slot) {
        let cancels = self.point_to_point.mailbox.as_ref().is_some_and(|mailbox| mailbox.cancels);
        if cancels && self.may_be_cancelled(slot) {
            let request = self.point_to_point.request(slot);
            self.point_to_point.mailbox.iter_mut().for_each(|mailbox| mailbox.cancelled = Some(request));
        }
    }

    /// Returns whether the trace cancels the request that is posted next in a slot, or one that may take its place before it ends.
    fn may_be_cancelled(&self, slot: Slot) -> bool {
        let (mut cursor, mut slots) = (self.cursor.clone(), vec![slot]);
        for _ in 0..MOST_ACTIONS {
            match cursor.next_action() {
                Some(Action::WaitAll) => return false,
                Some(
                    Action::Wait { slot }
                    | Action::Isend { slot, .. }
                    | Action::Irecv { slot, .. }
                    | Action::ProcNull { slot: Some(slot) },
                ) => slots.retain(|other| *other != slot),
                Some(Action::Call(id)) => {
                    let call = self.context.trace.call(id);
                    if matches!(call, Call::Cancel { slot, cancelled: true, .. } if slots.contains(slot)) {
                        return true;
                    }
                    follow(&mut slots, call);
                }
                Some(_) => {}
                None if cursor.iteration_boundary().is_some() => {}
                None => return false,
            }
            if slots.is_empty() {
                return false;
            }
        }
        true
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

/// Updates the slots in which a request may be after a call.
fn follow(slots: &mut Vec<Slot>, call: &Call) {
    slots.retain(|slot| call.posted_slot() != Some(*slot));
    let Some(completion) = call.completion() else { return };
    let (before, done) = (slots.len(), completion.done());
    slots.retain(|slot| !done.contains(slot));
    if slots.len() < before && completion.done.is_some() {
        // Here the call may complete others of its requests, which then change places.
        for other in completion.requests.iter().filter(|slot| !done.contains(slot)) {
            if !slots.contains(other) {
                slots.push(*other);
            }
        }
    }
}
