//! Report of a calibration as one page of HTML.

use figures::{DrawingError, Page, Section, table};
use maud::{Markup, html};

use crate::curve::{Residuals, Segment};
use crate::drawing;
use crate::machine::{Computations, Fitted, Machine};
use crate::observation::{Measurements, Observation, Operation};

impl Machine {
    /// Returns data, fits and residuals as one self-contained page of HTML.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn.
    pub fn to_page(&self, title: &str, measurements: &Measurements) -> Result<String, DrawingError> {
        let mut sections: Vec<Section> =
            self.fits().map(|fitted| section(fitted, self, measurements)).collect();
        if !self.computations.is_empty() {
            sections.push(self.computation_section());
        }
        if let Some(figure) = drawing::streams(self) {
            let mut section = Section::new("stream", "Streams in one direction");
            section.lead = html! { p.note { "The modelled curve follows from the fits above; streams are not fitted." } };
            section.figures.push(figure);
            sections.push(section);
        }
        let mut origin = Section::new("origin", "Origin of the data");
        let notes = measurements.notes.iter().map(|(key, value)| vec![key.clone(), value.clone()]);
        origin.rest = table(&["note", "value"], 2, &notes.collect::<Vec<_>>());
        sections.push(origin);
        Page { title, lead: self.summary(), sections: &sections, footer: "" }.text()
    }

    fn computation_section(&self) -> Section {
        let mut section = Section::new("computations", "Computations of the program");
        let row = |region: &Computations| {
            vec![
                if region.region.is_empty() { "before any region" } else { &region.region }.to_owned(),
                region.count.to_string(),
                format!("{:.6}", region.seconds),
                format!("{:.4}", region.rate().unwrap_or_default() / 1e9),
            ]
        };
        let rows: Vec<_> = self.computations.iter().map(row).collect();
        section.rest = table(&["region", "computations", "time [s]", "Gflop/s"], 1, &rows);
        section
    }

    fn summary(&self) -> Markup {
        let thresholds = self.thresholds;
        let calls = [
            ("failed test", self.test_s),
            ("failed MPI_Iprobe", self.iprobe_s),
            ("post of a receive", self.irecv_s),
        ];
        html! {
            p {
                "A message of zero bytes takes " (format!("{:.3}", self.one_way.curve.at(0) * 1e6)) " us; the largest have a bandwidth of "
                (format!("{:.4}", self.bandwidth() / 1e9)) " GB/s. Sends of less than " (thresholds.detached_below)
                " B do not wait for their receiver."
                @if let Some(speed) = self.speed { " A core computes " (format!("{:.3}", speed / 1e9)) " Gflop/s." }
                @for (call, time) in calls {
                    @if let Some(time) = time { " A " (call) " takes " (format!("{:.1}", time * 1e9)) " ns." }
                }
            }
            @for warning in self.warnings() { p.warning { (warning) } }
        }
    }
}

fn section(fitted: &Fitted, machine: &Machine, measurements: &Measurements) -> Section {
    let title = match fitted.operation {
        Operation::PingPong => "A message: half of a ping-pong",
        Operation::Receive => "MPI_Recv of a message that has arrived",
        Operation::Isend => "MPI_Isend",
        _ => "MPI_Send that does not wait",
    };
    let mut section = Section::new(fitted.operation.name(), title);
    if fitted.operation == Operation::PingPong && machine.composed_below.is_some() {
        section.lead = html! {
            p.note { "Smaller messages had no ping-pong: their time is the sum of the overheads of both sides." }
        };
    }
    let last = fitted.points.last().map_or(0, |point| point.amount);
    let is_shown = |one: &&Observation| one.operation == fitted.operation && one.amount <= last;
    let observations = measurements.observations.iter().filter(is_shown).copied().collect();
    section.figures = [drawing::durations(fitted, observations), drawing::residuals(fitted)]
        .into_iter()
        .flatten()
        .collect();
    let ends = fitted.curve.breakpoints().map(Some).chain([None]);
    let segments = fitted.curve.segments().iter().zip(ends).zip(fitted.residuals());
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let row = |((segment, end), residuals): ((&Segment, Option<u64>), Option<Residuals>)| {
        let Residuals { sizes, median, worst, spread, .. } = residuals?;
        Some(vec![
            range(segment.above, end),
            format!("{:.4}", segment.line.constant_s * 1e6),
            format!("{:.5}", segment.line.slope_s * 1e9),
            sizes.to_string(),
            percent(median),
            percent(worst),
            percent(spread),
        ])
    };
    let head = [
        "message [B]",
        "constant [us]",
        "per byte [ns]",
        "sizes",
        "residual, median",
        "worst",
        "spread of a size",
    ];
    section.rest = table(&head, 1, &segments.filter_map(row).collect::<Vec<_>>());
    section
}

fn range(above: u64, end: Option<u64>) -> String {
    match (above, end) {
        (0, None) => "all".to_owned(),
        (0, Some(end)) => format!("up to {end}"),
        (above, Some(end)) => format!("{} to {end}", above + 1),
        (above, None) => format!("from {}", above + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_what_was_measured() {
        let mut measurements = Measurements::default();
        for size in (0..24).map(|power| 1_u64 << power).chain([0]) {
            let jump = if size > 4096 { 2.0 } else { 1.0 };
            measurements.push(Operation::PingPong, size, 0.0, jump * (4e-6 + size as f64 * 2e-10));
            measurements.push(Operation::SendLate, size, 0.0, if size > 4096 { 1.0 } else { 5e-7 });
            measurements.push(Operation::Stream, size, 0.0, 5e-7 + size as f64 * 2e-10);
        }
        measurements.notes.push(("host".to_owned(), "<here>".to_owned()));
        let page = Machine::fit(&measurements).unwrap().to_page("here & now", &measurements).unwrap();
        // Two plots per fit, one of streams; each for wide and for narrow screens.
        assert_eq!(page.matches("<svg").count(), 10);
        let parts = [
            "<h1>here &amp; now</h1>",
            "&lt;here&gt;",
            "up to 8191",
            "from 8192",
            "MPI_Send that does not wait",
        ];
        parts.iter().for_each(|part| assert!(page.contains(part), "{part} in {page}"));
        assert!(!page.contains("class=\"warning\""), "{page}");
    }
}
