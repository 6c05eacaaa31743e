//! Plots of data, fits and residuals (SVG).

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::curve::Curve;
use crate::machine::{Fitted, Machine};
use crate::observation::{Observation, Point};

const WIDTH: u32 = 920;
/// Maximum number of observations in one plot; of more, every k-th one is drawn.
const MAX_OBSERVATIONS: usize = 2500;
/// Maximum distance from a fit that is drawn [%]; larger ones are drawn at the edge.
const MAX_PERCENT: f64 = 60.0;
/// Number of points of a curve: about one per pixel.
const CURVE_POINTS: u32 = 900;
const DATA: RGBColor = RGBColor(0, 114, 178);
const FIT: RGBColor = RGBColor(213, 94, 0);
const BREAK: RGBColor = RGBColor(120, 120, 120);

/// Result of a call of plotters.
type DrawingResult = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type LogChart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;
type Residuals<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, RangedCoordf64>>;

/// Draws the observations of a fit, their medians and the curve, both axes logarithmic.
///
/// Messages of zero bytes are drawn at half a byte.
pub(crate) fn durations(fitted: &Fitted, observations: &[Observation]) -> Option<String> {
    let scale = fitted.scale();
    let curve = &fitted.curve;
    let times = observations.iter().map(|observation| observation.duration_s * scale);
    let times = micros_range(times.chain(fitted.points.iter().map(|point| point.typical_s)))?;
    draw_svg(400, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(72)
            .build_cartesian_2d(sizes(&fitted.points).log_scale(), times.log_scale())?;
        mesh(&mut chart, "time [us]")?;
        let every = observations.len().div_ceil(MAX_OBSERVATIONS).max(1);
        chart.draw_series(observations.iter().step_by(every).map(|observation| {
            let place = (position(observation.amount), observation.duration_s * scale * 1e6);
            Circle::new(place, 1, DATA.mix(0.2).filled())
        }))?;
        medians(&mut chart, &fitted.points, |point| point.typical_s * 1e6)?;
        draw_curve(&mut chart, &fitted.points, curve, |bytes| curve.at(bytes) * 1e6)
    })
}

/// Draws the distances of the typical durations from their curve, in percent of the curve, with lines from the first to the
/// ninth decile of each size; distances above 60 % are drawn at the edge.
pub(crate) fn residuals(fitted: &Fitted) -> Option<String> {
    let percent = |point: &Point, duration: f64| 100.0 * (duration / fitted.curve.at(point.amount) - 1.0);
    let largest = fitted.points.iter().map(|point| percent(point, point.typical_s).abs()).fold(5.0, f64::max);
    let most = (1.3 * largest).min(MAX_PERCENT);
    let range = -most..most;
    (!fitted.points.is_empty()).then_some(())?;
    draw_svg(240, |area| {
        let mut chart: Residuals<'_, '_> = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(72)
            .build_cartesian_2d(sizes(&fitted.points).log_scale(), range.clone())?;
        let mut grid = chart.configure_mesh();
        grid.light_line_style(TRANSPARENT).x_desc("message [B]").y_desc("from the fit [%]");
        grid.x_label_formatter(&|bytes| size(*bytes)).draw()?;
        chart.draw_series(fitted.curve.breakpoints().map(|above| {
            let place = position(above) * 1.001;
            PathElement::new([(place, range.start), (place, range.end)], BREAK.stroke_width(1))
        }))?;
        chart.draw_series(fitted.points.iter().map(|point| {
            let within = |duration| percent(point, duration).clamp(range.start, range.end);
            let place = position(point.amount);
            PathElement::new([(place, within(point.low_s)), (place, within(point.high_s))], DATA.mix(0.35))
        }))?;
        chart.draw_series(fitted.points.iter().map(|point| {
            let distance = percent(point, point.typical_s).clamp(range.start, range.end);
            Circle::new((position(point.amount), distance), 2, DATA.filled())
        }))?;
        let ends = sizes(&fitted.points);
        chart.draw_series([PathElement::new([(ends.start, 0.0), (ends.end, 0.0)], FIT.stroke_width(2))])?;
        Ok(())
    })
}

/// Draws the bandwidth of streams, as measured and as modelled.
pub(crate) fn streams(machine: &Machine) -> Option<String> {
    let points: Vec<Point> = machine.streams.iter().filter(|point| point.amount > 0).copied().collect();
    let rate = |bytes: u64, seconds: f64| bytes as f64 / seconds / 1e6;
    let model = |bytes: u64| rate(bytes, machine.stream_s(bytes));
    let rates = points.iter().flat_map(|point| [rate(point.amount, point.typical_s), model(point.amount)]);
    let range = range(rates.filter(|rate| rate.is_finite()))?;
    draw_svg(400, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(84)
            .build_cartesian_2d(sizes(&points).log_scale(), range.log_scale())?;
        mesh(&mut chart, "bandwidth [MB/s]")?;
        medians(&mut chart, &points, |point| rate(point.amount, point.typical_s))?;
        draw_curve(&mut chart, &points, &machine.network, model)
    })
}

fn mesh(chart: &mut LogChart<'_, '_>, y: &str) -> DrawingResult {
    let mut grid = chart.configure_mesh();
    grid.light_line_style(TRANSPARENT).x_desc("message [B]").y_desc(y);
    grid.x_label_formatter(&|bytes| size(*bytes)).y_label_formatter(&|value| format!("{value}"));
    Ok(grid.draw()?)
}

fn medians(chart: &mut LogChart<'_, '_>, points: &[Point], value: impl Fn(&Point) -> f64) -> DrawingResult {
    chart.draw_series(points.iter().map(|point| {
        let place = (position(point.amount), value(point));
        Circle::new(place, 2, DATA.filled())
    }))?;
    Ok(())
}

/// Draws a curve piece by piece, and its breakpoints.
fn draw_curve(
    chart: &mut LogChart<'_, '_>,
    points: &[Point],
    curve: &Curve,
    value: impl Fn(u64) -> f64,
) -> DrawingResult {
    let (all, heights) = (sizes(points), chart.y_range());
    let step = (all.end / all.start).powf(1.0 / f64::from(CURVE_POINTS));
    let at = |place: u32| (all.start * step.powf(f64::from(place))) as u64;
    let mut bytes: Vec<u64> =
        (0..=CURVE_POINTS).map(at).chain(curve.breakpoints().flat_map(|above| [above, above + 1])).collect();
    bytes.sort_unstable();
    bytes.dedup();
    let starts: Vec<u64> = curve.breakpoints().filter(|&above| position(above) < all.end).collect();
    for piece in bytes.chunk_by(|&one, &other| starts.iter().all(|&above| one > above || other <= above)) {
        let line = piece.iter().map(|&bytes| (position(bytes), value(bytes)));
        let line = line.filter(|place| all.contains(&place.0) && place.1.is_finite());
        chart.draw_series(LineSeries::new(line, FIT.stroke_width(2)))?;
    }
    chart.draw_series(starts.into_iter().map(|above| {
        let place = position(above) * 1.001;
        PathElement::new([(place, heights.start), (place, heights.end)], BREAK.stroke_width(1))
    }))?;
    Ok(())
}

/// Returns the position of a size on a logarithmic axis.
fn position(bytes: u64) -> f64 {
    if bytes == 0 { 0.5 } else { bytes as f64 }
}

fn sizes(points: &[Point]) -> Range<f64> {
    let ends = [points.first(), points.last()].map(|point| position(point.map_or(1, |point| point.amount)));
    ends[0] * 0.8..ends[1] * 1.25
}

fn micros_range(seconds: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    range(seconds.map(|time| time * 1e6))
}

/// Returns the range of positive values, slightly widened; `None` if there are none.
fn range(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    ends.filter(|ends| ends.0 > 0.0).map(|(low, high)| low * 0.8..high * 1.25)
}

/// Formats a size with its unit prefix.
fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1.0 => "0".to_owned(),
        bytes if bytes < 1e3 => format!("{bytes}"),
        bytes if bytes < 1e6 => format!("{} k", bytes / 1e3),
        bytes => format!("{} M", bytes / 1e6),
    }
}

fn draw_svg(height: u32, draw: impl FnOnce(&Area<'_>) -> DrawingResult) -> Option<String> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    let result = area.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&area));
    let is_drawn = result.and_then(|()| area.present().map_err(Into::into)).is_ok();
    drop(area);
    is_drawn.then_some(text)
}
