//! Breakdown of the time at call sites, and the load imbalance there.

use figures::{Bar, Bars, Figure};

use super::super::{Breakdown, RegionParts};
use super::part::{Part, legend};

/// Largest number of call sites that are shown.
const MAX_LISTED: usize = 15;

pub(in crate::report) fn figure(Breakdown { regions, .. }: &Breakdown) -> Option<Figure> {
    if regions.iter().all(|region| region.site.is_none()) {
        return None;
    }
    let shown: Vec<RegionParts> = regions.iter().take(MAX_LISTED).cloned().collect();
    Some(Figure::new("sites", "Call sites with most time; behind them their imbalance", move |width| {
        let parts = Part::occurring(&shown.iter().map(|region| &region.parts).collect::<Vec<_>>());
        let bar = |region: &RegionParts| Bar {
            label: name(region),
            parts: parts.iter().map(|part| part.of(&region.parts)).collect(),
            note: format!("{:.1} %", 100.0 * region.imbalance),
        };
        Bars { axis: "time of all ranks", parts: legend(&parts), bars: shown.iter().map(bar).collect() }
            .draw(width)
    }))
}

fn name(region: &RegionParts) -> String {
    region.site.clone().unwrap_or_else(|| "before the first".to_owned())
}
