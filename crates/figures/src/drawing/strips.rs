//! Strips: a row of coloured pixels over time for each of several items.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::bars::{LABEL_GAP, shortened};
use super::map::draw_scale;
use super::{
    Area, DrawingError, DrawingResult, GRID, INK, Image, PlacedImage, SOFT_INK, Scale, Svg, TEXT_SIZE,
    draw_svg, text_width,
};
use crate::quantity::axis_number;

/// Height of a strip \[px\].
const STRIP_HEIGHT: u32 = 17;
/// Height of the colour scale above the strips \[px\].
const SCALE_HEIGHT: u32 = 28;

/// Strips with a common time axis.
pub struct Strips {
    /// Label of the axis.
    pub x_axis: String,
    /// Range of the axis.
    pub range: Range<f64>,
    /// Strips: names, and the same number of values from 0 to 1 in each.
    pub rows: Vec<(String, Vec<f64>)>,
    /// Labels of both ends of the colour scale.
    pub ends: (String, String),
}

impl Strips {
    /// Draws the strips.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        let height = SCALE_HEIGHT + STRIP_HEIGHT * self.rows.len() as u32 + 46;
        draw_svg((width, height), |area, images| {
            draw_scale(area, images, Scale::Sequential, &self.ends)?;
            let (_, area) = area.split_vertically(SCALE_HEIGHT);
            self.draw_strips(&area, images, width)
        })
    }

    fn draw_strips(&self, area: &Area<'_>, images: &mut Vec<PlacedImage>, width: u32) -> DrawingResult {
        let widest = self.rows.iter().map(|(name, _)| text_width(name)).max().unwrap_or_default();
        let labels = (LABEL_GAP + widest).min(width * 2 / 5);
        let mut chart = ChartBuilder::on(area)
            .margin_right(18)
            .x_label_area_size(40)
            .y_label_area_size(labels)
            .build_cartesian_2d(self.range.clone(), (self.rows.len() as f64)..0.0)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .disable_y_axis()
            .y_labels(0)
            .x_labels(if width < 500 { 4 } else { 9 })
            .x_label_formatter(&|value| axis_number(*value))
            .axis_style(GRID)
            .label_style(("sans-serif", TEXT_SIZE - 1).into_font().color(&SOFT_INK))
            .axis_desc_style(("sans-serif", TEXT_SIZE).into_font().color(&INK))
            .x_desc(self.x_axis.as_str())
            .draw()?;
        let (across, down) = chart.plotting_area().get_pixel_range();
        let (left, right, top) = (across.start, across.end, down.start);
        for (place, (name, _)) in (0..).zip(&self.rows) {
            let middle = (place * STRIP_HEIGHT + STRIP_HEIGHT / 2) as i32;
            let style = ("sans-serif", TEXT_SIZE - 1)
                .into_font()
                .color(&INK)
                .pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(shortened(name, labels), (left - 7, middle), style))?;
        }
        let values = self.rows.iter().flat_map(|(_, values)| values.iter().copied().map(Some)).collect();
        let columns = self.rows.first().map_or(1, |(_, values)| values.len()) as u32;
        images.push(PlacedImage {
            image: Image::new(columns, values, &Scale::Sequential),
            corner: (left, top),
            size: ((right - left) as u32, STRIP_HEIGHT * self.rows.len() as u32),
        });
        Ok(())
    }
}
