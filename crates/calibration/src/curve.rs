//! Curves: durations that are piecewise linear in the size of a message.

use crate::line::Line;
use crate::observation::Point;

/// A duration that is linear in the size between breakpoints, where it may jump.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Segments by growing threshold; the first one also holds for all smaller sizes.
    segments: Vec<Segment>,
}

/// A segment of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Exclusive lower bound of the sizes \[B\]; the segment ends at the threshold of the next one, inclusively.
    pub above: u64,
    /// Duration as a function of the size.
    pub line: Line,
}

/// Distances of measurements from a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residuals {
    /// Number of measured sizes.
    pub sizes: usize,
    /// Median of their distances from the curve, relative to the curve.
    pub median: f64,
    /// Largest relative distance.
    pub worst: f64,
    /// Half the range between the first and the ninth decile of the observations of a size, relative to their typical
    /// duration; the median over the sizes. It measures the noise of the data even for a curve that passes through all
    /// medians.
    pub spread: f64,
}

impl Curve {
    /// Returns a curve of segments in growing order; `None` if there are none, or their thresholds do not grow.
    pub fn new(segments: Vec<Segment>) -> Option<Self> {
        let grows = segments.windows(2).all(|pair| pair[0].above < pair[1].above);
        (!segments.is_empty() && grows).then_some(Self { segments })
    }

    /// Returns the segments by growing threshold; there is at least one.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the line that holds for a size.
    pub fn line(&self, bytes: u64) -> Line {
        let after = self.segments.partition_point(|segment| segment.above < bytes);
        self.segments[after.max(1) - 1].line
    }

    /// Returns the duration for a size \[s\].
    pub fn at(&self, bytes: u64) -> f64 {
        self.line(bytes).at(bytes as f64)
    }

    /// Returns the thresholds of all segments but the first.
    pub fn breakpoints(&self) -> impl Iterator<Item = u64> {
        self.segments[1..].iter().map(|segment| segment.above)
    }

    /// Returns the residuals of points within each segment; `None` for a segment without points.
    pub fn residuals(&self, points: &[Point]) -> Vec<Option<Residuals>> {
        let ends = self.breakpoints().map(Some).chain([None]);
        let mut rest = points;
        let of_segment = |end: Option<u64>| {
            let count = end.map_or(rest.len(), |end| rest.partition_point(|point| point.amount <= end));
            let (own, others) = rest.split_at(count);
            rest = others;
            self.residuals_of(own)
        };
        ends.map(of_segment).collect()
    }

    fn residuals_of(&self, points: &[Point]) -> Option<Residuals> {
        let mut distances: Vec<f64> = points.iter().map(|point| self.relative_error(point).abs()).collect();
        distances.sort_by(f64::total_cmp);
        let mut spreads: Vec<f64> =
            points.iter().map(|point| (point.high_s - point.low_s) / (2.0 * point.typical_s)).collect();
        spreads.sort_by(f64::total_cmp);
        Some(Residuals {
            sizes: points.len(),
            median: *distances.get(points.len() / 2)?,
            worst: *distances.last()?,
            spread: spreads[points.len() / 2],
        })
    }

    /// Returns the relative error of a point: its duration less that of the curve, relative to the curve.
    pub fn relative_error(&self, point: &Point) -> f64 {
        let expected = self.at(point.amount);
        (point.typical_s - expected) / expected
    }

    /// Moves the breakpoint that lies between the measured sizes around `bytes` to just below `bytes`, where the protocol
    /// is known to change. Without such a breakpoint nothing changes.
    pub(crate) fn snap_breakpoint(&mut self, bytes: u64, points: &[Point]) {
        let Some(last) = bytes.checked_sub(1) else { return };
        let amounts = || points.iter().map(|point| point.amount);
        let before = amounts().rev().find(|&amount| amount <= last).unwrap_or(0);
        let next = amounts().find(|&amount| amount >= bytes).unwrap_or(u64::MAX);
        if let Some(segment) =
            self.segments[1..].iter_mut().find(|segment| (before..next).contains(&segment.above))
        {
            segment.above = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        let segment = |above, constant_s, slope_s| Segment { above, line: Line { constant_s, slope_s } };
        Curve::new(vec![segment(0, 1.0, 0.0), segment(100, 2.0, 0.5)]).unwrap()
    }

    fn point(amount: u64, typical_s: f64) -> Point {
        Point { amount, typical_s, low_s: typical_s * 0.9, high_s: typical_s * 1.1, count: 3 }
    }

    #[test]
    fn a_segment_holds_above_its_threshold() {
        let curve = curve();
        assert_eq!([0, 1, 100, 101, 200].map(|bytes| curve.at(bytes)), [1.0, 1.0, 1.0, 52.5, 102.0]);
        assert_eq!(Curve::new(Vec::new()), None);
        assert_eq!(Curve::new([curve.segments(), curve.segments()].concat()), None);
    }

    #[test]
    fn residuals_by_segment() {
        let points = [point(0, 1.1), point(1, 1.0), point(100, 0.7), point(200, 102.0)];
        let [first, second] = curve().residuals(&points)[..] else { panic!("two segments") };
        let first = first.unwrap();
        assert_eq!((first.sizes, second.unwrap().worst), (3, 0.0));
        assert!((first.median - 0.1).abs() < 1e-12 && (first.worst - 0.3).abs() < 1e-12, "{first:?}");
        assert!((first.spread - 0.1).abs() < 1e-12, "{first:?}");
        assert_eq!(curve().residuals(&points[..3])[1], None);
    }

    #[test]
    fn a_breakpoint_moves_between_its_sizes_only() {
        let points = [point(64, 1.0), point(100, 1.0), point(128, 1.0), point(256, 1.0)];
        let snapped = |bytes| {
            let mut curve = curve();
            curve.snap_breakpoint(bytes, &points);
            curve.breakpoints().next().unwrap()
        };
        assert_eq!([101, 111, 128].map(snapped), [100, 110, 127]);
        assert_eq!([0, 64, 100, 129, 1000].map(snapped), [100; 5]);
    }
}
