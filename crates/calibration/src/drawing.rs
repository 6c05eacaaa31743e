//! Plots of data, fits and residuals.

use std::ops::Range;

use figures::quantity::metric;
use figures::{AxisScale, COLOURS, Figure, Layer, LogChart, Mark, RGBColor};

use crate::curve::Curve;
use crate::machine::{Fitted, Machine};
use crate::observation::{Observation, Operation, Point};

/// Maximum number of observations per pixel of the width; of more, every k-th one is drawn.
const MAX_OBSERVATIONS_PER_PIXEL: f64 = 2.7;
/// Maximum distance from a fit that is drawn [%]; larger ones are drawn at the edge.
const MAX_PERCENT: f64 = 60.0;
const DATA: RGBColor = COLOURS[0];
const FIT: RGBColor = COLOURS[5];
const BREAK: RGBColor = COLOURS[6];

/// Draws the observations of a fit, their medians and the curve, both axes logarithmic.
///
/// Messages of zero bytes are drawn at half a byte.
pub(crate) fn durations(fitted: &Fitted, observations: Vec<Observation>) -> Option<Figure> {
    let fitted = fitted.clone();
    // Half of a ping-pong is a message.
    let scale = if fitted.operation == Operation::PingPong { 0.5 } else { 1.0 };
    let times = observations.iter().map(move |observation| observation.duration_s * scale);
    let y_range =
        range(times.chain(fitted.points.iter().map(|point| point.typical_s)).map(|time| time * 1e6))?;
    Some(Figure::new(format!("fit-{}", fitted.operation.name()), "Durations", move |width| {
        let most = f64::from(width) * MAX_OBSERVATIONS_PER_PIXEL;
        let every = observations.len().div_ceil(most as usize).max(1);
        let observed = observations.iter().step_by(every);
        let observed = observed.map(|one| (position(one.amount), one.duration_s * scale * 1e6));
        let mut layers = vec![
            layer(observed, Mark::Dots(1), DATA, 0.2),
            medians(&fitted.points, |point| point.typical_s * 1e6),
        ];
        let micros = |bytes| fitted.curve.at(bytes) * 1e6;
        layers.extend(curve(width, &fitted.points, &fitted.curve, &y_range, micros));
        let chart = chart(&fitted.points, "time [us]", y_range.clone(), layers);
        LogChart { y_scale: AxisScale::Logarithmic, height: 360, ..chart }.draw(width)
    }))
}

/// Draws the distances of the typical durations from their curve, in percent of the curve, with lines from the first to the
/// ninth decile of each size; distances above 60 % are drawn at the edge.
pub(crate) fn residuals(fitted: &Fitted) -> Option<Figure> {
    (!fitted.points.is_empty()).then_some(())?;
    let fitted = fitted.clone();
    let percent = |fitted: &Fitted, point: &Point, duration: f64| {
        100.0 * (duration / fitted.curve.at(point.amount) - 1.0)
    };
    let typical = |point: &Point| percent(&fitted, point, point.typical_s).abs();
    let most = (1.3 * fitted.points.iter().map(typical).fold(5.0, f64::max)).min(MAX_PERCENT);
    Some(Figure::new(
        format!("residuals-{}", fitted.operation.name()),
        "Distances from the fit",
        move |width| {
            let within = |point: &Point, duration| percent(&fitted, point, duration).clamp(-most, most);
            let mut layers = breakpoints(&fitted.curve, &(-most..most), f64::INFINITY);
            layers.extend(fitted.points.iter().map(|point| {
                let ends =
                    [point.low_s, point.high_s].map(|end| (position(point.amount), within(point, end)));
                layer(ends, Mark::Line(1), DATA, 0.35)
            }));
            layers.push(medians(&fitted.points, |point| within(point, point.typical_s)));
            let Range { start, end } = sizes(&fitted.points);
            layers.push(layer([(start, 0.0), (end, 0.0)], Mark::Line(2), FIT, 1.0));
            chart(&fitted.points, "from the fit [%]", -most..most, layers).draw(width)
        },
    ))
}

/// Draws the bandwidth of streams, as measured and as modelled.
pub(crate) fn streams(machine: &Machine) -> Option<Figure> {
    let machine = machine.clone();
    let points: Vec<Point> = machine.streams.iter().filter(|point| point.amount > 0).copied().collect();
    let rate = |bytes: u64, seconds: f64| bytes as f64 / seconds / 1e6;
    let network = machine.network.clone();
    let model = move |bytes: u64| rate(bytes, machine.stream_s(bytes));
    let rates = points.iter().flat_map(|point| [rate(point.amount, point.typical_s), model(point.amount)]);
    let y_range = range(rates.filter(|rate| rate.is_finite()))?;
    Some(Figure::new("streams", "Bandwidth of streams", move |width| {
        let mut layers = vec![medians(&points, |point| rate(point.amount, point.typical_s))];
        layers.extend(curve(width, &points, &network, &y_range, &model));
        let chart = chart(&points, "bandwidth [MB/s]", y_range.clone(), layers);
        LogChart { y_scale: AxisScale::Logarithmic, height: 360, ..chart }.draw(width)
    }))
}

/// Returns a chart over the sizes of messages.
fn chart(points: &[Point], y_axis: &'static str, y_range: Range<f64>, layers: Vec<Layer>) -> LogChart {
    let legend = [("measured", DATA), ("fit", FIT), ("breakpoints", BREAK)];
    LogChart {
        x_axis: "message [B]",
        y_axis,
        x_range: sizes(points),
        y_range,
        y_scale: AxisScale::Linear,
        x_label: |bytes| {
            if bytes < 1.0 { "0".to_owned() } else { metric(bytes, "").trim_end().to_owned() }
        },
        height: 220,
        legend: legend.map(|(name, colour)| (name.to_owned(), colour)).into(),
        layers,
    }
}

fn layer(points: impl IntoIterator<Item = (f64, f64)>, mark: Mark, colour: RGBColor, opacity: f64) -> Layer {
    Layer { points: points.into_iter().collect(), mark, colour, opacity }
}

fn medians(points: &[Point], value: impl Fn(&Point) -> f64) -> Layer {
    layer(points.iter().map(|point| (position(point.amount), value(point))), Mark::Dots(2), DATA, 1.0)
}

/// Returns vertical lines at the breakpoints of a curve below `end`.
fn breakpoints(curve: &Curve, heights: &Range<f64>, end: f64) -> Vec<Layer> {
    let places = curve.breakpoints().map(position).filter(|&place| place < end).map(|place| place * 1.001);
    places.map(|at| layer([(at, heights.start), (at, heights.end)], Mark::Line(1), BREAK, 1.0)).collect()
}

/// Returns the pieces of a curve, with about a point per pixel, and its breakpoints.
fn curve(
    width: u32,
    points: &[Point],
    curve: &Curve,
    heights: &Range<f64>,
    value: impl Fn(u64) -> f64,
) -> Vec<Layer> {
    let all = sizes(points);
    let step = (all.end / all.start).powf(1.0 / f64::from(width));
    let at = |place: u32| (all.start * step.powf(f64::from(place))) as u64;
    let mut bytes: Vec<u64> =
        (0..=width).map(at).chain(curve.breakpoints().flat_map(|above| [above, above + 1])).collect();
    bytes.sort_unstable();
    bytes.dedup();
    let starts: Vec<u64> = curve.breakpoints().filter(|&above| position(above) < all.end).collect();
    let pieces = bytes.chunk_by(|&one, &other| starts.iter().all(|&above| one > above || other <= above));
    let line = |piece: &[u64]| {
        let places = piece.iter().map(|&bytes| (position(bytes), value(bytes)));
        let places = places.filter(|place| all.contains(&place.0) && place.1.is_finite());
        layer(places, Mark::Line(2), FIT, 1.0)
    };
    pieces.map(line).chain(breakpoints(curve, heights, all.end)).collect()
}

/// Returns the position of a size on a logarithmic axis.
fn position(bytes: u64) -> f64 {
    if bytes == 0 { 0.5 } else { bytes as f64 }
}

fn sizes(points: &[Point]) -> Range<f64> {
    let ends = [points.first(), points.last()].map(|point| position(point.map_or(1, |point| point.amount)));
    ends[0] * 0.8..ends[1] * 1.25
}

/// Returns the range of positive values, slightly widened; `None` if there are none.
fn range(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    ends.filter(|ends| ends.0 > 0.0).map(|(low, high)| low * 0.8..high * 1.25)
}
