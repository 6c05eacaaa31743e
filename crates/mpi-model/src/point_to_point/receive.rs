//! Receives: their costs and their posts.

use pdes_core::{Bytes, Rank};
use trace_mmap::{CommId, GraphFilter, InIdx, Source};

use super::mailbox::MatchFilter;
use super::matching::{Context, TagFilter};
use super::{Awaited, CollectiveMessage, PointToPoint, Receive, Request, RequestId};
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Charges a non-blocking receive, before it is posted.
    #[inline]
    pub(crate) fn pay_for_irecv(&self, context: &mut RankContext<'t, M, A>, kind: ActionKind) {
        context.spend(self.parameters().irecv);
        context.worked(kind);
    }

    /// Posts a receive on an incoming channel of the trace.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        channel: InIdx,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let incoming = context.trace.incoming_channel(channel);
        let tag = incoming.tag.map(|tag| tag.get() as u32);
        let receive = new_receive(context, capacity, tag, request);
        if self.mailbox.is_none() {
            self.post(context, incoming.port.index(), receive, outbox);
            return;
        }
        let wanted = context.channel_filter(incoming);
        self.post_to_mailbox(context, (receive, wanted, None), outbox);
    }

    /// Posts a receive from a rank, from any source, or from `MPI_PROC_NULL`.
    pub(crate) fn receive_from(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        from: Source,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        match from {
            Source::ProcNull => self.complete_at_once(context, request),
            Source::Rank(channel) => self.receive(context, channel, capacity, request, outbox),
            Source::Any { .. } => {
                let Some(mut wanted) = context.filter_of(from) else { return };
                let recorded = if self.is_reenacted() { wanted.source.take() } else { None };
                if wanted.source.is_some() && self.count_kept_source(context, from) {
                    context.observers.outcome_decided(context.thread.action, true);
                }
                let receive = new_receive(context, capacity, wanted.tag, request);
                self.post_to_mailbox(context, (receive, wanted, recorded), outbox);
            }
        }
    }

    /// Posts a receive of a graph at a rank whose messages all match in its mailbox.
    pub(crate) fn receive_first(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        GraphFilter { source, tag, bytes }: GraphFilter,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let receive = new_receive(context, bytes, tag, request);
        let wanted = MatchFilter { source, tag, communicator: CommId::WORLD };
        self.post_to_mailbox(context, (receive, wanted, None), outbox);
    }

    #[cold]
    fn post_to_mailbox(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        (receive, wanted, recorded): (Receive, MatchFilter, Option<Rank>),
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let awaited = wanted.source.map_or(Awaited::AnySender, Awaited::Sender);
        self.requests.set(receive.request, Request::Pending(awaited));
        if let Some(statuses) = &mut self.statuses {
            statuses.forget(receive.request);
        }
        let pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.post(receive, wanted, recorded));
        if let Some(pair) = pair
            && let Err(failure) = self.start_pair(context, pair, outbox)
        {
            self.defer_failure(failure, outbox);
        }
    }

    pub(crate) fn receive_collective(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        CollectiveMessage { peer, communicator, tag, bytes }: CollectiveMessage,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<(), Failure<M::Error>> {
        let port = self.ports.port_of(Context::Collective(communicator), peer);
        self.route_of_port(context, port)?;
        let receive = new_receive(context, bytes, Some(tag), request);
        self.post(context, port, receive, outbox);
        if let Err(failure) = self.check_operations(context, port) {
            self.defer_failure(failure, outbox);
        }
        Ok(())
    }

    /// Cancels a receive, unless it has matched a message; returns whether it is cancelled.
    pub(crate) fn cancel_receive(&mut self, context: &RankContext<'t, M, A>, request: RequestId) -> bool {
        let is_withdrawn = self.mailbox.as_mut().is_some_and(|mailbox| mailbox.cancel_receive(request))
            || self.ports.cancel_receive(request);
        if is_withdrawn {
            self.complete_at_once(context, request);
        }
        is_withdrawn
    }

    /// Posts a receive.
    #[inline(always)]
    fn post(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        port: usize,
        receive: Receive,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let awaited = Awaited::Sender(self.ports.get(port).peer);
        let found = self.ports.post(port, receive);
        // Pending until a match completes it: it may fail, or take until the data has arrived.
        self.requests.set(receive.request, Request::Pending(awaited));
        if let Some(arrived) = found
            && let Err(failure) = self.start_transfer(context, port, &arrived, receive, outbox)
        {
            self.defer_failure(failure, outbox);
        }
    }
}

#[inline(always)]
pub(super) fn new_receive<M: Machine, A: Analysis>(
    context: &mut RankContext<'_, M, A>,
    capacity: Bytes,
    tag: Option<u32>,
    request: RequestId,
) -> Receive {
    let (round, posted) = (context.thread.next_round(), context.thread.clock);
    context.observers.receive_posted(request, posted);
    let wanted = TagFilter::new(tag);
    Receive { posted, round, request, action: context.thread.action, capacity, wanted }
}
