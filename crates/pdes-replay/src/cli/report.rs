//! The command that presents a report: as a table, a page, or pictures.

mod difference;

mod critical_path;
mod links;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pdes_replay::{Breakdown, CallParts, Parts, RegionParts, SavedReport};

use super::arguments::pictures_help;
use super::{Misuse, require_pictures};

/// Largest number of ranks and call sites that are listed.
const MAX_LISTED: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Report (JSON), as written by --report.
    report: PathBuf,
    /// Second report, to compare the first one with.
    other: Option<PathBuf>,
    #[arg(short, long, value_name = "PATH", help = pictures_help("File of the page, or directory of the pictures; without it a table goes to stdout."))]
    output: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = ReportFormat::Html, requires = "output")]
    format: ReportFormat,
    /// Timeline of the run (Chrome trace events in JSON, .json or .json.gz), which the page can zoom.
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with = "other")]
    timeline: Option<PathBuf>,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// One page that needs no other file and no network.
    Html,
    /// A file of scalable vector graphics per figure.
    Svg,
    /// A file of pixels per figure.
    Png,
}

/// Presents a report, or its comparison with another one.
pub(crate) fn run(arguments: &ReportArguments) -> Result<()> {
    match (&arguments.output, &arguments.other) {
        (Some(output), _) => write(arguments, output),
        (None, Some(other)) => difference::print(&arguments.report, other),
        (None, None) => print(&arguments.report),
    }
}

/// Writes a page or pictures.
fn write(arguments: &ReportArguments, output: &Path) -> Result<()> {
    if arguments.format != ReportFormat::Html && arguments.timeline.is_some() {
        return Err(Misuse("a timeline is zoomed on a page: leave --format out".to_owned()).into());
    }
    require_pictures()?;
    #[cfg(feature = "pictures")]
    present(arguments, output)?;
    tracing::info!("wrote {}", output.display());
    Ok(())
}

#[cfg(feature = "pictures")]
fn present(arguments: &ReportArguments, output: &Path) -> Result<()> {
    use pdes_replay::{PictureFormat, Presentation, SavedTimeline};

    let run = SavedReport::from_path(&arguments.report)?;
    let portrait = match &arguments.other {
        Some(other) => Presentation::comparison(run, SavedReport::from_path(other)?),
        None => {
            Presentation::new(run, arguments.timeline.as_deref().map(SavedTimeline::from_path).transpose()?)
        }
    };
    let format = match arguments.format {
        ReportFormat::Html => return Ok(portrait.write_page(output)?),
        ReportFormat::Svg => PictureFormat::Svg,
        ReportFormat::Png => PictureFormat::Png,
    };
    let files = portrait.write_pictures(output, format)?;
    tracing::info!("{} pictures", files.len());
    Ok(())
}

/// Prints the analyses of a run as tables.
fn print(path: &Path) -> Result<()> {
    let report = SavedReport::from_path(path)?;
    if report.breakdown.is_none() && report.critical_path.is_none() && report.links.is_none() {
        bail!(
            "the report {} does not say where the time went: replay with analysis.waits = true",
            path.display()
        );
    }
    let mut text = String::new();
    heading(&report, &mut text)?;
    if let Some(breakdown) = &report.breakdown {
        parts(&breakdown.total, &mut text)?;
        calls(breakdown, &mut text)?;
        ranks(breakdown, &mut text)?;
        regions(&breakdown.regions, &mut text)?;
    }
    if let Some(path) = &report.critical_path {
        critical_path::table(path, &mut text)?;
    }
    if let Some(links) = &report.links {
        links::table(links, &mut text)?;
    }
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Returns the names of what was replayed, and on what.
fn name(report: &SavedReport) -> String {
    let [trace, platform, model] = ["trace", "platform", "model"].map(|name| report.parameter(name));
    format!("{trace} on {platform} ({model})")
}

fn heading(report: &SavedReport, text: &mut String) -> std::fmt::Result {
    let SavedReport { simulated_time_s, ranks, imbalance, .. } = report;
    writeln!(text, "{}: {ranks} ranks, {simulated_time_s:.9} s", name(report))?;
    if let Some(imbalance) = imbalance {
        writeln!(
            text,
            "computation: {:.9} s at most (rank {}), {:.9} s on average, imbalance {:.1} %",
            imbalance.max_s,
            imbalance.rank,
            imbalance.mean_s,
            100.0 * imbalance.compute
        )?;
    }
    Ok(())
}

fn parts(total: &Parts, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\n{:<16} {:>20} {:>7}", "part", "time of all ranks", "share")?;
    for (name, time) in total.named().into_iter().filter(|&(_, time)| time > 0.0) {
        writeln!(text, "{name:<16} {time:>18.9} s {:>5.1} %", percent(time, total.time_s))?;
    }
    Ok(())
}

/// Prints the kinds of actions that take time, in descending order.
fn calls(breakdown: &Breakdown, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "\n{:<16} {:>12} {:>20} {:>9} {:>9} {:>9}  most of the waiting",
        "action", "count", "time of all ranks", "own", "transfer", "waiting"
    )?;
    for CallParts { action, count, parts } in breakdown.calls_by_time() {
        let own = parts.compute_s + parts.sleep_s + parts.library_s;
        let share = |part| percent(part, parts.time_s);
        let line = format!(
            "{action:<16} {count:>12} {:>18.9} s {:>7.1} % {:>7.1} % {:>7.1} %  {}",
            parts.time_s,
            share(own),
            share(parts.transfer_s),
            share(parts.waiting_s),
            most_waiting(parts)
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Returns the wait state that takes most time; at a tie, the first.
fn most_waiting(parts: &Parts) -> &'static str {
    let states = parts.named().into_iter().skip(4).filter(|&(_, time)| time > 0.0);
    let most = states.reduce(|most, state| if state.1 > most.1 { state } else { most });
    most.map_or("", |(name, _)| name)
}

/// Prints the ranks that wait longest for others; at a tie, the lowest first.
fn ranks(breakdown: &Breakdown, text: &mut String) -> std::fmt::Result {
    let states = breakdown.ranks.waiting();
    let waited = |rank: usize| -> u64 { states.iter().map(|(_, column)| column[rank]).sum() };
    let mut ranks: Vec<(usize, u64)> =
        (0..breakdown.ranks.end_ps.len()).map(|rank| (rank, waited(rank))).collect();
    ranks.sort_by_key(|&(_, waited)| std::cmp::Reverse(waited));
    writeln!(text, "\n{:<16} {:>20} {:>20} {:>9}  most of the waiting", "rank", "waiting", "end", "share")?;
    for (rank, waited) in ranks.into_iter().take(MAX_LISTED).filter(|&(_, waited)| waited > 0) {
        let most = states.iter().rev().max_by_key(|(_, column)| column[rank]);
        let (waited, end) = (seconds(waited), seconds(breakdown.ranks.end_ps[rank]));
        writeln!(
            text,
            "{rank:<16} {waited:>18.9} s {end:>18.9} s {:>7.1} %  {}",
            percent(waited, end),
            most.map_or("", |(state, _)| state.name())
        )?;
    }
    Ok(())
}

fn regions(regions: &[RegionParts], text: &mut String) -> std::fmt::Result {
    if regions.iter().all(|region| region.site.is_none()) {
        return Ok(());
    }
    writeln!(
        text,
        "\n{:<32} {:>20} {:>9} {:>9} {:>9}",
        "call site", "time of all ranks", "transfer", "waiting", "imbalance"
    )?;
    for RegionParts { site, imbalance, parts, .. } in regions.iter().take(MAX_LISTED) {
        writeln!(
            text,
            "{:<32} {:>18.9} s {:>7.1} % {:>7.1} % {:>7.1} %",
            site.as_deref().unwrap_or("before the first"),
            parts.time_s,
            percent(parts.transfer_s, parts.time_s),
            percent(parts.waiting_s, parts.time_s),
            100.0 * imbalance
        )?;
    }
    if regions.len() > MAX_LISTED {
        writeln!(text, "and {} more", regions.len() - MAX_LISTED)?;
    }
    Ok(())
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { 100.0 * part / whole }
}

fn seconds(picos: u64) -> f64 {
    picos as f64 / 1e12
}
