//! The commands that build and install the library that records MPI programs, and the headers for them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result};
use clap::Args;

use super::arguments::TracerCommand;
use super::trace::acquire::{LIBRARY, own_directory};

/// Manifest of the tracer in the sources of this program.
const MANIFEST: &str = "crates/ti-tracer/Cargo.toml";

#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// Compiler of the MPI library with which the programs to record are linked.
    #[arg(long, value_name = "COMMAND", env = "MPICC", default_value = "mpicc")]
    mpicc: String,
    /// Directory of the library; by default that of this program, where `trace acquire` finds it without --tracer.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Directory with the sources of this program; by default the one from which it was built.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// The reason why the tracer cannot be installed.
#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error(
        "{}: the sources of this program are no longer there; name the directory of a copy with --source", manifest.display()
    )]
    NoSource { manifest: PathBuf },
    #[error("{program}: {source}; {advice}")]
    NotStarted { program: String, advice: &'static str, source: io::Error },
    #[error("the tracer was not built: cargo ended with {status}")]
    NotBuilt { status: ExitStatus },
}

/// Runs one of the commands for the tracer.
pub(crate) fn run(command: &TracerCommand) -> Result<()> {
    match command {
        TracerCommand::Install(arguments) => install(arguments),
        TracerCommand::Headers => Ok(writeln!(io::stdout().lock(), "{}", online::headers()?.display())?),
    }
}

fn install(arguments: &InstallArguments) -> Result<()> {
    let source = match &arguments.source {
        Some(source) => source.clone(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
    };
    let manifest = source.join(MANIFEST);
    if !manifest.is_file() {
        return Err(InstallError::NoSource { manifest }.into());
    }
    let mpicc = "an MPI library is needed; name its compiler with --mpicc";
    start(Command::new(&arguments.mpicc).arg("-show"), mpicc, Command::output)?;
    let target = tempfile::tempdir().context("a directory for the build")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "--locked", "--release", "--features", "mpi", "--crate-type", "cdylib"]);
    cargo.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(target.path());
    cargo.env("MPICC", &arguments.mpicc);
    tracing::info!("compiling the tracer with {}", arguments.mpicc);
    let status = start(&mut cargo, "Rust is needed: https://rustup.rs", Command::status)?;
    if !status.success() {
        return Err(InstallError::NotBuilt { status }.into());
    }
    let library = arguments.to.clone().map_or_else(own_directory, Ok)?.join(LIBRARY);
    copy(&target.path().join("release").join(LIBRARY), &library)
        .with_context(|| format!("the library {}", library.display()))?;
    Ok(writeln!(io::stdout().lock(), "installed {}", library.display())?)
}

fn start<T>(
    command: &mut Command,
    advice: &'static str,
    start: impl FnOnce(&mut Command) -> io::Result<T>,
) -> Result<T, InstallError> {
    let program = command.get_program().to_string_lossy().into_owned();
    start(command).map_err(|source| InstallError::NotStarted { program, advice, source })
}

/// Copies the library under another name first: a process may have mapped an earlier one.
fn copy(built: &Path, library: &Path) -> io::Result<()> {
    library.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let part = library.with_extension("so.part");
    std::fs::copy(built, &part)?;
    std::fs::rename(part, library)
}
