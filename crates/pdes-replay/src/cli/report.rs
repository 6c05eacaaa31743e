//! The command that presents a report: as a table, a page, or pictures.

mod difference;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use outputs::FileRoles;
use pdes_replay::{SavedReport, other_suffix};

use super::arguments::pictures_help;
use super::{Misuse, require_pictures};

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
    /// Timeline of the run (Chrome trace events in JSON, .json or .json.gz), which the page can zoom; of two runs one of each, in their order.
    #[arg(long, value_name = "FILE", requires = "output")]
    timeline: Vec<PathBuf>,
    /// Diagnosis of the run (JSON of `diagnose --json`), whose sections the page has, too.
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with = "other")]
    diagnosis: Option<PathBuf>,
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
    /// A file of comma-separated values per table: ranks, calls, communication matrix, links.
    Csv,
}

/// Presents a report, or its comparison with another one.
pub(crate) fn run(arguments: &ReportArguments) -> Result<()> {
    let mut roles = FileRoles::default();
    roles.input("report", &arguments.report);
    for (role, path) in [("second report", &arguments.other), ("diagnosis", &arguments.diagnosis)] {
        path.iter().for_each(|path| roles.input(role, path));
    }
    arguments.timeline.iter().for_each(|path| roles.input("timeline", path));
    arguments.output.iter().for_each(|path| roles.output("output", path));
    roles.check().map_err(Misuse::from)?;
    match (&arguments.output, &arguments.other) {
        (Some(output), _) => write(arguments, output),
        (None, Some(other)) => difference::print(&arguments.report, other),
        (None, None) => print(&arguments.report),
    }
}

/// Writes a page or pictures.
fn write(arguments: &ReportArguments, output: &Path) -> Result<()> {
    if arguments.format != ReportFormat::Html && !arguments.timeline.is_empty() {
        return Err(Misuse("a timeline is zoomed on a page: leave --format out".to_owned()).into());
    }
    let (runs, timelines) = (1 + usize::from(arguments.other.is_some()), arguments.timeline.len());
    if ![0, runs].contains(&timelines) {
        let message =
            format!("found {timelines} timelines of {runs} reports, expected one --timeline for each report");
        return Err(Misuse(message).into());
    }
    check_output(output, arguments.format)?;
    if arguments.format == ReportFormat::Csv {
        return write_csv(arguments, output);
    }
    require_pictures()?;
    #[cfg(feature = "pictures")]
    present(arguments, output)?;
    tracing::info!("wrote {}", output.display());
    Ok(())
}

/// Refuses names that say something else than what is written: one page, or a directory with a file for each picture or table.
fn check_output(output: &Path, format: ReportFormat) -> Result<(), Misuse> {
    const DIRECTORY: &str =
        "--format svg, png or csv writes a file for each picture or table into a directory: -o DIR";
    let shown = output.display();
    if format == ReportFormat::Html {
        if output.is_dir() {
            return Err(Misuse(format!(
                "{shown} is a directory, expected the name of a page, such as run.html; {DIRECTORY}"
            )));
        }
        let suffix = output.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
        return match suffix {
            Some(suffix) if !["html", "htm"].contains(&suffix.as_str()) => Err(Misuse(format!(
                "{shown}: found the suffix .{suffix}, expected .html, the page of the report; {DIRECTORY}"
            ))),
            _ => Ok(()),
        };
    }
    let is_file = !output.is_dir() && other_suffix(output, &[]).is_some();
    let message =
        format!("{shown} is the name of a file; {DIRECTORY}, and without --format -o FILE.html is a page");
    if is_file { Err(Misuse(message)) } else { Ok(()) }
}

/// Writes the tables of a report as files in a directory.
fn write_csv(arguments: &ReportArguments, directory: &Path) -> Result<()> {
    if arguments.other.is_some() {
        return Err(
            Misuse("tables are of one report: leave the second one out, or --format".to_owned()).into()
        );
    }
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for table in SavedReport::from_path(&arguments.report)?.sections.csv() {
        let path = directory.join(table.name).with_extension("csv");
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&table.header)?;
        table.rows.iter().try_for_each(|row| writer.write_record(row))?;
        outputs::write_file(&path, &writer.into_inner()?).with_context(|| path.display().to_string())?;
        tracing::info!("wrote {}", path.display());
    }
    Ok(())
}

#[cfg(feature = "pictures")]
fn present(arguments: &ReportArguments, output: &Path) -> Result<()> {
    use super::explain;
    use pdes_replay::{Diagnosis, PictureFormat, Presentation, SavedTimeline};

    let run = SavedReport::from_path(&arguments.report)?;
    let timeline = |path: &PathBuf| {
        SavedTimeline::from_path(path).map_err(|error| explain(path, "a timeline", error.into()))
    };
    let timelines = arguments.timeline.iter().map(timeline).collect::<Result<Vec<_>>>()?;
    let portrait = match &arguments.other {
        Some(other) => {
            let other = SavedReport::from_path(other)?;
            run.unlike(&other).iter().for_each(|warning| tracing::warn!("{warning}"));
            Presentation::comparison(run, other)
        }
        None => {
            let read = |path: &PathBuf| {
                let found = Diagnosis::from_path(path);
                let found = found.with_context(|| format!("the diagnosis {}", path.display()));
                found.map_err(|error| explain(path, "a diagnosis", error))
            };
            Presentation::new(run).with_diagnosis(arguments.diagnosis.as_ref().map(read).transpose()?)
        }
    };
    let portrait = portrait.with_timelines(timelines);
    let format = match arguments.format {
        ReportFormat::Html => return Ok(portrait.write_page(output)?),
        ReportFormat::Svg => PictureFormat::Svg,
        ReportFormat::Png => PictureFormat::Png,
        ReportFormat::Csv => unreachable!("tables are written above"),
    };
    let files = portrait.write_pictures(output, format)?;
    tracing::info!("{} pictures", files.len());
    Ok(())
}

/// Prints the analyses of a run as tables.
fn print(path: &Path) -> Result<()> {
    let report = SavedReport::from_path(path)?;
    let mut tables = String::new();
    report.sections.write_tables(&mut tables)?;
    if tables.is_empty() {
        bail!(
            "the report {} does not say where the time went: replay with analysis.waits = true",
            path.display()
        );
    }
    let mut text = String::new();
    heading(&report, &mut text)?;
    for sentence in report.verdict() {
        writeln!(text, "{sentence}")?;
    }
    text.push_str(&tables);
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Returns the names of what was replayed, and on what.
fn name(report: &SavedReport) -> String {
    let [trace, platform, model, preset] =
        ["trace", "platform", "model", "preset"].map(|name| report.parameter(name));
    format!("{trace} on {platform} ({model}, preset {preset})")
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
