//! Wait states by kind of call, and the ranks that wait longest.

use std::cmp::Reverse;

use figures::quantity::{percent, seconds};
use figures::{Scale, Section, table};
use maud::{Markup, html};

use super::super::Breakdown;
use super::part::{Part, from_picos};

/// Largest number of ranks in the table.
const MAX_LISTED: usize = 10;

pub(in crate::report) fn section(breakdown: &Breakdown) -> Option<Section> {
    if breakdown.total.waiting_s <= 0.0 {
        return None;
    }
    let mut section = Section::new("waits", "Waiting for others");
    let states: Vec<Part> =
        Part::occurring(&[&breakdown.total]).into_iter().filter(Part::is_waiting).collect();
    section.rest = html! {
        h3 { "By kind of call" }
        (by_call(breakdown, &states))
        h3 { "Ranks that wait longest" }
        (by_rank(breakdown, &states))
    };
    Some(section)
}

/// Returns a table of calls by wait states; the colour of a cell grows with its share of all waiting.
fn by_call(breakdown: &Breakdown, states: &[Part]) -> Markup {
    let all = breakdown.total.waiting_s;
    let calls = breakdown.calls.iter().filter(|call| call.parts.waiting_s > 0.0);
    let cell = |time: f64| {
        let colour = Scale::Sequential.colour(time / all);
        let style = format!("box-shadow:inset 0 -4px rgb({},{},{})", colour.0, colour.1, colour.2);
        html! { td.number style=[(time > 0.0).then_some(style)] { (if time > 0.0 { seconds(time) } else { String::new() }) } }
    };
    html! {
        div.scroll { table {
            thead { tr {
                th { "call" }
                @for state in states { th.number { (state.name.replace('_', " ")) } }
                th.number { "waiting" } th.number { "of its time" }
            } }
            tbody {
                @for call in calls {
                    tr {
                        td { (call.action) }
                        @for state in states { (cell(state.of(&call.parts))) }
                        td.number { (seconds(call.parts.waiting_s)) }
                        td.number { (percent(call.parts.waiting_s, call.parts.time_s)) }
                    }
                }
            }
        } }
    }
}

fn by_rank(breakdown: &Breakdown, states: &[Part]) -> Markup {
    let columns: Vec<_> = states.iter().map(|state| (state.name, state.column(&breakdown.ranks))).collect();
    let waited = |rank: usize| -> u64 { columns.iter().map(|(_, column)| column[rank]).sum() };
    let mut ranks: Vec<usize> = (0..breakdown.ranks.end_ps.len()).collect();
    ranks.sort_by_key(|&rank| Reverse(waited(rank)));
    let row = |&rank: &usize| {
        let most = columns.iter().rev().max_by_key(|(_, column)| column[rank]);
        let (waiting, end) = (from_picos(waited(rank)), from_picos(breakdown.ranks.end_ps[rank]));
        let most = most.map_or(String::new(), |(name, _)| name.replace('_', " "));
        vec![format!("rank {rank}"), most, seconds(waiting), percent(waiting, end), seconds(end)]
    };
    let rows: Vec<_> = ranks.iter().take(MAX_LISTED).map(row).collect();
    table(&["rank", "most of it", "waiting", "of its time", "end"], 2, &rows)
}
