//! Everybody writes into the memory of everybody else.

use pdes_core::{Bytes, Rank};

use super::Args;
use crate::collective::blocks::Blocks;
use crate::collective::member::Elements;
use crate::collective::steps::in_turn;
use crate::collective::{Member, Schedule, Step, allgather, barrier};

/// The members tell each other where their memory is (8 bytes, by the communicator's allgather), write their blocks into
/// it between two fences, and forget it. The ranks are served in the order of rank XOR i, or of rank + i where P is no
/// power of two, for which SimGrid's is not. A fence is two of the communicator's barriers, and so is the end; within
/// the second one a member waits for what is written into its memory.
///
/// alpha + (P - 1) n beta, the allgather, and 6 barriers. Source: SimGrid's `pair_rma`.
pub(super) fn pair<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let together = move || barrier::selected(member);
    let place = Elements { count: 8, unit: Bytes::new(1) };
    let places = allgather::Args { sent: place, blocks: Blocks::Equal(place) };
    let other = move |round| if size.is_power_of_two() { rank ^ round } else { member.after(round) };
    let puts = (1..size).map(other).map(move |to| Step::Put { to: Rank::new(to), bytes: args.sent.of(to) });
    let written = member
        .others()
        .map(move |from| Step::Accept { from: Rank::new(from), bytes: args.received.of(from) })
        .chain([Step::WaitAll]);
    let parts: [Schedule<'a>; 9] = [
        allgather::selected(member, places),
        together(),
        together(),
        Box::new(puts),
        together(),
        Box::new(written),
        together(),
        together(),
        together(),
    ];
    in_turn(parts.into_iter())
}
