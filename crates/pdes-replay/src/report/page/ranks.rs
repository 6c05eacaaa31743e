//! Breakdown of the time of each rank: bars for few ranks, columns and maps for many.

use std::rc::Rc;

use figures::quantity::seconds;
use figures::{Bar, Bars, Columns, Figure, Map, Maps, Scale};

use super::super::Breakdown;
use super::grid;
use super::part::{Part, from_picos, legend, times};

/// Largest number of ranks with a bar each.
const MAX_BARS: usize = 32;

pub(in crate::report) fn figures(breakdown: &Breakdown) -> Vec<Figure> {
    let breakdown = Rc::new(breakdown.clone());
    if breakdown.ranks.end_ps.len() <= MAX_BARS {
        vec![bars(breakdown)]
    } else {
        vec![columns(Rc::clone(&breakdown)), maps(breakdown)]
    }
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
        let map = |part: &Part| map(part.name, &grid::means(&times(part.column(&breakdown.ranks))));
        let maps = parts.iter().map(map).collect();
        Maps { maps, scale: Scale::Sequential, ends: ("least".to_owned(), "most".to_owned()) }.draw(width)
    })
}

/// Returns a map of the times of ranks \[s\], or of the means of equally many neighbours, on a scale from the smallest to the largest.
pub(crate) fn map(name: &str, times: &[f64]) -> Map {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    let range = most - least;
    let values = times.iter().map(|time| Some(if range > 0.0 { (time - least) / range } else { 0.0 }));
    Map {
        title: format!("{}: {} to {}", name.replace('_', " "), seconds(least), seconds(most)),
        columns: grid::width(times.len()),
        values: values.collect(),
    }
}
