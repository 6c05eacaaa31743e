//! Sets of nodes.

use std::fmt;

/// Number of nodes in a word.
const BITS: u32 = u64::BITS;

/// A set of nodes of a machine, one bit each. Sets that are combined are of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSet(Vec<u64>);

impl NodeSet {
    /// Returns the set of all nodes of a machine, `0..count`.
    pub fn all(count: u32) -> Self {
        let word = |index| match count - index * BITS {
            rest if rest < BITS => (1_u64 << rest) - 1,
            _ => u64::MAX,
        };
        Self((0..count.div_ceil(BITS)).map(word).collect())
    }

    /// Returns the number of nodes in the set. Takes time by the size of the machine, as all methods.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns whether no node is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Keeps the nodes that are also in another set.
    pub fn intersect(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    /// Removes the nodes of another set.
    pub fn remove(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= !other);
    }

    /// Adds the nodes of another set.
    pub fn insert(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// Yields the nodes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges().flat_map(|(first, last)| first..=last)
    }

    /// Returns the set of the lowest `count` nodes, or `None` if there are fewer.
    pub fn lowest(&self, count: u32) -> Option<Self> {
        let mut missing = count;
        let take = |&word: &u64| {
            let mut kept = word;
            while kept.count_ones() > missing {
                kept &= !(1 << (BITS - 1 - kept.leading_zeros()));
            }
            missing -= kept.count_ones();
            kept
        };
        let lowest = self.0.iter().map(take).collect();
        (missing == 0).then_some(Self(lowest))
    }

    /// Yields the runs of consecutive nodes, each as its first and its last node, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let end = self.0.len() as u32 * BITS;
        let contains = |node: u32| self.0[(node / BITS) as usize] >> (node % BITS) & 1 == 1;
        let mut next = 0;
        std::iter::from_fn(move || {
            let first = (next..end).find(|&node| contains(node))?;
            next = (first..end).find(|&node| !contains(node)).unwrap_or(end);
            Some((first, next - 1))
        })
    }
}

/// Displays nodes and ranges of nodes, such as `0 4-6`.
impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            match first == last {
                true => write!(f, "{gap}{first}")?,
                false => write!(f, "{gap}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_nodes_are_taken_over_words() {
        let mut free = NodeSet::all(130);
        assert_eq!((free.len(), free.to_string()), (130, "0-129".to_owned()));
        let low = free.lowest(63).unwrap();
        free.remove(&low);
        let next = free.lowest(3).unwrap();
        assert_eq!((low.to_string(), next.to_string()), ("0-62".to_owned(), "63-65".to_owned()));
        free.remove(&next);
        free.insert(&low.lowest(2).unwrap());
        assert_eq!(free.to_string(), "0-1 66-129");
        assert_eq!(free.lowest(67), None);
    }
}
