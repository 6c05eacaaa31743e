//! Two processes that exchange messages.

use mpi::request::{Request, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

use super::clock::Clock;
use super::kernel::Kernel;
use crate::observation::{Measurements, Operation};
use crate::plan::Experiment;
use crate::threshold::first_size_where;

/// Number of recorded rounds per visit, after one that is not recorded.
const ROUNDS: usize = 4;
/// Number of visits of each size in the search for the threshold.
const SEARCH_VISITS: usize = 5;
/// Number of messages of the warm-up, of zero bytes and of the largest size.
const WARM_UP: (usize, usize) = (100, 5);
/// Number of tests, and of probes, per visit, timed together: one is shorter than the accuracy of the clock.
const POLLS: u32 = 64;
/// Total size of a stream \[B\], and the minimum and maximum number of its messages.
const STREAM_BYTES: u64 = 1 << 22;
const STREAM: (u64, u64) = (8, 64);
/// Lateness of a receiver: a constant [s], and a number of message times.
const LATE_S: f64 = 20e-6;
const LATE_MESSAGES: f64 = 4.0;
/// Size that ends the search for the threshold.
const NO_MORE: u64 = u64::MAX;

/// One of the two measuring processes.
pub(super) struct MeasuringProcess {
    world: SimpleCommunicator,
    is_first: bool,
    clock: Clock,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// Estimated time of a message: for zero bytes [s], and per byte [s/B].
    message: [f64; 2],
    measurements: Measurements,
}

impl MeasuringProcess {
    /// Returns one of the two processes, after a warm-up.
    pub(super) fn new(world: SimpleCommunicator, clock: Clock, largest: u64) -> Self {
        let most = STREAM_BYTES.max(STREAM.0 * largest);
        let is_first = world.rank() == 0;
        let (outgoing, incoming) = (vec![1; largest as usize], vec![2; most as usize]);
        let mut pair = Self {
            world,
            is_first,
            clock,
            outgoing,
            incoming,
            message: [0.0; 2],
            measurements: Measurements::default(),
        };
        pair.warm_up(largest);
        pair
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Runs an experiment together with the other process, which does the same.
    pub(super) fn run(&mut self, experiment: Experiment, kernel: &mut Kernel) {
        match experiment {
            Experiment::PingPong(bytes) => self.ping_pong(bytes, ROUNDS),
            Experiment::LateReceiver(bytes) => self.late_receiver(bytes),
            Experiment::ComputingReceiver(bytes) => self.computing_receiver(bytes),
            Experiment::Isend(bytes) => self.isend(bytes),
            Experiment::Stream(bytes) => self.stream(bytes),
            Experiment::Irecv => self.irecv(),
            Experiment::Poll => self.poll(),
            Experiment::Compute => self.compute(kernel),
        }
    }

    /// Estimates the time of a message, and starts the clock.
    fn warm_up(&mut self, largest: u64) {
        self.ping_pong(0, WARM_UP.0);
        self.ping_pong(largest, WARM_UP.1);
        let peer = self.world.process_at_rank(1 - self.world.rank());
        if self.is_first {
            let points = self.measurements.points(Operation::PingPong);
            let [small, large] = [&points[0], &points[points.len() - 1]].map(|point| point.typical_s / 2.0);
            self.message = [small, (large - small).max(0.0) / largest.max(1) as f64];
            peer.send(&self.message[..]);
        } else {
            peer.receive_into(&mut self.message[..]);
        }
        self.measurements = Measurements::default();
        self.world.barrier();
        self.clock.restart();
    }

    /// Returns the delay of a late receiver [s].
    fn receiver_delay(&self, bytes: u64) -> f64 {
        LATE_S + LATE_MESSAGES * (self.message[0] + self.message[1] * bytes as f64)
    }

    fn ping_pong(&mut self, bytes: u64, rounds: usize) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (outgoing, incoming) = (&self.outgoing[..bytes as usize], &mut self.incoming[..bytes as usize]);
        for round in 0..=rounds {
            if self.is_first {
                let (start, duration, _) = self.clock.time(|| {
                    peer.send(outgoing);
                    peer.receive_into(incoming)
                });
                if round > 0 {
                    self.measurements.push(Operation::PingPong, bytes, start, duration);
                }
            } else {
                peer.receive_into(incoming);
                peer.send(outgoing);
            }
        }
    }

    fn late_receiver(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let lateness = self.receiver_delay(bytes);
        let (outgoing, incoming) = (&self.outgoing[..bytes as usize], &mut self.incoming[..bytes as usize]);
        for round in 0..=ROUNDS {
            self.world.barrier();
            let (operation, (start, duration)) = if self.is_first {
                let (start, duration, ()) = self.clock.time(|| peer.send(outgoing));
                (Operation::SendLate, (start, duration))
            } else {
                self.clock.wait(lateness);
                let (start, duration, _) = self.clock.time(|| peer.receive_into(incoming));
                (Operation::Receive, (start, duration))
            };
            if round > 0 {
                self.measurements.push(operation, bytes, start, duration);
            }
        }
    }

    /// Measures sends to a receiver that computes after it has posted the receive: whether data move while it is in no call.
    fn computing_receiver(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let lateness = self.receiver_delay(bytes);
        let (outgoing, incoming) = (&self.outgoing[..bytes as usize], &mut self.incoming[..bytes as usize]);
        for round in 0..=ROUNDS {
            self.world.barrier();
            if self.is_first {
                self.clock.wait(LATE_S / 4.0);
                let (start, duration, ()) = self.clock.time(|| peer.send(outgoing));
                if round > 0 {
                    self.measurements.push(Operation::SendOverlap, bytes, start, duration);
                }
            } else {
                scope(|scope| {
                    let posted = peer.immediate_receive_into(scope, &mut *incoming);
                    self.clock.wait(lateness);
                    posted.wait_without_status();
                });
            }
        }
    }

    fn isend(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let lateness = self.receiver_delay(bytes);
        let (outgoing, incoming) = (&self.outgoing[..bytes as usize], &mut self.incoming[..bytes as usize]);
        for round in 0..=ROUNDS {
            self.world.barrier();
            if self.is_first {
                let (start, duration) = scope(|scope| {
                    let (start, duration, request) = self.clock.time(|| peer.immediate_send(scope, outgoing));
                    request.wait_without_status();
                    (start, duration)
                });
                if round > 0 {
                    self.measurements.push(Operation::Isend, bytes, start, duration);
                }
            } else {
                self.clock.wait(lateness);
                peer.receive_into(incoming);
            }
        }
    }

    /// Measures posting a receive. Each message is sent after its receive is posted, one by one: in a program, other work
    /// lies between two calls.
    fn irecv(&mut self) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let nothing: &[u8] = &[];
        for round in 0..=ROUNDS {
            self.world.barrier();
            if !self.is_first {
                peer.receive_into(&mut [0_u8; 0][..]);
                peer.send(nothing);
                continue;
            }
            let mut place = [0_u8; 0];
            let (start, duration) = scope(|scope| {
                let (start, duration, request) =
                    self.clock.time(|| peer.immediate_receive_into(scope, &mut place[..]));
                peer.send(nothing);
                request.wait_without_status();
                (start, duration)
            });
            if round > 0 {
                self.measurements.push(Operation::Irecv, 0, start, duration);
            }
        }
    }

    /// Measures a stream. All receives are posted before the first message is sent; a message of zero bytes reports that
    /// all have arrived.
    fn stream(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (messages, length) = (stream_length(bytes), bytes as usize);
        let nothing: &[u8] = &[];
        if self.is_first {
            let outgoing = &self.outgoing[..length];
            self.world.barrier();
            let (start, duration, _) = self.clock.time(|| {
                scope(|scope| {
                    let sent: Vec<_> = (0..messages).map(|_| peer.immediate_send(scope, outgoing)).collect();
                    sent.into_iter().for_each(Request::wait_without_status);
                });
                peer.receive_into(&mut [0_u8; 0][..])
            });
            self.measurements.push(Operation::Stream, bytes, start, duration / messages as f64);
        } else {
            let places = self.incoming.chunks_exact_mut(length).take(messages as usize);
            scope(|scope| {
                let posted: Vec<_> = places.map(|place| peer.immediate_receive_into(scope, place)).collect();
                self.world.barrier();
                posted.into_iter().for_each(Request::wait_without_status);
            });
            peer.send(nothing);
        }
    }

    fn poll(&mut self) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let nothing: &[u8] = &[];
        self.world.barrier();
        if !self.is_first {
            peer.receive_into(&mut [0_u8; 0][..]);
            peer.send(nothing);
            return;
        }
        // No message has been sent.
        let probe = || {
            for _ in 0..POLLS {
                let _ = peer.immediate_probe();
            }
        };
        probe();
        let (start, duration, ()) = self.clock.time(probe);
        self.measurements.push(Operation::Iprobe, 0, start, duration / f64::from(POLLS));
        let mut place = [0_u8; 0];
        let (start, duration) = scope(|scope| {
            let mut posted = Some(peer.immediate_receive_into(scope, &mut place[..]));
            // The other process sends after it has received: no test succeeds.
            let mut test = || {
                (0..POLLS).for_each(|_| posted = posted.take().and_then(|request| request.test().err()));
            };
            test();
            let (start, duration, ()) = self.clock.time(test);
            peer.send(nothing);
            if let Some(request) = posted {
                request.wait_without_status();
            }
            (start, duration)
        });
        self.measurements.push(Operation::Test, 0, start, duration / f64::from(POLLS));
    }

    fn compute(&mut self, kernel: &mut Kernel) {
        self.world.barrier();
        for round in 0..=ROUNDS {
            let (start, duration, ()) = self.clock.time(|| kernel.run());
            if round > 0 {
                self.measurements.push(Operation::Compute, Kernel::FLOPS, start, duration);
            }
        }
    }

    /// Searches by bisection for the size from which on sends wait for a late receiver, between two measured sizes.
    pub(super) fn search_threshold(&mut self) {
        if !self.is_first {
            while let Some(bytes) = self.recv_size() {
                self.late_receiver(bytes);
            }
            return;
        }
        if let Some((mut below, mut above)) = self.bracket_threshold() {
            while above - below > 1 {
                let middle = below + (above - below) / 2;
                for _ in 0..SEARCH_VISITS {
                    self.send_size(middle);
                    self.late_receiver(middle);
                }
                if self.waits(middle) { above = middle } else { below = middle }
            }
        }
        self.send_size(NO_MORE);
    }

    fn send_size(&self, bytes: u64) {
        self.world.process_at_rank(1).send(&bytes);
    }

    fn recv_size(&self) -> Option<u64> {
        let (bytes, _) = self.world.process_at_rank(0).receive::<u64>();
        (bytes != NO_MORE).then_some(bytes)
    }

    /// Returns the sizes on both sides of the threshold, if it lies among those that were measured.
    fn bracket_threshold(&self) -> Option<(u64, u64)> {
        let points = self.measurements.points(Operation::SendLate);
        let above = first_size_where(&points, |point| point.low_s > self.receiver_delay(point.amount) / 2.0)?;
        let below = points.iter().rev().map(|point| point.amount).find(|&amount| amount < above)?;
        Some((below, above))
    }

    /// Returns whether sends of this size wait. The low decile decides: a send that waits always does, others may be
    /// disturbed.
    fn waits(&self, bytes: u64) -> bool {
        let points = self.measurements.points(Operation::SendLate);
        let own = points.iter().find(|point| point.amount == bytes);
        own.is_some_and(|point| point.low_s > self.receiver_delay(bytes) / 2.0)
    }

    /// Gathers the observations of both processes at the first one.
    pub(super) fn gather(mut self) -> Measurements {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        if self.is_first {
            let (rows, _) = peer.receive_vec::<f64>();
            for row in rows.chunks_exact(4) {
                let operation = Operation::ALL[row[0] as usize];
                self.measurements.push(operation, row[1] as u64, row[2], row[3]);
            }
            self.measurements.observations.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
        } else {
            let observations = &self.measurements.observations;
            // Sizes and flops are far below 2^53.
            let rows = observations.iter().flat_map(|one| {
                [f64::from(one.operation as u8), one.amount as f64, one.start_s, one.duration_s]
            });
            peer.send(&rows.collect::<Vec<f64>>()[..]);
        }
        self.measurements
    }
}

/// Returns the number of messages of a stream.
fn stream_length(bytes: u64) -> u64 {
    (STREAM_BYTES / bytes.max(1)).clamp(STREAM.0, STREAM.1)
}
