//! Breakdown of the time of all ranks by part, and by kind of call.

use figures::quantity::{count, percent, seconds};
use figures::{Bar, Bars, COLOURS, Figure, Section, table};
use maud::html;

use super::super::saved::SavedActionTotal;
use super::super::{CallParts, Parts};
use super::SavedReport;
use super::part::{Part, legend};

/// Largest number of kinds of calls in the drawing; the table has all.
const MAX_DRAWN: usize = 12;

pub(super) fn section(run: &SavedReport) -> Section {
    let mut section = Section::new("time", "Where the time goes");
    match &run.sections.breakdown {
        Some(breakdown) => {
            let calls = breakdown.calls_by_time();
            section.lead = html! { p.note {
                "Times of all ranks together. Transfer: the other side was there, and data were under way. The waits are Scalasca's patterns: \
                 the other side was not there."
            } };
            section.figures = vec![total(breakdown.total), drawing(&calls, breakdown.total)];
            section.rest = call_table(&calls, &breakdown.total);
        }
        None => section_without_breakdown(run, &mut section),
    }
    section
}

fn total(total: Parts) -> Figure {
    Figure::new("parts", "What the time of all ranks is for", move |width| {
        let parts = Part::occurring(&[&total]);
        let bar = |part: &Part| Bar {
            label: part.name.replace('_', " "),
            parts: vec![part.of(&total)],
            note: format!("{} ({})", seconds(part.of(&total)), percent(part.of(&total), total.time_s)),
        };
        let bars = parts.iter().map(bar).collect();
        // One bar for each part: each has its own colour, and its name is beside it.
        Bars { axis: "time of all ranks", parts: Vec::new(), bars }
            .draw_with(width, |bar, _| parts[bar].colour)
    })
}

fn drawing(calls: &[&CallParts], total: Parts) -> Figure {
    let calls: Vec<CallParts> = calls.iter().take(MAX_DRAWN).copied().cloned().collect();
    Figure::new("calls", "The same by kind of call", move |width| {
        let parts = Part::occurring(&calls.iter().map(|call| &call.parts).collect::<Vec<_>>());
        let bar = |call: &CallParts| Bar {
            label: call.action.to_string(),
            parts: parts.iter().map(|part| part.of(&call.parts)).collect(),
            note: percent(call.parts.time_s, total.time_s),
        };
        Bars { axis: "time of all ranks", parts: legend(&parts), bars: calls.iter().map(bar).collect() }
            .draw(width)
    })
}

fn call_table(calls: &[&CallParts], total: &Parts) -> maud::Markup {
    let row = |call: &&CallParts| {
        let CallParts { action, count: calls, parts } = *call;
        let own = parts.compute_s + parts.sleep_s + parts.library_s;
        vec![
            action.to_string(),
            count(*calls),
            seconds(parts.time_s),
            percent(parts.time_s, total.time_s),
            percent(own, parts.time_s),
            percent(parts.transfer_s, parts.time_s),
            percent(parts.waiting_s, parts.time_s),
        ]
    };
    let rows: Vec<_> = calls.iter().map(row).collect();
    table(&["call", "count", "time of all ranks", "share", "own", "transfer", "waiting"], 1, &rows)
}

/// Shows the times by kind of call, if the report has no breakdown.
fn section_without_breakdown(run: &SavedReport, section: &mut Section) {
    section.lead = html! { p.note {
        "Replay with " code { "analysis.waits = true" } " to see what ranks wait for, and each rank by itself."
    } };
    let mut actions = run.time_by_action.clone();
    actions.retain(|action| action.time_s > 0.0);
    actions.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
    let all: f64 = actions.iter().map(|action| action.time_s).sum();
    let rows = actions.iter().map(|action| {
        vec![action.action.clone(), count(action.count), seconds(action.time_s), percent(action.time_s, all)]
    });
    section.rest = table(&["call", "count", "time of all ranks", "share"], 1, &rows.collect::<Vec<_>>());
    section.figures = vec![Figure::new("calls", "Time of all ranks by kind of call", move |width| {
        let bar = |action: &SavedActionTotal| Bar {
            label: action.action.clone(),
            parts: vec![action.time_s],
            note: percent(action.time_s, all),
        };
        let parts = vec![("time".to_owned(), COLOURS[0])];
        Bars { axis: "time of all ranks", parts, bars: actions.iter().take(MAX_DRAWN).map(bar).collect() }
            .draw(width)
    })];
}
