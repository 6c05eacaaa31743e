//! The configuration of a run: a TOML file, with overrides from the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netmodel::maxmin::Scope;
use netmodel::{FactorTable, FatPipes, PlatformDescription, Preset, RoutingRule};
use serde::Deserialize;

use crate::job::Job;

mod resolve;

/// A configuration that is being put together.
///
/// A file comes first, overrides follow; [`Config::resolve`] checks the whole. Paths in a file are relative to the
/// file, paths in overrides to the working directory.
#[derive(Clone, Debug, Default)]
pub struct Config {
    table: toml::Table,
}

/// Why a configuration cannot be used. All of these are misuse, not failures of a run.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not TOML, or holds an unknown key or a value of the wrong type.
    #[error("the configuration {}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        message: String,
    },
    /// An override is not `section.key=value`.
    #[error("found --set {0:?}, expected section.key=value, such as network.preset=lv08")]
    Override(String),
    /// The configuration with its overrides holds an unknown key or a value of the wrong type.
    #[error("the configuration with its overrides: {0}")]
    Merged(String),
    /// A value is missing, out of range, or not available.
    #[error("[{section}] {key}: {message}")]
    Value {
        /// The section.
        section: &'static str,
        /// The key.
        key: &'static str,
        /// What was found, what was expected, what to do.
        message: String,
    },
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Where the file cannot be read, is not TOML, or has a key or a value that no configuration has.
    pub fn from_path(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let file_error = |error: toml::de::Error| ConfigError::File {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        };
        // Read once for the errors with lines; the overrides go into the table.
        let _: Sections = toml::from_str(&text).map_err(file_error)?;
        let mut table: toml::Table = toml::from_str(&text).map_err(file_error)?;
        anchor(&mut table, path.parent().unwrap_or(Path::new("")));
        Ok(Self { table })
    }

    /// Applies an override `section.key=value`. A value that is not TOML is a string.
    ///
    /// # Errors
    /// Where the text has another form.
    pub fn set(&mut self, assignment: &str) -> Result<(), ConfigError> {
        let bad = || ConfigError::Override(assignment.to_owned());
        let (name, value) = assignment.split_once('=').ok_or_else(bad)?;
        let (section, key) = name.trim().split_once('.').ok_or_else(bad)?;
        if section.is_empty() || key.is_empty() {
            return Err(bad());
        }
        let value = value.trim();
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"));
        let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
        self.insert(section, key, parsed.unwrap_or_else(|| toml::Value::String(value.to_owned())));
        Ok(())
    }

    /// Sets a path, as a flag of the command line does.
    pub fn set_path(&mut self, section: &str, key: &str, path: &Path) {
        self.insert(section, key, toml::Value::String(path.to_string_lossy().into_owned()));
    }

    /// Sets a value, as a flag of the command line does.
    pub fn insert(&mut self, section: &str, key: &str, value: toml::Value) {
        // A platform is either a file or inline: what comes later replaces what came before.
        if let ("platform", Some(other)) = (section, OTHER_PLATFORM.iter().find(|(this, _)| *this == key))
            && let Some(toml::Value::Table(platform)) = self.table.get_mut(section)
        {
            platform.remove(other.1);
        }
        let entry =
            self.table.entry(section.to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let toml::Value::Table(entry) = entry {
            entry.insert(key.to_owned(), value);
        }
    }

    /// Sets something in the place of a section.
    pub(crate) fn insert_section(&mut self, section: &str, value: toml::Value) {
        self.table.insert(section.to_owned(), value);
    }

    /// Removes a section.
    pub(crate) fn remove_section(&mut self, section: &str) {
        self.table.remove(section);
    }

    /// Returns the text of all that can change the result.
    pub(crate) fn to_text(&self) -> String {
        let mut table = self.table.clone();
        NO_MATTER.iter().for_each(|section| drop(table.remove(*section)));
        table.to_string()
    }

    /// Returns the files that decide the result.
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let inputs = PATHS.iter().filter(|(section, _)| !NO_MATTER.contains(section));
        inputs.filter_map(|(section, key)| self.text(section, key)).map(PathBuf::from).collect()
    }

    /// Returns a section as it stands, which nothing has checked yet.
    pub fn section(&self, name: &str) -> Option<&toml::Table> {
        self.table.get(name)?.as_table()
    }

    /// Returns a string as it stands, which nothing has checked yet.
    pub fn text(&self, section: &str, key: &str) -> Option<&str> {
        self.section(section)?.get(key)?.as_str()
    }

    /// Checks that there are no unknown keys or values of wrong types.
    ///
    /// # Errors
    /// Where there are.
    pub fn check_keys(&self) -> Result<(), ConfigError> {
        self.clone().sections().map(|_| ())
    }

    fn sections(self) -> Result<Sections, ConfigError> {
        let error = |error: toml::de::Error| ConfigError::Merged(error.to_string().trim_end().to_owned());
        self.table.try_into().map_err(error)
    }

    /// Checks the configuration and fills in what it leaves open.
    ///
    /// # Errors
    /// Where a key is unknown, or a value is missing, out of range, or not available in this version.
    pub fn resolve(self) -> Result<Job, ConfigError> {
        let sections = self.sections()?;
        resolve::job(sections)
    }
}

/// Makes the paths of a configuration relative to the working directory that are relative to a directory.
pub(crate) fn anchor(table: &mut toml::Table, directory: &Path) {
    for (section, key) in PATHS {
        if let Some(toml::Value::String(value)) =
            table.get_mut(section).and_then(|section| section.get_mut(key))
            && !(section == "parallel" && PARTITIONS.contains(&value.as_str()))
            && !(section == "network" && value == "auto")
        {
            *value = directory.join(&value).to_string_lossy().into_owned();
        }
    }
}

/// Sections that cannot change a result.
const NO_MATTER: [&str; 5] = ["engine", "parallel", "analysis", "checkpoint", "output"];

/// The keys whose values are paths.
const PATHS: [(&str, &str); 8] = [
    ("trace", "path"),
    ("platform", "file"),
    ("platform", "hosts"),
    ("network", "regions"),
    ("parallel", "partition"),
    ("checkpoint", "directory"),
    ("output", "report"),
    ("output", "profile"),
];

/// Partitions that are not files.
const PARTITIONS: [&str; 2] = ["blocks", "auto"];

/// Keys of the section `platform` that exclude each other.
const OTHER_PLATFORM: [(&str, &str); 2] = [("file", "topology"), ("topology", "file")];

/// The sections of a configuration as they stand in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sections {
    trace: TraceSection,
    platform: PlatformSection,
    network: NetworkSection,
    mpi: MpiSection,
    engine: EngineSection,
    parallel: ParallelSection,
    analysis: AnalysisSection,
    checkpoint: CheckpointSection,
    output: OutputSection,
    /// Parameters of the model for GOAL schedules, which are not replayed as traces.
    loggops: Option<toml::Table>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TraceSection {
    path: Option<PathBuf>,
    ranks: Option<u32>,
    memory_budget_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PlatformSection {
    file: Option<PathBuf>,
    topology: Option<toml::Table>,
    host: Option<toml::Value>,
    link: Option<toml::Value>,
    route: Option<toml::Value>,
    hosts: Option<PathBuf>,
    routing: Option<RoutingRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NetworkSection {
    model: Option<String>,
    preset: Option<Preset>,
    epoch_s: Option<toml::Value>,
    regions: Option<toml::Value>,
    latency_factor: Option<FactorTable>,
    bandwidth_factor: Option<FactorTable>,
    weight_s: Option<f64>,
    tcp_gamma: Option<f64>,
    cross_traffic: Option<bool>,
    fat_pipes: Option<FatPipes>,
    solve_scope: Option<Scope>,
    precision_s: Option<f64>,
    loopback_bandwidth: Option<f64>,
    loopback_latency_s: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MpiSection {
    collectives: Option<String>,
    barrier: Option<String>,
    bcast: Option<String>,
    reduce: Option<String>,
    allreduce: Option<String>,
    gather: Option<String>,
    scatter: Option<String>,
    allgather: Option<String>,
    allgatherv: Option<String>,
    alltoall: Option<String>,
    alltoallv: Option<String>,
    reduce_scatter: Option<String>,
    table: BTreeMap<String, Vec<TableRow>>,
    envelope_bytes: Option<u64>,
    detached_below_bytes: Option<u64>,
    eager_below_bytes: Option<u64>,
    send_overhead: Option<String>,
    isend_overhead: Option<String>,
    receive_overhead: Option<String>,
    test_s: Option<f64>,
    test_grows: Option<bool>,
    iprobe_s: Option<f64>,
    outcomes: Option<String>,
    communicators_cost: Option<bool>,
}

/// A row of a decision table of the user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    ranks_below: Option<u32>,
    bytes_below: Option<u64>,
    algorithm: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EngineSection {
    threads: Option<usize>,
    run_ahead_s: Option<toml::Value>,
    fast_forward: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ParallelSection {
    partition: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AnalysisSection {
    waits: Option<bool>,
    histograms: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CheckpointSection {
    directory: Option<PathBuf>,
    every: Option<String>,
    resume: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OutputSection {
    report: Option<PathBuf>,
    profile: Option<PathBuf>,
}

impl PlatformSection {
    /// The platform that the section describes itself, if it does.
    fn inline(&self) -> Result<Option<PlatformDescription>, toml::de::Error> {
        let Some(topology) = &self.topology else { return Ok(None) };
        let mut table = toml::Table::new();
        table.insert("topology".to_owned(), toml::Value::Table(topology.clone()));
        for (key, value) in [("host", &self.host), ("link", &self.link), ("route", &self.route)] {
            table.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        table.try_into().map(Some)
    }
}
