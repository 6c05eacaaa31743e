//! The results of a sweep as one page of HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::{bars, lines, seconds};
use super::{Results, Row};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;color:#222;max-width:960px;margin:2em auto;padding:0 1em}\
    h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;width:100%}\
    th,td{padding:.3em .6em;border-bottom:1px solid #ddd;text-align:left}td.number,th.number{text-align:right;\
    font-variant-numeric:tabular-nums}tr.best td{font-weight:600}tr.failed td{color:#a00}svg{max-width:100%;height:auto}\
    .note{color:#666}.key i{display:inline-block;width:.8em;height:.8em;margin:0 .35em 0 1em}";

pub(super) fn page(results: &Results, title: &str) -> String {
    let done: Vec<&Row> = results.rows.iter().filter(|row| row.found.is_ok()).collect();
    let time = |row: &Row| row.found.as_ref().map_or(u64::MAX, |found| found.simulated_time_ps);
    let best = done.iter().map(|row| time(row)).min();
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
                p { (summary(results, &done)) }
                @if let Some(drawing) = bars(results) {
                    h2 { "Simulated time" }
                    p.key.note {
                        i style="background:#3465a4" {} "mean time of a rank in computations"
                        i style="background:#f5963c" {} "the rest: messages, waiting, collectives"
                    }
                    (PreEscaped(drawing))
                }
                @for (axis, drawing) in lines(results) {
                    h2 { "Simulated time over " (axis) }
                    (PreEscaped(drawing))
                }
                h2 { "All runs" }
                table {
                    tr {
                        @for axis in &results.axes { th { (axis) } }
                        th.number { "simulated time" } th.number { "against the first" } th.number { "communication" }
                        th.number { "messages" } th.number { "M actions/s" }
                    }
                    @for row in &results.rows { (line(results, row, best == Some(time(row)))) }
                }
                @for (labels, warning) in warnings(results) {
                    p.note { (labels) ": " (warning) }
                }
                p.note { "pdes-replay " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string()
}

fn summary(results: &Results, done: &[&Row]) -> Markup {
    let failed = results.failures();
    let least = done.iter().filter_map(|row| Some((row, row.found.as_ref().ok()?.simulated_time_s)));
    let least = least.min_by(|one, other| one.1.total_cmp(&other.1));
    html! {
        (results.rows.len()) " runs"
        @if failed > 0 { ", " (failed) " of which failed" }
        "."
        @if let Some((row, time)) = least {
            " The shortest simulated time is " (seconds(time)) ", with " (row.labels.join(", ")) "."
        }
    }
}

fn line(results: &Results, row: &Row, is_best: bool) -> Markup {
    match &row.found {
        Ok(found) => html! {
            tr.best[is_best] {
                @for label in &row.labels { td { (label) } }
                td.number { (seconds(found.simulated_time_s)) }
                td.number { @if let Some(relative) = results.relative(row) { (change(relative)) } }
                td.number { (share(found.communication_s, found.compute_s)) }
                td.number { (found.messages) }
                td.number { (format!("{:.2}", found.actions_per_s / 1e6)) }
            }
        },
        Err(error) => html! {
            tr.failed {
                @for label in &row.labels { td { (label) } }
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

fn share(part: f64, rest: f64) -> String {
    if part + rest > 0.0 { format!("{:.1} %", 100.0 * part / (part + rest)) } else { "-".to_owned() }
}

fn warnings(results: &Results) -> impl Iterator<Item = (String, &String)> {
    results.rows.iter().flat_map(|row| {
        let warnings = row.found.iter().flat_map(|found| &found.warnings);
        warnings.map(|warning| (row.labels.join(", "), warning))
    })
}
