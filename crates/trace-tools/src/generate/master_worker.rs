//! Master and workers: the master sends tasks and receives results with wildcard receives.

use pdes_core::{Bytes, Rank};

use super::Generator;
use super::error::{GenerateError, check_amount, check_message_size, check_min_ranks};
use super::program::ProgramBuilder;
use trace_mmap::{Item, Tag};

const TASK: Tag = Tag::new(0);
const RESULT: Tag = Tag::new(1);
const END: Tag = Tag::new(2);

/// Parameters of [`MasterWorker`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MasterWorkerParameters {
    /// Number of ranks, 2 or more: a master and its workers; default: 16.
    pub ranks: u32,
    /// Number of tasks; default: 1000.
    pub tasks: u64,
    /// Size of a task \[B\], at most 2^48; default: 1024.
    pub task_bytes: Bytes,
    /// Size of a result \[B\], at most 2^48; default: 8192.
    pub result_bytes: Bytes,
    /// Computation of a worker per task \[flop\]; default: 1e7. [`Jitter`](super::Jitter) makes it uneven.
    pub flops: f64,
}

impl Default for MasterWorkerParameters {
    fn default() -> Self {
        Self {
            ranks: 16,
            tasks: 1000,
            task_bytes: Bytes::new(1024),
            result_bytes: Bytes::new(8192),
            flops: 1e7,
        }
    }
}

/// In each round rank 0 sends a task to every worker and receives as many results from any source; the last round may have
/// fewer tasks than there are workers. Then an empty message ends each worker.
///
/// A trace is fixed before it is replayed, so that the next task cannot go to the first idle worker: tasks are distributed
/// round-robin. Only the order in which the master receives the results depends on time.
///
/// ```
/// use pdes_core::Rank;
/// use trace_tools::generate::{Generator, MasterWorker, MasterWorkerParameters};
/// let parameters = MasterWorkerParameters { ranks: 4, tasks: 8, ..MasterWorkerParameters::default() };
/// let program = MasterWorker::new(parameters)?;
/// // init and finalize of all; 8 tasks are sent, received, computed, answered, and the answers received; 3 ends.
/// assert_eq!(program.actions(), 4 * 2 + 8 * 5 + 3 * 2);
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MasterWorker(MasterWorkerParameters);

impl MasterWorker {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Amount`], [`GenerateError::TooLarge`].
    pub fn new(parameters: MasterWorkerParameters) -> Result<Self, GenerateError> {
        check_min_ranks("a master with workers", parameters.ranks, 2)?;
        check_amount("flops", parameters.flops)?;
        check_message_size("task_bytes", parameters.task_bytes)?;
        check_message_size("result_bytes", parameters.result_bytes)?;
        Ok(Self(parameters))
    }

    fn workers(&self) -> u32 {
        self.0.ranks - 1
    }

    /// Returns the number of full rounds, and the number of tasks in the last, partial one.
    fn rounds(&self) -> (u64, u32) {
        let workers = u64::from(self.workers());
        (self.0.tasks / workers, (self.0.tasks % workers) as u32)
    }

    fn write_master(&self, program: &mut ProgramBuilder) {
        let (rounds, rest) = self.rounds();
        program.repeat(rounds, |body| self.write_round(body, self.workers()));
        self.write_round(program, rest);
        (1..self.0.ranks).for_each(|worker| program.send(Rank::new(worker), END, Bytes::ZERO));
    }

    /// Writes a round of the master, with tasks for the first `tasks` workers.
    fn write_round(&self, program: &mut ProgramBuilder, tasks: u32) {
        (1..=tasks).for_each(|worker| program.send(Rank::new(worker), TASK, self.0.task_bytes));
        program.repeat(tasks.into(), |body| body.recv_any(RESULT, self.0.result_bytes));
    }

    fn write_worker(&self, program: &mut ProgramBuilder, worker: u32) {
        let master = Rank::new(0);
        let (rounds, rest) = self.rounds();
        program.repeat(rounds + u64::from(worker <= rest), |body| {
            body.recv(master, TASK, self.0.task_bytes);
            body.compute(self.0.flops);
            body.send(master, RESULT, self.0.result_bytes);
        });
        program.recv(master, END, Bytes::ZERO);
    }
}

impl Generator for MasterWorker {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        assert!(rank.get() < self.0.ranks, "rank {rank} of {}", self.0.ranks);
        ProgramBuilder::build(|program| match rank.get() {
            0 => self.write_master(program),
            worker => self.write_worker(program, worker),
        })
    }
}
