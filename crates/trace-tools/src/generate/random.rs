//! Counter-based pseudo-random numbers, which depend only on their arguments.

use pdes_core::{GOLDEN_GAMMA, mix};

/// Returns a hash of a seed and a position: the same on every machine, in any order of calls.
///
/// Each word passes through SplitMix64 ([`mix`]).
pub(super) fn hash(seed: u64, position: &[u64]) -> u64 {
    let mix = |word: u64| mix(word.wrapping_add(GOLDEN_GAMMA));
    position.iter().fold(mix(seed), |state, word| mix(state ^ mix(*word)))
}

/// Returns a number in `[0, 1)`, a multiple of 2^-53.
pub(super) fn fraction(seed: u64, position: &[u64]) -> f64 {
    (hash(seed, position) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a number in `0..bound`, uniform up to a bias of bound / 2^64.
pub(super) fn below(bound: u64, seed: u64, position: &[u64]) -> u64 {
    ((u128::from(hash(seed, position)) * u128::from(bound)) >> 64) as u64
}

/// A pseudo-random permutation of `0..size`, computed point by point in both directions.
///
/// A Feistel network permutes `0..n` for a power of four `n` that is at least as large. A point that leaves `0..size` is permuted
/// again until it is inside (cycle walking: Black, Rogaway: Ciphers with arbitrary finite domains, CT-RSA 2002). Cost: O(1) expected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    size: u32,
    key: u64,
    half: u32,
}

impl Permutation {
    const ROUNDS: u64 = 4;

    /// Makes the permutation of `0..size` with this key.
    pub(super) fn new(size: u32, key: u64) -> Self {
        Self { size, key, half: (33 - size.saturating_sub(1).leading_zeros()).div_ceil(2).max(1) }
    }

    /// Returns the image of `point`.
    pub(super) fn image(self, point: u32) -> u32 {
        self.walk(point, |word| (0..Self::ROUNDS).fold(word, |word, round| self.forward(word, round)))
    }

    /// Returns the preimage of `point`.
    pub(super) fn preimage(self, point: u32) -> u32 {
        self.walk(point, |word| (0..Self::ROUNDS).rev().fold(word, |word, round| self.backward(word, round)))
    }

    fn walk(self, point: u32, step: impl Fn(u64) -> u64) -> u32 {
        let mut word = step(u64::from(point));
        while word >= u64::from(self.size) {
            word = step(word);
        }
        word as u32
    }

    fn forward(self, word: u64, round: u64) -> u64 {
        let (left, right) = self.split(word);
        right << self.half | (left ^ self.key_stream(right, round))
    }

    fn backward(self, word: u64, round: u64) -> u64 {
        let (left, right) = self.split(word);
        (right ^ self.key_stream(left, round)) << self.half | left
    }

    fn split(self, word: u64) -> (u64, u64) {
        (word >> self.half, word & self.mask())
    }

    fn mask(self) -> u64 {
        (1 << self.half) - 1
    }

    fn key_stream(self, word: u64, round: u64) -> u64 {
        hash(self.key, &[round, word]) & self.mask()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_fixed_for_ever() {
        // The first output of SplitMix64 with seed 0, as its authors' program prints it.
        assert_eq!(hash(0, &[]), 0xe220_a839_7b1d_cdaf);
        assert!((0..1000).all(|i| (0.0..1.0).contains(&fraction(1, &[i]))));
        assert!((0..1000).all(|i| below(7, 1, &[i]) < 7));
    }

    #[test]
    fn every_small_permutation_is_one() {
        for size in 1..=70 {
            let permutation = Permutation::new(size, u64::from(size));
            let mut images: Vec<u32> = (0..size).map(|point| permutation.image(point)).collect();
            images.sort_unstable();
            assert!(images.into_iter().eq(0..size));
        }
    }

    proptest! {
        #[test]
        fn preimages_undo_images(size in 1_u32.., key: u64, point: u32) {
            let permutation = Permutation::new(size, key);
            let point = point % size;
            prop_assert_eq!(permutation.preimage(permutation.image(point)), point);
        }
    }
}
