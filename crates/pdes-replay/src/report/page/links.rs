//! Links: the most contended ones over time, and the distribution of the utilisation of all.

use std::rc::Rc;

use figures::quantity::TimeUnit;
use figures::{Bins, Figure, Strips};

use super::super::{ContendedLink, Links};
use super::SavedReport;
use super::part::from_picos;

/// Lowest utilisation that is distinguished: a single small message does not justify ten more decades on the axis.
const MIN_UTILISATION: f64 = 1e-5;
/// Largest number of links in the drawing.
const MAX_DRAWN: usize = 32;

pub(in crate::report) fn figures(links: &Links, run: &SavedReport) -> Vec<Figure> {
    let links = Rc::new(links.clone());
    let mut figures = Vec::new();
    if links.top.iter().any(|link| !link.series.is_empty()) {
        figures.push(over_time(Rc::clone(&links), run.simulated_time_s));
    }
    if links.all.utilisation.iter().any(|&used| used > 0.0) {
        figures.push(distribution(links));
    }
    figures
}

/// Formats a fraction of a capacity.
pub(super) fn share(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn over_time(links: Rc<Links>, end: f64) -> Figure {
    Figure::new("links", "The most contended links over time", move |width| {
        let bins = links.top.iter().map(|link| link.series.len()).max().unwrap_or_default();
        let unit = TimeUnit::of(end);
        let padded = |link: &ContendedLink| {
            let mut series = link.series.to_vec();
            series.resize(bins, 0.0);
            (link.name.clone(), series)
        };
        // The last bin may extend beyond the end of the run.
        let whole = from_picos(links.bin_ps) * bins as f64;
        Strips {
            x_axis: format!("simulated time [{}]", unit.name),
            range: 0.0..(whole / unit.seconds).max(f64::MIN_POSITIVE),
            rows: links.top.iter().take(MAX_DRAWN).map(padded).collect(),
            ends: ("unused".to_owned(), "full".to_owned()),
        }
        .draw(width)
    })
}

fn distribution(links: Rc<Links>) -> Figure {
    Figure::new(
        "link-use",
        "How much links are used on average, of those that carry anything",
        move |width| {
            let used = links.all.utilisation.iter().copied();
            let bins = Bins::new(
                used.filter(|&used| used > 0.0).map(|used| (100.0 * used.max(MIN_UTILISATION), 1.0)),
            );
            bins.draw(width, "part of the capacity", |used| format!("{} %", (used * 1e4).round() / 1e4))
        },
    )
}
