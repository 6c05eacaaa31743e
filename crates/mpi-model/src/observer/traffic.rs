//! Counter of the messages that a rank receives, for the communication matrix.

use std::collections::BTreeMap;

use pdes_core::{Rank, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::request_table::RequestTable;
use super::{ActionSpan, Carrier, Match, ObservedRank, Observer};
use crate::communication_matrix::{SharedMatrix, Traffic};
use crate::point_to_point::RequestId;

/// Number of senders, or groups of senders, that a rank counts before it moves them to the shared matrix.
const MAX_SENDERS: usize = 64;

/// Counter of a rank.
pub(super) struct TrafficCounter<'a> {
    matrix: &'a SharedMatrix,
    /// Group of this rank.
    group: u32,
    counts: Counts,
}

/// Messages of a rank that are not in the shared matrix yet.
#[derive(Clone, Debug, Serialize, Deserialize, State)]
#[state(in_place)]
struct Counts {
    #[state(saved = "they are in the shared matrix before they are compared")]
    received: BTreeMap<u32, Traffic>,
    /// Group of the sender and begin of the transfer of the message of each receive, until it arrives.
    transfers: RequestTable<Option<(u32, SimTime)>>,
    has_ended: bool,
}

impl<'a> TrafficCounter<'a> {
    pub(super) fn new(rank: &ObservedRank<'_>, matrix: &'a SharedMatrix) -> Self {
        let group = matrix.group(rank.rank);
        let transfers = RequestTable::new(rank);
        Self { matrix, group, counts: Counts { received: BTreeMap::new(), transfers, has_ended: false } }
    }

    // Out of line: most replays count no messages.
    #[cold]
    #[inline(never)]
    fn count(&mut self, request: RequestId, from: Rank, begin: SimTime, bytes: u64) {
        let from = self.matrix.group(from);
        *self.counts.transfers.get_mut(request) = Some((from, begin));
        self.add(from, &Traffic { bytes, messages: 1, transfer_ps: 0 });
    }

    fn add(&mut self, from: u32, traffic: &Traffic) {
        self.counts.received.entry(from).or_default().add(traffic);
        if self.counts.has_ended || self.counts.received.len() >= MAX_SENDERS {
            self.publish();
        }
    }
}

impl Observer for TrafficCounter<'_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.counts.visit(visitor);
    }

    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, _: &mut dyn Carrier) {
        let sent = matched.message.posted;
        let begin = if matched.is_eager { sent } else { sent.max(matched.posted) };
        self.count(matched.request, matched.from, begin, matched.message.bytes.get());
    }

    #[cold]
    #[inline(never)]
    fn data_arrived(&mut self, request: RequestId, at: SimTime) {
        let transfer = self.counts.transfers.get_mut(request).take();
        if let Some((from, time)) = transfer.and_then(|(from, begin)| Some((from, at.checked_since(begin)?)))
        {
            let transfer_ps = u128::from(time.as_picos());
            self.add(from, &Traffic { transfer_ps, ..Traffic::default() });
        }
    }

    /// Messages may still arrive later, for receives for which the rank did not wait.
    fn rank_ended(&mut self, _: &ActionSpan) {
        self.counts.has_ended = true;
        self.publish();
    }

    fn publish(&mut self) {
        self.matrix.collect(self.group, &mut self.counts.received);
    }
}
