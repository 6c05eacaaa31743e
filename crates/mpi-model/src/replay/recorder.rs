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
const BUFFER_SIZE: usize = 64;

/// Buffered events of a rank, and messages in flight.
pub(super) struct EventRecorder {
    /// Records the states of the rank, too, not only messages from ranks whose states are recorded.
    records_states: bool,
    /// Matched messages that have not arrived.
    in_flight: BTreeMap<RequestId, Event>,
    buffer: Vec<Event>,
    /// Number of events that are buffered.
    capacity: usize,
}

impl EventRecorder {
    pub(super) fn new(recording: Recording<'_>, me: Rank) -> Self {
        let is_inside = recording.excerpt.includes(me);
        Self {
            records_states: is_inside,
            in_flight: BTreeMap::new(),
            buffer: Vec::new(),
            capacity: BUFFER_SIZE,
        }
    }

    fn push(&mut self, event: Event, recording: Recording<'_>) {
        self.buffer.push(event);
        if self.buffer.len() >= self.capacity {
            self.flush(recording);
        }
    }

    fn flush(&mut self, recording: Recording<'_>) {
        recording.sink.record(&self.buffer);
        self.buffer.clear();
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Records that the rank has been in an action of this kind since the last one ended, if a timeline is requested.
    #[inline(always)]
    pub(super) fn record_state(&mut self, kind: ActionKind) {
        if self.recorder.is_some() {
            self.push_state(kind);
        }
    }

    // Cold, like all that follows: most replays record nothing.
    #[cold]
    #[inline(never)]
    fn push_state(&mut self, kind: ActionKind) {
        let (rank, begin, end) = (self.me, self.action_begin, self.thread.clock);
        if kind != ActionKind::Marker {
            self.push_span(begin, end, |begin, end| Event::State { rank, kind, begin, end });
        }
    }

    /// Records a wait, if a timeline is requested.
    #[inline(always)]
    pub(super) fn record_wait(&mut self, kind: ActionKind, state: WaitState, begin: SimTime, end: SimTime) {
        if self.recorder.is_some() {
            self.push_wait(kind, state, begin, end);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_wait(&mut self, kind: ActionKind, state: WaitState, begin: SimTime, end: SimTime) {
        let rank = self.me;
        self.push_span(begin, end, |begin, end| Event::Wait { rank, kind, state, begin, end });
    }

    fn push_span(&mut self, begin: SimTime, end: SimTime, event: impl FnOnce(SimTime, SimTime) -> Event) {
        let (Some(recorder), Some(recording)) = (&mut self.recorder, self.replay.recording) else { return };
        if let Some((begin, end)) = recording.excerpt.clip(begin, end).filter(|_| recorder.records_states) {
            recorder.push(event(begin, end), recording);
        }
    }

    /// Remembers the message that a receive has matched, if messages are recorded.
    #[inline(always)]
    pub(super) fn record_match(&mut self, request: RequestId, from: Rank, message: &Message) {
        if self.recorder.is_some() {
            self.remember_match(request, from, message);
        }
    }

    #[cold]
    #[inline(never)]
    fn remember_match(&mut self, request: RequestId, from: Rank, message: &Message) {
        let (Some(recorder), Some(recording)) = (&mut self.recorder, self.replay.recording) else { return };
        let &Message { posted: sent, bytes, tag, communicator, .. } = message;
        let operation = request.index_or_part().is_err().then(|| kind_of(tag));
        let is_inside = recorder.records_states || recording.excerpt.includes(from);
        if is_inside && (recording.excerpt.operations || operation.is_none()) {
            let tag = if operation.is_some() { number_of(tag) } else { tag };
            let (to, arrived) = (self.me, sent);
            let event = Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation };
            recorder.in_flight.insert(request, event);
        }
    }

    /// Records the message of a receive, now that it has arrived, if messages are recorded.
    #[inline(always)]
    pub(super) fn record_arrival(&mut self, request: RequestId, at: SimTime) {
        if self.recorder.is_some() {
            self.push_arrival(request, at);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_arrival(&mut self, request: RequestId, at: SimTime) {
        let (Some(recorder), Some(recording)) = (&mut self.recorder, self.replay.recording) else { return };
        if let Some(mut event) = recorder.in_flight.remove(&request)
            && let Event::Message { sent, arrived, .. } = &mut event
            && recording.excerpt.clip(*sent, at).is_some()
        {
            *arrived = at;
            recorder.push(event, recording);
        }
    }

    /// Records the end of the rank, if a timeline is requested, and flushes the buffer.
    pub(super) fn record_end(&mut self) {
        if self.thread.clock > self.action_begin {
            self.record_state(ActionKind::Finalize);
        }
        if let (Some(recorder), Some(recording)) = (&mut self.recorder, self.replay.recording) {
            recorder.flush(recording);
            // No later flush: messages that still arrive are passed on one by one.
            recorder.capacity = 0;
        }
    }
}
