//! The results of a sweep as drawings (SVG).

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Found, Results, Row};

/// More runs than this are not told apart in one drawing.
const MOST_BARS: usize = 60;
const MOST_LINES: usize = 12;
const WIDTH: u32 = 920;
const COMPUTE: RGBColor = RGBColor(52, 101, 164);
const REST: RGBColor = RGBColor(245, 150, 60);
/// Okabe and Ito's colours, which most people tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(90, 90, 90),
];

/// What plotters says where it cannot draw.
type DrawingResult = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws a bar for each run: its simulated time, and of that the mean time of a rank in computations.
pub(super) fn bars(results: &Results) -> Option<String> {
    let runs: Vec<(String, &Found)> = results
        .rows
        .iter()
        .filter_map(|row| Some((row.labels.join(" · "), row.found.as_ref().ok()?)))
        .take(MOST_BARS)
        .collect();
    (!runs.is_empty()).then_some(())?;
    drawn(60 + 26 * runs.len() as u32, |area| draw_bars(area, &runs))
}

fn draw_bars(area: &Area<'_>, runs: &[(String, &Found)]) -> DrawingResult {
    let longest = runs.iter().map(|(_, found)| found.simulated_time_s).fold(0.0, f64::max);
    let letters = runs.iter().map(|(label, _)| label.chars().count()).max().unwrap_or_default() as u32;
    let count = runs.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(24)
        .x_label_area_size(36)
        .y_label_area_size((20 + 7 * letters).min(WIDTH / 2))
        .build_cartesian_2d(0.0..longest.max(f64::MIN_POSITIVE) * 1.12, count..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .y_labels(0)
        .x_desc("simulated time [s]")
        .draw()?;
    for (place, (_, found)) in runs.iter().enumerate() {
        let (top, bottom) = (place as f64 + 0.15, place as f64 + 0.85);
        let compute = found.compute_s / f64::from(found.ranks.max(1));
        let bar = |from: f64, to: f64, colour: RGBColor| {
            Rectangle::new([(from, top), (to, bottom)], colour.filled())
        };
        chart.draw_series([bar(0.0, compute, COMPUTE), bar(compute, found.simulated_time_s, REST)])?;
    }
    for (place, (label, found)) in runs.iter().enumerate() {
        let middle = place as f64 + 0.5;
        let text = |text: &str, at: f64, shift: i32, side: HPos| {
            let (x, y) = chart.plotting_area().map_coordinate(&(at, middle));
            let style = ("sans-serif", 13).into_font().color(&BLACK).pos(Pos::new(side, VPos::Center));
            area.draw(&Text::new(text.to_owned(), (x + shift, y), style))
        };
        text(label, 0.0, -8, HPos::Right)?;
        text(&seconds(found.simulated_time_s), found.simulated_time_s, 5, HPos::Left)?;
    }
    Ok(())
}

/// Draws the simulated time over each axis of numbers, a line for each combination of the values of the other axes; returns
/// the name of the axis with each drawing.
pub(super) fn lines(results: &Results) -> Vec<(&str, String)> {
    let axes = results.axes.iter().enumerate();
    axes.filter_map(|(axis, name)| Some((name.as_str(), line(results, axis, name)?))).collect()
}

fn line(results: &Results, axis: usize, name: &str) -> Option<String> {
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for Row { labels, found } in &results.rows {
        let x: f64 = labels[axis].parse().ok()?;
        let others: Vec<&str> = labels
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != axis)
            .map(|(_, label)| label.as_str())
            .collect();
        let (others, Ok(found)) = (others.join(" · "), found) else { continue };
        let point = (x, found.simulated_time_s);
        match series.iter_mut().find(|(label, _)| *label == others) {
            Some((_, points)) => points.push(point),
            None => series.push((others, vec![point])),
        }
    }
    let points = || series.iter().flat_map(|(_, points)| points);
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    if series.len() > MOST_LINES || least >= most {
        return None;
    }
    series.iter_mut().for_each(|(_, points)| points.sort_by(|one, other| one.0.total_cmp(&other.0)));
    let highest = series.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(0.0, f64::max);
    drawn(380, |area| draw_line(area, name, &series, least..most, highest))
}

fn draw_line(
    area: &Area<'_>,
    name: &str,
    series: &[(String, Vec<(f64, f64)>)],
    range: std::ops::Range<f64>,
    highest: f64,
) -> DrawingResult {
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(range, 0.0..highest.max(f64::MIN_POSITIVE) * 1.08)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc(name).y_desc("simulated time [s]").draw()?;
    for (number, (label, points)) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
        let annotated = chart.draw_series(line)?;
        if series.len() > 1 {
            annotated
                .label(label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        }
    }
    if series.len() > 1 {
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::UpperLeft).margin(12);
        legend.background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3)).draw()?;
    }
    Ok(())
}

fn drawn(height: u32, draw: impl FnOnce(&Area<'_>) -> DrawingResult) -> Option<String> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    let result = area.fill(&WHITE).map_err(Into::into).and_then(|()| draw(&area));
    let is_drawn = result.and_then(|()| area.present().map_err(Into::into)).is_ok();
    drop(area);
    is_drawn.then_some(text)
}

/// Four digits that count, with a unit.
pub(super) fn seconds(time: f64) -> String {
    let (scaled, unit) = match time {
        time if time >= 1.0 || time == 0.0 => (time, "s"),
        time if time >= 1e-3 => (time * 1e3, "ms"),
        time => (time * 1e6, "us"),
    };
    let digits = if scaled > 0.0 { (3 - scaled.log10().floor() as i32).clamp(0, 6) as usize } else { 0 };
    format!("{scaled:.digits$} {unit}")
}
