//! Broadcast along a chain with at most two segments in flight.

use super::Args;
use crate::collective::member::empty_schedule;
use crate::collective::schedule_builder::{RequestHandle, build_rounds};
use crate::collective::tree::{Tree, chains};
use crate::collective::{Member, Schedule};

/// A pipeline along the chain that begins at the root: each member posts the receive of the next segment, waits for the
/// current one, forwards it, and waits for the completion of that send.
///
/// Cost: (P - 2 + n / s) (alpha + s beta). Source: Open MPI's `pipeline` with segments of 128, 64 or 16 KiB as its fixed
/// decisions had them in version 1.
pub(in crate::collective) fn chain_by_two<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let data = args.data;
    if member.size == 1 || data.count == 0 {
        return empty_schedule();
    }
    let segment = data.per_open_mpi_segment(segment_bytes(member.size, data.bytes().get()));
    let segments = data.count.div_ceil(segment);
    let bytes = move |index: u64| data.size_of(segment.min(data.count - index * segment));
    let Tree { parent, children } = chains(member, args.root, 1);
    let mut pending: Option<RequestHandle> = None;
    // One more round than segments: the last one forwards the last segment.
    build_rounds(segments + 1, move |round, steps| {
        let next = parent.filter(|_| round < segments).map(|parent| steps.irecv(parent, bytes(round)));
        let Some(done) = round.checked_sub(1) else {
            pending = next;
            return;
        };
        if let Some(handle) = pending {
            steps.wait(handle);
        }
        pending = next;
        for &child in &children {
            let sent = steps.isend(child, bytes(done));
            steps.wait(sent);
        }
    })
}

/// Returns the size of a segment \[B\].
fn segment_bytes(size: u32, bytes: u64) -> u64 {
    // The first line above the number of ranks decides: slope per byte, constant, segment size.
    const LINES: [(f64, f64, u64); 3] =
        [(1.6134e-6, 2.1102, 128 << 10), (2.3679e-6, 1.1787, 64 << 10), (3.2118e-6, 8.7936, 16 << 10)];
    let line = LINES.iter().find(|(slope, constant, _)| f64::from(size) < slope * bytes as f64 + constant);
    line.map_or(128 << 10, |&(_, _, segment)| segment)
}
