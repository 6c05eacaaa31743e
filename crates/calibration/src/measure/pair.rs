//! Two processes that exchange messages.

use mpi::request::{Request, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

use super::clock::Clock;
use super::kernel::Kernel;
use crate::observation::{Measurements, Operation};
use crate::plan::Experiment;
use crate::threshold::first;

/// Recorded rounds of a visit; one that is not recorded comes before.
const ROUNDS: usize = 4;
/// Visits of each size in the search for the threshold.
const SEARCH_VISITS: usize = 5;
/// Messages of the warm-up, of no bytes and of the largest size.
const WARM_UP: (usize, usize) = (100, 5);
/// Tests and looks for messages of a visit, timed together: one is shorter than the clock is exact.
const POLLS: u32 = 64;
/// Messages of a stream: as many as have so many bytes together, but at least the first and at most the second number.
const STREAM_BYTES: u64 = 1 << 22;
const STREAM: (u64, u64) = (8, 64);
/// A late receiver comes so much later, and as many messages later besides [s].
const LATE_S: f64 = 20e-6;
const LATE_MESSAGES: f64 = 4.0;
/// Tells the other process that there are no more sizes.
const NO_MORE: u64 = u64::MAX;

/// One of two processes.
pub(super) struct Pair {
    world: SimpleCommunicator,
    is_first: bool,
    clock: Clock,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// About what a message takes: without any bytes, and for each byte [s].
    message: [f64; 2],
    measurements: Measurements,
}

impl Pair {
    /// Makes one of the two, and warms up.
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

    /// Does an experiment together with the other process, which does the same.
    pub(super) fn run(&mut self, experiment: Experiment, kernel: &mut Kernel) {
        match experiment {
            Experiment::PingPong(bytes) => self.ping_pong(bytes, ROUNDS),
            Experiment::Late(bytes) => self.late(bytes),
            Experiment::Isend(bytes) => self.isend(bytes),
            Experiment::Stream(bytes) => self.stream(bytes),
            Experiment::Irecv => self.irecv(),
            Experiment::Poll => self.poll(),
            Experiment::Compute => self.compute(kernel),
        }
    }

    /// Finds out what a message takes about, and starts the clock.
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

    /// How long a late receiver waits [s].
    fn lateness(&self, bytes: u64) -> f64 {
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

    fn late(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let lateness = self.lateness(bytes);
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

    fn isend(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let lateness = self.lateness(bytes);
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

    /// The message is sent when its receive is posted, one by one: in a program, other work lies between two calls.
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

    /// All receives are posted before the first message is sent; a message of no bytes says that all have come.
    fn stream(&mut self, bytes: u64) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (messages, length) = (window(bytes), bytes as usize);
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
        let (start, duration, ()) = self.clock.time(|| {
            for _ in 0..POLLS {
                // No message is there.
                let _ = peer.immediate_probe();
            }
        });
        self.measurements.push(Operation::Iprobe, 0, start, duration / f64::from(POLLS));
        let mut place = [0_u8; 0];
        let (start, duration) = scope(|scope| {
            let mut posted = Some(peer.immediate_receive_into(scope, &mut place[..]));
            // The other process sends when it has received: no test succeeds.
            let (start, duration, ()) = self.clock.time(|| {
                (0..POLLS).for_each(|_| posted = posted.take().and_then(|request| request.test().err()));
            });
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

    /// Looks for the size from which on sends wait for a late receiver, between two sizes that were measured.
    pub(super) fn search_threshold(&mut self) {
        if !self.is_first {
            while let Some(bytes) = self.next_size() {
                self.late(bytes);
            }
            return;
        }
        if let Some((mut below, mut above)) = self.around_threshold() {
            while above - below > 1 {
                let middle = below + (above - below) / 2;
                for _ in 0..SEARCH_VISITS {
                    self.tell_size(middle);
                    self.late(middle);
                }
                if self.waits(middle) { above = middle } else { below = middle }
            }
        }
        self.tell_size(NO_MORE);
    }

    fn tell_size(&self, bytes: u64) {
        self.world.process_at_rank(1).send(&bytes);
    }

    fn next_size(&self) -> Option<u64> {
        let (bytes, _) = self.world.process_at_rank(0).receive::<u64>();
        (bytes != NO_MORE).then_some(bytes)
    }

    /// The sizes beside the threshold, if it lies among those that were measured.
    fn around_threshold(&self) -> Option<(u64, u64)> {
        let points = self.measurements.points(Operation::SendLate);
        let above = first(&points, |point| point.low_s > self.lateness(point.amount) / 2.0)?;
        let below = points.iter().rev().map(|point| point.amount).find(|&amount| amount < above)?;
        Some((below, above))
    }

    /// Whether sends of this size wait: whoever waits always does, others may be disturbed.
    fn waits(&self, bytes: u64) -> bool {
        let points = self.measurements.points(Operation::SendLate);
        let own = points.iter().find(|point| point.amount == bytes);
        own.is_some_and(|point| point.low_s > self.lateness(bytes) / 2.0)
    }

    /// Brings the observations of both together at the first process.
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

/// Messages of a stream.
fn window(bytes: u64) -> u64 {
    (STREAM_BYTES / bytes.max(1)).clamp(STREAM.0, STREAM.1)
}
