//! Eager messages on machines with shared links: their data flow whether or not the receive is posted.

use std::num::NonZeroU32;

use pdes_core::{Bytes, Outbox, SimTime};
use rustc_hash::FxHashMap;

use super::message::place;
use super::{Failure, RankProcess};
use crate::machine::{Machine, Work};
use crate::matching::Departure;
use crate::notice::Notice;
use crate::request::{Completion, Request, RequestId};
use crate::token::{Flight, Message, Token};

/// Eager messages to a rank that have not both arrived and been received.
#[derive(Debug, Default)]
pub(super) struct Flights {
    states: FxHashMap<Flight, State>,
    launched: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Transfer in progress, no receive posted.
    Unexpected,
    /// Transfer in progress, for this posted receive.
    Expected { receive: RequestId, received: Option<Bytes> },
    /// Arrived, no receive posted.
    Landed(SimTime),
    /// Transfer in progress, never received.
    Unwanted,
}

impl Flights {
    /// Marks a message that is never received.
    pub(super) fn give_up(&mut self, flight: Flight) {
        if let Some(State::Landed(_)) = self.states.insert(flight, State::Unwanted) {
            self.states.remove(&flight);
        }
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Starts the transfer of an eager message, unless the machine answers at once.
    #[cold]
    pub(super) fn launch(
        &mut self,
        port: usize,
        message: Message,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Departure, Failure<M::Error>> {
        let path = self.path(port)?;
        let peer = self.ports.get(port).peer;
        let bytes = message.bytes + self.world.parameters.envelope;
        let number = NonZeroU32::MIN.saturating_add(self.rare().flights.launched);
        let flight = Flight(number);
        let notice = Notice::eager(self.me, flight);
        let Some(order) = self.world.machine.order(Work::Transfer { path, bytes }, notice) else {
            return Ok(Departure::Sent);
        };
        outbox.file(message.posted, place(message.round, peer), order);
        let flights = &mut self.rare().flights;
        flights.launched += 1;
        flights.states.insert(flight, State::Unexpected);
        Ok(Departure::Flying(flight))
    }

    /// Matches a receive with an eager message; returns whether the message has arrived.
    #[cold]
    pub(super) fn await_flight(
        &mut self,
        flight: Flight,
        receive: RequestId,
        received: Option<Bytes>,
    ) -> bool {
        let flights = &mut self.rare().flights;
        match flights.states.insert(flight, State::Expected { receive, received }) {
            Some(State::Landed(at)) => {
                flights.states.remove(&flight);
                self.take_arrival(receive, at);
                self.requests.set(receive, Request::Complete(Completion { at, received }));
                true
            }
            _ => false,
        }
    }

    /// Handles the arrival of an eager message; returns the receive that it completes.
    #[cold]
    pub(super) fn land(&mut self, flight: Flight, at: SimTime) -> Option<RequestId> {
        let flights = &mut self.rare().flights;
        match flights.states.insert(flight, State::Landed(at)) {
            Some(State::Expected { receive, received }) => {
                flights.states.remove(&flight);
                self.take_arrival(receive, at);
                self.requests.set(receive, Request::Complete(Completion { at, received }));
                Some(receive)
            }
            Some(State::Unwanted) => {
                flights.states.remove(&flight);
                None
            }
            _ => None,
        }
    }
}
