//! Communication matrix: messages between pairs of ranks, or of groups of ranks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pdes_core::Rank;
use serde::{Deserialize, Serialize};

use crate::statistics::extrapolate;

/// Messages that ranks of one group received from ranks of another one, those of collective operations included.
///
/// A group is `group_size` neighbouring ranks. Cells are integer sums, so that the matrix does not depend on the order in which messages
/// are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommunicationMatrix {
    /// Number of ranks of a group; 1 if each rank is a row and a column.
    pub group_size: u32,
    /// Messages by groups of the sender and of the receiver; pairs without messages are omitted.
    pub cells: BTreeMap<(u32, u32), Traffic>,
}

/// Sums over messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Payload \[B\].
    pub bytes: u64,
    /// Number of messages.
    pub messages: u64,
    /// Time in transfer \[ps\]: from the send, or with the rendezvous protocol from when both sides are ready, to the arrival of the last
    /// byte.
    pub transfer_ps: u128,
}

impl Traffic {
    pub(crate) fn add(&mut self, more: &Self) {
        self.bytes += more.bytes;
        self.messages += more.messages;
        self.transfer_ps += more.transfer_ps;
    }
}

impl CommunicationMatrix {
    /// Adds the messages that the ranks of another process received.
    pub fn add(&mut self, other: &Self) {
        self.group_size = other.group_size;
        for (pair, more) in &other.cells {
            self.cells.entry(*pair).or_default().add(more);
        }
    }
}

impl CommunicationMatrix {
    /// Returns the sums after `times` more repetitions of their growth since an earlier matrix; `None` where one overflows.
    pub(crate) fn repeated(&self, before: &Self, times: u64) -> Option<Self> {
        let mut sum = self.clone();
        for (pair, traffic) in &mut sum.cells {
            let Traffic { bytes, messages, transfer_ps } =
                before.cells.get(pair).copied().unwrap_or_default();
            traffic.bytes = extrapolate(traffic.bytes, bytes, times)?;
            traffic.messages = extrapolate(traffic.messages, messages, times)?;
            let grown = traffic.transfer_ps.checked_sub(transfer_ps)?;
            traffic.transfer_ps = grown.checked_mul(times.into())?.checked_add(traffic.transfer_ps)?;
        }
        Some(sum)
    }
}

/// The matrix of all ranks of a process, which their observers share.
#[derive(Debug)]
pub(crate) struct SharedMatrix {
    group_size: u32,
    cells: Mutex<BTreeMap<(u32, u32), Traffic>>,
}

impl SharedMatrix {
    /// Creates an empty matrix with the smallest groups of which there are at most `groups`.
    pub(crate) fn new(ranks: u32, groups: u32) -> Self {
        Self { group_size: ranks.div_ceil(groups.max(1)).max(1), cells: Mutex::default() }
    }

    /// Returns the group of a rank.
    pub(crate) fn group(&self, rank: Rank) -> u32 {
        rank.get() / self.group_size
    }

    /// Moves what a rank of the group `to` received, by groups of the senders, into the matrix.
    pub(crate) fn collect(&self, to: u32, received: &mut BTreeMap<u32, Traffic>) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        for (from, traffic) in std::mem::take(received) {
            cells.entry((from, to)).or_default().add(&traffic);
        }
    }

    /// Replaces the messages so far.
    pub(crate) fn replace(&self, matrix: CommunicationMatrix) {
        *self.cells.lock().unwrap_or_else(PoisonError::into_inner) = matrix.cells;
    }

    /// Returns a copy of the messages so far.
    pub(crate) fn matrix(&self) -> CommunicationMatrix {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner).clone();
        CommunicationMatrix { group_size: self.group_size, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_small_as_their_number_allows() {
        let size = |ranks, groups| SharedMatrix::new(ranks, groups).group_size;
        assert_eq!([size(8, 8), size(9, 8), size(16384, 512), size(3, 512), size(5, 0)], [1, 2, 32, 1, 5]);
    }

    #[test]
    fn matrices_of_processes_are_added() {
        let shared = SharedMatrix::new(8, 4);
        let traffic = |bytes| Traffic { bytes, messages: 1, transfer_ps: 10 };
        for (to, from, bytes) in [(Rank::new(7), 0, 5), (Rank::new(6), 0, 7), (Rank::new(1), 3, 1)] {
            shared.collect(shared.group(to), &mut [(from, traffic(bytes))].into());
        }
        let mut matrix = CommunicationMatrix::default();
        matrix.add(&shared.matrix());
        assert_eq!(matrix, shared.matrix());
        matrix.add(&shared.matrix());
        let sum = Traffic { bytes: 24, messages: 4, transfer_ps: 40 };
        assert_eq!((matrix.group_size, matrix.cells.len(), matrix.cells[&(0, 3)]), (2, 2, sum));
        crate::round_trip::assert_round_trip(&matrix);
    }
}
