//! The command that compares hypotheses about a program.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use clap::Args;
use outputs::FileRoles;
use pdes_replay::{HypothesisResult, Verification, WhatIf, WhatIfError, WhatIfResults, available_threads};
use trace_tools::transform::{Hypothesis, ORIGINAL, TransformError};

use super::arguments::ReplayFlags;
use super::{Misuse, explain, files, goal, large_pages, progress, run};

#[derive(Debug, Args)]
pub(crate) struct WhatIfArguments {
    /// Hypotheses: names with transformations of the program (TOML).
    hypotheses: PathBuf,
    /// Directory of the results: summary.json, what-if.html, and reports/ with the report of each program and its comparison with the original.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    run: ReplayFlags,
    /// Number of concurrent replays, from 1; by default the number of cores.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Trace of the program as it was really modified: compares the prediction of each hypothesis with its replay.
    #[arg(long, value_name = "FILE")]
    verify: Option<PathBuf>,
}

/// Replays the program and all hypotheses, writes the results and prints them.
pub(crate) fn run(arguments: &WhatIfArguments, quiet: bool) -> Result<()> {
    let hypotheses = read(&arguments.hypotheses)?;
    let config = run::config(&arguments.run.arguments())?;
    if goal::is_goal(&config) {
        let message = "hypotheses are about MPI programs: expected a trace, found a GOAL schedule";
        return Err(Misuse(message.to_owned()).into());
    }
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    roles.input("file of hypotheses", &arguments.hypotheses);
    arguments.verify.iter().for_each(|path| files::add_trace(&mut roles, path));
    for name in ["summary.json", "what-if.html", "modified.json"] {
        roles.output("file of results", &arguments.output.join(name));
    }
    roles.check().map_err(Misuse::from)?;
    tracing::info!("applying {} hypotheses", hypotheses.len());
    let verify = arguments.verify.as_deref();
    let what_if =
        WhatIf::new(&config, &hypotheses, verify, &arguments.output).map_err(|error| match error {
            WhatIfError::Transform(error) => misuse(error),
            WhatIfError::Config(error) => error.into(),
            error if error.is_misuse() => Misuse(error.to_string()).into(),
            error => error.into(),
        })?;
    let at_once = arguments.jobs.map_or_else(available_threads, NonZeroUsize::get);
    let done = AtomicU64::new(0);
    large_pages::set_large_pages(true);
    let results =
        progress::watch_count(&done, what_if.runs() as u64, "replays", || what_if.run(at_once, &done))?;
    #[cfg(feature = "pictures")]
    {
        let title = arguments.hypotheses.file_stem().unwrap_or_default().to_string_lossy();
        results.write_pages(&title, &arguments.output)?;
        tracing::info!("wrote {}", arguments.output.join("what-if.html").display());
    }
    if !quiet {
        print(&results)?;
    }
    match results.failures() {
        0 => Ok(()),
        failures => {
            anyhow::bail!("{failures} of {} replays failed; the table says why", what_if.runs())
        }
    }
}

/// Reads a file of hypotheses.
pub(super) fn read(path: &std::path::Path) -> Result<Vec<Hypothesis>> {
    Hypothesis::from_path(path).map_err(|error| explain(path, "a file of hypotheses", misuse(error)))
}

/// Makes an error of the exit status that it deserves.
pub(super) fn misuse(error: TransformError) -> anyhow::Error {
    if error.is_misuse() { Misuse(error.to_string()).into() } else { error.into() }
}

/// Prints a line per program, sorted by gain, and then the deviations from the modified program.
fn print(results: &WhatIfResults) -> Result<()> {
    let sorted = results.by_gain();
    // Lines are of one source of outcomes each.
    let lines: Vec<(String, &HypothesisResult)> = sorted
        .iter()
        .flat_map(|result| result.titled())
        .chain(results.modified.as_ref().map(|modified| (modified.name.clone(), modified)))
        .collect();
    let rows = lines.iter().flat_map(|(_, result)| result.verification.iter().flat_map(Verification::rows));
    let names =
        lines.iter().map(|(title, _)| title.chars().count()).chain(rows.map(|row| row.name.chars().count()));
    let width = names.chain(["hypothesis".len()]).max().unwrap_or_default();
    let mut output = std::io::stdout().lock();
    let has_energy = lines.iter().any(|(_, result)| result.energy_j.is_some());
    let header =
        format!("{:width$}  {:>16}  {:>16}  {:>16}", "hypothesis", "simulated time", "waiting", "change");
    writeln!(output, "{header}{}", if has_energy { format!("  {:>16}", "energy") } else { String::new() })?;
    for (title, result) in &lines {
        let (Some(time), None) = (result.simulated_time_s, &result.error) else {
            writeln!(output, "{title:width$}  {}", result.error.as_deref().unwrap_or_default())?;
            continue;
        };
        let waiting = result.total.map_or("-".to_owned(), |total| format!("{:.9} s", total.waiting_s));
        let change = if result.name == ORIGINAL { String::new() } else { result.describe_change() };
        let line = format!("{title:width$}  {:>16}  {waiting:>16}  {change:>16}", format!("{time:.9} s"));
        let energy = result.energy_j.map_or_else(String::new, |joules| format!("  {joules:>14.6} J"));
        let line = line + &energy;
        writeln!(output, "{}", line.trim_end())?;
    }
    for (title, result) in &lines {
        let Some(verification) = result.verification.as_ref().filter(|_| !result.is_same) else { continue };
        writeln!(output, "\n{title:width$}  {:>16}  {:>16}  {:>16}", "predicted", "modified", "deviation")?;
        for row in verification.rows() {
            let (name, deviation) = (row.name.replace('_', " "), row.describe());
            let [predicted, modified] = [row.predicted_s, row.modified_s].map(|time| format!("{time:.9} s"));
            writeln!(output, "{name:width$}  {predicted:>16}  {modified:>16}  {deviation:>16}")?;
        }
    }
    Ok(())
}
