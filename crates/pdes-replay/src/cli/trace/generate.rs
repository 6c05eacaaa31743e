//! `trace generate`: archives of known programs.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use pdes_core::{Bytes, Rank};
use trace_mmap::ArchiveWriter;
use trace_mmap::generate::{
    AllreduceLoop, AllreduceLoopParameters, AlltoallFft, AlltoallFftParameters, Class, Generator, Halo3d,
    Halo3dParameters, Jitter, JitterScope, MasterWorker, MasterWorkerParameters, NpbLu, NpbLuParameters,
    RandomSparse, RandomSparseParameters, Recording, Ring, RingParameters,
};

use super::super::progress;

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    #[command(subcommand)]
    program: Program,
    /// Archive.
    #[arg(short, long, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
    /// Multiplies computations by random factors from 1 - JITTER to 1 + JITTER.
    #[arg(long, global = true, value_name = "JITTER")]
    jitter: Option<f64>,
    /// Unit with a random factor of its own; with actions, loops are unrolled.
    #[arg(long, global = true, value_enum, default_value_t = Scope::Rank)]
    jitter_per: Scope,
    /// Seed of the jitter and of random programs.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// Number of data files, each for an equal part of the ranks.
    #[arg(long, global = true, default_value_t = 1)]
    shards: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Scope {
    Rank,
    Action,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RecordedComputations {
    /// The computation between two receives (6 actions per plane of a sweep).
    Receives,
    /// Also the computation between two sends (7).
    ReceivesAndSends,
    /// All short computations (8).
    EveryGap,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// NPB 3.4 LU: wavefronts through a two-dimensional grid of processes.
    NpbLu {
        /// Problem class: S W A B C D E F.
        #[arg(long)]
        class: Class,
        #[arg(long)]
        ranks: u32,
        /// Number of time steps; by default that of the class.
        #[arg(long)]
        steps: Option<u32>,
        /// Computation per inner point of the grid and time step [flop]; by default NPB's count.
        #[arg(long)]
        flops_per_point: Option<f64>,
        /// Computation that copies a number into or out of a message [flop].
        #[arg(long)]
        flops_per_value: Option<f64>,
        /// Short computations that are recorded in the trace.
        #[arg(long, value_enum, default_value_t = RecordedComputations::ReceivesAndSends)]
        recording: RecordedComputations,
    },
    /// Halo exchange between neighbours of a three-dimensional grid (7-point stencil).
    Halo3d {
        /// Cells of the whole grid, such as 256,256,256.
        #[arg(long, value_parser = parse_triple::<u64>)]
        cells: Option<[u64; 3]>,
        /// Processes in each dimension, such as 4,4,4.
        #[arg(long, value_parser = parse_triple::<u32>)]
        processes: Option<[u32; 3]>,
        /// Makes the last process of a dimension a neighbour of the first one.
        #[arg(long)]
        periodic: bool,
        #[arg(long)]
        iterations: Option<u64>,
        /// Size of a message per cell of the face [B].
        #[arg(long)]
        cell_bytes: Option<u64>,
        #[arg(long)]
        flops_per_cell: Option<f64>,
    },
    /// Transpositions between all ranks, as in a parallel Fourier transform.
    AlltoallFft {
        #[arg(long)]
        ranks: Option<u32>,
        /// Points of the grid, such as 256,256,128.
        #[arg(long, value_parser = parse_triple::<u64>)]
        grid: Option<[u64; 3]>,
        #[arg(long)]
        steps: Option<u64>,
        /// Computation per point and level of a transform [flop].
        #[arg(long)]
        flops_per_level: Option<f64>,
        /// Computation per point and step beside the transform [flop].
        #[arg(long)]
        flops_per_point: Option<f64>,
    },
    /// A message that circulates from rank to rank.
    Ring {
        #[arg(long)]
        ranks: Option<u32>,
        #[arg(long)]
        rounds: Option<u64>,
        /// Size of a message [B].
        #[arg(long)]
        bytes: Option<u64>,
        /// Computation per round [flop].
        #[arg(long)]
        flops: Option<f64>,
    },
    /// Messages to a few random partners per step.
    RandomSparse {
        #[arg(long)]
        ranks: Option<u32>,
        /// Number of different steps.
        #[arg(long)]
        steps: Option<u32>,
        /// Number of repetitions of all steps.
        #[arg(long)]
        rounds: Option<u64>,
        /// Number of messages of a rank per step.
        #[arg(long)]
        partners: Option<u32>,
        #[arg(long)]
        min_bytes: Option<u64>,
        #[arg(long)]
        max_bytes: Option<u64>,
        /// Computation per step [flop].
        #[arg(long)]
        flops: Option<f64>,
    },
    /// A master that distributes tasks and receives results from any worker.
    MasterWorker {
        /// Number of ranks: the master and its workers.
        #[arg(long)]
        ranks: Option<u32>,
        #[arg(long)]
        tasks: Option<u64>,
        /// Size of a task [B].
        #[arg(long)]
        task_bytes: Option<u64>,
        /// Size of a result [B].
        #[arg(long)]
        result_bytes: Option<u64>,
        /// Computation per task [flop]; --jitter makes it uneven.
        #[arg(long)]
        flops: Option<f64>,
    },
    /// An allreduce per iteration.
    AllreduceLoop {
        #[arg(long)]
        ranks: Option<u32>,
        #[arg(long)]
        iterations: Option<u64>,
        /// Number of reduced values of 8 bytes.
        #[arg(long)]
        count: Option<u64>,
        /// Computation per iteration [flop].
        #[arg(long)]
        flops: Option<f64>,
        /// Computation of the reduction on each rank [flop].
        #[arg(long)]
        reduction_flops: Option<f64>,
    },
}

/// Writes the archive that the arguments describe.
pub(super) fn run(arguments: &GenerateArguments) -> Result<String> {
    let Some(output) = &arguments.output else {
        return Err(super::super::Misuse("name the archive to write with --output FILE".to_owned()).into());
    };
    let generator = generator(&arguments.program, arguments.seed)?;
    let scope = match arguments.jitter_per {
        Scope::Rank => JitterScope::Rank,
        Scope::Action => JitterScope::Action,
    };
    let jitter = arguments.jitter.map(|spread| Jitter::new(arguments.seed, spread, scope)).transpose()?;
    let done = AtomicU64::new(0);
    let write = || -> Result<_> {
        let mut writer = ArchiveWriter::create(output, generator.ranks(), arguments.shards)?;
        for rank in (0..generator.ranks()).map(Rank::new) {
            let mut program = generator.rank(rank);
            if let Some(jitter) = &jitter {
                program = jitter.apply(rank, program)?;
            }
            writer.write_rank(rank, &program)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(writer.finish()?)
    };
    let summary = progress::watch_count(&done, generator.ranks().into(), "ranks", write)?;
    Ok(super::describe_archive(output, &summary))
}

/// Sets the parameters that were given.
macro_rules! set {
    ($parameters:ident, $($field:ident),+) => {
        $(if let Some(value) = *$field {
            $parameters.$field = value;
        })+
    };
}

/// Parses three numbers, such as `4,4,8`.
fn parse_triple<T: FromStr>(text: &str) -> Result<[T; 3], String> {
    let numbers: Option<Vec<T>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| format!("found {text:?}, expected three whole numbers, such as 4,4,8"))
}

fn generator(program: &Program, seed: u64) -> Result<Box<dyn Generator>> {
    Ok(match program {
        Program::NpbLu { class, ranks, steps, flops_per_point, flops_per_value, recording } => {
            let mut parameters = NpbLuParameters::new(*class, *ranks);
            set!(parameters, steps, flops_per_point, flops_per_value);
            parameters.recording = match recording {
                RecordedComputations::Receives => Recording::Receives,
                RecordedComputations::ReceivesAndSends => Recording::ReceivesAndSends,
                RecordedComputations::EveryGap => Recording::EveryGap,
            };
            Box::new(NpbLu::new(parameters)?)
        }
        Program::Halo3d { cells, processes, periodic, iterations, cell_bytes, flops_per_cell } => {
            let mut parameters = Halo3dParameters { periodic: *periodic, ..Halo3dParameters::default() };
            let cell_bytes = &cell_bytes.map(Bytes::new);
            set!(parameters, cells, processes, iterations, cell_bytes, flops_per_cell);
            Box::new(Halo3d::new(parameters)?)
        }
        Program::AlltoallFft { ranks, grid, steps, flops_per_level, flops_per_point } => {
            let mut parameters = AlltoallFftParameters::default();
            set!(parameters, ranks, grid, steps, flops_per_level, flops_per_point);
            Box::new(AlltoallFft::new(parameters)?)
        }
        Program::Ring { ranks, rounds, bytes, flops } => {
            let mut parameters = RingParameters::default();
            let bytes = &bytes.map(Bytes::new);
            set!(parameters, ranks, rounds, bytes, flops);
            Box::new(Ring::new(parameters)?)
        }
        Program::RandomSparse { ranks, steps, rounds, partners, min_bytes, max_bytes, flops } => {
            let mut parameters = RandomSparseParameters { seed, ..RandomSparseParameters::default() };
            let (min_bytes, max_bytes) = (&min_bytes.map(Bytes::new), &max_bytes.map(Bytes::new));
            set!(parameters, ranks, steps, rounds, partners, min_bytes, max_bytes, flops);
            Box::new(RandomSparse::new(parameters)?)
        }
        Program::MasterWorker { ranks, tasks, task_bytes, result_bytes, flops } => {
            let mut parameters = MasterWorkerParameters::default();
            let (task_bytes, result_bytes) = (&task_bytes.map(Bytes::new), &result_bytes.map(Bytes::new));
            set!(parameters, ranks, tasks, task_bytes, result_bytes, flops);
            Box::new(MasterWorker::new(parameters)?)
        }
        Program::AllreduceLoop { ranks, iterations, count, flops, reduction_flops } => {
            let mut parameters = AllreduceLoopParameters::default();
            set!(parameters, ranks, iterations, count, flops, reduction_flops);
            Box::new(AllreduceLoop::new(parameters)?)
        }
    })
}
