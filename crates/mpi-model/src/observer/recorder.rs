//! Recorder of events, for timelines.

use std::collections::BTreeMap;

use pdes_core::{Rank, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, LocationId};

use super::{ActionSpan, Carrier, Match, Network, Observer, Wait};
use crate::point_to_point::RequestId;
use crate::point_to_point::{kind_of, number_of};
use crate::statistics::ActionKind;
use crate::timeline::{Event, Recording};
use crate::token::Message;
use crate::wait_state::WaitState;

/// Number of events that a rank buffers.
const BUFFER_SIZE: usize = 64;

/// Recorder of a rank.
pub(super) struct EventRecorder<'a> {
    me: Rank,
    recording: Recording<'a>,
    /// Records the states of the rank, too, not only messages from ranks whose states are recorded.
    records_states: bool,
    events: RankEvents,
}

/// Buffered events of a rank, and messages in flight.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RankEvents {
    /// Present call site or region.
    site: Option<LocationId>,
    /// Matched messages that have not arrived.
    in_flight: BTreeMap<RequestId, Event>,
    buffer: Vec<Event>,
    /// The rank has ended: no later flush, so that messages which still arrive are passed on one by one.
    has_ended: bool,
}

impl<'a> EventRecorder<'a> {
    pub(super) fn new(recording: Recording<'a>, me: Rank) -> Self {
        let records_states = recording.excerpt.includes(me);
        Self { me, recording, records_states, events: RankEvents::default() }
    }

    fn push(&mut self, event: Event) {
        self.events.buffer.push(event);
        if self.events.has_ended || self.events.buffer.len() >= BUFFER_SIZE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.recording.sink.record(&self.events.buffer);
        self.events.buffer.clear();
    }

    // Parts of events are passed on out of line: most replays record nothing, and need not build the events in memory.
    #[cold]
    #[inline(never)]
    fn push_state(&mut self, kind: ActionKind, begin: SimTime, end: SimTime) {
        let (rank, site) = (self.me, self.events.site);
        if kind != ActionKind::Marker {
            self.push_span(begin, end, |begin, end| Event::State { rank, kind, site, begin, end });
        }
    }

    #[cold]
    #[inline(never)]
    fn remember(&mut self, from: Rank, request: RequestId, message: &Message) {
        let kind = request.index_or_part().is_err().then(|| kind_of(message.tag));
        // A message of a graph is one of the program: its tag is its communicator.
        let operation = kind.filter(|kind| *kind != ActionKind::Send);
        let excerpt = self.recording.excerpt;
        let is_inside = self.records_states || excerpt.includes(from);
        if is_inside && (excerpt.operations || operation.is_none()) {
            let (tag, communicator) = match kind {
                None => (message.tag, message.communicator),
                Some(ActionKind::Send) => (message.communicator.get(), CommId::WORLD),
                Some(_) => (number_of(message.tag), message.communicator),
            };
            let (to, sent, arrived) = (self.me, message.posted, message.posted);
            let bytes = message.bytes;
            let event = Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation };
            self.events.in_flight.insert(request, event);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_wait(&mut self, kind: ActionKind, state: WaitState, begin: SimTime, end: SimTime) {
        let (rank, site) = (self.me, self.events.site);
        self.push_span(begin, end, |begin, end| Event::Wait { rank, kind, state, site, begin, end });
    }

    fn push_span(&mut self, begin: SimTime, end: SimTime, event: impl FnOnce(SimTime, SimTime) -> Event) {
        let part = self.recording.excerpt.clip(begin, end);
        if let Some((begin, end)) = part.filter(|_| self.records_states) {
            self.push(event(begin, end));
        }
    }
}

impl Observer for EventRecorder<'_> {
    /// Events are recorded once, those before a cut at the cut.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(&mut self.events) {
            return;
        }
        self.flush();
        for event in self.events.in_flight.values_mut() {
            if let Event::Message { sent, .. } = event {
                visitor.time(sent);
            }
        }
    }

    #[inline(always)]
    fn action_ended(&mut self, action: &ActionSpan) {
        self.push_state(action.kind, action.begin, action.end);
    }

    fn rank_ended(&mut self, last: &ActionSpan) {
        if last.end > last.begin {
            self.action_ended(last);
        }
        self.flush();
        self.events.has_ended = true;
    }

    fn region_entered(&mut self, site: LocationId) {
        self.events.site = Some(site);
    }

    #[inline(always)]
    fn waited(&mut self, wait: &Wait, _: &mut dyn Network) {
        self.idled(wait);
    }

    #[inline(always)]
    fn idled(&mut self, wait: &Wait) {
        if let Some(peer) = wait.peer.filter(|peer| peer.ready > wait.begin) {
            self.push_wait(wait.kind, peer.state, wait.begin, peer.ready);
        }
    }

    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, _: &mut dyn Carrier) {
        self.remember(matched.from, matched.request, matched.message);
    }

    #[cold]
    #[inline(never)]
    fn data_arrived(&mut self, request: RequestId, at: SimTime) {
        if let Some(mut event) = self.events.in_flight.remove(&request)
            && let Event::Message { sent, arrived, .. } = &mut event
            && self.recording.excerpt.clip(*sent, at).is_some()
        {
            *arrived = at;
            self.push(event);
        }
    }
}
