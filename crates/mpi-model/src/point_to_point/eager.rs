//! Eager messages on machines with shared links: their data flow whether or not the receive is posted.

use std::num::NonZeroU32;

use pdes_core::{Bytes, LpId, Rank, SimTime, StateVisitor};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::matching::Departure;
use super::{PointToPoint, Request, RequestCompletion, RequestId};
use crate::cause::Cause;
use crate::completion::Completion;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::{Machine, Work};
use crate::observer::Analysis;
use crate::token::{EagerMessageId, Message, eager_messages_to};

/// Eager messages to a rank that have not both arrived and been received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct EagerMessages {
    states: FxHashMap<EagerMessageId, State>,
    started: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum State {
    /// Transfer in progress, no receive posted.
    Unexpected,
    /// Transfer in progress, for this posted receive.
    Expected { receive: RequestId, received: Option<Bytes> },
    /// Arrived, no receive posted.
    Arrived(SimTime),
    /// Transfer in progress, never received.
    Unwanted,
}

impl EagerMessages {
    /// Visits the messages to a rank in the order of their numbers.
    pub(super) fn visit(&mut self, lp: LpId, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self { states, started } = self;
        visitor.number_on(eager_messages_to(lp), started);
        let mut messages: Vec<_> = states.iter_mut().collect();
        messages.sort_by_key(|(id, _)| id.0);
        visitor.compare(&messages.len());
        for (id, message) in messages {
            id.compare(lp, visitor);
            match message {
                State::Unexpected => visitor.variant(0),
                State::Expected { receive, received } => visitor.compare(&(1_u8, receive, received)),
                State::Arrived(at) => {
                    visitor.variant(2);
                    visitor.time(at);
                }
                State::Unwanted => visitor.variant(3),
            }
        }
    }

    /// Marks a message that is never received.
    pub(super) fn discard(&mut self, id: EagerMessageId) {
        if let Some(State::Arrived(_)) = self.states.insert(id, State::Unwanted) {
            self.states.remove(&id);
        }
    }
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Starts the transfer of an eager message, unless the machine answers at once.
    #[cold]
    pub(super) fn start_eager(
        &mut self,
        context: &RankContext<'t, M, A>,
        port: usize,
        message: Message,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Departure, Failure<M::Error>> {
        if message.cause == Cause::REPEATED {
            return Ok(Departure::OnSend);
        }
        let route = self.route_of_port(context, port)?;
        let peer = self.ports.get(port).peer;
        let bytes = message.bytes + self.parameters().envelope;
        let number = NonZeroU32::MIN.saturating_add(self.cold().eager_messages.started);
        let id = EagerMessageId(number);
        let completion = Completion::eager(self.replay.lp(self.me), id);
        let Some(order) = self.replay.machine.work_request(Work::Transfer { route, bytes }, completion)
        else {
            return Ok(Departure::OnSend);
        };
        outbox.submit(message.posted, order_number(message.round, peer), order);
        let eager_messages = &mut self.cold().eager_messages;
        eager_messages.started += 1;
        eager_messages.states.insert(id, State::Unexpected);
        Ok(Departure::InFlight(id))
    }

    /// Matches a receive with an eager message; returns whether the message has arrived.
    #[cold]
    pub(super) fn match_eager(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        id: EagerMessageId,
        receive: RequestId,
        received: Option<Bytes>,
    ) -> bool {
        let states = &mut self.cold().eager_messages.states;
        let Some(State::Arrived(at)) = states.insert(id, State::Expected { receive, received }) else {
            return false;
        };
        self.complete_eager(context, id, receive, RequestCompletion { at, received });
        true
    }

    /// Handles the arrival of an eager message; returns the receive that it completes.
    #[cold]
    pub(crate) fn eager_arrived(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        id: EagerMessageId,
        at: SimTime,
    ) -> Option<RequestId> {
        let states = &mut self.cold().eager_messages.states;
        match states.insert(id, State::Arrived(at)) {
            Some(State::Expected { receive, received }) => {
                self.complete_eager(context, id, receive, RequestCompletion { at, received });
                Some(receive)
            }
            Some(State::Unwanted) => {
                states.remove(&id);
                None
            }
            _ => None,
        }
    }

    fn complete_eager(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        id: EagerMessageId,
        receive: RequestId,
        completion: RequestCompletion,
    ) {
        self.cold().eager_messages.states.remove(&id);
        context.observers.data_arrived(receive, completion.at);
        self.requests.set(receive, Request::Complete(completion));
    }
}

/// Returns the order number of a flow among those that start at one instant.
pub(super) fn order_number(round: u32, rank: Rank) -> u64 {
    u64::from(round) << 32 | u64::from(rank.get())
}
