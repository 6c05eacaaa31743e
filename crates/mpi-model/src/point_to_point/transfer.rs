//! Transfers of matched messages: eager, detached and rendezvous.

use pdes_core::{SimTime, StateVisitor};
use serde::{Deserialize, Serialize};

use super::eager::order_number;
use super::matching::{Departure, Port};
use super::{PointToPoint, Receive, Request, RequestCompletion, UnexpectedMessage};
use crate::cause::Cause;
use crate::completion::Completion;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::observer::{Analysis, Match};
use crate::token::{Message, Side, Token};

/// A message and the receive that it matches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MatchedMessage {
    pub(super) port: usize,
    pub(super) message: Message,
    pub(super) receive: Receive,
    /// Time from which on the receiver did not delay the transfer, and the cause of its lateness then.
    pub(super) ready: SimTime,
    pub(super) cause: Cause,
}

impl MatchedMessage {
    pub(super) fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { port, message, receive, ready, cause } = self;
        let Message { posted, bytes, tag, communicator, reply, round, cause: of_sender } = message;
        visitor.compare(&(port, bytes, tag, communicator, (reply, round, of_sender), cause));
        visitor.time(posted);
        visitor.time(ready);
        receive.visit({ receive.wanted }.tag(), visitor);
    }
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Starts the transfer of a matched message: at the later of the two posts, that of eager data at the send. Returns whether
    /// the receive is complete.
    #[inline]
    pub(super) fn start_transfer(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        port: usize,
        arrived: &UnexpectedMessage,
        receive: Receive,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let &UnexpectedMessage { ref message, departure } = arrived;
        let &Message { posted, bytes, .. } = message;
        let peer = self.ports.get(port).peer;
        let room = receive.capacity;
        if bytes > room && !context.replay.truncates() {
            let kind = ReplayErrorKind::Truncated { peer, sent: bytes, room };
            return Err(match_failure(context, *message, receive, kind));
        }
        let is_eager = departure != Departure::OnMatch;
        let (request, ready) = (receive.request, receive.posted);
        // The message takes the place of the receive.
        let cause = context.observers.cause_of_post(request);
        let matched = Match { port, from: peer, message, request, posted: ready, is_eager };
        context.observers.message_matched(&matched, outbox);
        let start = match departure {
            // A detached message that is not eager also waits for its receive, although its sender does not wait.
            Departure::OnMatch => posted.max(ready),
            Departure::OnSend => posted,
            Departure::InFlight(id) => return Ok(self.match_eager(context, id, request, Some(bytes))),
        };
        // Collective operations receive in their calls; nonblocking ones have a thread of their own.
        if self.progress.is_some() && !is_eager && posted > ready && request.index_or_part().is_ok() {
            let matched = MatchedMessage { port, message: *message, receive, ready, cause };
            return self.start_in_call(context, matched, outbox);
        }
        self.begin_transfer(context, (port, message, receive), start, (ready, cause), outbox)
    }

    /// Begins the transfer of a message that was delayed. Returns whether the receive is complete.
    #[inline(never)]
    pub(super) fn begin_delayed(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        matched: &MatchedMessage,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let MatchedMessage { port, message, receive, ready, cause } = matched;
        let start = message.posted.max(*ready);
        self.begin_transfer(context, (*port, message, *receive), start, (*ready, *cause), outbox)
    }

    /// Begins the transfer of a matched message that is not in flight, at `start`; the receiver did not delay it from `ready` on. Returns
    /// whether the receive is complete.
    // Called for every message: without the attribute a replay executes 3 % more instructions.
    #[inline(always)]
    fn begin_transfer(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        (port, message, receive): (usize, &Message, Receive),
        start: SimTime,
        (ready, cause): (SimTime, Cause),
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let &Message { posted, bytes, reply, .. } = message;
        let Port { peer, route, .. } = *self.ports.get(port);
        let received = reply.is_none().then_some(bytes);
        let route = route.expect("the route is looked up before a receive is posted");
        let wire = bytes + self.replay.parameters.envelope;
        let completion = match reply {
            None => Completion::detached(self.replay.lp(self.me), receive.request, bytes),
            Some(send) => {
                let [receiver, sender] = [self.me, peer].map(|rank| self.replay.lp(rank));
                Completion::rendezvous((receiver, receive.request), (ready, cause), (sender, send))
            }
        };
        let is_repeated = message.cause == Cause::REPEATED;
        let time = match context.transfer((route, wire), start, is_repeated, completion) {
            Ok(order) => {
                // The side that posts last starts the flow; flows of one instant start in the order of posts: see `next_round`.
                let place = if (posted, message.round, peer) > (receive.posted, receive.round, self.me) {
                    order_number(message.round, peer)
                } else {
                    order_number(receive.round, self.me)
                };
                outbox.submit(start, place, order);
                return Ok(false);
            }
            Err(time) => time,
        };
        let arrival = time.and_then(|time| start.checked_add(time));
        let Some(at) = arrival else {
            let kind = ReplayErrorKind::TimeOverflow { what: "a message", amount: bytes.to_string() };
            return Err(match_failure(context, *message, receive, kind));
        };
        if let Some(request) = reply {
            let side = Side::Sender { received: ready, cause };
            outbox.send(peer, Token::Arrived { request, at, side });
        }
        context.observers.data_arrived(receive.request, at);
        self.requests.set(receive.request, Request::Complete(RequestCompletion { at, received }));
        Ok(true)
    }
}

/// Returns the failure of a receive and the message that it matches, the same whichever came first.
pub(super) fn match_failure<M: Machine, A: Analysis>(
    context: &RankContext<'_, M, A>,
    message: Message,
    receive: Receive,
    kind: ReplayErrorKind<M::Error>,
) -> Failure<M::Error> {
    let at = message.posted.max(receive.posted);
    context.failure(at, receive.action, kind)
}
