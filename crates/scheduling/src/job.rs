//! Jobs of a workload.

use crate::{Date, Span};

/// Place of a job in its workload, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub usize);

/// A batch job.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}
