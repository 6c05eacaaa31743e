//! Report of a calibration as one page of HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::curve::Residuals;
use crate::drawing;
use crate::machine::{Fitted, Machine};
use crate::observation::{Measurements, Observation, Operation};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;color:#222;max-width:960px;margin:2em auto;padding:0 1em}\
    h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;width:100%}\
    th,td{padding:.3em .6em;border-bottom:1px solid #ddd;text-align:left}td.number,th.number{text-align:right;\
    font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto}.note{color:#666}.warning{color:#a00}\
    .key i{display:inline-block;width:.8em;height:.8em;margin:0 .35em 0 1em}";

impl Machine {
    /// Returns data, fits and residuals as one self-contained page of HTML.
    pub fn to_page(&self, title: &str, measurements: &Measurements) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (title) }
                    (self.summary())
                    @for warning in self.warnings() { p.warning { (warning) } }
                    p.key.note {
                        i style="background:#0072b2" {} "typical duration of each size, and single observations"
                        i style="background:#d55e00" {} "fit"
                        i style="background:#787878" {} "breakpoints"
                    }
                    @for fitted in self.fits() { (section(fitted, self, measurements)) }
                    @if !self.computations.is_empty() { (self.region_table()) }
                    @if let Some(drawing) = drawing::streams(self) {
                        h2 { "Streams in one direction" }
                        p.note { "The modelled curve follows from the fits above; streams are not fitted." }
                        (PreEscaped(drawing))
                    }
                    h2 { "Origin of the data" }
                    table { @for (key, value) in &measurements.notes { tr { td { (key) } td { (value) } } } }
                }
            }
        };
        page.into_string()
    }

    fn region_table(&self) -> Markup {
        html! {
            h2 { "Computations of the program" }
            table {
                tr { th { "region" } th.number { "computations" } th.number { "time [s]" } th.number { "Gflop/s" } }
                @for region in &self.computations {
                    tr {
                        td { @if region.region.is_empty() { "before any region" } @else { (region.region) } }
                        td.number { (region.count) }
                        td.number { (format!("{:.6}", region.seconds)) }
                        td.number { (format!("{:.4}", region.rate().unwrap_or_default() / 1e9)) }
                    }
                }
            }
        }
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
        }
    }
}

fn section(fitted: &Fitted, machine: &Machine, measurements: &Measurements) -> Markup {
    let title = match fitted.operation {
        Operation::PingPong => "A message: half of a ping-pong",
        Operation::Receive => "MPI_Recv of a message that has arrived",
        Operation::Isend => "MPI_Isend",
        _ => "MPI_Send that does not wait",
    };
    let last = fitted.points.last().map_or(0, |point| point.amount);
    let is_shown = |one: &&Observation| one.operation == fitted.operation && one.amount <= last;
    let observations: Vec<Observation> = measurements.observations.iter().filter(is_shown).copied().collect();
    let ends = fitted.curve.breakpoints().map(Some).chain([None]);
    html! {
        h2 { (title) }
        @if fitted.operation == Operation::PingPong && machine.composed_below.is_some() {
            p.note { "Smaller messages had no ping-pong: their time is the sum of the overheads of both sides." }
        }
        @if let Some(drawing) = drawing::durations(fitted, &observations) { (PreEscaped(drawing)) }
        @if let Some(drawing) = drawing::residuals(fitted) { (PreEscaped(drawing)) }
        table {
            tr {
                th { "message [B]" } th.number { "constant [us]" } th.number { "per byte [ns]" } th.number { "sizes" }
                th.number { "residual, median" } th.number { "worst" } th.number { "spread of a size" }
            }
            @for ((segment, end), residuals) in fitted.curve.segments().iter().zip(ends).zip(fitted.residuals()) {
                @if let Some(residuals) = residuals {
                    tr {
                        td { (range(segment.above, end)) }
                        td.number { (format!("{:.4}", segment.line.constant_s * 1e6)) }
                        td.number { (format!("{:.5}", segment.line.slope_s * 1e9)) }
                        (numbers(residuals))
                    }
                }
            }
        }
    }
}

fn range(above: u64, end: Option<u64>) -> String {
    match (above, end) {
        (0, None) => "all".to_owned(),
        (0, Some(end)) => format!("up to {end}"),
        (above, Some(end)) => format!("{} to {end}", above + 1),
        (above, None) => format!("from {}", above + 1),
    }
}

fn numbers(residuals: Residuals) -> Markup {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    html! {
        td.number { (residuals.sizes) }
        td.number { (percent(residuals.median)) }
        td.number { (percent(residuals.worst)) }
        td.number { (percent(residuals.spread)) }
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
        let page = Machine::fit(&measurements).unwrap().to_page("here & now", &measurements);
        // Two plots per fit, one of streams.
        assert_eq!(page.matches("<svg").count(), 5);
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
