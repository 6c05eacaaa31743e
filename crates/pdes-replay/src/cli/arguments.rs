//! Flags and subcommands of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Replays a trace of an MPI program on a model of a machine, and predicts how long the program would run there.
#[derive(Debug, Parser)]
#[command(name = "pdes-replay", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Flags override the configuration. The last line on stdout is the simulated time.\n\
    Exit status: 0 done, 1 the run failed (bad trace, deadlock, I/O), 2 misuse (flags, configuration).")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Describes or checks a platform.
    #[command(subcommand)]
    Platform(PlatformCommand),
    /// Creates, converts and inspects traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Replays a program on many machines, or with many settings: every combination of the values in a file.
    Sweep(SweepArguments),
    /// Replays a program that was recorded with times, and compares the replay with these times.
    Validate(super::validate::ValidateArguments),
    /// Shows the causes of lost time in a run and who waited for whom, or the changes to a second run: as a table, a page, or pictures.
    Report(super::report::ReportArguments),
    /// Measures messages between two processes, or reads measurements, and writes a machine for replays.
    Calibrate(super::calibrate::CalibrateArguments),
    /// Prints the JSON schema of a kind of TOML file, for completion in editors.
    Schema {
        /// Kind of file.
        #[arg(value_enum, default_value_t = super::schema::Document::Config)]
        document: super::schema::Document,
    },
    /// Prints a script that completes commands, flags and values in a shell.
    Completions {
        /// Name of the shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page of the program, or writes one for each command.
    Man {
        /// Existing directory for the pages of all commands.
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Converts a trace of any format to an archive (.pdt).
    Convert {
        /// Trace.
        trace: PathBuf,
        /// Archive.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Content of the trace: actions of MPI programs, or a GOAL schedule in text or in LogGOPSim's binary form.
        #[arg(long, value_enum, value_name = "FORM", default_value_t = TraceFormat::Ti)]
        from: TraceFormat,
        /// Number of threads.
        #[arg(long, value_name = "N", default_value_t = 1)]
        threads: usize,
        /// Keeps every action as a separate record (no folding).
        #[arg(long)]
        flat: bool,
        /// Number of data files, each for an equal part of the ranks.
        #[arg(long, value_name = "N", default_value_t = 1)]
        shards: u32,
    },
    /// Prints the numbers of ranks, actions and messages, and how the trace is stored.
    Info {
        /// Trace.
        trace: PathBuf,
    },
    /// Checks checksums, channels, collectives and requests; exits with 1 if there is an error.
    Check {
        /// Trace.
        trace: PathBuf,
    },
    /// Writes a trace as text: a directory of rank files.
    Dump {
        /// Trace.
        trace: PathBuf,
        /// Directory; without it the merged text goes to stdout.
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Writes a part of a trace to an archive: some ranks, or the first iterations of the main loop.
    Cut {
        /// Trace; a folded archive is cut by its structure, without reading actions.
        trace: PathBuf,
        /// Archive of the part.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Ranks from FIRST up to, but without, END, such as 0..64.
        #[arg(long, value_name = "FIRST..END", value_parser = parse_range)]
        ranks: Option<std::ops::Range<u32>>,
        /// Number of iterations of the main loop to keep, from the first.
        #[arg(long, value_name = "N")]
        iterations: Option<u64>,
    },
    /// Generates an archive of a known program.
    Generate(Box<super::trace::generate::GenerateArguments>),
    /// Runs an MPI program and records the actions of its processes in an archive.
    Acquire(super::trace::acquire::AcquireArguments),
    /// Writes an archive from the shards that a recorded program has left.
    Gather(super::trace::acquire::GatherArguments),
}

/// Content of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Actions of MPI programs: time-independent text or an archive of it.
    Ti,
    /// A GOAL schedule: text, LogGOPSim's binary form, or an archive of it.
    Goal,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArguments {
    /// Configuration of the run (TOML).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Trace: an archive (.pdt), a file list, a merged file, or a directory of rank-N.txt; text plain, .gz or .zst. With
    /// --model loggops a GOAL schedule.
    #[arg(long, value_name = "PATH")]
    pub(crate) trace: Option<PathBuf>,
    /// Platform: SimGrid XML or TOML.
    #[arg(long, value_name = "FILE")]
    pub(crate) platform: Option<PathBuf>,
    /// Network model.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Number of threads.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<i64>,
    /// File for the report (JSON).
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Replays a second time, and writes the parallelism of the replay and the times predicted for up to 4096 workers (JSON).
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Writes checkpoints into this directory, from which --resume continues; contention-free on one process.
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Time between two checkpoints, such as 30s, 5m (the default) or 1h.
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,
    /// Resumes from the checkpoint in the directory; if there is none, starts from the beginning.
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) timeline: super::timeline::TimelineArguments,
    /// Sets a value of the configuration, such as network.preset=lv08; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Prints only the simulated time and warnings.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Values that are varied (TOML).
    pub(crate) sweep: PathBuf,
    /// Directory of the results: sweep.csv, sweep.parquet, sweep.html, and runs.jsonl, from which an interrupted sweep continues.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Number of concurrent runs; by default the number of cores.
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    /// Also writes the figures of the page to files.
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) pictures: Option<PictureFormatName>,
    /// Repeats all runs, including those with results in the directory.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Suppresses the table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// File format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormatName {
    /// Scalable vector graphics.
    Svg,
    /// Pixels.
    Png,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlatformCommand {
    /// Prints hosts, links, diameter and bisection of a platform, and the route between two of its hosts.
    Show {
        /// SimGrid XML or TOML.
        platform: PathBuf,
        /// Two hosts whose route is printed.
        #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
        route: Option<Vec<String>>,
    },
    /// Reads a platform and follows its routes; exits with 1 if there is an error.
    Check {
        /// SimGrid XML or TOML.
        platform: PathBuf,
    },
}

fn parse_range(text: &str) -> Result<std::ops::Range<u32>, String> {
    let ends = text.split_once("..").and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
    match ends {
        Some((first, end)) if first < end => Ok(first..end),
        _ => Err(format!("found {text:?}, expected FIRST..END with FIRST below END, such as 0..64")),
    }
}
