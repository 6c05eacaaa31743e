//! The page of a schedule: its measures, a Gantt chart of nodes, the queue, and the jobs.

use std::path::Path;

use figures::{Explorer, WriteError};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::{Job, Schedule};

/// Last line of the page.
const FOOTER: &str = concat!("pdes-replay ", env!("CARGO_PKG_VERSION"));

/// A job of the page. Times are in seconds.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    submitted: f64,
    start: f64,
    finish: f64,
    estimate: f64,
    count: u32,
    nodes: String,
    /// First and last nodes.
    ranges: Vec<(u32, u32)>,
}

impl Schedule {
    /// Writes a page on which the schedule of these jobs is explored. It needs no other file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_page(&self, jobs: &[Job], title: &str, path: &Path) -> Result<(), WriteError> {
        let failed =
            |error: serde_json::Error| WriteError::Write { path: path.to_owned(), source: error.into() };
        let row = |id: crate::JobId| {
            let (job, run) = (&jobs[id.0], &self.runs[id.0]);
            Row {
                name: &job.name,
                submitted: job.submitted.seconds(),
                start: run.start.seconds(),
                finish: run.finish.seconds(),
                estimate: job.estimate.seconds(),
                count: job.nodes,
                nodes: run.nodes.to_string(),
                ranges: run.nodes.ranges().collect(),
            }
        };
        let rows: Vec<Row<'_>> = self.order().into_iter().map(row).collect();
        let data = [
            ("summary", to_raw_value(&self.summary(jobs)).map_err(failed)?),
            ("jobs", to_raw_value(&rows).map_err(failed)?),
        ];
        Explorer { title, data: &data, scripts: &[include_str!("page.js")], footer: FOOTER }.write(path)
    }
}
