//! Breakdown of the time at call sites, and the load imbalance there.

use figures::quantity::{percent, seconds};
use figures::{Bar, Bars, Figure, Section, table};

use super::super::{Breakdown, RegionParts};
use super::part::{Part, legend};

/// Largest number of call sites that are shown.
const MAX_LISTED: usize = 15;

pub(in crate::report) fn section(Breakdown { regions, .. }: &Breakdown) -> Option<Section> {
    if regions.iter().all(|region| region.site.is_none()) {
        return None;
    }
    let shown: Vec<RegionParts> = regions.iter().take(MAX_LISTED).cloned().collect();
    let mut section = Section::new("sites", "Call sites");
    let row = |region: &RegionParts| {
        let parts = &region.parts;
        vec![
            name(region),
            seconds(parts.time_s),
            percent(parts.compute_s, parts.time_s),
            percent(parts.transfer_s, parts.time_s),
            percent(parts.waiting_s, parts.time_s),
            format!("{:.1} %", 100.0 * region.imbalance),
            region.ranks.to_string(),
        ]
    };
    let rows: Vec<_> = shown.iter().map(row).collect();
    section.rest = maud::html! {
        (table(&["call site", "time of all ranks", "compute", "transfer", "waiting", "imbalance", "ranks"], 1, &rows))
        @if regions.len() > MAX_LISTED { p.note { "And " (regions.len() - MAX_LISTED) " more with less time." } }
    };
    section.figures =
        vec![Figure::new("sites", "Call sites with most time; behind them their imbalance", move |width| {
            let parts = Part::occurring(&shown.iter().map(|region| &region.parts).collect::<Vec<_>>());
            let bar = |region: &RegionParts| Bar {
                label: name(region),
                parts: parts.iter().map(|part| part.of(&region.parts)).collect(),
                note: format!("{:.1} %", 100.0 * region.imbalance),
            };
            Bars { axis: "time of all ranks", parts: legend(&parts), bars: shown.iter().map(bar).collect() }
                .draw(width)
        })];
    Some(section)
}

fn name(region: &RegionParts) -> String {
    region.site.clone().unwrap_or_else(|| "before the first".to_owned())
}
