//! Stacked columns: the parts of the times of many items in a row.

use plotters::prelude::*;

use super::{Area, DrawingError, DrawingResult, Legend, Svg, style_axes};
use crate::quantity::{TimeUnit, axis_number};

/// Largest number of columns; with more items, several share a column.
const MAX_COLUMNS: usize = 128;

/// Stacked columns of times.
pub struct Columns {
    /// Label of the horizontal axis.
    pub x_axis: &'static str,
    /// Label of the vertical axis, without the unit.
    pub y_axis: &'static str,
    /// Names and colours of the parts, the lowest first.
    pub parts: Vec<(String, RGBColor)>,
    /// Time of each item \[s\], for each part.
    pub times: Vec<Vec<f64>>,
}

impl Columns {
    /// Returns the number of neighbouring items that share a column, which shows their mean.
    pub fn items_per_column(&self) -> usize {
        self.item_count().div_ceil(MAX_COLUMNS).max(1)
    }

    fn item_count(&self) -> usize {
        self.times.first().map_or(0, Vec::len)
    }

    /// Draws the columns.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        Legend(&self.parts).draw_above((width, 260), |_, area| self.draw_columns(area, width))
    }

    fn draw_columns(&self, area: &Area<'_>, width: u32) -> DrawingResult {
        let share = self.items_per_column();
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let parts: Vec<Vec<f64>> =
            self.times.iter().map(|times| times.chunks(share).map(mean).collect()).collect();
        let columns = parts.first().map_or(0, Vec::len);
        let highest =
            (0..columns).map(|place| parts.iter().map(|part| part[place]).sum()).fold(0.0, f64::max);
        let unit = TimeUnit::of(highest);
        let most = (highest / unit.seconds).max(f64::MIN_POSITIVE);
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(14)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..self.item_count() as f64, 0.0..most)?;
        style_axes(&mut chart.configure_mesh())
            .disable_x_mesh()
            .x_labels(if width < 500 { 5 } else { 12 })
            .x_label_formatter(&|rank| format!("{rank:.0}"))
            .y_label_formatter(&|value| axis_number(*value))
            .x_desc(self.x_axis)
            .y_desc(format!("{} [{}]", self.y_axis, unit.name))
            .draw()?;
        for place in 0..columns {
            let from = (place * share) as f64;
            let to = ((place + 1) * share).min(self.item_count()) as f64;
            // Narrow columns have no gaps.
            let gap = if columns > 64 { 0.0 } else { 0.1 * (to - from) };
            let mut low = 0.0;
            for (part, (_, colour)) in parts.iter().zip(&self.parts) {
                let high = low + part[place] / unit.seconds;
                if high - low > most * 1e-3 {
                    chart.draw_series([Rectangle::new(
                        [(from + gap, low), (to - gap, high)],
                        colour.filled(),
                    )])?;
                    // A part that is too small to be seen is merged into the next one, so that no gap is left.
                    low = high;
                }
            }
        }
        Ok(())
    }
}
