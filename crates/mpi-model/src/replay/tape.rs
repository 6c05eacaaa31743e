//! Event recorder of a rank, for timelines.

use std::collections::BTreeMap;

use pdes_core::{Rank, SimTime};

use super::RankProcess;
use super::tag::{kind_of, number_of};
use crate::machine::Machine;
use crate::request::RequestId;
use crate::statistics::ActionKind;
use crate::timeline::{Event, Recording};
use crate::token::Message;
use crate::wait_state::WaitState;

/// Number of events that a rank buffers.
const KEPT: usize = 64;

/// Buffered events of a rank, and messages in flight.
pub(super) struct Tape {
    /// Records the states of the rank, too, not only messages from ranks whose states are recorded.
    is_inside: bool,
    /// Matched messages that have not arrived.
    under_way: BTreeMap<RequestId, Event>,
    kept: Vec<Event>,
    /// Number of events that are buffered.
    room: usize,
}

impl Tape {
    pub(super) fn new(recording: Recording<'_>, me: Rank) -> Self {
        let is_inside = recording.excerpt.has(me);
        Self { is_inside, under_way: BTreeMap::new(), kept: Vec::new(), room: KEPT }
    }

    fn keep(&mut self, event: Event, recording: Recording<'_>) {
        self.kept.push(event);
        if self.kept.len() >= self.room {
            self.hand_over(recording);
        }
    }

    fn hand_over(&mut self, recording: Recording<'_>) {
        recording.sink.take(&self.kept);
        self.kept.clear();
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Records that the rank has been in an action of this kind since the last one ended, if a timeline is requested.
    #[inline(always)]
    pub(super) fn record_state(&mut self, kind: ActionKind) {
        if self.tape.is_some() {
            self.tape_state(kind);
        }
    }

    // Cold, like all that follows: most replays record nothing.
    #[cold]
    #[inline(never)]
    fn tape_state(&mut self, kind: ActionKind) {
        let (rank, begin, end) = (self.me, self.began, self.strand.clock);
        if kind != ActionKind::Marker {
            self.tape_span(begin, end, |begin, end| Event::State { rank, kind, begin, end });
        }
    }

    /// Records a wait, if a timeline is requested.
    #[inline(always)]
    pub(super) fn record_wait(&mut self, kind: ActionKind, state: WaitState, begin: SimTime, end: SimTime) {
        if self.tape.is_some() {
            self.tape_wait(kind, state, begin, end);
        }
    }

    #[cold]
    #[inline(never)]
    fn tape_wait(&mut self, kind: ActionKind, state: WaitState, begin: SimTime, end: SimTime) {
        let rank = self.me;
        self.tape_span(begin, end, |begin, end| Event::Wait { rank, kind, state, begin, end });
    }

    fn tape_span(&mut self, begin: SimTime, end: SimTime, event: impl FnOnce(SimTime, SimTime) -> Event) {
        let (Some(tape), Some(recording)) = (&mut self.tape, self.world.recording) else { return };
        if let Some((begin, end)) = recording.excerpt.cut(begin, end).filter(|_| tape.is_inside) {
            tape.keep(event(begin, end), recording);
        }
    }

    /// Remembers the message that a receive has matched, if messages are recorded.
    #[inline(always)]
    pub(super) fn record_match(&mut self, request: RequestId, from: Rank, message: &Message) {
        if self.tape.is_some() {
            self.tape_match(request, from, message);
        }
    }

    #[cold]
    #[inline(never)]
    fn tape_match(&mut self, request: RequestId, from: Rank, message: &Message) {
        let (Some(tape), Some(recording)) = (&mut self.tape, self.world.recording) else { return };
        let &Message { posted: sent, bytes, tag, communicator, .. } = message;
        let operation = request.place().is_err().then(|| kind_of(tag));
        let is_inside = tape.is_inside || recording.excerpt.has(from);
        if is_inside && (recording.excerpt.operations || operation.is_none()) {
            let tag = if operation.is_some() { number_of(tag) } else { tag };
            let (to, arrived) = (self.me, sent);
            let event = Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation };
            tape.under_way.insert(request, event);
        }
    }

    /// Records the message of a receive, now that it has arrived, if messages are recorded.
    #[inline(always)]
    pub(super) fn record_arrival(&mut self, request: RequestId, at: SimTime) {
        if self.tape.is_some() {
            self.tape_arrival(request, at);
        }
    }

    #[cold]
    #[inline(never)]
    fn tape_arrival(&mut self, request: RequestId, at: SimTime) {
        let (Some(tape), Some(recording)) = (&mut self.tape, self.world.recording) else { return };
        if let Some(mut event) = tape.under_way.remove(&request)
            && let Event::Message { sent, arrived, .. } = &mut event
            && recording.excerpt.cut(*sent, at).is_some()
        {
            *arrived = at;
            tape.keep(event, recording);
        }
    }

    /// Records the end of the rank, if a timeline is requested, and flushes the buffer.
    pub(super) fn record_end(&mut self) {
        if self.strand.clock > self.began {
            self.record_state(ActionKind::Finalize);
        }
        if let (Some(tape), Some(recording)) = (&mut self.tape, self.world.recording) {
            tape.hand_over(recording);
            // No later flush: messages that still arrive are passed on one by one.
            tape.room = 0;
        }
    }
}
