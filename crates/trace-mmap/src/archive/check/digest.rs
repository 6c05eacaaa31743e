//! Hashes of sequences that are concatenated by arithmetic.

use super::loops::Summary;

/// The Mersenne prime modulo which sequences are hashed.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x1d87_2b41_9a53_c0e7;

/// Polynomial (Karp-Rabin) hash of a sequence: its elements are the digits of a number to a base, modulo a prime, so that a repetition
/// costs the logarithm of its count. It is linear: the hash of a sum of sequences of one length is the sum of their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    digits: u64,
    /// The base to the power of the length.
    power: u64,
}

impl Digest {
    pub(super) const EMPTY: Self = Self { digits: 0, power: 1 };

    /// Makes the hash of one element.
    pub(super) fn of(element: u64) -> Self {
        Self { digits: reduce(element.into()), power: BASE }
    }

    /// Returns the hash of the sum of this sequence and another one, or of their difference.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { digits: reduce(u128::from(self.digits) + u128::from(other.digits)), ..self }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { digits: reduce(u128::from(self.digits) + u128::from(PRIME - other.digits)), ..self }
    }

    /// Returns whether all elements are 0.
    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }
}

impl Summary for Digest {
    fn then(&self, next: &Self) -> Self {
        let product = |a: u64, b: u64| reduce(u128::from(a) * u128::from(b));
        let digits = u128::from(product(self.digits, next.power)) + u128::from(next.digits);
        Self { digits: reduce(digits), power: product(self.power, next.power) }
    }
}

/// Returns the rest of a number below 2^122 modulo the prime.
fn reduce(number: u128) -> u64 {
    let sum = (number & u128::from(PRIME)) as u64 + (number >> 61) as u64;
    let sum = (sum & PRIME) + (sum >> 61);
    if sum >= PRIME { sum - PRIME } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_is_appending() {
        let once = Digest::of(5).then(&Digest::of(7)).then(&Digest::of(u64::MAX));
        let thrice = once.then(&once).then(&once);
        assert_eq!(once.repeat(3), thrice);
        assert_ne!(Digest::of(5).then(&Digest::of(7)), Digest::of(7).then(&Digest::of(5)));
    }

    #[test]
    fn the_hash_of_a_sum_is_the_sum_of_the_hashes() {
        let [one, other, sum] = [[5, 7], [11, 13], [16, 20]].map(|[a, b]| Digest::of(a).then(&Digest::of(b)));
        assert_eq!(one.plus(other), sum);
        assert!(sum.minus(other).minus(one).is_zero());
        assert_eq!(reduce(u128::from(PRIME) * 7 + 3), 3);
    }
}
