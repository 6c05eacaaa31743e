//! A program of typical calls, to be recorded: its calls lie between computations, as those of a program do.

use fastrand::Rng;
use mpi::collective::SystemOperation;
use mpi::point_to_point::send_receive_into;
use mpi::request::{multiple_scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};

use super::MeasureError;
use super::kernel::Kernel;

/// Largest message of the program \[B\].
const LARGEST: usize = 1 << 20;
/// Bytes of other data that a computation visits: the caches lose what the library had there, the innermost ones more often.
const VISITED_BYTES: [usize; 4] = [0, 1 << 15, 1 << 18, 1 << 21];
/// Least and greatest number of passes of a computation.
const PASSES: [f64; 2] = [10.0, 500.0];
/// Number of passes of a computation between the starts of messages and their completion.
const OVERLAPPED_PASSES: usize = 50;
/// Largest message that is received by tests, or as one of a list \[B\]. A larger one would wait for the next call of its receiver, and
/// its time would count as that of the calls.
const SMALL: usize = 64;
/// Largest number of elements of a collective operation for each rank.
const ELEMENTS: f64 = 131_072.0;
/// Largest number of messages that are pending together.
const PENDING: usize = 6;
/// Largest number of small messages that are completed by one list of requests.
const LISTED: f64 = 64.0;

/// Runs a program of typical calls on two processes: exchanges with several messages pending, in both directions at once, blocking
/// messages, also across each other, collective operations, also of one process alone, and polls, of random sizes, each after a
/// computation of 2 to 100 microseconds on a usual core. As in programs, buffers are used again and again, and a process has written
/// what it sends. `steps` is the number of exchanges or operations, `seed` that of the random choices.
///
/// # Errors
/// MPI is in use already, or there are not two processes.
pub fn run_program(steps: u32, seed: u64) -> Result<(), MeasureError> {
    let universe = mpi::initialize().ok_or(MeasureError::Initialised)?;
    let world = universe.world();
    if world.size() != 2 {
        return Err(MeasureError::Processes { found: world.size() });
    }
    let mut program = Program::new(world);
    // Both processes make the same choices.
    let mut random = Rng::with_seed(seed);
    for _ in 0..steps {
        program.compute(&mut random);
        program.communicate(&mut random);
    }
    Ok(())
}

/// One of the two processes.
struct Program {
    world: SimpleCommunicator,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    visited: Vec<u8>,
    kernel: Kernel,
}

impl Program {
    fn new(world: SimpleCommunicator) -> Self {
        let [outgoing, incoming] = [1, 2].map(|byte| vec![byte; PENDING * LARGEST]);
        let visited = vec![3; VISITED_BYTES[3]];
        Self { world, outgoing, incoming, visited, kernel: Kernel::new() }
    }

    /// Computes, and visits other data.
    fn compute(&mut self, random: &mut Rng) {
        // Both processes draw for both, which computes apart.
        let [mine, other] = [(); 2].map(|()| log_uniform(random, PASSES));
        self.kernel.run_passes(if self.world.rank() == 0 { mine } else { other });
        let visited = VISITED_BYTES[random.usize(..VISITED_BYTES.len())];
        for byte in self.visited[..visited].iter_mut().step_by(64) {
            *byte = byte.wrapping_add(1);
        }
        std::hint::black_box(&mut self.visited);
    }

    fn communicate(&mut self, random: &mut Rng) {
        let bytes = log_uniform(random, [1.0, LARGEST as f64]);
        match random.u32(..14) {
            0 | 1 => self.exchange(bytes, random),
            2 | 3 => self.cross(bytes),
            12 => self.exchange_lists(bytes, random),
            13 => self.alone(bytes),
            4 => self.blocking(bytes),
            5 => self.send_receive(bytes),
            6 => self.poll(bytes, random),
            other => self.collective(other, random),
        }
    }

    /// Exchanges up to [`PENDING`] messages in both directions, with a computation before they are completed.
    fn exchange(&mut self, bytes: usize, random: &mut Rng) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let messages = random.usize(1..=PENDING);
        let overlaps = random.bool();
        write(&mut self.outgoing[..messages * bytes]);
        let incoming = self.incoming.chunks_exact_mut(bytes).take(messages);
        let outgoing = self.outgoing.chunks_exact(bytes).take(messages);
        let kernel = &mut self.kernel;
        scope(|scope| {
            let receives: Vec<_> = incoming.map(|place| peer.immediate_receive_into(scope, place)).collect();
            let sends: Vec<_> = outgoing.map(|data| peer.immediate_send(scope, data)).collect();
            if overlaps {
                kernel.run_passes(OVERLAPPED_PASSES);
            }
            receives.into_iter().chain(sends).for_each(|request| {
                request.wait_without_status();
            });
        });
    }

    /// Sends a message in each direction at once by blocking calls, for receives that are posted before.
    fn cross(&mut self, bytes: usize) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (outgoing, incoming) = (&mut self.outgoing[..bytes], &mut self.incoming[..bytes]);
        scope(|scope| {
            let receive = peer.immediate_receive_into(scope, incoming);
            write(outgoing);
            peer.send(&*outgoing);
            receive.wait_without_status();
        });
    }

    /// Exchanges small messages in both directions that are completed as a list of requests, all together or one after the other.
    fn exchange_lists(&mut self, bytes: usize, random: &mut Rng) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let messages = log_uniform(random, [1.0, LISTED]);
        let bytes = bytes.min(SMALL);
        let waits_for_all = random.bool();
        write(&mut self.outgoing[..messages * bytes]);
        let incoming = self.incoming.chunks_exact_mut(bytes).take(messages);
        let outgoing = self.outgoing.chunks_exact(bytes).take(messages);
        let kernel = &mut self.kernel;
        multiple_scope(2 * messages, |scope, requests| {
            incoming.for_each(|place| {
                requests.add(peer.immediate_receive_into(scope, place));
            });
            outgoing.for_each(|data| {
                requests.add(peer.immediate_send(scope, data));
            });
            kernel.run_passes(OVERLAPPED_PASSES);
            if waits_for_all {
                requests.wait_all(&mut Vec::new());
            } else {
                (0..2 * messages).for_each(|_| {
                    requests.wait_any();
                });
            }
        });
    }

    /// A collective operation of this process alone.
    fn alone(&mut self, bytes: usize) {
        let world = SimpleCommunicator::self_comm();
        world.process_at_rank(0).broadcast_into(&mut self.outgoing[..bytes]);
    }

    /// A blocking message there, and one back.
    fn blocking(&mut self, bytes: usize) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (outgoing, incoming) = (&mut self.outgoing[..bytes], &mut self.incoming[..bytes]);
        write(outgoing);
        if self.world.rank() == 0 {
            peer.send(&*outgoing);
            self.kernel.run_passes(OVERLAPPED_PASSES);
            peer.receive_into(incoming);
        } else {
            peer.receive_into(incoming);
            self.kernel.run_passes(OVERLAPPED_PASSES);
            peer.send(&*outgoing);
        }
    }

    fn send_receive(&mut self, bytes: usize) {
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (outgoing, incoming) = (&mut self.outgoing[..bytes], &mut self.incoming[..bytes]);
        write(outgoing);
        send_receive_into(&*outgoing, &peer, incoming, &peer);
    }

    /// Receives a small message by tests, with computations between them, or with nothing else.
    fn poll(&mut self, bytes: usize, random: &mut Rng) {
        let computes = random.bool();
        let bytes = bytes.min(SMALL);
        let peer = self.world.process_at_rank(1 - self.world.rank());
        let (outgoing, incoming) = (&mut self.outgoing[..bytes], &mut self.incoming[..bytes]);
        write(outgoing);
        let kernel = &mut self.kernel;
        if self.world.rank() == 0 {
            kernel.run_passes(OVERLAPPED_PASSES);
            peer.send(&*outgoing);
            return;
        }
        scope(|scope| {
            let mut pending = Some(peer.immediate_receive_into(scope, incoming));
            while let Some(request) = pending.take() {
                pending = request.test().err();
                if computes {
                    kernel.run_passes(OVERLAPPED_PASSES);
                }
            }
        });
    }

    fn collective(&mut self, which: u32, random: &mut Rng) {
        let count = log_uniform(random, [1.0, ELEMENTS]);
        let (mine, mut all) = (vec![1.0_f64; 2 * count], vec![0.0_f64; 2 * count]);
        let root = self.world.process_at_rank(random.i32(0..2));
        let is_root = root.is_self();
        match which {
            7 | 8 => self.world.all_reduce_into(&mine[..count], &mut all[..count], SystemOperation::sum()),
            9 => root.broadcast_into(&mut all[..count]),
            10 => match random.u32(..4) {
                0 => self.world.barrier(),
                1 if is_root => {
                    root.reduce_into_root(&mine[..count], &mut all[..count], SystemOperation::max())
                }
                1 => root.reduce_into(&mine[..count], SystemOperation::max()),
                2 if is_root => root.gather_into_root(&mine[..count], &mut all[..]),
                2 => root.gather_into(&mine[..count]),
                _ if is_root => root.scatter_into_root(&mine[..], &mut all[..count]),
                _ => root.scatter_into(&mut all[..count]),
            },
            _ if random.bool() => self.world.all_gather_into(&mine[..count], &mut all[..]),
            _ => self.world.all_to_all_into(&mine[..], &mut all[..]),
        }
    }
}

/// Draws a number with a constant density of its logarithm.
fn log_uniform(random: &mut Rng, [least, greatest]: [f64; 2]) -> usize {
    (least.ln() + random.f64() * (greatest / least).ln()).exp() as usize
}

/// Writes data to be sent.
fn write(data: &mut [u8]) {
    for byte in data.iter_mut() {
        *byte = byte.wrapping_add(1);
    }
    std::hint::black_box(data);
}
