//! Figures of a training run, for the report: how much of the machine it uses, and for what it waits.

use std::fmt::{self, Write as _};

use mpi_model::ActionKind;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::breakdown::Breakdown;
use super::section::{CsvTable, Section};

/// A training run that was generated for the replay (`trace.generate`). Shares are those of the time of all ranks until the end of the
/// last one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Simulated time of an iteration \[s\], the mean of all.
    pub iteration_s: f64,
    /// Computation of the model in an iteration, without any that is repeated \[flop\].
    pub model_flops: f64,
    /// Model-flops utilisation: the share of all that the hosts could compute.
    pub model_flops_utilisation: f64,
    /// Share in computations.
    pub computing: f64,
    /// Share that ranks wait for others that are not ready, most of them for other stages, or have ended; null without the analysis of
    /// waits.
    pub pipeline_bubble: Option<f64>,
    /// The same if messages took no time: (p - 1) / (v m + p - 1) for p stages, v chunks of layers and m micro-batches.
    pub ideal_bubble: f64,
    /// Share of communication that no computation hides: transfers and calls for which others are ready; null without the analysis of waits.
    pub exposed_communication: Option<f64>,
    /// Share of the computation of a layer whose limit is memory.
    pub memory_bound: f64,
    /// Memory of a rank of the first stage \[B\], an estimate: parameters, gradients, states of the optimizer, activations.
    pub memory_bytes: [u64; 4],
}

impl Training {
    /// Returns the shares with names.
    fn shares(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("model-flops utilisation", Some(self.model_flops_utilisation)),
            ("computing", Some(self.computing)),
            ("exposed communication", self.exposed_communication),
            ("pipeline bubble", self.pipeline_bubble),
            ("bubble without messages", Some(self.ideal_bubble)),
            ("layer bound by memory", Some(self.memory_bound)),
        ]
    }
}

impl Section for Training {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let spec = simulation.spec();
        let arguments = spec.trace.recipe()?.strip_prefix("transformer ")?;
        if !spec.other_programs.is_empty() {
            return None;
        }
        let transformer = crate::generate::transformer(arguments).ok()?;
        let summary = transformer.summary();
        let end = outcome.simulated_time().as_secs_f64();
        let program = outcome.program();
        let all = end * program.ends.len() as f64;
        let hosts = simulation.placement().hosts().iter();
        let speeds: f64 = hosts.map(|host| simulation.platform().host(*host).speed).sum();
        let iterations = transformer.iterations() as f64;
        let computed = program.statistics.iter().map(|rank| rank.time(ActionKind::Compute).as_secs_f64());
        let computing = computed.sum::<f64>() / all;
        let idle: f64 = program.ends.iter().map(|ended| end - ended.as_secs_f64()).sum();
        let bubble = Breakdown::new(simulation, outcome).map(|parts| (parts.total.waiting_s + idle) / all);
        (end > 0.0).then_some(Self {
            iteration_s: end / iterations,
            model_flops: summary.model_flops,
            model_flops_utilisation: summary.model_flops * iterations / (speeds * end),
            computing,
            pipeline_bubble: bubble,
            ideal_bubble: summary.bubble,
            exposed_communication: bubble.map(|bubble| (1.0 - computing - bubble).max(0.0)),
            memory_bound: summary.memory_bound,
            memory_bytes: summary.memory,
        })
    }

    fn write_tables(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "\ntraining: {:.6} s per iteration", self.iteration_s)?;
        for (name, share) in self.shares() {
            if let Some(share) = share {
                writeln!(text, "  {name:<24} {:>6.2} %", 100.0 * share)?;
            }
        }
        Ok(())
    }

    fn csv(&self) -> Vec<CsvTable> {
        let shares = self.shares();
        let header = shares.iter().map(|(name, _)| (*name).to_owned()).collect();
        let row = shares.iter().map(|(_, share)| share.map_or(String::new(), |share| share.to_string()));
        vec![CsvTable { name: "training", header, rows: vec![row.collect()] }]
    }
}
