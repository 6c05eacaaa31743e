//! Broadcast algorithms.

use pdes_core::{Bytes, Rank};

use super::{Member, Schedule, Step};

/// A binomial tree: receive from the parent, then send to the children, the one with the largest subtree first.
///
/// P - 1 messages; ceil(log2 P) of them one after the other on the longest way. Source: MPICH; Thakur, Rabenseifner
/// and Gropp, IJHPCA 19(1) 2005.
pub(super) fn binomial_tree<'a>(member: Member, root: Rank, bytes: Bytes) -> Schedule<'a> {
    let Member { rank, size } = member;
    let place = (rank + size - root.get()) % size;
    let at =
        move |place: u32| Rank::new(((u64::from(place) + u64::from(root.get())) % u64::from(size)) as u32);
    let levels = u32::BITS - (size - 1).leading_zeros();
    // The lowest set bit of a place leads to its parent; all lower bits lead to children.
    let own = if place == 0 { levels } else { place.trailing_zeros() };
    let parent = (place != 0).then(|| Step::Recv { from: at(place ^ (1 << own)), bytes });
    let children = (0..own).rev().map(move |bit| place | (1 << bit)).filter(move |&child| child < size);
    Box::new(parent.into_iter().chain(children.map(move |child| Step::Send { to: at(child), bytes })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_subtree_is_served_first() {
        let send = |to| Step::Send { to: Rank::new(to), bytes: Bytes::new(1) };
        let steps =
            |rank| binomial_tree(Member::new(rank, 6), Rank::new(1), Bytes::new(1)).collect::<Vec<_>>();
        // Places 0..5 are ranks 1, 2, 3, 4, 5, 0; place 0 has the children 4, 2, 1.
        assert_eq!(steps(1), [send(5), send(3), send(2)]);
        assert_eq!(steps(5), [Step::Recv { from: Rank::new(1), bytes: Bytes::new(1) }, send(0)]);
    }
}
