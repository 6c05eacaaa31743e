//! Broadcast of two halves down the two sides of a binary tree.

use super::{Args, smp_linear};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::schedule_builder::{RequestHandle, build_rounds, build_schedule};
use crate::collective::tree::{Tree, binary};
use crate::collective::{Member, Schedule, Steps};

/// Each half of the vector is sent down one side of a binary tree in segments; then each rank exchanges its half with its
/// neighbour, which is on the other side.
///
/// Cost: 2 (log2 P + n / (2 s)) (alpha + s beta) + alpha + n / 2 beta, with s = 1 KiB below 370,728 bytes and 8 KiB from
/// there on. Source: Open MPI's `split_bintree`; vectors of less than two segments take `SMP_linear`, as in SimGrid.
pub(in crate::collective) fn split_binary<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (data, unit) = (args.data, args.data.element_size.get());
    if member.size == 1 {
        return empty_schedule();
    }
    let bytes = if data.bytes().get() < 370_728 { 1 << 10 } else { 8 << 10 };
    let halves = [data.with_count(data.count.div_ceil(2)), data.with_count(data.count / 2)];
    let segment = bytes.max(unit);
    if unit == 0 || halves.iter().any(|half| half.count == 0 || segment > half.bytes().get()) {
        return smp_linear(member, args);
    }
    let halves = halves.map(|data| Half { data, segment: segment / unit });
    let tree = binary(member, args.root);
    // Odd virtual ranks are on the left side, which has the first half.
    let vrank = (member.rank + member.size - args.root) % member.size;
    let side = (vrank as usize + 1) % 2;
    let down = match tree.parent {
        None => from_root(tree, halves),
        Some(parent) => forward(parent, tree.children, halves[side]),
    };
    Box::new(down.then(exchange_halves(member, args.root, side, halves)))
}

/// One half of the vector, in segments.
#[derive(Clone, Copy, Debug)]
struct Half {
    data: Elements,
    segment: u64,
}

impl Half {
    fn segments(self) -> u64 {
        self.data.count.div_ceil(self.segment)
    }

    fn bytes(self, index: u64) -> pdes_core::Bytes {
        self.data.size_of(self.segment.min(self.data.count - index * self.segment))
    }
}

fn from_root<'a>(tree: Tree, halves: [Half; 2]) -> Schedule<'a> {
    build_rounds(halves[0].segments(), move |index, steps| {
        for (&child, half) in tree.children.iter().zip(halves) {
            if index < half.segments() {
                steps.send(child, half.bytes(index));
            }
        }
    })
}

/// Returns the steps below the root: leaves receive one segment after the other; inner ranks post the next receive before
/// they forward a segment.
fn forward<'a>(parent: u32, children: Vec<u32>, half: Half) -> Schedule<'a> {
    if children.is_empty() {
        return build_rounds(half.segments(), move |index, steps| steps.recv(parent, half.bytes(index)));
    }
    let mut pending: Option<RequestHandle> = None;
    build_rounds(half.segments() + 1, move |index, steps| {
        let next = (index < half.segments()).then(|| steps.irecv(parent, half.bytes(index)));
        if let Some(handle) = pending {
            steps.wait(handle);
            children.iter().for_each(|&child| steps.send(child, half.bytes(index - 1)));
        }
        pending = next;
    })
}

/// Returns the exchange of halves between neighbours; if the number of ranks is even, the neighbour of the last one is the
/// root.
fn exchange_halves<'a>(member: Member<'a>, root: u32, side: usize, halves: [Half; 2]) -> Schedule<'a> {
    let [own, other] = [halves[side].data.bytes(), halves[1 - side].data.bytes()];
    let last = (root + member.size - 1) % member.size;
    let neighbour = if side == 0 { member.after(1) } else { member.before(1) };
    build_schedule(move |steps| {
        let even = member.size.is_multiple_of(2);
        if member.rank == root {
            if even {
                steps.send(last, halves[1].data.bytes());
            }
        } else if even && member.rank == last {
            steps.recv(root, halves[1].data.bytes());
        } else {
            steps.exchange(neighbour, own, neighbour, other);
        }
    })
}
