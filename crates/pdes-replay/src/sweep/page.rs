//! The results of a sweep as one HTML page, and as pictures.

use std::path::{Path, PathBuf};

use figures::quantity::{percent, seconds};
use figures::{Figure, Page, PictureFormat, Section, WriteError, write_figures};
use maud::{Markup, html};

use super::plot::{bars, lines};
use super::{SweepResults, SweepRow};
use crate::report::FOOTER;

impl SweepResults {
    /// Writes each figure of the comparison to a file in a directory; returns the paths of the files.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or a file cannot be written.
    pub fn write_pictures(
        &self,
        directory: &Path,
        format: PictureFormat,
    ) -> Result<Vec<PathBuf>, WriteError> {
        write_figures(figures(self).iter(), directory, format)
    }

    /// Writes the comparison as one self-contained HTML page.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or the file cannot be written.
    pub fn write_page(&self, title: &str, path: &Path) -> Result<(), WriteError> {
        let done: Vec<&SweepRow> = self.rows.iter().filter(|row| row.result.is_ok()).collect();
        let mut sections = Vec::new();
        if !done.is_empty() {
            let mut section = Section::new("times", "Simulated time");
            section.figures = figures(self);
            sections.push(section);
        }
        let mut runs = Section::new("runs", "All runs");
        runs.rest = html! {
            (table(self, &done))
            @for (labels, warning) in warnings(self) { p.warning { (labels) ": " (warning) } }
        };
        sections.push(runs);
        let lead = html! { p { (summary(self, &done)) } };
        Page { title, lead, sections: &sections, scripts: &[], footer: FOOTER }.write(path)
    }

    /// Returns the name of a row: its values of these axes.
    pub(super) fn name(row: &SweepRow, axes: &[usize], between: &str) -> String {
        axes.iter().map(|&axis| row.labels[axis].as_str()).collect::<Vec<_>>().join(between)
    }
}

fn figures(results: &SweepResults) -> Vec<Figure> {
    bars(results).into_iter().chain(lines(results)).collect()
}

fn table(results: &SweepResults, done: &[&SweepRow]) -> Markup {
    let time = |row: &SweepRow| row.result.as_ref().map_or(u64::MAX, |found| found.simulated_time_ps);
    let (best, axes) = (done.iter().map(|row| time(row)).min(), results.varying());
    html! {
        div.scroll { table {
            thead { tr {
                @for &axis in &axes { th { (results.axes[axis]) } }
                th.number { "simulated time" } th.number { "against the first" } th.number { "communication" }
                th.number { "messages" } th.number { "M actions/s" }
            } }
            tbody { @for row in &results.rows { (line(results, row, &axes, best == Some(time(row)))) } }
        } }
    }
}

fn summary(results: &SweepResults, done: &[&SweepRow]) -> Markup {
    let failed = results.failures();
    let least = done.iter().filter_map(|row| Some((row, row.result.as_ref().ok()?.simulated_time_s)));
    let least = least.min_by(|one, other| one.1.total_cmp(&other.1));
    html! {
        (results.rows.len()) " runs"
        @if failed > 0 { ", " (failed) " of which failed" }
        "."
        @if let Some((row, time)) = least {
            " The shortest simulated time is " (seconds(time)) ", with " (SweepResults::name(row, &results.varying(), ", ")) "."
        }
    }
}

fn line(results: &SweepResults, row: &SweepRow, axes: &[usize], is_best: bool) -> Markup {
    match &row.result {
        Ok(found) => html! {
            tr.best[is_best] {
                @for &axis in axes { td { (row.labels[axis]) } }
                td.number { (seconds(found.simulated_time_s)) }
                td.number { @if let Some(relative) = results.relative(row) { (change(relative)) } }
                td.number { (percent(found.communication_s, found.communication_s + found.compute_s)) }
                td.number { (found.messages) }
                td.number { (format!("{:.2}", found.actions_per_s / 1e6)) }
            }
        },
        Err(error) => html! {
            tr.failed {
                @for &axis in axes { td { (row.labels[axis]) } }
                td colspan="5" { (error) }
            }
        },
    }
}

fn change(relative: f64) -> String {
    match relative {
        1.0 => "1".to_owned(),
        relative if relative < 10.0 => format!("{:+.2} %", (relative - 1.0) * 100.0),
        relative => format!("{relative:.1} times"),
    }
}

fn warnings(results: &SweepResults) -> impl Iterator<Item = (String, &String)> {
    let axes = results.varying();
    results.rows.iter().flat_map(move |row| {
        let labels = SweepResults::name(row, &axes, ", ");
        let warnings = row.result.iter().flat_map(|found| &found.warnings);
        warnings.map(move |warning| (labels.clone(), warning))
    })
}
