//! Sampler of messages and waits, for histograms.

use pdes_core::SimTime;

use super::request_table::RequestTable;
use super::{ActionSpan, Carrier, Match, Network, ObservedRank, Observer, Wait};
use crate::distribution::{Quantity, SharedHistograms};
use crate::point_to_point::RequestId;

/// Number of values that a rank buffers before it locks the shared histograms.
const BUFFER_SIZE: usize = 64;

/// Sampler of a rank, with the values that are not in the shared histograms yet.
pub(super) struct Sampler<'a> {
    histograms: &'a SharedHistograms,
    /// Time at which the message of each receive was sent.
    sent: RequestTable<SimTime>,
    bytes: Vec<u64>,
    latency: Vec<u64>,
    waiting: Vec<u64>,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(rank: &ObservedRank<'_>, histograms: &'a SharedHistograms) -> Self {
        let sent = RequestTable::new(rank);
        Self { histograms, sent, bytes: Vec::new(), latency: Vec::new(), waiting: Vec::new() }
    }

    // Out of line, like all that follows: most replays have no histograms.
    #[cold]
    #[inline(never)]
    fn record_match(&mut self, request: RequestId, sent: SimTime, bytes: u64) {
        *self.sent.get_mut(request) = sent;
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
        match quantity {
            Quantity::Bytes => &mut self.bytes,
            Quantity::Latency => &mut self.latency,
            Quantity::Waiting => &mut self.waiting,
        }
    }
}

impl Observer for Sampler<'_> {
    type Saved = ();

    fn save(&self) {}

    fn restore(&mut self, (): ()) {}

    #[inline(always)]
    fn waited(&mut self, wait: &Wait, _: &mut dyn Network) {
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
        let sent = self.sent.get(request);
        if let Some(latency) = sent.and_then(|&sent| at.checked_since(sent)) {
            self.record(Quantity::Latency, latency.as_picos());
        }
    }

    fn rank_ended(&mut self, _: &ActionSpan) {
        Quantity::ALL.into_iter().for_each(|quantity| self.flush(quantity));
    }
}
