//! Nodes as policies plan with them: by name, or by number.

use crate::NodeSet;

/// A part of a machine: a set of nodes, or how many.
pub(super) trait Pool: Send + Clone + PartialEq {
    /// Makes the pool of some nodes.
    fn of(nodes: &NodeSet) -> Self;

    /// Returns the number of nodes.
    fn len(&self) -> u32;

    /// Keeps the part that is also in another pool, for pools that are free at different instants.
    fn intersect(&mut self, other: &Self);

    /// Removes a part.
    fn remove(&mut self, part: &Self);

    /// Adds a part that is not in the pool.
    fn insert(&mut self, part: &Self);

    /// Returns the part of `count` nodes that a job is given, or `None` if there are fewer.
    fn lowest(&self, count: u32) -> Option<Self>;

    /// Returns the nodes of this pool among those that are free.
    fn nodes(&self, free: &NodeSet) -> NodeSet;
}

impl Pool for NodeSet {
    fn of(nodes: &NodeSet) -> Self {
        nodes.clone()
    }

    fn len(&self) -> u32 {
        self.len()
    }

    fn intersect(&mut self, other: &Self) {
        self.intersect(other);
    }

    fn remove(&mut self, part: &Self) {
        self.remove(part);
    }

    fn insert(&mut self, part: &Self) {
        self.insert(part);
    }

    fn lowest(&self, count: u32) -> Option<Self> {
        self.lowest(count)
    }

    fn nodes(&self, _: &NodeSet) -> NodeSet {
        self.clone()
    }
}

/// A number of nodes, whichever they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count(u32);

impl Pool for Count {
    fn of(nodes: &NodeSet) -> Self {
        Self(nodes.len())
    }

    fn len(&self) -> u32 {
        self.0
    }

    fn intersect(&mut self, other: &Self) {
        self.0 = self.0.min(other.0);
    }

    fn remove(&mut self, part: &Self) {
        self.0 -= part.0;
    }

    fn insert(&mut self, part: &Self) {
        self.0 += part.0;
    }

    fn lowest(&self, count: u32) -> Option<Self> {
        (count <= self.0).then_some(Self(count))
    }

    fn nodes(&self, free: &NodeSet) -> NodeSet {
        free.lowest(self.0).expect("as many nodes are free as the plan counts")
    }
}
