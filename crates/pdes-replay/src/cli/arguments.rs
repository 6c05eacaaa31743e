//! Flags and subcommands of the command line.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use netmodel::quantity::Speed;
use pdes_replay::{MODELS, Model};
use serde::de::DeserializeOwned;

use super::{Misuse, stdin};

/// Replays a trace of an MPI program on a model of a machine, and predicts how long the program would run there.
#[derive(Debug, Parser)]
#[command(name = "pdes-replay", version, long_version = VERSION.as_str(), args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Without a command it replays, as `run` does. Flags override the configuration. The last line on stdout is the simulated \
    time.\nExit status: 0 done, 1 the run failed (bad trace, deadlock, a file that cannot be read or written), 2 misuse (flags, configuration)."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Configuration, if its name ends in .toml, or else a trace; - is a trace on standard input.
    #[arg(value_name = "CONFIG|TRACE", value_parser = input())]
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// Version, and the features of this build.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("pictures", cfg!(feature = "pictures")),
        ("parquet", cfg!(feature = "parquet")),
        ("mpi", cfg!(feature = "mpi")),
        ("otf2", cfg!(feature = "otf2")),
    ];
    let line = |(name, is_built)| format!("\n{} {name}", if is_built { "with   " } else { "without" });
    features.into_iter().map(line).fold(env!("CARGO_PKG_VERSION").to_owned(), |text, line| text + &line)
});

/// Amount of output, of all commands.
#[derive(Debug, Default, Args)]
pub(crate) struct Verbosity {
    /// Prints only results and warnings: no notes, no progress, of a replay only the simulated time.
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = "Messages")]
    pub(crate) quiet: bool,
    /// Also logs details, such as all parameters of the models; RUST_LOG selects them by module.
    #[arg(long, short, global = true, help_heading = "Messages")]
    pub(crate) verbose: bool,
    /// Colours of messages.
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", global = true, default_value_t = Colours::Auto, help_heading = "Messages")]
    colour: Colours,
}

/// When messages have colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Colours {
    /// On a terminal, unless the variable NO_COLOR is set.
    #[default]
    Auto,
    /// Always, also in a file.
    Always,
    /// Never, even on a terminal.
    Never,
}

impl Verbosity {
    /// Returns whether messages on stderr have colours.
    pub(crate) fn has_colours(&self) -> bool {
        match self.colour {
            Colours::Always => true,
            Colours::Never => false,
            Colours::Auto => {
                std::io::stderr().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replays a trace: the default command, which also takes a file as argument.
    Run(Box<RunCommand>),
    /// Writes a commented configuration and a platform to begin with: run.toml and platform.toml.
    Init(super::init::InitArguments),
    /// Describes or checks a platform.
    #[command(subcommand)]
    Platform(PlatformCommand),
    /// Creates, converts and inspects traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Runs an MPI program in simulated time: its ranks are processes here, and its messages those of the simulated machine.
    Online(Box<super::online::OnlineArguments>),
    /// Runs an MPI program in all orders of messages that MPI allows: deadlocks that one run does not show, and the range of times.
    Explore(Box<super::explore::ExploreArguments>),
    /// Builds and installs the library that records MPI programs.
    #[command(subcommand)]
    Tracer(TracerCommand),
    /// Replays a program on many machines, or with many settings: every combination of the values in a file.
    Sweep(SweepArguments),
    /// Replays a program and hypotheses about it, such as balanced computations or messages that are left out, and compares them.
    WhatIf(super::what_if::WhatIfArguments),
    /// Says how efficient a run is and which problems it has, and what mending them would gain.
    Diagnose(super::diagnose::DiagnoseArguments),
    /// Says what each part of the machine is worth to a run: the time saved by one percent less latency, time per byte, or time per flop.
    Prices(super::prices::PricesArguments),
    /// Says why two runs differ: divides the difference of their times into parts due to program, machine, network, library and placement.
    Why(super::why::WhyArguments),
    /// Seeks collective algorithms and hosts of ranks with which a run takes less time, and replays each.
    Optimize(super::optimize::OptimizeArguments),
    /// Schedules a workload of batch jobs on the nodes of a machine: who starts when, where, and after which wait.
    Schedule(super::schedule::ScheduleArguments),
    /// Runs a configuration many times, each time with other failures: the distribution of its times, and the worst case.
    Ensemble(super::ensemble::EnsembleArguments),
    /// Says what failures and checkpoints cost a job: its expected time, the best interval, and the times of many runs.
    Goodput(super::goodput::GoodputArguments),
    /// Runs a task graph on the processors and accelerators of a node, under schedulers whose times stand beside what no scheduler can beat.
    Tasks(super::tasks::TasksArguments),
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
    /// Converts a trace of any format to an archive (.pdt), a GOAL schedule (.goal), or a trace of Paraver (.prv) or Dimemas (.dim).
    Convert {
        /// Trace of any format; - is standard input.
        #[arg(value_parser = input())]
        trace: PathBuf,
        /// Archive that is written, or another format if it ends in .goal, .prv or .dim.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Content of the trace: actions of MPI programs, or a GOAL schedule in text or in LogGOPSim's binary form.
        #[arg(long, value_enum, value_name = "FORM", default_value_t = TraceFormat::Ti)]
        from: TraceFormat,
        /// Number of threads that read and convert.
        #[arg(long, value_name = "N", default_value_t = 1)]
        threads: usize,
        /// Keeps every action as a separate record (no folding).
        #[arg(long)]
        flat: bool,
        /// Number of data files, each for an equal part of the ranks.
        #[arg(long, value_name = "N", default_value_t = 1)]
        shards: u32,
        /// Flops per second at which times became the amounts of text, such as 3Gf or 3e9 (SMPI's smpi/host-speed); the archive tells it.
        #[arg(long, value_name = "SPEED", value_parser = parse_rate::<Speed>, allow_negative_numbers = true)]
        speed: Option<f64>,
        /// Metric of an OTF2 archive that counts computations in place of their times, such as PAPI_TOT_INS.
        #[arg(long, value_name = "NAME", conflicts_with = "speed")]
        counter: Option<String>,
        #[command(flatten)]
        chakra: super::trace::chakra::ChakraArguments,
    },
    /// Prints the numbers of ranks, actions and messages, and how the trace is stored.
    Info {
        /// Trace of any format; - is standard input.
        #[arg(value_parser = input())]
        trace: PathBuf,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Checks checksums, channels, collectives and requests; exits with 1 if there is an error.
    Check {
        /// Trace of any format; - is standard input.
        #[arg(value_parser = input())]
        trace: PathBuf,
    },
    /// Finds what is suspicious in a trace, though a replay takes it: lost ends, gaps, computations without a unit, and so on.
    Lint {
        /// Trace of any format; - is standard input.
        #[arg(value_parser = input())]
        trace: PathBuf,
    },
    /// Writes a trace as text: a directory of rank files.
    Dump {
        /// Trace of any format; - is standard input.
        #[arg(value_parser = input())]
        trace: PathBuf,
        /// Directory; without it the merged text goes to stdout.
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Writes a part of a trace to an archive: some ranks, or the first iterations of the main loop.
    Cut {
        /// Trace; a folded archive is cut by its structure, without reading actions. - is standard input.
        #[arg(value_parser = input())]
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
    /// Writes the trace of a program as a hypothesis changes it to an archive.
    Transform {
        /// Trace of any format; - is standard input.
        #[arg(value_parser = input())]
        trace: PathBuf,
        /// Archive of the transformed program.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Hypotheses (TOML), as for `what-if`.
        #[arg(long, value_name = "FILE")]
        with: PathBuf,
        /// Name of the hypothesis, if the file has several.
        #[arg(long, value_name = "NAME")]
        hypothesis: Option<String>,
        /// Number of threads that read and write.
        #[arg(long, value_name = "N", default_value_t = 1)]
        threads: usize,
    },
    /// Writes the trace that a program would have on another number of ranks, of traces on two or three numbers of ranks, or of one.
    Extrapolate {
        /// Traces of any format, on different numbers of ranks.
        #[arg(required = true)]
        traces: Vec<PathBuf>,
        /// Number of ranks of the result.
        #[arg(long, value_name = "N")]
        ranks: u32,
        /// Number of ranks of the result along each dimension, such as 64,32; by default the grid most like that of the largest trace.
        #[arg(long, value_name = "N,...", value_delimiter = ',')]
        grid: Option<Vec<u32>>,
        /// Largest misfit of an amount of computation, relative to it.
        #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
        misfit: f64,
        /// How the problem grows with the number of ranks, which one trace does not tell.
        #[arg(long, value_name = "GROWTH")]
        scaling: Option<ScalingArgument>,
        /// Archive that is written.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Generates an archive of a known program.
    Generate(Box<super::trace::generate::GenerateArguments>),
    /// Runs an MPI program and records the actions of its processes in an archive.
    Acquire(super::trace::acquire::AcquireArguments),
    /// Writes an archive from the shards that a recorded program has left.
    Gather(super::trace::acquire::GatherArguments),
}

/// Parses the name of a file that is read; `-` is standard input.
pub(super) fn input() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| if path == Path::new("-") { stdin::spool() } else { Ok(path) })
}

/// How a problem grows with the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScalingArgument {
    /// Each rank has as many points as in the trace: sizes and computations stay.
    Weak,
    /// The points of the trace are divided among all ranks: computations are proportional to the points of a rank, messages to its
    /// face towards the peer.
    Strong,
}

/// Content of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Actions of MPI programs: time-independent text or an archive of it.
    Ti,
    /// A GOAL schedule: text, LogGOPSim's binary form, or an archive of it.
    Goal,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TracerCommand {
    /// Compiles the tracer for the local MPI library, and installs it where `trace acquire` looks for it.
    Install(super::tracer::InstallArguments),
    /// Prints the directory of the headers for programs that run online: `mpicc -I$(pdes-replay tracer headers)`.
    Headers,
}

/// A replay with its input as an argument.
#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    /// Configuration, if its name ends in .toml, or else a trace; - is a trace on standard input.
    #[arg(value_name = "CONFIG|TRACE", value_parser = input())]
    input: Option<PathBuf>,
    #[command(flatten)]
    run: RunArguments,
}

impl RunCommand {
    /// Returns the flags, with the argument as one of them.
    pub(crate) fn arguments(&self) -> Result<RunArguments, Misuse> {
        with_input(self.run.clone(), self.input.as_deref())
    }
}

/// Returns flags with an argument that is a configuration, if its name ends in `.toml`, or else a trace.
pub(crate) fn with_input(mut run: RunArguments, input: Option<&Path>) -> Result<RunArguments, Misuse> {
    let Some(input) = input else { return Ok(run) };
    let is_config = input.extension().is_some_and(|extension| extension == "toml");
    let (flag, value) = if is_config { ("--config", &mut run.config) } else { ("--trace", &mut run.trace) };
    if let Some(other) = value.replace(input.to_path_buf()) {
        let (input, other) = (input.display(), other.display());
        return Err(Misuse(format!("found {input} and {flag} {other}, expected one of them")));
    }
    Ok(run)
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunArguments {
    /// Configuration of the run (TOML); - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) config: Option<PathBuf>,
    /// Trace: an archive (.pdt), a file list, a merged file, or a directory of rank-N.txt; text plain, .gz or .zst; or a Paraver trace (.prv). With
    /// --model loggops a GOAL schedule. - is standard input.
    #[arg(long, value_name = "PATH", value_parser = input(), help_heading = "Input")]
    pub(crate) trace: Option<PathBuf>,
    /// Speed of the machine on which the program of the trace ran, such as 3Gf or 3e9 (flop/s): computations take the recorded times on
    /// hosts of this speed. Of this machine for a program that runs online.
    #[arg(long, value_name = "SPEED", allow_negative_numbers = true, help_heading = "Input")]
    pub(crate) speed: Option<String>,
    /// Platform: SimGrid XML or TOML.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) platform: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = model_help(), help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Sets a value of the configuration, such as network.preset=lv08; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE", help_heading = "Model")]
    pub(crate) set: Vec<String>,
    /// Number of threads, from 1 (the default) to 1024.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Execution")]
    pub(crate) threads: Option<i64>,
    /// Also replays each job alone, and without each other one: how much slower it is than alone, and who delays it.
    #[arg(long, help_heading = "Output")]
    pub(crate) slowdown: bool,
    /// Writes checkpoints into this directory, from which --resume continues.
    #[arg(long, value_name = "DIR", help_heading = "Execution")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Time between two checkpoints, such as 30s, 5m (the default) or 1h.
    #[arg(long, value_name = "TIME", help_heading = "Execution")]
    pub(crate) every: Option<String>,
    /// Resumes from the checkpoint in the directory; if there is none, starts from the beginning.
    #[arg(long, help_heading = "Execution")]
    pub(crate) resume: bool,
    /// File for the report (JSON).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Prints the report (JSON) in place of the summary, as --report - does.
    #[arg(long, conflicts_with = "report", help_heading = "Output")]
    pub(crate) json: bool,
    /// Replays a second time, and writes the parallelism of the replay and the times predicted for up to 4096 workers (JSON).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) profile: Option<PathBuf>,
    /// Writes all events and rates as a certificate, which tools/check-certificate verifies.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) certificate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) timeline: super::timeline::TimelineArguments,
}

/// Flags that name the run of a command which replays it, perhaps often.
#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Configuration of the run (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Trace of the program, of any format; - is standard input.
    #[arg(long, value_name = "PATH", value_parser = input())]
    trace: Option<PathBuf>,
    /// Platform: SimGrid XML or TOML.
    #[arg(long, value_name = "FILE")]
    platform: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = model_help())]
    model: Option<String>,
    /// Sets a value of the configuration, such as network.preset=lv08; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Number of threads of each replay, from 1 (the default) to 1024.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<i64>,
}

impl ReplayFlags {
    /// Returns the flags as those of the command that replays once.
    pub(crate) fn arguments(&self) -> RunArguments {
        let Self { config, trace, platform, model, set, threads } = self;
        RunArguments {
            config: config.clone(),
            trace: trace.clone(),
            platform: platform.clone(),
            model: model.clone(),
            set: set.clone(),
            threads: *threads,
            ..RunArguments::default()
        }
    }
}

/// Describes the network models, the default first.
pub(super) fn model_help() -> String {
    let model = |model: &Model| format!("{}: {}", model.key, model.description);
    let models: Vec<String> = MODELS.iter().map(model).collect();
    format!("Network model. {} [default: {}]", models.join(" "), MODELS[0].key)
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Values that are varied (TOML).
    pub(crate) sweep: PathBuf,
    /// Directory of the results: sweep.csv, sweep.parquet, sweep.html, and runs.jsonl, from which an interrupted sweep continues.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Number of concurrent runs, from 1; by default the number of cores.
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    #[arg(long, value_enum, value_name = "FORM", help = pictures_help("Also writes the figures of the page to files."))]
    pub(crate) pictures: Option<PictureFormatName>,
    /// Repeats all runs, including those with results in the directory.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Prints the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Adds to a description that this program was built without pictures, if it was.
pub(super) fn pictures_help(text: &str) -> String {
    let note = " This program was built without pictures.";
    if cfg!(feature = "pictures") { text.to_owned() } else { format!("{text}{note}") }
}

/// File format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormatName {
    /// Scalable vector graphics.
    Svg,
    /// Files of pixels.
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
        /// Prints JSON.
        #[arg(long)]
        json: bool,
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

/// Reads a speed or a bandwidth, with or without its unit.
pub(super) fn parse_rate<Q: DeserializeOwned + Into<f64>>(text: &str) -> Result<f64, String> {
    let value = text.parse().map_or_else(|_| toml::Value::from(text), |number: f64| number.into());
    match Q::deserialize(value).map(Into::into) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        Ok(_) => Err("expected a value above 0".to_owned()),
        Err(error) => Err(error.to_string().trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every command and option of every command is described by a sentence.
    #[test]
    fn every_option_has_a_sentence() {
        fn check(command: &clap::Command, path: &str) {
            let described = |help: Option<&clap::builder::StyledStr>| {
                help.map(ToString::to_string)
                    .is_some_and(|help| help.contains(' ') && help.starts_with(char::is_uppercase))
            };
            assert!(described(command.get_about()), "{path}");
            for argument in command.get_arguments() {
                assert!(described(argument.get_help()), "{path} {}", argument.get_id());
                for value in
                    argument.get_possible_values().iter().filter(|_| argument.get_action().takes_values())
                {
                    // Shells and classes have names that say all; the help of policies and schedulers describes each.
                    let is_named =
                        ["shell", "class", "policy", "scheduler"].contains(&argument.get_id().as_str());
                    assert!(
                        is_named || described(value.get_help()),
                        "{path} {} {}",
                        argument.get_id(),
                        value.get_name()
                    );
                }
            }
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                check(sub, &format!("{path} {}", sub.get_name()));
            }
        }
        let mut command = Arguments::command();
        command.build();
        check(&command, "pdes-replay");
    }
}
