//! Maps with a pixel per rank.

/// Largest number of pixels of a map; with more ranks, several share a pixel.
pub(super) const MAX_PIXELS: usize = 1 << 16;

/// Returns the means of groups of neighbours, at most one value per pixel.
pub(super) fn means(times: &[f64]) -> Vec<f64> {
    let share = times.len().div_ceil(MAX_PIXELS).max(1);
    times.chunks(share).map(|times| times.iter().sum::<f64>() / times.len() as f64).collect()
}

/// Returns the number of pixels per line: the divisor closest to a square, as in process grids, or else the root.
pub(super) fn width(pixels: usize) -> u32 {
    let root = (pixels as f64).sqrt().ceil() as usize;
    let divisors = (root..=2 * root).filter(|&width| width > 0 && pixels.is_multiple_of(width));
    divisors.min().unwrap_or(root.max(1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_grids_of_processes() {
        assert_eq!([16384, 1024, 128, 120, 97, 1].map(width), [128, 32, 16, 12, 10, 1]);
    }

    #[test]
    fn many_ranks_share_pixels() {
        assert_eq!(means(&[1.0, 2.0]), [1.0, 2.0]);
        let ranks: Vec<f64> = (0..3 * MAX_PIXELS).map(|rank| rank as f64).collect();
        let means = means(&ranks);
        assert_eq!((means.len(), means[0], means[1]), (MAX_PIXELS, 1.0, 4.0));
    }
}
