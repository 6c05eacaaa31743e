//! Legend above a drawing.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, DrawingError, DrawingResult, INK, Svg, TEXT, drawn, text_width};

const ROW: u32 = 20;
const SWATCH: i32 = 11;

/// A legend: names with colours, in as many rows as necessary.
pub(crate) struct Legend<'a>(pub(crate) &'a [(String, RGBColor)]);

impl Legend<'_> {
    /// Returns the height of the legend on a drawing of this width \[px\].
    fn height(&self, width: u32) -> u32 {
        self.places(width).last().map_or(0, |&(_, y)| y as u32 + ROW)
    }

    /// Draws the legend above the area of this size that `draw` fills; `draw` gets the whole drawing, and this area.
    pub(crate) fn above(
        &self,
        (width, height): (u32, u32),
        draw: impl FnOnce(&Area<'_>, &Area<'_>) -> DrawingResult,
    ) -> Result<Svg, DrawingError> {
        let top = self.height(width);
        drawn((width, top + height), |area, _| {
            self.draw(area, width)?;
            let (_, below) = area.split_vertically(top);
            draw(area, &below)
        })
    }

    /// Draws the legend at the top.
    fn draw(&self, area: &Area<'_>, width: u32) -> DrawingResult {
        let style = ("sans-serif", TEXT).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        for ((name, colour), (x, y)) in self.0.iter().zip(self.places(width)) {
            let middle = y + ROW as i32 / 2;
            let corners = [(x, middle - SWATCH / 2), (x + SWATCH, middle + SWATCH / 2 + 1)];
            area.draw(&Rectangle::new(corners, colour.filled()))?;
            area.draw(&Text::new(name.as_str(), (x + SWATCH + 5, middle), style.clone()))?;
        }
        Ok(())
    }

    fn places(&self, width: u32) -> Vec<(i32, i32)> {
        let (mut x, mut y) = (4, 0);
        let mut places = Vec::new();
        for (name, _) in self.0 {
            let wide = SWATCH + 20 + text_width(name) as i32;
            if x > 4 && x + wide > width as i32 {
                (x, y) = (4, y + ROW as i32);
            }
            places.push((x, y));
            x += wide;
        }
        places
    }
}
