//! The comparison of hypotheses as one HTML page, with a page for each that compares two reports.

use std::path::Path;

use figures::quantity::{seconds, signed_percent};
use figures::{Bar, Bars, COLOURS, Figure, Page, Section, WriteError, table};
use maud::{Markup, html};
use trace_tools::transform::ORIGINAL;

use super::result::OTHER_PARTS;
use super::{HypothesisResult, WhatIfResults};
use crate::report::{CriticalPath, FOOTER, Presentation, RegionParts, ReportError, SavedReport};

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
        sections.extend(self.paths());
        sections.extend(self.verification());
        let lead = html! { p { (self.summary()) } };
        let page = Page { title, lead, sections: &sections, scripts: &[], footer: FOOTER };
        Ok(page.write(&directory.join("what-if.html"))?)
    }

    /// Returns the results with the configured source of outcomes and, where there is one, with the other one, by gain.
    fn lines(&self) -> Vec<(String, &HypothesisResult)> {
        self.by_gain().into_iter().flat_map(HypothesisResult::titled).collect()
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
        let mut sorted = self.lines();
        sorted.extend(self.modified.as_ref().map(|modified| ("modified program".to_owned(), modified)));
        let is_main =
            |result: &HypothesisResult| self.hypotheses.iter().any(|main| std::ptr::eq(main, result));
        let name = |(title, result): &(String, &HypothesisResult)| -> Markup {
            let is_compared =
                has_original && is_main(result) && result.error.is_none() && result.name != ORIGINAL;
            html! {
                @if is_compared { a href=(href(&result.name)) { (title) } } @else { (title) }
            }
        };
        section.rest = html! {
            div.scroll { table {
                thead { tr { th { "hypothesis" } th.number { "simulated time" } th.number { "change" } th.number { "waiting of all ranks" } } }
                tbody { @for line in &sorted { @let result = line.1; tr {
                    td { (name(line)) }
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
            @for (title, result) in &sorted {
                @for warning in &result.warnings { p.warning { (title) ": " (warning) } }
                @if let Some(hop_bytes) = result.hop_bytes {
                    p.note { (title) ": messages between two ranks, bytes times links: " (hop_bytes.before) " before, " (hop_bytes.after) " after." }
                }
            }
        };
        let bars: Vec<Bar> = sorted
            .iter()
            .filter_map(|(title, result)| {
                let time = result.simulated_time_s?;
                Some(Bar { label: title.clone(), parts: vec![time], note: seconds(time) })
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

    /// Compares the critical paths.
    fn paths(&self) -> Option<Section> {
        let original = self.hypotheses[0].critical_path.as_ref()?;
        let mut section = Section::new("paths", "Critical paths");
        let results: Vec<_> = self
            .by_gain()
            .into_iter()
            .filter_map(|result| Some((result, result.critical_path.as_ref()?)))
            .collect();
        let mut head = vec![""];
        head.extend(results.iter().map(|(result, _)| result.name.as_str()));
        let text = |picos: u64| seconds(picos as f64 / 1e12);
        let row = |name: String, of: &dyn Fn(&CriticalPath) -> String| {
            [vec![name], results.iter().map(|(_, path)| of(path)).collect()].concat()
        };
        let mut rows = vec![
            row("ends on rank".to_owned(), &|path| path.rank.to_string()),
            row("rank with most time on it".to_owned(), &|path| {
                path.ranks.first().map_or("-".to_owned(), |rank| rank.rank.to_string())
            }),
            row("hops between ranks".to_owned(), &|path| path.hops.to_string()),
        ];
        for (part, (name, _)) in original.parts.named().into_iter().enumerate() {
            if results.iter().any(|(_, path)| path.parts.named()[part].1 > 0) {
                rows.push(row(name.to_owned(), &|path| text(path.parts.named()[part].1)));
            }
        }
        section.lead = html! { p.note { "What is not on the path of the program does not end it earlier; what is on that of a hypothesis is what to look at next." } };
        section.rest = table(&head, 1, &rows);
        Some(section)
    }

    /// Compares predictions with the modified program.
    fn verification(&self) -> Option<Section> {
        self.modified.as_ref()?;
        let mut section = Section::new("verification", "Predicted, and really modified");
        let lines = self.lines();
        let verified = lines
            .iter()
            .filter(|(_, result)| !result.is_same)
            .filter_map(|(title, result)| Some((title, result.verification.as_ref()?)));
        section.rest = html! { @for (title, verification) in verified {
            h3 { (title) }
            (table(&["", "predicted", "modified", "deviation"], 1, &verification.rows().map(|row| vec![
                row.name.replace('_', " "), seconds(row.predicted_s), seconds(row.modified_s), row.describe(),
            ]).collect::<Vec<_>>()))
        } };
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
                    @else { p { (moved(&changes)) } (table(&["call site", ORIGINAL, result.name.as_str(), "change"], 1, &rows)) }
                }
            });
        section.rest = html! { @for table in tables { (table) } };
        Some(section)
    }
}

/// Says where waiting goes, and where it comes from.
fn moved(changes: &[(&str, f64, f64)]) -> String {
    let sum =
        |sign: f64| changes.iter().map(|(_, before, after)| (sign * (after - before)).max(0.0)).sum::<f64>();
    let most = |sign: f64| {
        let change = |(_, before, after): &&(&str, f64, f64)| sign * (after - before);
        let largest = changes.iter().max_by(|one, other| change(one).total_cmp(&change(other)));
        largest.filter(|largest| change(largest) > 0.0).map(|(name, ..)| *name)
    };
    match (most(-1.0), most(1.0)) {
        (Some(less), Some(more)) => format!(
            "{} of waiting of all ranks goes, most at {less}; {} comes in other places, most at {more}.",
            seconds(sum(-1.0)),
            seconds(sum(1.0))
        ),
        (Some(less), None) => {
            format!(
                "{} of waiting of all ranks goes, most at {less}; nowhere does it become more.",
                seconds(sum(-1.0))
            )
        }
        (None, Some(more)) => format!("{} of waiting of all ranks comes, most at {more}.", seconds(sum(1.0))),
        (None, None) => String::new(),
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
