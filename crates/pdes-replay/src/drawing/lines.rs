//! Lines over an axis of numbers.

use std::ops::Range;

use plotters::prelude::*;

use super::{Area, DrawingError, DrawingResult, Legend, Svg, plain, styled};

/// A line.
pub(crate) struct Line {
    /// What it is of.
    pub(crate) label: String,
    /// Its colour.
    pub(crate) colour: RGBColor,
    /// Its points, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What a line says between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Points were measured, and what is between them is a guess.
    Points,
    /// All of it is known.
    Whole,
}

/// Lines that share axes.
pub(crate) struct Lines {
    /// What the axis below says.
    pub(crate) across: String,
    /// What the axis at the side says.
    pub(crate) axis: String,
    /// What the axis below shows.
    pub(crate) range: Range<f64>,
    /// What the axis at the side ends with; it begins at 0.
    pub(crate) highest: f64,
    /// How the lines are to be read.
    pub(crate) reading: Reading,
    /// The lines; a single one needs no legend.
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
