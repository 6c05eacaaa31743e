//! Segmented regression: curves whose breakpoints are chosen from the data.
//!
//! A curve with `k` segments is found by dynamic programming over all gaps between two sizes (Bellman: On the approximation
//! of curves by line segments using dynamic programming, 1961): it has the least sum of squares of relative errors. The
//! number of segments minimizes the criterion of Liu, Wu and Zidek (On segmented multivariate regression, Statistica Sinica
//! 7, 1997), which is stricter than BIC for more than 20 sizes:
//!
//! `n ln(loss / n + resolution^2) + (3 k - 1) 0.299 (ln n)^2.1`
//!
//! Each segment has two parameters, and each breakpoint is one more. Relative differences below the resolution count as
//! none.

use crate::curve::{Curve, Segment};
use crate::line::{Line, Moments};
use crate::observation::Point;

/// Maximum number of segments of a curve.
const MAX_SEGMENTS: usize = 10;
/// Minimum number of sizes of a segment: any line fits two.
const MIN_SIZES: usize = 4;
/// Minimum share of a segment in all sizes, as a divisor: a few sizes among many that were disturbed alike resemble a
/// segment.
const MIN_SHARE_DIVISOR: usize = 25;
/// Relative resolution: smaller errors do not justify a breakpoint.
const RESOLUTION: f64 = 0.002;
/// Distance of an outlier from its neighbours: a multiple of the median distance, and a minimum relative distance.
const OUTLIER: (f64, f64) = (8.0, 0.1);
/// Maximum number of sizes; more are grouped, and one of each group is used.
const MAX_SIZES: usize = 1200;

/// Fits a curve to typical durations by growing size, with constants and slopes at least those of `least`; `None` if there
/// are no points.
///
/// Takes `O(n^2 k)` for `n` sizes, at most 1200, and `k` segments, at most 10.
pub(crate) fn fit(points: &[Point], least: Line) -> Option<Curve> {
    let sizes = SizeGroups::new(&without_outliers(points));
    let count = sizes.representatives.len();
    if count == 0 {
        return None;
    }
    let losses = Losses::new(&sizes.representatives, least);
    let fewest = MIN_SIZES.max(count / MIN_SHARE_DIVISOR);
    let most = (count / fewest).clamp(1, MAX_SEGMENTS);
    let table = SegmentTable::new(&losses, count, most, fewest);
    let number = (1..=most).min_by(|&one, &other| table.criterion(one).total_cmp(&table.criterion(other)))?;
    let starts = table.starts(number);
    let ends = starts[1..].iter().copied().chain([count]);
    let segments = starts.iter().zip(ends).map(|(&start, end)| Segment {
        above: if start == 0 { 0 } else { sizes.last_before(start) },
        line: moments(&sizes.representatives[start..end]).line(least),
    });
    Curve::new(segments.collect())
}

/// Removes sizes that are far from the median of the five around them (Hampel's filter): in a sum of squares, they would
/// create breakpoints. A duration that grows, or jumps, is kept, and so are the two sizes at both ends.
fn without_outliers(points: &[Point]) -> Vec<Point> {
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let distance = |window: &[Point]| {
        let middle = sorted(window.iter().map(|point| point.typical_s).collect())[2];
        (window[2].typical_s / middle - 1.0).abs()
    };
    let distances: Vec<f64> = points.windows(5).map(distance).collect();
    let Some(&usual) = sorted(distances.clone()).get(distances.len() / 2) else { return points.to_vec() };
    let most = (OUTLIER.0 * usual).max(OUTLIER.1);
    let stays = |place: usize| place < 2 || distances.get(place - 2).is_none_or(|&distance| distance <= most);
    (0..points.len()).filter(|&place| stays(place)).map(|place| points[place]).collect()
}

/// Sizes and durations, thinned out if there are many.
struct SizeGroups {
    /// Size and duration of the middle one of each group.
    representatives: Vec<(f64, f64)>,
    /// Largest size of each group.
    last: Vec<u64>,
}

impl SizeGroups {
    fn new(points: &[Point]) -> Self {
        let together = points.len().div_ceil(MAX_SIZES).max(1);
        let chunks = || points.chunks(together);
        // Not the mean, which would lie between the two sides of a jump.
        let middle =
            |chunk: &[Point]| (chunk[chunk.len() / 2].amount as f64, chunk[chunk.len() / 2].typical_s);
        Self {
            representatives: chunks().map(middle).collect(),
            last: chunks().map(|chunk| chunk[chunk.len() - 1].amount).collect(),
        }
    }

    fn last_before(&self, place: usize) -> u64 {
        self.last[place - 1]
    }
}

fn moments(sizes: &[(f64, f64)]) -> Moments {
    let mut moments = Moments::default();
    sizes.iter().for_each(|&(bytes, duration)| moments.add(bytes, duration));
    moments
}

/// Losses of the best lines through all runs of sizes.
struct Losses {
    /// Losses by start, then by length less one.
    rows: Vec<Vec<f64>>,
}

impl Losses {
    fn new(sizes: &[(f64, f64)], least: Line) -> Self {
        let row = |start: usize| {
            let mut moments = Moments::default();
            let loss = |&(bytes, duration): &(f64, f64)| {
                moments.add(bytes, duration);
                moments.loss(moments.line(least))
            };
            sizes[start..].iter().map(loss).collect()
        };
        Self { rows: (0..sizes.len()).map(row).collect() }
    }

    fn of(&self, start: usize, end: usize) -> f64 {
        self.rows[start][end - start - 1]
    }
}

/// Dynamic programming table: minimum losses of the first sizes by number of segments.
struct SegmentTable {
    count: usize,
    /// Loss, and start of the last segment, by segments less one, then by sizes.
    rows: Vec<Vec<(f64, usize)>>,
}

impl SegmentTable {
    fn new(losses: &Losses, count: usize, most: usize, fewest: usize) -> Self {
        let nothing = (f64::INFINITY, 0);
        let first = |end: usize| if end == 0 { nothing } else { (losses.of(0, end), 0) };
        let mut rows: Vec<Vec<(f64, usize)>> = vec![(0..=count).map(first).collect()];
        for segments in 2..=most {
            let before = &rows[segments - 2];
            let best = |end: usize| {
                let starts = (segments - 1) * fewest..(end + 1).saturating_sub(fewest);
                let with = |start: usize| (before[start].0 + losses.of(start, end), start);
                starts.map(with).min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or(nothing)
            };
            let row = (0..=count).map(best).collect();
            rows.push(row);
        }
        Self { count, rows }
    }

    fn criterion(&self, segments: usize) -> f64 {
        let (sizes, loss) = (self.count as f64, self.rows[segments - 1][self.count].0);
        let parameters = (3 * segments - 1) as f64;
        sizes * (loss / sizes + RESOLUTION.powi(2)).ln() + parameters * 0.299 * sizes.ln().powf(2.1)
    }

    /// Returns the starts of the segments.
    fn starts(&self, segments: usize) -> Vec<usize> {
        let mut starts = Vec::with_capacity(segments);
        let mut end = self.count;
        for row in self.rows[..segments].iter().rev() {
            end = row[end].1;
            starts.push(end);
        }
        starts.reverse();
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Line = Line { constant_s: 0.0, slope_s: 0.0 };

    fn points(sizes: impl IntoIterator<Item = u64>, duration: impl Fn(u64) -> f64) -> Vec<Point> {
        let point = |amount| {
            let typical_s = duration(amount);
            Point { amount, typical_s, low_s: typical_s, high_s: typical_s, count: 1 }
        };
        sizes.into_iter().map(point).collect()
    }

    #[test]
    fn nothing_and_one_size() {
        assert_eq!(fit(&[], ZERO), None);
        let one = fit(&points([8], |_| 3.0), ZERO).unwrap();
        assert_eq!((one.segments().len(), one.at(1000)), (1, 3.0));
    }

    #[test]
    fn a_jump_is_found_between_two_sizes() {
        let truth = |bytes: u64| {
            if bytes <= 4096 { 1e-6 + bytes as f64 * 1e-10 } else { 3e-6 + bytes as f64 * 2e-10 }
        };
        let sizes = (0..40).map(|place| (1.3_f64.powi(place) * 10.0) as u64);
        let curve = fit(&points(sizes.clone(), truth), ZERO).unwrap();
        let last_below = sizes.filter(|&size| size <= 4096).max();
        assert_eq!(curve.breakpoints().collect::<Vec<_>>(), [last_below.unwrap()]);
        for (segment, (constant, slope)) in curve.segments().iter().zip([(1e-6, 1e-10), (3e-6, 2e-10)]) {
            let Line { constant_s, slope_s } = segment.line;
            assert!(
                (constant_s / constant - 1.0).abs() < 1e-6 && (slope_s / slope - 1.0).abs() < 1e-6,
                "{segment:?}"
            );
        }
    }

    #[test]
    fn disturbed_sizes_make_no_breakpoints() {
        let truth = |bytes: u64| 1e-6 + bytes as f64 * 1e-9;
        let mut points = points((0..60).map(|place| (1.2_f64.powi(place) * 10.0) as u64), truth);
        points[20].typical_s *= 3.0;
        points[40].typical_s *= 100.0;
        points[41].typical_s *= 100.0;
        let curve = fit(&points, ZERO).unwrap();
        assert_eq!(curve.segments().len(), 1, "{curve:?}");
        assert!((curve.at(1_000_000) / truth(1_000_000) - 1.0).abs() < 1e-6, "{curve:?}");
    }

    #[test]
    fn many_sizes_are_grouped() {
        let truth = |bytes: u64| if bytes <= 30_000 { 1e-6 } else { 2e-6 };
        let curve = fit(&points((0..50_000).step_by(10), truth), ZERO).unwrap();
        let [breakpoint] = curve.breakpoints().collect::<Vec<_>>()[..] else {
            panic!("one breakpoint: {curve:?}")
        };
        assert!(breakpoint.abs_diff(30_000) <= 50, "{breakpoint}");
    }
}
