//! The process grid and the subdomain of a rank.

use pdes_core::Rank;

use super::Class;

/// Least number of points per side of a subdomain.
const MIN_POINTS: u32 = 3;

/// The process grid: ranks are numbered down the columns, `rank = row + column * rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessGrid {
    /// Processes along the first dimension.
    pub(super) rows: u32,
    /// Processes along the second dimension.
    pub(super) columns: u32,
}

impl ProcessGrid {
    /// Returns the process grid of the benchmark: the most square one with at least as many rows as columns. `None` if it has more
    /// than twice as many rows as columns, or too few points per process.
    pub(super) fn new(class: Class, ranks: u32) -> Option<Self> {
        let root = ranks.isqrt();
        let rows =
            (root.max(1)..=2 * root + 1).find(|&rows| ranks.is_multiple_of(rows) && rows >= ranks / rows)?;
        let grid = Self { rows, columns: ranks / rows };
        (grid.columns > 0 && 2 * grid.columns >= rows && class.points() / rows >= MIN_POINTS).then_some(grid)
    }

    /// Returns the legal counts nearest to an illegal one.
    pub(super) fn nearest(class: Class, ranks: u32) -> (Option<u32>, Option<u32>) {
        let side = class.points() / MIN_POINTS;
        let most = side * side;
        let legal = |count: &u32| Self::new(class, *count).is_some();
        let below = (1..=most.min(ranks.saturating_sub(1))).rev().find(legal);
        let above = (ranks.saturating_add(1)..=most).find(legal);
        (below, above)
    }

    /// Returns the subdomain of a rank.
    pub(super) fn subdomain(self, class: Class, rank: Rank) -> Subdomain {
        let (row, column) = (rank.get() % self.rows, rank.get() / self.rows);
        let at = |row: u32, column: u32| Some(Rank::new(row + column * self.rows));
        Subdomain {
            north: row.checked_sub(1).and_then(|north| at(north, column)),
            south: (row + 1 < self.rows).then(|| row + 1).and_then(|south| at(south, column)),
            west: column.checked_sub(1).and_then(|west| at(row, west)),
            east: (column + 1 < self.columns).then(|| column + 1).and_then(|east| at(row, east)),
            nx: share(class.points(), self.rows, row),
            ny: share(class.points(), self.columns, column),
            nz: u64::from(class.points()),
        }
    }
}

/// Returns the number of points of part `index` of `parts`: equal parts, but the first `points % parts` have one more.
fn share(points: u32, parts: u32, index: u32) -> u64 {
    u64::from(points / parts + u32::from(index < points % parts))
}

/// The subdomain of a rank, and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subdomain {
    /// The neighbour in the row before.
    pub(super) north: Option<Rank>,
    /// The neighbour in the row after.
    pub(super) south: Option<Rank>,
    /// The neighbour in the column before.
    pub(super) west: Option<Rank>,
    /// The neighbour in the column after.
    pub(super) east: Option<Rank>,
    /// Number of points along the first dimension.
    pub(super) nx: u64,
    /// Number of points along the second dimension.
    pub(super) ny: u64,
    /// Number of points along the third dimension, which is not distributed.
    pub(super) nz: u64,
}

impl Subdomain {
    /// Returns the number of points along the first dimension that are not on the boundary of the whole grid.
    pub(super) fn inner_x(&self) -> u64 {
        self.nx - u64::from(self.north.is_none()) - u64::from(self.south.is_none())
    }

    /// Returns the number of points along the second dimension that are not on the boundary of the whole grid.
    pub(super) fn inner_y(&self) -> u64 {
        self.ny - u64::from(self.west.is_none()) - u64::from(self.east.is_none())
    }

    /// Returns the number of planes of a sweep.
    pub(super) fn planes(&self) -> u64 {
        self.nz - 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search in the benchmark's source: start above the square root, grow until the rows divide the ranks or are too many.
    fn by_growing(ranks: u32) -> Option<(u32, u32)> {
        let root = ranks.isqrt();
        if root * root == ranks {
            return Some((root, root));
        }
        let mut rows = root + 1;
        while !ranks.is_multiple_of(rows) && 2 * (ranks / rows) >= rows {
            rows += 1;
        }
        let columns = ranks / rows;
        (rows * columns == ranks && 2 * columns >= rows).then_some((rows, columns))
    }

    #[test]
    fn process_grids_are_those_of_the_benchmark() {
        for ranks in 1..=20_000 {
            let grid = ProcessGrid::new(Class::F, ranks).map(|grid| (grid.rows, grid.columns));
            assert_eq!(grid, by_growing(ranks), "{ranks} ranks");
        }
        for (ranks, grid) in
            [(2, (2, 1)), (8, (4, 2)), (12, (4, 3)), (16_384, (128, 128)), (32_768, (256, 128))]
        {
            assert_eq!(by_growing(ranks), Some(grid));
        }
    }

    #[test]
    fn sub_domains_have_three_points_per_side_or_more() {
        assert!(ProcessGrid::new(Class::C, 54 * 54).is_some());
        assert!(ProcessGrid::new(Class::C, 55 * 55).is_none());
        assert!(ProcessGrid::new(Class::D, 128 * 128).is_some());
        assert_eq!(ProcessGrid::nearest(Class::S, 5), (Some(4), Some(6)));
        assert_eq!(ProcessGrid::nearest(Class::S, 17), (Some(16), None));
        assert_eq!(ProcessGrid::nearest(Class::S, 0), (None, Some(1)));
        assert_eq!(ProcessGrid::nearest(Class::F, u32::MAX), (Some(853 * 853), None));
    }

    #[test]
    fn points_are_dealt_first_come_first_served() {
        let grid = ProcessGrid::new(Class::W, 16).expect("four by four");
        let sizes: Vec<u64> = (0..4).map(|rank| grid.subdomain(Class::W, Rank::new(rank)).nx).collect();
        assert_eq!(sizes, [9, 8, 8, 8]);
        let inner = grid.subdomain(Class::W, Rank::new(5));
        assert_eq!((inner.inner_x(), inner.inner_y(), inner.planes()), (8, 8, 31));
        assert_eq!(
            [inner.north, inner.south, inner.west, inner.east].map(|rank| rank.map(Rank::get)),
            [Some(4), Some(6), Some(1), Some(9)]
        );
    }
}
