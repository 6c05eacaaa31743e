//! Straight lines, fitted by least squares of relative errors.

/// A duration that is linear in a number of bytes (Hockney's model).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// Duration for zero bytes \[s\].
    pub constant_s: f64,
    /// Time per byte [s/B].
    pub slope_s: f64,
}

impl Line {
    /// Returns the duration for a number of bytes \[s\].
    pub fn at(self, bytes: f64) -> f64 {
        self.constant_s + self.slope_s * bytes
    }

    /// Returns the difference of two lines.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { constant_s: self.constant_s - other.constant_s, slope_s: self.slope_s - other.slope_s }
    }
}

/// Weighted moments of points, about their mean, so that they are accumulated without the cancellation of sums of squares
/// (Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983).
///
/// The weight of a point is the inverse square of its duration, so that the loss is a sum of squares of relative errors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    weight: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, bytes: f64, duration: f64) {
        let weight = duration.powi(-2);
        self.weight += weight;
        let (dx, dy) = (bytes - self.mean_x, duration - self.mean_y);
        self.mean_x += dx * weight / self.weight;
        self.mean_y += dy * weight / self.weight;
        self.xx += weight * dx * (bytes - self.mean_x);
        self.xy += weight * dx * (duration - self.mean_y);
        self.yy += weight * dy * (duration - self.mean_y);
    }

    /// Returns the sum of the squares of the relative errors of a line.
    pub(crate) fn loss(&self, line: Line) -> f64 {
        let offset = self.mean_y - line.at(self.mean_x);
        let spread = self.yy - 2.0 * line.slope_s * self.xy + line.slope_s.powi(2) * self.xx;
        self.weight * offset.powi(2) + spread.max(0.0)
    }

    /// Returns the line with the least loss among those whose constant and slope are at least those of `least`.
    ///
    /// The loss is convex: if the unconstrained optimum is outside, the constrained one is on an edge.
    pub(crate) fn line(&self, least: Line) -> Line {
        if self.xx > 0.0 {
            let slope_s = self.xy / self.xx;
            let free = Line { constant_s: self.mean_y - slope_s * self.mean_x, slope_s };
            if free.constant_s >= least.constant_s && free.slope_s >= least.slope_s {
                return free;
            }
        }
        let through =
            Line { constant_s: least.constant_s, slope_s: self.slope_with(least).max(least.slope_s) };
        let constant_s = (self.mean_y - least.slope_s * self.mean_x).max(least.constant_s);
        let flat = Line { constant_s, slope_s: least.slope_s };
        if self.loss(through) < self.loss(flat) { through } else { flat }
    }

    /// Returns the best slope for the minimum constant.
    fn slope_with(&self, least: Line) -> f64 {
        let above = self.weight * self.mean_x * (self.mean_y - least.constant_s) + self.xy;
        let below = self.weight * self.mean_x.powi(2) + self.xx;
        if below > 0.0 { above / below } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Line = Line { constant_s: 0.0, slope_s: 0.0 };

    fn moments(points: &[(f64, f64)]) -> Moments {
        let mut moments = Moments::default();
        points.iter().for_each(|&(bytes, duration)| moments.add(bytes, duration));
        moments
    }

    #[test]
    fn a_line_goes_through_its_points() {
        let line = moments(&[(0.0, 2.0), (1.0, 5.0), (2.0, 8.0)]).line(ZERO);
        assert!((line.constant_s - 2.0).abs() < 1e-12 && (line.slope_s - 3.0).abs() < 1e-12, "{line:?}");
        assert!(moments(&[(0.0, 2.0), (1.0, 5.0)]).loss(line) < 1e-12);
    }

    #[test]
    fn constants_and_slopes_have_a_least_value() {
        // 2 x - 1, of which relative errors count: (k - 1)^2 + (2 k / 3 - 1)^2 is least at k = 15 / 13.
        let steep = moments(&[(1.0, 1.0), (2.0, 3.0)]).line(ZERO);
        assert_eq!(steep.constant_s, 0.0);
        assert!((steep.slope_s - 15.0 / 13.0).abs() < 1e-12, "{steep:?}");
        // 3 - x: (c / 2 - 1)^2 + (c - 1)^2 is least at c = 6 / 5.
        let falling = moments(&[(1.0, 2.0), (2.0, 1.0)]).line(ZERO);
        assert_eq!(falling.slope_s, 0.0);
        assert!((falling.constant_s - 1.2).abs() < 1e-12, "{falling:?}");
    }

    #[test]
    fn one_point_has_a_flat_line() {
        assert_eq!(moments(&[(5.0, 2.0)]).line(ZERO), Line { constant_s: 2.0, slope_s: 0.0 });
    }
}
