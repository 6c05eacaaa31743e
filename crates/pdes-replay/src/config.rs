//! Configuration of a run: a TOML file with overrides from the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use machine::noise::NoiseSection;
use replay::file_kind::{self, FileKind};
use replay::names::{self, FileMismatch, Mismatch, Origin};
use replay::{LogGopsSection, MODELS, Model, PlatformSource, RunSpec};
use serde::de::DeserializeOwned;

use crate::generate;
use netmodel::quantity::Speed;
pub use online_section::{OnlineClock, OnlineComputation, OnlineSection};
use paths::{PATH_KEYS, PathKey, PathUsage, texts};
pub(crate) use paths::{resolve_path, resolve_paths};
use resolve::Generate;
use sections::Sections;

mod offload;
mod online_section;
mod paths;
mod registries;
mod resolve;
pub(crate) mod schema;
mod sections;
mod value_schemas;

pub use resolve::available_threads;

/// A configuration under construction.
///
/// A file comes first, overrides follow; [`Config::resolve`] checks the whole. Paths in a file are relative to the
/// file, paths in overrides to the working directory.
#[derive(Clone, Debug, Default)]
pub struct Config {
    table: toml::Table,
    /// The file and its text, to locate errors in it.
    file: Option<(PathBuf, String)>,
    /// Origins of overrides, by section and key.
    overrides: BTreeMap<(String, String), Origin>,
    /// The platform file that is in the table, because parts of it are changed.
    platform_base: Option<PathBuf>,
}

/// The reason why a configuration cannot be used. All of these are misuse, not failures of a run.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A key or a choice is unknown, or a value has the wrong type or is out of range.
    #[error("{origin}: {mismatch}")]
    Mismatch {
        /// Position of the name or value.
        origin: Origin,
        /// The name or value, and what was probably meant or expected.
        mismatch: Box<Mismatch>,
    },
    /// The file is for another command.
    #[error("{}: {found}", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// Kind of the file.
        found: FileKind,
    },
    /// The file is not TOML, or contains an invalid value.
    #[error("the configuration {}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error message, with the line.
        message: String,
    },
    /// An override is not `section.key=value`.
    #[error("found --set {0:?}, expected section.key=value, such as network.preset=lv08")]
    Override(String),
    /// A value of a flag, of a setting, or of unknown origin is invalid.
    #[error("{origin}: {message}")]
    Entry {
        /// Origin of the value.
        origin: Origin,
        /// Error message.
        message: String,
    },
    /// A value is missing, out of range, or not available.
    #[error("[{section}] {key}: {message}")]
    Value {
        /// The section.
        section: &'static str,
        /// The key.
        key: &'static str,
        /// The value found, the values expected, and the remedy.
        message: String,
    },
    /// A section does not belong to the run.
    #[error("[{section}]: {message}")]
    Section {
        /// The section.
        section: String,
        /// Error message.
        message: String,
    },
    /// An error about an entry of known origin.
    #[error("{origin}: {error}")]
    At {
        /// Origin of the entry.
        origin: Origin,
        /// Cause.
        error: Box<ConfigError>,
    },
}

impl From<FileMismatch> for ConfigError {
    fn from(FileMismatch { origin, mismatch }: FileMismatch) -> Self {
        Self::Mismatch { origin, mismatch }
    }
}

impl ConfigError {
    /// Returns whether a file cannot be read: a failure of the run rather than misuse.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not TOML, is for another command, or contains an unknown key or value.
    pub fn from_path(path: &Path) -> Result<Self, ConfigError> {
        let other = || {
            let found = file_kind::recognize(path).filter(|kind| *kind != file_kind::CONFIGURATION)?;
            Some(ConfigError::OtherFile { path: path.to_owned(), found })
        };
        let read = || match path == Path::new("-") {
            true => std::io::read_to_string(std::io::stdin()),
            false => std::fs::read_to_string(path),
        };
        let text = read()
            .map_err(|source| other().unwrap_or(ConfigError::Read { path: path.to_owned(), source }))?;
        let file_error = |error: toml::de::Error| {
            let message = error.to_string().trim_end().to_owned();
            other().unwrap_or(ConfigError::File { path: path.to_owned(), message })
        };
        let mut table: toml::Table = toml::from_str(&text).map_err(file_error)?;
        refuse_other_files(path, &table)?;
        names::check_file(path, &text, &table, &schema::CONFIG_SCHEMA)?;
        // Parse the text for errors with line numbers; the overrides are applied to the table.
        let _: Sections = toml::from_str(&text).map_err(file_error)?;
        resolve_paths(&mut table, path.parent().unwrap_or(Path::new("")));
        Ok(Self { table, file: Some((path.to_owned(), text)), ..Self::default() })
    }

    /// Reads the configuration that a report carries; its paths are relative to the working directory of the run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or carries no configuration.
    pub fn from_report(path: &Path) -> Result<Self, ConfigError> {
        #[derive(serde::Deserialize)]
        struct Carrier {
            configuration: Option<toml::Table>,
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let error = |message: String| ConfigError::File { path: path.to_owned(), message };
        let carrier: Carrier = serde_json::from_str(&text).map_err(|found| error(found.to_string()))?;
        let table = carrier.configuration.ok_or_else(|| {
            error(
                "this report carries no configuration: write it anew (pdes-replay run CONFIG --report FILE)"
                    .to_owned(),
            )
        })?;
        let config = Self { table, ..Self::default() };
        config.check_keys()?;
        Ok(config)
    }

    /// Applies an override `section.key=value`, or `section.key.part=value` of a key whose value is a table; a part of `platform.topology`
    /// changes the platform file, too, if that is in TOML. A value that is not TOML is a string.
    ///
    /// # Errors
    /// Returns an error if the text has another form, names an unknown key or choice, or is about a platform file that cannot be changed.
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
        let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
        let origin = Origin::Setting(assignment.to_owned());
        let Some((key, parts)) = key.split_once('.') else {
            return self.set_checked(section, key, value, origin);
        };
        let parts: Vec<&str> = parts.split('.').collect();
        let nested = parts
            .iter()
            .rev()
            .fold(value, |value, part| toml::Table::from_iter([((*part).to_owned(), value)]).into());
        check_names(section, key, &nested).map_err(|error| error.at(&origin))?;
        self.insert_parts(section, key, nested).map_err(|error| error.at(&origin))?;
        self.overrides.insert((section.to_owned(), key.to_owned()), origin);
        Ok(())
    }

    /// Applies a flag of the command line; errors about its value name the flag.
    ///
    /// # Errors
    /// Returns an error if the value has the wrong type, is an unknown choice, or is another one than that of a setting.
    pub fn set_flag(
        &mut self,
        flag: &'static str,
        section: &str,
        key: &str,
        value: toml::Value,
    ) -> Result<(), ConfigError> {
        if let Some(setting) = self.contradiction(section, key, &value) {
            let shown = value.as_str().map_or(value.to_string(), str::to_owned);
            let message = format!("found {shown}, but --set {setting} says otherwise: leave one of them out");
            return Err(ConfigError::Entry { origin: Origin::Flag(flag), message });
        }
        self.set_checked(section, key, value, Origin::Flag(flag))
    }

    /// Returns the setting that gives another value to a key, or a value to a key that excludes it.
    fn contradiction(&self, section: &str, key: &str, value: &toml::Value) -> Option<&str> {
        let setting = |key: &str| match self.overrides.get(&(section.to_owned(), key.to_owned()))? {
            Origin::Setting(assignment) => Some(assignment.as_str()),
            _ => None,
        };
        let same =
            setting(key).filter(|_| self.section(section).and_then(|keys| keys.get(key)) != Some(value));
        let exclusive =
            EXCLUSIVE_PLATFORM_KEYS.iter().filter(|(this, _)| (section, key) == ("platform", *this));
        same.or_else(|| exclusive.into_iter().find_map(|(_, other)| setting(other)))
    }

    fn set_checked(
        &mut self,
        section: &str,
        key: &str,
        value: toml::Value,
        origin: Origin,
    ) -> Result<(), ConfigError> {
        // Generating the schema takes as long as a small replay. It is only needed to explain an error, and to find one in an inline
        // platform, which is read later.
        let is_inline = section == "platform"
            && matches!(key, "topology" | "host" | "link" | "route" | "storage" | "file_system");
        if is_inline || read_entry(section, key, &value).is_err() {
            check_entry(section, key, &value).map_err(|error| error.at(&origin))?;
        }
        self.insert(section, key, value);
        self.overrides.insert((section.to_owned(), key.to_owned()), origin);
        Ok(())
    }

    /// Sets a path, like a flag of the command line.
    pub fn set_path(&mut self, section: &str, key: &str, path: &Path) {
        self.insert(section, key, toml::Value::String(path.to_string_lossy().into_owned()));
    }

    /// Sets a value, like a flag of the command line.
    pub fn insert(&mut self, section: &str, key: &str, value: toml::Value) {
        // A platform is either a file or inline, ranks are placed by a file or a policy: the later setting replaces the earlier one.
        if let ("platform", Some(other)) =
            (section, EXCLUSIVE_PLATFORM_KEYS.iter().find(|(this, _)| *this == key))
            && let Some(toml::Value::Table(platform)) = self.table.get_mut(section)
        {
            platform.remove(other.1);
            if matches!(key, "file" | "topology") {
                self.platform_base = None;
            }
        }
        self.overrides.remove(&(section.to_owned(), key.to_owned()));
        let entry =
            self.table.entry(section.to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let toml::Value::Table(entry) = entry {
            entry.insert(key.to_owned(), value);
        }
    }

    /// Sets parts of a key whose value is a table, and leaves its other parts as they are.
    ///
    /// # Errors
    /// Returns an error if the parts are those of a platform file that is not in TOML, or cannot be read.
    pub(crate) fn insert_parts(
        &mut self,
        section: &str,
        key: &str,
        parts: toml::Value,
    ) -> Result<(), ConfigError> {
        if section == "platform" {
            self.inline_platform()?;
        }
        let keys = self.table.entry(section.to_owned()).or_insert_with(|| toml::Table::new().into());
        let toml::Value::Table(keys) = keys else { return Ok(()) };
        merge(keys.entry(key.to_owned()).or_insert_with(|| toml::Table::new().into()), parts);
        Ok(())
    }

    /// Takes the content of the platform file into the configuration, if there is a file.
    fn inline_platform(&mut self) -> Result<(), ConfigError> {
        let Some(path) = self.text("platform", "file").map(PathBuf::from) else { return Ok(()) };
        let error = |message: String| ConfigError::Value { section: "platform", key: "topology", message };
        if netmodel::Platform::is_xml_file(&path) {
            return Err(error(format!(
                "{} is in SimGrid's XML, whose parts have no keys; network.latency_scale and network.bandwidth_scale change all links",
                path.display()
            )));
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|source| error(format!("{}: {source}", path.display())))?;
        let content: toml::Table =
            toml::from_str(&text).map_err(|source| error(format!("{}: {source}", path.display())))?;
        let table: toml::Value = content.into();
        self.insert("platform", "topology", toml::Table::new().into());
        if let Some(section) = self.table.get_mut("platform") {
            merge(section, table);
        }
        self.platform_base = Some(path);
        Ok(())
    }

    /// Replaces a section, or a list of sections.
    pub fn insert_section(&mut self, section: &str, value: toml::Value) {
        self.table.insert(section.to_owned(), value);
    }

    /// Removes a section.
    pub(crate) fn remove_section(&mut self, section: &str) {
        self.table.remove(section);
    }

    /// Removes the sections of network models other than that of the configuration.
    pub(crate) fn remove_other_models(&mut self) {
        let model = self.text("network", "model").and_then(Model::find).unwrap_or(&MODELS[0]);
        Model::sections()
            .filter(|(name, _)| *name != model.key)
            .for_each(|(name, _)| self.remove_section(name));
    }

    /// Returns the sections that can change the result.
    pub fn relevant(&self) -> toml::Table {
        let mut table = self.table.clone();
        IRRELEVANT_SECTIONS.iter().for_each(|section| drop(table.remove(*section)));
        table
    }

    /// Returns the text of all settings that can change the result.
    pub(crate) fn relevant_text(&self) -> String {
        self.relevant().to_string()
    }

    /// Returns the paths of the input files, on which the result depends.
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let is_relevant = |key: &&PathKey| !IRRELEVANT_SECTIONS.contains(&key.section);
        let inputs = PATH_KEYS.iter().filter(|key| key.usage == PathUsage::Read).filter(is_relevant);
        inputs.flat_map(|key| self.texts(key)).map(PathBuf::from).collect()
    }

    /// Returns all files that a run reads, each with its role, unchecked: the configuration itself, and those that it names.
    pub fn input_files(&self) -> Vec<(&'static str, PathBuf)> {
        let own = self.file.iter().map(|(path, _)| ("configuration", path.clone()));
        own.chain(self.files(PathUsage::Read)).collect()
    }

    /// Returns all files that a run writes, each with its role, unchecked.
    pub fn output_files(&self) -> Vec<(&'static str, PathBuf)> {
        self.files(PathUsage::Written).collect()
    }

    fn files(&self, usage: PathUsage) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let keys = PATH_KEYS.iter().filter(move |key| key.usage == usage);
        keys.flat_map(|key| self.texts(key).map(|path| (key.role, PathBuf::from(path))))
    }

    /// Returns the values of a key, of which a list of tables has several.
    fn texts(&self, key: &PathKey) -> impl Iterator<Item = &str> {
        let section = self.table.get(key.section);
        let lists = section.and_then(toml::Value::as_array).into_iter().flatten();
        let key = key.key;
        section.into_iter().chain(lists).filter_map(move |table| table.as_table()?.get(key)).flat_map(texts)
    }

    /// Returns whether there is a section, or a list of sections, of a name.
    pub fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Removes a section, or a list of sections.
    pub fn remove(&mut self, name: &str) {
        self.table.remove(name);
    }

    /// Returns a section, unchecked.
    pub fn section(&self, name: &str) -> Option<&toml::Table> {
        self.table.get(name)?.as_table()
    }

    /// Returns a string value, unchecked.
    pub fn text(&self, section: &str, key: &str) -> Option<&str> {
        self.section(section)?.get(key)?.as_str()
    }

    /// Checks that there are no unknown keys or values of wrong types.
    ///
    /// # Errors
    /// Returns an error if there are any.
    pub fn check_keys(&self) -> Result<(), ConfigError> {
        self.sections().map(drop)
    }

    /// Returns the section for GOAL schedules.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, or a value has the wrong type.
    pub fn loggops(&self) -> Result<LogGopsSection, ConfigError> {
        self.read("loggops")
    }

    /// Returns the section about noise, if there is one.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, or a value has the wrong type.
    pub fn noise(&self) -> Result<Option<NoiseSection>, ConfigError> {
        self.section(NoiseSection::NAME).map(|_| self.read(NoiseSection::NAME)).transpose()
    }

    /// Returns the section for programs that run online.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, or a value has the wrong type.
    pub fn online(&self) -> Result<OnlineSection, ConfigError> {
        self.read("online")
    }

    /// Returns the speed of this machine, on which a program runs online [flop/s]; `None` if nothing tells it.
    ///
    /// # Errors
    /// Returns an error if a key of the sections is unknown, or a value has the wrong type or is out of range.
    pub fn online_speed(&self) -> Result<Option<f64>, ConfigError> {
        let trace: sections::TraceSection = self.read("trace")?;
        let speed = self.online()?.speed().map_err(|error| self.locate(error))?;
        Ok(speed.or(trace.speed.map(|Speed(speed)| speed)))
    }

    /// Returns the number of threads.
    ///
    /// # Errors
    /// Returns an error if a key of the section is unknown, or a value has the wrong type or is out of range.
    pub fn threads(&self) -> Result<usize, ConfigError> {
        resolve::threads(&self.read("engine")?).map_err(|error| self.locate(error))
    }

    fn read<T: DeserializeOwned>(&self, section: &str) -> Result<T, ConfigError> {
        let table = self.section(section).cloned().unwrap_or_default();
        table.try_into().map_err(|error: toml::de::Error| ConfigError::Entry {
            origin: Origin::Unknown,
            message: format!("[{section}] {}", error.message()),
        })
    }

    fn sections(&self) -> Result<Sections, ConfigError> {
        // Generating the schema takes as long as a small replay; it is only needed to explain an error.
        self.table.clone().try_into().map_err(|error: toml::de::Error| {
            let origin = Origin::Unknown;
            match names::check(&self.table, &schema::CONFIG_SCHEMA) {
                Err(mismatch) => ConfigError::Mismatch { origin, mismatch },
                Ok(()) => ConfigError::Entry { origin, message: error.to_string().trim_end().to_owned() },
            }
        })
    }

    /// Checks the configuration and fills in defaults.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, or a value is missing, out of range, or not available in this version.
    pub fn resolve(self) -> Result<RunSpec, ConfigError> {
        self.resolve_with(generate::generate)
    }

    /// Checks the configuration as [`resolve`](Self::resolve) does, but writes no program that is to be generated: its trace is a name.
    ///
    /// # Errors
    /// As for `resolve`.
    pub(crate) fn check(self) -> Result<RunSpec, ConfigError> {
        self.resolve_with(generate::check)
    }

    fn resolve_with(self, generate: Generate) -> Result<RunSpec, ConfigError> {
        let sections = self.sections()?;
        let mut spec = resolve::spec(sections, generate).map_err(|error| self.locate(error))?;
        if let PlatformSource::Inline(_, base) = &mut spec.platform {
            *base = self.platform_base;
        }
        Ok(spec)
    }

    /// Adds the origin of an entry to an error about its value: the line of the file, the flag or the setting.
    pub fn locate(&self, error: ConfigError) -> ConfigError {
        let ConfigError::Value { section, key, .. } = &error else { return error };
        let in_file = || {
            let (path, text) = self.file.as_ref()?;
            let (line, column) = names::locate_path(text, &[section, key], false)?;
            Some(Origin::File { path: path.clone(), line, column })
        };
        match self.overrides.get(&((*section).to_owned(), (*key).to_owned())).cloned().or_else(in_file) {
            Some(origin) => error.at(&origin),
            None => error,
        }
    }
}

impl ConfigError {
    /// Adds the origin of the entry to which the error belongs.
    fn at(self, origin: &Origin) -> Self {
        let (origin, is_flag) = (origin.clone(), matches!(origin, Origin::Flag(_)));
        match self {
            // Section and key would only repeat the flag.
            Self::Value { message, .. } if is_flag => Self::Entry { origin, message },
            Self::Mismatch { mut mismatch, .. } => {
                if is_flag {
                    mismatch.path.clear();
                }
                Self::Mismatch { origin, mismatch }
            }
            Self::Entry { message, .. } => Self::Entry { origin, message },
            error => Self::At { origin, error: Box::new(error) },
        }
    }
}

/// Checks a single entry, whose origin is not known here.
fn check_entry(section: &str, key: &str, value: &toml::Value) -> Result<(), ConfigError> {
    check_names(section, key, value)?;
    read_entry(section, key, value)
        .map_err(|error| ConfigError::Entry { origin: Origin::Unknown, message: error.message().to_owned() })
}

/// Checks the names and choices of a single entry, whose origin is not known here.
fn check_names(section: &str, key: &str, value: &toml::Value) -> Result<(), ConfigError> {
    let keys = toml::Table::from_iter([(key.to_owned(), value.clone())]);
    let sections = toml::Table::from_iter([(section.to_owned(), keys.into())]);
    names::check(&sections, &schema::CONFIG_SCHEMA)
        .map_err(|mismatch| ConfigError::Mismatch { origin: Origin::Unknown, mismatch })
}

/// Replaces the parts of a value that another one has.
fn merge(value: &mut toml::Value, parts: toml::Value) {
    match (value, parts) {
        (toml::Value::Table(table), toml::Value::Table(parts)) => {
            for (key, part) in parts {
                merge(table.entry(key).or_insert_with(|| toml::Table::new().into()), part);
            }
        }
        (value, parts) => *value = parts,
    }
}

/// Reads a single entry, to find out whether it can be read.
fn read_entry(section: &str, key: &str, value: &toml::Value) -> Result<(), toml::de::Error> {
    let keys = toml::Table::from_iter([(key.to_owned(), value.clone())]);
    toml::Table::from_iter([(section.to_owned(), keys.into())]).try_into::<Sections>().map(drop)
}

/// Refuses files of other kinds that are in TOML, too.
fn refuse_other_files(path: &Path, table: &toml::Table) -> Result<(), ConfigError> {
    match file_kind::recognize_toml(table).filter(|kind| *kind != file_kind::CONFIGURATION) {
        Some(found) => Err(ConfigError::OtherFile { path: path.to_owned(), found }),
        None => Ok(()),
    }
}

/// Sections that cannot change a result.
const IRRELEVANT_SECTIONS: [&str; 6] = ["engine", "parallel", "analysis", "checkpoint", "timeline", "output"];

/// Keys of the section `platform` that exclude each other.
const EXCLUSIVE_PLATFORM_KEYS: [(&str, &str); 4] =
    [("file", "topology"), ("topology", "file"), ("hosts", "placement"), ("placement", "hosts")];
