//! Sampler of messages and waits, for histograms.

use pdes_core::{SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::request_table::RequestTable;
use super::{ActionSpan, Carrier, Match, Network, ObservedRank, Observer, Wait};
use crate::distribution::{Quantity, SharedHistograms};
use crate::point_to_point::RequestId;

/// Number of values that a rank buffers before it locks the shared histograms.
const BUFFER_SIZE: usize = 64;

/// Sampler of a rank.
pub(super) struct Sampler<'a> {
    histograms: &'a SharedHistograms,
    samples: Samples,
}

/// Samples of a rank that are not in the shared histograms yet.
#[derive(Clone, Debug, Serialize, Deserialize, State)]
#[state(in_place)]
struct Samples {
    /// Time at which the message of each receive was sent, until it arrives.
    sent: RequestTable<Option<SimTime>>,
    /// Values of each quantity.
    #[state(saved = "they are in the shared histograms before they are compared")]
    values: [Vec<u64>; 3],
}

impl<'a> Sampler<'a> {
    pub(super) fn new(rank: &ObservedRank<'_>, histograms: &'a SharedHistograms) -> Self {
        let samples = Samples { sent: RequestTable::new(rank), values: Default::default() };
        Self { histograms, samples }
    }

    // Out of line, like all that follows: most replays have no histograms.
    #[cold]
    #[inline(never)]
    fn record_match(&mut self, request: RequestId, sent: SimTime, bytes: u64) {
        *self.samples.sent.get_mut(request) = Some(sent);
        self.record(Quantity::Bytes, bytes);
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, quantity: Quantity, value: u64) {
        let values = self.values_mut(quantity);
        values.push(value);
        if values.len() == BUFFER_SIZE {
            self.flush(quantity);
        }
    }

    /// Moves buffered values to the shared histograms.
    fn flush(&mut self, quantity: Quantity) {
        let histograms = self.histograms;
        histograms.record_all(quantity, self.values_mut(quantity));
    }

    fn values_mut(&mut self, quantity: Quantity) -> &mut Vec<u64> {
        &mut self.samples.values[quantity as usize]
    }
}

impl Observer for Sampler<'_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.samples.visit(visitor);
    }

    #[inline(always)]
    fn waited(&mut self, wait: &Wait, _: &mut dyn Network) {
        self.idled(wait);
    }

    #[inline(always)]
    fn idled(&mut self, wait: &Wait) {
        if let Some(peer) = wait.peer.filter(|peer| peer.ready > wait.begin) {
            self.record(Quantity::Waiting, (peer.ready - wait.begin).as_picos());
        }
    }

    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, _: &mut dyn Carrier) {
        self.record_match(matched.request, matched.message.posted, matched.message.bytes.get());
    }

    #[cold]
    #[inline(never)]
    fn data_arrived(&mut self, request: RequestId, at: SimTime) {
        let sent = self.samples.sent.get_mut(request).take();
        if let Some(latency) = sent.and_then(|sent| at.checked_since(sent)) {
            self.record(Quantity::Latency, latency.as_picos());
        }
    }

    fn rank_ended(&mut self, _: &ActionSpan) {
        self.publish();
    }

    fn publish(&mut self) {
        Quantity::ALL.into_iter().for_each(|quantity| self.flush(quantity));
    }
}
