//! Tournament tree: buckets of a few hosts.

use std::ops::Range;

use super::bucket_queue::BucketQueue;
use crate::parameters::TIME_LIMIT;

/// The next turns of a few hosts, at most one each, in a tournament tree: each node is the earliest of the four below
/// it (tree selection: Knuth, The Art of Computer Programming 3, 5.2.3). O(log n) per change, with few branches.
#[derive(Debug)]
pub(super) struct TournamentTree {
    first_host: u32,
    /// Index of the first leaf: 0, 4 or 20 for up to 4, 16 or 64 hosts.
    first_leaf: usize,
    /// Turns in groups of four: those below the root, those below each of these, and so on. A turn is its bucket, and
    /// in the low bits the number of its host; [`NEVER`] is none.
    nodes: Box<[[u64; 4]; GROUPS]>,
    earliest: u64,
}

/// Largest number of hosts; small in debug builds, so that tests have more.
const MAX_HOSTS: usize = if cfg!(debug_assertions) { 4 } else { 64 };
const GROUPS: usize = 32;
const NEVER: u64 = u64::MAX;

/// Number of bits of a host's number, and log2 of the bucket width \[ps\], such that every turn is less than [`NEVER`].
const HOST_BITS: u32 = 6;
const BUCKET_BITS: u32 = (TIME_LIMIT.ilog2() + HOST_BITS + 1).saturating_sub(u64::BITS);

impl TournamentTree {
    /// Returns true if the tree has room for `hosts` hosts and a window may be as long as a bucket.
    pub(super) fn fits(hosts: usize, flight: u64) -> bool {
        hosts <= MAX_HOSTS && flight >> BUCKET_BITS > 0
    }

    #[inline]
    fn set_turn(&mut self, number: u32, mut turn: u64) {
        let mut at = self.first_leaf + number as usize;
        loop {
            let group = &mut self.nodes[at / 4 % GROUPS];
            group[at % 4] = turn;
            turn = group[0].min(group[1]).min(group[2].min(group[3]));
            if at < 4 {
                break;
            }
            at = at / 4 - 1;
        }
        self.earliest = turn;
    }

    /// Returns the host of the earliest turn.
    #[inline]
    fn earliest_host(&self) -> u32 {
        self.first_host + (self.earliest % (1 << HOST_BITS)) as u32
    }
}

impl BucketQueue for TournamentTree {
    fn new(hosts: &Range<u32>) -> Self {
        let leaves = match hosts.len() {
            ..=4 => 0,
            5..=16 => 4,
            _ => 20,
        };
        Self {
            first_host: hosts.start,
            first_leaf: leaves,
            nodes: Box::new([[NEVER; 4]; GROUPS]),
            earliest: NEVER,
        }
    }

    fn bucket_width_log2(_: u64) -> u32 {
        BUCKET_BITS
    }

    #[inline]
    fn schedule(&mut self, bucket: u64, host: u32) {
        let number = host - self.first_host;
        self.set_turn(number, bucket << HOST_BITS | u64::from(number));
    }

    fn remove(&mut self, host: u32) {
        self.set_turn(host - self.first_host, NEVER);
    }

    #[inline]
    fn next_bucket(&self) -> Option<u64> {
        (self.earliest != NEVER).then_some(self.earliest >> HOST_BITS)
    }

    #[inline]
    fn next_host(&self) -> Option<u32> {
        Some(self.earliest_host())
    }

    fn pop_bucket(&mut self, _: u64, hosts: &mut Vec<u32>) {
        hosts.push(self.earliest_host());
        self.remove(self.earliest_host());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::bucket_queue::BucketQueue;
    use super::TournamentTree;

    proptest! {
        /// The next turn is the earliest one scheduled, whatever was scheduled before.
        #[test]
        fn the_earliest_turn_is_next(
            first in 0_u32..1000,
            hosts in 1_u32..=64,
            plans in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(0_u64..20)), 1..200),
        ) {
            let mut tournament = TournamentTree::new(&(first..first + hosts));
            let mut planned = vec![None; hosts as usize];
            for (host, bucket) in plans {
                let host = host.index(planned.len());
                planned[host] = bucket;
                match bucket {
                    Some(bucket) => tournament.schedule(bucket, first + host as u32),
                    None => tournament.remove(first + host as u32),
                }
                prop_assert_eq!(tournament.next_bucket(), planned.iter().copied().flatten().min());
            }
            while let Some(bucket) = tournament.next_bucket() {
                let mut visited = Vec::new();
                tournament.pop_bucket(bucket, &mut visited);
                for host in visited {
                    prop_assert_eq!(planned[(host - first) as usize].take(), Some(bucket));
                }
            }
            prop_assert!(planned.iter().all(Option::is_none));
        }
    }
}
