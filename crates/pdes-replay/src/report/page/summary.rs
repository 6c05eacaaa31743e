//! Summary of a run: its length, its size, and what was replayed on what.

use figures::Section;
use figures::quantity::{bytes, count, percent, seconds};
use maud::{Markup, html};

use super::SavedReport;
use super::part::from_picos;

pub(super) fn section(run: &SavedReport) -> Section {
    let mut section = Section::new("summary", "Summary");
    section.lead = html! {
        div.cards { @for (name, value) in cards(run) { div { b { (value) } span { (name) } } } }
        (replayed(run))
        @for warning in &run.warnings { p.warning { (warning) } }
    };
    section
}

fn cards(run: &SavedReport) -> Vec<(&'static str, String)> {
    let mut cards = vec![
        ("simulated time", seconds(run.simulated_time_s)),
        ("ranks", count(run.ranks.into())),
        ("actions", count(run.actions)),
        ("messages", count(run.messages)),
        ("sent in them", bytes(run.message_bytes as f64)),
    ];
    let all: f64 = run.time_by_action.iter().map(|action| action.time_s).sum();
    match &run.sections.breakdown {
        Some(breakdown) => {
            let share = |part| percent(part, breakdown.total.time_s);
            cards.push(("of all time computes", share(breakdown.total.compute_s)));
            cards.push(("waits for other ranks", share(breakdown.total.waiting_s)));
        }
        None => {
            let compute = run.time_by_action.iter().find(|action| action.action == "compute");
            cards.push(("of all time computes", percent(compute.map_or(0.0, |action| action.time_s), all)));
        }
    }
    if let Some(imbalance) = &run.imbalance {
        cards.push(("imbalance of computation", format!("{:.1} %", 100.0 * imbalance.compute)));
    }
    if let Some(path) = &run.sections.critical_path {
        let compute = from_picos(path.parts.compute_ps);
        cards.push(("of the critical path computes", percent(compute, path.time_s)));
    }
    cards
}

fn replayed(run: &SavedReport) -> Markup {
    let row = |name: &str, value: &str| html! { tr { th { (name) } td.mono { (value) } } };
    html! {
        div.scroll { table { tbody {
            (row("trace", run.parameter("trace")))
            (row("platform", run.parameter("platform")))
            (row("model", &format!("{}, preset {}", run.parameter("model"), run.parameter("preset"))))
            (row("digest", &run.digest))
        } } }
    }
}
