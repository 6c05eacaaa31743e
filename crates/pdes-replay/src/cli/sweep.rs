//! The command that runs sweeps.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result};
use outputs::{AtomicFile, FileRoles};
use pdes_replay::{Sweep, SweepResults, SweepRow, available_threads, write_csv};
use serde_json::{Value, json};

use super::arguments::SweepArguments;
use super::{Misuse, explain, large_pages, progress, require_pictures};

/// Runs a sweep, writes the results and prints them.
pub(crate) fn run(arguments: &SweepArguments, quiet: bool) -> Result<()> {
    if arguments.pictures.is_some() {
        require_pictures()?;
    }
    let sweep = Sweep::from_path(&arguments.sweep).map_err(|error| match error.is_unreadable() {
        true => anyhow::Error::from(error),
        false => Misuse(error.to_string()).into(),
    });
    let sweep = sweep.map_err(|error| explain(&arguments.sweep, "a sweep", error))?;
    let mut roles = FileRoles::default();
    roles.input("sweep", &arguments.sweep);
    for (role, path) in sweep.input_files() {
        roles.input(role, path);
    }
    for name in Sweep::OUTPUTS {
        roles.output("file of results", &arguments.output.join(name));
    }
    roles.check().map_err(Misuse::from)?;
    let at_once = arguments.jobs.map_or_else(available_threads, NonZeroUsize::get);
    let done = AtomicU64::new(0);
    tracing::info!("{} runs, {at_once} at the same time", sweep.len());
    large_pages::set_large_pages(true);
    let results = progress::watch_count(&done, sweep.len() as u64, "runs", || {
        sweep.run(&arguments.output, at_once, arguments.fresh, &done)
    });
    let results = results.map_err(|error| match error.is_unreadable() {
        true => anyhow::Error::from(error),
        false => Misuse(error.to_string()).into(),
    })?;
    if results.resumed > 0 {
        tracing::info!("{} of them had been done before (--fresh runs all again)", results.resumed);
    }
    write(&results, arguments)?;
    if arguments.json {
        let rows: Vec<Value> = results.rows.iter().map(|row| row_json(&results, row)).collect();
        std::io::stdout().lock().write_all((serde_json::to_string_pretty(&rows)? + "\n").as_bytes())?;
    } else if !quiet {
        print(&results)?;
    }
    match results.failures() {
        0 => Ok(()),
        failures => anyhow::bail!("{failures} of {} runs failed; the table says why", results.rows.len()),
    }
}

fn write(results: &SweepResults, arguments: &SweepArguments) -> Result<()> {
    let table = arguments.output.join("sweep.csv");
    write_file(&table, |file| Ok(write_csv(results, file)?))?;
    #[cfg(feature = "parquet")]
    {
        let columns = arguments.output.join("sweep.parquet");
        write_file(&columns, |file| Ok(pdes_replay::write_parquet(results, file)?))?;
    }
    #[cfg(feature = "pictures")]
    present(results, arguments)?;
    Ok(())
}

/// Writes the page, and pictures if they are requested.
#[cfg(feature = "pictures")]
fn present(results: &SweepResults, arguments: &SweepArguments) -> Result<()> {
    use super::arguments::PictureFormatName;
    use pdes_replay::PictureFormat;

    let page = arguments.output.join("sweep.html");
    let name = arguments.sweep.file_stem().unwrap_or_default().display();
    let presets = if results.presets.len() == 1 { "preset" } else { "presets" };
    results.write_page(&format!("{name} ({presets} {})", results.presets.join(", ")), &page)?;
    let format = arguments.pictures.map(|format| match format {
        PictureFormatName::Svg => PictureFormat::Svg,
        PictureFormatName::Png => PictureFormat::Png,
    });
    if let Some(format) = format {
        results.write_pictures(&arguments.output, format)?;
    }
    tracing::info!("wrote {}", page.display());
    Ok(())
}

fn write_file(path: &Path, content: impl FnOnce(&mut AtomicFile) -> Result<()>) -> Result<()> {
    let write = || -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        content(&mut file)?;
        Ok(file.commit().map(drop)?)
    };
    write().with_context(|| path.display().to_string())
}

/// Describes a run as JSON: the values of the axes, and the result or the error.
fn row_json(results: &SweepResults, row: &SweepRow) -> Value {
    let values: BTreeMap<_, _> = results.axes.iter().zip(&row.labels).collect();
    let (result, error) = (row.result.as_ref().ok(), row.result.as_ref().err());
    json!({ "values": values, "cost": row.cost, "result": result, "error": error })
}

/// Prints a line per run.
fn print(results: &SweepResults) -> Result<()> {
    let axes = results.varying();
    let widths: Vec<usize> = axes
        .iter()
        .map(|&axis| {
            let labels = results.rows.iter().map(|row| row.labels[axis].chars().count());
            labels.chain([results.axes[axis].chars().count()]).max().unwrap_or_default()
        })
        .collect();
    let mut output = std::io::stdout().lock();
    let mut line = |labels: &[String], text: &str| {
        let labels = axes.iter().map(|&axis| &labels[axis]);
        let cells = labels.zip(&widths).map(|(label, &width)| format!("{label:width$}  "));
        writeln!(output, "{}{text}", cells.collect::<String>())
    };
    line(&results.axes, "simulated time")?;
    for row in results.rows.iter().filter(|row| !row.is_left_out) {
        match &row.result {
            Ok(found) => line(&row.labels, &format!("{:.9} s", found.simulated_time_s))?,
            Err(error) => line(&row.labels, error)?,
        }
    }
    if let Some(best) = results.shortest().filter(|_| results.rows.len() > 1) {
        let values = axes.iter().map(|&axis| format!("{} {}", results.axes[axis], best.labels[axis]));
        writeln!(output, "shortest: {}", values.collect::<Vec<_>>().join(", "))?;
    }
    for (count, reason) in results.left_out() {
        writeln!(output, "left out: {count}, such as: {reason}")?;
    }
    Ok(())
}
