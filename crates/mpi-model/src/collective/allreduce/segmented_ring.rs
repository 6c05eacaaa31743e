//! Allreduce round a ring in several phases.

use pdes_core::Bytes;

use super::ring;
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::schedule_builder::{RequestHandle, build_rounds};
use crate::collective::{Member, Schedule, Steps, exchange};

/// The reduce-scatter runs round the ring once for each segment of 1 MiB of the blocks, then an allgather of whole blocks
/// follows. Vectors of less than P segments take the plain ring.
///
/// Cost: (P - 1) (n / (P s) + 1) alpha + 2 (P - 1) / P n beta. Source: Open MPI's `ring_segmented`.
pub(in crate::collective) fn segmented_ring(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if member.size == 1 {
        return empty_schedule();
    }
    let size = u64::from(member.size);
    let (segment, round) = (data.per_open_mpi_segment(1 << 20), |segment: u64| size * segment);
    if data.count < round(segment) || data.count == 0 {
        return ring(member, data);
    }
    let left_over = data.count % round(segment);
    let one_more = left_over >= size && left_over > round(segment) / 2;
    let phases = data.count / round(segment) + u64::from(one_more);
    let blocks = Blocks { member, data, phases };
    let (right, left) = (member.after(1), member.before(1));
    let collect = move |k: u64| exchange(right, blocks.block(size + 1 - k), left, blocks.block(size - k));
    Box::new(blocks.reduce_scatter().then((0..size - 1).map(collect)))
}

/// Blocks, one per rank, each in one segment per phase; the first blocks and segments are longer by an element if the
/// vector does not divide evenly.
#[derive(Clone, Copy, Debug)]
struct Blocks<'a> {
    member: Member<'a>,
    data: Elements,
    phases: u64,
}

impl<'a> Blocks<'a> {
    /// Returns the number of elements of the block of the rank `ahead` places after this one.
    fn count(self, ahead: u64) -> u64 {
        let size = u64::from(self.member.size);
        nth_of(self.data.count, size, (u64::from(self.member.rank) + ahead) % size)
    }

    fn block(self, ahead: u64) -> Bytes {
        self.data.size_of(self.count(ahead))
    }

    fn segment(self, ahead: u64, phase: u64) -> Bytes {
        self.data.size_of(nth_of(self.count(ahead), self.phases, phase))
    }

    /// Returns the reduce-scatter: in each phase, each rank sends its own segment, then each that arrives, except the last.
    fn reduce_scatter(self) -> Schedule<'a> {
        let size = u64::from(self.member.size);
        let (right, left) = (self.member.after(1), self.member.before(1));
        let mut pending: Option<RequestHandle> = None;
        build_rounds(self.phases * size, move |round, steps| {
            let (phase, k) = (round / size, round % size);
            let next = (k + 1 < size).then(|| steps.irecv(left, self.segment(size - k - 1, phase)));
            pending.take().into_iter().for_each(|handle| steps.wait(handle));
            pending = next;
            if k + 1 < size {
                steps.send(right, self.segment(size - k, phase));
            }
        })
    }
}

/// Returns the size of the `index`-th of some parts of nearly the same size, larger ones first.
fn nth_of(count: u64, parts: u64, index: u64) -> u64 {
    count / parts + u64::from(index < count % parts)
}
