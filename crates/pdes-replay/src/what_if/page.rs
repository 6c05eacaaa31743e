//! The comparison of hypotheses as one HTML page, with a page for each that compares two reports.

use std::path::Path;

use figures::quantity::{seconds, signed_percent};
use figures::{Bar, Bars, COLOURS, Figure, Page, Section, WriteError, table};
use maud::{Markup, html};
use trace_tools::transform::ORIGINAL;

use super::result::OTHER_PARTS;
use super::{HypothesisResult, WhatIfResults};
use crate::report::{FOOTER, Presentation, RegionParts, ReportError, SavedReport};

/// Largest number of hypotheses in the drawing.
const MAX_BARS: usize = 60;
/// Largest number of call sites in a table.
const MAX_SITES: usize = 8;

/// The reason why pages cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A page cannot be drawn or written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl WhatIfResults {
    /// Writes `what-if.html` into the directory of the results, and for each hypothesis `reports/NAME.html`, which compares its report
    /// with that of the program.
    ///
    /// # Errors
    /// Returns an error if a report cannot be read, a figure cannot be drawn, or a file cannot be written.
    pub fn write_pages(&self, title: &str, directory: &Path) -> Result<(), PageError> {
        let reports = directory.join("reports");
        let saved = |name: &str| SavedReport::from_path(&reports.join(format!("{name}.json")));
        let has_original = self.hypotheses[0].error.is_none();
        for result in self.hypotheses[1..].iter().filter(|result| has_original && result.error.is_none()) {
            let comparison = Presentation::comparison(saved(ORIGINAL)?, saved(&result.name)?);
            comparison.write_page(&reports.join(format!("{}.html", result.name)))?;
        }
        let mut sections = vec![self.times(has_original)];
        sections.extend(self.waits());
        sections.extend(self.sites());
        let lead = html! { p { (self.summary()) } };
        let page = Page { title, lead, sections: &sections, scripts: &[], footer: FOOTER };
        Ok(page.write(&directory.join("what-if.html"))?)
    }

    fn summary(&self) -> String {
        let best = self.by_gain().into_iter().skip(1).find(|result| result.error.is_none());
        match best {
            Some(HypothesisResult { name, change: Some(change), .. }) if *change < 0.0 => {
                format!("{name} saves most: {:.2} % of the simulated time.", -100.0 * change)
            }
            _ => "No hypothesis saves time.".to_owned(),
        }
    }

    fn times(&self, has_original: bool) -> Section {
        let mut section = Section::new("times", "Simulated time");
        let sorted = self.by_gain();
        let name = |result: &HypothesisResult| -> Markup {
            let is_compared = has_original && result.error.is_none() && result.name != ORIGINAL;
            html! {
                @if is_compared { a href=(href(&result.name)) { (result.name) } } @else { (result.name) }
            }
        };
        section.rest = html! {
            div.scroll { table {
                thead { tr { th { "hypothesis" } th.number { "simulated time" } th.number { "change" } th.number { "waiting of all ranks" } } }
                tbody { @for result in &sorted { tr {
                    td { (name(result)) }
                    @match (&result.error, result.simulated_time_s) {
                        (None, Some(time)) => {
                            td.number { (seconds(time)) }
                            td.number { @if result.name != ORIGINAL { (result.describe_change()) } }
                            td.number { (result.total.map_or("-".to_owned(), |total| seconds(total.waiting_s))) }
                        }
                        (error, _) => { td colspan="3" { (error.as_deref().unwrap_or("-")) } }
                    }
                } } }
            } }
            @for result in &sorted { @for warning in &result.warnings { p.warning { (result.name) ": " (warning) } } }
        };
        let bars: Vec<Bar> = sorted
            .iter()
            .filter_map(|result| {
                let time = result.simulated_time_s?;
                Some(Bar { label: result.name.clone(), parts: vec![time], note: seconds(time) })
            })
            .take(MAX_BARS)
            .collect();
        if !bars.is_empty() {
            let bars = Bars { axis: "simulated time", parts: Vec::new(), bars };
            section.figures = vec![Figure::new("times", "Simulated time", move |width| {
                bars.draw_with(width, |bar, _| COLOURS[usize::from(bar > 0)])
            })];
        }
        section
    }

    /// Lists the parts of the time of all ranks: a wait that is saved in one state often becomes one in another.
    fn waits(&self) -> Option<Section> {
        let original = self.hypotheses[0].total?;
        let mut section = Section::new("waits", "What the time of all ranks is for");
        let results: Vec<_> =
            self.by_gain().into_iter().filter_map(|result| Some((result, result.total?))).collect();
        let mut head = vec![""];
        head.extend(results.iter().map(|(result, _)| result.name.as_str()));
        let row = |part: usize| {
            let of = |parts: &crate::report::Parts| parts.named()[part].1;
            let cell = |total: &crate::report::Parts| match of(&original) {
                before if before == of(total) => seconds(before),
                before => format!("{} ({})", seconds(of(total)), signed_percent(of(total), before)),
            };
            let used = results.iter().any(|(_, total)| of(total) > 0.0);
            let name = original.named()[part].0.replace('_', " ");
            used.then(|| [vec![name], results.iter().map(|(_, total)| cell(total)).collect()].concat())
        };
        let parts = original.named().len();
        // Wait states first.
        let rows: Vec<_> = (OTHER_PARTS..parts).chain(0..OTHER_PARTS).filter_map(row).collect();
        section.rest = table(&head, 1, &rows);
        Some(section)
    }

    /// Lists for each hypothesis the call sites whose waiting changes most.
    fn sites(&self) -> Option<Section> {
        let original = &self.hypotheses[0];
        original.sites.iter().any(|site| site.site.is_some()).then_some(())?;
        let mut section = Section::new("sites", "Where waiting changes");
        let tables =
            self.by_gain().into_iter().skip(1).filter(|result| result.error.is_none()).map(|result| {
                let changes = waiting_changes(&original.sites, &result.sites);
                let row = |(site, before, after): &(&str, f64, f64)| {
                    vec![
                        (*site).to_owned(),
                        seconds(*before),
                        seconds(*after),
                        signed_percent(*after, *before),
                    ]
                };
                let rows: Vec<_> = changes.iter().take(MAX_SITES).map(row).collect();
                html! {
                    h3 { (result.name) }
                    @if rows.is_empty() { p { "Waiting is the same at all call sites." } }
                    @else { (table(&["call site", ORIGINAL, result.name.as_str(), "change"], 1, &rows)) }
                }
            });
        section.rest = html! { @for table in tables { (table) } };
        Some(section)
    }
}

/// Returns the link to the page of a hypothesis; letters with a meaning in links are escaped.
fn href(name: &str) -> String {
    let escaped: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("reports/{escaped}.html")
}

/// Returns the call sites whose waiting changes, with the times before and after, the largest changes first.
fn waiting_changes<'a>(before: &'a [RegionParts], after: &'a [RegionParts]) -> Vec<(&'a str, f64, f64)> {
    let mut sites = std::collections::BTreeMap::<&str, (f64, f64)>::new();
    let name = |site: &'a RegionParts| site.site.as_deref().unwrap_or("before the first");
    for site in before {
        sites.entry(name(site)).or_default().0 += site.parts.waiting_s;
    }
    for site in after {
        sites.entry(name(site)).or_default().1 += site.parts.waiting_s;
    }
    let changed = sites.into_iter().filter(|(_, (before, after))| before != after);
    let mut changes: Vec<_> = changed.map(|(name, (before, after))| (name, before, after)).collect();
    changes.sort_by(|one, other| (other.2 - other.1).abs().total_cmp(&(one.2 - one.1).abs()));
    changes
}
