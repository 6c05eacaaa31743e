//! Conversion of Chakra execution traces.

use std::path::Path;

use ::goal::Schedule;
use anyhow::Result;
use clap::{Args, ValueEnum};
use netmodel::quantity::{Bandwidth, Speed};
use training::collective::{Algorithm, Nccl};
use training::{ExecutionTrace, Roofline, ScheduleOptions};

use super::super::arguments::parse_rate;
use super::super::goal;

/// How an execution trace becomes a schedule.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Chakra execution traces")]
pub(crate) struct ChakraArguments {
    /// Algorithm of collective operations; those that it does not serve are rings.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = AlgorithmName::Ring)]
    algorithm: AlgorithmName,
    /// Number of chunks of a tree.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    chunks: u32,
    /// Number of ranks of a node, for hierarchical and nccl.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    node_ranks: u32,
    /// Number of channels of nccl.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=32))]
    channels: u32,
    /// Bandwidth of a channel of nccl within a node [GB/s].
    #[arg(long, value_name = "GBPS", default_value_t = 15.0)]
    node_bandwidth: f64,
    /// Bandwidth of a channel of nccl between nodes [GB/s].
    #[arg(long, value_name = "GBPS", default_value_t = 6.0)]
    network_bandwidth: f64,
    /// Speed of a GPU [flop/s]: computations with num_ops and tensor_size take the time of these, not the recorded one.
    #[arg(long, value_name = "SPEED", value_parser = parse_rate::<Speed>, requires = "gpu_bandwidth")]
    gpu_speed: Option<f64>,
    /// Bandwidth of the memory of a GPU [B/s].
    #[arg(long, value_name = "BANDWIDTH", value_parser = parse_rate::<Bandwidth>, requires = "gpu_speed")]
    gpu_bandwidth: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AlgorithmName {
    /// Chunks go round.
    Ring,
    /// A binary tree, in chunks.
    Tree,
    /// Two binary trees, for half of the vector each.
    DoubleTree,
    /// Recursive halving and doubling.
    Halving,
    /// Messages between all pairs at once.
    Direct,
    /// Rings in nodes and between them.
    Hierarchical,
    /// What NCCL chooses by size: rings or two trees, and a protocol.
    Nccl,
}

impl ChakraArguments {
    /// Returns whether all options have their defaults.
    pub(super) fn is_default(&self) -> bool {
        let Self { algorithm, chunks, node_ranks, channels, gpu_speed, .. } = *self;
        let bandwidths = (self.node_bandwidth, self.network_bandwidth);
        (algorithm, chunks, node_ranks, channels, gpu_speed, bandwidths)
            == (AlgorithmName::Ring, 8, 8, 16, None, (15.0, 6.0))
    }

    /// Writes the schedule of an execution trace, as text or as an archive.
    pub(super) fn convert(&self, trace: &Path, output: &Path) -> Result<String> {
        let Self { chunks, node_ranks, .. } = *self;
        let algorithm = match self.algorithm {
            AlgorithmName::Ring | AlgorithmName::Nccl => Algorithm::Ring,
            AlgorithmName::Tree => Algorithm::Tree { chunks },
            AlgorithmName::DoubleTree => Algorithm::DoubleTree { chunks },
            AlgorithmName::Halving => Algorithm::Halving,
            AlgorithmName::Direct => Algorithm::Direct,
            AlgorithmName::Hierarchical => Algorithm::Hierarchical { node: node_ranks },
        };
        let nccl = (self.algorithm == AlgorithmName::Nccl).then_some(Nccl {
            node_ranks,
            channels: self.channels,
            node_bandwidth: self.node_bandwidth,
            network_bandwidth: self.network_bandwidth,
        });
        let limits = self.gpu_speed.zip(self.gpu_bandwidth);
        let roofline = limits.map(|(flops, bandwidth)| Roofline { flops, bandwidth });
        let schedule = schedule(trace, &ScheduleOptions { algorithm, nccl, roofline })?;
        if output.extension().is_some_and(|end| end == "goal") {
            goal::write_text(&schedule, output)
        } else {
            goal::write_archive(&schedule, output)
        }
    }
}

/// Returns the schedule of an execution trace, and logs what it does not have.
fn schedule(trace: &Path, options: &ScheduleOptions) -> Result<Schedule> {
    let found = ExecutionTrace::read(trace)?.schedule(options)?;
    found.omissions().for_each(|omission| tracing::warn!("{omission}"));
    Ok(found.schedule)
}

/// Checks an execution trace: its dependencies, that the collective operations of a group are the same, and that receives and messages
/// match.
pub(super) fn check(trace: &Path) -> Result<String> {
    goal::check_schedule(&schedule(trace, &ScheduleOptions::default())?, trace)
}
