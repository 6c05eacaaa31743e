//! Parameters of a machine, fitted to measurements.

mod message;
mod split;

use crate::call::CallCost;
use crate::curve::{Curve, Residuals};
use crate::line::Line;
use crate::observation::{Measurements, Operation, Point};
use crate::segmentation;
use crate::threshold::Thresholds;
use message::{lower_bound, measured_operations, message_times};
use split::Split;

/// Lower bound of overheads, which may be zero.
const NO_OVERHEAD: Line = Line { constant_s: 0.0, slope_s: 0.0 };
/// Median relative distance from a curve above which a warning is given.
const LARGE_RESIDUAL: f64 = 0.1;
/// Size that the largest message must reach for a reliable bandwidth \[B\].
const LARGE_MESSAGE: u64 = 1 << 16;

/// A machine: the costs of messages in the terms of the message model.
///
/// A message of `n` bytes below `detached_below` to a waiting receiver takes `send(n) + network(n) + receive(n)`, a larger
/// one `network(n)`: this sum is the fitted time of a message, half of a ping-pong. On a real machine the work of sender
/// and receiver overlaps with the transfer, so that the measured `send` and `receive` may exceed the whole. They are then
/// scaled down, in proportion, until a twentieth is left to the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Time of a message: half of a ping-pong.
    pub one_way: Fitted,
    /// Share of the network in that time.
    pub network: Curve,
    /// Duration of a blocking send below `detached_below`.
    pub send: Option<Fitted>,
    /// Duration of the call of a non-blocking send.
    pub isend: Option<Fitted>,
    /// Duration of a receive below `detached_below`.
    pub receive: Option<Fitted>,
    /// Sizes at which the protocol changes.
    pub thresholds: Thresholds,
    /// Duration of posting a non-blocking receive \[s\].
    pub irecv_s: Option<f64>,
    /// Duration of a failed test \[s\].
    pub test_s: Option<f64>,
    /// Duration of a failed `MPI_Iprobe` \[s\].
    pub iprobe_s: Option<f64>,
    /// Speed of a core [flop/s].
    pub speed: Option<f64>,
    /// The machine is the one that this process runs on, where programs run online at its speed.
    pub is_local: bool,
    /// Measured computations of a program by region; empty if there is no such program.
    pub computations: Vec<Computations>,
    /// Time of the library itself in calls, fitted to programs; empty if there is no such program.
    pub call_costs: Vec<CallCost>,
    /// Time per message of many in flight together.
    pub streams: Vec<Point>,
    /// Size below which there was no ping-pong \[B\]: the time of smaller messages is the sum of both overheads and the
    /// time of their bytes.
    pub composed_below: Option<u64>,
}

/// A curve and the points to which it was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Operation that was measured.
    pub operation: Operation,
    /// Typical durations by growing size.
    pub points: Vec<Point>,
    /// The curve.
    pub curve: Curve,
}

/// Measured computations of a program in one of its regions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Computations {
    /// Name of the region; empty for computations before any region.
    pub region: String,
    /// Number of computations.
    pub count: u64,
    /// Amount of computation \[flop\].
    pub amount: f64,
    /// Duration \[s\], summed over all processes.
    pub seconds: f64,
}

impl Computations {
    /// Returns the speed of a core in this region [flop/s]; `None` if that is not a positive number.
    pub fn rate(&self) -> Option<f64> {
        let rate = self.amount / self.seconds;
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }
}

/// Error of fitting a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are no ping-pongs, from which the time of a message is known.
    #[error(
        "found {found}, expected ping-pong of two processes: osu_latency, IMB PingPong, SKaMPI Pingpong_Send_Recv, or \
         observations of `pingpong`"
    )]
    NoPingPong {
        /// Operations that were found.
        found: String,
    },
    /// There is only one size; a line needs two.
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

    /// Returns the name of what the curve describes: a message, or an MPI call.
    pub fn name(&self) -> &'static str {
        match self.operation {
            Operation::PingPong => "message",
            Operation::Send | Operation::SendLate => "MPI_Send",
            Operation::Receive => "MPI_Recv",
            Operation::Isend => "MPI_Isend",
            other => other.name(),
        }
    }

    /// Returns the residuals of each segment; `None` for a segment without measurements.
    pub fn residuals(&self) -> Vec<Option<Residuals>> {
        self.curve.residuals(&self.points)
    }
}

impl Machine {
    /// Fits a machine to the medians of measurements.
    ///
    /// # Errors
    /// If there is no ping-pong of two sizes.
    pub fn fit(measurements: &Measurements) -> Result<Self, FitError> {
        Self::fit_quantile(measurements, 0.5)
    }

    /// Fits a machine to a quantile of the durations of each size. On a machine that is busy with other work, which
    /// lengthens durations, a small quantile describes the machine better than the median.
    ///
    /// Takes `O(n^2)` in the number of sizes, of which at most 1200 are used; more are thinned out.
    ///
    /// # Errors
    /// If there is no ping-pong of two sizes.
    ///
    /// # Panics
    /// If the quantile is not in 0 to 1.
    pub fn fit_quantile(measurements: &Measurements, quantile: f64) -> Result<Self, FitError> {
        let points_of = |operation| measurements.points_at_quantile(operation, quantile);
        let (points, composed_below) = message_times(measurements, quantile)?;
        let error = FitError::NoPingPong { found: measured_operations(measurements) };
        let least = lower_bound(&points);
        let mut one_way = Fitted::new(Operation::PingPong, points, least).ok_or(error)?;
        let thresholds = Thresholds::find(measurements, quantile, &one_way.curve);
        one_way.curve.snap_breakpoint(thresholds.detached_below, &one_way.points);
        let detached = |operation| {
            let mut points = points_of(operation);
            points.retain(|point| point.amount < thresholds.detached_below);
            Fitted::new(operation, points, NO_OVERHEAD)
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
            isend: Fitted::new(Operation::Isend, points_of(Operation::Isend), NO_OVERHEAD),
            thresholds,
            irecv_s: only(Operation::Irecv).map(|point| point.typical_s),
            test_s: only(Operation::Test).map(|point| point.typical_s),
            iprobe_s: only(Operation::Iprobe).map(|point| point.typical_s),
            speed: only(Operation::Compute).map(|point| point.amount as f64 / point.typical_s),
            is_local: false,
            computations: Vec::new(),
            call_costs: Vec::new(),
            streams: points_of(Operation::Stream),
            composed_below,
        })
    }

    /// Sets the speed of a core to that of all computations of a program together; the [speeds](Computations::rate) of
    /// regions are then reported as multiples of it. Computations of no amount or no time are ignored.
    pub fn set_computations(&mut self, computations: Vec<Computations>) {
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

    /// Returns the fits: the message, and the MPI calls that were measured.
    pub fn fits(&self) -> impl Iterator<Item = &Fitted> {
        [Some(&self.one_way), self.send.as_ref(), self.isend.as_ref(), self.receive.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Returns the latency of the network \[s\]: that of a message of zero bytes.
    pub fn latency_s(&self) -> f64 {
        self.network.segments()[0].line.constant_s
    }

    /// Returns the bandwidth of the network [B/s]: that of the largest messages.
    pub fn bandwidth(&self) -> f64 {
        let segments = self.network.segments();
        1.0 / segments[segments.len() - 1].line.slope_s
    }

    /// Returns the modelled time per message of many in flight together \[s\]: the maximum of network, sender and receiver.
    pub fn stream_s(&self, bytes: u64) -> f64 {
        let is_detached = bytes < self.thresholds.detached_below;
        let network = self.network.line(bytes).slope_s * bytes as f64;
        let sender = self.isend.as_ref().map_or(0.0, |fitted| fitted.curve.at(bytes));
        let receiver =
            self.receive.as_ref().filter(|_| is_detached).map_or(0.0, |fitted| fitted.curve.at(bytes));
        network.max(sender).max(receiver)
    }

    /// Returns warnings: sentences on results that are not reliable.
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
        if segments[segments.len() - 1].line.slope_s <= lower_bound(&self.one_way.points).slope_s {
            warnings.push(
                "the time of the largest messages does not grow with their size: the bandwidth is not known"
                    .to_owned(),
            );
        }
        if let Some(bytes) = self.composed_below {
            warnings.push(format!(
                "there is no ping-pong of less than {bytes} B: the time of such messages is the sum of the overheads of both sides"
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
    fn a_machine_is_recovered() {
        let machine = Machine::fit(&measured(1.0)).unwrap();
        let first = sizes().find(|&size| size >= 8000).unwrap();
        let expected =
            Thresholds { detached_below: first, evidence: Evidence::LateReceiver, progress_in_calls: false };
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
    fn missing_measurements_are_reported() {
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
