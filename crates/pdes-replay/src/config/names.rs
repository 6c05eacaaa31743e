//! Detection of unknown names in configurations, with a suggestion of the name that was meant.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value as Schema;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// A key, or the name of a choice, that is not in the schema of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownName {
    /// The path of keys that leads to the name, outermost first; an index into a list is a number from 0.
    pub path: Vec<String>,
    /// The unknown name.
    pub found: String,
    /// Kind of the name.
    pub kind: NameKind,
    /// The name that was probably meant: one that differs in at most a third of its letters, or the same key in another section.
    pub nearest: Option<String>,
    /// The valid names.
    pub expected: Vec<String>,
}

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A section or a key.
    Key,
    /// A choice among values.
    Value,
}

/// Origin of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
    },
    /// A setting of the command line.
    Setting(String),
    /// The combination of file, flags and settings.
    Merged,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Setting(setting) => write!(f, "--set {setting}"),
            Self::Merged => f.write_str("the configuration with its overrides"),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        match (self.kind, self.path.split_last()) {
            (NameKind::Key, None) => write!(f, "there is no section {found:?}")?,
            (NameKind::Key, Some(_)) => write!(f, "[{}] has no key {found:?}", self.path.join("."))?,
            (NameKind::Value, None) => write!(f, "found {found:?}")?,
            (NameKind::Value, Some((key, sections))) => {
                write!(f, "[{}] {key}: found {found:?}", sections.join("."))?;
            }
        }
        match (&self.nearest, self.expected.split_last()) {
            (Some(nearest), _) => write!(f, "; did you mean {nearest:?}?"),
            (None, Some((last, []))) => write!(f, "; expected {last:?}"),
            (None, Some((last, others))) => {
                let others: Vec<String> = others.iter().map(|name| format!("{name:?}")).collect();
                write!(f, "; expected {} or {last:?}", others.join(", "))
            }
            (None, None) => Ok(()),
        }
    }
}

/// Checks all keys and choices of a table.
///
/// # Errors
/// Returns the first name that is not in the schema.
pub(crate) fn check(table: &toml::Table, schema: &Schema) -> Result<(), Box<UnknownName>> {
    check_table(table, schema, &mut Vec::new()).map_err(|unknown| suggest_section_key(unknown, schema))
}

/// Checks all keys and choices of a file.
///
/// # Errors
/// Returns the first name that is not in the schema, with its position in the file.
pub(crate) fn check_file(
    path: &Path,
    text: &str,
    table: &toml::Table,
    schema: &Schema,
) -> Result<(), ConfigError> {
    check(table, schema).map_err(|unknown| {
        let (line, column) = locate(text, &unknown).unwrap_or((1, 1));
        ConfigError::Unknown { origin: Origin::File { path: path.to_owned(), line, column }, unknown }
    })
}

/// Returns the line and column of a name in the text, both from 1.
fn locate(text: &str, unknown: &UnknownName) -> Option<(usize, usize)> {
    let document = DeTable::parse(text).ok()?;
    let (mut table, mut list, mut span) = (Some(document.get_ref()), None, document.span());
    let key = (unknown.kind == NameKind::Key).then_some(&unknown.found);
    for name in unknown.path.iter().chain(key) {
        let value = match (table, list) {
            (Some(table), _) => {
                let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
                span = key.span();
                value
            }
            (None, Some(list)) => {
                let values: &toml::de::DeArray<'_> = list;
                values.get(name.parse::<usize>().ok()?)?
            }
            (None, None) => return None,
        };
        if unknown.kind == NameKind::Value {
            span = value.span();
        }
        (table, list) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(list) => (None, Some(list)),
            _ => (None, None),
        };
    }
    let before = text.get(..span.start)?;
    let column = before.rsplit('\n').next()?.chars().count();
    Some((before.matches('\n').count() + 1, column + 1))
}

fn check_value(
    value: &toml::Value,
    schema: &Schema,
    place: &mut Vec<String>,
) -> Result<(), Box<UnknownName>> {
    match value {
        toml::Value::Table(table) => check_table(table, schema, place),
        toml::Value::Array(values) => values.iter().enumerate().try_for_each(|(index, value)| {
            place.push(index.to_string());
            check_value(value, &schema["items"], place)?;
            place.pop();
            Ok(())
        }),
        toml::Value::String(found) => match choices(schema) {
            Some(names) if !names.contains(&found.as_str()) && schema["x-former"][found].is_null() => {
                Err(unknown(place, found, NameKind::Value, &names))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_table(
    table: &toml::Table,
    schema: &Schema,
    place: &mut Vec<String>,
) -> Result<(), Box<UnknownName>> {
    let Some(known) = schema["properties"].as_object() else { return Ok(()) };
    for (key, value) in table {
        match known.get(key) {
            Some(schema) => {
                place.push(key.clone());
                check_value(value, schema, place)?;
                place.pop();
            }
            None if schema["additionalProperties"] == false => {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                return Err(unknown(place, key, NameKind::Key, &names));
            }
            None => {}
        }
    }
    Ok(())
}

/// Returns the strings that a schema allows; `None` if it allows any.
fn choices(schema: &Schema) -> Option<Vec<&str>> {
    let constant = |schema: &Schema| schema["const"].is_string();
    let names: Vec<&str> = match (&schema["const"], &schema["enum"]) {
        (Schema::String(name), _) => vec![name],
        (_, Schema::Array(names)) => names.iter().filter_map(Schema::as_str).collect(),
        _ => {
            let alternatives = ["oneOf", "anyOf"].iter().find_map(|list| schema[list].as_array())?;
            let texts = alternatives.iter().filter(|one| one["type"] == "string" || constant(one));
            texts.map(choices).collect::<Option<Vec<_>>>()?.concat()
        }
    };
    (!names.is_empty()).then_some(names)
}

fn unknown(place: &[String], found: &str, kind: NameKind, names: &[&str]) -> Box<UnknownName> {
    let expected = names.iter().map(|&name| name.to_owned()).collect();
    let nearest = nearest(found, names).map(str::to_owned);
    Box::new(UnknownName { path: place.to_vec(), found: found.to_owned(), kind, nearest, expected })
}

/// Returns the name with the smallest edit distance (insertions, deletions, replacements, transpositions), at most one for every
/// three of its letters.
fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    let found = found.to_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::osa_distance(&found, &name.to_lowercase());
    let near = names.iter().map(|&name| (distance(name), name));
    let near = near.filter(|(distance, name)| 3 * distance <= name.chars().count());
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Suggests the same key of another section if no key of this section is near.
fn suggest_section_key(mut unknown: Box<UnknownName>, schema: &Schema) -> Box<UnknownName> {
    if unknown.kind == NameKind::Key && unknown.nearest.is_none() && unknown.path.len() <= 1 {
        let sections = schema["properties"].as_object().into_iter().flatten();
        let mut owners = sections.filter(|(_, section)| section["properties"].get(&unknown.found).is_some());
        unknown.nearest = owners.next().map(|(section, _)| format!("{section}.{}", unknown.found));
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::CONFIG_SCHEMA;

    /// Returns the error message for a configuration, with the position.
    fn message_for(text: &str) -> String {
        let table: toml::Table = toml::from_str(text).unwrap();
        let unknown = check(&table, &CONFIG_SCHEMA).unwrap_err();
        let (line, column) = locate(text, &unknown).unwrap();
        format!("{line}:{column}: {unknown}")
    }

    #[test]
    fn a_typo_is_reported_with_the_nearest_name_and_its_position() {
        let cases = [
            ("[netwrk]\n", "1:2: there is no section \"netwrk\"; did you mean \"network\"?"),
            ("[trace]\npth = 'x'\n", "2:1: [trace] has no key \"pth\"; did you mean \"path\"?"),
            (
                "[network]\n  latencyfactor = 1\n",
                "2:3: [network] has no key \"latencyfactor\"; did you mean \"latency_factor\"?",
            ),
            ("network.preset = \"lv8\"\n", "1:18: [network] preset: found \"lv8\"; did you mean \"lv08\"?"),
            ("[network]\nmodel = 'Flow'\n", "2:9: [network] model: found \"Flow\"; did you mean \"flow\"?"),
            (
                "[mpi]\nallreduce = 'redbcost'\n",
                "2:13: [mpi] allreduce: found \"redbcost\"; did you mean \"redbcast\"?",
            ),
            (
                "[mpi]\ncollectives = 'mvapich'\n",
                "2:15: [mpi] collectives: found \"mvapich\"; did you mean \"mvapich2\"?",
            ),
            (
                "[platform.topology]\nkind = 'fat-tree'\n",
                "2:8: [platform.topology] kind: found \"fat-tree\"; did you mean \"fat_tree\"?",
            ),
            (
                "[platform.topology]\nlevels = [\n{ children = 2, parents = 1 },\n{ childrn = 2 }]\n",
                "4:3: [platform.topology.levels.1] has no key \"childrn\"; did you mean \"children\"?",
            ),
            (
                "[[mpi.table.bcast]]\nalgorithm = 'flatree'\n",
                "2:13: [mpi.table.bcast.0] algorithm: found \"flatree\"; did you mean \"flattree\"?",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(message_for(text), expected);
        }
    }

    #[test]
    fn a_key_of_another_section_is_suggested() {
        assert_eq!(
            message_for("[network]\nthreads = 2\n"),
            "2:1: [network] has no key \"threads\"; did you mean \"engine.threads\"?"
        );
        assert_eq!(
            message_for("threads = 2\n"),
            "1:1: there is no section \"threads\"; did you mean \"engine.threads\"?"
        );
    }

    #[test]
    fn all_names_are_listed_if_none_is_near() {
        assert_eq!(
            message_for("[network]\nmodel = 'fluid'\n"),
            "2:9: [network] model: found \"fluid\"; expected \"flow\", \"contention-free\" or \"loggops\""
        );
        assert_eq!(
            message_for("[parallel]\nzzz = 1\n"),
            "2:1: [parallel] has no key \"zzz\"; expected \"partition\", \"region_costs\" or \"oversubscribe\""
        );
    }

    #[test]
    fn names_in_the_schema_pass() {
        let text = "[network]\nepoch_s = 'auto'\nregions = 'regions.txt'\nlatency_factor = '0:2;10:3'\n\
            [platform]\ntopology = { kind = 'graph' }\nroute = [{ src = 'a', dst = 'b', links = [{ up = 'x' }, 'y'] }]\n";
        assert_eq!(check(&toml::from_str(text).unwrap(), &CONFIG_SCHEMA), Ok(()));
        let unlike = "[network]\nepoch_s = 'automatic'\n";
        let unknown = check(&toml::from_str(unlike).unwrap(), &CONFIG_SCHEMA).unwrap_err();
        assert_eq!((unknown.kind, unknown.expected), (NameKind::Value, vec!["auto".to_owned()]));
    }
}
