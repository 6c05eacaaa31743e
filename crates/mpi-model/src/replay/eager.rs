//! Eager messages on machines with shared links: their data flow whether or not the receive is posted.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Outbox, SimTime};
use rustc_hash::FxHashMap;

use super::message::order_number;
use super::{Failure, RankProcess};
use crate::completion::Completion;
use crate::machine::{Machine, Work};
use crate::matching::Departure;
use crate::observer::Analysis;
use crate::request::{Request, RequestCompletion, RequestId};
use crate::token::{EagerMessageId, Message, Token};

/// Eager messages to a rank that have not both arrived and been received.
#[derive(Debug, Default)]
pub(super) struct EagerMessages {
    states: FxHashMap<EagerMessageId, State>,
    started: u32,
}

#[derive(Clone, Copy, Debug)]
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
    /// Marks a message that is never received.
    pub(super) fn discard(&mut self, id: EagerMessageId) {
        if let Some(State::Arrived(_)) = self.states.insert(id, State::Unwanted) {
            self.states.remove(&id);
        }
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Starts the transfer of an eager message, unless the machine answers at once.
    #[cold]
    pub(super) fn start_eager(
        &mut self,
        port: usize,
        message: Message,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Departure, Failure<M::Error>> {
        let route = self.point_to_point.route_of_port(port).map_err(|kind| self.fail(kind))?;
        let peer = self.point_to_point.ports.get(port).peer;
        let bytes = message.bytes + self.replay.parameters.envelope;
        let number = NonZeroU32::MIN.saturating_add(self.cold().eager_messages.started);
        let id = EagerMessageId(number);
        let completion = Completion::eager(self.me, id);
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
        id: EagerMessageId,
        receive: RequestId,
        received: Option<Bytes>,
    ) -> bool {
        let eager_messages = &mut self.cold().eager_messages;
        match eager_messages.states.insert(id, State::Expected { receive, received }) {
            Some(State::Arrived(at)) => {
                eager_messages.states.remove(&id);
                self.observers.data_arrived(receive, at);
                self.requests.set(receive, Request::Complete(RequestCompletion { at, received }));
                true
            }
            _ => false,
        }
    }

    /// Handles the arrival of an eager message; returns the receive that it completes.
    #[cold]
    pub(super) fn eager_arrived(&mut self, id: EagerMessageId, at: SimTime) -> Option<RequestId> {
        let eager_messages = &mut self.cold().eager_messages;
        match eager_messages.states.insert(id, State::Arrived(at)) {
            Some(State::Expected { receive, received }) => {
                eager_messages.states.remove(&id);
                self.observers.data_arrived(receive, at);
                self.requests.set(receive, Request::Complete(RequestCompletion { at, received }));
                Some(receive)
            }
            Some(State::Unwanted) => {
                eager_messages.states.remove(&id);
                None
            }
            _ => None,
        }
    }
}
