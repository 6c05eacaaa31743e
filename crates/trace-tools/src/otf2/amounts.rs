//! Amounts of collective operations, of which records have what a rank sends and receives in all, by the rules of Score-P:
//!
//! | operation | sent | received |
//! |---|---|---|
//! | bcast, scatter | at the root ranks x c | c |
//! | gather, reduce | c | at the root ranks x c |
//! | allgather, allreduce, alltoall, reduce_scatter_block | ranks x c | ranks x c |
//! | scan | (ranks - rank) x c | (rank + 1) x c |
//! | exscan | (ranks - rank - 1) x c | rank x c |
//! | gatherv, scatterv | own part, at the root of scatterv all | own part, at the root of gatherv all |
//! | allgatherv | ranks x own part | all |
//! | reduce_scatter | all | ranks x own part |
//! | alltoallv, alltoallw | all | all |
//!
//! In place, `ranks - 1` stands for `ranks`, and the root of a rooted operation sends or receives nothing itself.

use std::path::Path;

use ::otf2::reader::{Definitions, Event, read_events};
use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::table::CollectiveKind;
use trace_mmap::{Collective, Datatype, TraceError};

use super::library;
use crate::timed::{Communicators, Function, Given, share};

/// Returns the operation with a number of OTF2; `None` for those that make or free objects.
pub(super) fn kind_of(operation: u8) -> Option<CollectiveKind> {
    Some(match operation {
        0 => CollectiveKind::Barrier,
        1 => CollectiveKind::Bcast,
        2 => CollectiveKind::Gather,
        3 => CollectiveKind::Gatherv,
        4 => CollectiveKind::Scatter,
        5 => CollectiveKind::Scatterv,
        6 => CollectiveKind::Allgather,
        7 => CollectiveKind::Allgatherv,
        8 => CollectiveKind::Alltoall,
        9 | 10 => CollectiveKind::Alltoallv,
        11 => CollectiveKind::Allreduce,
        12 => CollectiveKind::Reduce,
        13 | BLOCK => CollectiveKind::ReduceScatter,
        14 => CollectiveKind::Scan,
        15 => CollectiveKind::Exscan,
        _ => return None,
    })
}

/// `MPI_Reduce_scatter_block`.
const BLOCK: u8 = 16;

/// The end of a collective operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) operation: u8,
    pub(super) root: Option<u32>,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// A rank of a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

impl Record {
    /// Returns whether the amounts of the ranks differ, and matter to others.
    pub(super) fn is_vector(&self) -> bool {
        use CollectiveKind::{Allgatherv, Alltoallv, Gatherv, ReduceScatter, Scatterv};
        self.operation != BLOCK
            && matches!(
                kind_of(self.operation),
                Some(Gatherv | Scatterv | Allgatherv | ReduceScatter | Alltoallv)
            )
    }

    /// Returns the part of a rank \[B\]: c, or its own part of a vector; what it sends of alltoallv.
    fn part(&self, kind: CollectiveKind, Place { rank, ranks }: Place) -> u64 {
        let ranks = u64::from(ranks);
        let divide = |all: u64| {
            if all.is_multiple_of(ranks) { all / ranks } else { all / (ranks - 1).max(1) }
        };
        let is_root = self.root == Some(rank);
        // The root of an operation in place.
        let at_root = |own: u64, all: u64| if is_root && own == 0 { all / (ranks - 1).max(1) } else { own };
        match kind {
            CollectiveKind::Barrier => 0,
            CollectiveKind::Bcast | CollectiveKind::Scatter => at_root(self.received, self.sent),
            CollectiveKind::Gather | CollectiveKind::Reduce => at_root(self.sent, self.received),
            CollectiveKind::Allgather | CollectiveKind::Allreduce | CollectiveKind::Alltoall => {
                divide(self.sent)
            }
            CollectiveKind::Allgatherv => divide(self.sent),
            CollectiveKind::ReduceScatter => divide(self.received),
            CollectiveKind::Gatherv | CollectiveKind::Alltoallv => self.sent,
            CollectiveKind::Scatterv => self.received,
            CollectiveKind::Scan | CollectiveKind::Exscan => {
                let all = self.sent + self.received;
                let is_whole = kind == CollectiveKind::Scan && all.is_multiple_of(ranks + 1);
                all / if is_whole { ranks + 1 } else { (ranks - 1).max(1) }
            }
        }
    }

    /// Makes the operation of a rank, given the parts of all ranks if it is one on vectors.
    pub(super) fn operation(&self, kind: CollectiveKind, place: Place, parts: &[u64]) -> Collective {
        let (count, flops, datatype) = (self.part(kind, place), 0.0, Datatype::BYTE);
        let (send_type, recv_type) = (datatype, datatype);
        let (send_count, recv_count) = (count, count);
        let root = Rank::new(self.root.unwrap_or(0));
        // Only the root has the counts of all.
        let at_root = || -> Box<[u64]> {
            if self.root == Some(place.rank) { parts.into() } else { vec![0; place.ranks as usize].into() }
        };
        match kind {
            CollectiveKind::Barrier => Collective::Barrier,
            CollectiveKind::Bcast => Collective::Bcast { count, root, datatype },
            CollectiveKind::Reduce => Collective::Reduce { count, flops, root, datatype },
            CollectiveKind::Allreduce => Collective::Allreduce { count, flops, datatype },
            CollectiveKind::Scan => Collective::Scan { count, flops, datatype },
            CollectiveKind::Exscan => Collective::Exscan { count, flops, datatype },
            CollectiveKind::Alltoall => Collective::Alltoall { send_count, recv_count, send_type, recv_type },
            CollectiveKind::Allgather => {
                Collective::Allgather { send_count, recv_count, send_type, recv_type }
            }
            CollectiveKind::Gather => {
                Collective::Gather { send_count, recv_count, root, send_type, recv_type }
            }
            CollectiveKind::Scatter => {
                Collective::Scatter { send_count, recv_count, root, send_type, recv_type }
            }
            CollectiveKind::Gatherv => {
                Collective::Gatherv { send_count, recv_counts: at_root(), root, send_type, recv_type }
            }
            CollectiveKind::Scatterv => {
                Collective::Scatterv { send_counts: at_root(), recv_count, root, send_type, recv_type }
            }
            CollectiveKind::Allgatherv => {
                Collective::Allgatherv { send_count, recv_counts: parts.into(), send_type, recv_type }
            }
            CollectiveKind::ReduceScatter if self.operation == BLOCK => {
                let recv_counts = vec![count; place.ranks as usize].into();
                Collective::ReduceScatter { recv_counts, flops, datatype }
            }
            CollectiveKind::ReduceScatter => {
                Collective::ReduceScatter { recv_counts: parts.into(), flops, datatype }
            }
            CollectiveKind::Alltoallv => {
                let ranks = u64::from(place.ranks);
                let send_counts = (0..ranks).map(|peer| share(count, ranks, peer)).collect();
                let recv_counts = parts.iter().map(|sent| share(*sent, ranks, place.rank.into())).collect();
                Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }
            }
        }
    }
}

/// The parts of the ranks in operations on vectors.
#[derive(Debug, Default)]
pub(super) struct Vectors {
    /// For each communicator and member, the part in each operation.
    parts: FxHashMap<u32, Vec<Vec<u64>>>,
}

impl Vectors {
    /// Reads the parts of all ranks, if the archive has a region of such an operation.
    pub(super) fn read(
        anchor: &Path,
        definitions: &Definitions,
        locations: &[u64],
        communicators: &Communicators,
    ) -> Result<Self, TraceError> {
        let has_vectors = definitions.regions.values().any(|region| {
            let is_vector = |kind| {
                use CollectiveKind::{Allgatherv, Alltoallv, Gatherv, ReduceScatter, Scatterv};
                matches!(kind, Gatherv | Scatterv | Allgatherv | ReduceScatter | Alltoallv)
            };
            matches!(Function::of(&region.name), Function::Collective { kind, .. } if is_vector(kind))
        });
        let mut vectors = Self::default();
        for (rank, location) in (0..).map(Rank::new).zip(locations).filter(|_| has_vectors) {
            let take = &mut |_, event| {
                let (record, communicator) = match event {
                    Event::Collective { operation, communicator, root, sent, received }
                    | Event::CollectiveComplete { operation, communicator, root, sent, received, .. } => {
                        (Record { operation, root, sent, received }, communicator)
                    }
                    _ => return true,
                };
                let kind = kind_of(record.operation).filter(|_| record.is_vector());
                if let Some((kind, place)) = kind.zip(place_of(communicators, communicator, rank)) {
                    let of_all = vectors.parts.entry(communicator);
                    let of_all = of_all.or_insert_with(|| vec![Vec::new(); place.ranks as usize]);
                    of_all[place.rank as usize].push(record.part(kind, place));
                }
                true
            };
            read_events(anchor, *location, take).map_err(library)?;
        }
        Ok(vectors)
    }

    /// Returns the parts of all ranks in an operation on vectors of a communicator, by its number among these; a rank that does not
    /// take part has none.
    pub(super) fn parts(&self, communicator: u32, number: usize) -> Vec<u64> {
        let members = self.parts.get(&communicator).map_or(&[][..], Vec::as_slice);
        members.iter().map(|parts| parts.get(number).copied().unwrap_or(0)).collect()
    }
}

/// Returns the rank of a rank of the world in a communicator.
pub(super) fn place_of(communicators: &Communicators, communicator: u32, rank: Rank) -> Option<Place> {
    Some(match communicators.given(communicator.into())? {
        Given::World => Place { rank: rank.get(), ranks: communicators.ranks() },
        Given::Own => Place { rank: 0, ranks: 1 },
        Given::Group((_, group)) => Place { rank: group.position(rank)?, ranks: group.len() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_from_what_ranks_send_and_receive() {
        let record = |operation, root, sent, received| Record { operation, root, sent, received };
        let cases = [
            (record(1, Some(0), 320, 80), 0, 80),
            (record(1, Some(0), 0, 80), 2, 80),
            (record(2, Some(1), 24, 96), 1, 24),
            // The root in place.
            (record(2, Some(1), 0, 72), 1, 24),
            (record(12, Some(1), 8, 0), 3, 8),
            (record(4, Some(2), 60, 0), 2, 20),
            (record(11, None, 32, 32), 0, 8),
            (record(11, None, 30, 30), 0, 10),
            (record(8, None, 400, 400), 0, 100),
            (record(14, None, 24, 16), 1, 8),
            (record(15, None, 16, 8), 1, 8),
            (record(BLOCK, None, 32, 32), 1, 8),
            (record(13, None, 100, 32), 1, 8),
            (record(7, None, 32, 100), 1, 8),
        ];
        for (record, rank, expected) in cases {
            let kind = kind_of(record.operation).expect("an operation");
            assert_eq!(record.part(kind, Place { rank, ranks: 4 }), expected, "{record:?}");
        }
    }
}
