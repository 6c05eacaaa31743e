//! Recurrence with contention: the state of the messages of a rank at a cut.

use pdes_core::{SimTime, StateWriter};
use trace_mmap::Slot;

use super::matching::Context;
use super::{PointToPoint, Receive, Request, RequestId, Requests, UnexpectedMessage};
use crate::collective::runner::RelativeTags;
use crate::machine::Machine;
use crate::observer::{Analysis, Observer, Peer, RankObservers};
use crate::token::Message;

impl<M: Machine, A: Analysis> PointToPoint<'_, M, A> {
    /// Returns the number of eager messages to this rank so far, on which their numbers count.
    pub(crate) fn eager_messages_started(&self) -> u32 {
        self.cold.as_deref().map_or(0, |cold| cold.eager_messages.started())
    }

    /// Writes everything on which the future depends; returns false before a failure. Times before `past` do not matter.
    pub(crate) fn write_state(
        &self,
        tags: &mut RelativeTags<'_>,
        (past, observers): (SimTime, &RankObservers<impl Observer>),
        state: &mut StateWriter,
    ) -> bool {
        let wait_states = observers.wait_states.as_deref();
        let mut begins = Vec::new();
        let cold = self.cold.as_deref();
        if cold.is_some_and(|cold| !cold.match_errors.is_empty()) {
            return false;
        }
        state.value(&self.slot_map);
        let mut write = |request: RequestId, state: &mut StateWriter| {
            let matters = write_request(self.requests.get(request), past, state);
            if matters {
                observers.others.append_begins(request, &mut begins);
                begins.drain(..).for_each(|begin| state.time(begin));
            }
            if let (true, Some(wait_states)) = (matters, wait_states) {
                write_peer(wait_states.get(request), past, state);
            }
        };
        for request in Requests::range(self.requests.slot(Slot::new(0)), self.requests.end()) {
            write(request, state);
        }
        let (parts, vacant) = self.requests.parts();
        for (request, _) in parts {
            state.value(&request);
            write(request, state);
        }
        state.value(&vacant);
        // What is counted of a message depends on when it was sent.
        let past = if observers.others.counts_messages() { SimTime::ZERO } else { past };
        self.write_queues(tags, past, state);
        state.value(&self.mailbox.is_some());
        if let Some(mailbox) = &self.mailbox {
            mailbox.write_state(self.eager_messages_started(), state);
        }
        if let Some(progress) = &self.progress {
            progress.write_state(self.has_receives(), state);
        }
        state.value(&cold.is_some());
        if let Some(cold) = cold {
            cold.eager_messages.write_state(state);
            state.value(&cold.persistent);
        }
        true
    }

    /// Writes unexpected messages, posted receives, and announcements to be dropped.
    fn write_queues(&self, tags: &mut RelativeTags<'_>, past: SimTime, state: &mut StateWriter) {
        let ignored = self.cold.as_deref().map_or(&[][..], |cold| &cold.ignored_announcements);
        state.value(&(self.ports.are_empty(), ignored.len()));
        if self.ports.are_empty() && ignored.is_empty() {
            return;
        }
        let of_trace = self.replay.trace.rank(self.me).ports();
        let contexts = self.ports.contexts(of_trace);
        let mut relative_tag = |port: usize, tag: u32| match port
            .checked_sub(of_trace as usize)
            .and_then(|place| contexts[place])
        {
            Some(Context::Collective(id) | Context::Times(id)) => tags.relative(tag, id),
            Some(Context::Mailbox) | None => tag,
        };
        for (port, UnexpectedMessage { message, departure }) in self.ports.unexpected_messages() {
            let &Message { posted, bytes, tag, communicator, reply, round, cause } = message;
            state.value(&(1_u8, port, bytes, relative_tag(port, tag), communicator, (reply, cause)));
            departure.write_state(self.eager_messages_started(), state);
            write_unless_past(posted, past, state);
            // Posts of one instant have an order.
            state.value(&(posted >= past).then_some(round));
        }
        for (port, receive) in self.ports.posted_receives() {
            let Receive { posted, request, round, capacity, wanted, .. } = *receive;
            let wanted = wanted.tag().map(|tag| relative_tag(port, tag));
            state.value(&(2_u8, port, request, round, capacity, wanted));
            state.time(posted);
        }
        for &(port, tag) in ignored {
            state.value(&(3_u8, port, relative_tag(port, tag)));
        }
    }
}

/// Writes a request; returns whether its peer matters. The time of a past completion does not.
fn write_request(request: Request, past: SimTime, state: &mut StateWriter) -> bool {
    match request {
        Request::Inactive => {
            state.value(&0_u8);
            false
        }
        Request::Pending(awaited) => {
            state.value(&(1_u8, awaited));
            true
        }
        Request::Complete(completion) => {
            state.value(&(2_u8, completion.received));
            write_unless_past(completion.at, past, state);
            completion.at >= past
        }
    }
}

/// Writes a peer; one that was ready before the wait is not waited for. The cause may also be that of a post.
pub(crate) fn write_peer(
    Peer { ready, state: wait_state, rank, cause }: Peer,
    past: SimTime,
    state: &mut StateWriter,
) {
    state.value(&(cause, (ready >= past).then_some((wait_state, rank))));
    if ready >= past {
        state.time(ready);
    }
}

fn write_unless_past(at: SimTime, past: SimTime, state: &mut StateWriter) {
    state.value(&(at >= past));
    if at >= past {
        state.time(at);
    }
}
