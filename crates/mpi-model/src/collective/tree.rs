//! Trees of members.

use super::Member;

/// Neighbours of one member in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) parent: Option<u32>,
    pub(super) children: Vec<u32>,
}

/// Largest number of children of a member in Open MPI's trees.
const MAX_CHILDREN: u32 = 32;

/// Returns the virtual rank of a member, with the root at 0, and the map from virtual ranks back to ranks.
fn virtual_ranks(member: Member<'_>, root: u32) -> (u32, impl Fn(u32) -> u32) {
    let size = u64::from(member.size);
    let at = move |vrank: u32| ((u64::from(vrank) + u64::from(root)) % size) as u32;
    ((member.rank + member.size - root) % member.size, at)
}

/// Returns chains of equal length, or nearly so, all of which begin at the root.
///
/// Source: Open MPI's `topo_build_chain`.
pub(super) fn chains(member: Member<'_>, root: u32, fanout: u32) -> Tree {
    let (vrank, at) = virtual_ranks(member, root);
    let others = member.size - 1;
    let chains = fanout.clamp(1, MAX_CHILDREN).min(others);
    if chains == 0 {
        return Tree::default();
    }
    // The first `long` chains have one member more than the others.
    let (length, long) = (others / chains, others % chains);
    let head = |chain: u32| 1 + chain * length + chain.min(long);
    if vrank == 0 {
        return Tree { parent: None, children: (0..chains).map(|chain| at(head(chain))).collect() };
    }
    let of_long = long * (length + 1);
    let chain =
        if vrank <= of_long { (vrank - 1) / (length + 1) } else { long + (vrank - 1 - of_long) / length };
    let parent = if vrank == head(chain) { 0 } else { vrank - 1 };
    let children = if vrank + 1 == head(chain + 1) { Vec::new() } else { vec![at(vrank + 1)] };
    Tree { parent: Some(at(parent)), children }
}

/// Returns a binary tree, level by level: the children of a virtual rank on a level of `n` members are `n` and `2 n`
/// further.
///
/// Source: Open MPI's `topo_build_tree` with fanout 2.
pub(super) fn binary(member: Member<'_>, root: u32) -> Tree {
    let (vrank, at) = virtual_ranks(member, root);
    let level = (vrank + 1).ilog2();
    let width = 1_u32 << level;
    let children = [1, 2].map(|side| u64::from(vrank) + u64::from(width) * side);
    let children =
        children.into_iter().filter(|&child| child < u64::from(member.size)).map(|child| at(child as u32));
    // The levels above hold virtual ranks 0 to width - 2.
    let above = |vrank: u32| {
        let steps = (vrank + 1 - (width - 1)).div_ceil(width / 2);
        vrank - steps * (width / 2)
    };
    let parent = (vrank > 0).then(|| at(if vrank < 2 { 0 } else { above(vrank) }));
    Tree { parent, children: children.collect() }
}

/// Returns the binomial tree in which each member's children follow it, nearest first.
///
/// Source: Open MPI's `topo_build_in_order_bmtree`.
pub(super) fn binomial(member: Member<'_>, root: u32) -> Tree {
    let (vrank, at) = virtual_ranks(member, root);
    let levels = u32::BITS - (member.size - 1).leading_zeros();
    let own = if vrank == 0 { levels } else { vrank.trailing_zeros() };
    let children = (0..own).map(|bit| vrank | 1 << bit).filter(|&child| child < member.size);
    Tree { parent: (vrank > 0).then(|| at(vrank & (vrank - 1))), children: children.map(&at).collect() }
}

/// Returns the number of members in the subtree of a member of the [`binomial`] tree, itself included.
pub(super) fn binomial_weight(member: Member<'_>, root: u32, rank: u32) -> u64 {
    match (rank + member.size - root) % member.size {
        0 => u64::from(member.size),
        vrank => u64::from((1 << vrank.trailing_zeros()).min(member.size - vrank)),
    }
}

/// Returns the binary tree whose root is the last member and whose in-order walk visits members in rank order: the left
/// subtree of a member is just before it, the right one before that.
///
/// Source: Open MPI's `topo_build_in_order_bintree`.
pub(super) fn in_order_binary(member: Member<'_>) -> Tree {
    // The subtree in question holds `first..first + size`, and its root is the last of these.
    let (mut first, mut size, mut parent) = (0, member.size, None);
    loop {
        let root = first + size - 1;
        let right = size / 2;
        if member.rank == root {
            let left = (size > 1).then(|| root - 1);
            let right = (size > 2).then(|| first + right - 1);
            return Tree { parent, children: left.into_iter().chain(right).collect() };
        }
        parent = Some(root);
        if member.rank >= first + right {
            (first, size) = (first + right, size - right - 1);
        } else {
            size = right;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Layout, Selection};

    /// Checks that parents and children agree, and that every member is below the root.
    fn check(size: u32, root: u32, tree: impl Fn(Member<'_>) -> Tree) {
        let (layout, selection) = (Layout::one_per_node(size), Selection::default());
        let trees: Vec<Tree> = (0..size).map(|rank| tree(Member::new(rank, &layout, &selection))).collect();
        assert_eq!(trees[root as usize].parent, None);
        assert_eq!(trees.iter().map(|tree| tree.children.len()).sum::<usize>() as u32, size - 1);
        for (rank, tree) in (0..size).zip(&trees) {
            assert!(
                tree.children.iter().all(|&child| trees[child as usize].parent == Some(rank)),
                "{trees:?}"
            );
            let mut above = rank;
            (0..size).for_each(|_| above = trees[above as usize].parent.unwrap_or(above));
            assert_eq!(above, root);
        }
    }

    #[test]
    fn trees_are_trees() {
        for size in 1..70 {
            for root in [0, size / 2, size - 1] {
                for fanout in [0, 1, 2, 3, size / 2, 40] {
                    check(size, root, |member| chains(member, root, fanout));
                }
                check(size, root, |member| binary(member, root));
                check(size, root, |member| binomial(member, root));
            }
            check(size, size - 1, in_order_binary);
        }
    }
}
