//! Breakdown of the time of all ranks by part, and by kind of call.

use figures::quantity::{percent, seconds};
use figures::{Bar, Bars, COLOURS, Figure};

use super::super::saved::SavedActionTotal;
use super::super::{CallParts, Parts};
use super::SavedReport;
use super::part::{Part, legend};

/// Largest number of kinds of calls in the drawing.
const MAX_DRAWN: usize = 12;

pub(super) fn figures(run: &SavedReport) -> Vec<Figure> {
    match &run.sections.breakdown {
        Some(breakdown) => {
            vec![total(breakdown.total), drawing(&breakdown.calls_by_time(), breakdown.total)]
        }
        None => vec![without_breakdown(run)],
    }
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

/// Draws the times by kind of call, if the report has no breakdown.
fn without_breakdown(run: &SavedReport) -> Figure {
    let mut actions = run.time_by_action.clone();
    actions.retain(|action| action.time_s > 0.0);
    actions.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
    let all: f64 = actions.iter().map(|action| action.time_s).sum();
    Figure::new("calls", "Time of all ranks by kind of call", move |width| {
        let bar = |action: &SavedActionTotal| Bar {
            label: action.action.clone(),
            parts: vec![action.time_s],
            note: percent(action.time_s, all),
        };
        let parts = vec![("time".to_owned(), COLOURS[0])];
        Bars { axis: "time of all ranks", parts, bars: actions.iter().take(MAX_DRAWN).map(bar).collect() }
            .draw(width)
    })
}
