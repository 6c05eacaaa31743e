//! Colours that most people can distinguish, on light and on dark backgrounds.

use plotters::style::RGBColor;
use plotters::style::colors::colormaps::{ColorMap, ViridisRGB};

/// Colour of text and axes. Pages replace this and the next two colours by their own (`page/style.css`).
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Colour of less important text.
pub(super) const SOFT_INK: RGBColor = RGBColor(102, 102, 102);
/// Colour of grid lines.
pub(super) const GRID: RGBColor = RGBColor(221, 221, 221);
/// Colours of parts: those of Okabe and Ito, then of Tol's muted set. A part has the same one in all drawings and on all pages.
pub const COLOURS: [RGBColor; 14] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(140, 140, 140),
    RGBColor(136, 34, 85),
    RGBColor(221, 204, 119),
    RGBColor(102, 102, 204),
    RGBColor(153, 153, 51),
    RGBColor(17, 119, 51),
    RGBColor(68, 170, 153),
    RGBColor(170, 68, 85),
];
/// Colours of the two runs of a comparison; the first one is also that of quantities that are no part of anything.
pub const RUNS: [RGBColor; 2] = [RGBColor(110, 125, 145), RGBColor(235, 170, 140)];

/// Colour scale of values from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Viridis: dark for 0, bright for 1.
    Sequential,
    /// Grey for 0, orange for a half, red for 1: lines of all of these are visible on any background.
    Heat,
    /// Blue for 0, pale for a half, red for 1.
    Diverging,
}

impl Scale {
    /// Returns the colour of a value, which is clamped to 0 to 1.
    pub fn colour(self, value: f64) -> RGBColor {
        let value = value.clamp(0.0, 1.0);
        let (low, middle, high) = (RGBColor(33, 102, 172), RGBColor(247, 247, 247), RGBColor(178, 24, 43));
        match self {
            Self::Sequential => ViridisRGB.get_color(value),
            Self::Heat if value < 0.5 => blend(RGBColor(165, 170, 178), COLOURS[1], 2.0 * value),
            Self::Heat => blend(COLOURS[1], high, 2.0 * value - 1.0),
            Self::Diverging if value < 0.5 => blend(low, middle, 2.0 * value),
            Self::Diverging => blend(middle, high, 2.0 * value - 1.0),
        }
    }

    /// Returns the colours of the pixels of images, three bytes each: 0 for missing values, 1 to 255 for values from 0 to 1.
    pub fn palette(self) -> Vec<u8> {
        let colour = |index: u32| {
            let colour = self.colour(f64::from(index.saturating_sub(1)) / 254.0);
            [colour.0, colour.1, colour.2]
        };
        (0..256).flat_map(colour).collect()
    }
}

/// Mixes two colours: `part` is 0 for the first one, 1 for the other.
fn blend(one: RGBColor, other: RGBColor, part: f64) -> RGBColor {
    let mix =
        |one: u8, other: u8| (f64::from(one) + (f64::from(other) - f64::from(one)) * part).round() as u8;
    RGBColor(mix(one.0, other.0), mix(one.1, other.1), mix(one.2, other.2))
}
