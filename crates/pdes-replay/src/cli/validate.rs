//! The command that compares a replay with measured times.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use outputs::FileRoles;
use pdes_replay::{Residual, Share, TimeComparison, Validation};

use super::arguments::{RunArguments, model_help};
use super::{Misuse, files, goal, run};

/// Largest number of rows of a table.
const MAX_LISTED: usize = 12;
/// Largest number of calls that the paragraph of trust names.
const MAX_NAMED: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// Trace, recorded with `trace acquire --with-times`.
    trace: PathBuf,
    /// Configuration with the machine on which it was recorded (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Platform: SimGrid XML or TOML.
    #[arg(long, value_name = "FILE")]
    platform: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = model_help())]
    model: Option<String>,
    /// Number of threads, from 1 (the default) to 1024.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<i64>,
    /// Sets a value of the configuration, such as network.preset=lv08; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// File for the comparison (JSON).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Exits with 1 if the run time differs from the measured one by more than this, such as 10%.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    within: Option<f64>,
}

/// Replays the trace, compares the times, and prints the tables.
pub(crate) fn run(arguments: &ValidateArguments) -> Result<()> {
    let config = run::config(&RunArguments {
        config: arguments.config.clone(),
        trace: Some(arguments.trace.clone()),
        platform: arguments.platform.clone(),
        model: arguments.model.clone(),
        threads: arguments.threads,
        set: arguments.set.clone(),
        ..RunArguments::default()
    })?;
    if goal::is_goal(&config) {
        return Err(Misuse(
            "a GOAL schedule has no measured times: expected a trace of an MPI program".to_owned(),
        )
        .into());
    }
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    arguments.report.iter().for_each(|path| roles.output("comparison", path));
    roles.check().map_err(Misuse::from)?;
    let validation = Validation::new(&config.resolve()?)?;
    if let Some(path) = &arguments.report {
        validation.write(path).with_context(|| format!("the comparison {}", path.display()))?;
        tracing::info!("wrote the comparison {}", path.display());
    }
    let mut text = String::new();
    describe(&validation, &mut text)?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    match (arguments.within, validation.run_time.error) {
        (Some(within), Some(error)) if error.abs() > within => {
            bail!("the run time differs by {:+.1} %, expected at most {:.1} %", 100.0 * error, 100.0 * within)
        }
        (Some(_), None) => bail!("no time was measured, with which the run time could be compared"),
        _ => Ok(()),
    }
}

fn describe(validation: &Validation, text: &mut String) -> std::fmt::Result {
    let Validation { trace, platform, model, ranks, actions, measured_actions, .. } = validation;
    writeln!(
        text,
        "{trace} on {platform} ({model}): {ranks} ranks, {measured_actions} of {actions} actions have times"
    )?;
    let totals = [&validation.run_time, &validation.computation, &validation.communication];
    table(text, "time", &totals)?;
    table(text, "action", &validation.calls.iter().collect::<Vec<_>>())?;
    if validation.regions.iter().any(|region| !region.name.is_empty()) {
        table(text, "region", &validation.regions.iter().collect::<Vec<_>>())?;
    }
    if let Some(share) = validation.unmodelled_share {
        writeln!(
            text,
            "\nnot modelled: calls with {:.1} % of the measured time of all ranks",
            100.0 * share
        )?;
    }
    trust(validation, text)?;
    if let Some(Residual { name, part, error_s, region }) = &validation.residual {
        let place = region.as_ref().map_or(String::new(), |region| format!(", most at {region}"));
        writeln!(text, "\nmost of the error: the {part} of {name}, {error_s:+.9} s of all ranks{place}")?;
    }
    Ok(())
}

/// Writes a paragraph on how far the prediction can be trusted: its error by part and call, and what its run time depends on.
fn trust(validation: &Validation, text: &mut String) -> std::fmt::Result {
    let TimeComparison { measured_s, error_s, computation_error_s, communication_error_s, .. } =
        validation.run_time;
    writeln!(
        text,
        "\ntrust: the run time is off by {}: {} by computations, {} by communication.",
        percent(error_s, measured_s),
        percent(computation_error_s, measured_s),
        percent(communication_error_s, measured_s)
    )?;
    let mut calls: Vec<&TimeComparison> =
        validation.calls.iter().filter(|call| call.communication_error_s != 0.0).collect();
    calls.sort_by(|one, other| other.communication_error_s.abs().total_cmp(&one.communication_error_s.abs()));
    if !calls.is_empty() {
        let call = |call: &&TimeComparison| {
            let each = 1e6 * call.communication_error_s / call.count.max(1) as f64;
            format!("{} {:+.6} s, {each:+.2} us each", call.name, call.communication_error_s)
        };
        let largest: Vec<String> = calls.iter().take(MAX_NAMED).map(call).collect();
        writeln!(text, "Communication of all ranks, the largest errors: {}.", largest.join("; "))?;
    }
    if !validation.shares.is_empty() {
        let share = |one: &Share| format!("{:.1} % {} ({})", 100.0 * one.share, one.parameter, one.key);
        let shares: Vec<String> = validation.shares.iter().map(share).collect();
        writeln!(
            text,
            "The run time is {}. A parameter that is off by 10 % moves it by a tenth of its share.",
            shares.join(", ")
        )?;
    }
    Ok(())
}

fn table(text: &mut String, what: &str, rows: &[&TimeComparison]) -> std::fmt::Result {
    writeln!(
        text,
        "\n{what:<16} {:>10} {:>16} {:>16} {:>9} {:>15} {:>17}",
        "count", "measured", "replayed", "error", "by computation", "by communication"
    )?;
    for row in rows.iter().take(MAX_LISTED) {
        let name = if row.name.is_empty() { "before the first" } else { &row.name };
        let count = if row.count > 0 { row.count.to_string() } else { String::new() };
        writeln!(
            text,
            "{name:<16} {count:>10} {:>14.9} s {:>14.9} s {:>9} {:>15} {:>17}",
            row.measured_s,
            row.replayed_s,
            percent(row.error_s, row.measured_s),
            percent(row.computation_error_s, row.measured_s),
            percent(row.communication_error_s, row.measured_s)
        )?;
    }
    match rows.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(text, "and {more} more"),
    }
}

fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { "-".to_owned() } else { format!("{:+.1} %", 100.0 * part / whole) }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    let number = number.ok().filter(|number| number.is_finite() && *number >= 0.0);
    let expected = || format!("found {text:?}, expected a percentage of at least 0, such as 10%");
    number.map(|number| number / 100.0).ok_or_else(expected)
}
