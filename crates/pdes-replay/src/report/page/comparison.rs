//! Comparison of two runs.

use figures::quantity::seconds;
use figures::{Bar, Bars, Figure, Map, Maps, RUNS, Scale};

use super::super::{Breakdown, Parts};
use super::part::{Part, from_picos, legend};
use super::{SavedReport, grid};

/// Largest number of kinds of calls in the drawing.
const MAX_DRAWN: usize = 10;
/// Labels of the two runs.
const A: &str = "A";
const B: &str = "B";

pub(super) fn figures(run: &SavedReport, other: &SavedReport) -> Vec<Figure> {
    let mut figures = vec![ends([(A, run.simulated_time_s), (B, other.simulated_time_s)])];
    if let (Some(one), Some(two)) = (&run.sections.breakdown, &other.sections.breakdown) {
        figures.extend([parts(&one.total, &two.total), calls(one, two)]);
        if one.ranks.end_ps.len() == two.ranks.end_ps.len() {
            figures.push(ranks(one, two));
        }
    }
    figures
}

fn ends(ends: [(&'static str, f64); 2]) -> Figure {
    Figure::new("difference", "Simulated time", move |width| {
        let bar = |&(name, time): &(&str, f64)| Bar {
            label: name.to_owned(),
            parts: vec![time],
            note: seconds(time),
        };
        let bars = ends.iter().map(bar).collect();
        Bars { axis: "simulated time", parts: Vec::new(), bars }.draw_with(width, |bar, _| RUNS[bar])
    })
}

fn parts(one: &Parts, two: &Parts) -> Figure {
    let occurring = Part::occurring(&[one, two]);
    let totals = [(A, *one), (B, *two)];
    Figure::new("difference-parts", "What the time of all ranks is for", move |width| {
        let bar = |(name, total): &(&str, Parts)| Bar {
            label: (*name).to_owned(),
            parts: occurring.iter().map(|part| part.of(total)).collect(),
            note: seconds(total.time_s),
        };
        let bars = totals.iter().map(bar).collect();
        Bars { axis: "time of all ranks", parts: legend(&occurring), bars }.draw(width)
    })
}

/// Compares kinds of calls, the largest changes first.
fn calls(one: &Breakdown, two: &Breakdown) -> Figure {
    let calls = one.call_changes(two);
    let title = "Time of all ranks by kind of call, the largest changes first";
    Figure::new("difference-calls", title, move |width| {
        let drawn = calls.iter().take(MAX_DRAWN);
        let bars = drawn.flat_map(|(name, [a, b])| {
            let bar = |label: String, time: f64| Bar { label, parts: vec![time], note: seconds(time) };
            [bar(format!("{name} {A}"), a.time_s), bar(B.to_owned(), b.time_s)]
        });
        let bars = bars.collect();
        Bars { axis: "time of all ranks", parts: Vec::new(), bars }.draw_with(width, |bar, _| RUNS[bar % 2])
    })
}

/// Compares the end and the waiting time of each rank.
fn ranks(one: &Breakdown, two: &Breakdown) -> Figure {
    let waited = |breakdown: &Breakdown, rank: usize| -> u64 {
        breakdown.ranks.waiting().iter().map(|(_, column)| column[rank]).sum()
    };
    let ranks = 0..one.ranks.end_ps.len();
    let changes = |of: &dyn Fn(&Breakdown, usize) -> u64| -> Vec<f64> {
        ranks.clone().map(|rank| from_picos(of(two, rank)) - from_picos(of(one, rank))).collect()
    };
    let waits = changes(&waited);
    let own = changes(&|breakdown, rank| breakdown.ranks.end_ps[rank] - waited(breakdown, rank));
    let maps = [("waiting", waits), ("the rest", own)];
    Figure::new("difference-ranks", "What changes on each rank", move |width| {
        let changes = maps.iter().flat_map(|(_, changes)| changes);
        let most = changes.fold(0.0, |most: f64, change| most.max(change.abs()));
        let map = |(name, changes): &(&str, Vec<f64>)| change_map(name, changes, most);
        let ends = match most > 0.0 {
            true => (signed(-most), signed(most)),
            false => ("no rank changes".to_owned(), String::new()),
        };
        Maps { maps: maps.iter().map(map).collect(), scale: Scale::Diverging, ends }.draw(width)
    })
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
    }
}
