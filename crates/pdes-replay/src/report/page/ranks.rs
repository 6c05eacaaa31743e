//! Breakdown of the time of each rank: bars for few ranks, columns and maps for many.

use std::rc::Rc;

use figures::quantity::seconds;
use figures::{Bar, Bars, Columns, Figure, Map, Maps, Scale, Section, table};
use maud::html;

use super::super::Breakdown;
use super::grid;
use super::part::{Part, from_picos, legend, times};

/// Largest number of ranks with a bar each.
const MAX_BARS: usize = 32;

pub(in crate::report) fn section(breakdown: &Breakdown) -> Section {
    let breakdown = Rc::new(breakdown.clone());
    let mut section = Section::new("ranks", "Ranks");
    let ranks = breakdown.ranks.end_ps.len();
    if ranks <= MAX_BARS {
        section.figures = vec![bars(Rc::clone(&breakdown))];
    } else {
        let share = ranks.div_ceil(grid::MAX_PIXELS).max(1);
        section.lead = html! { p.note {
            "Maps have a pixel for " (if share == 1 { "each rank".to_owned() } else { format!("{share} ranks in a row (their mean)") })
            ", rank 0 in the upper left corner, then line by line. Each has the colours of its own range. Point at a pixel to read it."
        } };
        section.figures = vec![columns(Rc::clone(&breakdown)), maps(Rc::clone(&breakdown))];
    }
    section.rest = extremes(&breakdown);
    section
}

fn bars(breakdown: Rc<Breakdown>) -> Figure {
    Figure::new("ranks", "What the time of each rank is for", move |width| {
        let parts = Part::occurring(&[&breakdown.total]);
        let bar = |rank: usize| Bar {
            label: format!("rank {rank}"),
            parts: parts.iter().map(|part| from_picos(part.column(&breakdown.ranks)[rank])).collect(),
            note: seconds(from_picos(breakdown.ranks.end_ps[rank])),
        };
        let bars = (0..breakdown.ranks.end_ps.len()).map(bar).collect();
        Bars { axis: "simulated time", parts: legend(&parts), bars }.draw(width)
    })
}

fn columns(breakdown: Rc<Breakdown>) -> Figure {
    Figure::new("ranks", "What the time of ranks is for", move |width| {
        let parts = Part::occurring(&[&breakdown.total]);
        let times = parts.iter().map(|part| times(part.column(&breakdown.ranks))).collect();
        let columns = Columns { x_axis: "rank", y_axis: "simulated time", parts: legend(&parts), times };
        columns.draw(width)
    })
}

fn maps(breakdown: Rc<Breakdown>) -> Figure {
    Figure::new("rank-maps", "Each rank, part by part", move |width| {
        let parts = Part::occurring(&[&breakdown.total]);
        let map = |part: &Part| {
            let column = part.column(&breakdown.ranks);
            map(part.name, column.len(), &grid::means(&times(column)))
        };
        let maps = parts.iter().map(map).collect();
        Maps { maps, scale: Scale::Sequential, ends: ("least".to_owned(), "most".to_owned()) }.draw(width)
    })
}

/// Returns a map of the times of so many ranks \[s\], or of the means of equally many neighbours, on a scale from the smallest to the
/// largest.
pub(crate) fn map(name: &str, ranks: usize, times: &[f64]) -> Map {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    let range = most - least;
    let values = times.iter().map(|time| Some(if range > 0.0 { (time - least) / range } else { 0.0 }));
    Map {
        title: format!("{}: {} to {}", name.replace('_', " "), seconds(least), seconds(most)),
        columns: grid::width(times.len()),
        values: values.collect(),
        data: grid::data_attributes(name, ranks, times.len(), (least, most)),
    }
}

/// Lists the ranks with the smallest and the largest time of each part.
fn extremes(breakdown: &Breakdown) -> maud::Markup {
    let row = |name: &str, column: &[u64]| -> Option<Vec<String>> {
        let most = (0..column.len()).max_by_key(|&rank| (column[rank], std::cmp::Reverse(rank)))?;
        let least = (0..column.len()).min_by_key(|&rank| (column[rank], rank))?;
        let sum: u128 = column.iter().map(|&picos| u128::from(picos)).sum();
        let time = |rank: usize| seconds(from_picos(column[rank]));
        let mean = seconds(sum as f64 / 1e12 / column.len() as f64);
        let name = name.replace('_', " ");
        Some(vec![name, mean, time(least), least.to_string(), time(most), most.to_string()])
    };
    let mut rows: Vec<_> = row("the whole", &breakdown.ranks.end_ps).into_iter().collect();
    let parts = Part::occurring(&[&breakdown.total]);
    rows.extend(parts.iter().filter_map(|part| row(part.name, part.column(&breakdown.ranks))));
    html! {
        h3 { "Extremes" }
        (table(&["part", "mean", "least", "of rank", "most", "of rank"], 1, &rows))
    }
}
