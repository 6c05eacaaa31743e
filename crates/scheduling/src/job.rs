//! Jobs of a workload.

use std::path::PathBuf;

use crate::{Date, Span};

/// Place of a job in its workload, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub usize);

/// A batch job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in the workload.
    pub name: String,
    /// When it is submitted.
    pub submitted: Date,
    /// Number of nodes it occupies, from 1.
    pub nodes: u32,
    /// How long its user says it runs at most, by which the scheduler plans.
    pub estimate: Span,
    /// How long it really runs, unless a simulation decides.
    pub runtime: Span,
    /// Its work in a simulation, which decides how long it runs.
    pub work: Work,
}

/// The work of a job while it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Work {
    /// It occupies its nodes for its run time.
    #[default]
    Wait,
    /// Each of its nodes computes so much \[flop\], and meanwhile sends so much to each other one \[B\].
    Parallel {
        /// Computation of a node \[flop\].
        flops: f64,
        /// Size of the message to each other node \[B\].
        bytes: u64,
    },
    /// It is the program of a trace, whose path is as the workload tells it.
    Trace(PathBuf),
}
