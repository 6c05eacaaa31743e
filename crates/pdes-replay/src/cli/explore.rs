//! The command that runs a program in all orders of messages that MPI allows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use explore::{
    ChoicePoint, End, Ending, Failure, FailureKind, Findings, Recorded, Run, Schedule, ScheduleError,
    Scheduled, search,
};
use online::{Computation, Program, Settings};
use outputs::FileRoles;
use pdes_core::Progress;
use pdes_replay::{Config, Model, RunError, RunSpec, Simulation};
use replay::{Epoch, RunningProgram as _, WaitingRank};
use serde::Serialize;

use super::arguments::{RunArguments, input, with_input};
use super::{Misuse, exit_code, files, online as program, run};

#[derive(Debug, Args)]
pub(crate) struct ExploreArguments {
    /// Configuration, if its name ends in .toml, or else a trace, in place of a program.
    #[arg(value_name = "CONFIG|TRACE", value_parser = input())]
    input: Option<PathBuf>,
    /// Number of ranks of the program; -np is the same.
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "command")]
    ranks: Option<u32>,
    /// Sends that wait for their receive: those of the configuration (model), all but buffered ones (zero), or none but synchronous ones (infinite).
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Buffering::Model)]
    buffering: Buffering,
    /// Largest number of runs; it is said if there would be more.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_schedules: u64,
    /// Runs the program once, under a schedule that an exploration has found (JSON); its output is shown.
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    #[command(flatten)]
    run: RunArguments,
    /// The program, and its arguments, after --.
    #[arg(last = true, value_name = "COMMAND", requires = "ranks", conflicts_with = "input")]
    command: Vec<OsString>,
}

/// Sends that wait for their receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Buffering {
    /// Those of the configuration.
    Model,
    /// All but buffered ones.
    Zero,
    /// None but synchronous ones.
    Infinite,
}

/// What is written to the report.
#[derive(Serialize)]
struct Document<'a> {
    program: String,
    buffering: Buffering,
    #[serde(flatten)]
    findings: &'a Findings,
}

/// A program that is to be explored.
struct Exploration<'a> {
    arguments: &'a ExploreArguments,
    spec: RunSpec,
    subject: Subject,
    /// Warnings so far: runs repeat them.
    warned: RefCell<BTreeSet<String>>,
}

enum Subject {
    /// A command, which is started for each run, with so many ranks.
    Command(u32, Settings),
    Trace(Recorded),
}

/// Explores a program; the exit status is 1 if something is wrong in some order.
pub(crate) fn run(arguments: &ExploreArguments) -> ExitCode {
    match specify(arguments).and_then(|exploration| exploration.run()) {
        Ok(findings) if findings.failures.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => exit_code(Err(error), None),
    }
}

fn specify(arguments: &ExploreArguments) -> Result<Exploration<'_>> {
    let mut config = match arguments.ranks {
        Some(ranks) => program::configure(&arguments.run, ranks, &arguments.command)?,
        None => run::config(&with_input(arguments.run.clone(), arguments.input.as_deref())?)?,
    };
    match arguments.buffering {
        Buffering::Model => {}
        Buffering::Zero => {
            config.set("mpi.detached_below_bytes=0")?;
            config.set("mpi.eager_below_bytes=0")?;
        }
        // More than any message has.
        Buffering::Infinite => config.set(&format!("mpi.detached_below_bytes={}", 1_u64 << 48))?,
    }
    let explores = arguments.schedule.is_none();
    let live = match arguments.ranks {
        Some(ranks) => Some((ranks, settings(&config, explores)?)),
        None => None,
    };
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    arguments.schedule.iter().for_each(|path| roles.input("schedule", path));
    roles.check().map_err(Misuse::from)?;
    let online_speed = config.online_speed()?;
    let spec = config.resolve()?;
    run::check_outputs(&spec)?;
    program::refuse(&spec)?;
    let outputs = [(spec.timeline.is_some(), "a timeline"), (spec.certificate.is_some(), "a certificate")];
    if let Some((_, what)) = outputs.iter().find(|(is_asked, _)| *is_asked) {
        return Err(Misuse(format!("{what} is of one run, and explore has many: leave it out")).into());
    }
    let (subject, trace_speed) = match live {
        Some((ranks, settings)) => (Subject::Command(ranks, settings), online_speed),
        // The program of a trace counts in the time of its machine.
        None => (Subject::Trace(recorded(&spec)?), None),
    };
    let spec = RunSpec { threads: 1, trace_speed, ..spec };
    Ok(Exploration { arguments, spec, subject, warned: RefCell::default() })
}

/// Loads the program of a trace.
fn recorded(spec: &RunSpec) -> Result<Recorded> {
    if !spec.other_programs.is_empty() {
        return Err(Misuse("explore has one program: leave the jobs out".to_owned()).into());
    }
    let trace = trace_tools::load(&spec.trace, &spec.load_options()).context("the trace")?;
    let recorded = Recorded::new(&spec.trace, trace, spec.trace_speed).map_err(Misuse)?;
    let kept = recorded.kept();
    if let Some(first) = kept.first() {
        tracing::warn!(
            "rank {first} and {} other(s) answer the senders of messages from any source: these keep their recorded sources, since the trace \
             has no other answers",
            kept.len() - 1
        );
    }
    Ok(recorded)
}

/// Returns the settings of a program whose runs have to be equal.
fn settings(config: &Config, explores: bool) -> Result<Settings> {
    let settings = program::settings(config)?;
    if settings.poll_tolerance > 0.0 {
        let message =
            "polls that fail unasked are choices that explore would not see: leave online.poll_tolerance out";
        return Err(Misuse(message.to_owned()).into());
    }
    if settings.fold_bytes.is_some() {
        let message =
            "ranks write the same memory in no order, and explore repeats runs: leave online.fold_bytes out";
        return Err(Misuse(message.to_owned()).into());
    }
    let computation = match settings.computation {
        // The default of a program that runs once.
        Computation::Measured if config.online()?.computation.is_none() => Computation::None,
        Computation::Measured | Computation::Instructions => {
            let message = "computations take another time in each run, and explore repeats runs: set online.computation = \"none\" or \"fixed\"";
            return Err(Misuse(message.to_owned()).into());
        }
        other => other,
    };
    Ok(Settings { computation, explores, threads: 1, ..settings })
}

impl Exploration<'_> {
    fn run(&self) -> Result<Findings> {
        let findings = match &self.arguments.schedule {
            Some(path) => {
                let schedule = read_schedule(path)?;
                let of_file = |error: ScheduleError| Misuse(format!("{}: {error}", path.display()));
                schedule.check(self.ranks()).map_err(of_file)?;
                // One run has no more to it.
                let mut findings = search(1, |_, run| {
                    let (ending, mut warnings) = self.run_on(&self.spec, &schedule, run)?;
                    match (run.check(&schedule).map_err(of_file), &ending) {
                        (Ok(()), _) => {}
                        (Err(Misuse(error)), Ending::Deadlock(_) | Ending::Failed(_)) => warnings.push(error),
                        (Err(misuse), Ending::Completed { .. }) => return Err(misuse.into()),
                    }
                    self.warn((ending, warnings))
                })?;
                findings.complete = true;
                findings
            }
            None => search(self.arguments.max_schedules, |schedule, run| self.run_under(schedule, run))?,
        };
        if let Some(path) = &self.spec.report {
            let program = self.spec.trace.to_string();
            let document = Document { program, buffering: self.arguments.buffering, findings: &findings };
            outputs::write_json(&document, path).with_context(|| format!("the report {}", path.display()))?;
        }
        print(&findings, self.arguments)?;
        Ok(findings)
    }

    fn ranks(&self) -> u32 {
        match &self.subject {
            Subject::Command(ranks, _) => *ranks,
            Subject::Trace(recorded) => recorded.ranks(),
        }
    }

    /// Runs the program under a schedule. Choices are made without contention; the time is that of the model.
    fn run_under(&self, schedule: &Schedule, run: &Run) -> Result<Ending> {
        let spec = &self.spec;
        let uncontended = RunSpec { model: Model::uncontended(), epoch: Epoch::Exact, ..spec.clone() };
        let ended = self.run_on(&uncontended, schedule, run)?;
        let is_timed = spec.model.key == uncontended.model.key;
        match ended.0 {
            Ending::Completed { .. } if !is_timed => {
                self.warn(self.run_on(spec, &run.schedule(schedule), &Run::default())?)
            }
            _ => self.warn(ended),
        }
    }

    /// Warns of what a run leaves out, the first time.
    fn warn(&self, (ending, warnings): (Ending, Vec<String>)) -> Result<Ending> {
        let mut warned = self.warned.borrow_mut();
        for warning in warnings {
            if warned.insert(warning.clone()) {
                tracing::warn!("{warning}");
            }
        }
        Ok(ending)
    }

    fn run_on(&self, spec: &RunSpec, schedule: &Schedule, run: &Run) -> Result<(Ending, Vec<String>)> {
        match &self.subject {
            Subject::Command(ranks, settings) => {
                run_command((&self.arguments.command, *ranks, *settings), spec, schedule, run)
            }
            Subject::Trace(recorded) => run_trace(recorded, spec, schedule, run),
        }
    }
}

/// Replays a trace under a schedule; returns its end, and warnings.
fn run_trace(
    recorded: &Recorded,
    spec: &RunSpec,
    schedule: &Schedule,
    run: &Run,
) -> Result<(Ending, Vec<String>)> {
    let spec = spec.with_code(Scheduled::new(recorded.clone(), schedule, run));
    let simulation = Simulation::load(&spec)?;
    let mut warnings = simulation.warnings();
    let ending = match simulation.replay(&Progress::new(1)) {
        Ok(outcome) => {
            warnings.extend(simulation.outcome_warnings(&outcome));
            let time_s = outcome.simulated_time().as_secs_f64();
            Ending::Completed { time_s, mistakes: Vec::new() }
        }
        Err(RunError::Deadlock(deadlock)) => {
            let place = |WaitingRank { rank, waiting, .. }: &WaitingRank| {
                let place = recorded.place(*rank, waiting.action).unwrap_or_default();
                format!("rank {rank} in action {} at {place}", waiting.action)
            };
            let calls = deadlock.chain.iter().map(place).collect();
            Ending::Deadlock(Failure { message: deadlock.to_string(), calls })
        }
        Err(error @ RunError::Replay { .. }) => {
            Ending::Failed(Failure { message: error.to_string(), calls: Vec::new() })
        }
        Err(error) => return Err(error.into()),
    };
    Ok((ending, warnings))
}

/// Runs a command with so many ranks under a schedule; returns its end, and warnings.
fn run_command(
    (command, ranks, settings): (&[OsString], u32, Settings),
    spec: &RunSpec,
    schedule: &Schedule,
    run: &Run,
) -> Result<(Ending, Vec<String>)> {
    let program = Program::start(command, ranks, settings)?;
    let spec = spec.with_code(Scheduled::new(program.clone(), schedule, run));
    let mut warnings = Vec::new();
    let outcome = Simulation::load(&spec).and_then(|simulation| {
        warnings.extend(simulation.warnings());
        let outcome = simulation.replay(&Progress::new(1))?;
        warnings.extend(simulation.outcome_warnings(&outcome));
        Ok(outcome)
    });
    warnings.extend(program.omissions().map(str::to_owned));
    // Its calls are known while its processes are there.
    let failure = |error: RunError| Failure { message: error.to_string(), calls: program.calls() };
    let ending = match outcome {
        Ok(outcome) => {
            let mistakes = program.warnings();
            let time_s = outcome.simulated_time().as_secs_f64();
            match program.wait() {
                0 => Ending::Completed { time_s, mistakes },
                code => {
                    let message = format!("the program ended with exit status {code}");
                    Ending::Failed(Failure { message, calls: Vec::new() })
                }
            }
        }
        Err(error @ RunError::Deadlock(_)) => Ending::Deadlock(failure(error)),
        Err(error @ RunError::Replay { .. }) => Ending::Failed(failure(error)),
        Err(error) => {
            program.kill();
            return Err(error.into());
        }
    };
    if !matches!(ending, Ending::Completed { .. }) {
        program.kill();
    }
    Ok((ending, warnings))
}

fn read_schedule(path: &Path) -> Result<Schedule> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let expected = "expected a schedule of a report of explore, such as `jq .slowest.schedule report.json`";
    serde_json::from_str(&text)
        .map_err(|error| Misuse(format!("{}: {error}; {expected}", path.display())).into())
}

fn print(findings: &Findings, arguments: &ExploreArguments) -> Result<()> {
    let Findings { schedules, runs, complete, failures, fastest, slowest } = findings;
    let mut out = std::io::stdout().lock();
    let impossible = runs - schedules;
    let of_impossible = match impossible {
        0 => String::new(),
        _ => format!(", and {impossible} that proved impossible or equal"),
    };
    writeln!(out, "{schedules} schedule(s) run{of_impossible}")?;
    if !complete {
        let most = arguments.max_schedules;
        tracing::warn!("there are more schedules than {most} runs show: raise --max-schedules");
    }
    for found in failures {
        let kind = match found.kind {
            FailureKind::Deadlock | FailureKind::Failure => "found",
            FailureKind::Mistake => "mistake",
        };
        let where_shown = if found.in_first_run { "the first one, too" } else { "not in the first one" };
        writeln!(out, "{kind} in {} schedule(s), {where_shown}: {}", found.schedules, found.failure.message)?;
        found.failure.calls.iter().try_for_each(|call| writeln!(out, "  {call}"))?;
        if !found.schedule.0.is_empty() {
            writeln!(out, "  schedule: {}", describe(&found.schedule))?;
        }
    }
    if let (Some(fastest), Some(slowest)) = (fastest, slowest) {
        writeln!(out, "simulated time: {:.9} s to {:.9} s", fastest.time_s, slowest.time_s)?;
        if slowest.time_s > fastest.time_s {
            writeln!(out, "  slowest schedule: {}", describe(&slowest.schedule))?;
        }
    }
    Ok(())
}

/// Largest number of choices that are printed.
const MOST_PRINTED: usize = 20;

fn describe(schedule: &Schedule) -> String {
    let describe = |(point, end): (&ChoicePoint, &End)| {
        let end = match end {
            End::Source(Some(rank)) => format!("from rank {rank}"),
            End::Source(None) => "nothing".to_owned(),
            End::Requests(requests) if requests.is_empty() => "no request".to_owned(),
            End::Requests(requests) => {
                format!("request {}", requests.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        format!("rank {} choice {} {end}", point.rank, point.number)
    };
    let choices: Vec<String> = schedule.0.iter().take(MOST_PRINTED).map(describe).collect();
    let more = if schedule.0.len() > MOST_PRINTED { "; ..." } else { "" };
    choices.join("; ") + more
}
