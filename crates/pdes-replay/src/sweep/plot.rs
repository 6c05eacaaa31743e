//! The results of a sweep as figures.

use figures::quantity::{TimeUnit, seconds};
use figures::{Bar, Bars, COLOURS, Figure, Line, LineKind, Lines, RUNS};

use super::{RunResult, SweepResults};

/// Largest number of runs in a drawing: more cannot be distinguished.
const MAX_BARS: usize = 60;
const MAX_LINES: usize = 12;

/// Draws a bar per run: its simulated time, divided into the mean computation time of a rank and the rest.
pub(super) fn bars(results: &SweepResults) -> Option<Figure> {
    let axes = results.varying();
    let name = |row| SweepResults::name(row, &axes, " · ");
    let mut runs: Vec<_> =
        results.rows.iter().filter_map(|row| Some((name(row), row.result.as_ref().ok()?))).collect();
    let count = runs.len();
    let mut title = "Simulated time".to_owned();
    if count > MAX_BARS {
        runs.sort_by_key(|(_, found)| found.simulated_time_ps);
        runs.truncate(MAX_BARS);
        title = format!("Simulated time: the shortest {MAX_BARS} of {count}");
    }
    let bar = |(label, found): (String, &RunResult)| {
        let compute = found.compute_s / f64::from(found.ranks.max(1));
        let parts = vec![compute, (found.simulated_time_s - compute).max(0.0)];
        Bar { label, parts, note: seconds(found.simulated_time_s) }
    };
    let bars: Vec<Bar> = runs.into_iter().map(bar).collect();
    (!bars.is_empty()).then_some(())?;
    let names = ["mean time of a rank in computations", "the rest: messages, waiting, collectives"];
    let parts = names.map(str::to_owned).into_iter().zip([COLOURS[0], RUNS[0]]).collect();
    let bars = Bars { axis: "simulated time", parts, bars };
    Some(Figure::new("runs", title, move |width| bars.draw(width)))
}

/// Draws the simulated time over each numeric axis, with a line per combination of the values of the other axes; of too many
/// combinations the shortest time at each value.
pub(super) fn lines(results: &SweepResults) -> Vec<Figure> {
    let axes = results.axes.iter().enumerate();
    axes.filter_map(|(axis, name)| line(results, axis, name)).collect()
}

/// Returns whether at least three values are multiples of each other rather than steps: each is at least 1.5 times the one before, and
/// distances grow.
fn are_multiples(values: impl Iterator<Item = f64>) -> bool {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let distances: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    values[0] > 0.0
        && values.len() > 2
        && values.windows(2).all(|pair| pair[1] >= 1.5 * pair[0])
        && distances.windows(2).all(|pair| pair[1] > pair[0])
}

fn line(results: &SweepResults, axis: usize, name: &str) -> Option<Figure> {
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let mut others = results.varying();
    others.retain(|&other| other != axis);
    for (row, x) in results.rows.iter().zip(results.positions(axis)?) {
        let (others, Ok(found)) = (SweepResults::name(row, &others, " · "), &row.result) else { continue };
        let point = (x, found.simulated_time_s);
        match series.iter_mut().find(|(label, _)| *label == others) {
            Some((_, points)) => points.push(point),
            None => series.push((others, vec![point])),
        }
    }
    if series.len() > MAX_LINES {
        let mut shortest: Vec<(f64, f64)> = Vec::new();
        for (x, time) in series.into_iter().flat_map(|(_, points)| points) {
            match shortest.iter_mut().find(|(other, _)| *other == x) {
                Some((_, least)) => *least = least.min(time),
                None => shortest.push((x, time)),
            }
        }
        series = vec![("shortest".to_owned(), shortest)];
    }
    let points = || series.iter().flat_map(|(_, points)| points);
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    if least >= most {
        return None;
    }
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let unit = TimeUnit::of(highest);
    let line = |(number, (label, mut points)): (usize, (String, Vec<(f64, f64)>))| {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points.iter_mut().for_each(|point| point.1 /= unit.seconds);
        Line { label, colour: COLOURS[number % COLOURS.len()], points }
    };
    let lines = Lines {
        x_axis: name.to_owned(),
        y_axis: format!("simulated time [{}]", unit.name),
        range: least..most,
        is_logarithmic: are_multiples(points().map(|point| point.0)),
        highest: highest / unit.seconds * 1.08,
        kind: LineKind::Sampled,
        lines: series.into_iter().enumerate().map(line).collect(),
    };
    Some(Figure::new(format!("over-{name}"), format!("Simulated time over {name}"), move |width| {
        lines.draw(width)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_multiples_are_logarithmic() {
        for (values, expected) in [
            (&[64.0, 256.0, 64.0, 1024.0][..], true),
            (&[1.0, 2.0, 3.0], false),
            (&[8.0, 16.0, 24.0, 32.0], false),
            (&[0.0, 1.0, 8.0], false),
            (&[1.0, 1024.0], false),
        ] {
            assert_eq!(are_multiples(values.iter().copied()), expected, "{values:?}");
        }
    }
}
