//! Allreduce round a ring.

use super::{Allreduce, reduce_broadcast};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::{Member, Schedule, Selectable, Steps, exchange};

/// A reduce-scatter and an allgather of P blocks round the ring; the remaining elements take the communicator's allreduce.
/// A vector with fewer elements than ranks takes reduction and broadcast.
///
/// Cost: 2 (P - 1) alpha + 2 (P - 1) / P n beta. Source: Patarasuk and Yuan, JPDC 69(2) 2009 (STAR-MPI's `lr`).
pub(in crate::collective) fn ring(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let size = u64::from(member.size);
    if data.count < size {
        return reduce_broadcast(member, data);
    }
    let (right, left, block) = (member.after(1), member.before(1), data.size_of(data.count / size));
    let rounds = (0..2 * (size - 1)).map(move |_| exchange(right, block, left, block));
    let rest = data.with_count(data.count % size);
    let rest = (rest.count > 0).then(|| Allreduce::selected(member, rest));
    Box::new(rounds.then(rest.unwrap_or_else(empty_schedule)))
}
