//! Linear all-to-all: all messages at once, receives first. P (P - 1) messages, alpha + (P - 1) n beta.

use super::Args;
use crate::collective::{Member, Schedule, Step, irecvs, isends};

/// Posts receives upwards from the next rank, then sends downwards from the previous one. Source: Open MPI's
/// `basic_linear`.
pub(in crate::collective) fn from_next<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let upwards = (1..member.size).map(move |distance| member.after(distance));
    let downwards = (1..member.size).map(move |distance| member.before(distance));
    post_all(args, upwards, downwards)
}

/// Posts receives, then sends, in rank order. Source: SimGrid's `default` and Open MPI's `basic_linear` alltoallv.
pub(in crate::collective) fn in_order<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    post_all(args, member.others(), member.others())
}

fn post_all<'a>(
    args: Args<'a>,
    sources: impl Iterator<Item = u32> + Send + 'a,
    destinations: impl Iterator<Item = u32> + Send + 'a,
) -> Schedule<'a> {
    let receives = irecvs(sources, move |rank| args.received.bytes_of(rank));
    let sends = isends(destinations, move |rank| args.sent.bytes_of(rank));
    Box::new(receives.chain(sends).chain([Step::WaitAll]))
}
