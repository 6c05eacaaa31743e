//! Detection of unknown names and unfit values in configurations, with what was meant or expected.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value as Schema;
use toml::de::{DeTable, DeValue};

/// A key, the name of a choice or a value that does not match the schema of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Mismatch {
    /// The path of keys that leads to the name or value, outermost first; an index into a list is a number from 0.
    pub path: Vec<String>,
    /// The unknown name, or the value as TOML.
    pub found: String,
    /// Kind of the mismatch.
    pub kind: MismatchKind,
    /// The name that was probably meant: one that differs in at most a third of its letters, or the same key in another section.
    pub nearest: Option<String>,
    /// The valid names, or the one description of valid values.
    pub expected: Vec<String>,
}

/// Kind of a mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// An unknown section or key.
    Key,
    /// An unknown name where the schema lists all choices.
    Choice,
    /// A value of another type, or out of range.
    Value,
}

/// Origin of an entry of a configuration.
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
    /// A setting of the command line (`--set`).
    Setting(String),
    /// A flag of the command line, by its name.
    Flag(&'static str),
    /// Not known: a sweep, or a program that uses this library.
    Unknown,
}

/// A mismatch in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {mismatch}")]
pub struct FileMismatch {
    /// Position of the name or value.
    pub origin: Origin,
    /// The name or value, and what was probably meant or expected.
    pub mismatch: Box<Mismatch>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Setting(setting) => write!(f, "--set {setting}"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Unknown => f.write_str("the configuration"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        match (self.kind, self.path.split_last()) {
            (MismatchKind::Key, None) => write!(f, "there is no section {found:?}")?,
            (MismatchKind::Key, Some(_)) => write!(f, "[{}] has no key {found:?}", self.path.join("."))?,
            (MismatchKind::Choice, None) => write!(f, "found {found:?}")?,
            (MismatchKind::Choice, Some((key, sections))) => {
                write!(f, "[{}] {key}: found {found:?}", sections.join("."))?;
            }
            (MismatchKind::Value, None) => write!(f, "found {found}")?,
            (MismatchKind::Value, Some((key, []))) => write!(f, "{key}: found {found}")?,
            (MismatchKind::Value, Some((key, sections))) => {
                write!(f, "[{}] {key}: found {found}", sections.join("."))?;
            }
        }
        match (&self.nearest, self.expected.split_last()) {
            (None, Some((expected, []))) if self.kind == MismatchKind::Value => {
                write!(f, ", expected {expected}")
            }
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

/// Checks all keys, choices and values of a table.
///
/// # Errors
/// Returns the first one that does not match the schema.
pub fn check(table: &toml::Table, schema: &Schema) -> Result<(), Box<Mismatch>> {
    check_table(table, schema, &mut Vec::new()).map_err(|unknown| suggest_section_key(unknown, schema))
}

/// Checks all keys, choices and values of a file.
///
/// # Errors
/// Returns the first one that does not match the schema, with its position in the file.
pub fn check_file(path: &Path, text: &str, table: &toml::Table, schema: &Schema) -> Result<(), FileMismatch> {
    check(table, schema).map_err(|mismatch| {
        let (line, column) = locate(text, &mismatch).unwrap_or((1, 1));
        FileMismatch { origin: Origin::File { path: path.to_owned(), line, column }, mismatch }
    })
}

/// Returns the line and column of a mismatch in the text, both from 1.
fn locate(text: &str, unknown: &Mismatch) -> Option<(usize, usize)> {
    let key = (unknown.kind == MismatchKind::Key).then_some(&unknown.found);
    let path: Vec<&str> = unknown.path.iter().chain(key).map(String::as_str).collect();
    locate_path(text, &path, unknown.kind != MismatchKind::Key)
}

/// Returns the line and column, both from 1, of the last key of a path, or of its value.
pub fn locate_path(text: &str, path: &[&str], is_value: bool) -> Option<(usize, usize)> {
    let document = DeTable::parse(text).ok()?;
    let (mut table, mut list, mut span) = (Some(document.get_ref()), None, document.span());
    for &name in path {
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
        if is_value {
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

fn check_value(value: &toml::Value, schema: &Schema, place: &mut Vec<String>) -> Result<(), Box<Mismatch>> {
    if !value.is_str() && !fits(value, schema) {
        return Err(unfit(value, schema, place));
    }
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
                Err(unknown(place, found, MismatchKind::Choice, &names))
            }
            None if !fits(value, schema) => Err(unfit(value, schema, place)),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_table(table: &toml::Table, schema: &Schema, place: &mut Vec<String>) -> Result<(), Box<Mismatch>> {
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
                return Err(unknown(place, key, MismatchKind::Key, &names));
            }
            None => {}
        }
    }
    Ok(())
}

/// Returns whether the type of a value, and a number by its range, matches a schema.
fn fits(value: &toml::Value, schema: &Schema) -> bool {
    let number = value.as_float().or(value.as_integer().map(|number| number as f64));
    let (above, limits) = (schema["exclusiveMinimum"].as_f64(), range(schema));
    let is_in_range = number.is_none_or(|number| {
        limits.0.is_none_or(|min| number >= min)
            && limits.1.is_none_or(|max| number <= max)
            && above.is_none_or(|min| number > min)
    });
    let has_type = match (alternatives(schema), schema["type"].as_str()) {
        (Some(alternatives), _) => alternatives.iter().any(|one| fits(value, one)),
        (None, Some("integer")) => number.is_some_and(|number| number.fract() == 0.0),
        (None, Some("number")) => value.is_integer() || value.is_float(),
        (None, Some("string")) => value.is_str(),
        (None, Some("boolean")) => value.is_bool(),
        (None, Some("array")) => value.is_array(),
        (None, Some("object")) => value.is_table(),
        (None, _) => true,
    };
    has_type && is_in_range
}

fn unfit(value: &toml::Value, schema: &Schema, place: &[String]) -> Box<Mismatch> {
    let (path, found, kind) = (place.to_vec(), value.to_string(), MismatchKind::Value);
    Box::new(Mismatch { path, found, kind, nearest: None, expected: vec![describe(schema)] })
}

/// Describes the values that a schema allows.
fn describe(schema: &Schema) -> String {
    if let Some(names) = choices(schema) {
        return names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema["x-value"].as_str() {
        return value.to_owned();
    }
    if let Some(alternatives) = alternatives(schema) {
        // Bounds beside the alternatives are those of numbers.
        let bounded = |one: &Schema| {
            let mut one = one.clone();
            for bound in ["maximum", "exclusiveMinimum"].iter().filter(|&&bound| !schema[bound].is_null()) {
                one[*bound] = schema[*bound].clone();
            }
            describe(&one)
        };
        return alternatives.iter().map(bounded).collect::<Vec<_>>().join(" or ");
    }
    let name = match schema["type"].as_str() {
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("boolean") => return "true or false".to_owned(),
        Some("array") => return "a list".to_owned(),
        Some("object") => return "a table".to_owned(),
        // The strings of quantities describe themselves so.
        _ if schema["description"].as_str().is_some_and(|text| text.starts_with("a number with")) => {
            return "a string with a unit".to_owned();
        }
        _ => return "a string".to_owned(),
    };
    match (range(schema), schema["exclusiveMinimum"].as_f64()) {
        (_, Some(min)) => format!("{name} above {min}"),
        ((Some(min), Some(max)), None) => format!("{name} from {min} to {max}"),
        ((Some(min), None), None) => format!("{name} from {min}"),
        ((None, _), None) => name.to_owned(),
    }
}

/// Returns the smallest and the largest number that a schema allows.
fn range(schema: &Schema) -> (Option<f64>, Option<f64>) {
    let largest = (schema["format"] == "uint32").then_some(f64::from(u32::MAX));
    (schema["minimum"].as_f64(), schema["maximum"].as_f64().or(largest))
}

fn alternatives(schema: &Schema) -> Option<&Vec<Schema>> {
    ["oneOf", "anyOf"].iter().find_map(|list| schema[list].as_array())
}

/// Returns the strings that a schema allows; `None` if it allows any.
fn choices(schema: &Schema) -> Option<Vec<&str>> {
    let constant = |schema: &Schema| schema["const"].is_string();
    let names: Vec<&str> = match (&schema["const"], &schema["enum"]) {
        (Schema::String(name), _) => vec![name],
        (_, Schema::Array(names)) => names.iter().filter_map(Schema::as_str).collect(),
        _ => {
            let texts = alternatives(schema)?.iter().filter(|one| one["type"] == "string" || constant(one));
            texts.map(choices).collect::<Option<Vec<_>>>()?.concat()
        }
    };
    (!names.is_empty()).then_some(names)
}

fn unknown(place: &[String], found: &str, kind: MismatchKind, names: &[&str]) -> Box<Mismatch> {
    let expected = names.iter().map(|&name| name.to_owned()).collect();
    let nearest = nearest(found, names).map(str::to_owned);
    Box::new(Mismatch { path: place.to_vec(), found: found.to_owned(), kind, nearest, expected })
}

/// Returns the name with the smallest edit distance (insertions, deletions, replacements, transpositions), at most one for every
/// three of its letters.
pub fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    let found = found.to_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::osa_distance(&found, &name.to_lowercase());
    let near = names.iter().map(|&name| (distance(name), name));
    let near = near.filter(|(distance, name)| 3 * distance <= name.chars().count());
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Suggests the same key of another section if no key of this section is near.
fn suggest_section_key(mut unknown: Box<Mismatch>, schema: &Schema) -> Box<Mismatch> {
    if unknown.kind == MismatchKind::Key && unknown.nearest.is_none() && unknown.path.len() <= 1 {
        let sections = schema["properties"].as_object().into_iter().flatten();
        let mut owners = sections.filter(|(_, section)| section["properties"].get(&unknown.found).is_some());
        unknown.nearest = owners.next().map(|(section, _)| format!("{section}.{}", unknown.found));
    }
    unknown
}
