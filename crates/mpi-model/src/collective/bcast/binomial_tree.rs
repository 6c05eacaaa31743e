//! Broadcast down a binomial tree.

use super::Args;
use crate::collective::{Member, Schedule, recv, send};

/// Each rank receives from its parent, then sends to its children, largest subtree first.
///
/// Cost: P - 1 messages; ceil(log2 P) (alpha + n beta). Source: MPICH; Thakur, Rabenseifner and Gropp, IJHPCA 19(1) 2005.
pub(in crate::collective) fn binomial_tree<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let (root, bytes) = (args.root, args.data.bytes());
    let vrank = (rank + size - root) % size;
    let at = move |vrank: u32| ((u64::from(vrank) + u64::from(root)) % u64::from(size)) as u32;
    let levels = u32::BITS - (size - 1).leading_zeros();
    // The lowest set bit of a virtual rank leads to its parent; all lower bits lead to children.
    let own = if vrank == 0 { levels } else { vrank.trailing_zeros() };
    let parent = (vrank != 0).then(|| recv(at(vrank ^ (1 << own)), bytes));
    let children = (0..own).rev().map(move |bit| vrank | (1 << bit)).filter(move |&child| child < size);
    Box::new(parent.into_iter().chain(children.map(move |child| send(at(child), bytes))))
}

#[cfg(test)]
mod tests {
    use pdes_core::Bytes;

    use super::*;
    use crate::collective::member::Elements;
    use crate::collective::{Answer, Steps as _};
    use crate::collective::{Layout, Selection};

    #[test]
    fn the_largest_subtree_is_served_first() {
        let (layout, selection) = (Layout::one_per_node(6), Selection::default());
        let one = Bytes::new(1);
        let args = Args { root: 1, data: Elements { count: 1, element_size: one } };
        let steps = |rank| {
            let mut schedule = binomial_tree(Member::new(rank, &layout, &selection), args);
            std::iter::from_fn(move || schedule.next_step(Answer::Nothing)).collect::<Vec<_>>()
        };
        // Virtual ranks 0..5 are ranks 1, 2, 3, 4, 5, 0; virtual rank 0 has the children 4, 2, 1.
        assert_eq!(steps(1), [send(5, one), send(3, one), send(2, one)]);
        assert_eq!(steps(5), [recv(1, one), send(0, one)]);
    }
}
