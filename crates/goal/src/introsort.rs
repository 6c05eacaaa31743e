//! GCC's `std::sort`, which decides the order of operations that become ready at the same time.
//!
//! LogGOPSim sorts such operations by kind with `std::sort` of C++, which is not stable: if more than 16 operations
//! become ready at once, the order of the sends depends on the library. GCC's library, with which LogGOPSim is built on
//! Linux, runs an introsort (Musser, Software: Practice and Experience 27(8), 1997): quicksort with the median of the
//! second, middle and last element as pivot down to runs of 16, heapsort below a depth of 2 log2 n, insertion sort at
//! the end. The same steps on the same input give the same order, and so the same simulated times.

/// An element with a sort key: an operation, sorted by its kind.
pub(crate) trait Keyed: Copy {
    /// Returns the key.
    fn key(&self) -> u8;
}

/// Longest run that is left to the insertion sort.
const INSERTION_SORT_MAX: usize = 16;

/// Sorts by key; equal keys end up in the order of GCC's introsort. O(n log n).
pub(crate) fn sort<T: Keyed>(items: &mut [T]) {
    if items.len() > INSERTION_SORT_MAX {
        let depth = 2 * items.len().ilog2();
        introsort_loop(items, 0, items.len(), depth);
        insertion_sort(&mut items[..INSERTION_SORT_MAX]);
        for at in INSERTION_SORT_MAX..items.len() {
            insert(items, at);
        }
    } else {
        insertion_sort(items);
    }
}

/// Quicksorts until all runs are short; recurses into the right part and loops on the left one.
fn introsort_loop<T: Keyed>(items: &mut [T], first: usize, mut last: usize, mut depth: u32) {
    while last - first > INSERTION_SORT_MAX {
        if depth == 0 {
            return heapsort(&mut items[first..last]);
        }
        depth -= 1;
        let cut = partition(items, first, last);
        introsort_loop(items, cut, last, depth);
        last = cut;
    }
}

/// Moves the pivot to the front and partitions the rest around it; returns the start of the second part.
fn partition<T: Keyed>(items: &mut [T], first: usize, last: usize) -> usize {
    let pivot = median(items, first + 1, first + (last - first) / 2, last - 1);
    items.swap(first, pivot);
    let key = items[first].key();
    let (mut low, mut high) = (first + 1, last);
    loop {
        while items[low].key() < key {
            low += 1;
        }
        high -= 1;
        while key < items[high].key() {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
    }
}

/// Returns the index of the element with the middle key; among equal keys, the choice is that of the library.
fn median<T: Keyed>(items: &[T], one: usize, two: usize, three: usize) -> usize {
    let [a, b, c] = [items[one].key(), items[two].key(), items[three].key()];
    if a < b {
        if b < c {
            two
        } else if a < c {
            three
        } else {
            one
        }
    } else if a < c {
        one
    } else if b < c {
        three
    } else {
        two
    }
}

fn insertion_sort<T: Keyed>(items: &mut [T]) {
    for at in 1..items.len() {
        insert(items, at);
    }
}

/// Moves an element down, behind those before it that are not larger.
fn insert<T: Keyed>(items: &mut [T], at: usize) {
    let item = items[at];
    let mut to = at;
    while to > 0 && item.key() < items[to - 1].key() {
        items[to] = items[to - 1];
        to -= 1;
    }
    items[to] = item;
}

fn heapsort<T: Keyed>(items: &mut [T]) {
    for parent in (0..items.len() / 2).rev() {
        let item = items[parent];
        sift_down(items, parent, item);
    }
    for last in (1..items.len()).rev() {
        let item = items[last];
        items[last] = items[0];
        sift_down(&mut items[..last], 0, item);
    }
}

/// Fills the hole at `top` with larger children down to a leaf, then sifts `item` up from there.
fn sift_down<T: Keyed>(heap: &mut [T], top: usize, item: T) {
    let mut hole = top;
    loop {
        let right = 2 * hole + 2;
        if right > heap.len() {
            break;
        }
        let larger =
            if right == heap.len() || heap[right].key() < heap[right - 1].key() { right - 1 } else { right };
        heap[hole] = heap[larger];
        hole = larger;
    }
    while hole > top && heap[(hole - 1) / 2].key() < item.key() {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

#[cfg(test)]
mod tests {
    use super::{Keyed, sort};

    #[derive(Clone, Copy)]
    struct Item(u8, u64);

    impl Keyed for Item {
        fn key(&self) -> u8 {
            self.0
        }
    }

    /// Sorts items with keys from a linear congruential generator and hashes (FNV-1a) their order.
    fn order(len: u64, kinds: u32) -> u64 {
        let mut state = len as u32 * 31 + kinds;
        let mut items: Vec<_> = (0..len)
            .map(|number| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                Item((state >> 16).rem_euclid(kinds) as u8 + 1, number)
            })
            .collect();
        sort(&mut items);
        assert!(items.is_sorted_by_key(Keyed::key));
        items
            .iter()
            .fold(1_469_598_103_934_665_603, |hash, item| (hash ^ item.1).wrapping_mul(1_099_511_628_211))
    }

    #[test]
    fn equal_keys_match_gcc() {
        let mut equal: Vec<_> = (0..17).map(|number| Item(1, number)).collect();
        sort(&mut equal);
        let order: Vec<_> = equal.iter().map(|item| item.1).collect();
        assert_eq!(order, [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1]);
    }

    /// Computed with `std::sort` of GCC 12.
    #[test]
    fn all_lengths_match_gcc() {
        let expected = [
            (16, 1, 0x088b_84ce_5271_b343),
            (16, 2, 0x3cc6_8031_da8a_7dfd),
            (16, 3, 0xab72_5b16_8964_0605),
            (17, 1, 0xa881_bacc_8cda_3069),
            (17, 2, 0x422c_b515_0df8_48dd),
            (17, 3, 0xd55c_2a14_3807_c315),
            (40, 1, 0xf1d4_7446_8063_cefb),
            (40, 2, 0xb77d_e603_4845_3b51),
            (40, 3, 0x97d8_6180_f56e_4d6f),
            (64, 1, 0xc6f9_718e_9c2e_a283),
            (64, 2, 0xa6ce_e977_0ae5_4d4b),
            (64, 3, 0x8034_838f_7bc2_4e51),
            (100, 1, 0x14bd_5878_0968_b56b),
            (100, 2, 0x0d29_d387_f8f6_80d9),
            (100, 3, 0x93a1_bd67_6b72_6289),
            (1000, 1, 0xa865_6c3b_d974_24bb),
            (1000, 2, 0x789c_4d5e_cc99_8945),
            (1000, 3, 0x74d9_ac80_5832_0a6b),
            (5000, 1, 0x6d6a_091b_682a_8ccb),
            (5000, 2, 0x1e71_8589_dd1d_3831),
            (5000, 3, 0xdd81_b496_6f12_fd8f),
        ];
        for (len, kinds, hash) in expected {
            assert_eq!(order(len, kinds), hash, "{len} items of {kinds} kinds");
        }
    }
}
