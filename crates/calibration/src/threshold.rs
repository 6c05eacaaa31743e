//! Thresholds: sizes at which the MPI library changes its protocol.

use crate::curve::Curve;
use crate::observation::{Measurements, Operation, Point};

/// Duration above which a send to a late receiver has waited for it, in message times. Measurements delay receivers by
/// more.
const WAIT_FACTOR: f64 = 2.0;
/// Share of a message time from which on a send has waited for the transfer of its data. A send that only copies takes
/// less.
const TRANSFER_SHARE: f64 = 0.8;
/// Factor from which on a jump of the duration is a change of protocol, without other evidence.
const JUMP_FACTOR: f64 = 1.1;

/// Evidence for a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Sends to a late receiver wait from there on.
    LateReceiver,
    /// Sends last about as long as their message from there on.
    SendDurations,
    /// Sends of smaller messages were measured alone, larger ones in ping-pong only.
    Coverage,
    /// The time of a message jumps there.
    Jump,
    /// No measured size is beyond it.
    NoneFound,
}

/// Size at which the protocol of a send changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Size below which a message does not block its sender \[B\]. The data of such a message does not wait for its receive
    /// either: the receive was measured, if at all, after the data had had time to arrive.
    pub detached_below: u64,
    /// Evidence for it.
    pub evidence: Evidence,
    /// Data of larger messages were seen to move only while the receiver is in a call of the library.
    pub progress_in_calls: bool,
}

impl Thresholds {
    /// Finds the thresholds in measurements; `one_way` is the time of a message.
    pub(crate) fn find(measurements: &Measurements, quantile: f64, one_way: &Curve) -> Self {
        let (detached_below, evidence) = find_detached(measurements, quantile, one_way);
        let overlapped = measurements.points_at_quantile(Operation::SendOverlap, quantile);
        let mut sent = overlapped.iter().filter(|point| point.amount >= detached_below);
        let progress_in_calls = sent.any(|point| waits(point, one_way));
        Self { detached_below, evidence, progress_in_calls }
    }
}

fn find_detached(measurements: &Measurements, quantile: f64, one_way: &Curve) -> (u64, Evidence) {
    let [late, prompt] = [Operation::SendLate, Operation::Send]
        .map(|operation| measurements.points_at_quantile(operation, quantile));
    let largest = |points: &[Point]| points.last().map_or(0, |point| point.amount);
    if !late.is_empty() {
        return match first_size_where(&late, |point| waits(point, one_way)) {
            Some(bytes) => (bytes, Evidence::LateReceiver),
            None => (largest(&late) + 1, Evidence::NoneFound),
        };
    }
    let whole = measurements.points_at_quantile(Operation::PingPong, quantile);
    if !prompt.is_empty() {
        let moved =
            first_size_where(&prompt, |point| point.typical_s >= TRANSFER_SHARE * one_way.at(point.amount));
        return match (moved, whole.iter().find(|point| point.amount > largest(&prompt))) {
            (Some(bytes), _) => (bytes, Evidence::SendDurations),
            (None, Some(point)) => (point.amount, Evidence::Coverage),
            (None, None) => (largest(&prompt) + 1, Evidence::NoneFound),
        };
    }
    let jump = |above: u64| one_way.line(above + 1).at(above as f64) / one_way.at(above);
    let jumps = one_way.breakpoints().map(|above| (above, jump(above)));
    match jumps.max_by(|one, other| one.1.total_cmp(&other.1)) {
        Some((above, factor)) if factor >= JUMP_FACTOR => (above + 1, Evidence::Jump),
        _ => (largest(&whole) + 1, Evidence::NoneFound),
    }
}

/// Returns whether sends have waited for their receiver. The low decile decides: a send that waits always does, others may be disturbed.
fn waits(point: &Point, one_way: &Curve) -> bool {
    point.low_s > WAIT_FACTOR * one_way.at(point.amount)
}

/// Returns the size from which on a predicate holds: the threshold with the fewest points on the wrong side, the smallest
/// of several; `None` if that is beyond all points.
pub(crate) fn first_size_where(points: &[Point], holds: impl Fn(&Point) -> bool) -> Option<u64> {
    let mut wrong = points.iter().filter(|point| !holds(point)).count();
    let mut best = (wrong, 0);
    for (place, point) in points.iter().enumerate() {
        if holds(point) {
            wrong += 1;
        } else {
            wrong -= 1;
        }
        if wrong < best.0 {
            best = (wrong, place + 1);
        }
    }
    points.get(best.1).map(|point| point.amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Segment;
    use crate::line::Line;

    fn one_way() -> Curve {
        let segment = |above, constant_s| Segment { above, line: Line { constant_s, slope_s: 1e-10 } };
        Curve::new(vec![segment(0, 1e-6), segment(2000, 1.2e-6), segment(9000, 3e-6)]).unwrap()
    }

    type Durations = fn(u64) -> f64;

    fn measured(durations: &[(Operation, Durations)], largest: u64) -> Measurements {
        let mut measurements = Measurements::default();
        for size in (0..).map(|place| 500 * place).take_while(|&size| size <= largest) {
            measurements.push(Operation::PingPong, size, 0.0, 2.0 * one_way().at(size));
            durations
                .iter()
                .for_each(|(operation, duration)| measurements.push(*operation, size, 0.0, duration(size)));
        }
        measurements
    }

    fn found(measurements: &Measurements) -> (u64, Evidence) {
        let Thresholds { detached_below, evidence, .. } = Thresholds::find(measurements, 0.5, &one_way());
        (detached_below, evidence)
    }

    #[test]
    fn sends_that_wait_for_a_late_receiver() {
        // One size below and one above are disturbed.
        let late: Durations = |size| match size {
            1000 => 90e-6,
            12_000 => 1e-7,
            size if size < 6000 => 3e-7,
            _ => 50e-6,
        };
        assert_eq!(found(&measured(&[(Operation::SendLate, late)], 20_000)), (6000, Evidence::LateReceiver));
        assert_eq!(found(&measured(&[(Operation::SendLate, |_| 3e-7)], 5500)), (5501, Evidence::NoneFound));
    }

    #[test]
    fn progress_of_a_library_without_a_thread() {
        let late: Durations = |size| if size < 6000 { 3e-7 } else { 50e-6 };
        let in_calls = |overlap: Durations| {
            let durations = [(Operation::SendLate, late), (Operation::SendOverlap, overlap)];
            Thresholds::find(&measured(&durations, 20_000), 0.5, &one_way()).progress_in_calls
        };
        assert!(in_calls(late) && !in_calls(|size| 2e-6 + size as f64 * 1e-10));
        // Only messages for which their sender waits tell something.
        assert!(!in_calls(|size| if size < 6000 { 50e-6 } else { 3e-6 }));
    }

    #[test]
    fn sends_that_last_as_long_as_their_message() {
        let send: Durations = |size| if size < 6000 { 4e-7 } else { 4e-6 + size as f64 * 1e-10 };
        assert_eq!(found(&measured(&[(Operation::Send, send)], 20_000)), (6000, Evidence::SendDurations));
        let mut partly = measured(&[(Operation::Send, |_| 4e-7)], 5000);
        partly.push(Operation::PingPong, 5100, 0.0, 1e-5);
        assert_eq!(found(&partly), (5100, Evidence::Coverage));
    }

    #[test]
    fn the_largest_jump_of_a_message() {
        assert_eq!(found(&measured(&[], 20_000)), (9001, Evidence::Jump));
        let smooth = Curve::new(one_way().segments()[..1].to_vec()).unwrap();
        let found = Thresholds::find(&measured(&[], 1000), 0.5, &smooth);
        assert_eq!((found.detached_below, found.evidence), (1001, Evidence::NoneFound));
    }
}
