//! Readiness of the peers of requests: separates waiting for a rank (wait states) from waiting for data (transfer).

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::RankProcess;
use super::closed_form::UncontendedMessages;
use crate::distribution::{Quantity, SampleBuffer};
use crate::machine::Machine;
use crate::request::{Request, RequestCompletion, RequestId};
use crate::statistics::ActionKind;
use crate::wait_state::WaitState;

/// Peers of the requests of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PeerReadiness {
    of_program: Box<[Peer]>,
    of_parts: Vec<Peer>,
    attribution: WaitAttribution,
    /// Buffered values of histograms, if requested; not part of the saved state of a rank.
    #[serde(skip)]
    samples: Option<Box<SampleBuffer>>,
}

/// Peer of a request. The greatest is the last one to be ready, which counts where several requests are completed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Peer {
    /// Time at which it was ready.
    pub(super) ready: SimTime,
    /// Wait state of waiting for it.
    pub(super) state: WaitState,
}

/// Attribution of waits: `None` attributes those of the program at once; a non-blocking operation only keeps its last peer, for
/// which the program will wait.
pub(super) type WaitAttribution = Option<Peer>;

impl Peer {
    /// A peer that has always been ready.
    pub(super) const ALWAYS_READY: Self = Self { ready: SimTime::ZERO, state: WaitState::LateSender };
}

impl Default for Peer {
    fn default() -> Self {
        Self::ALWAYS_READY
    }
}

impl PeerReadiness {
    /// Creates the table for this many requests of the program; with histograms of messages and waits, or not.
    pub(super) fn new(requests: usize, counts: bool) -> Self {
        let samples = counts.then(Box::default);
        Self {
            samples,
            of_program: vec![Peer::ALWAYS_READY; requests].into(),
            of_parts: Vec::new(),
            attribution: None,
        }
    }

    /// Sets the peer of a request.
    #[inline(always)]
    pub(super) fn set(&mut self, request: RequestId, peer: Peer) {
        match request.index_or_part() {
            Ok(slot) => self.of_program[slot] = peer,
            Err(part) => self.set_part(part, peer),
        }
    }

    #[cold]
    fn set_part(&mut self, part: usize, peer: Peer) {
        if self.of_parts.len() <= part {
            self.of_parts.resize(part + 1, Peer::ALWAYS_READY);
        }
        self.of_parts[part] = peer;
    }

    /// Returns the peer of a complete request.
    #[inline]
    pub(super) fn get(&self, request: RequestId) -> Peer {
        match request.index_or_part() {
            Ok(slot) => self.of_program[slot],
            // A request without a match has no peer.
            Err(part) => self.of_parts.get(part).copied().unwrap_or_default(),
        }
    }

    /// Shifts the peers of the program's requests in time.
    pub(super) fn shift_time(&mut self, time: SimDuration) {
        self.of_program.iter_mut().for_each(|peer| peer.ready = peer.ready.saturating_add(time));
    }
}

impl<M: Machine> RankProcess<'_, M> {
    /// Records the time at which the peer of a request was ready, if a breakdown is requested.
    #[inline(always)]
    pub(super) fn record_peer(&mut self, request: RequestId, state: WaitState, ready: SimTime) {
        if let Some(peer_readiness) = &mut self.peer_readiness {
            peer_readiness.set(request, Peer { ready, state });
        }
    }

    /// Swaps the attribution of waits with that of an operation; a second call undoes the first.
    pub(super) fn swap_attribution(&mut self, attribution: &mut WaitAttribution) {
        if let Some(peer_readiness) = &mut self.peer_readiness {
            std::mem::swap(&mut peer_readiness.attribution, attribution);
        }
    }

    /// Makes the last peer of a non-blocking operation that has ended the peer of its request.
    pub(super) fn record_operation_peer(&mut self, request: RequestId, attribution: WaitAttribution) {
        if let (Some(peer_readiness), Some(last)) = (&mut self.peer_readiness, attribution) {
            peer_readiness.set(request, last);
        }
    }

    /// Returns the last peer of those requests that are complete after now; `None` without a breakdown.
    pub(super) fn last_peer(&self, requests: impl Iterator<Item = RequestId>) -> Option<Peer> {
        let peer_readiness = self.peer_readiness.as_deref()?;
        let later = requests.filter_map(|request| match self.requests.get(request) {
            Request::Complete(RequestCompletion { at, .. }) if at > self.thread.clock => {
                let peer = peer_readiness.get(request);
                Some(Peer { ready: peer.ready.min(at), ..peer })
            }
            _ => None,
        });
        later.max()
    }

    /// Advances the clock to `at`, unless it has passed; the wait is first for the peer of a request, then for data.
    #[inline(always)]
    pub(super) fn wait_for(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if at > self.thread.clock {
            if self.peer_readiness.is_some() {
                self.attribute_request_wait(request, at, kind);
            }
            if self.path_tracker.is_some() {
                self.follow_request(request, at, kind);
            }
            self.thread.clock = at;
        }
    }

    /// Advances the clock to `at`, unless it has passed; the wait is first for this peer, then for data.
    pub(super) fn wait_until(&mut self, at: SimTime, kind: ActionKind, peer: Peer) {
        if at > self.thread.clock {
            self.attribute_wait(at, kind, peer);
            if self.path_tracker.is_some() {
                self.follow_due(at, kind);
            }
            self.thread.clock = at;
        }
    }

    // Out of line: most replays have no breakdown.
    #[inline(never)]
    fn attribute_request_wait(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if let Some(peer_readiness) = self.peer_readiness.as_deref() {
            self.attribute_wait(at, kind, peer_readiness.get(request));
        }
    }

    /// Attributes a wait from now until `at`.
    #[inline(always)]
    fn attribute_wait(&mut self, at: SimTime, kind: ActionKind, Peer { ready, state }: Peer) {
        let now = self.thread.clock;
        let (ready, state) = (ready.max(now).min(at), state.in_operation(kind));
        match self
            .peer_readiness
            .as_deref_mut()
            .and_then(|peer_readiness| peer_readiness.attribution.as_mut())
        {
            None => {
                self.statistics.add_wait(kind, state, ready - now, at - ready);
                if ready > now {
                    self.sample(Quantity::Waiting, (ready - now).as_picos());
                    self.record_wait(kind, state, now, ready);
                }
            }
            Some(last) if ready > now => *last = (*last).max(Peer { ready, state }),
            Some(_) => {}
        }
    }

    /// Records the arrival of a message at `at`, in the timeline and the histograms, where requested.
    #[inline(always)]
    pub(super) fn data_arrived(&mut self, request: RequestId, at: SimTime) {
        self.record_arrival(request, at);
        if self.replay.histograms.is_some() {
            self.count_arrival(request, at);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_arrival(&mut self, request: RequestId, at: SimTime) {
        let sent = self.peer_readiness.as_deref().map(|peer_readiness| peer_readiness.get(request).ready);
        if let Some(latency) = sent.and_then(|sent| at.checked_since(sent)) {
            self.record_sample(Quantity::Latency, latency.as_picos());
        }
    }

    /// Adds a value to the histograms, where requested.
    #[inline(always)]
    pub(super) fn sample(&mut self, quantity: Quantity, value: u64) {
        if self.replay.histograms.is_some() {
            self.record_sample(quantity, value);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_sample(&mut self, quantity: Quantity, value: u64) {
        if let Some(PeerReadiness { samples: Some(samples), .. }) = self.peer_readiness.as_deref_mut()
            && let Some(pool) = &self.replay.histograms
        {
            samples.record(quantity, value, pool);
        }
    }

    /// Moves buffered values to the histograms.
    pub(super) fn flush_samples(&mut self) {
        if let Some(PeerReadiness { samples: Some(samples), .. }) = self.peer_readiness.as_deref_mut()
            && let Some(pool) = &self.replay.histograms
        {
            samples.flush(pool);
        }
    }

    /// Attributes time in an action of this kind to the transfer of data.
    pub(super) fn add_transfer(&mut self, kind: ActionKind, data: UncontendedMessages) {
        if self.peer_readiness.as_deref().is_some_and(|peer_readiness| peer_readiness.attribution.is_none()) {
            self.statistics.add_wait(kind, WaitState::LateSender, SimDuration::ZERO, data.time);
        }
        self.extend_by_transfer(kind, data);
    }
}
