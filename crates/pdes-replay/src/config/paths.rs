//! Keys whose values are paths, relative to the directory of the configuration.

use std::path::{Path, PathBuf};

/// A key whose value is a path.
pub(super) struct PathKey {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    /// Role of the file in messages.
    pub(super) role: &'static str,
    pub(super) usage: PathUsage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathUsage {
    Read,
    Written,
    /// A directory of the program's own.
    Kept,
}

impl PathKey {
    const fn new(section: &'static str, key: &'static str, role: &'static str, usage: PathUsage) -> Self {
        Self { section, key, role, usage }
    }
}

/// The keys whose values are paths.
pub(super) const PATH_KEYS: [PathKey; 18] = [
    PathKey::new("trace", "path", "trace", PathUsage::Read),
    PathKey::new("job", "trace", "trace", PathUsage::Read),
    PathKey::new("job", "hosts", "hosts file", PathUsage::Read),
    PathKey::new("platform", "file", "platform", PathUsage::Read),
    PathKey::new("platform", "hosts", "hosts file", PathUsage::Read),
    PathKey::new("profile", "file", "profile of resources", PathUsage::Read),
    PathKey::new("network", "regions", "file of regions", PathUsage::Read),
    PathKey::new("packets", "table_file", "table of ways", PathUsage::Read),
    PathKey::new("packets", "route_file", "file of routes", PathUsage::Read),
    PathKey::new("parallel", "partition", "partition", PathUsage::Read),
    PathKey::new("parallel", "region_costs", "profile of regions", PathUsage::Read),
    PathKey::new("mpi", "measured", "measured times", PathUsage::Read),
    PathKey::new("noise", "file", "trace of noise", PathUsage::Read),
    PathKey::new("checkpoint", "directory", "directory of checkpoints", PathUsage::Kept),
    PathKey::new("output", "report", "report", PathUsage::Written),
    PathKey::new("output", "profile", "profile", PathUsage::Written),
    PathKey::new("output", "certificate", "certificate", PathUsage::Written),
    PathKey::new("timeline", "file", "timeline", PathUsage::Written),
];

/// Partitions that are not files.
const NAMED_PARTITIONS: [&str; 2] = ["blocks", "auto"];

/// Resolves the relative paths of a configuration against `directory`.
pub(crate) fn resolve_paths(table: &mut toml::Table, directory: &Path) {
    for PathKey { section, key, .. } in PATH_KEYS {
        let tables = match table.get_mut(section) {
            Some(toml::Value::Array(tables)) => tables.as_mut_slice(),
            Some(table) => std::slice::from_mut(table),
            None => &mut [],
        };
        for value in tables.iter_mut().filter_map(|table| table.get_mut(key)) {
            strings(value, &mut |value| {
                let is_named = match section {
                    "parallel" => NAMED_PARTITIONS.contains(&value.as_str()),
                    "network" => value == "auto",
                    _ => false,
                };
                if !is_named {
                    *value = resolve_path(directory, value).to_string_lossy().into_owned();
                }
            });
        }
    }
}

/// Returns a path, or those in lists and tables of them.
pub(super) fn texts(value: &toml::Value) -> Vec<&str> {
    match value {
        toml::Value::String(value) => vec![value],
        toml::Value::Array(values) => values.iter().flat_map(texts).collect(),
        toml::Value::Table(table) => table.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Changes a path, or those in lists and tables of them.
fn strings(value: &mut toml::Value, change: &mut impl FnMut(&mut String)) {
    match value {
        toml::Value::String(value) => change(value),
        toml::Value::Array(values) => values.iter_mut().for_each(|value| strings(value, change)),
        toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| strings(value, change)),
        _ => {}
    }
}

/// Resolves a path against `directory`; `~` is the home directory of the user.
pub(crate) fn resolve_path(directory: &Path, path: &str) -> PathBuf {
    let below_home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match below_home.and_then(|rest| Some(std::env::home_dir()?.join(rest.trim_start_matches('/')))) {
        Some(path) => path,
        None => directory.join(path),
    }
}
