//! Grids of ranks, and the points that they divide.

use std::collections::BTreeMap;
use std::fmt;

use pdes_core::Rank;

use super::ExtrapolationError;
use super::program::RankProgram;

/// Largest number of dimensions.
pub(super) const DIMENSIONS: usize = 3;

/// Indices of a rank along each dimension.
pub(super) type Position = [u32; DIMENSIONS];

/// Difference of two positions, the shorter way round.
pub(super) type Offset = [i64; DIMENSIONS];

/// Part of a dimension in which ranks are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Inner,
    First,
    Last,
    Only,
}

/// The place of a rank: its part of each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place([Part; DIMENSIONS]);

impl Place {
    /// Returns whether the rank is at no end of any dimension; dimensions without ranks beside it do not count.
    pub(super) fn is_inner(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Inner | Part::Only))
    }

    /// Returns the number of ends of a dimension at which the rank is.
    pub(super) fn ends(&self, dimension: usize) -> u32 {
        match self.0[dimension] {
            Part::Inner => 0,
            Part::First | Part::Last => 1,
            Part::Only => 2,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().filter(|part| **part != Part::Only);
        let names: Vec<&str> = parts
            .map(|part| match part {
                Part::Inner => "inner",
                Part::First => "first",
                Part::Last => "last",
                Part::Only => "only",
            })
            .collect();
        f.write_str(&names.join(", "))
    }
}

/// A grid of ranks; the first dimension varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Number of ranks along each dimension, 1 along those that the grid does not have.
    sides: [u32; DIMENSIONS],
    dimensions: usize,
}

impl Grid {
    /// Returns the grids of a number of ranks with so many dimensions, the most even one first.
    fn all(ranks: u32, dimensions: usize) -> Vec<Self> {
        let divisors: Vec<u32> = (1..=ranks).filter(|side| ranks.is_multiple_of(*side)).collect();
        let of = |count: usize| if count < dimensions { &divisors[..] } else { &[1] };
        let mut grids = Vec::new();
        for &first in of(0) {
            for &second in of(1) {
                let third = ranks / first.saturating_mul(second).min(ranks);
                let sides = [first, second, third];
                let is_whole = sides.iter().map(|side| u64::from(*side)).product::<u64>() == u64::from(ranks);
                if is_whole && sides[dimensions..].iter().all(|side| *side == 1) {
                    grids.push(Self { sides, dimensions });
                }
            }
        }
        grids.sort_by_key(|grid| {
            let sides = &grid.sides[..dimensions];
            (sides.iter().max().copied(), grid.sides)
        });
        grids
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the number of ranks along each of its dimensions.
    pub(super) fn sides(&self) -> Vec<u32> {
        self.sides[..self.dimensions].to_vec()
    }

    fn position(&self, rank: u32) -> Position {
        let [first, second, _] = self.sides;
        [rank % first, rank / first % second, rank / first / second]
    }

    /// Returns the positions of all ranks in their order.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        (0..self.sides.iter().product()).map(move |rank| self.position(rank))
    }

    /// Returns the place of a position.
    pub(super) fn place(&self, position: Position) -> Place {
        Place(std::array::from_fn(|dimension| match (position[dimension], self.sides[dimension]) {
            (_, 1) => Part::Only,
            (0, _) => Part::First,
            (index, side) if index == side - 1 => Part::Last,
            _ => Part::Inner,
        }))
    }

    /// Returns the places of all ranks.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.positions().map(move |position| self.place(position))
    }

    /// Returns the offset of a rank from a position.
    pub(super) fn offset(&self, from: Position, to: Rank) -> Offset {
        let to = self.position(to.get());
        std::array::from_fn(|dimension| {
            let side = i64::from(self.sides[dimension]);
            let offset = i64::from(to[dimension]) - i64::from(from[dimension]);
            if 2 * offset.abs() > side { offset - offset.signum() * side } else { offset }
        })
    }

    /// Returns the rank at an offset, round the ends of dimensions.
    pub(super) fn at_offset(&self, from: Position, offset: Offset) -> Rank {
        let index = |dimension: usize| {
            let side = i64::from(self.sides[dimension]);
            (i64::from(from[dimension]) + offset[dimension]).rem_euclid(side) as u32
        };
        Rank::new((index(2) * self.sides[1] + index(1)) * self.sides[0] + index(0))
    }

    /// Returns a dimension along which three ranks are to be more: the one between the ends does not tell offsets from fixed ranks.
    pub(super) fn narrow(&self, target: &Self) -> Option<usize> {
        (0..self.dimensions).find(|dimension| self.sides[*dimension] == 3 && target.sides[*dimension] > 3)
    }

    /// Returns the grid of a number of ranks whose sides are most nearly those of this one, all multiplied by the same factor.
    pub(super) fn like(&self, ranks: u32) -> Result<Self, ExtrapolationError> {
        let unlikeness = |grid: &Self| {
            let ratios = grid
                .sides()
                .into_iter()
                .zip(self.sides())
                .map(|(side, own)| (f64::from(side) / f64::from(own)).ln());
            let ratios: Vec<f64> = ratios.collect();
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>()
        };
        let grids = Self::all(ranks, self.dimensions).into_iter();
        let best = grids.min_by(|a, b| unlikeness(a).total_cmp(&unlikeness(b)));
        let expected = || format!("{} dimension(s)", self.dimensions);
        best.ok_or_else(|| ExtrapolationError::Target { ranks, expected: expected() })
    }

    /// Returns the grid with these sides.
    pub(super) fn with_sides(&self, sides: &[u32], ranks: u32) -> Result<Self, ExtrapolationError> {
        let found = Self::all(ranks, self.dimensions).into_iter().find(|grid| grid.sides() == sides);
        let expected = || format!("{sides:?}, of which {} dimension(s) are expected", self.dimensions);
        found.ok_or_else(|| ExtrapolationError::Target { ranks, expected: expected() })
    }

    /// Returns the pattern and the offsets of each place; fails with two ranks at one place that differ.
    fn programs(&self, programs: &[RankProgram]) -> Result<Programs, [Rank; 2]> {
        let mut all: BTreeMap<Place, (u32, u32, Vec<Offset>)> = BTreeMap::new();
        for (rank, (position, program)) in (0..).zip(self.positions().zip(programs)) {
            let offsets = program.peers.iter().map(|peer| self.offset(position, *peer));
            let place = self.place(position);
            if let Some((first, pattern, expected)) = all.get(&place) {
                if *pattern != program.pattern || !offsets.eq(expected.iter().copied()) {
                    return Err([Rank::new(*first), Rank::new(rank)]);
                }
            } else {
                all.insert(place, (rank, program.pattern, offsets.collect()));
            }
        }
        Ok(all.into_iter().map(|(place, (_, pattern, offsets))| (place, (pattern, offsets))).collect())
    }
}

/// Pattern and offsets of the peers of each place.
type Programs = BTreeMap<Place, (u32, Vec<Offset>)>;

/// Finds grids of all traces, ordered by their ranks, in which ranks at one place have the same program: with as few dimensions as
/// possible.
pub(super) fn consistent(traces: &[Vec<RankProgram>]) -> Result<Vec<Grid>, ExtrapolationError> {
    let mut failure = None;
    for dimensions in 1..=DIMENSIONS {
        let mut candidates = Vec::new();
        for programs in traces {
            let grids = Grid::all(programs.len() as u32, dimensions);
            let mut consistent = Vec::new();
            for grid in grids {
                match grid.programs(programs) {
                    Ok(found) => consistent.push((grid, found)),
                    Err(differ) => {
                        failure.get_or_insert((programs.len(), grid.sides(), differ));
                    }
                }
            }
            candidates.push(consistent);
        }
        let (Some(largest), [others @ .., _]) = (candidates.last(), &candidates[..]) else { continue };
        if let ([], [(one, _), (other, _), ..]) = (others, &largest[..]) {
            return Err(ExtrapolationError::Grids([one.sides(), other.sides()]));
        }
        let alike = |one: &Programs, other: &Programs| {
            let mut shared =
                one.iter().filter_map(|(place, program)| Some((program, other.get(place)?))).peekable();
            shared.peek().is_some() && shared.all(|(one, other)| one == other)
        };
        for (grid, programs) in largest {
            let found = others
                .iter()
                .map(|all| all.iter().find(|(_, other)| alike(programs, other)).map(|(grid, _)| *grid));
            if let Some(mut grids) = found.collect::<Option<Vec<_>>>() {
                grids.push(*grid);
                return Ok(grids);
            }
        }
    }
    Err(match failure {
        Some((ranks, grid, differ)) => ExtrapolationError::Grid { ranks, grid, differ },
        None => ExtrapolationError::Unlike(traces.iter().map(Vec::len).collect()),
    })
}

/// Values of ranks on a line along a dimension.
pub(super) struct Series {
    /// Number of ranks along the dimension.
    pub(super) side: u32,
    /// Indices of ranks, in their order, with a value of each.
    pub(super) values: Vec<(u32, u64)>,
}

/// Number of points along a dimension, of which ranks have equal shares, and the first ones one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Points(u64);

impl Points {
    pub(super) fn get(self) -> u64 {
        self.0
    }

    /// Returns the share of a rank.
    pub(super) fn share(self, side: u32, index: u32) -> u64 {
        let side = u64::from(side);
        self.0 / side + u64::from(u64::from(index) < self.0 % side)
    }

    /// Finds the number of points of which the values along each line are multiples, or of as many but one or two (ends of the whole
    /// dimension that do not count).
    pub(super) fn find(lines: &[Series]) -> Option<Self> {
        let step = |line: &Series| {
            let (_, high) = *line.values.first()?;
            let (index, low) = *line.values.iter().find(|(_, value)| *value < high)?;
            let unit = high - low;
            low.is_multiple_of(unit).then_some((u64::from(line.side), u64::from(index), low / unit))
        };
        let (side, index, low) = lines.iter().find_map(step)?;
        (0..=2).map(|left_out| (Self((low + left_out) * side + index), left_out)).find_map(
            |(points, left_out)| {
                let fits = |line: &Series| {
                    let share = |index| u128::from(points.share(line.side, index).saturating_sub(left_out));
                    let (first, value) = line.values[0];
                    line.values.iter().all(|(index, found)| {
                        u128::from(*found) * share(first) == u128::from(value) * share(*index)
                            && share(*index) > 0
                    })
                };
                lines.iter().all(fits).then_some(points)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_back() {
        let grid = Grid { sides: [4, 3, 5], dimensions: 3 };
        for from in grid.positions() {
            for to in (0..60).map(Rank::new) {
                assert_eq!(grid.at_offset(from, grid.offset(from, to)), to);
            }
        }
        assert_eq!(grid.offset([0, 0, 0], Rank::new(3)), [-1, 0, 0]);
        assert_eq!(grid.like(480).unwrap().sides(), [8, 6, 10]);
        assert_eq!(Grid { sides: [8, 8, 1], dimensions: 2 }.like(1024).unwrap().sides(), [32, 32]);
        assert!(grid.with_sides(&[4, 4, 4], 60).is_err());
    }

    /// 1,020 points on 8 ranks: four have 128 and four 127; a message has 40 B of each.
    #[test]
    fn points_are_found_from_shares() {
        let line = |side: u32, left_out: u64| {
            let values =
                (1..side - 1).map(|index| (index, 40 * (Points(1020).share(side, index) - left_out)));
            Series { side, values: values.collect() }
        };
        for left_out in 0..=2 {
            let lines = [line(4, left_out), line(8, left_out), line(16, left_out)];
            assert_eq!(Points::find(&lines), Some(Points(1020)));
        }
        assert_eq!(Points::find(&[line(4, 0)]), None);
    }
}
