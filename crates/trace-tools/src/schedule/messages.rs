//! Collective operations as rounds of messages:
//!
//! | operation | algorithm |
//! |---|---|
//! | barrier | dissemination, messages of 1 B |
//! | bcast, reduce | binomial tree, the nearest child first, or last |
//! | allreduce | recursive doubling; ranks beyond a power of two give their part to others, and get the result |
//! | gather, scatter, and on vectors | the root with each rank |
//! | allgather, allgatherv | ring |
//! | alltoall, alltoallv, reduce_scatter | each rank with each |
//! | scan, exscan | chain |

use pdes_core::Rank;
use trace_mmap::{Collective, Datatype};

/// A message of a rank, with its peer in the communicator and its size \[B\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Send(u32, u64),
    Receive(u32, u64),
}

use Message::{Receive, Send};

/// Returns the messages of a rank of a communicator of some ranks in an operation: rounds that follow each other.
pub(super) fn rounds(operation: &Collective, me: u32, ranks: u32) -> Vec<Vec<Message>> {
    let size = |count: u64, datatype: Datatype| count.saturating_mul(datatype.size().get());
    let sizes = |counts: &[u64], datatype| -> Vec<u64> {
        counts.iter().map(|count| size(*count, datatype)).collect()
    };
    let others = || (0..ranks).filter(move |peer| *peer != me);
    match operation {
        Collective::Barrier => barrier(me, ranks),
        Collective::Bcast { count, root, datatype } => bcast(me, ranks, root.get(), size(*count, *datatype)),
        Collective::Reduce { count, root, datatype, .. } => {
            // The messages of a broadcast, backwards.
            let bcast = bcast(me, ranks, root.get(), size(*count, *datatype));
            let turned = |message| match message {
                Send(peer, bytes) => Receive(peer, bytes),
                Receive(peer, bytes) => Send(peer, bytes),
            };
            bcast.into_iter().rev().map(|round| round.into_iter().map(turned).collect()).collect()
        }
        Collective::Allreduce { count, datatype, .. } => allreduce(me, ranks, size(*count, *datatype)),
        Collective::Scan { count, datatype, .. } | Collective::Exscan { count, datatype, .. } => {
            let bytes = size(*count, *datatype);
            let before = me.checked_sub(1).map(|peer| vec![Receive(peer, bytes)]);
            let after = (me + 1 < ranks).then(|| vec![Send(me + 1, bytes)]);
            before.into_iter().chain(after).collect()
        }
        Collective::Gather { send_count, recv_count, root, send_type, recv_type } => {
            let all = vec![size(*recv_count, *recv_type); ranks as usize];
            rooted(me, *root, size(*send_count, *send_type), &all, [Send, Receive])
        }
        Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type } => {
            let all = sizes(recv_counts, *recv_type);
            rooted(me, *root, size(*send_count, *send_type), &all, [Send, Receive])
        }
        Collective::Scatter { send_count, recv_count, root, send_type, recv_type } => {
            let all = vec![size(*send_count, *send_type); ranks as usize];
            rooted(me, *root, size(*recv_count, *recv_type), &all, [Receive, Send])
        }
        Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type } => {
            let all = sizes(send_counts, *send_type);
            rooted(me, *root, size(*recv_count, *recv_type), &all, [Receive, Send])
        }
        Collective::Allgather { send_count, send_type, .. } => {
            ring(me, ranks, &vec![size(*send_count, *send_type); ranks as usize])
        }
        Collective::Allgatherv { recv_counts, recv_type, .. } => {
            ring(me, ranks, &sizes(recv_counts, *recv_type))
        }
        Collective::Alltoall { send_count, recv_count, send_type, recv_type } => {
            let send = others().map(|peer| Send(peer, size(*send_count, *send_type)));
            let receive = others().map(|peer| Receive(peer, size(*recv_count, *recv_type)));
            vec![send.chain(receive).collect()]
        }
        Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
            let send = others().map(|peer| Send(peer, size(send_counts[peer as usize], *send_type)));
            let receive = others().map(|peer| Receive(peer, size(recv_counts[peer as usize], *recv_type)));
            vec![send.chain(receive).collect()]
        }
        Collective::ReduceScatter { recv_counts, datatype, .. } => {
            let part = |rank: u32| size(recv_counts[rank as usize], *datatype);
            let send = others().map(|peer| Send(peer, part(peer)));
            vec![send.chain(others().map(|peer| Receive(peer, part(me)))).collect()]
        }
    }
}

fn barrier(me: u32, ranks: u32) -> Vec<Vec<Message>> {
    let distances = (0..).map(|bit| 1 << bit).take_while(|distance: &u32| *distance < ranks);
    distances
        .map(|distance| vec![Send((me + distance) % ranks, 1), Receive((me + ranks - distance) % ranks, 1)])
        .collect()
}

/// Ranks from the root on: each receives from the one without its highest bit, and sends to those with one more.
fn bcast(me: u32, ranks: u32, root: u32, bytes: u64) -> Vec<Vec<Message>> {
    let place = (me + ranks - root) % ranks;
    let peer = |place: u32| (place + root) % ranks;
    let parent = (place > 0).then(|| vec![Receive(peer(place - (1 << place.ilog2())), bytes)]);
    let first = if place == 0 { 0 } else { place.ilog2() + 1 };
    let children = (first..32).map(|bit| place + (1 << bit)).take_while(|child| *child < ranks);
    parent.into_iter().chain(children.map(|child| vec![Send(peer(child), bytes)])).collect()
}

fn allreduce(me: u32, ranks: u32, bytes: u64) -> Vec<Vec<Message>> {
    let power = 1 << ranks.ilog2();
    let rest = ranks - power;
    // Of the first ranks, the odd ones leave their part to the even ones.
    let place = if me < 2 * rest { me / 2 } else { me - rest };
    let peer = |place: u32| if place < rest { 2 * place } else { place + rest };
    if me < 2 * rest && me % 2 == 1 {
        return vec![vec![Send(me - 1, bytes)], vec![Receive(me - 1, bytes)]];
    }
    let distances = (0..).map(|bit| 1 << bit).take_while(|distance: &u32| *distance < power);
    let exchanges = distances.map(|distance| {
        let peer = peer(place ^ distance);
        vec![Send(peer, bytes), Receive(peer, bytes)]
    });
    let is_helper = me < 2 * rest;
    let before = is_helper.then(|| vec![Receive(me + 1, bytes)]);
    let after = is_helper.then(|| vec![Send(me + 1, bytes)]);
    before.into_iter().chain(exchanges).chain(after).collect()
}

/// The root with each rank: `kinds` are the message of a rank and that of the root.
fn rooted(
    me: u32,
    root: Rank,
    own: u64,
    all: &[u64],
    [of_rank, of_root]: [fn(u32, u64) -> Message; 2],
) -> Vec<Vec<Message>> {
    if me != root.get() {
        return vec![vec![of_rank(root.get(), own)]];
    }
    let others = (0..).zip(all).filter(|(peer, _)| *peer != me);
    vec![others.map(|(peer, bytes)| of_root(peer, *bytes)).collect()]
}

/// Each rank passes on what it has received last.
fn ring(me: u32, ranks: u32, parts: &[u64]) -> Vec<Vec<Message>> {
    let part = |steps: u32| parts[((me + ranks - steps) % ranks) as usize];
    let (next, before) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
    (1..ranks).map(|step| vec![Send(next, part(step - 1)), Receive(before, part(step))]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const BYTE: Datatype = Datatype::BYTE;

    /// All operations on some ranks, with different counts in vectors; those on vectors as a rank calls them.
    fn operations(me: u32, ranks: u32) -> Vec<Collective> {
        let counts: Box<[u64]> = (0..ranks).map(|rank| u64::from(10 + rank)).collect();
        let (root, flops, count) = (Rank::new(ranks / 2), 0.0, 8);
        let (send_type, recv_type, datatype) = (BYTE, BYTE, BYTE);
        let (send_count, recv_count, own) = (count, count, counts[me as usize]);
        let to = |from: u32, to: u32| u64::from(100 * from + to);
        vec![
            Collective::Barrier,
            Collective::Bcast { count, root, datatype },
            Collective::Reduce { count, flops, root, datatype },
            Collective::Allreduce { count, flops, datatype },
            Collective::Scan { count, flops, datatype },
            Collective::Gather { send_count, recv_count, root, send_type, recv_type },
            Collective::Scatter { send_count, recv_count, root, send_type, recv_type },
            Collective::Gatherv { send_count: own, recv_counts: counts.clone(), root, send_type, recv_type },
            Collective::Scatterv { send_counts: counts.clone(), recv_count: own, root, send_type, recv_type },
            Collective::Allgather { send_count, recv_count, send_type, recv_type },
            Collective::Allgatherv { send_count: own, recv_counts: counts.clone(), send_type, recv_type },
            Collective::Alltoall { send_count, recv_count, send_type, recv_type },
            Collective::Alltoallv {
                send_counts: (0..ranks).map(|peer| to(me, peer)).collect(),
                recv_counts: (0..ranks).map(|peer| to(peer, me)).collect(),
                send_type,
                recv_type,
            },
            Collective::ReduceScatter { recv_counts: counts, flops, datatype },
        ]
    }

    #[test]
    fn each_message_is_received_once_with_its_size_and_nobody_waits_forever() {
        for ranks in 1..=9 {
            let all: Vec<_> = (0..ranks).map(|me| operations(me, ranks)).collect();
            for (index, operation) in all[0].iter().enumerate() {
                let mut programs: Vec<_> =
                    (0..ranks).map(|me| rounds(&all[me as usize][index], me, ranks)).collect();
                programs.iter_mut().for_each(|rounds| rounds.reverse());
                // Sends are done at once; a round ends when all its messages have come.
                let mut sent: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
                let mut has_sent = vec![usize::MAX; ranks as usize];
                let mut moves = true;
                while std::mem::take(&mut moves) {
                    for me in 0..ranks {
                        let left = programs[me as usize].len();
                        let Some(round) = programs[me as usize].last() else { continue };
                        if std::mem::replace(&mut has_sent[me as usize], left) != left {
                            for message in round {
                                if let Send(peer, bytes) = message {
                                    sent.entry((me, *peer)).or_default().push(*bytes);
                                }
                            }
                            moves = true;
                        }
                        let receives = || {
                            round.iter().filter_map(|message| match message {
                                Receive(peer, bytes) => Some((*peer, *bytes)),
                                Send(..) => None,
                            })
                        };
                        let has_come =
                            |peer: u32| sent.get(&(peer, me)).is_some_and(|queue| !queue.is_empty());
                        if receives().all(|(peer, _)| has_come(peer)) {
                            for (peer, bytes) in receives() {
                                let queue = sent.get_mut(&(peer, me)).expect("it has come");
                                assert_eq!(queue.remove(0), bytes, "{operation:?} on {ranks} ranks");
                            }
                            programs[me as usize].pop();
                            moves = true;
                        }
                    }
                }
                assert!(programs.iter().all(Vec::is_empty), "{operation:?} on {ranks} ranks waits");
                assert!(sent.values().all(Vec::is_empty), "{operation:?} on {ranks} ranks has messages left");
            }
        }
    }
}
