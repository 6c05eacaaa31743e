//! Gain of mending a problem: the replay of a hypothesis of its rule.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trace_mmap::{ConvertOptions, LoadOptions};
use trace_tools::transform::{Hypothesis, TransformError};

use super::rules::Rule;
use super::{Diagnosis, DiagnosisError, Place, Problem};
use crate::config::Config;
use crate::what_if::{changed_config, place};

/// Key of a transformation that is restricted to the places of the problem.
const PLACES: &str = "places";
/// Name of all hypotheses: equal ones of several problems are replayed once.
const NAME: &str = "mended";

/// Returns the file of the hypothesis of a rule about places; `None` if the rule has none.
///
/// # Errors
/// If it is not a hypothesis.
pub(super) fn hypothesis(rule: &Rule, places: &[Place]) -> Result<Option<String>, String> {
    if rule.hypothesis.is_empty() && rule.set.is_empty() {
        return Ok(None);
    }
    let transforms = rule.hypothesis.iter().flat_map(|transform| restrict(transform, places));
    let hypothesis = toml::Table::from_iter([
        ("name".to_owned(), toml::Value::String(NAME.to_owned())),
        ("set".to_owned(), toml::Value::Array(rule.set.iter().cloned().map(toml::Value::String).collect())),
        ("transform".to_owned(), toml::Value::Array(transforms.map(toml::Value::Table).collect())),
    ]);
    let list = toml::Value::Array(vec![toml::Value::Table(hypothesis)]);
    let text = toml::Table::from_iter([("hypothesis".to_owned(), list)]).to_string();
    let hypothesis = read(&text).map_err(|error| error.to_string())?;
    changed_config(&Config::default(), &hypothesis).map_err(|error| error.to_string())?;
    Ok(Some(text))
}

fn read(text: &str) -> Result<Hypothesis, TransformError> {
    Ok(Hypothesis::from_text(text, Path::new("hypothesis"))?.remove(0))
}

/// Restricts a transformation to the places of a problem, if it asks for that: one for call sites, and one for regions.
fn restrict(transform: &toml::Table, places: &[Place]) -> Vec<toml::Table> {
    let mut all = transform.clone();
    if all.remove(PLACES) != Some(toml::Value::Boolean(true)) {
        return vec![transform.clone()];
    }
    let is_site = |name: &&String| name.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    let names = places.iter().filter_map(|place| place.site.as_ref());
    let (sites, regions): (Vec<&String>, Vec<&String>) = names.partition(is_site);
    if sites.is_empty() && regions.is_empty() {
        return vec![all];
    }
    let with = |(key, names): (&str, Vec<&String>)| {
        let names = names.into_iter().map(|name| toml::Value::String(name.clone())).collect();
        let mut restricted = all.clone();
        restricted.insert(key.to_owned(), toml::Value::Array(names));
        restricted
    };
    let selected = [("site", sites), ("region", regions)].into_iter().filter(|(_, names)| !names.is_empty());
    selected.map(with).collect()
}

/// Reason why the gain of a hypothesis is not known.
enum NoGain {
    /// It does not fit the program, or with it the program fails.
    Unfit(String),
    /// A temporary file cannot be written.
    Write(String),
}

impl From<TransformError> for NoGain {
    fn from(error: TransformError) -> Self {
        match error {
            TransformError::Write(why) => Self::Write(why.to_string()),
            why => Self::Unfit(why.to_string()),
        }
    }
}

impl Diagnosis {
    /// Finds the gain of each problem: replays the trace as the hypothesis of its rule changes it, or the configuration. A hypothesis that
    /// does not fit the program, or with which it fails, has no gain. Problems are then in the order of their gains.
    ///
    /// # Errors
    /// If the configuration is invalid, the trace cannot be loaded, or no temporary file be written.
    pub fn simulate_gains(&mut self, config: &Config) -> Result<(), DiagnosisError> {
        let job = config.clone().resolve()?;
        let load = job.load_options();
        let trace = Arc::new(trace_tools::load(&job.trace, &load)?);
        let directory = tempfile::tempdir().map_err(|why| DiagnosisError::Write(why.to_string()))?;
        let options = ConvertOptions { load: LoadOptions { ranks: None, ..load }, ..Default::default() };
        // Several problems may have one hypothesis.
        let mut known: BTreeMap<String, Option<f64>> = BTreeMap::new();
        for problem in &mut self.problems {
            let Some(text) = &problem.hypothesis else { continue };
            if let Some(gain) = known.get(text) {
                problem.gain_s = *gain;
                continue;
            }
            // Each transformed trace may be as large as the program.
            let path = directory.path().join("mended.pdt");
            let time = read(text).map_err(NoGain::from).and_then(|hypothesis| {
                let config =
                    changed_config(config, &hypothesis).map_err(|why| NoGain::Unfit(why.to_string()))?;
                let job = config.resolve().map_err(|why| NoGain::Unfit(why.to_string()))?;
                let mut job = job.without_outputs();
                if hypothesis.changes_program() {
                    hypothesis.write(&trace, &job.trace, &path, &options)?;
                    job.trace = path;
                }
                let placements: Vec<_> = hypothesis.placements().collect();
                if !placements.is_empty() {
                    let (hosts, _) =
                        place(&job, &placements).map_err(|why| NoGain::Unfit(why.to_string()))?;
                    let path = directory.path().join("hosts.txt");
                    std::fs::write(&path, hosts.join("\n") + "\n")
                        .map_err(|why| NoGain::Write(why.to_string()))?;
                    job.hosts = Some(path);
                }
                let report = job.replay().map_err(|why| NoGain::Unfit(why.to_string()))?;
                Ok(report.simulated_time_s)
            });
            problem.gain_s = match time {
                Ok(time) => Some(self.simulated_time_s - time),
                Err(NoGain::Write(why)) => return Err(DiagnosisError::Write(why)),
                Err(NoGain::Unfit(why)) => {
                    tracing::info!("{}: no gain is known: {why}", problem.name);
                    None
                }
            };
            known.insert(text.clone(), problem.gain_s);
        }
        let gain = |problem: &Problem| problem.gain_s.unwrap_or(f64::NEG_INFINITY);
        // The sort is stable: problems without a gain keep the order of their shares.
        self.problems.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
        Ok(())
    }
}
