//! The parts of a breakdown with their colours, the same in all drawings.

use figures::{COLOURS, RGBColor};

use super::super::{Parts, PathParts, RankParts};

/// Index of the colour of each part, in the order of [`Parts::named`].
const COLOUR_INDICES: [usize; 11] = [0, 6, 4, 2, 1, 5, 3, 7, 8, 10, 9];
/// Index of the colour of each part of a critical path, in the order of [`PathParts::named`]: those of parts of time with the same name.
pub(super) const PATH_COLOUR_INDICES: [usize; 6] = [0, 6, 4, 11, 12, 13];

/// A part of a breakdown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Index in the order of [`Parts::named`].
    pub(super) index: usize,
    pub(super) name: &'static str,
    pub(super) colour: RGBColor,
}

impl Part {
    /// Returns the parts that are above zero in any of these totals.
    pub(super) fn occurring(totals: &[&Parts]) -> Vec<Self> {
        let names = Parts::default().named();
        let parts = names.into_iter().zip(COLOUR_INDICES).enumerate();
        let part = |(place, ((name, _), colour)): (usize, ((&'static str, f64), usize))| Self {
            index: place,
            name,
            colour: COLOURS[colour],
        };
        parts.map(part).filter(|part| totals.iter().any(|total| part.of(total) > 0.0)).collect()
    }

    /// Returns the time of this part \[s\].
    pub(super) fn of(&self, parts: &Parts) -> f64 {
        parts.named()[self.index].1
    }

    /// Returns the time of this part on each rank \[ps\].
    pub(super) fn column<'a>(&self, ranks: &'a RankParts) -> &'a [u64] {
        let own = [&ranks.compute_ps, &ranks.sleep_ps, &ranks.library_ps, &ranks.transfer_ps];
        match own.get(self.index) {
            Some(column) => column,
            None => ranks.waiting()[self.index - own.len()].1,
        }
    }
}

/// Returns the name and the colour of each part, in the form that scripts of pages need.
pub(crate) fn colours() -> Vec<(&'static str, String)> {
    with_colours(Parts::default().named().map(|(name, _)| name), COLOUR_INDICES)
}

/// Returns the name and the colour of each part of a critical path, in the form that scripts of pages need.
pub(super) fn path_colours() -> Vec<(&'static str, String)> {
    with_colours(PathParts::default().named().map(|(name, _)| name), PATH_COLOUR_INDICES)
}

fn with_colours<const N: usize>(
    names: [&'static str; N],
    indices: [usize; N],
) -> Vec<(&'static str, String)> {
    let colour = |index: usize| {
        let colour = COLOURS[index];
        format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
    };
    names.into_iter().zip(indices.map(colour)).collect()
}

/// Returns names and colours, in the form that drawings need.
pub(super) fn legend(parts: &[Part]) -> Vec<(String, RGBColor)> {
    parts.iter().map(|part| (part.name.replace('_', " "), part.colour)).collect()
}

/// Converts a column to \[s\].
pub(super) fn times(column: &[u64]) -> Vec<f64> {
    column.iter().map(|&picos| from_picos(picos)).collect()
}

/// Converts picoseconds to seconds.
pub(super) fn from_picos(picos: u64) -> f64 {
    picos as f64 / 1e12
}
