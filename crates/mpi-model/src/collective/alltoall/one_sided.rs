//! All-to-all by one-sided puts.

use pdes_core::{Bytes, Rank};

use super::Args;
use crate::collective::blocks::Blocks;
use crate::collective::member::Elements;
use crate::collective::steps::concatenate;
use crate::collective::{Allgather, Barrier, Member, Schedule, Selectable, Step, allgather};

/// The members exchange the addresses of their windows (8 bytes, by the communicator's allgather), put their blocks between
/// two fences, and free the windows. Round `i` puts to rank XOR `i`, or to rank + `i` if P is no power of two, which
/// SimGrid's does not support. A fence is two of the communicator's barriers, and so is freeing; before the end of the
/// second fence a member waits for the puts into its window.
///
/// Cost: alpha + (P - 1) n beta, the allgather, and 6 barriers. Source: SimGrid's `pair_rma`.
pub(super) fn pair<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let together = move || Barrier::selected(member, ());
    let place = Elements { count: 8, element_size: Bytes::new(1) };
    let places = allgather::Args { sent: place, blocks: Blocks::Equal(place) };
    let other = move |round| if size.is_power_of_two() { rank ^ round } else { member.after(round) };
    let puts =
        (1..size).map(other).map(move |to| Step::Put { to: Rank::new(to), bytes: args.sent.bytes_of(to) });
    let written = member
        .others()
        .map(move |from| Step::ExpectPut { from: Rank::new(from), bytes: args.received.bytes_of(from) })
        .chain([Step::WaitAll]);
    let parts: [Schedule<'a>; 9] = [
        Allgather::selected(member, places),
        together(),
        together(),
        Box::new(puts),
        together(),
        Box::new(written),
        together(),
        together(),
        together(),
    ];
    concatenate(parts.into_iter())
}
