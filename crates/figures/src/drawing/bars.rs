//! Horizontal stacked bars.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{
    Area, DrawingError, DrawingResult, INK, LETTER_WIDTH, Legend, Svg, TEXT_SIZE, style_axes, text_width,
};
use crate::quantity::{TimeUnit, axis_number};

/// Height of a bar with its gap \[px\].
const ROW_HEIGHT: u32 = 26;
/// Space beside a label \[px\].
pub(super) const LABEL_GAP: u32 = 14;

/// A stacked bar.
pub struct Bar {
    /// Label to the left of the bar.
    pub label: String,
    /// Times of the parts \[s\], in order.
    pub parts: Vec<f64>,
    /// Note to the right of the bar.
    pub note: String,
}

/// Bars with a common time axis.
pub struct Bars {
    /// Label of the axis, without the unit.
    pub axis: &'static str,
    /// Names and colours of the parts.
    pub parts: Vec<(String, RGBColor)>,
    /// Bars, the first one on top.
    pub bars: Vec<Bar>,
}

impl Bars {
    /// Draws the bars in the colours of their parts.
    pub fn draw(&self, width: u32) -> Result<Svg, DrawingError> {
        self.draw_with(width, |_, part| self.parts[part].1)
    }

    /// Draws the bars; `colour` returns the colour of a part of a bar.
    pub fn draw_with(
        &self,
        width: u32,
        colour: impl Fn(usize, usize) -> RGBColor,
    ) -> Result<Svg, DrawingError> {
        let height = 50 + ROW_HEIGHT * self.bars.len() as u32;
        Legend(&self.parts).draw_above((width, height), |area, below| self.draw_bars(area, below, colour))
    }

    fn draw_bars(
        &self,
        area: &Area<'_>,
        below: &Area<'_>,
        colour: impl Fn(usize, usize) -> RGBColor,
    ) -> DrawingResult {
        // Text is placed on the whole area, because the chart returns coordinates of that.
        let (width, _) = area.dim_in_pixel();
        let longest = self.bars.iter().map(|bar| bar.parts.iter().sum()).fold(0.0, f64::max);
        let unit = TimeUnit::of(longest);
        let widest = |text: fn(&Bar) -> &String| {
            self.bars.iter().map(|bar| text_width(text(bar))).max().unwrap_or_default()
        };
        let labels = (LABEL_GAP + widest(|bar| &bar.label)).min(width / 2);
        let notes = 12 + widest(|bar| &bar.note);
        let most = (longest / unit.seconds).max(f64::MIN_POSITIVE);
        let mut chart = ChartBuilder::on(below)
            .margin_top(6)
            .margin_right(notes)
            .x_label_area_size(40)
            .y_label_area_size(labels)
            .build_cartesian_2d(0.0..most, (self.bars.len() as f64)..0.0)?;
        style_axes(&mut chart.configure_mesh())
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .x_labels(if width < 500 { 4 } else { 9 })
            .x_label_formatter(&|value| axis_number(*value))
            .x_desc(format!("{} [{}]", self.axis, unit.name))
            .draw()?;
        for (place, bar) in self.bars.iter().enumerate() {
            let (top, bottom) = (place as f64 + 0.14, place as f64 + 0.86);
            let mut from = 0.0;
            for (part, time) in bar.parts.iter().enumerate() {
                let to = from + time / unit.seconds;
                if to > from {
                    chart.draw_series([Rectangle::new(
                        [(from, top), (to, bottom)],
                        colour(place, part).filled(),
                    )])?;
                }
                from = to;
            }
            let (end, middle) = chart.plotting_area().map_coordinate(&(from, place as f64 + 0.5));
            let (start, _) = chart.plotting_area().map_coordinate(&(0.0, 0.0));
            let text = |text: &str, x: i32, side| {
                let style =
                    ("sans-serif", TEXT_SIZE).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
                area.draw(&Text::new(text.to_owned(), (x, middle), style))
            };
            text(&shortened(&bar.label, labels), start - 7, HPos::Right)?;
            text(&bar.note, end + 5, HPos::Left)?;
        }
        Ok(())
    }
}

/// Removes the middle of a text that, with the space beside it, is wider than `width` \[px\].
pub(super) fn shortened(text: &str, width: u32) -> String {
    let letters: Vec<char> = text.chars().collect();
    let room = ((f64::from(width.saturating_sub(LABEL_GAP)) / LETTER_WIDTH).round() as usize).max(3);
    if letters.len() <= room {
        return text.to_owned();
    }
    let half = (room - 1) / 2;
    let ends = [&letters[..room - 1 - half], &['…'], &letters[letters.len() - half..]];
    ends.concat().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_labels_and_parts() {
        let parts = vec![
            ("compute".to_owned(), super::super::COLOURS[0]),
            ("wait".to_owned(), super::super::COLOURS[1]),
        ];
        let bar = Bar { label: "rank 0".to_owned(), parts: vec![0.001, 0.003], note: "4 ms".to_owned() };
        let text = Bars { axis: "time", parts, bars: vec![bar] }.draw(600).unwrap();
        let text = text.text();
        assert!(text.contains("time [ms]") && text.contains("rank 0") && text.contains("4 ms"), "{text}");
        // A swatch and a part of the bar, of which the second one is three times as long.
        let widths = |colour: &str| -> Vec<f64> {
            let rectangles = text.split("<rect").filter(|part| part.contains(colour));
            rectangles
                .map(|part| {
                    part.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
                })
                .collect()
        };
        let (compute, wait) = (widths("#0072B2"), widths("#E69F00"));
        assert_eq!((compute.len(), wait.len()), (2, 2));
        assert!((wait[1] / compute[1] - 3.0).abs() < 0.05, "{compute:?} {wait:?}");
    }

    #[test]
    fn long_labels_lose_their_middle() {
        assert_eq!(shortened("rank 7", 100), "rank 7");
        assert_eq!(shortened("a/long/path/to/file.c:42", 100), "a/long….c:42");
    }
}
