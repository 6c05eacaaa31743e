//! Comparison of two runs.

use std::collections::BTreeMap;
use std::rc::Rc;

use figures::quantity::{bytes, count, percent, seconds, signed_percent};
use figures::{Bar, Bars, COLOURS, Figure, Map, Maps, Scale, Section, table};
use maud::{Markup, html};

use super::super::{Breakdown, Parts};
use super::critical_path::named;
use super::parameters::flat;
use super::part::{Part, from_picos, legend};
use super::{SavedReport, file_name, grid};

/// Largest number of kinds of calls in the drawing.
const MAX_DRAWN: usize = 10;
/// Largest number of ranks in the table.
const MAX_LISTED: usize = 10;
/// Labels of the two runs.
const A: &str = "A";
const B: &str = "B";

pub(super) fn title(run: &SavedReport, other: &SavedReport) -> (String, Markup) {
    let [one, two] = [run, other].map(|run| file_name(run, "platform"));
    let [trace, second] = [run, other].map(|run| file_name(run, "trace"));
    let title =
        if one == two { format!("{trace} twice on {one}") } else { format!("{trace} on {one} and on {two}") };
    let lead = html! {
        p.note { (A) ": " (trace) " on " (one) ", " (run.parameter("model")) ". " (B) ": " (second) " on " (two) ", " (other.parameter("model")) "." }
    };
    (title, lead)
}

pub(super) fn sections(run: &SavedReport, other: &SavedReport) -> Vec<Section> {
    let mut sections = vec![summary(run, other)];
    if let (Some(one), Some(two)) = (&run.sections.breakdown, &other.sections.breakdown) {
        sections.push(parts(&one.total, &two.total));
        sections.push(calls(one, two));
        if one.ranks.end_ps.len() == two.ranks.end_ps.len() {
            sections.push(ranks(one, two));
        }
    }
    sections.extend(path(run, other));
    sections.push(parameters(run, other));
    sections
}

fn summary(run: &SavedReport, other: &SavedReport) -> Section {
    let mut section = Section::new("summary", "Summary");
    let [a, b] = [run, other].map(|run| run.simulated_time_s);
    let verdict = match a.total_cmp(&b) {
        std::cmp::Ordering::Equal => "Both take equally long.".to_owned(),
        std::cmp::Ordering::Less => format!("{A} is shorter: {B} takes {:.3} times as long.", b / a),
        std::cmp::Ordering::Greater => format!("{B} is shorter: {A} takes {:.3} times as long.", a / b),
    };
    let pair = |name: &str, of: fn(&SavedReport) -> f64, text: fn(f64) -> String| {
        let [a, b] = [run, other].map(of);
        vec![name.to_owned(), text(a), text(b), signed_percent(b, a)]
    };
    let whole = |number: f64| count(number as u64);
    let rows = [
        pair("simulated time", |run| run.simulated_time_s, seconds),
        pair("ranks", |run| f64::from(run.ranks), whole),
        pair("actions", |run| run.actions as f64, whole),
        pair("messages", |run| run.messages as f64, whole),
        pair("sent in them", |run| run.message_bytes as f64, bytes),
    ];
    section.lead = html! {
        div.cards {
            div { b { (seconds(a)) } span { (A) ", simulated time" } }
            div { b { (seconds(b)) } span { (B) ", simulated time" } }
            div { b { (signed_percent(b, a)) } span { (B) " against " (A) } }
        }
        p { (verdict) @if run.digest == other.digest { " All results of all ranks are the same." } }
    };
    section.rest = table(&["", A, B, "change"], 1, &rows);
    let ends = [(A, a), (B, b)];
    section.figures = vec![Figure::new("difference", "Simulated time", move |width| {
        let bar = |&(name, time): &(&str, f64)| Bar {
            label: name.to_owned(),
            parts: vec![time],
            note: seconds(time),
        };
        let bars = ends.iter().map(bar).collect();
        Bars { axis: "simulated time", parts: Vec::new(), bars }.draw_with(width, |bar, _| COLOURS[bar])
    })];
    section
}

fn parts(one: &Parts, two: &Parts) -> Section {
    let mut section = Section::new("time", "Where the time goes");
    let occurring = Part::occurring(&[one, two]);
    let row = |part: &Part| {
        let (a, b) = (part.of(one), part.of(two));
        vec![
            part.name.replace('_', " "),
            seconds(a),
            percent(a, one.time_s),
            seconds(b),
            percent(b, two.time_s),
            signed_percent(b, a),
        ]
    };
    let rows: Vec<_> = occurring.iter().map(row).collect();
    section.rest = table(&["part", A, "share", B, "share", "change"], 1, &rows);
    let totals = [(A, *one), (B, *two)];
    section.figures =
        vec![Figure::new("difference-parts", "What the time of all ranks is for", move |width| {
            let bar = |(name, total): &(&str, Parts)| Bar {
                label: (*name).to_owned(),
                parts: occurring.iter().map(|part| part.of(total)).collect(),
                note: seconds(total.time_s),
            };
            Bars {
                axis: "time of all ranks",
                parts: legend(&occurring),
                bars: totals.iter().map(bar).collect(),
            }
            .draw(width)
        })];
    section
}

/// Compares kinds of calls, the largest changes first.
fn calls(one: &Breakdown, two: &Breakdown) -> Section {
    let mut section = Section::new("calls", "Calls");
    let calls = one.call_changes(two);
    let row = |(name, [a, b]): &(String, [Parts; 2])| {
        vec![
            name.clone(),
            seconds(a.time_s),
            seconds(b.time_s),
            signed_percent(b.time_s, a.time_s),
            percent(a.waiting_s, a.time_s),
            percent(b.waiting_s, b.time_s),
        ]
    };
    let rows: Vec<_> = calls.iter().map(row).collect();
    section.rest = table(&["call", A, B, "change", "waiting in A", "waiting in B"], 1, &rows);
    section.figures = vec![Figure::new(
        "difference-calls",
        "Time of all ranks by kind of call, the largest changes first",
        move |width| {
            let drawn = calls.iter().take(MAX_DRAWN);
            let bars = drawn.flat_map(|(name, [a, b])| {
                let bar = |label: String, time: f64| Bar { label, parts: vec![time], note: seconds(time) };
                [bar(format!("{name} {A}"), a.time_s), bar(B.to_owned(), b.time_s)]
            });
            let bars = bars.collect();
            Bars { axis: "time of all ranks", parts: Vec::new(), bars }
                .draw_with(width, |bar, _| COLOURS[bar % 2])
        },
    )];
    section
}

/// Compares the end and the waiting time of each rank.
fn ranks(one: &Breakdown, two: &Breakdown) -> Section {
    let mut section = Section::new("ranks", "Ranks");
    let waited = |breakdown: &Breakdown, rank: usize| -> u64 {
        breakdown.ranks.waiting().iter().map(|(_, column)| column[rank]).sum()
    };
    let ranks = 0..one.ranks.end_ps.len();
    let changes = |of: &dyn Fn(&Breakdown, usize) -> u64| -> Vec<f64> {
        ranks.clone().map(|rank| from_picos(of(two, rank)) - from_picos(of(one, rank))).collect()
    };
    let waits = changes(&waited);
    let own = changes(&|breakdown, rank| breakdown.ranks.end_ps[rank] - waited(breakdown, rank));
    let mut order: Vec<usize> = ranks.clone().collect();
    order.sort_by(|&one, &other| waits[other].abs().total_cmp(&waits[one].abs()));
    let row = |&rank: &usize| {
        let [a, b] = [one, two].map(|breakdown| from_picos(waited(breakdown, rank)));
        vec![format!("rank {rank}"), seconds(a), seconds(b), signed(waits[rank]), signed(own[rank])]
    };
    let rows: Vec<_> = order.iter().take(MAX_LISTED).map(row).collect();
    section.rest = html! {
        h3 { "Ranks whose waiting changes most" }
        (table(&["rank", "waiting in A", "waiting in B", "change of waiting", "change of the rest"], 1, &rows))
    };
    let maps = Rc::new([("waiting", waits), ("the rest", own)]);
    section.lead = html! { p.note { "Maps have a pixel for each rank, line by line: blue where " (B) " takes less, red where it takes more." } };
    section.figures = vec![Figure::new("difference-ranks", "What changes on each rank", move |width| {
        let most = maps
            .iter()
            .flat_map(|(_, changes)| changes)
            .fold(0.0, |most: f64, change| most.max(change.abs()));
        let map = |(name, changes): &(&str, Vec<f64>)| change_map(name, changes, most);
        let ends = (signed(-most), signed(most));
        Maps { maps: maps.iter().map(map).collect(), scale: Scale::Diverging, ends }.draw(width)
    })];
    section
}

fn signed(time: f64) -> String {
    if time > 0.0 { format!("+{}", seconds(time)) } else { seconds(time) }
}

/// Returns a map of changes, on a symmetric scale from `-most` to `most`.
fn change_map(name: &str, changes: &[f64], most: f64) -> Map {
    let means = grid::means(changes);
    let place = |change: &f64| if most > 0.0 { 0.5 + change / most / 2.0 } else { 0.5 };
    Map {
        title: name.to_owned(),
        columns: grid::width(means.len()),
        values: means.iter().map(|change| Some(place(change))).collect(),
        data: grid::data_attributes(&format!("change of {name}"), changes.len(), means.len(), (-most, most)),
    }
}

fn path(run: &SavedReport, other: &SavedReport) -> Option<Section> {
    let (one, two) = (run.sections.critical_path.as_ref()?, other.sections.critical_path.as_ref()?);
    let mut section = Section::new("path", "Critical path");
    let rows = named(&one.parts).into_iter().zip(named(&two.parts));
    let rows = rows.filter(|(a, b)| a.1 > 0.0 || b.1 > 0.0).map(|((name, a, _), (_, b, _))| {
        vec![
            name.to_owned(),
            seconds(a),
            percent(a, one.time_s),
            seconds(b),
            percent(b, two.time_s),
            signed_percent(b, a),
        ]
    });
    section.rest = table(&["part", A, "share", B, "share", "change"], 1, &rows.collect::<Vec<_>>());
    Some(section)
}

/// Lists the parameters that only one run has, or that have different values.
fn parameters(run: &SavedReport, other: &SavedReport) -> Section {
    let mut section = Section::new("parameters", "Parameters that differ");
    let [a, b]: [BTreeMap<String, String>; 2] =
        [run, other].map(|run| flat(&run.parameters).into_iter().collect());
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value =
        |of: &BTreeMap<String, String>, key: &str| of.get(key).cloned().unwrap_or_else(|| "-".to_owned());
    let differ = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    let rows: Vec<_> = differ.map(|key| vec![key.clone(), value(&a, key), value(&b, key)]).collect();
    section.rest = if rows.is_empty() {
        html! { p { "None: both runs have the same parameters." } }
    } else {
        table(&["parameter", A, B], 3, &rows)
    };
    section
}
