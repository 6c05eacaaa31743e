//! The recording of a rank, where a timeline is asked for.

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

/// Events that a rank keeps before it hands them over.
const KEPT: usize = 64;

/// What a rank has recorded and not handed over, and what it needs to know for that.
pub(super) struct Tape {
    /// Whether states of the rank are recorded, or only messages from ranks whose states are.
    is_inside: bool,
    /// Messages that have met their receives and not arrived.
    under_way: BTreeMap<RequestId, Event>,
    kept: Vec<Event>,
    /// How many events are kept.
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
    /// Records that the rank has been in an action of this kind since the last one ended, if that is asked for.
    #[inline(always)]
    pub(super) fn record_state(&mut self, kind: ActionKind) {
        if self.tape.is_some() {
            self.tape_state(kind);
        }
    }

    // Out of the way of replays that record nothing, as all that follows.
    #[cold]
    #[inline(never)]
    fn tape_state(&mut self, kind: ActionKind) {
        let (rank, begin, end) = (self.me, self.began, self.strand.clock);
        if kind != ActionKind::Marker {
            self.tape_span(begin, end, |begin, end| Event::State { rank, kind, begin, end });
        }
    }

    /// Records that the rank waits, if that is asked for.
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

    /// Takes in the message that a receive gets, if messages are recorded.
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

    /// Records the message that a receive has got, now that it has arrived, if messages are recorded.
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

    /// Records the end of the rank, if that is asked for, and hands over all that was recorded.
    pub(super) fn record_end(&mut self) {
        if self.strand.clock > self.began {
            self.record_state(ActionKind::Finalize);
        }
        if let (Some(tape), Some(recording)) = (&mut self.tape, self.world.recording) {
            tape.hand_over(recording);
            // Nobody comes back for what may still arrive.
            tape.room = 0;
        }
    }
}
