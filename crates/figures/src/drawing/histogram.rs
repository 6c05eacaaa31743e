//! Histograms over a logarithmic axis.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLOURS, DrawingError, SOFT_INK, Svg, TEXT_SIZE, draw_svg, style_axes};
use crate::quantity::axis_number;

/// Number of bins per decade.
const PER_DECADE: i32 = 10;

/// Values in logarithmic bins, ten per decade.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// Number of values that are zero, which have a bin of their own.
    zeros: f64,
    /// Index of the first bin that is not empty: bin `i` begins at 10^(i/10).
    first: i32,
    /// Number of values in this and each following bin.
    counts: Vec<f64>,
}

impl Bins {
    /// Creates bins from values with their numbers of occurrences, in any order.
    pub fn new(values: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let zeros = values.clone().filter(|&(value, _)| value <= 0.0).map(|(_, count)| count).sum();
        let place = |value: f64| (value.log10() * f64::from(PER_DECADE) + 1e-9).floor() as i32;
        let placed = values.filter(|&(value, _)| value > 0.0).map(|(value, count)| (place(value), count));
        let first = placed.clone().map(|(place, _)| place).min().unwrap_or_default();
        let last = placed.clone().map(|(place, _)| place).max().unwrap_or_default();
        let mut counts = vec![0.0; (last - first + 1) as usize];
        placed.for_each(|(place, count)| counts[(place - first) as usize] += count);
        Self { zeros, first, counts }
    }

    /// Returns the ticks of the axis, as bins and values: powers of ten, and if there is room 2 and 5 between them, which are close to the
    /// beginnings of bins (1.995 and 5.012).
    fn ticks(&self, width: u32) -> Vec<(i32, f64)> {
        let ends = self.first..=self.first + self.counts.len() as i32;
        let has_room = self.counts.len() as u32 * 20 < width;
        let value = |tenths: i32| {
            let digit = match tenths.rem_euclid(PER_DECADE) {
                0 => 1.0,
                3 if has_room => 2.0,
                7 if has_room => 5.0,
                _ => return None,
            };
            Some((tenths, digit * 10_f64.powi(tenths.div_euclid(PER_DECADE))))
        };
        ends.filter_map(value).collect()
    }

    /// Draws the bins; `label` formats a value.
    pub fn draw(&self, width: u32, axis: &str, label: fn(f64) -> String) -> Result<Svg, DrawingError> {
        let end = |bin: usize| f64::from(self.first + bin as i32);
        // The bin of zeros is separated by a gap.
        let left = if self.zeros > 0.0 { end(0) - 3.0 } else { end(0) };
        let highest = self.counts.iter().copied().fold(self.zeros, f64::max).max(1.0);
        let all = self.zeros + self.counts.iter().sum::<f64>();
        let shares = 100.0 / all.max(f64::MIN_POSITIVE);
        draw_svg((width, 240), |area, _| {
            let mut chart = ChartBuilder::on(area)
                .margin_top(10)
                .margin_right(24)
                .x_label_area_size(40)
                .y_label_area_size(64)
                .build_cartesian_2d(left..end(self.counts.len()), 0.0..highest * shares * 1.05)?;
            style_axes(&mut chart.configure_mesh())
                .disable_x_mesh()
                .disable_x_axis()
                .x_labels(0)
                .y_label_formatter(&|value| axis_number(*value))
                .x_desc(axis)
                .y_desc("of all [%]")
                .draw()?;
            let column = |from: f64, count: f64, colour: RGBColor| {
                Rectangle::new([(from + 0.06, 0.0), (from + 0.94, count * shares)], colour.filled())
            };
            chart.draw_series(
                (0..)
                    .zip(&self.counts)
                    .filter(|&(_, &count)| count > 0.0)
                    .map(|(bin, &count)| column(end(bin), count, COLOURS[0])),
            )?;
            let tick = |at: f64, text: String| {
                let (x, y) = chart.plotting_area().map_coordinate(&(at, 0.0));
                let style = ("sans-serif", TEXT_SIZE - 1).into_font().color(&SOFT_INK);
                area.draw(&Text::new(text, (x, y + 6), style.pos(Pos::new(HPos::Center, VPos::Top))))
            };
            for (tenths, value) in self.ticks(width) {
                tick(f64::from(tenths), label(value))?;
            }
            if self.zeros > 0.0 {
                tick(left + 0.5, "0".to_owned())?;
                chart.draw_series([column(left, self.zeros, COLOURS[6])])?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_tenths_of_a_decade() {
        let bins = Bins::new([(1.0, 2.0), (1.2, 1.0), (1.3, 4.0), (0.0, 3.0), (99.0, 1.0)].into_iter());
        assert_eq!((bins.zeros, bins.first, bins.counts.len()), (3.0, 0, 20));
        assert_eq!((bins.counts[0], bins.counts[1], bins.counts[19]), (3.0, 4.0, 1.0));
        let text = bins.draw(600, "size", crate::quantity::bytes).unwrap();
        assert!(text.text().contains("of all [%]"));
        assert_eq!(bins.ticks(600).iter().map(|tick| tick.0).collect::<Vec<_>>(), [0, 3, 7, 10, 13, 17, 20]);
        assert_eq!(bins.ticks(300), [(0, 1.0), (10, 10.0), (20, 100.0)]);
    }
}
