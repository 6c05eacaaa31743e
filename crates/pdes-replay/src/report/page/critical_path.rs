//! Critical path: the chain of causes that must get faster for the run to end earlier.

use figures::quantity::{TimeUnit, percent, seconds};
use figures::{Bar, Bars, COLOURS, Figure, Line, LineKind, Lines, RUNS};

use super::super::{CriticalPath, PathCall, PathParts};
use super::SavedReport;
use super::part::{PATH_COLOUR_INDICES, from_picos};

pub(in crate::report) fn figures(path: &CriticalPath, run: &SavedReport) -> Vec<Figure> {
    let mut figures = vec![parts(path), calls(path)];
    if !path.segments.is_empty() {
        figures.push(rank_over_time(path, run.ranks));
    }
    figures
}

/// Returns the names, times \[s\] and colours of the parts.
fn named(parts: &PathParts) -> [(&'static str, f64, usize); 6] {
    std::array::from_fn(|part| {
        let (name, picos) = parts.named()[part];
        (name, from_picos(picos), PATH_COLOUR_INDICES[part])
    })
}

fn parts(path: &CriticalPath) -> Figure {
    let (parts, whole) = (path.parts, path.time_s);
    Figure::new("path-parts", "What the path is made of", move |width| {
        let occurring: Vec<_> = named(&parts).into_iter().filter(|&(_, time, _)| time > 0.0).collect();
        let bar = |&(name, time, _): &(&str, f64, usize)| Bar {
            label: name.to_owned(),
            parts: vec![time],
            note: format!("{} ({})", seconds(time), percent(time, whole)),
        };
        let bars = occurring.iter().map(bar).collect();
        Bars { axis: "time on the path", parts: Vec::new(), bars }
            .draw_with(width, |bar, _| COLOURS[occurring[bar].2])
    })
}

fn calls(path: &CriticalPath) -> Figure {
    let (calls, whole) = (path.calls.clone(), path.time_s);
    Figure::new("path-calls", "Calls on the path", move |width| {
        let shown = calls.iter().filter(|call| call.time_ps > 0).take(10);
        let bar = |call: &PathCall| Bar {
            label: call.call.to_string(),
            parts: vec![from_picos(call.time_ps)],
            note: percent(from_picos(call.time_ps), whole),
        };
        let bars = shown.map(bar).collect();
        Bars { axis: "time on the path", parts: Vec::new(), bars }.draw_with(width, |_, _| RUNS[0])
    })
}

/// Draws the rank of the path over time.
fn rank_over_time(path: &CriticalPath, ranks: u32) -> Figure {
    let (segments, end) = (path.segments.clone(), path.time_s);
    Figure::new("path-ranks", "Where the path is", move |width| {
        let unit = TimeUnit::of(end);
        let at = |picos: u64| from_picos(picos) / unit.seconds;
        let steps = segments.iter().flat_map(|segment| {
            let rank = f64::from(segment.rank);
            [(at(segment.from_ps), rank), (at(segment.to_ps), rank)]
        });
        let line = Line { label: "rank".to_owned(), colour: RUNS[0], points: steps.collect() };
        Lines {
            x_axis: format!("simulated time [{}]", unit.name),
            y_axis: "rank".to_owned(),
            range: 0.0..(end / unit.seconds).max(f64::MIN_POSITIVE),
            is_logarithmic: false,
            highest: f64::from(ranks.max(2) - 1) * 1.04,
            kind: LineKind::Exact,
            lines: vec![line],
        }
        .draw(width)
    })
}
