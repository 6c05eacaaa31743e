//! Line charts.

use std::ops::Range;

use plotters::prelude::*;

use super::{Area, DrawingError, DrawingResult, Legend, Svg, plain, styled};

/// A line of a chart.
pub(crate) struct Line {
    /// Label in the legend.
    pub(crate) label: String,
    /// Colour of the line.
    pub(crate) colour: RGBColor,
    /// Points, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The meaning of a line between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Only the points are known; the line between them is interpolated.
    Points,
    /// The whole line is known.
    Whole,
}

/// Lines with common axes.
pub(crate) struct Lines {
    /// Label of the horizontal axis.
    pub(crate) across: String,
    /// Label of the vertical axis.
    pub(crate) axis: String,
    /// Range of the horizontal axis.
    pub(crate) range: Range<f64>,
    /// Upper end of the vertical axis, which begins at 0.
    pub(crate) highest: f64,
    /// Meaning of the lines between points.
    pub(crate) reading: Reading,
    /// Lines; a single one needs no legend.
    pub(crate) lines: Vec<Line>,
}

impl Lines {
    /// Draws the lines.
    pub(crate) fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        let names: Vec<_> = self.lines.iter().map(|line| (line.label.clone(), line.colour)).collect();
        let legend = Legend(if names.len() > 1 { &names } else { &[] });
        legend.above((width, 300), |_, area| self.draw_lines(area, width))
    }

    fn draw_lines(&self, area: &Area<'_>, width: u32) -> DrawingResult {
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(18)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(self.range.clone(), 0.0..self.highest.max(f64::MIN_POSITIVE))?;
        styled(&mut chart.configure_mesh())
            .x_labels(if width < 500 { 4 } else { 10 })
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| plain(*value))
            .x_desc(self.across.as_str())
            .y_desc(self.axis.as_str())
            .draw()?;
        for line in &self.lines {
            let points = line.points.iter().copied();
            match self.reading {
                Reading::Points => {
                    chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2)).point_size(3))?
                }
                Reading::Whole => chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2)))?,
            };
        }
        Ok(())
    }
}
