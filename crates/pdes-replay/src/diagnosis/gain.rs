//! Gain of mending a problem: the replay of a hypothesis of its rule.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use answers::place;
use mpi_model::ActionKind;
use trace_mmap::{ConvertOptions, LoadOptions};
use trace_tools::transform::{Hypothesis, TransformError};

use super::rules::Rule;
use super::{Diagnosis, DiagnosisError, Place, PlacePair, Problem, unique};
use crate::config::Config;
use crate::report::Report;
use crate::what_if::changed_config;

/// Key of a transformation that is restricted to places.
const PLACES: &str = "places";
/// Name of all hypotheses: equal ones of several problems are replayed once.
const NAME: &str = "mended";

/// Replay that tells the gain of a problem.
#[derive(Clone, Debug)]
pub(super) enum Mending {
    /// The file of a hypothesis.
    Hypothesis(String),
    /// Nothing, for a reason.
    None(String),
}

impl Default for Mending {
    fn default() -> Self {
        Self::None("the diagnosis has been read from a file".to_owned())
    }
}

/// Places to which the transformations of a rule are restricted.
#[derive(Clone, Copy, Default)]
pub(super) struct MendedPlaces<'a> {
    /// Those of the problem.
    pub(super) own: &'a [Place],
    /// Those of what delays ranks there.
    pub(super) pairs: &'a [PlacePair],
    /// Those at which some ranks work longer than others, of the whole run.
    pub(super) work: &'a [Option<String>],
}

/// How a transformation is restricted.
#[derive(Clone, Copy)]
enum Restriction {
    /// To the sites of the problem, all at once.
    Together,
    /// To each site of the problem.
    Each,
    /// To each site of a computation that delays ranks.
    Causes,
    /// To each site at which some ranks work longer than others.
    Work,
}

impl Restriction {
    fn read(value: &toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Boolean(true) => Ok(Self::Together),
            toml::Value::String(text) if text == "each" => Ok(Self::Each),
            toml::Value::String(text) if text == "causes" => Ok(Self::Causes),
            toml::Value::String(text) if text == "work" => Ok(Self::Work),
            found => Err(format!("{PLACES} is {found}, expected true, \"each\", \"causes\" or \"work\"")),
        }
    }
}

/// Returns the hypothesis of a rule about places, or why there is none.
///
/// # Errors
/// If it is not a hypothesis.
pub(super) fn mending(rule: &Rule, places: MendedPlaces) -> Result<Mending, String> {
    if rule.hypothesis.is_empty() && rule.set.is_empty() {
        return Ok(Mending::None("the rule has no hypothesis".to_owned()));
    }
    let mut transforms = Vec::new();
    for transform in &rule.hypothesis {
        match restrict(transform, places)? {
            Ok(restricted) => transforms.extend(restricted.into_iter().map(toml::Value::Table)),
            Err(why) => return Ok(Mending::None(why)),
        }
    }
    let hypothesis = toml::Table::from_iter([
        ("name".to_owned(), toml::Value::String(NAME.to_owned())),
        ("set".to_owned(), toml::Value::Array(rule.set.iter().cloned().map(toml::Value::String).collect())),
        ("transform".to_owned(), toml::Value::Array(transforms)),
    ]);
    let list = toml::Value::Array(vec![toml::Value::Table(hypothesis)]);
    let text = toml::Table::from_iter([("hypothesis".to_owned(), list)]).to_string();
    let hypothesis = read(&text).map_err(|error| error.to_string())?;
    changed_config(&Config::default(), &hypothesis).map_err(|error| error.to_string())?;
    Ok(Mending::Hypothesis(text))
}

fn read(text: &str) -> Result<Hypothesis, TransformError> {
    Ok(Hypothesis::from_text(text, Path::new("hypothesis"))?.remove(0))
}

/// Restricts a transformation to places, if it asks for that: those of call sites apart from those of regions. Returns the reason if there
/// is no such place.
fn restrict(
    transform: &toml::Table,
    places: MendedPlaces,
) -> Result<Result<Vec<toml::Table>, String>, String> {
    let mut all = transform.clone();
    let Some(restriction) = all.remove(PLACES) else { return Ok(Ok(vec![all])) };
    let restriction = Restriction::read(&restriction)?;
    let sites: Vec<&Option<String>> = match restriction {
        Restriction::Together | Restriction::Each => places.own.iter().map(|place| &place.site).collect(),
        Restriction::Causes => {
            let work = ActionKind::Compute.name();
            let causes = places.pairs.iter().filter(|pair| pair.other_call.as_deref() == Some(work));
            causes.map(|pair| &pair.other_site).collect()
        }
        Restriction::Work => places.work.iter().collect(),
    };
    if sites.is_empty() && matches!(restriction, Restriction::Causes) && !places.pairs.is_empty() {
        return Ok(Err(
            "the ranks that are late are not late by a computation that could be balanced".to_owned()
        ));
    }
    let names = unique(sites.into_iter().flatten());
    if names.is_empty() {
        return Ok(Ok(vec![all]));
    }
    let is_site = |name: &String| name.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    let (sites, regions): (Vec<String>, Vec<String>) = names.into_iter().partition(is_site);
    let groups = [("site", sites), ("region", regions)].into_iter().flat_map(|(key, names)| {
        let groups = match restriction {
            Restriction::Together => vec![names],
            _ => names.into_iter().map(|name| vec![name]).collect(),
        };
        groups.into_iter().filter(|names| !names.is_empty()).map(move |names| (key, names))
    });
    let with = |(key, names): (&str, Vec<String>)| {
        let mut restricted = all.clone();
        let names = names.into_iter().map(toml::Value::String).collect();
        restricted.insert(key.to_owned(), toml::Value::Array(names));
        restricted
    };
    Ok(Ok(groups.map(with).collect()))
}

/// Returns a hypothesis in a line: its transformations with their keys, and the values that it sets.
fn in_a_line(file: &str) -> Option<String> {
    let mut table: toml::Table = file.parse().ok()?;
    let hypothesis = table.get_mut("hypothesis")?.get_mut(0)?.as_table_mut()?;
    let transform = |transform: &toml::Value| {
        let table = transform.as_table()?;
        let keys = table.iter().filter(|(key, _)| *key != "kind");
        let keys: Vec<String> = keys.map(|(key, value)| format!("{key} = {value}")).collect();
        let kind = table.get("kind")?.as_str()?;
        Some(if keys.is_empty() { kind.to_owned() } else { format!("{kind} ({})", keys.join(", ")) })
    };
    let list = |key| hypothesis.get(key).and_then(toml::Value::as_array).into_iter().flatten();
    let set = list("set").filter_map(|value| Some(format!("set {}", value.as_str()?)));
    Some(list("transform").filter_map(transform).chain(set).collect::<Vec<_>>().join(", then "))
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
            TransformError::Refused { kind, refusal, .. } => Self::Unfit(format!("{kind}: {refusal}")),
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
        let spec = config.clone().resolve()?;
        let load = spec.load_options();
        let trace = Arc::new(trace_tools::load(&spec.trace, &load)?);
        let directory = tempfile::tempdir().map_err(|why| DiagnosisError::Write(why.to_string()))?;
        let options = ConvertOptions { load: LoadOptions { ranks: None, ..load }, ..Default::default() };
        // Several problems may have one hypothesis.
        let mut known: BTreeMap<String, Result<f64, String>> = BTreeMap::new();
        for problem in &mut self.problems {
            let text = match &problem.mending {
                Mending::Hypothesis(text) => text.clone(),
                Mending::None(why) => {
                    problem.no_gain = Some(why.clone());
                    continue;
                }
            };
            problem.hypothesis = in_a_line(&text);
            if let Some(gain) = known.get(&text) {
                problem.set_gain(gain.clone());
                continue;
            }
            // Each transformed trace may be as large as the program.
            let path = directory.path().join("mended.pdt");
            let time = read(&text).map_err(NoGain::from).and_then(|hypothesis| {
                let config =
                    changed_config(config, &hypothesis).map_err(|why| NoGain::Unfit(why.to_string()))?;
                let spec = config.resolve().map_err(|why| NoGain::Unfit(why.to_string()))?;
                let mut spec = spec.without_outputs();
                if hypothesis.changes_program() {
                    hypothesis.write(&trace, &spec.trace, &path, &options)?;
                    spec.trace = path.into();
                }
                let placements: Vec<_> = hypothesis.placements().collect();
                if !placements.is_empty() {
                    let (hosts, _) =
                        place(&spec, &placements).map_err(|why| NoGain::Unfit(why.to_string()))?;
                    let path = directory.path().join("hosts.txt");
                    std::fs::write(&path, hosts.join("\n") + "\n")
                        .map_err(|why| NoGain::Write(why.to_string()))?;
                    spec.hosts = Some(path);
                }
                let report = Report::of(&spec).map_err(|why| NoGain::Unfit(why.to_string()))?;
                Ok(report.simulated_time_s)
            });
            let gain = match time {
                Ok(time) => Ok(self.simulated_time_s - time),
                Err(NoGain::Write(why)) => return Err(DiagnosisError::Write(why)),
                Err(NoGain::Unfit(why)) => Err(why),
            };
            problem.set_gain(gain.clone());
            known.insert(text, gain);
        }
        let gain = |problem: &Problem| problem.gain_s.unwrap_or(f64::NEG_INFINITY);
        // The sort is stable: problems without a gain keep the order of their shares.
        self.problems.sort_by(|one, other| gain(other).total_cmp(&gain(one)));
        Ok(())
    }
}

impl Problem {
    fn set_gain(&mut self, gain: Result<f64, String>) {
        match gain {
            Ok(gain) => self.gain_s = Some(gain),
            Err(why) => self.no_gain = Some(why),
        }
    }
}
