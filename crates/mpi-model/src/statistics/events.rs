//! Events that the statistics of a rank sum up.

use pdes_core::SimDuration;
use trace_mmap::LocationId;

use super::{ActionKind, Statistics};
use crate::observer::{ActionSpan, Carrier, Network, Observer, Peer, Sent, UncontendedMessages, Wait};
use crate::wait_state::WaitState;

impl Observer for Statistics {
    #[inline(always)]
    fn action_ended(&mut self, action: &ActionSpan) {
        self.add_action(action.kind, action.end - action.begin);
    }

    fn rank_ended(&mut self, last: &ActionSpan) {
        self.finish(last.end - last.begin);
    }

    fn region_entered(&mut self, site: LocationId) {
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.enter_region(site, &self.totals);
        }
    }

    fn outcome_decided(&mut self, action: u64, as_recorded: bool) {
        self.add_outcome(action, as_recorded);
    }

    #[inline(always)]
    fn waited(&mut self, wait: &Wait, _: &mut dyn Network) {
        self.idled(wait);
    }

    #[inline(always)]
    fn idled(&mut self, wait: &Wait) {
        if let (Some(breakdown), Some(Peer { ready, state, cause, .. })) = (&mut self.breakdown, wait.peer) {
            breakdown.add_wait(wait.kind, state, ready - wait.begin, wait.end - ready);
            if ready > wait.begin {
                breakdown.add_delay((wait.kind, state, cause), ready - wait.begin);
            }
        }
    }

    #[inline(always)]
    fn message_sent(&mut self, sent: &Sent, _: &mut dyn Carrier) {
        self.add_message(sent.message.bytes);
    }

    fn messages_charged(&mut self, kind: ActionKind, messages: &UncontendedMessages) {
        if let Some(breakdown) = &mut self.breakdown {
            breakdown.add_wait(kind, WaitState::LateSender, SimDuration::ZERO, messages.time);
        }
    }
}
