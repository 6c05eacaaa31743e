//! Run times as functions of one factor: the slopes at 1, and the whole curve where it is piecewise linear.

use serde::Serialize;

/// Change of the factor from which a slope is taken first.
const FIRST_STEP: f64 = 0.01;
/// Change of the factor above which none larger is tried.
const LARGEST_STEP: f64 = 0.3;
/// Smallest change of the factor.
const LAST_STEP: f64 = 1e-6;
/// Slopes to both sides that differ by less than this part are one slope.
const AGREEMENT: f64 = 1e-4;
/// Part of an interval over which the slope at its end is taken.
const END: f64 = 1.0 / 64.0;
/// Largest number of replays for a curve.
const MAX_REPLAYS: usize = 200;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Factor of the parameter.
    pub factor: f64,
    /// Run time with this factor \[s\].
    pub time_s: f64,
}

/// The slopes of a run time over the factor of a parameter, at the factor 1 \[s\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slopes {
    /// Slope below 1.
    pub(crate) left: f64,
    /// Slope above 1.
    pub(crate) right: f64,
    /// Change of the factor from which they are taken.
    pub(crate) step: f64,
}

/// Takes slopes from differences, with steps that are halved until the slopes to both sides agree, or neither of them changes any more: then
/// the run time has a breakpoint at 1. Steps end where rounding would hide their difference. `times` returns the run time for a factor
/// \[ps\], or `None` if the parameter cannot have it, as so small a step is none; `base` is the time for 1, `rounding` the rounding of a run
/// time \[ps\]. Returns `None` if the parameter can have no other value.
pub(crate) fn slopes<E>(
    base: f64,
    rounding: f64,
    mut times: impl FnMut(f64) -> Result<Option<f64>, E>,
) -> Result<Option<Slopes>, E> {
    let mut step = FIRST_STEP;
    let mut before: Option<[f64; 2]> = None;
    loop {
        let (Some(lower), Some(upper)) = (times(1.0 - step)?, times(1.0 + step)?) else {
            match before {
                Some([below, above]) => {
                    let slope = |difference: f64| difference / (2.0 * step) / 1e12;
                    return Ok(Some(Slopes { left: slope(below), right: slope(above), step: 2.0 * step }));
                }
                None if step > LARGEST_STEP => return Ok(None),
                None => {
                    step *= 2.0;
                    continue;
                }
            }
        };
        let differences = [base - lower, upper - base];
        let [below, above] = differences;
        let larger = below.abs().max(above.abs());
        let agree = |one: f64, other: f64| (one - other).abs() <= AGREEMENT * larger + 2.0 * rounding;
        let slope = |difference: f64| difference / step / 1e12;
        if agree(below, above) {
            let slope = slope(0.5 * (below + above));
            return Ok(Some(Slopes { left: slope, right: slope, step }));
        }
        // Half the step, half the difference; where the run time is smooth, both sides come closer to each other, too.
        let is_steady = before.is_some_and(|before| {
            let is_kink = (above - below).abs() > 0.375 * (before[1] - before[0]).abs();
            is_kink && agree(0.5 * before[0], below) && agree(0.5 * before[1], above)
        });
        if is_steady || AGREEMENT * larger < 2.0 * rounding || step < 2.0 * LAST_STEP {
            return Ok(Some(Slopes { left: slope(below), right: slope(above), step }));
        }
        before = Some(differences);
        step *= 0.5;
    }
}

/// A run time \[ps\] with a factor.
#[derive(Clone, Copy, Debug)]
struct Point {
    factor: f64,
    time: f64,
}

impl Point {
    /// Returns the time on the line through this point and another one.
    fn line_through(self, other: Self) -> impl Fn(f64) -> f64 {
        let slope = (other.time - self.time) / (other.factor - self.factor);
        move |factor| self.time + slope * (factor - self.factor)
    }
}

/// A search for all breakpoints of a convex, piecewise linear function. Such is the run time without contention over one factor: the
/// longest of the chains of causes, the time of each of which is linear (a lower bound for another factor, too).
///
/// The function has a breakpoint where the lines at both ends of an interval meet, or is above the lines there: then both halves are searched
/// (Eisner and Severance, "Mathematical Techniques for Efficient Record Segmentation in Large Shared Databases", JACM 1976). Two replays for
/// each breakpoint and three for each piece, one of them in the middle of the piece, as a check.
struct Search<F> {
    times: F,
    rounding: f64,
    points: Vec<Point>,
    replays: usize,
}

/// Reason why there is no curve.
enum NoCurve<E> {
    /// The function is not convex, or has too many pieces.
    NotPiecewise,
    /// A replay failed.
    Failed(E),
}

impl<E> From<E> for NoCurve<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}

/// Returns the ends and the breakpoints of the run time over a range of factors around 1, if it is convex and piecewise linear within
/// rounding.
pub(crate) fn piecewise<E>(
    range: [f64; 2],
    rounding: f64,
    times: impl FnMut(f64) -> Result<f64, E>,
) -> Result<Option<Vec<CurvePoint>>, E> {
    let mut search = Search { times, rounding, points: Vec::new(), replays: 0 };
    match search.run(range) {
        Ok(points) => Ok(Some(points)),
        Err(NoCurve::NotPiecewise) => Ok(None),
        Err(NoCurve::Failed(error)) => Err(error),
    }
}

impl<E, F: FnMut(f64) -> Result<f64, E>> Search<F> {
    fn run(&mut self, [from, to]: [f64; 2]) -> Result<Vec<CurvePoint>, NoCurve<E>> {
        let [from, middle, to] = [self.at(from)?, self.at(1.0)?, self.at(to)?];
        self.resolve(from, middle)?;
        self.resolve(middle, to)?;
        self.merge()?;
        self.check()?;
        let point = |point: &Point| CurvePoint { factor: point.factor, time_s: point.time / 1e12 };
        Ok(self.points.iter().map(point).collect())
    }

    fn at(&mut self, factor: f64) -> Result<Point, NoCurve<E>> {
        if let Some(known) = self.points.iter().find(|point| point.factor == factor) {
            return Ok(*known);
        }
        if self.replays == MAX_REPLAYS {
            return Err(NoCurve::NotPiecewise);
        }
        self.replays += 1;
        let point = Point { factor, time: (self.times)(factor)? };
        self.points.push(point);
        Ok(point)
    }

    /// Finds the breakpoints between two points.
    fn resolve(&mut self, from: Point, to: Point) -> Result<(), NoCurve<E>> {
        let length = to.factor - from.factor;
        let (first, last) = (self.at(from.factor + END * length)?, self.at(to.factor - END * length)?);
        // An error of the times at the short ends grows with the distance from them.
        let tolerance = 4.0 * self.rounding / END;
        let (rising, falling) = (from.line_through(first), last.line_through(to));
        let gap = to.time - rising(to.factor);
        if gap.abs() <= tolerance && (from.time - falling(from.factor)).abs() <= tolerance {
            return Ok(());
        }
        let slopes = (rising(1.0) - rising(0.0), falling(1.0) - falling(0.0));
        if gap < -tolerance || slopes.1 <= slopes.0 {
            return Err(NoCurve::NotPiecewise);
        }
        let meeting = (falling(0.0) - rising(0.0)) / (slopes.0 - slopes.1);
        if !(meeting > first.factor && meeting < last.factor) {
            return self.halve(from, to);
        }
        let found = self.at(meeting)?;
        let expected = rising(meeting);
        if found.time < expected - tolerance {
            return Err(NoCurve::NotPiecewise);
        }
        if found.time > expected + tolerance {
            self.resolve(from, found)?;
            self.resolve(found, to)?;
        }
        Ok(())
    }

    /// Finds the breakpoints in both halves of an interval, one of which is near an end.
    fn halve(&mut self, from: Point, to: Point) -> Result<(), NoCurve<E>> {
        let middle = self.at(0.5 * (from.factor + to.factor))?;
        self.resolve(from, middle)?;
        self.resolve(middle, to)
    }

    /// Leaves out points on the line between others, and refuses those above it.
    fn merge(&mut self) -> Result<(), NoCurve<E>> {
        self.points.sort_by(|one, other| one.factor.total_cmp(&other.factor));
        let mut corners: Vec<Point> = Vec::new();
        for &point in &self.points {
            while let [.., before, last] = corners[..] {
                let above = last.time - before.line_through(point)(last.factor);
                if above > 2.0 * self.rounding {
                    return Err(NoCurve::NotPiecewise);
                }
                if above < -2.0 * self.rounding {
                    break;
                }
                corners.pop();
            }
            corners.push(point);
        }
        self.points = corners;
        Ok(())
    }

    /// Checks the middle of each piece, and finds the breakpoints of those that are none.
    fn check(&mut self) -> Result<(), NoCurve<E>> {
        loop {
            let pieces: Vec<[Point; 2]> = self.points.windows(2).map(|pair| [pair[0], pair[1]]).collect();
            let mut is_right = true;
            for [from, to] in pieces {
                let middle = 0.5 * (from.factor + to.factor);
                let found = self.at(middle)?;
                if (found.time - from.line_through(to)(middle)).abs() > 2.0 * self.rounding {
                    is_right = false;
                    self.resolve(from, found)?;
                    self.resolve(found, to)?;
                }
            }
            self.merge()?;
            if is_right {
                return Ok(());
            }
        }
    }
}

/// Least depth of a knee below the line through the ends of its curve, in the unit square.
const LEAST_DEPTH: f64 = 0.02;
/// Number of points to each side of 1 of a curve that is sampled.
const SAMPLES: i32 = 4;

/// Returns the run time at factors between the ends of a range around 1, with equal ratios to each side of 1. `times` is that of [`slopes`].
pub(crate) fn sampled<E>(
    [from, to]: [f64; 2],
    mut times: impl FnMut(f64) -> Result<f64, E>,
) -> Result<Vec<CurvePoint>, E> {
    let factor = |number: i32| {
        let end: f64 = if number < 0 { from } else { to };
        match number.abs() {
            SAMPLES => end,
            part => end.powf(f64::from(part) / f64::from(SAMPLES)),
        }
    };
    (-SAMPLES..=SAMPLES)
        .map(factor)
        .map(|factor| Ok(CurvePoint { factor, time_s: times(factor)? / 1e12 }))
        .collect()
}

/// Returns the number of the point that is farthest below the line through the ends of a rising curve, both axes being scaled to the unit
/// square (Satopaa et al., "Finding a Kneedle in a Haystack", 2011): less of the parameter saves little there, more costs much. Returns `None` if no
/// point is below the line by a fiftieth of the square.
pub(crate) fn knee(points: &[CurvePoint]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let (width, height) = (last.factor - first.factor, last.time_s - first.time_s);
    let below =
        |point: &CurvePoint| (point.factor - first.factor) / width - (point.time_s - first.time_s) / height;
    let depths =
        points.iter().map(below).enumerate().filter(|(_, depth)| height > 0.0 && *depth > LEAST_DEPTH);
    depths.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(number, _)| number)
}

/// Returns the largest factor with which a piecewise linear curve stays within a time \[s\]; `None` if it does so to its end.
pub(crate) fn reaches(points: &[CurvePoint], time_s: f64) -> Option<f64> {
    let pair = points.windows(2).find(|pair| pair[1].time_s > time_s && pair[1].factor > 1.0)?;
    let part = (time_s - pair[0].time_s) / (pair[1].time_s - pair[0].time_s);
    Some(pair[0].factor + part * (pair[1].factor - pair[0].factor))
}

/// Returns the slopes at 1 of a curve \[s\], and the factors between which they hold.
pub(crate) fn at_one(points: &[CurvePoint]) -> Option<(Slopes, [f64; 2])> {
    let slope = |pair: &[CurvePoint]| (pair[1].time_s - pair[0].time_s) / (pair[1].factor - pair[0].factor);
    let mut pieces = points.windows(2);
    let left = pieces.clone().find(|pair| pair[1].factor >= 1.0)?;
    let right = pieces.find(|pair| pair[1].factor > 1.0)?;
    let slopes = Slopes { left: slope(left), right: slope(right), step: right[1].factor - left[0].factor };
    Some((slopes, [left[0].factor, right[1].factor]))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The longest of chains, each with a constant part and one that grows with the factor \[ps\].
    fn longest(chains: &[(f64, f64)]) -> impl Fn(f64) -> Result<f64, Infallible> {
        move |factor| {
            let times = chains.iter().map(|(constant, share)| (constant + share * factor).round());
            Ok(times.fold(0.0, f64::max))
        }
    }

    #[test]
    fn all_breakpoints_are_found() {
        let chains = [(10e12, 0.0), (9e12, 2e12), (7.5e12, 3e12), (2e12, 6e12)];
        let found = piecewise([0.25, 4.0], 2.0, longest(&chains)).unwrap().unwrap();
        let factors: Vec<f64> = found.iter().map(|point| point.factor).collect();
        // 10 = 9 + 2 x, 9 + 2 x = 7.5 + 3 x, 7.5 + 3 x = 2 + 6 x.
        let expected = [0.25, 0.5, 1.5, 5.5 / 3.0, 4.0];
        assert_eq!(factors.len(), expected.len(), "{found:?}");
        assert!(factors.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9), "{found:?}");
        let (slopes, holds) = at_one(&found).unwrap();
        assert!((slopes.left - 2.0).abs() < 1e-9 && slopes.left == slopes.right, "{slopes:?}");
        assert!((holds[0] - 0.5).abs() < 1e-9 && (holds[1] - 1.5).abs() < 1e-9, "{holds:?}");
    }

    #[test]
    fn a_breakpoint_at_one_has_two_slopes() {
        let times = longest(&[(10e12, 1e12), (8e12, 3e12)]);
        let found = piecewise([0.5, 2.0], 2.0, &times).unwrap().unwrap();
        let (exact, _) = at_one(&found).unwrap();
        let differences = slopes(11e12, 2.0, |factor| times(factor).map(Some)).unwrap().unwrap();
        for found in [exact, differences] {
            assert!((found.left - 1.0).abs() < 1e-6 && (found.right - 3.0).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn what_is_not_piecewise_linear_has_no_curve() {
        let smooth = |factor: f64| Ok::<f64, Infallible>((1e13 * factor * factor).round());
        assert_eq!(piecewise([0.25, 4.0], 2.0, smooth), Ok(None));
        let concave = |factor: f64| Ok::<f64, Infallible>((1e13 * factor).min(1.5e13));
        assert_eq!(piecewise([0.25, 4.0], 2.0, concave), Ok(None));
        let jump = |factor: f64| Ok::<f64, Infallible>(if factor > 1.7 { 2e13 } else { 1e13 });
        assert_eq!(piecewise([0.25, 4.0], 2.0, jump), Ok(None));
        // Its slope at 1 is that of the tangent.
        let found = slopes(1e13, 2.0, |factor| smooth(factor).map(Some)).unwrap().unwrap();
        assert!((found.left - 20.0).abs() < 1e-3 && found.left == found.right, "{found:?}");
    }

    /// Messages of 20 bytes change by a twentieth at least, those of one byte cannot change by a part.
    #[test]
    fn steps_grow_to_what_a_parameter_can_have() {
        let whole = |bytes: f64| {
            move |factor: f64| {
                let real = (bytes * factor).round();
                Ok::<_, Infallible>((real != bytes).then_some(1e12 * (1.0 + real / bytes)))
            }
        };
        let found = slopes(2e12, 2.0, whole(20.0)).unwrap().unwrap();
        assert_eq!(found.step, 0.04);
        assert_eq!(slopes(2e12, 2.0, whole(1.0)), Ok(None));
    }

    #[test]
    fn a_knee_is_where_a_curve_bends_most() {
        let times = longest(&[(10e12, 0.0), (9e12, 2e12), (2e12, 6e12)]);
        let found = piecewise([0.25, 4.0], 2.0, &times).unwrap().unwrap();
        // The time rises from 10 to 26: by 2 from x 0.5, by 6 from x 1.75.
        assert_eq!(knee(&found), Some(2), "{found:?}");
        let limit = reaches(&found, 12.6).unwrap();
        assert!((limit - (12.6 - 2.0) / 6.0).abs() < 1e-9, "{limit}");
        assert_eq!(reaches(&found, 30.0), None);
        assert_eq!(knee(&piecewise([0.25, 4.0], 2.0, longest(&[(1e12, 2e12)])).unwrap().unwrap()), None);
        let points = sampled([0.25, 4.0], times).unwrap();
        assert_eq!((points.len(), points[0].factor, points[4].factor, points[8].factor), (9, 0.25, 1.0, 4.0));
    }
}
