//! Comparison of the collective operations of ranks, at a cost that does not depend on iteration counts but by a logarithm.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::action::Action;
use crate::call::Call;
use crate::collective::Collective;
use crate::communicator::CommIdx;
use crate::record::{CALL, COLLECTIVE, LOOP_BEGIN, LOOP_END, Record};
use crate::side_tables::SideTables;
use crate::trace::RankTrace;

/// The Mersenne prime modulo which sequences are hashed.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u64 = 0x1d87_2b41_9a53_c0e7;

/// Polynomial (Karp-Rabin) hash of a sequence: its elements are the digits of a number to a base, modulo a prime. Hashes are
/// concatenated by arithmetic, so that a repetition costs the logarithm of its count.
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

/// The collective operations of a rank on each of its communicators.
#[derive(Debug)]
pub(super) struct CollectiveSequence {
    digests: Vec<Digest>,
    /// Digests before each open loop, and its number of iterations.
    outer: Vec<(Vec<Digest>, u64)>,
}

impl CollectiveSequence {
    /// Creates the empty sequences of a rank with this number of communicators.
    pub(super) fn new(communicators: usize) -> Self {
        Self { digests: vec![Digest::EMPTY; communicators], outer: Vec::new() }
    }

    /// Adds the next record.
    pub(super) fn push(&mut self, record: Record, side: &SideTables) {
        match record.kind() {
            LOOP_BEGIN => {
                let empty = vec![Digest::EMPTY; self.digests.len()];
                self.outer.push((std::mem::replace(&mut self.digests, empty), record.amount()));
            }
            LOOP_END => {
                if let Some((before, count)) = self.outer.pop() {
                    let digests = self.digests.iter_mut().zip(before);
                    digests.for_each(|(digest, before)| *digest = before.then(digest.repeat(count)));
                }
            }
            COLLECTIVE => {
                let collective = side.collectives.get(record.index() as usize);
                self.add(collective.map(|collective| (CommIdx::WORLD, Signature::of(collective))));
            }
            CALL => {
                let call = side.calls.get(record.index() as usize);
                self.add(call.and_then(|call| Signature::of_call(call, side)));
            }
            _ => {}
        }
    }

    fn add(&mut self, operation: Option<(CommIdx, Signature)>) {
        let Some((communicator, signature)) = operation else { return };
        let Some(digest) = self.digests.get_mut(communicator.index()) else { return };
        let mut hasher = FxHasher::default();
        signature.hash(&mut hasher);
        let digits = (u128::from(hasher.finish()) % PRIME) as u64;
        *digest = digest.then(Digest { digits, power: BASE });
    }

    /// Returns whether the operations on a communicator equal those of another rank on its communicator `other_on`.
    pub(super) fn equals(&self, on: CommIdx, (other, other_on): (&Self, CommIdx)) -> bool {
        self.digests.get(on.index()) == other.digests.get(other_on.index())
    }
}

/// The properties of an operation on which its ranks must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Signature {
    name: &'static str,
    root: Option<u32>,
    /// Size [B], for operations in which all ranks must have the same.
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

    /// Returns communicator and signature of a collective call.
    fn of_call(call: &Call, side: &SideTables) -> Option<(CommIdx, Self)> {
        let named = |name| Self { name, root: None, bytes: None };
        match *call {
            Call::Collective { operation, communicator, slot } => {
                let operation = side.collective(operation)?;
                let signature = Self::of(operation);
                let name = slot.map_or(signature.name, |_| operation.nonblocking_name());
                Some((communicator, Self { name, ..signature }))
            }
            Call::NeighborAlltoall { communicator, .. } => Some((communicator, named(call.name()))),
            Call::NewCommunicator { kind, parent, new } => {
                Some((kind.collective_on(parent, new), named(call.name())))
            }
            Call::File { communicator, call: file, .. } if file.is_collective() => {
                Some((communicator, named(call.name())))
            }
            Call::SetView { communicator, .. } => Some((communicator, named(call.name()))),
            _ => None,
        }
    }
}

/// Finds the first operation in which two ranks differ on a communicator: its index and the names of both.
pub(super) fn first_difference(
    (left, left_on): (&RankTrace, CommIdx),
    (right, right_on): (&RankTrace, CommIdx),
) -> Option<(u64, Option<&'static str>, Option<&'static str>)> {
    let (mut left, mut right) = (signatures(left, left_on), signatures(right, right_on));
    (0..).find_map(|index| match (left.next(), right.next()) {
        (None, None) => Some(None),
        (left, right) if left == right => None,
        (left, right) => Some(Some((index, left.map(|left| left.name), right.map(|right| right.name)))),
    })?
}

fn signatures(rank: &RankTrace, on: CommIdx) -> impl Iterator<Item = Signature> + '_ {
    let operation = |action| match action {
        Action::Collective(id) => Some((CommIdx::WORLD, Signature::of(rank.collective(id)))),
        Action::Call(id) => Signature::of_call(rank.call(id), &rank.side_tables),
        _ => None,
    };
    rank.cursor().filter_map(operation).filter(move |(found, _)| *found == on).map(|(_, signature)| signature)
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
