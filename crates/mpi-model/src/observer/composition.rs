//! Composition of observers: none, and pairs.

use pdes_core::StateVisitor;

use super::{Analysis, ObservedRank, Observer};

/// Implements all events by reporting them to those of several optional observers that exist; `some` leaves out those of waits, and the ends of
/// actions.
macro_rules! forward_events {
    (all $this:ident => $observers:tt) => {
        $crate::observer::composition::forward_events!(some $this => $observers);
        $crate::observer::composition::forward_events! { @each $this $observers;
            action_ended(action: &$crate::observer::ActionSpan)(action);
            completing(later: impl Iterator<Item = (pdes_core::SimTime, $crate::RequestId)> + Clone)(later.clone());
            waited(wait: &$crate::observer::Wait, network: &mut dyn $crate::observer::Network)(wait, network);
            messages_charged(kind: $crate::ActionKind, messages: &$crate::observer::UncontendedMessages)(kind, messages);
        }
    };
    (some $vis:vis $this:ident => $observers:tt) => {
        $crate::observer::composition::forward_events! { @each $vis $this $observers;
            rank_ended(last: &$crate::observer::ActionSpan)(last);
            region_entered(site: trace_mmap::LocationId)(site);
            outcome_decided(action: u64, as_recorded: bool)(action, as_recorded);
            worked(kind: $crate::ActionKind, now: pdes_core::SimTime)(kind, now);
            idled(wait: &$crate::observer::Wait)(wait);
            message_sent(
                sent: &$crate::observer::Sent,
                carrier: &mut dyn $crate::observer::Carrier
            )(sent, carrier);
            receive_posted(request: $crate::RequestId, now: pdes_core::SimTime)(request, now);
            message_matched(
                matched: &$crate::observer::Match<'_>,
                carrier: &mut dyn $crate::observer::Carrier
            )(matched, carrier);
            message_dropped(
                port: usize,
                from: pdes_core::Rank,
                message: &$crate::Message
            )(port, from, message);
            message_probed(
                request: $crate::RequestId,
                from: pdes_core::Rank,
                queue: $crate::ReceiveQueue,
                message: &$crate::Message
            )(request, from, queue, message);
            data_arrived(request: $crate::RequestId, at: pdes_core::SimTime)(request, at);
            send_completed(
                request: $crate::RequestId,
                received: pdes_core::SimTime,
                cause: $crate::Cause
            )(request, received, cause);
            time_sent(
                sent: &$crate::observer::SentTime<'_>,
                carrier: &mut dyn $crate::observer::Carrier
            )(sent, carrier);
            time_received(
                from: pdes_core::Rank,
                message: &$crate::Message,
                request: $crate::RequestId
            )(from, message, request);
            operation_started(operation: $crate::OperationIndex)(operation);
            operation_resumed(operation: $crate::OperationIndex)(operation);
            operation_paused(operation: $crate::OperationIndex)(operation);
            operation_ended(
                operation: $crate::OperationIndex,
                request: $crate::RequestId
            )(operation, request);
            operation_dropped(operation: $crate::OperationIndex)(operation);
            data_received(from: pdes_core::Rank, fragment: $crate::token::Fragment)(from, fragment);
            publish()();
        }
    };
    (@each $vis:vis $this:ident $observers:tt;
        $($name:ident($($parameter:ident: $type:ty),*)$arguments:tt;)*
    ) => {
        $(
            #[inline(always)]
            $vis fn $name(&mut $this, $($parameter: $type),*) {
                $crate::observer::composition::forward_events!(@call $observers $name $arguments);
            }
        )*
    };
    (@call [$($observer:expr),*] $name:ident $arguments:tt) => {
        $(if let Some(observer) = $observer {
            observer.$name $arguments;
        })*
    };
}

pub(crate) use forward_events;

/// Observes nothing.
impl Analysis for () {
    type Observer<'a> = ();

    fn observer<'a>(&'a self, _: &ObservedRank<'a>) {}
}

impl Observer for () {
    fn is_active(&self) -> bool {
        false
    }
}

impl<A: Analysis, B: Analysis> Analysis for (A, B) {
    type Observer<'a>
        = (A::Observer<'a>, B::Observer<'a>)
    where
        Self: 'a;

    fn observer<'a>(&'a self, rank: &ObservedRank<'a>) -> Self::Observer<'a> {
        (self.0.observer(rank), self.1.observer(rank))
    }

    fn needs_breakdowns(&self) -> bool {
        self.0.needs_breakdowns() || self.1.needs_breakdowns()
    }

    fn needs_wait_states(&self) -> bool {
        self.0.needs_wait_states() || self.1.needs_wait_states()
    }

    fn needs_causes(&self) -> bool {
        self.0.needs_causes() || self.1.needs_causes()
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.0.visit(visitor);
        self.1.visit(visitor);
    }

    fn is_active(&self) -> bool {
        self.0.is_active() || self.1.is_active()
    }

    fn counts_messages(&self) -> bool {
        self.0.counts_messages() || self.1.counts_messages()
    }

    forward_events!(all self => [Some(&mut self.0), Some(&mut self.1)]);
}
