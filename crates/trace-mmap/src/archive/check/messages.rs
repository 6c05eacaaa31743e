//! Messages that are longer than the receives that match them.

use std::collections::BTreeMap;

use pdes_core::{Bytes, Rank};

use super::Finding;
use super::digest::Digest;
use super::loops::{LoopSums, Summary};
use crate::call::Source;
use crate::channel::{InIdx, OutIdx};
use crate::communicator::CommId;
use crate::record::{CALL, IRECV, ISEND, LOOP_BEGIN, LOOP_END, RECV, Record, SEND, SEND_RECV};
use crate::side_tables::SideTables;
use crate::trace::Trace;
use crate::transfer::{NotPersistent, PersistentRequests, Transfer, transfers};

/// The sizes of the messages or receives of a channel, in order \[B\].
#[derive(Clone, Copy, Debug)]
struct Sizes {
    least: u64,
    greatest: u64,
    sequence: Digest,
}

impl Summary for Sizes {
    fn then(&self, next: &Self) -> Self {
        Self {
            least: self.least.min(next.least),
            greatest: self.greatest.max(next.greatest),
            sequence: self.sequence.then(&next.sequence),
        }
    }
}

/// A channel of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Send(OutIdx),
    Receive(InIdx),
    ReceiveFromAny,
    /// Receives that are cancelled, so that the order of the others is not that of the messages.
    Cancelled(InIdx),
}

/// Sums of the messages and receives of a rank, of its records in order.
#[derive(Default)]
pub(super) struct MessageSizes {
    sums: LoopSums<Channel, Sizes>,
    persistent: PersistentRequests,
}

impl MessageSizes {
    /// Adds the next record.
    pub(super) fn push(&mut self, record: Record, side: &SideTables) {
        let bytes = Bytes::new(record.amount());
        match record.kind() {
            LOOP_BEGIN => self.sums.begin(record.amount()),
            LOOP_END => self.sums.end(),
            SEND | ISEND => self.add(Transfer::Send(OutIdx::new(record.index()), bytes)),
            RECV | IRECV => self.add(Transfer::Receive(Source::Rank(InIdx::new(record.index())), bytes)),
            SEND_RECV => {
                if let Some(both) = side.send_recvs.get(record.index() as usize) {
                    both.to.into_iter().for_each(|to| self.add(Transfer::Send(to, both.send_bytes)));
                    let from = both.from.map(Source::Rank);
                    from.into_iter().for_each(|from| self.add(Transfer::Receive(from, both.recv_bytes)));
                }
            }
            CALL => {
                let Some(call) = side.calls.get(record.index() as usize) else { return };
                let mut persistent = std::mem::take(&mut self.persistent);
                let each = |transfer| -> Result<(), NotPersistent> {
                    self.add(transfer);
                    Ok(())
                };
                // The sums over the rank, which come first, fail for a start without a persistent request.
                let _ = persistent.visit_transfers(call, each);
                self.persistent = persistent;
            }
            _ => {}
        }
    }

    fn add(&mut self, transfer: Transfer) {
        let (channel, bytes) = match transfer {
            Transfer::Send(to, bytes) => (Channel::Send(to), bytes),
            Transfer::Receive(Source::Rank(from), bytes) => (Channel::Receive(from), bytes),
            Transfer::Receive(Source::Any { .. }, bytes) => (Channel::ReceiveFromAny, bytes),
            Transfer::Cancelled(Source::Rank(from)) => (Channel::Cancelled(from), Bytes::ZERO),
            Transfer::Receive(Source::ProcNull, _) | Transfer::Cancelled(_) => return,
        };
        let bytes = bytes.get();
        self.sums.add(channel, &Sizes { least: bytes, greatest: bytes, sequence: Digest::of(bytes + 1) });
    }

    pub(super) fn finish(self) -> RankSizes {
        RankSizes(self.sums.finish())
    }
}

/// The sizes of all channels of a rank.
pub(super) struct RankSizes(BTreeMap<Channel, Sizes>);

impl RankSizes {
    fn of(&self, channel: Channel) -> Option<Sizes> {
        self.0.get(&channel).copied()
    }
}

/// Finds for each rank the first message that is longer than the receive that matches it. Messages of a channel match its receives in
/// their order; where receives from any source or with any tag may take them, too, only a message is found that is longer than all.
///
/// The latter needs all messages to be received, as `all_received` tells. The cost is linear in the number of channels, except for channels in which some message is longer than
/// some other receive: their messages are compared one by one.
pub(super) fn check_sizes(trace: &Trace, sizes: &[RankSizes], all_received: bool) -> Vec<Finding> {
    let mut arriving: Vec<Vec<(Rank, OutIdx)>> = vec![Vec::new(); sizes.len()];
    for rank in (0..trace.ranks()).map(Rank::new) {
        for (out, channel) in (0..).map(OutIdx::new).zip(trace.rank(rank).outgoing()) {
            arriving[channel.peer.index()].push((rank, out));
        }
    }
    let ranks = (0..trace.ranks()).map(Rank::new).zip(arriving);
    ranks
        .filter_map(|(rank, arriving)| check_receiver(trace, sizes, (rank, &arriving), all_received))
        .collect()
}

fn check_receiver(
    trace: &Trace,
    sizes: &[RankSizes],
    (rank, arriving): (Rank, &[(Rank, OutIdx)]),
    all_received: bool,
) -> Option<Finding> {
    let (receiver, room) = (trace.rank(rank), &sizes[rank.index()]);
    let id = |rank: Rank, communicator| trace.rank(rank).communicator_id(communicator);
    let of_any = room.of(Channel::ReceiveFromAny);
    let mut exact: BTreeMap<(Rank, Option<i32>, CommId), InIdx> = BTreeMap::new();
    let mut by_port: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    for (from, incoming) in (0..).map(InIdx::new).zip(receiver.incoming()) {
        let tag = incoming.tag.map(|tag| tag.get());
        exact.insert((incoming.peer, tag, id(rank, incoming.communicator)), from);
        let (channels, greatest) = by_port.entry(incoming.port.get()).or_default();
        *channels += 1;
        *greatest = room.of(Channel::Receive(from)).map_or(*greatest, |sizes| sizes.greatest.max(*greatest));
    }
    for &(peer, out) in arriving {
        let outgoing = &trace.rank(peer).outgoing()[out.index()];
        let Some(sent) = sizes[peer.index()].of(Channel::Send(out)) else { continue };
        let communicator = id(peer, outgoing.communicator);
        let named = exact.get(&(peer, Some(outgoing.tag.get()), communicator));
        let from = named.or_else(|| exact.get(&(peer, None, communicator))).copied();
        let (channels, of_port) =
            from.map_or((0, 0), |from| by_port[&receiver.incoming()[from.index()].port.get()]);
        // A receive with any tag takes messages of several channels.
        let in_order = named
            .copied()
            .filter(|from| channels == 1 && of_any.is_none() && room.of(Channel::Cancelled(*from)).is_none());
        let too_long = match in_order.and_then(|from| Some((from, room.of(Channel::Receive(from))?))) {
            Some((_, room)) if sent.greatest <= room.least || sent.sequence == room.sequence => None,
            Some((from, _)) => first_too_long(trace, (peer, out), (rank, from)),
            None => {
                let room = of_any.map_or(of_port, |any| any.greatest.max(of_port));
                (all_received && sent.greatest > room).then_some((None, [sent.greatest, room]))
            }
        };
        if let Some((action, [sent, room])) = too_long {
            let tag = outgoing.tag;
            return Some(Finding::TooLong { rank, action, peer, tag, communicator, sent, room });
        }
    }
    None
}

/// Compares the messages of a channel with its receives, one by one; returns the action of the first receive that is too small, and the
/// sizes \[B\].
fn first_too_long(
    trace: &Trace,
    (peer, out): (Rank, OutIdx),
    (rank, from): (Rank, InIdx),
) -> Option<(Option<u64>, [u64; 2])> {
    let sends = transfers(trace.rank(peer)).filter_map(|(_, transfer)| match transfer {
        Transfer::Send(to, bytes) if to == out => Some(bytes.get()),
        _ => None,
    });
    let receives = transfers(trace.rank(rank)).filter_map(|(action, transfer)| match transfer {
        Transfer::Receive(Source::Rank(found), bytes) if found == from => Some((action, bytes.get())),
        _ => None,
    });
    let mut pairs = sends.zip(receives);
    pairs.find_map(|(sent, (action, room))| (sent > room).then_some((Some(action), [sent, room])))
}
