//! Sections of a report as tables of text.

pub(super) mod breakdown;
pub(super) mod critical_path;
pub(super) mod links;

/// Largest number of rows of ranks, call sites and links.
const MAX_LISTED: usize = 10;

fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { 100.0 * part / whole }
}

pub(super) fn seconds(picos: u64) -> f64 {
    picos as f64 / 1e12
}
