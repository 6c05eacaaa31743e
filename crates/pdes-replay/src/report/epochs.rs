//! Epochs of a run, for the report.

use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::section::Section;

/// Epochs and regions of a run, and their costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epochs {
    /// Length of an epoch \[s\].
    pub epoch_s: f64,
    /// Length of an epoch \[ps\], exact.
    pub epoch_ps: u64,
    /// Number of regions of the platform.
    pub regions: u32,
    /// Number of epoch boundaries at which anything was done.
    pub boundaries: u64,
    /// Number of times that the rates of a region were solved, at all boundaries.
    pub solves: u64,
    /// Number of rounds of message exchange between regions, at all boundaries.
    pub exchange_rounds: u64,
    /// Number of messages between regions.
    pub exchange_messages: u64,
    /// Largest excess of a link over its capacity in ten epochs, as a fraction of its capacity.
    pub capacity_violation: f64,
}

impl Section for Epochs {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let (plan, summary) = (simulation.epochs()?, outcome.epochs?);
        Some(Self {
            epoch_s: plan.span.as_secs_f64(),
            epoch_ps: plan.span.as_picos(),
            regions: plan.count,
            boundaries: summary.counts.boundaries,
            solves: summary.counts.solves,
            exchange_rounds: summary.counts.rounds,
            exchange_messages: summary.counts.messages,
            capacity_violation: summary.capacity_violation,
        })
    }
}
