//! The parameters of a machine, fitted to measurements.

mod message;
mod split;

use crate::curve::{Curve, Residuals};
use crate::line::Line;
use crate::observation::{Measurements, Operation, Point};
use crate::segmentation;
use crate::threshold::Thresholds;
use message::{found, least, message_times};
use split::Split;

/// Overheads may be none.
const FREE: Line = Line { constant_s: 0.0, slope_s: 0.0 };
/// Points that are further than this from their curve, relative to it, are worth a warning.
const LARGE_RESIDUAL: f64 = 0.1;
/// A bandwidth from smaller messages than this is hardly one \[B\].
const LARGE_MESSAGE: u64 = 1 << 16;

/// What messages cost on a machine, as the model of messages has it.
///
/// A message of `n` bytes below `detached_below` whose receiver waits takes `send(n) + network(n) + receive(n)`, a larger one
/// `network(n)`: this sum is the fitted time of a message, half of a ping-pong. On a real machine the sender's and the
/// receiver's work overlap with the transfer, so that `send` and `receive` as measured may be more than the whole. Then they
/// are made smaller, in proportion, until a twentieth is left to the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The time of a message: half of a ping-pong.
    pub one_way: Fitted,
    /// Of that, what the network takes.
    pub network: Curve,
    /// What a blocking send takes of messages below `detached_below`.
    pub send: Option<Fitted>,
    /// What a non-blocking send takes.
    pub isend: Option<Fitted>,
    /// What a receive takes of messages below `detached_below`.
    pub receive: Option<Fitted>,
    /// Where the ways of sending change.
    pub thresholds: Thresholds,
    /// The time of posting a receive that does not block \[s\].
    pub irecv_s: Option<f64>,
    /// The time of a test in vain \[s\].
    pub test_s: Option<f64>,
    /// The time of a look for a message in vain \[s\].
    pub iprobe_s: Option<f64>,
    /// What a core computes [flop/s].
    pub speed: Option<f64>,
    /// What computations of a program were measured to take, by its regions; none where there is no such program.
    pub computations: Vec<Computations>,
    /// The time per message of many in flight together.
    pub streams: Vec<Point>,
    /// Smaller messages than this had no ping-pong: their time is the sum of both overheads and the time of their bytes.
    pub composed_below: Option<u64>,
}

/// A curve, and the points that it was fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// What was measured.
    pub operation: Operation,
    /// Medians by growing size.
    pub points: Vec<Point>,
    /// The curve.
    pub curve: Curve,
}

/// Computations of a program in one of its regions, as they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Computations {
    /// The region; empty for what comes before any.
    pub region: String,
    /// Their number.
    pub count: u64,
    /// What they compute \[flop\].
    pub amount: f64,
    /// How long they take \[s\], of all processes together.
    pub seconds: f64,
}

impl Computations {
    /// Returns what a core computes in this region [flop/s]; `None` where that is not a positive number.
    pub fn rate(&self) -> Option<f64> {
        let rate = self.amount / self.seconds;
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }
}

/// Why no machine can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Without ping-pong nothing is known of the time of a message.
    #[error(
        "found {found}, expected ping-pong of two processes: osu_latency, IMB PingPong, SKaMPI Pingpong_Send_Recv, or \
         observations of `pingpong`"
    )]
    NoPingPong {
        /// What was found.
        found: String,
    },
    /// A line needs two sizes.
    #[error("found ping-pong of one size, {size} B, expected at least two")]
    OneSize {
        /// The size \[B\].
        size: u64,
    },
}

impl Fitted {
    fn new(operation: Operation, points: Vec<Point>, least: Line) -> Option<Self> {
        let curve = segmentation::fit(&points, least)?;
        Some(Self { operation, points, curve })
    }

    /// Returns what the curve is of: a message, or a call.
    pub fn name(&self) -> &'static str {
        match self.operation {
            Operation::PingPong => "message",
            Operation::Send | Operation::SendLate => "MPI_Send",
            Operation::Receive => "MPI_Recv",
            Operation::Isend => "MPI_Isend",
            other => other.name(),
        }
    }

    /// Returns what durations are multiplied by for the curve: half of a ping-pong is a message.
    pub(crate) fn scale(&self) -> f64 {
        if self.operation == Operation::PingPong { 0.5 } else { 1.0 }
    }

    /// Returns the residuals of each segment; `None` where nothing was measured.
    pub fn residuals(&self) -> Vec<Option<Residuals>> {
        self.curve.residuals(&self.points)
    }
}

impl Machine {
    /// Fits a machine to the medians of measurements.
    ///
    /// # Errors
    /// Where there is no ping-pong of two sizes.
    pub fn fit(measurements: &Measurements) -> Result<Self, FitError> {
        Self::fit_at(measurements, 0.5)
    }

    /// Fits a machine to durations that this part of the observations of a size does not exceed. Where a machine is busy with
    /// other work, which makes durations longer, a small part tells more of the machine than the median.
    ///
    /// `O(n^2)` in the number of sizes, but of the first 1200 only.
    ///
    /// # Errors
    /// Where there is no ping-pong of two sizes.
    ///
    /// # Panics
    /// Where the quantile is not in 0 to 1.
    pub fn fit_at(measurements: &Measurements, quantile: f64) -> Result<Self, FitError> {
        let points_of = |operation| measurements.points_at(operation, quantile);
        let (points, composed_below) = message_times(measurements, quantile)?;
        let error = FitError::NoPingPong { found: found(measurements) };
        let least = least(&points);
        let mut one_way = Fitted::new(Operation::PingPong, points, least).ok_or(error)?;
        let thresholds = Thresholds::find(measurements, quantile, &one_way.curve);
        one_way.curve.snap(thresholds.detached_below, &one_way.points);
        let detached = |operation| {
            let mut points = points_of(operation);
            points.retain(|point| point.amount < thresholds.detached_below);
            Fitted::new(operation, points, FREE)
        };
        let send = detached(Operation::SendLate).or_else(|| detached(Operation::Send));
        let receive = detached(Operation::Receive);
        let split = Split::new(&one_way.curve, [&send, &receive], thresholds.detached_below);
        let adjusted = |fitted: Option<Fitted>, curve: Curve| fitted.map(|fitted| Fitted { curve, ..fitted });
        let only = |operation| points_of(operation).first().copied();
        Ok(Self {
            one_way,
            network: split.network,
            send: adjusted(send, split.send),
            receive: adjusted(receive, split.receive),
            isend: Fitted::new(Operation::Isend, points_of(Operation::Isend), FREE),
            thresholds,
            irecv_s: only(Operation::Irecv).map(|point| point.typical_s),
            test_s: only(Operation::Test).map(|point| point.typical_s),
            iprobe_s: only(Operation::Iprobe).map(|point| point.typical_s),
            speed: only(Operation::Compute).map(|point| point.amount as f64 / point.typical_s),
            computations: Vec::new(),
            streams: points_of(Operation::Stream),
            composed_below,
        })
    }

    /// Takes the speed of a core from the computations of a program, all together; the [speeds](Computations::rate) of regions are
    /// then told as multiples of it. Computations of no amount or no time tell nothing.
    pub fn compute_as(&mut self, computations: Vec<Computations>) {
        self.computations = computations;
        self.computations.retain(|region| region.rate().is_some());
        let all = self.computations.iter().fold(Computations::default(), |all, one| Computations {
            region: String::new(),
            count: all.count + one.count,
            amount: all.amount + one.amount,
            seconds: all.seconds + one.seconds,
        });
        self.speed = all.rate().or(self.speed);
    }

    /// Returns what was fitted.
    pub fn fits(&self) -> impl Iterator<Item = &Fitted> {
        [Some(&self.one_way), self.send.as_ref(), self.isend.as_ref(), self.receive.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Returns the latency of the network \[s\]: that of a message of no bytes.
    pub fn latency_s(&self) -> f64 {
        self.network.segments()[0].line.constant_s
    }

    /// Returns the bandwidth of the network [B/s]: that of the largest messages.
    pub fn bandwidth(&self) -> f64 {
        let segments = self.network.segments();
        1.0 / segments[segments.len() - 1].line.slope_s
    }

    /// Returns what the model has for the time per message of many in flight together \[s\]: what takes longest of the
    /// network, the sender and the receiver.
    pub fn stream_s(&self, bytes: u64) -> f64 {
        let is_detached = bytes < self.thresholds.detached_below;
        let network = self.network.line(bytes).slope_s * bytes as f64;
        let sender = self.isend.as_ref().map_or(0.0, |fitted| fitted.curve.at(bytes));
        let receiver =
            self.receive.as_ref().filter(|_| is_detached).map_or(0.0, |fitted| fitted.curve.at(bytes));
        network.max(sender).max(receiver)
    }

    /// Returns sentences on what is not to be trusted.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for fitted in self.fits() {
            for (segment, residuals) in fitted.curve.segments().iter().zip(fitted.residuals()) {
                let Some(residuals) = residuals.filter(|residuals| residuals.median > LARGE_RESIDUAL) else {
                    continue;
                };
                warnings.push(format!(
                    "{} above {} B: half of the sizes are more than {:.0} % away from the fit",
                    fitted.name(),
                    segment.above,
                    100.0 * residuals.median
                ));
            }
        }
        let largest = self.one_way.points.last().map_or(0, |point| point.amount);
        if largest < LARGE_MESSAGE {
            warnings.push(format!(
                "the bandwidth is that of messages of up to {largest} B; expected some of {LARGE_MESSAGE} B and more"
            ));
        }
        let segments = self.one_way.curve.segments();
        if segments[segments.len() - 1].line.slope_s <= least(&self.one_way.points).slope_s {
            warnings.push(
                "the time of the largest messages does not grow with their size: the bandwidth is not known"
                    .to_owned(),
            );
        }
        if let Some(bytes) = self.composed_below {
            warnings.push(format!(
                "there is no ping-pong of less than {bytes} B: the time of such messages is the sum of what both sides do"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::split::NETWORK_SHARE;
    use super::*;
    use crate::threshold::Evidence;

    /// Sizes by factors of 1.2 up to 4 MiB.
    fn sizes() -> impl Iterator<Item = u64> {
        (0..=80).map(|place| (1.2_f64.powi(place) * 2.0) as u64)
    }

    fn send(bytes: u64) -> f64 {
        2e-7 + bytes as f64 * 5e-11
    }

    fn receive(bytes: u64) -> f64 {
        1e-7 + bytes as f64 * 4e-11
    }

    fn network(bytes: u64) -> f64 {
        let bytes = bytes as f64;
        if bytes < 8000.0 { 1e-6 + bytes * 1e-10 } else { 5e-6 + bytes * 8e-11 }
    }

    fn whole(bytes: u64) -> f64 {
        if bytes < 8000 { send(bytes) + network(bytes) + receive(bytes) } else { network(bytes) }
    }

    fn measured(overheads: f64) -> Measurements {
        let mut measurements = Measurements::default();
        for size in sizes() {
            let mut push = |operation, duration| measurements.push(operation, size, 0.0, duration);
            push(Operation::PingPong, 2.0 * whole(size));
            let waits = size >= 8000;
            push(Operation::SendLate, if waits { 1e-3 } else { send(size) * overheads });
            push(Operation::Receive, if waits { network(size) } else { receive(size) * overheads });
            push(Operation::Isend, send(size) * overheads);
        }
        measurements.push(Operation::Compute, 1000, 0.0, 1e-6);
        measurements.push(Operation::Test, 0, 0.0, 5e-8);
        measurements
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-6, "found {found}, expected {expected}");
    }

    #[test]
    fn a_machine_is_found_again() {
        let machine = Machine::fit(&measured(1.0)).unwrap();
        let first = sizes().find(|&size| size >= 8000).unwrap();
        let expected = Thresholds { detached_below: first, evidence: Evidence::LateReceiver };
        assert_eq!(machine.thresholds, expected);
        assert_eq!(machine.network.breakpoints().collect::<Vec<_>>(), [first - 1]);
        for size in sizes() {
            close(machine.network.at(size), network(size));
            close(machine.isend.as_ref().unwrap().curve.at(size), send(size));
        }
        for size in sizes().filter(|&size| size < first) {
            close(machine.send.as_ref().unwrap().curve.at(size), send(size));
            close(machine.receive.as_ref().unwrap().curve.at(size), receive(size));
        }
        close(machine.latency_s(), 1e-6);
        close(machine.bandwidth(), 1.0 / 8e-11);
        close(machine.speed.unwrap(), 1e9);
        assert_eq!((machine.test_s, machine.iprobe_s, machine.warnings()), (Some(5e-8), None, Vec::new()));
    }

    #[test]
    fn overheads_leave_something_to_the_network() {
        let machine = Machine::fit(&measured(5.0)).unwrap();
        let [send, receive] = [&machine.send, &machine.receive].map(|fitted| &fitted.as_ref().unwrap().curve);
        for size in sizes().filter(|&size| size < 8000) {
            close(send.at(size) + machine.network.at(size) + receive.at(size), whole(size));
            let Line { constant_s, slope_s } = machine.network.line(size);
            close(constant_s, NETWORK_SHARE * 1.3e-6);
            close(slope_s, NETWORK_SHARE * 1.9e-10);
        }
        assert!(!machine.warnings().is_empty(), "sends are not as measured");
    }

    #[test]
    fn small_messages_without_ping_pong_are_composed() {
        let mut measurements = Measurements::default();
        for size in sizes() {
            if size < 8000 {
                measurements.push(Operation::Send, size, 0.0, send(size));
                measurements.push(Operation::Receive, size, 0.0, receive(size));
            } else {
                measurements.push(Operation::PingPong, size, 0.0, 2.0 * network(size));
            }
        }
        let machine = Machine::fit(&measurements).unwrap();
        let first = sizes().find(|&size| size >= 8000).unwrap();
        assert_eq!((machine.composed_below, machine.thresholds.detached_below), (Some(first), first));
        for size in sizes().filter(|&size| size < 8000) {
            close(machine.one_way.curve.at(size), send(size) + receive(size) + size as f64 * 8e-11);
        }
        assert_eq!(machine.warnings().len(), 1);
    }

    #[test]
    fn a_time_that_does_not_grow_gives_no_bandwidth() {
        let mut measurements = Measurements::default();
        sizes()
            .for_each(|size| measurements.push(Operation::PingPong, size, 0.0, 2.0 * whole(size).min(2e-5)));
        let machine = Machine::fit(&measurements).unwrap();
        let largest = sizes().last().unwrap() as f64;
        close(machine.bandwidth(), 10.0 * largest / 2e-5);
        assert!(
            machine.warnings().iter().any(|warning| warning.contains("does not grow")),
            "{:?}",
            machine.warnings()
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut measurements = Measurements::default();
        let found = |found: &str| Err(FitError::NoPingPong { found: found.to_owned() });
        assert_eq!(Machine::fit(&measurements), found("no observations"));
        measurements.push(Operation::Stream, 8, 0.0, 1.0);
        measurements.push(Operation::Isend, 8, 0.0, 1.0);
        assert_eq!(Machine::fit(&measurements), found("isend, stream"));
        measurements.push(Operation::PingPong, 8, 0.0, 1.0);
        assert_eq!(Machine::fit(&measurements), Err(FitError::OneSize { size: 8 }));
        measurements.push(Operation::PingPong, 16, 0.0, 1.5);
        assert_eq!(Machine::fit(&measurements).unwrap().warnings().len(), 1, "16 B are not large");
    }
}
