//! The comparison of hypotheses as one HTML page, with a page for each that compares two reports.

use std::path::Path;

use figures::{Explorer, WriteError};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use trace_tools::transform::ORIGINAL;

use super::{HypothesisResult, Verification, WhatIfResults};
use crate::report::page::part;
use crate::report::{FOOTER, Presentation, ReportError, SavedReport};

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
        let path = directory.join("what-if.html");
        let failed =
            |error: serde_json::Error| WriteError::Write { path: path.clone(), source: error.into() };
        let data = [
            ("lines", to_raw_value(&self.page_lines(has_original)).map_err(failed)?),
            ("summary", to_raw_value(&self.summary()).map_err(failed)?),
            ("parts", to_raw_value(&part::colours()).map_err(failed)?),
        ];
        let scripts = [include_str!("../report/page/words.js"), include_str!("page.js")];
        Ok(Explorer { title, data: &data, scripts: &scripts, footer: FOOTER }.write(&path)?)
    }

    /// Returns what the page shows of each result, in its order.
    fn page_lines(&self, has_original: bool) -> Vec<Value> {
        let mut lines = self.lines();
        lines.extend(self.modified.as_ref().map(|modified| ("modified program".to_owned(), modified)));
        let is_main =
            |result: &HypothesisResult| self.hypotheses.iter().any(|main| std::ptr::eq(main, result));
        let line = |(title, result): (String, &HypothesisResult)| {
            let is_compared =
                has_original && is_main(result) && result.error.is_none() && result.name != ORIGINAL;
            let sites: Vec<_> = result.sites.iter().map(|site| (&site.site, site.parts.waiting_s)).collect();
            let verification = result.verification.iter().flat_map(Verification::rows);
            let verification: Vec<_> = verification
                .map(|row| (&row.name, row.predicted_s, row.modified_s, row.deviation, row.describe()))
                .collect();
            json!({
                "title": title,
                "result": result,
                "page": is_compared.then(|| href(&result.name)),
                "change": result.describe_change(),
                "total": result.total,
                "sites": sites,
                "path": result.critical_path,
                "verification": if verification.is_empty() { None } else { Some(verification) },
            })
        };
        lines.into_iter().map(line).collect()
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
