//! Accesses to the memory of other ranks, which the origin starts for both sides.

use pdes_core::{Bytes, Rank, SimTime};
use trace_mmap::CommId;

use super::eager::order_number;
use super::matching::Context;
use super::tag::ONE_SIDED;
use super::{Awaited, CollectiveMessage, PointToPoint, Request, RequestCompletion, RequestId};
use crate::cause::Cause;
use crate::completion::Completion;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::token::{Message, Side, Token};

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Starts the transfer of data from another rank, whose arrival completes a request.
    pub(crate) fn get(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        CollectiveMessage { peer, communicator, bytes, .. }: CollectiveMessage,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<(), Failure<M::Error>> {
        let port = self.ports.port_of(Context::Collective(communicator), peer);
        let route = self.route_of_port(context, port)?;
        let (round, posted) = (context.thread.next_round(), context.thread.clock);
        context.observers.receive_posted(request, posted);
        let wire = bytes + self.parameters().envelope;
        let completion = Completion::get(self.replay.lp(self.me), request);
        let time = match context.transfer((route, wire), posted, context.repeats(), completion) {
            Ok(order) => {
                self.requests.set(request, Request::Pending(Awaited::Sender(peer)));
                outbox.submit(posted, order_number(round, self.me), order);
                return Ok(());
            }
            Err(time) => time,
        };
        let at = time.and_then(|time| posted.checked_add(time));
        let at = at.ok_or_else(|| {
            context.fail(ReplayErrorKind::TimeOverflow { what: "a message", amount: bytes.to_string() })
        })?;
        context.observers.data_arrived(request, at);
        self.requests.set(request, Request::Complete(RequestCompletion { at, received: None }));
        Ok(())
    }

    /// Completes a request that waits for a lock, which a rank has given back.
    pub(crate) fn locked(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        request: RequestId,
        at: SimTime,
        (from, cause): (Rank, Cause),
    ) {
        let message = Message {
            posted: at,
            bytes: Bytes::ZERO,
            tag: ONE_SIDED,
            communicator: CommId::WORLD,
            reply: None,
            round: 0,
            cause,
        };
        context.observers.time_received(from, &message, request);
        self.requests.set(request, Request::Complete(RequestCompletion { at, received: None }));
    }

    /// Starts the transfer of a message that the sender has put, and whose arrival it waits for; this rank takes no notice.
    pub(super) fn start_put(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        port: usize,
        (message, send): (Message, RequestId),
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<(), Failure<M::Error>> {
        let route = self.route_of_port(context, port)?;
        let peer = self.ports.get(port).peer;
        context.observers.message_dropped(port, peer, &message);
        let Message { posted, bytes, round, .. } = message;
        let wire = bytes + self.parameters().envelope;
        let [receiver, sender] = [self.me, peer].map(|rank| self.replay.lp(rank));
        let completion = Completion::put(receiver, posted, (sender, send));
        let is_repeated = message.cause == Cause::REPEATED;
        let time = match context.transfer((route, wire), posted, is_repeated, completion) {
            Ok(order) => {
                outbox.submit(posted, order_number(round, peer), order);
                return Ok(());
            }
            Err(time) => time,
        };
        let at = time.and_then(|time| posted.checked_add(time)).ok_or_else(|| {
            let kind = ReplayErrorKind::TimeOverflow { what: "a message", amount: bytes.to_string() };
            context.failure(posted, context.thread.action, kind)
        })?;
        outbox.send(peer, arrived(send, posted, at));
        Ok(())
    }
}

/// Returns the token by which the sender of a put learns that its data have arrived.
pub(crate) fn arrived(request: RequestId, posted: SimTime, at: SimTime) -> Token {
    // The target is always ready.
    Token::Arrived { request, at, side: Side::Sender { received: posted, cause: Cause::default() } }
}
