//! Costs of calls, fitted to the calls of programs: the time that a replay without them lacks.

use std::collections::BTreeMap;

use crate::curve::{Curve, Segment};
use crate::line::Line;

/// Ratio of the ends of a band of sizes.
const BAND: u64 = 16;
/// Ratio of the largest to the smallest size from which on a cost may depend on the size.
const WIDE: f64 = 4.0;

/// The time that calls of one kind and of about one size take beyond what a replay explains.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPoint {
    /// Mean size \[B\], or number of requests of calls on lists of requests.
    pub bytes: f64,
    /// Weight of the point among those of its kind, above zero.
    pub weight: f64,
    /// Mean time of the library itself in such a call \[s\]; below zero where the replay is longer than the program was.
    pub seconds: f64,
}

/// The cost of the calls of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CallCost {
    /// Name of the action in a trace, such as `isend`.
    pub call: String,
    /// Number of calls.
    pub count: u64,
    /// Typical distance of the cost of a call from the mean of its size: the half of the calls in the middle lie within this \[s\].
    pub spread_s: f64,
    /// Cost by size.
    pub curve: Curve,
}

impl CallCost {
    /// Fits the cost of calls: a line below the size at which the protocol changes, and one in each band of a factor of 16 from there
    /// on, since libraries have further limits that a replay does not know; without negative costs.
    ///
    /// A band whose sizes differ by less than four times gets a constant, one without calls the line of the band below it.
    /// Returns `None` if there are no points.
    pub fn fit(points: &[CallPoint], protocol_changes_at: u64) -> Option<Curve> {
        let mut bands: BTreeMap<u64, Vec<&CallPoint>> = BTreeMap::new();
        for point in points {
            bands.entry(band(point.bytes, protocol_changes_at)).or_default().push(point);
        }
        let lines = bands.into_iter().filter_map(|(above, points)| Some((above, line(points)?)));
        Curve::new(lines.map(|(above, line)| Segment { above, line }).collect())
    }

    /// Returns the cost as a replay reads it: `size:constant:slope;...`.
    pub fn to_text(&self) -> String {
        let section = |Segment { above, line }: &Segment| {
            format!("{above}:{:.3}ns:{:.6}ns", line.constant_s * 1e9, line.slope_s * 1e9)
        };
        self.curve.segments().iter().map(section).collect::<Vec<_>>().join(";")
    }

    /// Returns whether the calls differ by more than their cost, so that it says little of a single one.
    pub fn is_uncertain(&self) -> bool {
        self.spread_s > self.curve.segments()[0].line.constant_s.max(1e-9)
    }
}

/// Returns the threshold of the band of a size: zero, or a size above which the band begins.
fn band(bytes: f64, protocol_changes_at: u64) -> u64 {
    let mut above = 0;
    let mut next = protocol_changes_at.max(1);
    while bytes >= next as f64 {
        above = next - 1;
        next = next.saturating_mul(BAND);
    }
    above
}

/// Fits a line by weighted least squares, with neither a negative constant nor a negative slope.
fn line(points: Vec<&CallPoint>) -> Option<Line> {
    let sum =
        |of: &dyn Fn(&CallPoint) -> f64| points.iter().map(|point| point.weight * of(point)).sum::<f64>();
    let weight = sum(&|_| 1.0);
    if points.is_empty() || weight <= 0.0 {
        return None;
    }
    let (bytes, seconds) = (sum(&|point| point.bytes) / weight, sum(&|point| point.seconds) / weight);
    let flat = Line { constant_s: seconds.max(0.0), slope_s: 0.0 };
    let (least, most) = points.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), point| {
        (least.min(point.bytes), most.max(point.bytes))
    });
    if most < WIDE * least.max(1.0) {
        return Some(flat);
    }
    let xx = sum(&|point| (point.bytes - bytes).powi(2));
    let xy = sum(&|point| (point.bytes - bytes) * (point.seconds - seconds));
    let slope_s = xy / xx;
    let constant_s = seconds - slope_s * bytes;
    Some(match (constant_s >= 0.0, slope_s >= 0.0) {
        (true, true) => Line { constant_s, slope_s },
        (_, false) => flat,
        // Through the origin.
        (false, true) => Line {
            constant_s: 0.0,
            slope_s: (sum(&|point| point.bytes * point.seconds) / sum(&|point| point.bytes.powi(2))).max(0.0),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: f64, seconds: f64) -> CallPoint {
        CallPoint { bytes, weight: 2.0, seconds }
    }

    #[test]
    fn lines_in_bands_of_sizes() {
        let below = |bytes: f64| point(bytes, 1e-7 + 1e-11 * bytes);
        let above = |bytes: f64| point(bytes, 2e-6 + 5e-11 * bytes);
        let points = [below(0.0), below(10.0), below(3000.0), above(5000.0), above(3e4), above(6e4)];
        let curve = CallCost::fit(&points, 4096).unwrap();
        let far = CallCost::fit(&[below(1.0), above(8e4), above(9e5)], 4096).unwrap();
        assert_eq!(far.segments().last().unwrap().above, 65535);
        let found: Vec<(u64, f64, f64)> = curve
            .segments()
            .iter()
            .map(|segment| (segment.above, segment.line.constant_s, segment.line.slope_s))
            .collect();
        for (found, expected) in found.iter().zip([(0, 1e-7, 1e-11), (4095, 2e-6, 5e-11)]) {
            assert_eq!(found.0, expected.0);
            assert!((found.1 / expected.1 - 1.0).abs() < 1e-9, "{found:?}");
            assert!((found.2 / expected.2 - 1.0).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn costs_are_not_negative() {
        let cost = |points: &[CallPoint]| {
            let curve = CallCost::fit(points, 4096);
            let segments = curve.iter().flat_map(|curve| curve.segments());
            segments.map(|one| (one.line.constant_s, one.line.slope_s)).collect::<Vec<_>>()
        };
        assert_eq!(cost(&[]), []);
        assert_eq!(cost(&[point(8.0, -1e-6)]), [(0.0, 0.0)]);
        assert_eq!(cost(&[point(8.0, 1e-6), point(16.0, 3e-6)]), [(2e-6, 0.0)]);
        assert_eq!(cost(&[point(8.0, 3e-6), point(800.0, 1e-6)]), [(2e-6, 0.0)]);
        let [(constant, slope)] = cost(&[point(100.0, -1e-9), point(1000.0, 1e-7)])[..] else { panic!() };
        assert!(constant == 0.0 && slope > 9e-11 && slope < 1.1e-10, "{slope}");
    }

    #[test]
    fn the_text_is_that_of_a_configuration() {
        let curve = CallCost::fit(&[point(8.0, 1e-6), point(8000.0, 2e-6)], 4096).unwrap();
        let cost = CallCost { call: "isend".to_owned(), count: 2, spread_s: 5e-7, curve };
        assert_eq!(cost.to_text(), "0:1000.000ns:0.000000ns;4095:2000.000ns:0.000000ns");
        assert!(!cost.is_uncertain());
    }
}
