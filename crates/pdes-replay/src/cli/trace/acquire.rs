//! Acquisition of traces from running programs, and from the shards that they have left.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, io};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use pdes_core::Rank;
use trace_mmap::{ConvertOptions, LoadOptions, NoteKind, Provenance, UnmodelledCalls};
use trace_tools::{Recovered, RemovedActions, recover};

use super::launcher::{self, Ended};
use super::shards::{Completeness, RunHeader, ShardError, ShardSet, list_shards};
use super::{Misuse, convert, files};

/// File name of the library to preload.
pub(crate) const LIBRARY: &str = "libti_tracer.so";

#[derive(Debug, Args)]
pub(crate) struct AcquireArguments {
    /// Archive that is written.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Measure of computation.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = ComputationMeasure::Auto)]
    counter: ComputationMeasure,
    /// Flops per second of CPU time, if instructions are not counted.
    #[arg(long, value_name = "FLOPS", default_value_t = 1e9)]
    rate: f64,
    /// Records the measured time of each computation and each call, for validation.
    #[arg(long)]
    with_times: bool,
    /// Directory below which calls of `open`, `read`, `write` and their kin on files are recorded, too; may be given several times.
    #[arg(long, value_name = "DIR")]
    files: Vec<PathBuf>,
    /// Directory for the shards of the processes, new or empty, visible to all nodes; it is kept. Default: a directory beside the
    /// archive, which is removed at the end.
    #[arg(long, value_name = "DIR")]
    shards: Option<PathBuf>,
    /// Library to preload; by default the one beside this program.
    #[arg(long, value_name = "FILE")]
    tracer: Option<PathBuf>,
    /// Number of threads that create the archive.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Command that starts the program, such as `mpirun -np 4 ./app`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GatherArguments {
    /// Shards, or directories of shards, of all ranks of one run.
    #[arg(required = true)]
    shards: Vec<PathBuf>,
    /// Archive that is written.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Number of threads that create the archive.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
}

/// Measure of computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ComputationMeasure {
    /// Instructions in user mode if the kernel allows counting them, else CPU time.
    Auto,
    /// CPU time, also if instructions can be counted.
    CpuTime,
}

/// The reason why a program leaves no trace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcquireError {
    #[error(
        "{}: the library to preload is not there; build it with `pdes-replay tracer install`, which needs cargo and mpicc, or name it \
         with --tracer", file.display()
    )]
    NoLibrary { file: PathBuf },
    #[error("{}: found files, expected a new or empty directory for the shards", dir.display())]
    NotEmpty { dir: PathBuf },
    #[error("{program}: {source}")]
    NotStarted { program: String, source: io::Error },
    #[error("the program ended with {status} before any process had entered MPI; nothing was recorded")]
    FailedEarly { status: String },
    #[error(
        "no process was recorded: none called MPI_Init, or the MPI library is linked into the program statically (`ldd` does not \
         list it), or LD_PRELOAD did not reach the processes (with Open MPI on several nodes: mpirun -x LD_PRELOAD -x \
         PDES_TRACE_DIR -x PDES_TRACE_JOB -x PDES_TRACE_COUNTER -x PDES_TRACE_RATE -x PDES_TRACE_TIMES -x PDES_TRACE_FILES)"
    )]
    NothingRecorded,
    #[error("the program ended with {status}; what it did until then is in {}", archive.display())]
    Failed { status: String, archive: PathBuf },
    #[error("interrupted; what the program did until then is in {}", archive.display())]
    Interrupted { archive: PathBuf },
    #[error("interrupted before any process had entered MPI; nothing was recorded")]
    InterruptedEarly,
}

impl AcquireError {
    /// Returns whether a signal has ended the recording.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Self::Interrupted { .. } | Self::InterruptedEarly)
    }
}

/// Runs a program with the tracer, and creates an archive of the actions of its processes.
pub(crate) fn acquire(arguments: &AcquireArguments) -> Result<String> {
    if !(arguments.rate.is_finite() && arguments.rate > 0.0) {
        let found = arguments.rate;
        return Err(Misuse(format!("--rate: found {found}, expected a number of flops above 0")).into());
    }
    let library = find_library(arguments.tracer.as_deref())?;
    let folder = ShardFolder::create(arguments)?;
    let Ended { status, is_interrupted } = run(arguments, &library, folder.path())?;
    let is_done = status.success() && !is_interrupted;
    match list_shards(folder.path()) {
        Err(ShardError::NoShards { .. }) if is_interrupted => {
            return Err(AcquireError::InterruptedEarly.into());
        }
        Err(ShardError::NoShards { .. }) if is_done => return Err(AcquireError::NothingRecorded.into()),
        Err(ShardError::NoShards { .. }) => {
            return Err(AcquireError::FailedEarly { status: describe(status) }.into());
        }
        _ => {}
    }
    let shards = [folder.path().to_path_buf()];
    let completeness = if is_done { Completeness::All } else { Completeness::Some };
    let gathered = gather_shards(&shards, completeness, &arguments.output, arguments.threads);
    let text = match gathered {
        Ok(text) => text,
        Err(error) => {
            return Err(error.context(format!("the shards are kept in {}", folder.keep().display())));
        }
    };
    let archive = arguments.output.clone();
    match is_done {
        true => Ok(text),
        false if is_interrupted => Err(AcquireError::Interrupted { archive }.into()),
        false => Err(AcquireError::Failed { status: describe(status), archive }.into()),
    }
}

/// Creates an archive from shards.
pub(crate) fn gather(arguments: &GatherArguments) -> Result<String> {
    arguments.shards.iter().try_for_each(|shards| files::check_output(shards, &arguments.output))?;
    gather_shards(&arguments.shards, Completeness::All, &arguments.output, arguments.threads)
}

fn gather_shards(
    paths: &[PathBuf],
    completeness: Completeness,
    output: &Path,
    threads: usize,
) -> Result<String> {
    let shards = ShardSet::read(paths, completeness)?;
    if let [first, ..] = *shards.missing() {
        tracing::warn!(
            "{} rank(s) left no shard, the first is rank {first}: they ended before or in MPI_Init, and do nothing in the trace",
            shards.missing().len()
        );
    }
    let early = shards.ended_early();
    if let [first, ..] = *early {
        tracing::warn!(
            "{} rank(s) ended without MPI_Finalize, the first is rank {first}: the trace ends where all ranks could still proceed",
            early.len()
        );
    }
    let beside = directory_of(output);
    std::fs::create_dir_all(&beside).with_context(|| beside.display().to_string())?;
    let folder =
        || tempfile::tempdir_in(&beside).with_context(|| format!("a directory beside {}", output.display()));
    let mut stage = folder()?;
    let files = shards.link_into(stage.path())?;
    let work_metric = shards.run().and_then(RunHeader::counted);
    let mut provenance = Provenance { work_metric, ended_early: early.len() as u32, ..Provenance::default() };
    shards.add_notes(&mut provenance);
    if !early.is_empty() {
        let (settled, load) = (folder()?, LoadOptions { threads, ..LoadOptions::default() });
        let Recovered { removed: RemovedActions { ranks, actions }, calls, is_deadlocked } =
            recover(&files, settled.path(), &load)?;
        if actions > 0 {
            tracing::warn!(
                "{actions} action(s) of {ranks} rank(s) are left out: they wait for actions that were not recorded"
            );
        }
        (provenance.cut_actions, provenance.is_deadlocked) = (actions, is_deadlocked);
        let add = |(rank, call): &(Rank, String)| {
            provenance.add_note(NoteKind::CallInProgress, rank.get(), call, 1);
        };
        calls.iter().for_each(add);
        stage = settled;
    }
    provenance.notes.iter().for_each(|note| tracing::warn!("{note}"));
    if provenance.is_deadlocked {
        tracing::warn!(
            "the program was in a deadlock when its recording ended: none of these calls could have completed"
        );
    }
    let options = ConvertOptions { provenance: Some(provenance), ..ConvertOptions::default() };
    let mut text = convert(stage.path(), output, threads, options, None)?;
    let unmodelled = UnmodelledCalls::of(&trace_tools::load(output, &LoadOptions::default())?)?;
    if !unmodelled.is_empty() {
        let calls: Vec<String> = unmodelled.iter().map(ToString::to_string).collect();
        tracing::warn!("calls that no replay models take no time in a replay: {}", calls.join(", "));
    }
    if let Some(counted) = work_metric {
        writeln!(text, "computations: {counted}")?;
    }
    Ok(text)
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf()
}

/// Returns the directory of this program, where the library is by default.
pub(crate) fn own_directory() -> Result<PathBuf> {
    Ok(directory_of(&env::current_exe().context("this program")?))
}

/// Returns the absolute path of the library to preload: processes may start in other directories.
fn find_library(named: Option<&Path>) -> Result<PathBuf> {
    let file = match named {
        Some(file) => file.to_path_buf(),
        None => own_directory()?.join(LIBRARY),
    };
    Ok(file.canonicalize().map_err(|_| AcquireError::NoLibrary { file })?)
}

/// The directory of the shards.
enum ShardFolder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl ShardFolder {
    fn create(arguments: &AcquireArguments) -> Result<Self> {
        let Some(dir) = &arguments.shards else {
            let beside = directory_of(&arguments.output);
            std::fs::create_dir_all(&beside).with_context(|| beside.display().to_string())?;
            let folder = tempfile::Builder::new().prefix("shards-").tempdir_in(&beside);
            return Ok(Self::Temporary(folder.with_context(|| beside.display().to_string())?));
        };
        std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        match std::fs::read_dir(dir)?.next() {
            None => Ok(Self::Kept(dir.canonicalize()?)),
            Some(_) => Err(AcquireError::NotEmpty { dir: dir.clone() }.into()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(dir) => dir.path(),
        }
    }

    fn keep(self) -> PathBuf {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(dir) => dir.keep(),
        }
    }
}

/// Runs the command to its end.
fn run(arguments: &AcquireArguments, library: &Path, shards: &Path) -> Result<Ended> {
    let [program, rest @ ..] = &*arguments.command else {
        return Err(Misuse("expected a command behind --".to_owned()).into());
    };
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let files = arguments
        .files
        .iter()
        .map(|dir| dir.canonicalize().with_context(|| format!("--files {}", dir.display())));
    let files = env::join_paths(files.collect::<Result<Vec<PathBuf>>>()?)
        .map_err(|error| Misuse(format!("--files: {error}")))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let counter = if arguments.counter == ComputationMeasure::CpuTime { "cpu-time" } else { "auto" };
    let mut command = Command::new(program);
    command
        .args(rest)
        .env("LD_PRELOAD", preload)
        .env("PDES_TRACE_DIR", std::path::absolute(shards)?)
        .env("PDES_TRACE_JOB", format!("{:x}-{:x}", since.as_nanos(), std::process::id()))
        .env("PDES_TRACE_COUNTER", counter)
        .env("PDES_TRACE_RATE", arguments.rate.to_string())
        .env("PDES_TRACE_FILES", files)
        .env("PDES_TRACE_TIMES", if arguments.with_times { "1" } else { "0" });
    let ended = launcher::run(command, shards).context("handling signals")?;
    Ok(ended.map_err(|source| AcquireError::NotStarted { program: program.clone(), source })?)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}
