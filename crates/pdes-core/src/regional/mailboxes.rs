//! Mailboxes for the tokens of processes and the messages of regions that cross regions.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::RegionIndex;
use crate::LpId;

/// A message to a region or to one of its processes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RegionMessage<T, M> {
    /// Token of a process to this process.
    Token(LpId, T),
    /// Message of a region to a region.
    Region(M),
}

/// Messages, each with the region that sent it.
pub(super) type RegionMessages<T, M> = Vec<(RegionIndex, RegionMessage<T, M>)>;

/// The inboxes of all regions, double-buffered: one is read in the present phase, the other is filled meanwhile.
pub(super) struct Mailboxes<T, M> {
    inboxes: [Box<[Inbox<T, M>]>; 2],
}

/// The outgoing buffers of a worker, one for each receiving region, so that each inbox is locked once.
pub(super) struct OutgoingBuffers<T, M> {
    of_region: Box<[RegionMessages<T, M>]>,
    filled: Vec<RegionIndex>,
}

impl<T, M> OutgoingBuffers<T, M> {
    pub(super) fn new(regions: usize) -> Self {
        Self { of_region: (0..regions).map(|_| Vec::new()).collect(), filled: Vec::new() }
    }
}

struct Inbox<T, M> {
    /// True if there are messages. Relaxed: the barriers between phases order all accesses.
    is_filled: AtomicBool,
    messages: Mutex<RegionMessages<T, M>>,
}

impl<T, M> Mailboxes<T, M> {
    pub(super) fn new(regions: usize) -> Self {
        let inbox = |_| Inbox { is_filled: AtomicBool::new(false), messages: Mutex::new(Vec::new()) };
        Self { inboxes: [(0..regions).map(inbox).collect(), (0..regions).map(inbox).collect()] }
    }

    pub(super) fn regions(&self) -> usize {
        self.inboxes[0].len()
    }

    fn inbox(&self, phase: u64, region: RegionIndex) -> &Inbox<T, M> {
        &self.inboxes[(phase % 2) as usize][region as usize]
    }

    /// Sends messages that are read in the next phase; returns their number.
    pub(super) fn send(
        &self,
        phase: u64,
        from: RegionIndex,
        messages: impl Iterator<Item = (RegionIndex, RegionMessage<T, M>)>,
        buffers: &mut OutgoingBuffers<T, M>,
    ) -> u64 {
        let mut count = 0;
        for (to, message) in messages {
            let buffer = &mut buffers.of_region[to as usize];
            if buffer.is_empty() {
                buffers.filled.push(to);
            }
            buffer.push((from, message));
            count += 1;
        }
        for to in buffers.filled.drain(..) {
            self.deliver(phase + 1, to, &mut buffers.of_region[to as usize]);
        }
        count
    }

    /// Moves messages to the inbox that a region reads in a phase.
    pub(super) fn deliver(&self, phase: u64, to: RegionIndex, messages: &mut RegionMessages<T, M>) {
        let inbox = self.inbox(phase, to);
        inbox.is_filled.store(true, Ordering::Relaxed);
        inbox.messages.lock().append(messages);
    }

    /// Returns true if a region has messages to read in a phase.
    pub(super) fn has_messages(&self, phase: u64, region: RegionIndex) -> bool {
        self.inbox(phase, region).is_filled.load(Ordering::Relaxed)
    }

    /// Takes the messages that a region reads in a phase, sorted by the regions that sent them.
    pub(super) fn take(&self, phase: u64, region: RegionIndex, messages: &mut RegionMessages<T, M>) {
        let inbox = self.inbox(phase, region);
        if !inbox.is_filled.swap(false, Ordering::Relaxed) {
            return;
        }
        messages.append(&mut inbox.messages.lock());
        // Stable: messages of one region keep their order. This makes the result independent of who delivered first. Those of few regions
        // are in order already, which costs less to see.
        if !messages.is_sorted_by_key(|&(from, _)| from) {
            messages.sort_by_key(|&(from, _)| from);
        }
    }
}
