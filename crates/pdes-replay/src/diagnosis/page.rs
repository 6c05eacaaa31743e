//! A diagnosis as an HTML page: its data, for the scripts beside this file, and its figures.

use std::path::Path;

use figures::quantity::seconds;
use figures::{Bar, Bars, Explorer, Figure, Map, Maps, RUNS, Scale, WriteError};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Diagnosis, Pop, Problem};
use crate::report::{FOOTER, page};

/// Largest number of maps of ranks in a picture.
const MAX_MAPS: usize = 12;

impl Diagnosis {
    /// Writes the diagnosis as a page that needs no other file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_page(&self, title: &str, path: &Path) -> Result<(), WriteError> {
        let data = to_raw_value(&self.page_data())
            .map_err(|error| WriteError::Write { path: path.to_owned(), source: error.into() })?;
        let scripts = [include_str!("page.js"), include_str!("standalone.js")];
        Explorer { title, data: &[("diagnosis", data)], scripts: &scripts, footer: FOOTER }.write(path)
    }

    /// Returns what the scripts of a page need: the diagnosis, and the rows of the tables that are computed from it.
    pub(crate) fn page_data(&self) -> Value {
        let tolerance = self.tolerance.as_ref().map(|tolerance| {
            let limits: Vec<_> = tolerance.latency.limits.iter().map(|limit| limit.more_time).collect();
            let rows = tolerance.rows().into_iter().map(|(name, found)| {
                let factors: Vec<_> = found.limits.iter().map(|limit| limit.factor).collect();
                json!([name.trim_start(), found.time_s, factors])
            });
            json!({ "limits": limits, "rows": rows.collect::<Vec<_>>() })
        });
        json!({ "found": self, "efficiencies": self.efficiencies(), "tolerance": tolerance })
    }

    /// Returns the tree of efficiencies of this run, and of those it is compared with: depth, name and the values of runs, as rows.
    fn efficiencies(&self) -> Value {
        let mut runs: Vec<(&str, &Pop)> =
            self.references.iter().map(|(name, pop)| (name.as_str(), pop)).collect();
        if let Some(measured) = self.measured_pop.as_ref().filter(|measured| **measured != self.pop) {
            runs.push(("recorded", measured));
        }
        runs.push(("this run", &self.pop));
        let rows = |trees: Vec<Vec<(usize, &'static str, f64)>>| {
            // The tree of the run with the most nodes of ranks has all rows.
            let longest = trees.iter().max_by_key(|tree| tree.len()).cloned().unwrap_or_default();
            let value = |tree: &Vec<(usize, &'static str, f64)>, name| {
                tree.iter().find(|row| row.1 == name).map(|row| row.2)
            };
            let row = |(depth, name, _)| {
                (depth, name, trees.iter().map(|tree| value(tree, name)).collect::<Vec<_>>())
            };
            longest.into_iter().map(row).collect::<Vec<_>>()
        };
        let mut all = rows(runs.iter().map(|(_, pop)| pop.tree()).collect());
        if runs.len() > 1 {
            all.extend(rows(runs.iter().map(|(_, pop)| pop.scaling_from(runs[0].1).tree()).collect()));
        }
        let runs: Vec<_> = runs.into_iter().map(|(name, pop)| (name, pop.ranks)).collect();
        json!({ "runs": runs, "rows": all })
    }

    /// Returns the gains and the maps of ranks as pictures.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        self.gains().into_iter().chain(self.maps())
    }

    fn gains(&self) -> Option<Figure> {
        let gains = self.problems.iter().filter_map(|problem| Some((problem, problem.gain_s?)));
        let bar = |(problem, gain): (&Problem, f64)| Bar {
            label: problem.name.clone(),
            parts: vec![gain.max(0.0)],
            note: seconds(gain),
        };
        let bars = Bars { axis: "gain", parts: Vec::new(), bars: gains.map(bar).collect() };
        let draw = move |width| bars.draw_with(width, |_, _| RUNS[0]);
        let is_any = self.problems.iter().any(|problem| problem.gain_s.is_some());
        is_any.then(|| Figure::new("gains", "Time that the program would save", draw))
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
}
