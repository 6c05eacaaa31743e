//! Line charts.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::{Area, DrawingError, DrawingResult, Legend, Svg, style_axes};
use crate::quantity::axis_number;

/// A line of a chart.
pub struct Line {
    /// Label in the legend.
    pub label: String,
    /// Colour of the line.
    pub colour: RGBColor,
    /// Points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// The meaning of a line between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Only the points are known; the line between them is interpolated.
    Sampled,
    /// The whole line is known.
    Exact,
}

/// Lines with common axes.
pub struct Lines {
    /// Label of the horizontal axis.
    pub x_axis: String,
    /// Label of the vertical axis.
    pub y_axis: String,
    /// Range of the horizontal axis.
    pub range: Range<f64>,
    /// The horizontal axis is logarithmic; its range is above 0.
    pub is_logarithmic: bool,
    /// Upper end of the vertical axis, which begins at 0.
    pub highest: f64,
    /// Meaning of the lines between points.
    pub kind: LineKind,
    /// Lines; a single one needs no legend.
    pub lines: Vec<Line>,
}

impl Lines {
    /// Draws the lines.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        let names: Vec<_> = self.lines.iter().map(|line| (line.label.clone(), line.colour)).collect();
        let legend = Legend(if names.len() > 1 { &names } else { &[] });
        let range = self.range.clone();
        legend.draw_above((width, 300), |_, area| match self.is_logarithmic {
            true => self.draw_over(range.log_scale().base(2.0), area, width),
            false => self.draw_over(range, area, width),
        })
    }

    fn draw_over<X>(&self, range: X, area: &Area<'_>, width: u32) -> DrawingResult
    where
        X: AsRangedCoord<CoordDescType: ValueFormatter<f64>, Value = f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(18)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(range, 0.0..self.highest.max(f64::MIN_POSITIVE))?;
        style_axes(&mut chart.configure_mesh())
            .x_labels(if width < 500 { 4 } else { 10 })
            .x_label_formatter(&|value| axis_number(*value))
            .y_label_formatter(&|value| axis_number(*value))
            .x_desc(self.x_axis.as_str())
            .y_desc(self.y_axis.as_str())
            .draw()?;
        for line in &self.lines {
            let points = line.points.iter().copied();
            match self.kind {
                LineKind::Sampled => {
                    chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2)).point_size(3))?
                }
                LineKind::Exact => chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2)))?,
            };
        }
        Ok(())
    }
}
