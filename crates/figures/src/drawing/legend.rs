//! Legend above a drawing.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, DrawingError, DrawingResult, INK, Svg, TEXT_SIZE, draw_svg, text_width};

const ROW_HEIGHT: u32 = 20;
const SWATCH_SIZE: i32 = 11;

/// A legend: names with colours, in as many rows as necessary.
pub(super) struct Legend<'a>(pub(super) &'a [(String, RGBColor)]);

impl Legend<'_> {
    /// Returns the height of the legend on a drawing of this width \[px\].
    fn height(&self, width: u32) -> u32 {
        self.positions(width).last().map_or(0, |&(_, y)| y as u32 + ROW_HEIGHT)
    }

    /// Draws the legend above the area of this size that `draw` fills; `draw` gets the whole drawing, and this area.
    pub(super) fn draw_above(
        &self,
        (width, height): (u32, u32),
        draw: impl FnOnce(&Area<'_>, &Area<'_>) -> DrawingResult,
    ) -> Result<Svg, DrawingError> {
        let top = self.height(width);
        draw_svg((width, top + height), |area, _| {
            self.draw(area, width)?;
            let (_, below) = area.split_vertically(top);
            draw(area, &below)
        })
    }

    /// Draws the legend at the top.
    fn draw(&self, area: &Area<'_>, width: u32) -> DrawingResult {
        let style = ("sans-serif", TEXT_SIZE).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        for ((name, colour), (x, y)) in self.0.iter().zip(self.positions(width)) {
            let middle = y + ROW_HEIGHT as i32 / 2;
            let corners = [(x, middle - SWATCH_SIZE / 2), (x + SWATCH_SIZE, middle + SWATCH_SIZE / 2 + 1)];
            area.draw(&Rectangle::new(corners, colour.filled()))?;
            area.draw(&Text::new(name.as_str(), (x + SWATCH_SIZE + 5, middle), style.clone()))?;
        }
        Ok(())
    }

    fn positions(&self, width: u32) -> Vec<(i32, i32)> {
        let (mut x, mut y) = (4, 0);
        let mut places = Vec::new();
        for (name, _) in self.0 {
            let wide = SWATCH_SIZE + 20 + text_width(name) as i32;
            if x > 4 && x + wide > width as i32 {
                (x, y) = (4, y + ROW_HEIGHT as i32);
            }
            places.push((x, y));
            x += wide;
        }
        places
    }
}
