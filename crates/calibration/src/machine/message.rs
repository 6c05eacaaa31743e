//! Times of messages, to which a machine is fitted.

use std::collections::BTreeSet;

use super::{FitError, Fitted, NO_OVERHEAD};
use crate::line::Line;
use crate::observation::{Measurements, Operation, Point};
use crate::segmentation;

/// Minimum latency \[s\]: practically zero, but positive as the network model requires.
const MIN_LATENCY: f64 = 1e-12;
/// Maximum bandwidth of a segment, as a multiple of the highest bytes per second of any message: a time that does not grow
/// with the size indicates a disturbance.
const MAX_BANDWIDTH_FACTOR: f64 = 10.0;

/// Returns the names of the operations that were measured.
pub(super) fn measured_operations(measurements: &Measurements) -> String {
    let names: BTreeSet<_> =
        measurements.observations.iter().map(|observation| observation.operation).collect();
    let names: Vec<&str> = names.into_iter().map(Operation::name).collect();
    if names.is_empty() { "no observations".to_owned() } else { names.join(", ") }
}

/// Returns the lower bound of the lines of a message's time.
pub(super) fn lower_bound(points: &[Point]) -> Line {
    let best = points.iter().map(|point| point.amount as f64 / point.typical_s).fold(1.0, f64::max);
    Line { constant_s: MIN_LATENCY, slope_s: 1.0 / (MAX_BANDWIDTH_FACTOR * best) }
}

/// Returns the times of messages, half of each ping-pong, and the size below which they had to be composed of overheads.
pub(super) fn message_times(
    measurements: &Measurements,
    quantile: f64,
) -> Result<(Vec<Point>, Option<u64>), FitError> {
    let half = |point: Point| Point {
        typical_s: point.typical_s / 2.0,
        low_s: point.low_s / 2.0,
        high_s: point.high_s / 2.0,
        ..point
    };
    let points: Vec<Point> =
        measurements.points_at_quantile(Operation::PingPong, quantile).into_iter().map(half).collect();
    let first = match points[..] {
        [] => return Err(FitError::NoPingPong { found: measured_operations(measurements) }),
        [only] => return Err(FitError::OneSize { size: only.amount }),
        [first, ..] => first.amount,
    };
    let composed = composed(measurements, quantile, &points, first);
    let composed_below = (!composed.is_empty()).then_some(first);
    Ok((composed.into_iter().chain(points).collect(), composed_below))
}

/// Returns times of messages below the first size with ping-pong if overheads were measured; as in SimGrid's calibration,
/// which has ping-pong of synchronous messages only.
fn composed(measurements: &Measurements, quantile: f64, points: &[Point], first: u64) -> Vec<Point> {
    let fitted =
        |operation| Fitted::new(operation, measurements.points_at_quantile(operation, quantile), NO_OVERHEAD);
    let (Some(send), Some(receive)) = (fitted(Operation::Send), fitted(Operation::Receive)) else {
        return Vec::new();
    };
    let Some(large) = segmentation::fit(points, lower_bound(points)) else { return Vec::new() };
    let time = |point: &Point| {
        let per_byte = large.line(first).slope_s;
        let typical_s = point.typical_s + receive.curve.at(point.amount) + per_byte * point.amount as f64;
        Point { typical_s, low_s: typical_s, high_s: typical_s, ..*point }
    };
    let both = |point: &&Point| point.amount < first && point.amount >= receive.points[0].amount;
    send.points.iter().filter(both).map(time).collect()
}
