//! Search for the messages that probes find.

use pdes_core::Rank;
use trace_mmap::{Incoming, Source};

use super::mailbox::MatchFilter;
use super::{PointToPoint, RequestId};
use crate::context::RankContext;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::token::{Message, ReceiveQueue};

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Returns the first message that a probe finds, and its queue, as far as it is known. Where the trace has the source of the
    /// message, it is a message of that rank, because the trace then receives it by name.
    pub(crate) fn first_message(
        &self,
        context: &RankContext<'t, M, A>,
        from: Source,
    ) -> Option<(ReceiveQueue, &Message)> {
        let filter = context.filter_of(from)?;
        match (&self.mailbox, from) {
            (Some(mailbox), _) => {
                let (from, message) = mailbox.first(filter)?;
                Some((ReceiveQueue::Mailbox(from.get()), message))
            }
            (None, Source::Rank(channel)) => {
                let port = context.trace.incoming_channel(channel).port;
                Some((ReceiveQueue::Port(port), self.ports.first_unexpected(port.index(), filter.tag)?))
            }
            (None, _) => None,
        }
    }

    /// Returns the sources of which a probe finds a message.
    pub(crate) fn probed_sources(&self, context: &RankContext<'t, M, A>, from: Source) -> Vec<Rank> {
        let filter = context.filter_of(from);
        self.mailbox.iter().zip(filter).flat_map(|(mailbox, filter)| mailbox.sources(filter)).collect()
    }

    /// Returns the sender of the messages in a queue.
    pub(crate) fn sender_to(&self, queue: ReceiveQueue) -> Rank {
        match queue {
            ReceiveQueue::Port(port) => self.ports.get(port.index()).peer,
            ReceiveQueue::Collective(from) | ReceiveQueue::Mailbox(from) | ReceiveQueue::Time(from) => {
                Rank::new(from)
            }
        }
    }

    /// Reports that a probe, which waits as for this request, finds a message.
    pub(crate) fn report_probed(
        &self,
        context: &mut RankContext<'t, M, A>,
        from: Source,
        request: RequestId,
    ) {
        if let Some((queue, &message)) = self.first_message(context, from) {
            let from = self.sender_to(queue);
            context.observers.message_probed(request, from, queue, &message);
        }
    }
}

impl<M: Machine, A: Analysis> RankContext<'_, M, A> {
    /// Returns the filter of a source; `None` for `MPI_PROC_NULL`.
    pub(crate) fn filter_of(&self, from: Source) -> Option<MatchFilter> {
        match from {
            Source::ProcNull => None,
            Source::Rank(channel) => Some(self.channel_filter(self.trace.incoming_channel(channel))),
            Source::Any { tag, communicator, recorded } => {
                let communicator = self.communicator(communicator);
                Some(MatchFilter { source: recorded, tag: tag.map(|tag| tag.get() as u32), communicator })
            }
        }
    }

    /// Returns the filter of an incoming channel.
    pub(super) fn channel_filter(&self, incoming: &Incoming) -> MatchFilter {
        let communicator = self.communicator(incoming.communicator);
        let tag = incoming.tag.map(|tag| tag.get() as u32);
        MatchFilter { source: Some(incoming.peer), tag, communicator }
    }
}
