//! Links and routes as SimGrid 3.32 prints them: `tests/data/routes/NAME.tsv` with the platform `NAME.xml` beside it, or
//! among the platforms of the oracle. `links.tsv` holds the links of the platforms.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shared::shared;
use crate::support::repository;
use netmodel::{Platform, PlatformError, RouteError};

const FOLDER: &str = "tests/data/routes";

/// Platforms below `../shared`.
const OF_ORACLE: [&str; 6] = [
    "oracle/backbone-gbe.xml",
    "oracle/crossbar-gbe.xml",
    "oracle/dragonfly-12g.xml",
    "oracle/fattree-hdr.xml",
    "oracle/tesh/small_platform.xml",
    "oracle/torus-5g.xml",
];

fn stem(path: &Path) -> String {
    path.file_stem().expect("a file has a name").to_string_lossy().into_owned()
}

/// Reads a platform, or checks that it is one of the three that SimGrid reads and we refuse: a cluster with more hosts
/// than places, which SimGrid drops without a word, and attached links without bandwidth, which carry nothing.
fn load(path: &Path) -> Option<Platform> {
    let name = stem(path);
    let error = match Platform::from_path(path) {
        Ok(platform) => return Some(platform),
        Err(error) => error,
    };
    match (name.as_str(), &error) {
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

/// Compares the routes of a platform with its table, unless it is refused.
fn check_routes(path: &Path) {
    let Some(platform) = load(path) else { return };
    let name = stem(path);
    let mut links = Vec::new();
    for row in rows(&repository(FOLDER).join(format!("{name}.tsv"))) {
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
    let entries = fs::read_dir(repository(FOLDER)).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut tables: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|name| name == "tsv")).collect();
    tables.sort();
    let of_oracle = OF_ORACLE.map(|path| stem(Path::new(path)));
    for table in tables {
        let name = stem(&table);
        if name != "links" && !of_oracle.contains(&name) {
            check_routes(&table.with_extension("xml"));
        }
    }
}

#[test_with::shared]
fn routes_on_the_platforms_of_the_oracle_are_those_of_simgrid() {
    OF_ORACLE.iter().for_each(|path| check_routes(&shared(path)));
}

#[test]
fn links_are_those_of_simgrid() {
    let folder = repository(FOLDER);
    let mut platforms: BTreeMap<String, Option<Platform>> = BTreeMap::new();
    for row in rows(&folder.join("links.tsv")) {
        let platform =
            platforms.entry(row[0].clone()).or_insert_with(|| load(&folder.join(format!("{}.xml", row[0]))));
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
