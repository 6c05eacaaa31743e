//! Binary trees, in chunks that follow each other.

use super::{Steps, Transfer};

/// Neighbours of a member in a tree.
struct Place {
    parent: Option<u32>,
    children: Vec<u32>,
}

/// The tree in which member `i` has the children `2 i + 1` and `2 i + 2`.
fn heap(me: u32, members: u32) -> Place {
    let children = [2 * me + 1, 2 * me + 2].into_iter().filter(|child| *child < members).collect();
    Place { parent: me.checked_sub(1).map(|above| above / 2), children }
}

/// One of two trees of which each inner member of the one is a leaf of the other, if their number is even: the tree of NCCL, in which the
/// number of zeros at the end of a member is its height, or that tree from behind.
fn of_two(me: u32, members: u32, is_mirrored: bool) -> Place {
    let mirror = |member: u32| if is_mirrored { members - 1 - member } else { member };
    let me = mirror(me);
    let bit = if me == 0 { members.next_power_of_two() } else { 1 << me.trailing_zeros() };
    let parent = (me > 0).then(|| {
        let up = (me ^ bit) | (bit << 1);
        if up < members { up } else { me ^ bit }
    });
    let low = bit >> 1;
    let mut children = Vec::new();
    if low > 0 {
        // Below the root there is one child only, the highest power of two.
        if me > 0 {
            children.push(me - low);
        }
        let mut step = low;
        while step > 0 && me + step >= members {
            step >>= 1;
        }
        if step > 0 {
            children.push(me + step);
        }
    }
    Place { parent: parent.map(mirror), children: children.into_iter().map(mirror).collect() }
}

fn up(place: &Place, bytes: u64, chunks: u32) -> Steps {
    let chunk = bytes.div_ceil(chunks.into());
    (0..chunks)
        .flat_map(|_| {
            let receives: Vec<_> =
                place.children.iter().map(|child| Transfer::Receive(*child, chunk)).collect();
            let send = place.parent.map(|parent| Transfer::Send(parent, chunk));
            [receives, send.into_iter().collect()]
        })
        .filter(|step| !step.is_empty())
        .collect()
}

fn down(place: &Place, bytes: u64, chunks: u32) -> Steps {
    let chunk = bytes.div_ceil(chunks.into());
    (0..chunks)
        .flat_map(|_| {
            let receive = place.parent.map(|parent| Transfer::Receive(parent, chunk));
            let sends: Vec<_> = place.children.iter().map(|child| Transfer::Send(*child, chunk)).collect();
            [receive.into_iter().collect(), sends]
        })
        .filter(|step: &Vec<_>| !step.is_empty())
        .collect()
}

pub(super) fn reduce(me: u32, members: u32, bytes: u64, chunks: u32) -> Steps {
    up(&heap(me, members), bytes, chunks.max(1))
}

pub(super) fn broadcast(me: u32, members: u32, bytes: u64, chunks: u32) -> Steps {
    down(&heap(me, members), bytes, chunks.max(1))
}

pub(super) fn allreduce(me: u32, members: u32, bytes: u64, chunks: u32) -> Steps {
    [reduce(me, members, bytes, chunks), broadcast(me, members, bytes, chunks)].concat()
}

/// Reduces and broadcasts each half of the vector by one of two trees.
pub(super) fn double(me: u32, members: u32, bytes: u64, chunks: u32) -> [Steps; 2] {
    let half = bytes.div_ceil(2);
    [false, true].map(|is_mirrored| {
        let place = of_two(me, members, is_mirrored);
        [up(&place, half, chunks.max(1)), down(&place, half, chunks.max(1))].concat()
    })
}
