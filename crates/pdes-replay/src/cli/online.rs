//! The command that runs an MPI program online.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use online::{Clocks, Computation, Extrapolation, ExtrapolationRule, Program, Recording, Settings};
use outputs::{AtomicFile, FileRoles};
use pdes_core::Progress;
use pdes_replay::{
    Config, ExecutionMode, OnlineClock, OnlineComputation, Outcome, Report, RunSpec, Sampling, Simulation,
};
use tempfile::TempPath;

use super::arguments::RunArguments;
use super::{Misuse, exit_code, files, report_error, run, summary};

/// Speed of this machine if nothing tells it [flop/s]: that by which the tracer counts times.
const DEFAULT_SPEED: f64 = 1e9;

#[derive(Debug, Args)]
pub(crate) struct OnlineArguments {
    /// Number of ranks; -np is the same.
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Writes the run as a trace, an archive, whose replay has the same digest.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Leaves the program once its calls repeat, after E equal iterations of each rank (by default 10), and replays N of them.
    #[arg(long, value_name = "iterations=N[,executed=E]", value_parser = extrapolation_rule)]
    extrapolate: Option<ExtrapolationRule>,
    /// Clocks that show simulated time.
    #[arg(long, value_name = "CLOCKS", value_parser = PossibleValuesParser::new([
        PossibleValue::new("wtime").help("That of MPI_Wtime"),
        PossibleValue::new("all").help("Also those of the C library, and its sleeps"),
    ]))]
    clock: Option<String>,
    /// Lets a rank wait in MPI_Init for a debugger.
    #[arg(long, value_name = "RANK")]
    gdb: Option<u32>,
    #[command(flatten)]
    run: RunArguments,
    /// The program, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Replaces the launchers' flag -np, which is none of one letter.
pub(crate) fn with_long_flags(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|command| command == "online" || command == "explore") {
        let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        let is_flag = |argument: &&mut OsString| **argument == "-np";
        if let Some(flag) = arguments[..end].iter_mut().find(is_flag) {
            *flag = "--ranks".into();
        }
    }
    arguments
}

/// Runs a program; returns its exit status, or that of an error before it.
pub(crate) fn run(arguments: &OnlineArguments) -> ExitCode {
    let started = specify(arguments).and_then(|(spec, settings, warning)| {
        let mut program = Program::start(&arguments.command, arguments.ranks, settings)?;
        let recording = arguments.record.as_ref().map(|path| (path, program.record()));
        let extrapolation = arguments.extrapolate.map(|rule| Leaving::of(rule, &mut program)).transpose()?;
        Ok((spec, warning, program, recording, extrapolation))
    });
    let (spec, warning, program, recording, leaving) = match started {
        Ok(started) => started,
        Err(error) => return exit_code(Err(error), None),
    };
    let write = |(path, recording): (&PathBuf, Recording)| {
        let written =
            recording.write(path).with_context(|| format!("the recorded trace {}", path.display()))?;
        written.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        anyhow::Ok(())
    };
    let simulated = simulate(&spec.with_code(program.clone()), &program, leaving.as_ref(), warning);
    let executed = leaving.as_ref().and_then(|leaving| Some((leaving, leaving.extrapolation.executed()?)));
    if let (Err(_), Some((leaving, executed))) = (&simulated, executed) {
        program.kill();
        return exit_code(leaving.replay(&spec, executed, arguments.record.as_deref()), None);
    }
    let code = match simulated.and_then(|()| recording.map_or(Ok(()), write)) {
        Ok(()) => program.wait(),
        Err(error) => {
            // Its calls are known while its processes are there.
            let calls = program.calls();
            // A program that has ended itself has said why.
            if !program.has_aborted() {
                report_error(&error);
                calls.iter().for_each(|call| tracing::error!("{call}"));
            }
            program.kill()
        }
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Combines the configuration and the flags; returns what a run is warned of, too.
fn specify(arguments: &OnlineArguments) -> Result<(RunSpec, Settings, Option<&'static str>)> {
    let OnlineArguments { ranks, record, clock, gdb, run, command, .. } = arguments;
    let mut config = configure(run, *ranks, command)?;
    if let Some(clock) = clock {
        config.set_flag("--clock", "online", "clock", clock.as_str().into())?;
    }
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    record.iter().for_each(|path| roles.output("recorded trace", path));
    roles.check().map_err(Misuse::from)?;
    if let Some(rank) = gdb.filter(|rank| rank >= ranks) {
        return Err(Misuse(format!("--gdb {rank}: the program has ranks 0 to {}", ranks - 1)).into());
    }
    let settings = Settings { debugged: *gdb, ..settings(&config)? };
    let has_region_speeds =
        config.section("compute").is_some_and(|section| section.contains_key("region_speeds"));
    let is_measured = matches!(settings.computation, Computation::Measured);
    let warning = (has_region_speeds && is_measured).then_some(REGION_SPEEDS);
    let spec = RunSpec { trace_speed: config.online_speed()?, ..config.resolve()? };
    run::check_outputs(&spec)?;
    record.as_ref().map_or(Ok(()), |path| run::check_output("recorded trace", path))?;
    refuse(&spec)?;
    Ok((spec, settings, warning))
}

/// Warning where the speed of a region may count twice: in the time that is measured, and in the configuration.
const REGION_SPEEDS: &str = "the times that are measured are divided by compute.region_speeds, which have to be of the simulated hosts relative \
    to this machine: measured times already have the factors that calibrate finds here; leave them out, or set online.computation = \
    \"instructions\"";

/// Returns the configuration of a program of `ranks` ranks; without a platform, it has a host for each.
pub(super) fn configure(flags: &RunArguments, ranks: u32, command: &[OsString]) -> Result<Config> {
    if flags.trace.is_some() {
        return Err(Misuse("--trace is for replays: an online run has a program".to_owned()).into());
    }
    let name = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let mut config = run::config(&RunArguments { trace: Some(name.into()), speed: None, ..flags.clone() })?;
    if let Some(speed) = &flags.speed {
        config.set_flag("--speed", "online", "speed", run::number(speed))?;
    }
    if config.section("platform").is_none() {
        config.set(&format!(
            "platform.topology={{ kind = 'cluster', hosts = {ranks}, speed = '1Gf', bandwidth = '1.25GBps', latency = '1us' }}"
        ))?;
    }
    Ok(config)
}

/// Refuses what a program that runs cannot have.
pub(super) fn refuse(spec: &RunSpec) -> Result<()> {
    let refused = [
        (
            spec.checkpoints.is_some(),
            "a checkpoint: the state of a process is not saved; leave --checkpoint out",
        ),
        (
            spec.fast_forward,
            "fast-forward: what a program does next is not known before it runs; leave engine.fast_forward out",
        ),
        (spec.profile.is_some(), "a profile: it replays a trace many times; leave --profile out"),
    ];
    match refused.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(Misuse(format!("an online run cannot have {what}")).into()),
        None => Ok(()),
    }
}

/// Returns the settings of the program.
pub(super) fn settings(config: &Config) -> Result<Settings> {
    let online = config.online()?;
    let fixed_s = online.fixed_s()?;
    let computation = match online.computation.unwrap_or_default() {
        OnlineComputation::Measured => Computation::Measured,
        OnlineComputation::None => Computation::None,
        OnlineComputation::Instructions => Computation::Instructions,
        OnlineComputation::Fixed => Computation::Fixed(fixed_s),
    };
    let clocks = match online.clock.unwrap_or_default() {
        OnlineClock::Wtime => Clocks::Wtime,
        OnlineClock::All => Clocks::All,
    };
    let speed = config.online_speed()?.unwrap_or(DEFAULT_SPEED);
    let (fold_bytes, poll_tolerance) = (online.fold_bytes()?, online.poll_tolerance()?);
    Ok(Settings {
        computation,
        clocks,
        speed,
        debugged: None,
        fold_bytes,
        poll_tolerance,
        checks_buffers: online.check_buffers.unwrap_or(false),
        threads: config.threads()?,
        explores: false,
    })
}

/// Runs the simulation, and writes what it finds.
fn simulate(
    spec: &RunSpec,
    program: &Program,
    leaving: Option<&Leaving>,
    warning: Option<&'static str>,
) -> Result<()> {
    let simulation = Simulation::load(spec)?;
    let execution = simulation.execution(1);
    execution.check().map_err(|why| Misuse(why.to_string()))?;
    // Without contention a rank goes on until it lacks a message, whatever others compute; noise is that of whole computations.
    program.watch_computations(execution.mode != ExecutionMode::Uncontended && spec.noise.is_none());
    program.set_storage(!simulation.platform().storage().is_empty());
    let outcome = replay(&simulation)?;
    let mut report = Report::new(&simulation, &outcome);
    report.sections.sampling = Sampling::of_blocks(program.sampled_blocks());
    let mut of_program: Vec<String> =
        warning.into_iter().chain(program.omissions()).map(str::to_owned).collect();
    of_program.extend(report.sections.sampling.as_ref().and_then(Sampling::warning));
    of_program.extend(program.warnings());
    of_program.extend(leaving.map(Leaving::goes_on));
    finish(spec, report, &outcome, of_program)
}

/// Replays, with the warnings of a simulation and of its outcome.
fn replay(simulation: &Simulation) -> Result<Outcome> {
    simulation.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let outcome = simulation.replay(&Progress::new(simulation.spec().threads))?;
    simulation.outcome_warnings(&outcome).iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(outcome)
}

/// Writes what a run has found, with warnings about the program.
fn finish(spec: &RunSpec, mut report: Report, outcome: &Outcome, of_program: Vec<String>) -> Result<()> {
    of_program.iter().for_each(|warning| tracing::warn!("{warning}"));
    report.warnings.extend(of_program);
    if let Some(path) = &spec.report {
        report.write(path).with_context(|| format!("the report {}", path.display()))?;
    }
    // Standard output is the program's.
    summary::print(&report, outcome, !tracing::enabled!(tracing::Level::DEBUG), true)
}

/// Reads the rule by which a program is left.
fn extrapolation_rule(text: &str) -> Result<ExtrapolationRule, String> {
    let (mut iterations, mut executed) = (None, ExtrapolationRule::EXECUTED);
    for part in text.split(',') {
        let number = |value: &str| value.parse().ok().filter(|number| *number > 1);
        match part.split_once('=').map(|(key, value)| (key, number(value))) {
            Some(("iterations", Some(number))) => iterations = Some(number),
            Some(("executed", Some(number))) => executed = number,
            _ => {
                return Err(format!(
                    "found {part}, expected iterations=N or executed=N with a number from 2"
                ));
            }
        }
    }
    match iterations {
        Some(iterations) if iterations >= executed => Ok(ExtrapolationRule { iterations, executed }),
        Some(iterations) => {
            Err(format!("{iterations} iterations are less than the {executed} that are executed"))
        }
        None => Err("expected iterations=N".to_owned()),
    }
}

/// A program that may be left.
struct Leaving {
    extrapolation: Extrapolation,
    /// The calls of the program, and of the iterations.
    archive: TempPath,
}

impl Leaving {
    fn of(rule: ExtrapolationRule, program: &mut Program) -> Result<Self> {
        let archive = tempfile::Builder::new().suffix(".pdt").tempfile()?.into_temp_path();
        Ok(Self { extrapolation: program.extrapolate(rule, &archive), archive })
    }

    /// Returns the warning that the program was not left.
    fn goes_on(&self) -> String {
        let ExtrapolationRule { executed, .. } = self.extrapolation.rule();
        format!(
            "the program was executed to its end (--extrapolate): its ranks did not all make {executed} equal iterations, one after the \
             other, in which all messages are received"
        )
    }

    /// Replays the program that was left, and writes what is found.
    fn replay(&self, spec: &RunSpec, executed: u64, record: Option<&Path>) -> Result<()> {
        let ExtrapolationRule { iterations, .. } = self.extrapolation.rule();
        let spec = RunSpec { trace: (&*self.archive).into(), fast_forward: true, ..spec.clone() };
        let simulation = Simulation::load(&spec)?;
        let outcome = replay(&simulation)?;
        if let Some(path) = record {
            self.copy_archive(path).with_context(|| format!("the recorded trace {}", path.display()))?;
        }
        let left = format!(
            "the program was left after {executed} equal iterations of each rank (--extrapolate): {iterations} of them were replayed, \
             without what would follow them"
        );
        finish(&spec, Report::new(&simulation, &outcome), &outcome, vec![left])
    }

    fn copy_archive(&self, path: &Path) -> io::Result<u64> {
        let mut copy = AtomicFile::create(path)?;
        io::copy(&mut File::open(&self.archive)?, &mut copy)?;
        copy.commit()
    }
}
