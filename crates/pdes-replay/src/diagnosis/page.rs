//! A diagnosis as an HTML page.

use std::path::Path;

use figures::quantity::{percent, seconds};
use figures::{Bar, Bars, COLOURS, Figure, Map, Maps, Page, Scale, Section, WriteError, table};
use maud::{Markup, html};

use super::{Diagnosis, Place, PlacePair, Pop, Problem, RegionEfficiency, Sensitivity, ToleranceLimit};
use crate::report::{FOOTER, page};

/// Largest number of rows of a table.
const MAX_ROWS: usize = 20;
/// Largest number of maps of ranks.
const MAX_MAPS: usize = 12;
/// An efficiency of this or less is as bad as any.
const WORST: f64 = 0.5;

impl Diagnosis {
    /// Writes the diagnosis as a page that needs no other file.
    ///
    /// # Errors
    /// If a figure cannot be drawn, or the file cannot be written.
    pub fn write_page(&self, title: &str, path: &Path) -> Result<(), WriteError> {
        let lead = html! {
            div.cards {
                div { b { (seconds(self.simulated_time_s)) } span { "run time of " (self.ranks) " ranks" } }
                div { b { (percent(self.pop.parallel_efficiency, 1.0)) } span { "parallel efficiency" } }
                div { b { (seconds(self.pop.ideal_time_s)) } span { "on an ideal network" } }
                div { b { (self.problems.len()) } span { "problems" } }
            }
            @for warning in &self.warnings { p.warning { (warning) } }
        };
        Page { title, lead, sections: &self.sections(), scripts: &[], footer: FOOTER }.write(path)
    }

    /// Returns the sections of the diagnosis on a page.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.efficiencies(), self.found_problems()];
        if self.regions.iter().any(|region| region.site.is_some()) {
            sections.push(self.region_table());
        }
        sections.extend(self.tolerances());
        sections
    }

    /// The tree of efficiencies of this run, and of those it is compared with.
    fn efficiencies(&self) -> Section {
        let mut section = Section::new("efficiencies", "Efficiencies");
        let mut runs: Vec<(String, &Pop)> =
            self.references.iter().map(|(name, pop)| (name.clone(), pop)).collect();
        if let Some(measured) = self.measured_pop.as_ref().filter(|measured| **measured != self.pop) {
            runs.push(("recorded".to_owned(), measured));
        }
        runs.push(("this run".to_owned(), &self.pop));
        // The tree of the run with the most nodes of ranks has all rows.
        let trees: Vec<_> = runs.iter().map(|(_, pop)| pop.tree()).collect();
        let longest = trees.iter().max_by_key(|tree| tree.len()).expect("this run is one of them");
        let scalings: Vec<_> = runs.iter().map(|(_, pop)| pop.scaling_from(runs[0].1).tree()).collect();
        let row = |depth: usize, name: &str, values: Vec<Option<f64>>| {
            html! { tr {
                td style={ "padding-left:" (0.6 + 1.4 * depth as f64) "em" } { (name) }
                @for value in values { (cell(value)) }
            } }
        };
        section.rest = html! {
            div.scroll { table {
                thead { tr { th { "" } @for (name, pop) in &runs { th.number { (name) br; (pop.ranks) " ranks" } } } }
                tbody {
                    @for &(depth, name, _) in longest {
                        (row(depth, name, trees.iter().map(|tree| value_of(tree, name)).collect()))
                    }
                    @if runs.len() > 1 { @for &(depth, name, _) in &scalings[0] {
                        (row(depth, name, scalings.iter().map(|tree| value_of(tree, name)).collect()))
                    } }
                }
            } }
            p.note { "100 % is ideal. Children of a row multiply to it." }
        };
        section
    }

    fn found_problems(&self) -> Section {
        let mut section = Section::new("problems", "Problems");
        if self.problems.is_empty() {
            section.rest = html! { p { "No rule found a problem." } };
            return section;
        }
        let has_gains = self.problems.iter().any(|problem| problem.gain_s.is_some());
        if has_gains {
            let gains = self.problems.iter().filter_map(|problem| Some((problem, problem.gain_s?)));
            let bar = |(problem, gain): (&Problem, f64)| Bar {
                label: problem.name.clone(),
                parts: vec![gain.max(0.0)],
                note: seconds(gain),
            };
            let bars = Bars { axis: "gain", parts: Vec::new(), bars: gains.map(bar).collect() };
            section.figures = vec![Figure::new("gains", "Time that the program would save", move |width| {
                bars.draw_with(width, |_, _| COLOURS[0])
            })];
        }
        section.figures.extend(self.maps());
        section.rest = html! {
            div.scroll { table {
                thead { tr { th { "problem" } th.number { "time" } th.number { "share" } @if has_gains { th.number { "gain" } } } }
                tbody { @for problem in &self.problems { tr {
                    td { (problem.name) }
                    td.number { (seconds(problem.duration_s)) }
                    td.number { (percent(problem.share, 1.0)) }
                    @if has_gains { td.number { (problem.gain_s.map_or("-".to_owned(), seconds)) } }
                } } }
            } }
            @for problem in &self.problems {
                h3 { (problem.name) }
                p { (problem.description) }
                p { b { (problem.recommendation) } }
                p.note {
                    "Seen on " (problem.ranks) " of " (self.ranks) " ranks. "
                    @if !problem.states.is_empty() {
                        button type="button" hidden data-states=(problem.states.join(" ")) { "on the timeline" }
                    }
                }
                @if !problem.places.is_empty() { (places(&problem.places)) }
                @if !problem.pairs.is_empty() { (pairs(&problem.pairs)) }
            }
        };
        section
    }

    /// Maps of the times of ranks in the calls of each problem, those that gain most first.
    fn maps(&self) -> Option<Figure> {
        let shown = self.problems.iter().filter(|problem| !problem.rank_times_s.is_empty()).take(MAX_MAPS);
        let shown: Vec<_> =
            shown.map(|problem| (problem.name.clone(), problem.rank_times_s.clone())).collect();
        let draw = move |width| {
            // Several maps are side by side, so that their titles have to be short.
            let map = |(name, times): &(String, Vec<f64>)| Map {
                title: name.clone(),
                ..page::rank_map(name, times)
            };
            let maps = shown.iter().map(map).collect();
            Maps { maps, scale: Scale::Sequential, ends: ("least".to_owned(), "most".to_owned()) }.draw(width)
        };
        let is_any = self.problems.iter().any(|problem| !problem.rank_times_s.is_empty());
        is_any.then(|| Figure::new("problem-ranks", "Time of each rank in the calls of a problem", draw))
    }

    fn region_table(&self) -> Section {
        let mut section = Section::new("regions", "Call sites and regions");
        let name = |region: &RegionEfficiency| region.site.clone().unwrap_or("before the first".to_owned());
        section.rest = html! {
            div.scroll { table {
                thead { tr {
                    th { "" } th.number { "time of all ranks" } th.number { "parallel efficiency" } th.number { "load balance" }
                    th.number { "communication efficiency" } th.number { "serialization efficiency" } th.number { "transfer efficiency" }
                } }
                tbody { @for region in self.regions.iter().take(MAX_ROWS) { tr {
                    td { (name(region)) }
                    td.number { (seconds(region.time_s)) }
                    (cell(Some(region.parallel_efficiency)))
                    (cell(Some(region.load_balance)))
                    (cell(Some(region.communication_efficiency)))
                    (cell(Some(region.serialization_efficiency)))
                    (cell(Some(region.transfer_efficiency)))
                } } }
            } }
            (rest(self.regions.len()))
        };
        section
    }

    fn tolerances(&self) -> Option<Section> {
        let tolerance = self.tolerance.as_ref()?;
        let mut section = Section::new("tolerance", "How much slower the network could be");
        let limits = tolerance.latency.limits.iter();
        let head: Vec<String> =
            limits.map(|limit| format!("with {:.0} % more time", 100.0 * limit.more_time)).collect();
        let head: Vec<&str> =
            ["", "time proportional to it"].into_iter().chain(head.iter().map(String::as_str)).collect();
        let row = |(name, found): (String, &Sensitivity)| {
            let factor = |limit: &ToleranceLimit| match limit.factor {
                Some(_) => format!("× {}", limit.shown()),
                None => "any".to_owned(),
            };
            [name.trim_start().to_owned(), seconds(found.time_s)]
                .into_iter()
                .chain(found.limits.iter().map(factor))
                .collect()
        };
        let rows: Vec<Vec<String>> = tolerance.rows().into_iter().map(row).collect();
        section.rest = table(&head, 1, &rows);
        Some(section)
    }
}

/// Returns the value of a row of a tree, where the run has it.
fn value_of(tree: &[(usize, &'static str, f64)], name: &str) -> Option<f64> {
    tree.iter().find(|row| row.1 == name).map(|row| row.2)
}

/// Renders an efficiency on green for 1 and red for bad ones, in light and dark colours alike.
fn cell(value: Option<f64>) -> Markup {
    let Some(value) = value else { return html! { td.number { "-" } } };
    let hue = 120.0 * ((value - WORST) / (1.0 - WORST)).clamp(0.0, 1.0);
    html! { td.number style={ "background:hsl(" (format!("{hue:.0}")) " 75% 45% / 28%)" } { (percent(value, 1.0)) } }
}

fn places(places: &[Place]) -> Markup {
    let row = |place: &Place| {
        let call = place.call.clone().unwrap_or_default();
        vec![place.site.clone().unwrap_or("-".to_owned()), call, seconds(place.duration_s)]
    };
    let rows: Vec<_> = places.iter().take(MAX_ROWS).map(row).collect();
    html! { (table(&["place", "call", "time"], 2, &rows)) (rest(places.len())) }
}

fn pairs(pairs: &[PlacePair]) -> Markup {
    let site = |site: &Option<String>| site.clone().unwrap_or("-".to_owned());
    let call = |call: &Option<String>| call.clone().unwrap_or("not known".to_owned());
    let row = |pair: &PlacePair| {
        let [one, other] = [(&pair.site, &pair.call), (&pair.other_site, &pair.other_call)]
            .map(|(at, of)| [site(at), call(of)]);
        one.into_iter().chain(other).chain([seconds(pair.duration_s)]).collect()
    };
    let rows: Vec<Vec<String>> = pairs.iter().take(MAX_ROWS).map(row).collect();
    let head = ["waits at", "call", "because of", "call", "time"];
    html! { (table(&head, 4, &rows)) (rest(pairs.len())) }
}

/// Says how many rows of a table are left out.
fn rest(rows: usize) -> Markup {
    html! { @if rows > MAX_ROWS { p.note { "And " (rows - MAX_ROWS) " more." } } }
}
