//! Links and routes as SimGrid 3.32 prints them: `tests/data/routes/NAME.tsv` with the platform `NAME.xml` beside it, or
//! among the platforms of the oracle. `links.tsv` holds the links of the platforms.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{present, repository};
use netmodel::{Platform, PlatformError, RouteError};

const FOLDER: &str = "tests/data/routes";

/// A platform of a table, or the oracle's of this name.
fn platform_of(name: &str) -> PathBuf {
    let beside = repository(FOLDER).join(format!("{name}.xml"));
    let oracle = repository("../shared/oracle");
    let tesh = oracle.join("tesh").join(format!("{name}.xml"));
    [beside, tesh]
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| oracle.join(format!("{name}.xml")))
}

/// Reads a platform, or checks that it is one of the three that SimGrid reads and we refuse: a cluster with more hosts
/// than places, which SimGrid drops without a word, and attached links without bandwidth, which carry nothing.
fn load(name: &str) -> Option<Platform> {
    let error = match Platform::from_path(&platform_of(name)) {
        Ok(platform) => return Some(platform),
        Err(error) => error,
    };
    match (name, &error) {
        ("fattree-radical", PlatformError::HostCount { found: 9, expected: 8, .. })
        | ("flat-backbone-latency-only", PlatformError::Value { field: "bandwidth", .. })
        | ("flat-loopback-latency-only", PlatformError::Value { field: "bandwidth", .. }) => None,
        _ => panic!("{name}: {error}"),
    }
}

/// Reads the lines of a table without its head.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn assert_close(found: f64, expected: &str, what: &str) {
    let expected: f64 = expected.parse().expect(what);
    assert!((found - expected).abs() <= 1e-9 * expected, "{what}: found {found}, expected {expected}");
}

fn check_routes(name: &str, platform: &Platform, rows: &[Vec<String>]) {
    let mut links = Vec::new();
    for row in rows {
        let what = format!("{name}: {} to {}", row[0], row[1]);
        let [src, dst] = [&row[0], &row[1]].map(|host| platform.host_by_name(host).expect(&what));
        match platform.route(src, dst, &mut links) {
            // Messages on an empty route abort in SimGrid.
            Err(RouteError::NoLoopback { .. } | RouteError::Missing { .. }) => {
                assert_eq!(row[3], "", "{what}")
            }
            Err(error) => panic!("{what}: {error}"),
            Ok(()) => {
                let names: Vec<&str> = links.iter().map(|&link| platform.link(link).name.as_str()).collect();
                assert_eq!(names.join(" "), row[3], "{what}");
                assert_close(links.iter().map(|&link| platform.link(link).latency).sum(), &row[2], &what);
            }
        }
    }
}

#[test]
fn routes_are_those_of_simgrid() {
    let folder = repository(FOLDER);
    if !present(&folder) {
        return;
    }
    let entries = fs::read_dir(&folder).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut tables: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|name| name == "tsv")).collect();
    tables.sort();
    for table in tables {
        let name = table.file_stem().expect("a table has a name").to_string_lossy().into_owned();
        if name != "links"
            && present(&platform_of(&name))
            && let Some(platform) = load(&name)
        {
            check_routes(&name, &platform, &rows(&table));
        }
    }
}

#[test]
fn links_are_those_of_simgrid() {
    let table = repository(FOLDER).join("links.tsv");
    if !present(&table) {
        return;
    }
    let mut platforms: BTreeMap<String, Option<Platform>> = BTreeMap::new();
    for row in rows(&table) {
        let platform = platforms.entry(row[0].clone()).or_insert_with(|| load(&row[0]));
        let Some(platform) = platform else { continue };
        let what = format!("{}: link {}", row[0], row[1]);
        let link = platform.links().iter().find(|link| link.name == row[1]);
        if row[1] == "__loopback__" && link.is_none() {
            // SimGrid has this link in every platform, this crate only if a host uses it.
            continue;
        }
        let link = link.unwrap_or_else(|| panic!("{what} is missing"));
        assert_close(link.bandwidth, &row[2], &what);
        assert_close(link.latency, &row[3], &what);
    }
}
