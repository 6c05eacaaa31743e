//! All-to-alls with a few messages in flight: ceil(P / 4) windows, about P/4 alpha + (P - 1) n beta.

use super::Args;
use crate::collective::{Member, Schedule, Step, irecvs, isends};

/// Number of receives, and of sends, in flight.
const WINDOW: u32 = 4;

/// Windows of the ranks at distances from 0 on, so that each rank also sends its own block to itself; nothing is sent if
/// blocks are empty. Source: MVAPICH2's and MPICH's `scatter_dest`, after T. Ladd.
pub(in crate::collective) fn including_self<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let size = if args.received.bytes_of(0).get() == 0 { 0 } else { member.size };
    windows(member, args, 0, size)
}

/// Windows of the ranks at distances from 0 on, without the rank itself. Source: SimGrid's `bruck` alltoallv, which is
/// MPICH's with scattered destinations.
pub(in crate::collective) fn excluding_self<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    windows(member, args, 1, member.size)
}

/// Returns windows of distances `0..end`, without those below `first`.
fn windows<'a>(member: Member<'a>, args: Args<'a>, first: u32, end: u32) -> Schedule<'a> {
    Box::new((0..end).step_by(WINDOW as usize).flat_map(move |start| {
        let distances = start.max(first)..end.min(start.saturating_add(WINDOW));
        let sources = distances.clone().map(move |distance| member.after(distance));
        let destinations = distances.map(move |distance| member.before(distance));
        let receives = irecvs(sources, move |rank| args.received.bytes_of(rank));
        let sends = isends(destinations, move |rank| args.sent.bytes_of(rank));
        receives.chain(sends).chain([Step::WaitAll])
    }))
}
