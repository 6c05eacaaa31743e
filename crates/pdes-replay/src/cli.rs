//! Command line: dispatch of subcommands, logging, errors and exit status.

mod answers;
mod arguments;
mod calibrate;
mod diagnose;
mod ensemble;
mod explore;
mod files;
mod goal;
mod goodput;
mod init;
mod large_pages;
mod manual;
mod online;
mod optimize;
mod platform;
mod prices;
mod processes;
mod progress;
mod report;
mod run;
mod schedule;
mod schema;
mod stdin;
mod summary;
mod sweep;
mod tasks;
mod timeline;
mod trace;
mod tracer;
mod validate;
mod what_if;
mod why;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use pdes_core::Cluster;
use pdes_replay::{ConfigError, ProgramError, ReportError, nearest, other_suffix, recognize};
use tracing_subscriber::EnvFilter;

use arguments::{Arguments, Command, RunArguments, Verbosity, with_input};
use trace::acquire::AcquireError;

/// Exit status of misuse.
const MISUSE: u8 = 2;

/// Exit status of a command ended by a signal, as in shells.
const INTERRUPTED_STATUS: u8 = 130;

/// An invalid combination of flags.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Misuse(String);

/// Adds to the error of reading a file of which kind the file is, if that is another one than expected.
fn explain(path: &Path, expected: &str, error: anyhow::Error) -> anyhow::Error {
    let message = message(&error);
    match recognize(path).filter(|found| found.name != expected && !message.contains(&found.to_string())) {
        Some(_) if message.contains(": this is ") => error,
        Some(found) if error.is::<Misuse>() => Misuse(format!("{message}; {found}")).into(),
        Some(found) => anyhow::anyhow!("{message}; {found}"),
        None => error,
    }
}

/// Refuses the name of a file whose suffix is that of another format than the one that is written.
fn check_suffix(path: Option<&Path>, expected: &[&str], advice: &str) -> Result<(), Misuse> {
    let Some(path) = path else { return Ok(()) };
    match other_suffix(path, expected) {
        Some(why) => Err(Misuse(format!("{}: {why}; {advice}", path.display()))),
        None => Ok(()),
    }
}

/// Refuses pages and pictures if the program was built without them.
fn require_pictures() -> Result<(), Misuse> {
    let message = "this program was built without pictures: build it with --features pictures";
    if cfg!(feature = "pictures") { Ok(()) } else { Err(Misuse(message.to_owned())) }
}

/// Runs the command and returns its exit status: 0 done, 1 failed, 2 misuse.
pub(crate) fn main() -> ExitCode {
    if let Err(misuse) = refuse_unknown_command() {
        return exit_code(Err(misuse.into()), None);
    }
    let arguments = Arguments::parse_from(online::with_long_flags(words().into_iter()));
    start_log(&arguments);
    let quiet = arguments.verbosity.quiet;
    let replay = |arguments: Result<RunArguments, Misuse>| match arguments {
        Ok(arguments) => on_processes(quiet, |quiet, cluster| run::run(&arguments, quiet, cluster)),
        Err(misuse) => exit_code(Err(misuse.into()), None),
    };
    match &arguments.command {
        None => replay(with_input(arguments.run.clone(), arguments.input.as_deref())),
        Some(Command::Run(command)) => replay(command.arguments()),
        Some(Command::Init(arguments)) => exit_code(init::run(arguments), None),
        Some(Command::Platform(command)) => exit_code(platform::run(command), None),
        Some(Command::Trace(command)) => exit_code(trace::run(command), None),
        Some(Command::Online(arguments)) => online::run(arguments),
        Some(Command::Explore(arguments)) => explore::run(arguments),
        Some(Command::Tracer(command)) => exit_code(tracer::run(command), None),
        Some(Command::Sweep(arguments)) => exit_code(sweep::run(arguments, quiet), None),
        Some(Command::WhatIf(arguments)) => exit_code(what_if::run(arguments, quiet), None),
        Some(Command::Diagnose(arguments)) => {
            on_processes(quiet, |quiet, cluster| diagnose::run(arguments, quiet, cluster))
        }
        Some(Command::Prices(arguments)) => {
            on_processes(quiet, |quiet, cluster| prices::run(arguments, quiet, cluster))
        }
        Some(Command::Why(arguments)) => {
            on_processes(quiet, |quiet, cluster| why::run(arguments, quiet, cluster))
        }
        Some(Command::Optimize(arguments)) => {
            on_processes(quiet, |quiet, cluster| optimize::run(arguments, quiet, cluster))
        }
        Some(Command::Schedule(arguments)) => exit_code(schedule::run(arguments, quiet), None),
        Some(Command::Ensemble(arguments)) => exit_code(ensemble::run(arguments, quiet), None),
        Some(Command::Goodput(arguments)) => exit_code(goodput::run(arguments), None),
        Some(Command::Tasks(arguments)) => exit_code(tasks::run(arguments), None),
        Some(Command::Validate(arguments)) => exit_code(validate::run(arguments), None),
        Some(Command::Report(arguments)) => exit_code(report::run(arguments), None),
        Some(Command::Calibrate(arguments)) => exit_code(calibrate::run(arguments), None),
        Some(Command::Schema { document }) => exit_code(schema::run(*document), None),
        Some(Command::Completions { shell }) => exit_code(manual::completions(*shell), None),
        Some(Command::Man { output }) => exit_code(manual::man(output.as_deref()), None),
    }
}

/// Returns the words of the command line. Flags of all commands may precede the command, which clap wants first where the program has arguments
/// of its own.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_global = |word: &&OsString| ["-q", "--quiet", "-v", "--verbose"].iter().any(|flag| *word == flag);
    let flags = words.iter().skip(1).take_while(is_global).count();
    if words.get(flags + 1).is_some_and(|word| !word.to_string_lossy().starts_with('-')) {
        words[1..=flags + 1].rotate_left(flags);
    }
    words
}

/// Refuses a first word that is neither a command nor a file, with the command that was probably meant.
fn refuse_unknown_command() -> Result<(), Misuse> {
    let Some(word) = std::env::args_os().nth(1).and_then(|word| word.into_string().ok()) else {
        return Ok(());
    };
    let command = Arguments::command();
    let names = || command.get_subcommands().map(clap::Command::get_name).chain(["help"]);
    let is_file = word.contains(['.', '/', '\\']) || std::path::Path::new(&word).exists();
    if word.starts_with('-') || is_file || names().any(|name| name == word) {
        return Ok(());
    }
    let hint = match nearest(&word, &names().collect::<Vec<_>>()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => "pdes-replay --help lists the commands".to_owned(),
    };
    Err(Misuse(format!("there is no command or file {word:?}; {hint}")))
}

/// Runs a command on this process, or on all processes that were started together, of which all but the first are quiet.
fn on_processes(quiet: bool, run: impl FnOnce(bool, &mut Cluster) -> anyhow::Result<()>) -> ExitCode {
    match processes::join() {
        Ok(mut cluster) => {
            let result = run(quiet || cluster.member() != 0, &mut cluster);
            // All processes leave together, so that the error is reported before the launcher ends them because one has failed.
            exit_code(result, Some(&cluster))
        }
        Err(error) => exit_code(Err(error), None),
    }
}

/// Reports the error, if there is one and no other process reports it; returns the exit status.
fn exit_code(result: anyhow::Result<()>, cluster: Option<&Cluster>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    // Whoever reads stdout, such as `head`, has seen enough.
    let is_closed_pipe = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    if error.chain().count() == 1 && error.downcast_ref().is_some_and(is_closed_pipe) {
        return ExitCode::SUCCESS;
    }
    if !processes::is_reported_elsewhere(&error, cluster) {
        report_error(&error);
    }
    let is_invalid = |error: &ConfigError| !error.is_unreadable();
    let misuse = error.downcast_ref().is_some_and(is_invalid)
        || error.downcast_ref().is_some_and(ReportError::is_misuse)
        || error.is::<Misuse>()
        || error.downcast_ref().is_some_and(ProgramError::is_misuse);
    if error.downcast_ref().is_some_and(AcquireError::is_interrupt) {
        return ExitCode::from(INTERRUPTED_STATUS);
    }
    if misuse { ExitCode::from(MISUSE) } else { ExitCode::FAILURE }
}

/// Starts logging to stderr: warnings always, notes unless the command is quiet, details if it is verbose or by `RUST_LOG`. Of several processes only the
/// first one logs more than errors.
fn start_log(arguments: &Arguments) {
    let default = match &arguments.verbosity {
        _ if processes::is_not_first() => "error",
        Verbosity { quiet: true, .. } => "warn",
        Verbosity { verbose: true, .. } => "debug",
        // The program has the word.
        _ if matches!(arguments.command, Some(Command::Online(_) | Command::Explore(_))) => "warn",
        _ => "info",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.without_time().with_target(false).with_ansi(arguments.verbosity.has_colours()).init();
}

/// Prints an error.
#[expect(clippy::print_stderr, reason = "this is where errors are meant to go")]
fn report_error(error: &anyhow::Error) {
    eprintln!("pdes-replay: {}", message(error));
}

/// Returns the message of an error, and those of its causes that it does not contain.
fn message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}
