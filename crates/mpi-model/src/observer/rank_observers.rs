//! Everything that observes one rank.

use pdes_core::{SimTime, StateVisitor};

use super::composition::forward_events;
use super::{ActionSpan, Analysis, Network, ObservedRank, Observer, UncontendedMessages, Wait, WaitStates};
use crate::cause::Cause;
use crate::point_to_point::{OperationIndex, RequestId};
use crate::statistics::{ActionKind, Statistics};

/// Statistics and observers of a rank.
pub(crate) struct RankObservers<O> {
    pub(crate) statistics: Statistics,
    /// Wait states, where an analysis needs them.
    pub(crate) wait_states: Option<Box<WaitStates>>,
    pub(crate) others: O,
    /// The other observers are active: one question for all of them, at each event.
    has_others: bool,
    /// More than statistics observe: one question at the end of each action.
    has_more: bool,
}

impl<O: Observer> RankObservers<O> {
    pub(crate) fn new<'a, A: Analysis<Observer<'a> = O>>(analysis: &'a A, rank: &ObservedRank<'a>) -> Self {
        let (needs_wait_states, needs_causes) = (analysis.needs_wait_states(), analysis.needs_causes());
        let others = analysis.observer(rank);
        let has_others = others.is_active();
        Self {
            statistics: if analysis.needs_breakdowns() {
                Statistics::with_breakdown(needs_causes)
            } else {
                Statistics::default()
            },
            wait_states: needs_wait_states.then(|| Box::new(WaitStates::new(rank, needs_causes))),
            has_others,
            has_more: needs_wait_states || has_others,
            others,
        }
    }

    /// Visits the statistics and the observers; times before `past` make no difference. Wait states are compared of those requests and
    /// operations that matter.
    pub(crate) fn visit(
        &mut self,
        past: SimTime,
        requests: &[RequestId],
        operations: impl Iterator<Item = OperationIndex>,
        visitor: &mut StateVisitor<'_>,
    ) {
        let Self { statistics, wait_states, others, has_others: _, has_more: _ } = self;
        visitor.compare(&statistics.current_region());
        visitor.total(statistics);
        visitor.context(wait_states.is_some());
        if let Some(wait_states) = wait_states {
            wait_states.visit(past, requests, operations, visitor);
        }
        others.visit(visitor);
    }

    forward_events!(some pub(crate) self => [
        Some(&mut self.statistics), self.wait_states.as_deref_mut(), self.has_others.then_some(&mut self.others)
    ]);

    #[inline(always)]
    pub(crate) fn completing(&mut self, later: impl Iterator<Item = (SimTime, RequestId)> + Clone) {
        if let Some(wait_states) = &mut self.wait_states {
            wait_states.completing(later.clone());
        }
        if self.has_others {
            self.others.completing(later);
        }
    }

    /// Reports the end of an action of the program.
    #[inline(always)]
    pub(crate) fn action_ended(&mut self, &ActionSpan { kind, begin, end }: &ActionSpan) {
        self.statistics.action_ended(&ActionSpan { kind, begin, end });
        if self.has_more {
            self.others_action_ended(kind, begin, end);
        }
    }

    // Out of line, and with the parts of an action in registers: most replays have no other observers.
    #[inline(never)]
    fn others_action_ended(&mut self, kind: ActionKind, begin: SimTime, end: SimTime) {
        let action = ActionSpan { kind, begin, end };
        if let Some(wait_states) = &mut self.wait_states {
            wait_states.action_ended(&action);
        }
        if self.has_others {
            self.others.action_ended(&action);
        }
    }

    /// Reports a wait for a request, or for [several](Wait::request).
    #[inline(always)]
    pub(crate) fn waited(
        &mut self,
        kind: ActionKind,
        (begin, end): (SimTime, SimTime),
        request: Option<RequestId>,
        network: &mut dyn Network,
    ) {
        if self.wait_states.is_some() {
            self.waited_for_peer(kind, begin, end, request, network);
        } else if self.has_others {
            self.others.waited(&Wait { kind, begin, end, request, peer: None }, network);
        }
    }

    // Out of line, and with the parts of a wait in registers: most replays have no breakdown.
    #[inline(never)]
    fn waited_for_peer(
        &mut self,
        kind: ActionKind,
        begin: SimTime,
        end: SimTime,
        request: Option<RequestId>,
        network: &mut dyn Network,
    ) {
        let Some(wait_states) = &mut self.wait_states else { return };
        let mut wait = Wait { kind, begin, end, request, peer: None };
        wait.peer = wait_states.classify(&wait, self.statistics.current_region());
        self.statistics.waited(&wait, network);
        if self.has_others {
            self.others.waited(&wait, network);
        }
    }

    /// Reports a state of a rank whose operations, which overlap, are counted apart.
    pub(crate) fn state_ended(&mut self, state: &ActionSpan) {
        self.statistics.add_time(state.kind, state.end - state.begin);
        if self.has_others {
            self.others.action_ended(state);
        }
    }

    /// The current thread of control receives the message of one request.
    #[inline(always)]
    pub(crate) fn received(&mut self, request: RequestId, kind: ActionKind) {
        let Some(wait_states) = &mut self.wait_states else { return };
        if !wait_states.late().is_empty() {
            let statistics = &mut self.statistics;
            wait_states.received_later(request, kind, |late, time| {
                statistics.add_wrong_order(late.region, late.kind, time);
            });
        }
    }

    /// Returns the cause of the lateness of the current thread of control, where an analysis needs it.
    #[inline(always)]
    pub(crate) fn cause(&self) -> Cause {
        self.wait_states.as_ref().map_or(Cause::default(), |wait_states| wait_states.cause())
    }

    /// Returns the cause of the lateness with which a pending receive has been posted, where an analysis needs it.
    #[inline(always)]
    pub(crate) fn cause_of_post(&self, request: RequestId) -> Cause {
        self.wait_states.as_ref().map_or(Cause::default(), |wait_states| wait_states.cause_of_post(request))
    }

    pub(crate) fn messages_charged(&mut self, kind: ActionKind, messages: &UncontendedMessages) {
        if self.wait_states.as_ref().is_some_and(|wait_states| wait_states.is_in_program()) {
            self.statistics.messages_charged(kind, messages);
        }
        if self.has_others {
            self.others.messages_charged(kind, messages);
        }
    }
}
