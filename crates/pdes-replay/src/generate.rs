//! Programs that are generated: by `trace generate`, and for a run (`trace.generate`).

mod transformer;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Parser, Subcommand, ValueEnum};
use pdes_core::{Bytes, Rank};
use replay::TraceFile;
use trace_mmap::{ArchiveWriter, FileName, Summary, WriteError};
use trace_tools::generate::{
    AllreduceLoop, AllreduceLoopParameters, AlltoallFft, AlltoallFftParameters, CheckpointRestart,
    CheckpointRestartParameters, Class, FilePattern, GenerateError, Generator, Halo3d, Halo3dParameters, Ior,
    IorParameters, Jitter, JitterScope, MasterWorker, MasterWorkerParameters, Mdtest, MdtestParameters,
    NpbLu, NpbLuParameters, RandomSparse, RandomSparseParameters, Recording, Ring, RingParameters, Traffic,
    TrafficParameters, TrafficPattern,
};

use training::{Transformer, TransformerError};

pub(crate) use self::transformer::Repeated;
use self::transformer::TransformerArguments;

/// The reason why a program cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program, or it has no such arguments.
    #[error("found {found:?}: {message}; `pdes-replay trace generate --help` lists the programs")]
    Recipe {
        /// The program and its arguments.
        found: String,
        /// The fault in them.
        message: String,
    },
    /// The program cannot have these parameters.
    #[error(transparent)]
    Parameters(#[from] GenerateError),
    /// The model cannot be trained like this.
    #[error(transparent)]
    Transformer(#[from] TransformerError),
    /// The archive cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is no room for the archive of a run.
    #[error("temporary file: {0}")]
    File(#[from] std::io::Error),
}

impl ProgramError {
    /// Returns whether the arguments are wrong.
    pub fn is_misuse(&self) -> bool {
        !matches!(self, Self::Write(_) | Self::File(_))
    }
}

/// A known program, as `trace generate` takes it.
#[derive(Debug, Args)]
pub struct ProgramArguments {
    #[command(subcommand)]
    program: Program,
    /// Multiplies computations by random factors from 1 - JITTER to 1 + JITTER.
    #[arg(long, global = true, value_name = "JITTER")]
    jitter: Option<f64>,
    /// Unit with a random factor of its own; with actions, loops are unrolled.
    #[arg(long, global = true, value_enum, value_name = "UNIT", default_value_t = Scope::Rank)]
    jitter_per: Scope,
    /// Seed of the jitter and of random programs.
    #[arg(long, global = true, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

/// The value of `trace.generate`.
#[derive(Debug, Parser)]
#[command(
    name = "trace.generate",
    no_binary_name = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
struct Recipe {
    #[command(flatten)]
    program: ProgramArguments,
}

impl ProgramArguments {
    /// Makes the generator.
    ///
    /// # Errors
    /// If the program cannot have these arguments.
    pub fn generator(&self) -> Result<Box<dyn Generator>, ProgramError> {
        generator(&self.program, self.seed)
    }

    /// Writes an archive with a number of data files; `done` counts its ranks.
    ///
    /// # Errors
    /// If the program cannot have these arguments, or the archive cannot be written.
    pub fn write(
        &self,
        generator: &dyn Generator,
        archive: &Path,
        shards: u32,
        done: &AtomicU64,
    ) -> Result<Summary, ProgramError> {
        let scope = match self.jitter_per {
            Scope::Rank => JitterScope::Rank,
            Scope::Action => JitterScope::Action,
        };
        let jitter = self.jitter.map(|spread| Jitter::new(self.seed, spread, scope)).transpose()?;
        let mut writer = ArchiveWriter::create(archive, generator.ranks(), shards)?;
        for rank in (0..generator.ranks()).map(Rank::new) {
            let mut program = generator.rank(rank);
            if let Some(jitter) = &jitter {
                program = jitter.apply(rank, program)?;
            }
            writer.write_rank(rank, &program)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(writer.finish()?)
    }
}

/// Generates the trace that the arguments of `trace generate` describe, such as `npb-lu --class S --ranks 8`, for as long as it is used.
///
/// # Errors
/// If there is no such program, or its archive cannot be written.
pub(crate) fn generate(text: &str) -> Result<TraceFile, ProgramError> {
    let recipe = recipe(text)?;
    let file = tempfile::Builder::new().suffix(".pdt").tempfile()?.into_temp_path();
    recipe.program.write(&*recipe.program.generator()?, &file, 1, &AtomicU64::new(0))?;
    Ok(TraceFile::generated(text, file))
}

/// Checks such arguments, and names the trace without writing it.
///
/// # Errors
/// If there is no such program.
pub(crate) fn check(text: &str) -> Result<TraceFile, ProgramError> {
    recipe(text)?.program.generator()?;
    Ok(text.into())
}

/// Makes the transformer that the arguments of `trace generate transformer` describe.
///
/// # Errors
/// If there are no such arguments, or the model cannot be trained like this.
pub(crate) fn transformer(arguments: &str) -> Result<Transformer, ProgramError> {
    let text = format!("transformer {arguments}");
    match recipe(&text)?.program.program {
        Program::Transformer(arguments) => Ok(arguments.generator()?),
        _ => unreachable!("the text names the program"),
    }
}

fn recipe(text: &str) -> Result<Recipe, ProgramError> {
    Recipe::try_parse_from(text.split_whitespace()).map_err(|error| {
        let message = error.to_string();
        let message = message.trim_start_matches("error: ").lines().next().unwrap_or_default().to_owned();
        ProgramError::Recipe { found: text.to_owned(), message }
    })
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Scope {
    /// All computations of a rank.
    Rank,
    /// Each single computation.
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

/// Three numbers, such as `4,4,8`.
#[derive(Clone, Copy, Debug)]
struct Triple<T>([T; 3]);

impl<T: fmt::Display> fmt::Display for Triple<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = &self.0;
        write!(f, "{x},{y},{z}")
    }
}

impl<T: FromStr> FromStr for Triple<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<T>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok()).map(Self);
        numbers.ok_or_else(|| format!("found {text:?}, expected three whole numbers, such as 4,4,8"))
    }
}

#[derive(Clone, Debug, Subcommand)]
enum Program {
    /// NPB 3.4 LU: wavefronts through a two-dimensional grid of processes.
    NpbLu {
        /// Problem class: S W A B C D E F.
        #[arg(long, value_name = "CLASS")]
        class: Class,
        /// Number of ranks.
        #[arg(long, value_name = "N")]
        ranks: u32,
        /// Number of time steps; by default that of the class.
        #[arg(long, value_name = "N")]
        steps: Option<u32>,
        /// Computation per inner point of the grid and time step [flop]; by default NPB's count.
        #[arg(long, value_name = "FLOPS")]
        flops_per_point: Option<f64>,
        /// Computation that copies a number into or out of a message [flop]; by default 8.
        #[arg(long, value_name = "FLOPS")]
        flops_per_value: Option<f64>,
        /// Short computations that are recorded in the trace.
        #[arg(long, value_enum, value_name = "NAME", default_value_t = RecordedComputations::ReceivesAndSends)]
        recording: RecordedComputations,
    },
    /// Halo exchange between neighbours of a three-dimensional grid (7-point stencil).
    Halo3d {
        /// Cells of the whole grid in each dimension.
        #[arg(long, value_name = "X,Y,Z", default_value_t = Triple(Halo3dParameters::default().cells))]
        cells: Triple<u64>,
        /// Number of ranks in each dimension.
        #[arg(long, alias = "processes", value_name = "X,Y,Z", default_value_t = Triple(Halo3dParameters::default().processes))]
        ranks: Triple<u32>,
        /// Makes the last rank of a dimension a neighbour of the first one.
        #[arg(long)]
        periodic: bool,
        /// Number of iterations.
        #[arg(long, value_name = "N", default_value_t = Halo3dParameters::default().iterations)]
        iterations: u64,
        /// Size of a message per cell of the face [B].
        #[arg(long, value_name = "BYTES", default_value_t = Halo3dParameters::default().cell_bytes.get())]
        cell_bytes: u64,
        /// Computation per cell and iteration [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = Halo3dParameters::default().flops_per_cell)]
        flops_per_cell: f64,
    },
    /// Transpositions between all ranks, as in a parallel Fourier transform.
    AlltoallFft {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = AlltoallFftParameters::default().ranks)]
        ranks: u32,
        /// Points of the grid in each dimension.
        #[arg(long, value_name = "X,Y,Z", default_value_t = Triple(AlltoallFftParameters::default().grid))]
        grid: Triple<u64>,
        /// Number of transforms.
        #[arg(long, value_name = "N", default_value_t = AlltoallFftParameters::default().steps)]
        steps: u64,
        /// Computation per point and level of a transform [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = AlltoallFftParameters::default().flops_per_level)]
        flops_per_level: f64,
        /// Computation per point and step beside the transform [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = AlltoallFftParameters::default().flops_per_point)]
        flops_per_point: f64,
    },
    /// A message that circulates from rank to rank.
    Ring {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = RingParameters::default().ranks)]
        ranks: u32,
        /// Number of rounds.
        #[arg(long, value_name = "N", default_value_t = RingParameters::default().rounds)]
        rounds: u64,
        /// Size of a message [B].
        #[arg(long, value_name = "BYTES", default_value_t = RingParameters::default().bytes.get())]
        bytes: u64,
        /// Computation per round [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = RingParameters::default().flops)]
        flops: f64,
    },
    /// Messages to a few random partners per step.
    RandomSparse {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = RandomSparseParameters::default().ranks)]
        ranks: u32,
        /// Number of different steps.
        #[arg(long, value_name = "N", default_value_t = RandomSparseParameters::default().steps)]
        steps: u32,
        /// Number of repetitions of all steps.
        #[arg(long, value_name = "N", default_value_t = RandomSparseParameters::default().rounds)]
        rounds: u64,
        /// Number of messages of a rank per step.
        #[arg(long, value_name = "N", default_value_t = RandomSparseParameters::default().partners)]
        partners: u32,
        /// Smallest size of a message [B].
        #[arg(long, value_name = "BYTES", default_value_t = RandomSparseParameters::default().min_bytes.get())]
        min_bytes: u64,
        /// Largest size of a message [B].
        #[arg(long, value_name = "BYTES", default_value_t = RandomSparseParameters::default().max_bytes.get())]
        max_bytes: u64,
        /// Computation per step [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = RandomSparseParameters::default().flops)]
        flops: f64,
    },
    /// A pattern of traffic by which networks are judged.
    Traffic {
        /// Who sends to whom: incast, outcast, permutation, uniform, adversarial, tornado or hot-spot.
        #[arg(long, value_name = "NAME", default_value_t = TrafficParameters::default().pattern)]
        pattern: TrafficPattern,
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = TrafficParameters::default().ranks)]
        ranks: u32,
        /// Number of rounds.
        #[arg(long, value_name = "N", default_value_t = TrafficParameters::default().rounds)]
        rounds: u64,
        /// Number of messages to each partner in a round.
        #[arg(long, value_name = "N", default_value_t = TrafficParameters::default().messages)]
        messages: u32,
        /// Size of a message [B].
        #[arg(long, value_name = "BYTES", default_value_t = TrafficParameters::default().bytes.get())]
        bytes: u64,
        /// Ranks of a group of the adversarial pattern.
        #[arg(long, value_name = "N", default_value_t = TrafficParameters::default().group)]
        group: u32,
        /// Share of messages to the hot spot.
        #[arg(long, value_name = "SHARE", default_value_t = TrafficParameters::default().hot_share)]
        hot_share: f64,
        /// Computation after each round [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = TrafficParameters::default().flops)]
        flops: f64,
    },
    /// A master that distributes tasks and receives results from any worker.
    MasterWorker {
        /// Number of ranks: the master and its workers.
        #[arg(long, value_name = "N", default_value_t = MasterWorkerParameters::default().ranks)]
        ranks: u32,
        /// Number of tasks.
        #[arg(long, value_name = "N", default_value_t = MasterWorkerParameters::default().tasks)]
        tasks: u64,
        /// Size of a task [B].
        #[arg(long, value_name = "BYTES", default_value_t = MasterWorkerParameters::default().task_bytes.get())]
        task_bytes: u64,
        /// Size of a result [B].
        #[arg(long, value_name = "BYTES", default_value_t = MasterWorkerParameters::default().result_bytes.get())]
        result_bytes: u64,
        /// Computation per task [flop]; --jitter makes it uneven.
        #[arg(long, value_name = "FLOPS", default_value_t = MasterWorkerParameters::default().flops)]
        flops: f64,
    },
    /// An allreduce per iteration.
    AllreduceLoop {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = AllreduceLoopParameters::default().ranks)]
        ranks: u32,
        /// Number of iterations.
        #[arg(long, value_name = "N", default_value_t = AllreduceLoopParameters::default().iterations)]
        iterations: u64,
        /// Number of reduced values of 8 bytes.
        #[arg(long, value_name = "N", default_value_t = AllreduceLoopParameters::default().count)]
        count: u64,
        /// Computation per iteration [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = AllreduceLoopParameters::default().flops)]
        flops: f64,
        /// Computation of the reduction on each rank [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = AllreduceLoopParameters::default().reduction_flops)]
        reduction_flops: f64,
    },
    /// IOR: all ranks write a file in segments of blocks, and read it.
    Ior {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = IorParameters::default().ranks)]
        ranks: u32,
        /// Number of segments.
        #[arg(long, value_name = "N", default_value_t = IorParameters::default().segments)]
        segments: u64,
        /// Contiguous amount of a rank in a segment [B].
        #[arg(long, value_name = "BYTES", default_value_t = IorParameters::default().block.get())]
        block: u64,
        /// Amount of an access [B], which divides the block.
        #[arg(long, value_name = "BYTES", default_value_t = IorParameters::default().access.transfer.get())]
        transfer: u64,
        #[command(flatten)]
        files: FileArguments,
        /// Name of the file, of each rank with its number behind it.
        #[arg(long, value_name = "NAME", value_parser = file_name, default_value = "/scratch/ior")]
        file: FileName,
        /// Leaves the reads out.
        #[arg(long)]
        write_only: bool,
        /// Leaves the writes out: the file was there before.
        #[arg(long, conflicts_with = "write_only")]
        read_only: bool,
        /// Distance of the rank whose data a rank reads.
        #[arg(long, value_name = "RANKS", default_value_t = IorParameters::default().reorder)]
        reorder: u32,
        /// Number of repetitions.
        #[arg(long, value_name = "N", default_value_t = IorParameters::default().repetitions)]
        repetitions: u64,
    },
    /// Iterations with an allreduce, and a checkpoint after every so many of them.
    CheckpointRestart {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = CheckpointRestartParameters::default().ranks)]
        ranks: u32,
        /// Number of checkpoints.
        #[arg(long, value_name = "N", default_value_t = CheckpointRestartParameters::default().checkpoints)]
        checkpoints: u64,
        /// Number of iterations before each checkpoint.
        #[arg(long, value_name = "N", default_value_t = CheckpointRestartParameters::default().iterations)]
        iterations: u64,
        /// Computation per iteration [flop].
        #[arg(long, value_name = "FLOPS", default_value_t = CheckpointRestartParameters::default().flops)]
        flops: f64,
        /// State of a rank [B].
        #[arg(long, value_name = "BYTES", default_value_t = CheckpointRestartParameters::default().bytes.get())]
        bytes: u64,
        /// Amount of an access [B].
        #[arg(long, value_name = "BYTES", default_value_t = CheckpointRestartParameters::default().access.transfer.get())]
        transfer: u64,
        #[command(flatten)]
        files: FileArguments,
        /// Name of the file, of each rank with its number behind it.
        #[arg(long, value_name = "NAME", value_parser = file_name, default_value = "/scratch/checkpoint")]
        file: FileName,
        /// Begins with reading the state.
        #[arg(long)]
        restart: bool,
    },
    /// Many files that each rank opens and closes, as in mdtest.
    Mdtest {
        /// Number of ranks.
        #[arg(long, value_name = "N", default_value_t = MdtestParameters::default().ranks)]
        ranks: u32,
        /// Number of files of a rank.
        #[arg(long, value_name = "N", default_value_t = MdtestParameters::default().files)]
        files: u32,
        /// Begin of the names of files.
        #[arg(long, value_name = "NAME", value_parser = file_name, default_value = "/scratch/mdtest")]
        file: FileName,
        /// Number of times that all files are opened and closed.
        #[arg(long, value_name = "N", default_value_t = MdtestParameters::default().repetitions)]
        repetitions: u64,
    },
    /// Training of a transformer on GPUs: data, tensor, pipeline, context and expert parallelism, ZeRO.
    Transformer(TransformerArguments),
}

/// Access to files, which several programs have in common.
#[derive(Clone, Copy, Debug, Args)]
struct FileArguments {
    /// Gives each rank a file of its own.
    #[arg(long)]
    file_per_rank: bool,
    /// Makes collective accesses.
    #[arg(long)]
    collective: bool,
    /// Waits until written data are on the devices before the file is closed.
    #[arg(long)]
    sync: bool,
}

impl FileArguments {
    fn pattern(self, file: FileName, transfer: u64) -> FilePattern {
        let Self { file_per_rank, collective, sync } = self;
        FilePattern { file, file_per_rank, collective, transfer: Bytes::new(transfer), sync }
    }
}

fn file_name(text: &str) -> Result<FileName, String> {
    FileName::new(text)
        .ok_or_else(|| format!("found {text:?}, expected a name of ASCII characters without blanks"))
}

fn generator(program: &Program, seed: u64) -> Result<Box<dyn Generator>, ProgramError> {
    Ok(match program.clone() {
        Program::NpbLu { class, ranks, steps, flops_per_point, flops_per_value, recording } => {
            let mut parameters = NpbLuParameters::new(class, ranks);
            parameters.steps = steps.unwrap_or(parameters.steps);
            parameters.flops_per_point = flops_per_point.unwrap_or(parameters.flops_per_point);
            parameters.flops_per_value = flops_per_value.unwrap_or(parameters.flops_per_value);
            parameters.recording = match recording {
                RecordedComputations::Receives => Recording::Receives,
                RecordedComputations::ReceivesAndSends => Recording::ReceivesAndSends,
                RecordedComputations::EveryGap => Recording::EveryGap,
            };
            Box::new(NpbLu::new(parameters)?)
        }
        Program::Halo3d { cells, ranks, periodic, iterations, cell_bytes, flops_per_cell } => {
            let (Triple(cells), Triple(processes), cell_bytes) = (cells, ranks, Bytes::new(cell_bytes));
            let parameters =
                Halo3dParameters { cells, processes, periodic, iterations, cell_bytes, flops_per_cell };
            Box::new(Halo3d::new(parameters)?)
        }
        Program::AlltoallFft { ranks, grid: Triple(grid), steps, flops_per_level, flops_per_point } => {
            let parameters = AlltoallFftParameters { ranks, grid, steps, flops_per_level, flops_per_point };
            Box::new(AlltoallFft::new(parameters)?)
        }
        Program::Ring { ranks, rounds, bytes, flops } => {
            Box::new(Ring::new(RingParameters { ranks, rounds, bytes: Bytes::new(bytes), flops })?)
        }
        Program::RandomSparse { ranks, steps, rounds, partners, min_bytes, max_bytes, flops } => {
            let (min_bytes, max_bytes) = (Bytes::new(min_bytes), Bytes::new(max_bytes));
            let parameters =
                RandomSparseParameters { seed, ranks, steps, rounds, partners, min_bytes, max_bytes, flops };
            Box::new(RandomSparse::new(parameters)?)
        }
        Program::Traffic { pattern, ranks, rounds, messages, bytes, group, hot_share, flops } => {
            let bytes = Bytes::new(bytes);
            let parameters =
                TrafficParameters { pattern, seed, ranks, rounds, messages, bytes, group, hot_share, flops };
            Box::new(Traffic::new(parameters)?)
        }
        Program::MasterWorker { ranks, tasks, task_bytes, result_bytes, flops } => {
            let (task_bytes, result_bytes) = (Bytes::new(task_bytes), Bytes::new(result_bytes));
            let parameters = MasterWorkerParameters { ranks, tasks, task_bytes, result_bytes, flops };
            Box::new(MasterWorker::new(parameters)?)
        }
        Program::AllreduceLoop { ranks, iterations, count, flops, reduction_flops } => {
            let parameters = AllreduceLoopParameters { ranks, iterations, count, flops, reduction_flops };
            Box::new(AllreduceLoop::new(parameters)?)
        }
        Program::Ior {
            ranks,
            segments,
            block,
            transfer,
            files,
            file,
            write_only,
            read_only,
            reorder,
            repetitions,
        } => {
            let (block, access) = (Bytes::new(block), files.pattern(file, transfer));
            let (write, read) = (!read_only, !write_only);
            let parameters =
                IorParameters { ranks, segments, block, access, write, read, reorder, repetitions };
            Box::new(Ior::new(parameters)?)
        }
        Program::CheckpointRestart {
            ranks,
            checkpoints,
            iterations,
            flops,
            bytes,
            transfer,
            files,
            file,
            restart,
        } => {
            let (bytes, access) = (Bytes::new(bytes), files.pattern(file, transfer));
            let parameters =
                CheckpointRestartParameters { ranks, checkpoints, iterations, flops, bytes, access, restart };
            Box::new(CheckpointRestart::new(parameters)?)
        }
        Program::Mdtest { ranks, files, file, repetitions } => {
            Box::new(Mdtest::new(MdtestParameters { ranks, files, file, repetitions })?)
        }
        Program::Transformer(arguments) => Box::new(arguments.generator()?),
    })
}
