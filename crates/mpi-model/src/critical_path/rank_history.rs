//! History of the ranks of a critical path, in bounded memory.

use pdes_core::{Rank, SimTime};
use serde::{Deserialize, Serialize};

/// Number of bins.
const BINS: usize = 128;
/// Placeholder in bins that have not ended.
const NO_RANK: Rank = Rank::new(0);

/// Rank of a path at the end of each bin of simulated time.
///
/// Bins are `2^scale` picoseconds long. When they are used up, pairs are merged into bins of twice the length, which keep the rank
/// of the later one: the ranks at all multiples of the bin length are exact, whatever the order of merges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "EncodedHistory", try_from = "EncodedHistory")]
pub(super) struct RankHistory {
    scale: u32,
    /// Number of bins that have ended.
    ended_bins: u32,
    /// End of the first bin that has not ended \[ps\].
    bin_end: u64,
    ranks: [Rank; BINS],
}

/// A time during which a critical path is on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its beginning.
    pub from: SimTime,
    /// Its end.
    pub to: SimTime,
    /// The rank.
    pub rank: Rank,
}

impl Default for RankHistory {
    fn default() -> Self {
        Self { scale: 0, ended_bins: 0, bin_end: 1, ranks: [NO_RANK; BINS] }
    }
}

impl RankHistory {
    /// Returns the end of the first bin that has not ended.
    pub(super) fn bin_end(&self) -> SimTime {
        SimTime::from_picos(self.bin_end)
    }

    /// Advances the path, which is on `rank`, to `now`.
    pub(super) fn advance(&mut self, now: SimTime, rank: Rank) {
        let now = now.as_picos();
        while now >> self.scale > BINS as u64 {
            self.halve();
        }
        let ended = (now >> self.scale) as usize;
        self.ranks[self.ended_bins as usize..ended].fill(rank);
        self.ended_bins = ended as u32;
        self.update_bin_end();
    }

    fn halve(&mut self) {
        self.ended_bins /= 2;
        for bin in 0..self.ended_bins as usize {
            self.ranks[bin] = self.ranks[2 * bin + 1];
        }
        self.ranks[self.ended_bins as usize..].fill(NO_RANK);
        self.scale += 1;
    }

    /// The last representable instant ends no bin.
    fn update_bin_end(&mut self) {
        let next = u128::from(self.ended_bins + 1) << self.scale;
        self.bin_end = u64::try_from(next).unwrap_or(u64::MAX);
    }

    /// Returns all segments up to the end of the path, which is on `rank` there. Adjacent segments of one rank are merged.
    pub(super) fn segments(&self, end: SimTime, rank: Rank) -> Vec<Segment> {
        let ended = self.ranks[..self.ended_bins as usize].iter().copied().zip(1_u64..);
        let ends = ended.map(|(rank, number)| (SimTime::from_picos(number << self.scale), rank));
        let mut segments: Vec<Segment> = Vec::new();
        let mut from = SimTime::ZERO;
        for (to, rank) in ends.chain([(end, rank)]).filter(|&(to, _)| to > SimTime::ZERO) {
            match segments.last_mut() {
                Some(last) if last.rank == rank => last.to = to,
                _ if to > from => segments.push(Segment { from, to, rank }),
                _ => {}
            }
            from = to;
        }
        segments
    }
}

/// The logarithm of the bin length, and the ranks of the bins that have ended.
type EncodedHistory = (u32, Vec<Rank>);

impl From<RankHistory> for EncodedHistory {
    fn from(history: RankHistory) -> Self {
        (history.scale, history.ranks[..history.ended_bins as usize].to_vec())
    }
}

impl TryFrom<EncodedHistory> for RankHistory {
    type Error = &'static str;

    fn try_from((scale, ended): EncodedHistory) -> Result<Self, Self::Error> {
        if scale >= u64::BITS || ended.len() > BINS {
            return Err("no path has so many bins");
        }
        let mut history = Self { scale, ended_bins: ended.len() as u32, ..Self::default() };
        history.ranks[..ended.len()].copy_from_slice(&ended);
        history.update_bin_end();
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn walk(steps: &[(u64, u32)]) -> (RankHistory, Vec<(u64, u32)>) {
        let (mut history, mut now, mut stays) = (RankHistory::default(), 0, Vec::new());
        for &(picos, rank) in steps {
            now += picos;
            history.advance(SimTime::from_picos(now), Rank::new(rank));
            stays.push((now, rank));
        }
        (history, stays)
    }

    #[test]
    fn long_stays_are_kept() {
        let (history, _) = walk(&[(1000, 7), (3000, 8), (500, 7)]);
        let found = history.segments(SimTime::from_picos(4500), Rank::new(7));
        let found: Vec<_> =
            found.iter().map(|part| (part.from.as_picos(), part.to.as_picos(), part.rank.get())).collect();
        // Bins of 64 ps: the stay on rank 7 ends in the bin that begins at 960.
        assert_eq!(found, [(0, 960, 7), (960, 3968, 8), (3968, 4500, 7)]);
    }

    #[test]
    fn the_end_of_time_is_reached() {
        let (history, _) = walk(&[(u64::MAX, 3)]);
        assert_eq!((history.scale, history.ended_bins), (57, 127));
        let end = SimTime::from_picos(u64::MAX);
        assert_eq!(
            history.segments(end, Rank::new(3)),
            [Segment { from: SimTime::ZERO, to: end, rank: Rank::new(3) }]
        );
    }

    proptest! {
        /// The rank at each multiple of the bin length is that of the stay in which it lies.
        #[test]
        fn ends_of_bins_are_on_their_ranks(
            steps in proptest::collection::vec((prop_oneof![0_u64..4, 0_u64..3000], 0_u32..9), 1..60),
        ) {
            let (history, stays) = walk(&steps);
            let end = stays.last().map_or(0, |&(end, _)| end);
            prop_assert_eq!(u64::from(history.ended_bins), end >> history.scale);
            prop_assert!(end >> history.scale <= BINS as u64);
            for bin in 1..=u64::from(history.ended_bins) {
                let of_stay = stays.iter().find(|&&(end, _)| end >= bin << history.scale);
                prop_assert_eq!(Some(history.ranks[bin as usize - 1].get()), of_stay.map(|&(_, rank)| rank));
            }
            crate::round_trip::assert_round_trip(&history);
        }
    }
}
