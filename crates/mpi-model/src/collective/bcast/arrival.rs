//! Broadcasts from rank 0 down chains of the members that have arrived, in segments of 8 KiB.
//!
//! A vector no longer than a segment is sent as a whole. The remainder of a longer one is broadcast by the algorithm that
//! the communicator uses.

use std::iter::once;

use pdes_core::{Bytes, Rank, SimDuration};

use super::{Args, Bcast};
use crate::collective::arrival::{
    ChainLink, PollStrategy, SweepStrategy, announce, header, serve_after_polls, serve_after_sweeps,
    with_received_numbers,
};
use crate::collective::member::empty_schedule;
use crate::collective::pipeline::{SendMode, forward_segments, store_and_forward};
use crate::collective::tree::Tree;
use crate::collective::{Member, Schedule, Selectable, Step, Steps, recv, send};

/// Size of a segment \[B\].
const SEGMENT: u64 = 8192;
/// Capacity of a header in numbers.
const HEADER_CAPACITY: u32 = 1024;

/// Rank 0 polls all ranks in turn, and sends the vector down the chain of those that it has found; if it has found none, to
/// the first unserved rank.
///
/// Cost for r rounds: r P polls, P alpha, and r (n / s) (alpha + s beta), and as many more of the last term as the last
/// chain is long. Source: STAR-MPI's `arrival_pattern_aware`. SimGrid leaves announcements of ranks that got a short vector
/// before they announced themselves to its next operations; here nobody receives them.
pub(super) fn arrival_aware<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let parts = Segmentation::new(args);
    let header = header(HEADER_CAPACITY, member);
    along_chains(member, args, parts, header, parts.is_whole, |member| {
        let ask = PollStrategy { polls_served: true, pause: SimDuration::ZERO, serves_unannounced: true };
        let serve = move |round: &[u32]| -> Schedule<'a> {
            let to = round[0];
            Box::new(once(send(to, header)).chain((0..parts.segments).map(move |_| send(to, parts.segment))))
        };
        let end = move |other| {
            let from = Rank::new(other);
            if parts.is_whole { Step::DiscardAnnouncement { from } } else { Step::RecvAnnouncement { from } }
        };
        serve_after_polls(member, ask, serve, end)
    })
}

/// Rank 0 polls in three sweeps, restarted whenever it has found a rank, and sends the vector down the chain of those that
/// it has found.
///
/// Cost: as [`arrival_aware`], but three times the polls in fewer rounds. Source: STAR-MPI's `arrival_pattern_aware_wait`.
pub(super) fn arrival_aware_in_sweeps<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let parts = Segmentation::new(args);
    let header = header(HEADER_CAPACITY, member);
    along_chains(member, args, parts, header, false, |member| {
        serve_after_sweeps(member, SweepStrategy { sweeps: 3, restart_from: 1 }, move |round| {
            let below = Tree { parent: None, children: vec![round[0]] };
            let segments = forward_segments(below, parts.segments, parts.segment, SendMode::NonBlocking);
            Box::new(once(send(round[0], header)).then(segments))
        })
    })
}

/// Segmentation of the vector along a chain.
#[derive(Clone, Copy, Debug)]
struct Segmentation {
    is_whole: bool,
    segments: u64,
    segment: Bytes,
    /// Number of elements beyond the last whole segment.
    rest: u64,
}

impl Segmentation {
    fn new(Args { data, .. }: Args) -> Self {
        let segment = data.per_segment(SEGMENT);
        if data.count <= segment {
            return Self { is_whole: true, segments: 1, segment: data.bytes(), rest: 0 };
        }
        let (segments, rest) = (data.count / segment, data.count % segment);
        Self { is_whole: false, segments, segment: data.size_of(segment), rest }
    }
}

/// Sends the vector to rank 0, which serves the others; each of them forwards what it receives.
fn along_chains<'a>(
    member: Member<'a>,
    args: Args,
    parts: Segmentation,
    header: Bytes,
    stores: bool,
    serve: impl FnOnce(Member<'a>) -> Schedule<'a>,
) -> Schedule<'a> {
    if member.size == 1 {
        return empty_schedule();
    }
    let served = if member.rank == 0 { serve(member) } else { forward(member, parts, header, stores) };
    let rest = args.data.with_count(parts.rest);
    let rest =
        if rest.count > 0 { Bcast::selected(member, Args { data: rest, ..args }) } else { empty_schedule() };
    Box::new(to_rank_0(member, args).then(served).then(rest))
}

/// The root sends the whole vector to rank 0.
pub(super) fn to_rank_0(member: Member<'_>, args: Args) -> impl Iterator<Item = Step> + Send + use<> {
    let (root, bytes) = (args.root, args.data.bytes());
    let step = match member.rank {
        _ if root == 0 => None,
        0 => Some(recv(root, bytes)),
        rank if rank == root => Some(send(0, bytes)),
        _ => None,
    };
    step.into_iter()
}

/// Receives the header and then the vector from the previous member, and forwards both: each at once, or both after the
/// second has arrived if `stores`.
fn forward<'a>(member: Member<'a>, parts: Segmentation, header: Bytes, stores: bool) -> Schedule<'a> {
    let rank = member.rank;
    Box::new(once(announce()).then(with_received_numbers(move |neighbours| {
        let ChainLink { previous, next } = ChainLink::new(rank, neighbours);
        let from = previous.unwrap_or(0);
        let tree = Tree { parent: Some(from), children: next.into_iter().collect() };
        if stores {
            let got = [recv(from, header), recv(from, parts.segment)];
            let handed = next.map(|to| [send(to, header), send(to, parts.segment)]);
            return Box::new(got.into_iter().chain(handed.into_iter().flatten()));
        }
        let header = store_and_forward(tree.clone(), header);
        Box::new(header.then(forward_segments(tree, parts.segments, parts.segment, SendMode::NonBlocking)))
    })))
}
