//! Dots and lines over a logarithmic axis.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::{Area, DrawingError, DrawingResult, Legend, Svg, style_axes};
use crate::quantity::axis_number;

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal distances are equal differences.
    Linear,
    /// Equal distances are equal ratios; all values are above zero.
    Logarithmic,
}

/// Kind of drawing of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As dots of this radius \[px\].
    Dots(u32),
    /// As a line of this width \[px\].
    Line(u32),
}

/// Points that are drawn alike.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Points.
    pub points: Vec<(f64, f64)>,
    /// Kind of their drawing.
    pub mark: Mark,
    /// Colour.
    pub colour: RGBColor,
    /// Opacity, from 0 to 1.
    pub opacity: f64,
}

/// Layers over a horizontal axis that is logarithmic.
#[derive(Clone, Debug)]
pub struct LogChart {
    /// Label of the horizontal axis.
    pub x_axis: &'static str,
    /// Label of the vertical axis.
    pub y_axis: &'static str,
    /// Range of the horizontal axis, above zero.
    pub x_range: Range<f64>,
    /// Range of the vertical axis.
    pub y_range: Range<f64>,
    /// Scale of the vertical axis.
    pub y_scale: AxisScale,
    /// Formats a value on the horizontal axis.
    pub x_label: fn(f64) -> String,
    /// Height without the legend \[px\].
    pub height: u32,
    /// Names and colours in the legend.
    pub legend: Vec<(String, RGBColor)>,
    /// Layers, the last one on top.
    pub layers: Vec<Layer>,
}

impl LogChart {
    /// Draws the layers.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        let y = self.y_range.clone();
        Legend(&self.legend).draw_above((width, self.height), |_, area| match self.y_scale {
            AxisScale::Linear => self.draw_layers(area, width, y),
            AxisScale::Logarithmic => self.draw_layers(area, width, y.log_scale()),
        })
    }

    fn draw_layers<Y>(&self, area: &Area<'_>, width: u32, y_range: Y) -> DrawingResult
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(18)
            .x_label_area_size(40)
            .y_label_area_size(72)
            .build_cartesian_2d(self.x_range.clone().log_scale(), y_range)?;
        style_axes(&mut chart.configure_mesh())
            .x_labels(if width < 500 { 4 } else { 10 })
            .x_label_formatter(&|value| (self.x_label)(*value))
            .y_label_formatter(&|value| axis_number(*value))
            .x_desc(self.x_axis)
            .y_desc(self.y_axis)
            .draw()?;
        for Layer { points, mark, colour, opacity } in &self.layers {
            let colour = colour.mix(*opacity);
            match *mark {
                Mark::Dots(radius) => {
                    chart.draw_series(points.iter().map(|&at| Circle::new(at, radius, colour.filled())))?
                }
                Mark::Line(wide) => {
                    chart.draw_series([PathElement::new(points.clone(), colour.stroke_width(wide))])?
                }
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::COLOURS;
    use super::*;

    #[test]
    fn equal_ratios_are_equal_distances() {
        let points = vec![(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)];
        let layer = Layer { points, mark: Mark::Dots(2), colour: COLOURS[0], opacity: 1.0 };
        let mut chart = LogChart {
            x_axis: "size",
            y_axis: "time",
            x_range: 0.5..200.0,
            y_range: 0.5..200.0,
            y_scale: AxisScale::Logarithmic,
            x_label: |value| format!("{value}"),
            height: 300,
            legend: Vec::new(),
            layers: vec![layer],
        };
        let places = |chart: &LogChart, name: &str| -> Vec<f64> {
            let drawing = chart.draw(600).unwrap();
            let circles = drawing.text().split("<circle").skip(1);
            let value = |circle: &str| circle.split(name).nth(1).unwrap().split('"').next().unwrap().parse();
            circles.map(|circle| value(circle).unwrap()).collect()
        };
        let is_even = |places: Vec<f64>| ((places[2] - places[1]) - (places[1] - places[0])).abs() < 2.0;
        assert!(is_even(places(&chart, "cx=\"")) && is_even(places(&chart, "cy=\"")));
        chart.y_scale = AxisScale::Linear;
        assert!(is_even(places(&chart, "cx=\"")) && !is_even(places(&chart, "cy=\"")));
    }
}
