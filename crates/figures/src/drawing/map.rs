//! Maps: small images of coloured pixels with a common scale.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{
    Area, DrawingError, DrawingResult, INK, Image, PlacedImage, SOFT_INK, Scale, Svg, TEXT_SIZE, draw_svg,
    text_width,
};

/// Height of the colour scale with its labels \[px\].
const SCALE_HEIGHT: u32 = 30;
/// Height of a title \[px\].
const TITLE_HEIGHT: u32 = 22;
/// Space between maps \[px\].
const GAP: u32 = 16;
/// Preferred minimum width of a map \[px\].
const MIN_WIDTH: u32 = 165;
/// Largest size of the pixel of a value \[px\].
const MAX_PIXEL: u32 = 24;
/// Smallest height of a map \[px\].
const MIN_HEIGHT: u32 = 28;

/// A map: rows of values.
#[derive(Clone, Debug)]
pub struct Map {
    /// Title.
    pub title: String,
    /// Number of values in a row.
    pub columns: u32,
    /// Values from 0 to 1; missing values are transparent.
    pub values: Vec<Option<f64>>,
}

/// Maps with a common scale.
#[derive(Clone, Debug)]
pub struct Maps {
    /// Maps, in drawing order.
    pub maps: Vec<Map>,
    /// Colour scale.
    pub scale: Scale,
    /// Labels of both ends of the scale.
    pub ends: (String, String),
}

/// A map with its position and size \[px\].
struct PlacedMap<'a> {
    map: &'a Map,
    corner: (u32, u32),
    size: (u32, u32),
}

impl Map {
    fn rows(&self) -> u32 {
        (self.values.len() as u32).div_ceil(self.columns.max(1)).max(1)
    }

    /// Returns the size of the map within a width of `room`.
    fn size(&self, room: u32) -> (u32, u32) {
        let (columns, rows) = (self.columns.max(1), self.rows());
        let pixel = f64::from(room.min(columns * MAX_PIXEL)) / f64::from(columns);
        let wide = (pixel * f64::from(columns)) as u32;
        (wide, ((pixel * f64::from(rows)) as u32).max(MIN_HEIGHT))
    }
}

impl Maps {
    /// Draws the maps, side by side if there is room.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        let (laid, height) = self.layout(width);
        draw_svg((width, height), |area, images| {
            draw_scale(area, images, self.scale, &self.ends)?;
            laid.iter().try_for_each(|laid| laid.draw(area, images, self.scale))
        })
    }

    /// Determines the position of each map, and the total height.
    fn layout(&self, width: u32) -> (Vec<PlacedMap<'_>>, u32) {
        // Maps that are much wider than high take a line each.
        let is_band = self.maps.iter().any(|map| map.columns > 8 * map.rows() && map.columns > 24);
        let fitting = (width / (MIN_WIDTH + GAP)).clamp(1, 4);
        let across = if is_band { 1 } else { fitting.min(self.maps.len().max(1) as u32) };
        let room = width / across - GAP;
        let mut laid = Vec::new();
        let mut top = SCALE_HEIGHT;
        for line in self.maps.chunks(across as usize) {
            let mut tallest = 0;
            for (place, map) in (0..).zip(line) {
                let size = map.size(room);
                laid.push(PlacedMap { map, corner: (place * (room + GAP) + 4, top), size });
                tallest = tallest.max(size.1);
            }
            top += TITLE_HEIGHT + tallest + GAP;
        }
        (laid, top)
    }
}

impl PlacedMap<'_> {
    fn draw(&self, area: &Area<'_>, images: &mut Vec<PlacedImage>, scale: Scale) -> DrawingResult {
        let (x, y) = (self.corner.0 as i32, self.corner.1 as i32);
        let style = ("sans-serif", TEXT_SIZE).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(self.map.title.as_str(), (x, y + TITLE_HEIGHT as i32 / 2), style))?;
        images.push(PlacedImage {
            image: Image::new(self.map.columns, self.map.values.clone(), &scale),
            corner: (x, y + TITLE_HEIGHT as i32),
            size: self.size,
        });
        Ok(())
    }
}

/// Draws a colour scale between the labels of its ends.
pub(super) fn draw_scale(
    area: &Area<'_>,
    images: &mut Vec<PlacedImage>,
    scale: Scale,
    (low, high): &(String, String),
) -> DrawingResult {
    const LENGTH: u32 = 120;
    let style =
        ("sans-serif", TEXT_SIZE - 1).into_font().color(&SOFT_INK).pos(Pos::new(HPos::Left, VPos::Center));
    let start = 4 + text_width(low) as i32 + 6;
    area.draw(&Text::new(low.as_str(), (4, 12), style.clone()))?;
    area.draw(&Text::new(high.as_str(), (start + LENGTH as i32 + 8, 12), style))?;
    let values = (0..LENGTH).map(|step| Some(f64::from(step) / f64::from(LENGTH - 1))).collect();
    let image = Image::new(LENGTH, values, &scale);
    images.push(PlacedImage { image, corner: (start, 6), size: (LENGTH, 12) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(columns: u32, values: usize) -> Map {
        Map { title: "a".to_owned(), columns, values: vec![Some(0.5); values] }
    }

    #[test]
    fn maps_stand_side_by_side_where_there_is_room() {
        let maps = Maps {
            maps: vec![map(128, 128 * 128); 3],
            scale: Scale::Sequential,
            ends: ("0".into(), "1".into()),
        };
        let corners = |width| maps.layout(width).0.iter().map(|laid| laid.corner).collect::<Vec<_>>();
        assert_eq!(corners(920).iter().filter(|corner| corner.1 == SCALE_HEIGHT).count(), 3);
        assert_eq!(corners(200).iter().filter(|corner| corner.1 == SCALE_HEIGHT).count(), 1);
        let inside = |laid: &PlacedMap<'_>| laid.corner.0 + laid.size.0 <= 350;
        assert!(maps.layout(350).0.iter().all(inside));
        let text = maps.draw(920).unwrap();
        assert_eq!(text.text().matches("<image").count(), 4, "a scale and three maps");
    }

    #[test]
    fn bands_are_high_enough_to_be_seen() {
        let maps =
            Maps { maps: vec![map(512, 512)], scale: Scale::Sequential, ends: ("0".into(), "1".into()) };
        assert_eq!(maps.layout(920).0[0].size.1, MIN_HEIGHT);
        assert_eq!(map(4, 16).size(500), (4 * MAX_PIXEL, 4 * MAX_PIXEL));
    }
}
