//! Collective operations of GPUs as messages: algorithms as schedules.
//!
//! | algorithm | operations | steps | bytes of a rank |
//! |---|---|---|---|
//! | ring | allreduce, reduce-scatter, all-gather, broadcast, reduce, barrier | 2 (n - 1), n - 1 | 2 (n - 1) / n of the vector |
//! | tree | allreduce, broadcast, reduce | 2 log n + chunks | two vectors |
//! | double tree | allreduce | 2 log n + chunks | two vectors at most, half of them by each tree |
//! | halving | allreduce, reduce-scatter, all-gather, for powers of two | 2 log n, log n | 2 (n - 1) / n of the vector |
//! | direct | all but trees; the only one of all to all, gather and scatter | 2, 1 | 2 (n - 1) / n of the vector |
//! | hierarchical | allreduce | ring in nodes, ring between them, ring in nodes | |
//!
//! [`Nccl`] chooses between rings and two trees, and a protocol, by size.
//!
//! Sources: Thakur, Rabenseifner and Gropp, 2005 (halving and doubling); Sanders, Speck and Traeff, 2009 (two trees); NVIDIA's NCCL
//! (rings, and the two trees by mirror).

mod nccl;
mod ring;
mod tree;

pub use nccl::{Choice, Nccl, Protocol};

use std::fmt;

use crate::chakra::CollectiveKind;

/// A message of a step, with the other member and its size \[B\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// To a member.
    Send(u32, u64),
    /// From a member.
    Receive(u32, u64),
}

/// Steps of a member on a channel, which follow each other; the transfers of a step do not wait for each other.
pub type Steps = Vec<Vec<Transfer>>;

/// Algorithm of collective operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Chunks go round.
    #[default]
    Ring,
    /// A binary tree, up and down, in chunks.
    Tree {
        /// Number of chunks, 1 or more.
        chunks: u32,
    },
    /// Two binary trees, each for half of the vector; a leaf of one is an inner member of the other.
    DoubleTree {
        /// Number of chunks of each half, 1 or more.
        chunks: u32,
    },
    /// Recursive halving and doubling.
    Halving,
    /// Messages between all pairs at once.
    Direct,
    /// Rings in nodes of so many members, and rings between those with the same place in their nodes.
    Hierarchical {
        /// Number of members of a node, which divides that of all.
        node: u32,
    },
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "ring",
            Self::Tree { .. } => "tree",
            Self::DoubleTree { .. } => "double-tree",
            Self::Halving => "halving",
            Self::Direct => "direct",
            Self::Hierarchical { .. } => "hierarchical",
        })
    }
}

/// An algorithm does not serve an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{algorithm} does not do {kind:?} of {members} ranks, expected {expected}")]
pub struct AlgorithmError {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The operation.
    pub kind: CollectiveKind,
    /// Number of members.
    pub members: u32,
    /// What it does.
    pub expected: &'static str,
}

/// Returns the steps of a member of a collective operation of `bytes`: the vector of each member, or in an all-gather, gather or
/// scatter the part of each one. The root is member 0. Channels do not wait for each other; all members have the same number of them.
///
/// # Errors
/// Fails if the algorithm does not serve the operation or the number of members.
///
/// ```
/// use training::collective::{Algorithm, Transfer, channels};
/// use training::CollectiveKind;
/// let ring = channels(Algorithm::Ring, CollectiveKind::AllReduce, 1, 4, 1000)?;
/// assert_eq!((ring.len(), ring[0].len()), (1, 2 * 3));
/// assert_eq!(ring[0][0], [Transfer::Send(2, 250), Transfer::Receive(0, 250)]);
/// # Ok::<(), training::collective::AlgorithmError>(())
/// ```
pub fn channels(
    algorithm: Algorithm,
    kind: CollectiveKind,
    me: u32,
    members: u32,
    bytes: u64,
) -> Result<Vec<Steps>, AlgorithmError> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    let refuse = |expected| Err(AlgorithmError { algorithm, kind, members, expected });
    if members < 2 {
        return Ok(Vec::new());
    }
    let part = bytes.div_ceil(members.into());
    Ok(vec![match (algorithm, kind) {
        (_, AllToAll) => direct(me, members, part),
        (_, Gather) => rooted(me, members, bytes, false),
        (_, Scatter) => rooted(me, members, bytes, true),
        (Algorithm::Ring, AllReduce | Barrier) => ring::rounds(me, members, part, 2 * (members - 1)),
        (Algorithm::Ring, ReduceScatter) => ring::rounds(me, members, part, members - 1),
        (Algorithm::Ring, AllGather) => ring::rounds(me, members, bytes, members - 1),
        (Algorithm::Ring, Broadcast) => ring::chain(me, members, part, false),
        (Algorithm::Ring, Reduce) => ring::chain(me, members, part, true),
        (Algorithm::Tree { chunks }, AllReduce | Barrier) => tree::allreduce(me, members, bytes, chunks),
        (Algorithm::Tree { chunks }, Broadcast) => tree::broadcast(me, members, bytes, chunks),
        (Algorithm::Tree { chunks }, Reduce) => tree::reduce(me, members, bytes, chunks),
        (Algorithm::Tree { .. }, _) => return refuse("allreduce, broadcast, reduce or barrier"),
        (Algorithm::DoubleTree { chunks }, AllReduce | Barrier) => {
            return Ok(tree::double(me, members, bytes, chunks).into());
        }
        (Algorithm::DoubleTree { .. }, _) => return refuse("allreduce or barrier"),
        (Algorithm::Halving, _) if !members.is_power_of_two() => return refuse("a power of two of ranks"),
        (Algorithm::Halving, ReduceScatter) => halving(me, members, bytes),
        (Algorithm::Halving, AllGather) => doubling(me, members, bytes),
        (Algorithm::Halving, AllReduce | Barrier) => {
            [halving(me, members, bytes), doubling(me, members, part)].concat()
        }
        (Algorithm::Halving, _) => return refuse("allreduce, reduce-scatter, all-gather or barrier"),
        (Algorithm::Direct, ReduceScatter) => direct(me, members, part),
        (Algorithm::Direct, AllGather) => direct(me, members, bytes),
        (Algorithm::Direct, AllReduce | Barrier) => {
            [direct(me, members, part), direct(me, members, part)].concat()
        }
        (Algorithm::Direct, Broadcast) => rooted(me, members, bytes, true),
        (Algorithm::Direct, Reduce) => rooted(me, members, bytes, false),
        (Algorithm::Hierarchical { node }, AllReduce | Barrier)
            if node > 0 && members.is_multiple_of(node) =>
        {
            ring::hierarchical(me, members, node, bytes)
        }
        (Algorithm::Hierarchical { .. }, _) => return refuse("allreduce or barrier of whole nodes"),
    }])
}

/// Returns a step with messages between all pairs.
fn direct(me: u32, members: u32, bytes: u64) -> Steps {
    let others = || (1..members).map(|distance| (distance, members - distance));
    let sends = others().map(|(distance, _)| Transfer::Send((me + distance) % members, bytes));
    let receives = others().map(|(_, distance)| Transfer::Receive((me + distance) % members, bytes));
    vec![sends.chain(receives).collect()]
}

/// Returns messages between member 0 and each other one.
fn rooted(me: u32, members: u32, bytes: u64, from_root: bool) -> Steps {
    let transfer = |peer| {
        if (me == 0) == from_root { Transfer::Send(peer, bytes) } else { Transfer::Receive(peer, bytes) }
    };
    vec![if me == 0 { (1..members).map(transfer).collect() } else { vec![transfer(0)] }]
}

/// Exchanges half, a quarter, ... of a vector with members at these distances.
fn halving(me: u32, members: u32, bytes: u64) -> Steps {
    let rounds = members.ilog2();
    let exchange = |round: u32| exchange(me ^ (members >> (round + 1)), bytes.div_ceil(2 << round));
    (0..rounds).map(exchange).collect()
}

/// Exchanges a part, two, four, ... with members at these distances.
fn doubling(me: u32, members: u32, part: u64) -> Steps {
    (0..members.ilog2()).map(|round| exchange(me ^ (1 << round), part << round)).collect()
}

fn exchange(peer: u32, bytes: u64) -> Vec<Transfer> {
    vec![Transfer::Send(peer, bytes), Transfer::Receive(peer, bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };

    const KINDS: [CollectiveKind; 9] =
        [AllReduce, Reduce, AllGather, Gather, Scatter, Broadcast, AllToAll, ReduceScatter, Barrier];

    fn algorithms() -> [Algorithm; 6] {
        let (chunks, node) = (4, 2);
        [
            Algorithm::Ring,
            Algorithm::Tree { chunks },
            Algorithm::DoubleTree { chunks },
            Algorithm::Halving,
            Algorithm::Direct,
            Algorithm::Hierarchical { node },
        ]
    }

    /// Runs the steps of all members on all channels; returns the bytes that each member sends.
    fn run(members: &[Vec<Steps>]) -> Vec<u64> {
        let mut sent = vec![0; members.len()];
        for channel in 0..members[0].len() {
            let steps: Vec<Steps> = members.iter().map(|member| member[channel].clone()).collect();
            sent.iter_mut().zip(run_channel(&steps)).for_each(|(sum, sent)| *sum += sent);
        }
        sent
    }

    /// Runs the steps of all members with messages that wait for their receives.
    fn run_channel(all: &[Steps]) -> Vec<u64> {
        let mut at = vec![0; all.len()];
        let mut sent = vec![0; all.len()];
        let mut done: Vec<Vec<bool>> =
            all.iter().map(|steps| vec![false; steps.first().map_or(0, Vec::len)]).collect();
        loop {
            let mut has_moved = false;
            for me in 0..all.len() {
                let Some(step) = all[me].get(at[me]) else { continue };
                for (place, transfer) in step.iter().enumerate() {
                    let &Transfer::Send(to, bytes) = transfer else { continue };
                    if done[me][place] {
                        continue;
                    }
                    let to = to as usize;
                    let Some(other) = all[to].get(at[to]) else { continue };
                    let wanted = Transfer::Receive(me as u32, bytes);
                    let receive = (0..other.len()).find(|index| !done[to][*index] && other[*index] == wanted);
                    if let Some(receive) = receive {
                        (done[me][place], done[to][receive]) = (true, true);
                        sent[me] += bytes;
                        has_moved = true;
                    }
                }
            }
            for me in 0..all.len() {
                if at[me] < all[me].len() && done[me].iter().all(|done| *done) {
                    at[me] += 1;
                    done[me] = vec![false; all[me].get(at[me]).map_or(0, Vec::len)];
                    has_moved = true;
                }
            }
            if !has_moved {
                assert!(at.iter().zip(all).all(|(at, steps)| *at == steps.len()), "a deadlock: {all:?}");
                return sent;
            }
        }
    }

    #[test]
    fn all_messages_meet() {
        let mut served = 0;
        for algorithm in algorithms() {
            for kind in KINDS {
                for members in [1, 2, 3, 4, 6, 8, 13, 16] {
                    let all: Result<Vec<_>, _> =
                        (0..members).map(|me| channels(algorithm, kind, me, members, 4800)).collect();
                    if let Ok(all) = all {
                        run(&all);
                        served += 1;
                    }
                }
            }
        }
        assert!(served > 250, "{served}");
    }

    #[test]
    fn bytes_are_those_of_the_closed_forms() {
        let bytes = |algorithm, kind| {
            run(&(0..8).map(|me| channels(algorithm, kind, me, 8, 4800).unwrap()).collect::<Vec<_>>())
        };
        for algorithm in [Algorithm::Ring, Algorithm::Halving, Algorithm::Direct] {
            assert_eq!(bytes(algorithm, AllReduce), [2 * 4800 * 7 / 8; 8], "{algorithm}");
            assert_eq!(bytes(algorithm, ReduceScatter), [4800 * 7 / 8; 8], "{algorithm}");
            assert_eq!(bytes(algorithm, AllGather), [4800 * 7; 8], "{algorithm}");
        }
        // 14 edges of a tree, up and down, are 2 (n - 1) vectors in all.
        let tree = bytes(Algorithm::Tree { chunks: 4 }, AllReduce);
        assert_eq!(tree.iter().sum::<u64>(), 2 * 7 * 4800);
        let double = bytes(Algorithm::DoubleTree { chunks: 4 }, AllReduce);
        assert_eq!(double.iter().sum::<u64>(), 2 * 7 * 4800);
        assert!(double.iter().max() < tree.iter().max());
        // In nodes of two: half of the vector to the other one and back, a quarter of three quarters between nodes, twice.
        let hierarchical = bytes(Algorithm::Hierarchical { node: 2 }, AllReduce);
        assert_eq!(hierarchical, [2400 + 2 * 2400 * 3 / 4 + 2400; 8]);
    }

    #[test]
    fn what_an_algorithm_does_not_do_is_named() {
        let error = channels(Algorithm::Halving, AllReduce, 0, 6, 8).unwrap_err();
        assert_eq!(
            error.to_string(),
            "halving does not do AllReduce of 6 ranks, expected a power of two of ranks"
        );
        assert!(channels(Algorithm::Hierarchical { node: 4 }, AllReduce, 0, 6, 8).is_err());
        assert!(channels(Algorithm::Tree { chunks: 1 }, AllGather, 0, 4, 8).is_err());
    }
}
