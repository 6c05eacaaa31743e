//! The command that prints JSON schemas.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use pdes_replay::{config_schema, hypotheses_schema, platform_schema, sweep_schema};

/// A kind of file that users write in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Document {
    /// The configuration of a run.
    Config,
    /// The configuration of a sweep.
    Sweep,
    /// The description of a platform.
    Platform,
    /// Hypotheses about a program.
    Hypotheses,
}

/// Prints the schema of a kind of file.
pub(crate) fn run(document: Document) -> Result<()> {
    let schema = match document {
        Document::Config => config_schema(),
        Document::Sweep => sweep_schema(),
        Document::Platform => platform_schema(),
        Document::Hypotheses => hypotheses_schema(),
    };
    Ok(writeln!(std::io::stdout().lock(), "{schema:#}")?)
}
