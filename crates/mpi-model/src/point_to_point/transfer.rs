//! Transfers of matched messages: eager, detached and rendezvous.

use super::eager::order_number;
use super::matching::{Departure, Port};
use super::{PointToPoint, Receive, Request, RequestCompletion, UnexpectedMessage};
use crate::completion::Completion;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, Work};
use crate::observer::{Analysis, Match};
use crate::token::{Message, Side, Token};

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
        outbox: &mut RankOutbox<M>,
    ) -> Result<bool, Failure<M::Error>> {
        let &UnexpectedMessage { ref message, departure } = arrived;
        let &Message { posted, bytes, reply, .. } = message;
        let Port { peer, route, .. } = *self.ports.get(port);
        let room = receive.capacity;
        if bytes > room {
            let kind = ReplayErrorKind::Truncated { peer, sent: bytes, room };
            return Err(match_failure(context, *message, receive, kind));
        }
        let is_eager = departure != Departure::OnMatch;
        let (request, ready) = (receive.request, receive.posted);
        // The message takes the place of the receive.
        let cause = context.observers.cause_of_post(request);
        let matched = Match { port, from: peer, message, request, posted: ready, is_eager };
        context.observers.message_matched(&matched, outbox);
        let received = reply.is_none().then_some(bytes);
        if let Departure::InFlight(id) = departure {
            return Ok(self.match_eager(context, id, receive.request, received));
        }
        let route = route.expect("the route is looked up before a receive is posted");
        let wire = bytes + self.replay.parameters.envelope;
        // A detached message that is not eager also waits for its receive, although its sender does not wait.
        let start = if departure == Departure::OnSend { posted } else { posted.max(receive.posted) };
        let completion = match reply {
            None => Completion::detached(self.me, receive.request, bytes),
            Some(send) => {
                Completion::rendezvous((self.me, receive.request), (receive.posted, cause), (peer, send))
            }
        };
        if let Some(order) =
            self.replay.machine.work_request(Work::Transfer { route, bytes: wire }, completion)
        {
            // The side that posts last starts the flow; flows of one instant start in the order of posts: see `next_round`.
            let place = if (posted, message.round, peer) > (receive.posted, receive.round, self.me) {
                order_number(message.round, peer)
            } else {
                order_number(receive.round, self.me)
            };
            outbox.submit(start, place, order);
            return Ok(false);
        }
        let arrival = self.replay.machine.transfer(route, wire).and_then(|time| start.checked_add(time));
        let Some(at) = arrival else {
            let kind = ReplayErrorKind::TimeOverflow { what: "a message", amount: bytes.to_string() };
            return Err(match_failure(context, *message, receive, kind));
        };
        if let Some(request) = reply {
            let side = Side::Sender { received: receive.posted, cause };
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
