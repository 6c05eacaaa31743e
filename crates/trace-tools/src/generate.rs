//! Trace generators: programs of known structure on any number of ranks.
//!
//! ```
//! use pdes_core::Rank;
//! use trace_tools::generate::{Class, Generator, NpbLu, NpbLuParameters, Recording};
//! use trace_mmap::flatten;
//! use trace_tools::TextLine;
//!
//! let lu = NpbLu::new(NpbLuParameters { steps: 2, ..NpbLuParameters::new(Class::S, 4) })?;
//! let mut text = String::new();
//! for rank in (0..lu.ranks()).map(Rank::new) {
//!     for op in flatten(&lu.rank(rank)) {
//!         text += &format!("{}\n", TextLine { rank, op });
//!     }
//! }
//! assert_eq!(trace_tools::from_text(&text)?.actions(), lu.actions());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | generator | pattern | volume |
//! |---|---|---|
//! | [`NpbLu`] | wavefronts through a two-dimensional process grid, small messages | NPB's operation count |
//! | [`Halo3d`] | faces between neighbours in three dimensions | per cell |
//! | [`AlltoallFft`] | transposition between all ranks | per point and transform level |
//! | [`Ring`] | a message to the next rank | per round |
//! | [`RandomSparse`] | a few random partners per step | per step |
//! | [`Traffic`] | incast, outcast, permutation, uniform, adversarial, tornado, hot spot | per round |
//! | [`AllreduceLoop`] | a reduction per iteration | per iteration |
//! | [`MasterWorker`] | tasks to workers, results from any of them | per task |
//! | [`Ior`] | blocks of a shared file, or of files of each rank, are written and read | per access |
//! | [`CheckpointRestart`] | iterations with an allreduce, and checkpoints | per checkpoint |
//! | [`Mdtest`] | files of each rank are opened and closed | none |
//!
//! [`Jitter`] adds seeded noise to any of them.
//!
//! # Guarantees
//!
//! A program depends on the parameters and the rank only; ranks can be generated in any order, on any thread, on any
//! machine, to the same bits. Every message sent is received, with the same size. No program deadlocks, even if every send
//! uses the rendezvous protocol.

mod allreduce_loop;
mod alltoall_fft;
mod checkpoint_restart;
mod error;
mod file_pattern;
mod halo3d;
mod ior;
mod jitter;
mod master_worker;
mod mdtest;
mod npb_lu;
mod program;
mod random;
mod random_sparse;
mod ring;
mod traffic;

pub use allreduce_loop::{AllreduceLoop, AllreduceLoopParameters};
pub use alltoall_fft::{AlltoallFft, AlltoallFftParameters};
pub use checkpoint_restart::{CheckpointRestart, CheckpointRestartParameters};
pub use error::GenerateError;
pub use file_pattern::FilePattern;
pub use halo3d::{Halo3d, Halo3dParameters};
pub use ior::{Ior, IorParameters};
pub use jitter::{Jitter, JitterScope};
pub use master_worker::{MasterWorker, MasterWorkerParameters};
pub use mdtest::{Mdtest, MdtestParameters};
pub use npb_lu::{Class, NpbLu, NpbLuParameters, Recording};
pub use program::ProgramBuilder;
pub use random_sparse::{RandomSparse, RandomSparseParameters};
pub use ring::{Ring, RingParameters};
pub use traffic::{Traffic, TrafficParameters, TrafficPattern};

use pdes_core::Rank;

use trace_mmap::Item;

/// Generator of the structured program of each rank.
pub trait Generator: Sync {
    /// Returns the number of ranks, 1 or more.
    fn ranks(&self) -> u32;

    /// Returns the program of a rank.
    ///
    /// # Panics
    /// If the rank is not below [`ranks`](Self::ranks).
    fn rank(&self, rank: Rank) -> Vec<Item>;

    /// Returns what is known of the program without a replay, as lines for people; by default nothing.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of actions of all ranks, at most [`u64::MAX`].
    ///
    /// The default generates every program; generators with a closed form override it with O(1).
    fn actions(&self) -> u64 {
        (0..self.ranks()).fold(0, |sum: u64, rank| sum.saturating_add(count(&self.rank(Rank::new(rank)))))
    }
}

/// Counts the actions of a program, up to [`u64::MAX`].
fn count(program: &[Item]) -> u64 {
    Item::count_all(program).unwrap_or(u64::MAX)
}

/// Counts the actions of all ranks, if all have as many as the first one.
fn count_uniform(generator: &impl Generator) -> u64 {
    count(&generator.rank(Rank::new(0))).saturating_mul(generator.ranks().into())
}
