//! Collective operations as the simulator knows them: of elements that have only a size.

use pdes_core::Rank;
use trace_mmap::{Collective, Datatype};

use crate::layout::{CollectiveKind, Operation};

/// Sizes of elements \[B\] that a datatype has, with its number.
const DATATYPES: [(u64, i32); 6] = [(1, 6), (2, 3), (4, 1), (8, 0), (16, 36), (32, 27)];

/// Returns a datatype, and how many of its elements make one of the size.
fn datatype(size: u64) -> (Datatype, u64) {
    let known = DATATYPES.iter().find(|(known, _)| *known == size);
    match known.and_then(|(_, id)| Datatype::from_id(*id)) {
        Some(datatype) => (datatype, 1),
        None => (Datatype::BYTE, size),
    }
}

/// Returns the collective operation of an operation of a rank; `None` if its root or kind is wrong. `vectors` has the numbers of elements
/// for each member.
pub(crate) fn collective(operation: &Operation, vectors: &[u64], size: u32) -> Option<Collective> {
    let &Operation { flags, peer, count, recv_count, bytes, source_bytes, .. } = operation;
    let kind = CollectiveKind::from_number(flags)?;
    let ((send_type, sent), (recv_type, received)) = (datatype(bytes), datatype(source_bytes));
    let (send_count, recv_count) = (count * sent, recv_count * received);
    let root = || u32::try_from(peer).ok().filter(|root| *root < size).map(Rank::new);
    let scaled =
        |vector: &[u64], factor: u64| vector.iter().map(|count| count * factor).collect::<Box<[u64]>>();
    let (count, datatype, flops) = (send_count, send_type, 0.0);
    Some(match kind {
        CollectiveKind::Barrier => Collective::Barrier,
        CollectiveKind::Bcast => Collective::Bcast { count, root: root()?, datatype },
        CollectiveKind::Reduce => Collective::Reduce { count, flops, root: root()?, datatype },
        CollectiveKind::Allreduce => Collective::Allreduce { count, flops, datatype },
        CollectiveKind::Scan => Collective::Scan { count, flops, datatype },
        CollectiveKind::Exscan => Collective::Exscan { count, flops, datatype },
        CollectiveKind::Alltoall => Collective::Alltoall { send_count, recv_count, send_type, recv_type },
        CollectiveKind::Alltoallv => {
            let (send, receive) = vectors.split_at_checked(size as usize)?;
            let (send_counts, recv_counts) = (scaled(send, sent), scaled(receive, received));
            Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }
        }
        CollectiveKind::Gather => {
            Collective::Gather { send_count, recv_count, root: root()?, send_type, recv_type }
        }
        CollectiveKind::Scatter => {
            Collective::Scatter { send_count, recv_count, root: root()?, send_type, recv_type }
        }
        CollectiveKind::Allgather => Collective::Allgather { send_count, recv_count, send_type, recv_type },
        CollectiveKind::Gatherv => {
            let recv_counts = scaled(vectors, received);
            Collective::Gatherv { send_count, recv_counts, root: root()?, send_type, recv_type }
        }
        CollectiveKind::Scatterv => {
            let send_counts = scaled(vectors, sent);
            Collective::Scatterv { send_counts, recv_count, root: root()?, send_type, recv_type }
        }
        CollectiveKind::Allgatherv => Collective::Allgatherv {
            send_count,
            recv_counts: scaled(vectors, received),
            send_type,
            recv_type,
        },
        CollectiveKind::ReduceScatter => {
            Collective::ReduceScatter { recv_counts: scaled(vectors, sent), flops, datatype }
        }
        CollectiveKind::Neighbor | CollectiveKind::Window | CollectiveKind::File => {
            return None;
        }
    })
}
