//! Comparing the collective operations of ranks, however often loops repeat them.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::action::Action;
use crate::collective::Collective;
use crate::record::{COLLECTIVE, LOOP_BEGIN, LOOP_END, Record};
use crate::side::Side;
use crate::trace::RankTrace;

/// A prime, modulo which sequences are hashed.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u64 = 0x1d87_2b41_9a53_c0e7;

/// A sequence as a number: its elements are the digits to a base, modulo a prime. Sequences are appended by arithmetic,
/// so that a repetition costs the logarithm of its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    digits: u64,
    /// The base to the power of the length.
    power: u64,
}

impl Digest {
    const EMPTY: Self = Self { digits: 0, power: 1 };

    fn then(self, next: Self) -> Self {
        let product = |a: u64, b: u64| (u128::from(a) * u128::from(b) % PRIME) as u64;
        let digits = (u128::from(product(self.digits, next.power)) + u128::from(next.digits)) % PRIME;
        Self { digits: digits as u64, power: product(self.power, next.power) }
    }

    fn repeat(self, mut count: u64) -> Self {
        let (mut square, mut sum) = (self, Self::EMPTY);
        while count > 0 {
            if count % 2 == 1 {
                sum = sum.then(square);
            }
            square = square.then(square);
            count /= 2;
        }
        sum
    }
}

/// The collective operations of a rank.
#[derive(Debug)]
pub(super) struct Sequence {
    digest: Digest,
    /// What was before each open loop, and its count.
    outer: Vec<(Digest, u64)>,
}

impl Sequence {
    pub(super) fn new() -> Self {
        Self { digest: Digest::EMPTY, outer: Vec::new() }
    }

    /// Takes the next record.
    pub(super) fn push(&mut self, record: Record, side: &Side) {
        match record.kind() {
            LOOP_BEGIN => {
                self.outer.push((self.digest, record.amount()));
                self.digest = Digest::EMPTY;
            }
            LOOP_END => {
                if let Some((before, count)) = self.outer.pop() {
                    self.digest = before.then(self.digest.repeat(count));
                }
            }
            COLLECTIVE => {
                if let Some(collective) = side.collectives.get(record.index() as usize) {
                    let mut hasher = FxHasher::default();
                    Signature::of(collective).hash(&mut hasher);
                    let digits = (u128::from(hasher.finish()) % PRIME) as u64;
                    self.digest = self.digest.then(Digest { digits, power: BASE });
                }
            }
            _ => {}
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// What the ranks of an operation must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Signature {
    name: &'static str,
    root: Option<u32>,
    /// Bytes, where all ranks have the same.
    bytes: Option<u64>,
}

impl Signature {
    fn of(collective: &Collective) -> Self {
        let bytes = match collective {
            Collective::Bcast { count, datatype, .. }
            | Collective::Reduce { count, datatype, .. }
            | Collective::Allreduce { count, datatype, .. }
            | Collective::Scan { count, datatype, .. }
            | Collective::Exscan { count, datatype, .. } => Some(count * datatype.size().get()),
            _ => None,
        };
        Self { name: collective.name(), root: collective.root().map(|root| root.get()), bytes }
    }
}

/// Finds the first operation in which two ranks differ: its index and the names of both.
pub(super) fn first_difference(
    left: &RankTrace,
    right: &RankTrace,
) -> Option<(u64, Option<&'static str>, Option<&'static str>)> {
    let operations = |rank| signatures(rank);
    let (mut left, mut right) = (operations(left), operations(right));
    (0..).find_map(|index| match (left.next(), right.next()) {
        (None, None) => Some(None),
        (left, right) if left == right => None,
        (left, right) => Some(Some((index, left.map(|left| left.name), right.map(|right| right.name)))),
    })?
}

fn signatures(rank: &RankTrace) -> impl Iterator<Item = Signature> + '_ {
    rank.cursor().filter_map(|action| match action {
        Action::Collective(id) => Some(Signature::of(rank.collective(id))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_is_appending() {
        let element = |digits| Digest { digits, power: BASE };
        let once = element(5).then(element(7)).then(element(11));
        let thrice = once.then(once).then(once);
        assert_eq!(once.repeat(3), thrice);
        assert_eq!(once.repeat(0), Digest::EMPTY);
        assert_ne!(element(5).then(element(7)), element(7).then(element(5)));
    }
}
