//! FIFO queues as linked lists in one slab.
//!
//! A rank has one or two queues per peer, and most are empty most of the time. The items of all lie in one slab
//! per rank, in which the node of an item that leaves is reused by the next one, of whichever queue.

/// Index of no node.
const NONE: u32 = u32::MAX;
/// Largest capacity that an empty slab retains. Messages come in waves, and a worker runs one rank after the other, so that memory
/// which one rank releases serves the next.
const RETAINED_CAPACITY: usize = 32;
/// Least share of the nodes of a large slab that have items, in 1/n: fewer are moved to a small one. A rank that is always a little
/// behind its peers has items at all times, and would keep the memory of its largest wave.
const LEAST_SHARE: u32 = 16;
/// Largest length up to which a slab grows one by one, without spare capacity: there may be millions of slabs.
const EXACT_GROWTH_BELOW: usize = 8;

/// Items of several queues.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    nodes: Vec<Node<T>>,
    /// Head of the free list.
    free: u32,
    items: u32,
    /// Number of nodes when the memory was last released: the size of a wave.
    last_peak: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    item: T,
    /// Next node of the same queue, or of the free list.
    next: u32,
}

/// A circular list of items of a slab: the last one is followed by the first. All calls must name the same slab.
#[derive(Debug)]
pub(crate) struct Queue {
    last: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NONE, items: 0, last_peak: 0 }
    }
}

impl<T> Slab<T> {
    /// Returns whether no queue has an item.
    pub(crate) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Returns whether there are so few items that they should be [moved](Slab::compact) to less memory.
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        self.nodes.len() > 4 * RETAINED_CAPACITY && self.items <= self.nodes.len() as u32 / LEAST_SHARE
    }

    /// Returns the number of items for which there is memory.
    pub(crate) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }
}

impl<T: Copy> Slab<T> {
    /// Moves the items, those of all `queues`, to as little memory as they need; as large a wave is expected. O(queues + items).
    pub(crate) fn compact<'q>(&mut self, queues: impl Iterator<Item = &'q mut Queue>) {
        let nodes = Vec::with_capacity(self.items as usize);
        let mut compacted = Self { nodes, last_peak: self.nodes.len() as u32, ..Self::default() };
        for queue in queues {
            let items = std::mem::replace(queue, Queue::new());
            items.iter(self).for_each(|&item| queue.push(&mut compacted, item));
        }
        *self = compacted;
    }

    #[inline]
    fn insert(&mut self, item: T) -> u32 {
        self.items += 1;
        let node = Node { item, next: NONE };
        match self.nodes.get_mut(self.free as usize) {
            Some(free_node) => {
                let index = self.free;
                self.free = free_node.next;
                *free_node = node;
                index
            }
            None => {
                if self.nodes.len() == self.nodes.capacity() {
                    self.grow();
                }
                let index = self.nodes.len() as u32;
                self.nodes.push(node);
                index
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.nodes.len();
        let more = if len < EXACT_GROWTH_BELOW { 1 } else { len };
        // A second item may well be the start of another wave.
        let expected = if len == 0 { 0 } else { self.last_peak as usize };
        self.nodes.reserve_exact(more.max(expected.saturating_sub(len)));
        assert!(self.nodes.capacity() < NONE as usize, "fewer than 2^32 - 1 messages wait at a rank");
    }

    /// Removes an item; returns it and its successor.
    #[inline]
    fn remove(&mut self, index: u32) -> (T, u32) {
        let node = &mut self.nodes[index as usize];
        let (item, next) = (node.item, node.next);
        node.next = self.free;
        self.free = index;
        self.items -= 1;
        if self.items == 0 && self.nodes.len() > RETAINED_CAPACITY {
            self.release_memory();
        }
        (item, next)
    }

    #[cold]
    fn release_memory(&mut self) {
        let expected = self.nodes.len() as u32;
        *self = Self { last_peak: expected, ..Self::default() };
    }
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { last: NONE }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last == NONE
    }

    #[inline]
    pub(crate) fn push<T: Copy>(&mut self, slab: &mut Slab<T>, item: T) {
        let index = slab.insert(item);
        let first = match slab.nodes.get_mut(self.last as usize) {
            Some(last) => std::mem::replace(&mut last.next, index),
            None => index,
        };
        slab.nodes[index as usize].next = first;
        self.last = index;
    }

    pub(crate) fn iter<'s, T>(&self, slab: &'s Slab<T>) -> impl Iterator<Item = &'s T> + use<'s, T> {
        let last = self.last;
        let index = slab.nodes.get(last as usize).map(|node| node.next);
        let places = std::iter::successors(index, move |&index| {
            (index != last).then(|| slab.nodes[index as usize].next)
        });
        places.map(|index| &slab.nodes[index as usize].item)
    }

    /// Applies `change` to all items, in their order.
    pub(crate) fn for_each<T>(&self, slab: &mut Slab<T>, mut change: impl FnMut(&mut T)) {
        let mut index = self.last;
        while let Some(node) = slab.nodes.get(index as usize) {
            index = node.next;
            change(&mut slab.nodes[index as usize].item);
            if index == self.last {
                break;
            }
        }
    }

    /// Removes and returns the first item that `accepts`. O(1) where that is the head, O(n) otherwise.
    #[inline(always)]
    pub(crate) fn take_first<T: Copy>(
        &mut self,
        slab: &mut Slab<T>,
        accepts: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let first = slab.nodes.get(self.last as usize)?.next;
        if !accepts(&slab.nodes[first as usize].item) {
            return self.take_later(slab, first, accepts);
        }
        let (item, next) = slab.remove(first);
        if first == self.last {
            self.last = NONE;
        } else {
            slab.nodes[self.last as usize].next = next;
        }
        Some(item)
    }

    /// Removes and returns the first item after the head that `accepts`.
    #[cold]
    fn take_later<T: Copy>(
        &mut self,
        slab: &mut Slab<T>,
        first: u32,
        accepts: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let mut before = first;
        while before != self.last {
            let index = slab.nodes[before as usize].next;
            if accepts(&slab.nodes[index as usize].item) {
                let (item, next) = slab.remove(index);
                slab.nodes[before as usize].next = next;
                if self.last == index {
                    self.last = before;
                }
                return Some(item);
            }
            before = index;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u32),
        /// Takes the first item that is a multiple of the number.
        Take(u32),
    }

    fn step() -> impl proptest::strategy::Strategy<Value = (usize, Step)> {
        use proptest::prelude::*;
        (
            0..3_usize,
            prop_oneof![3 => any::<u32>().prop_map(Step::Push), 2 => (1..4_u32).prop_map(Step::Take)],
        )
    }

    proptest::proptest! {
        #[test]
        fn queues_of_a_slab_are_queues(steps in proptest::collection::vec(step(), 0..1000)) {
            let mut slab = Slab::default();
            let mut queues = [const { Queue::new() }; 3];
            let mut models = [const { VecDeque::new() }; 3];
            let emptying = (0..3).flat_map(|queue| std::iter::repeat_n((queue, Step::Take(1)), 1000));
            for (at, step) in steps.into_iter().chain(emptying) {
                let (queue, model) = (&mut queues[at], &mut models[at]);
                match step {
                    Step::Push(item) => {
                        queue.push(&mut slab, item);
                        model.push_back(item);
                    }
                    Step::Take(factor) => {
                        let index = model.iter().position(|item| item % factor == 0);
                        let expected = index.and_then(|index| model.remove(index));
                        proptest::prop_assert_eq!(queue.take_first(&mut slab, |item| item % factor == 0), expected);
                    }
                }
                if slab.is_sparse() {
                    let items = slab.items;
                    slab.compact(queues.iter_mut());
                    proptest::prop_assert_eq!((slab.items, slab.nodes.len()), (items, items as usize));
                }
                let (queue, model) = (&queues[at], &models[at]);
                proptest::prop_assert!(queue.iter(&slab).eq(model.iter()));
                proptest::prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
            proptest::prop_assert_eq!(slab.items, 0);
            proptest::prop_assert!(slab.nodes.capacity() <= RETAINED_CAPACITY);
        }
    }
}
