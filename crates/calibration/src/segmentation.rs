//! Breakpoints that the data choose.
//!
//! A curve with `k` segments is found by dynamic programming over all places between two sizes (Bellman: On the
//! approximation of curves by line segments using dynamic programming, 1961): the least sum of squares of relative
//! errors. The number of segments is the one with the least value of the criterion of Liu, Wu and Zidek (On segmented
//! multivariate regression, Statistica Sinica 7, 1997), which is stricter than BIC where there are more than 20 sizes:
//!
//! `n ln(loss / n + resolution^2) + (3 k - 1) 0.299 (ln n)^2.1`
//!
//! Each segment has two parameters, and each breakpoint is one more. Relative differences below the resolution are none.

use crate::curve::{Curve, Segment};
use crate::line::{Line, Moments};
use crate::observation::Point;

/// The most segments of a curve.
const MOST_SEGMENTS: usize = 10;
/// The fewest sizes of a segment: two would be met by any line.
const FEWEST_SIZES: usize = 4;
/// A segment has this part of all sizes at least: of many, a few that were disturbed alike look like one.
const LEAST_PART: usize = 25;
/// Relative errors below this are not worth a breakpoint.
const RESOLUTION: f64 = 0.002;
/// A size that lies further from its neighbours than most do by this factor, and by this part of them, is disturbed.
const OUTLIER: (f64, f64) = (8.0, 0.1);
/// Of more sizes than this, some stand for their neighbours.
const MOST_SIZES: usize = 1200;

/// Fits a curve to medians by growing size, none of whose lines has a constant or a slope below those of `least`; `None`
/// where there are no points.
///
/// `O(n^2 k)` in the number of sizes, of which there are at most 1200, and of segments, of which there are at most 10.
pub(crate) fn fit(points: &[Point], least: Line) -> Option<Curve> {
    let sizes = Sizes::new(&without_outliers(points));
    let count = sizes.chosen.len();
    if count == 0 {
        return None;
    }
    let losses = Losses::new(&sizes.chosen, least);
    let fewest = FEWEST_SIZES.max(count / LEAST_PART);
    let most = (count / fewest).clamp(1, MOST_SEGMENTS);
    let table = Table::new(&losses, count, most, fewest);
    let number = (1..=most).min_by(|&one, &other| table.criterion(one).total_cmp(&table.criterion(other)))?;
    let starts = table.starts(number);
    let ends = starts[1..].iter().copied().chain([count]);
    let segments = starts.iter().zip(ends).map(|(&start, end)| Segment {
        above: if start == 0 { 0 } else { sizes.last_before(start) },
        line: moments(&sizes.chosen[start..end]).line(least),
    });
    Curve::new(segments.collect())
}

/// Leaves out sizes that are far from the median of the five around them, which takes a duration that grows, or jumps, as it is
/// (Hampel's filter): squares of errors would make breakpoints of them. Those at both ends stay.
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

/// Sizes and durations, some of which stand for their neighbours where there are many.
struct Sizes {
    /// Size and duration of the one in the middle.
    chosen: Vec<(f64, f64)>,
    /// The largest size among its neighbours.
    last: Vec<u64>,
}

impl Sizes {
    fn new(points: &[Point]) -> Self {
        let together = points.len().div_ceil(MOST_SIZES).max(1);
        let chunks = || points.chunks(together);
        // A mean would lie between the two sides of a jump.
        let middle =
            |chunk: &[Point]| (chunk[chunk.len() / 2].amount as f64, chunk[chunk.len() / 2].typical_s);
        Self {
            chosen: chunks().map(middle).collect(),
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

/// The loss of the best line through each run of sizes.
struct Losses {
    /// By start, then by length less one.
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

/// The least losses of the first sizes with so many segments.
struct Table {
    count: usize,
    /// By segments less one, then by sizes: the loss, and where the last segment starts.
    rows: Vec<Vec<(f64, usize)>>,
}

impl Table {
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

    /// Returns where the segments start.
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
    fn of_many_sizes_some_stand_for_others() {
        let truth = |bytes: u64| if bytes <= 30_000 { 1e-6 } else { 2e-6 };
        let curve = fit(&points((0..50_000).step_by(10), truth), ZERO).unwrap();
        let [breakpoint] = curve.breakpoints().collect::<Vec<_>>()[..] else {
            panic!("one breakpoint: {curve:?}")
        };
        assert!(breakpoint.abs_diff(30_000) <= 50, "{breakpoint}");
    }
}
