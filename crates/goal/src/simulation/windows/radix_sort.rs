//! Radix sort of pairs of a key and a number.

/// Number of pairs below which they are sorted by comparison.
const COMPARISON_SORT_LEN: usize = 64;

/// Number of bits that one pass sorts by.
const DIGIT_BITS: u32 = 8;

/// Sorts pairs by key: few by comparison (unstable), many by least-significant-digit radix sort. Digits are chosen
/// among the bits in which keys differ. O(n) per digit.
pub(super) fn sort(pairs: &mut [(u64, u32)], scratch: &mut Vec<(u64, u32)>) {
    if pairs.len() < COMPARISON_SORT_LEN {
        return pairs.sort_unstable_by_key(|pair| pair.0);
    }
    let Some(&(some, _)) = pairs.first() else { return };
    let mut differing = pairs.iter().fold(0, |bits, pair| bits | (pair.0 ^ some));
    scratch.clear();
    scratch.resize(pairs.len(), (0, 0));
    let mut is_in_scratch = false;
    while differing != 0 {
        let shift = differing.trailing_zeros();
        differing &= !(((1 << DIGIT_BITS) - 1) << shift);
        let (from, to): (&[_], &mut [_]) = if is_in_scratch { (scratch, pairs) } else { (pairs, scratch) };
        distribute(from, to, shift);
        is_in_scratch = !is_in_scratch;
    }
    if is_in_scratch {
        pairs.copy_from_slice(scratch);
    }
}

/// Copies pairs in the order of one digit of their keys, stably (counting sort).
fn distribute(from: &[(u64, u32)], to: &mut [(u64, u32)], shift: u32) {
    let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT_BITS) - 1);
    let mut offsets = [0_u32; 1 << DIGIT_BITS];
    from.iter().for_each(|pair| offsets[digit(pair.0)] += 1);
    let mut sum = 0;
    for offset in &mut offsets {
        sum += std::mem::replace(offset, sum);
    }
    for pair in from {
        let offset = &mut offsets[digit(pair.0)];
        to[*offset as usize] = *pair;
        *offset += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort;

    proptest! {
        #[test]
        fn pairs_are_sorted_by_key(keys in prop::collection::vec(prop_oneof![any::<u64>(), 0..9_u64, 4_000_000..4_100_000_u64], 0..300)) {
            let mut pairs: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            sort(&mut pairs, &mut Vec::new());
            prop_assert!(pairs.is_sorted_by_key(|pair| pair.0));
            pairs.sort_unstable();
            prop_assert_eq!(pairs, expected);
        }
    }
}
