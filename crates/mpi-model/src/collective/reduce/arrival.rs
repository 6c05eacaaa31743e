//! Reductions along chains of the members that have arrived.

use std::iter::once;

use pdes_core::{Bytes, Rank, SimDuration};

use super::{Args, linear};
use crate::collective::arrival::{
    ChainLink, PollStrategy, SweepStrategy, announce, header, serve_after_polls, serve_after_sweeps,
    with_received_numbers,
};
use crate::collective::member::empty_schedule;
use crate::collective::pipeline::{SendMode, forward_segments, store_and_forward};
use crate::collective::tree::Tree;
use crate::collective::{Member, Schedule, Step, Steps, recv, send};

/// Size of a segment \[B\].
const SEGMENT: u64 = 8192;
/// Capacity of a header in numbers.
const HEADER_CAPACITY: u32 = 1024;
/// Pause of rank 0 after each poll if the vector is short.
const POLL_PAUSE: SimDuration = SimDuration::from_picos(100_000_000);

/// Rank 0 polls the others, and reduces along the chain of those that it has found, in segments of 8 KiB; in the end it
/// sends the result to the root. The remainder beyond whole segments is reduced by SimGrid's `default`. A vector no longer
/// than a segment is reduced as a whole; then rank 0 pauses for 100 us after each poll.
///
/// Cost for r rounds: r P polls, P alpha, and r (n / s) (alpha + s beta), and for each chain as many more of the last term
/// as it is long. Source: STAR-MPI's `arrival_pattern_aware`.
pub(super) fn arrival_aware<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if member.size == 1 {
        return empty_schedule();
    }
    let data = args.data;
    let per_segment = data.per_segment(SEGMENT);
    let is_whole = data.count <= per_segment;
    let (segments, segment, rest) = if is_whole {
        (1, data.bytes(), 0)
    } else {
        (data.count / per_segment, data.size_of(per_segment), data.count % per_segment)
    };
    let header = header(HEADER_CAPACITY, member);
    let serve = move |round: &[u32]| -> Schedule<'a> {
        let last = round[round.len() - 1];
        let results = (0..segments).map(move |_| recv(last, segment));
        Box::new(once(send(round[0], header)).chain(results))
    };
    let served = if member.rank > 0 {
        forward(member, header, segments, segment, is_whole)
    } else if is_whole {
        let ask = PollStrategy { polls_served: false, pause: POLL_PAUSE, serves_unannounced: false };
        serve_after_polls(member, ask, serve, |other| Step::DiscardAnnouncement { from: Rank::new(other) })
    } else {
        // SimGrid's sweep leaves out rank 1 when it restarts.
        serve_after_sweeps(member, SweepStrategy { sweeps: 1, restart_from: 2 }, serve)
    };
    let rest = data.with_count(rest);
    let rest = if rest.count > 0 { linear(member, Args { data: rest, ..args }) } else { empty_schedule() };
    Box::new(served.then(to_root(member, args)).then(rest))
}

/// Receives and forwards the header, then the vector. The first member begins with its own vector; the last one sends the
/// result to rank 0.
fn forward<'a>(
    member: Member<'a>,
    header: Bytes,
    segments: u64,
    segment: Bytes,
    is_whole: bool,
) -> Schedule<'a> {
    let rank = member.rank;
    Box::new(once(announce()).then(with_received_numbers(move |neighbours| {
        let ChainLink { previous, next } = ChainLink::new(rank, neighbours);
        let told = Tree { parent: Some(previous.unwrap_or(0)), children: next.into_iter().collect() };
        let reduced = Tree { parent: previous, children: vec![next.unwrap_or(0)] };
        let told = store_and_forward(told, header);
        if is_whole {
            Box::new(told.then(store_and_forward(reduced, segment)))
        } else {
            Box::new(told.then(forward_segments(reduced, segments, segment, SendMode::NonBlocking)))
        }
    })))
}

/// Rank 0 sends the whole result to the root.
fn to_root(member: Member<'_>, args: Args) -> impl Iterator<Item = Step> + Send + use<> {
    let (root, bytes) = (args.root, args.data.bytes());
    let step = match member.rank {
        _ if root == 0 => None,
        0 => Some(send(root, bytes)),
        rank if rank == root => Some(recv(0, bytes)),
        _ => None,
    };
    step.into_iter()
}
