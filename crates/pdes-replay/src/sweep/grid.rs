//! The grid of a sweep: its axes and their values.

use std::path::{Path, PathBuf};

use replay::file_kind::FileKind;
use replay::names;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::SweepError;
use super::layouts::{self, LayoutOption, LayoutsSection};
use super::schema;
use crate::config::{Config, ConfigError, resolve_path, resolve_paths};

/// A sweep file, with paths relative to the working directory.
pub(super) struct Grid {
    config: Option<PathBuf>,
    axes: Vec<Axis>,
    layouts: Option<LayoutsSection>,
}

pub(super) struct Axis {
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
}

/// A value of an axis.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) label: String,
    /// Cost of a machine with this value, in the user's unit.
    pub(super) cost: Option<f64>,
    /// Sections of a configuration that the value sets.
    pub(super) sections: toml::Table,
    /// Option of a layout.
    pub(super) option: Option<LayoutOption>,
}

/// Configuration of a sweep of pdes-replay.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "pdes-replay sweep")]
pub(super) struct SweepFile {
    /// Configuration that all runs have in common.
    config: Option<PathBuf>,
    /// Axes with labelled values, each of which sets any keys of the configuration.
    #[serde(default)]
    axis: Vec<AxisSection>,
    /// Axes that are keys of the configuration, each with a list of values.
    #[serde(default)]
    #[schemars(schema_with = "schema::grid")]
    grid: toml::Table,
    /// Layouts of the training of a transformer, each of which is a program that is generated.
    #[schemars(extend("x-page" = "training.md#the-best-layout"))]
    layouts: Option<LayoutsSection>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AxisSection {
    /// Name of the axis in the results.
    name: String,
    /// Values, in order.
    values: Vec<LabelledValue>,
}

#[derive(Deserialize)]
pub(super) struct LabelledValue {
    #[serde(deserialize_with = "label")]
    label: String,
    #[serde(default)]
    cost: Option<f64>,
    #[serde(flatten)]
    sections: toml::Table,
}

impl Grid {
    pub(super) fn from_path(path: &Path) -> Result<Self, SweepError> {
        let source = |source| SweepError::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(source)?;
        let form = |message: String| SweepError::Format { path: path.to_owned(), message };
        let form_of = |error: toml::de::Error| form(error.to_string().trim_end().to_owned());
        let table: toml::Table = toml::from_str(&text).map_err(form_of)?;
        refuse_runs(path, &table)?;
        names::check_file(path, &text, &table, &schema::sweep_schema()).map_err(ConfigError::from)?;
        let file: SweepFile = toml::from_str(&text).map_err(form_of)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut axes: Vec<Axis> = file.axis.into_iter().map(|axis| Axis::labelled(axis, directory)).collect();
        for (section, keys) in file.grid {
            let toml::Value::Table(keys) = keys else {
                return Err(form(format!(
                    "[grid] {section}: found a value, expected section.key = [values]"
                )));
            };
            for (key, values) in keys {
                Axis::of_keys(vec![section.clone(), key], values, directory, &mut axes).map_err(form)?;
            }
        }
        axes.extend(file.layouts.iter().flat_map(LayoutsSection::axes));
        if axes.is_empty() {
            return Err(form(
                "found nothing to vary; expected [[axis]], [grid] or [layouts] with lists of values"
                    .to_owned(),
            ));
        }
        if let Some(axis) = axes.iter().find(|axis| axis.settings.is_empty()) {
            return Err(form(format!("the axis {} has no values", axis.name)));
        }
        Ok(Self {
            config: file.config.map(|config| resolve_path(directory, &config.to_string_lossy())),
            axes,
            layouts: file.layouts,
        })
    }

    /// Returns the configuration that all runs have in common.
    pub(super) fn base(&self) -> Result<Config, ConfigError> {
        self.config.as_deref().map_or(Ok(Config::default()), Config::from_path)
    }

    /// Returns the names of the columns of labels: the axes and, of layouts, what follows from the others.
    pub(super) fn axis_names(&self) -> Vec<String> {
        let data = self.layouts.iter().map(|_| layouts::DATA.to_owned());
        self.axes.iter().map(|axis| axis.name.clone()).chain(data).collect()
    }

    pub(super) fn layouts(&self) -> Option<&LayoutsSection> {
        self.layouts.as_ref()
    }

    /// Returns all combinations; the last axis varies fastest.
    pub(super) fn combinations(&self) -> Vec<Vec<&Setting>> {
        self.axes.iter().fold(vec![Vec::new()], |combinations, axis| {
            let with = |settings: Vec<_>| {
                axis.settings.iter().map(move |setting| [settings.clone(), vec![setting]].concat())
            };
            combinations.into_iter().flat_map(with).collect()
        })
    }
}

/// Refuses the configuration of a run.
fn refuse_runs(path: &Path, table: &toml::Table) -> Result<(), ConfigError> {
    let has = |key: &&str| table.contains_key(*key);
    if ["grid", "axis", "config"].iter().any(has)
        || !["trace", "platform", "network", "mpi", "engine"].iter().any(has)
    {
        return Ok(());
    }
    let found = FileKind {
        name: "the configuration of a run",
        advice: "replay it with `pdes-replay run FILE`, or name it as config = \"FILE\" in a sweep, beside [grid] or [[axis]]",
    };
    Err(ConfigError::OtherFile { path: path.to_owned(), found })
}

impl Axis {
    fn labelled(axis: AxisSection, directory: &Path) -> Self {
        let setting = |LabelledValue { label, cost, mut sections }: LabelledValue| {
            resolve_paths(&mut sections, directory);
            Setting { label, cost, sections, option: None }
        };
        Self { name: axis.name, settings: axis.values.into_iter().map(setting).collect() }
    }

    /// Makes an axis of each list of values below a key.
    fn of_keys(
        path: Vec<String>,
        values: toml::Value,
        directory: &Path,
        axes: &mut Vec<Self>,
    ) -> Result<(), String> {
        let name = path.join(".");
        match values {
            toml::Value::Array(values) => {
                let setting = |value: toml::Value| {
                    let label = label_of(&value);
                    let nest = |value, key: &String| toml::Table::from_iter([(key.clone(), value)]).into();
                    let sections = path.iter().rev().fold(value, nest);
                    let toml::Value::Table(mut sections) = sections else { unreachable!("a path has keys") };
                    resolve_paths(&mut sections, directory);
                    Setting { label, cost: None, sections, option: None }
                };
                axes.push(Self { name, settings: values.into_iter().map(setting).collect() });
                Ok(())
            }
            toml::Value::Table(keys) => keys.into_iter().try_for_each(|(key, values)| {
                Self::of_keys([&path[..], &[key]].concat(), values, directory, axes)
            }),
            other => Err(format!(
                "[grid] {name}: found a {}, expected a list of values, such as [1, 2]",
                other.type_str()
            )),
        }
    }
}

impl Setting {
    /// Returns whether this sets a key.
    pub(super) fn sets(&self, section: &str, key: &str) -> bool {
        self.sections.get(section).and_then(toml::Value::as_table).is_some_and(|keys| keys.contains_key(key))
    }

    /// Sets the keys with whole values.
    pub(super) fn apply(&self, config: &mut Config) {
        for (section, keys) in &self.sections {
            match keys {
                toml::Value::Table(keys) => {
                    let whole = keys.iter().filter(|(key, value)| !is_part(section, key, value));
                    whole.for_each(|(key, value)| config.insert(section, key, value.clone()));
                }
                // Invalid: resolving the configuration reports the expected type.
                value => config.insert_section(section, value.clone()),
            }
        }
    }

    /// Sets the keys of which this has parts, after all whole values.
    pub(super) fn apply_parts(&self, config: &mut Config) -> Result<(), ConfigError> {
        let sections = self.sections.iter().filter_map(|(section, keys)| Some((section, keys.as_table()?)));
        for (section, keys) in sections {
            for (key, value) in keys.iter().filter(|(key, value)| is_part(section, key, value)) {
                config.insert_parts(section, key, value.clone())?;
            }
        }
        Ok(())
    }
}

/// Returns whether a value is a part of a topology: a whole one says of which kind it is.
fn is_part(section: &str, key: &str, value: &toml::Value) -> bool {
    (section, key) == ("platform", "topology")
        && value.as_table().is_some_and(|topology| !topology.contains_key("kind"))
}

fn label_of(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads a label: a string, or a number.
fn label<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    match toml::Value::deserialize(input)? {
        value @ (toml::Value::String(_) | toml::Value::Integer(_) | toml::Value::Float(_)) => {
            Ok(label_of(&value))
        }
        other => {
            Err(serde::de::Error::custom(format!("label: found a {}, expected a name", other.type_str())))
        }
    }
}
