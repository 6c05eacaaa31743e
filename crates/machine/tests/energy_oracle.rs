//! Energy against SimGrid's plugins, host by host and link by link.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use machine::Energy;
use netmodel::{Resource, ResourceChange};
use pdes_core::{Progress, SimTime};
use replay::{NetworkPreset, PlatformSource, RunSpec, SIMGRID_DEFAULT, Simulation};

/// Joules of a host or a link that SimGrid prints are rounded to six decimals.
const PRINTED: f64 = 1e-6;
/// Largest difference of the sums over all of them, as a part: the end may be a nanosecond earlier, the time within which events are one.
const OF_SUMS: f64 = 5e-7;

fn shared(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path)
}

/// Reads a table, whose cells may be in quotation marks.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

/// Copies a platform without the profile of the host `offline`, and returns the changes that this is.
fn platform(name: &str, folder: &Path) -> (PathBuf, Vec<ResourceChange>) {
    let path = shared("oracle/energy").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let without = text.replace(" state_file=\"offline.state\"", "");
    if without == text {
        return (path, Vec::new());
    }
    let copy = folder.join(name);
    std::fs::write(&copy, without).unwrap();
    let host = netmodel::Platform::from_path(&copy).unwrap().host_by_name("offline").unwrap();
    let change = |tenths: u64, value| ResourceChange {
        at: SimTime::from_picos(tenths * 100_000_000_000),
        resource: Resource::Speed(host),
        value,
    };
    (copy, vec![change(2, 0.0), change(5, 1e9)])
}

fn trace(case: &BTreeMap<String, String>, folder: &Path) -> PathBuf {
    let name = &case["trace"];
    let own = shared("oracle/energy/traces").join(name).join("files.txt");
    if own.exists() {
        return own;
    }
    let archive = std::fs::File::open(shared("traces").join(format!("{name}.tar.gz"))).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(archive)).unpack(folder).unwrap();
    folder.join(name).join("files.txt")
}

/// Returns the energy that SimGrid counts too much for a host that begins in a processor state other than the first, and has done nothing
/// yet: it draws 30 W less than SimGrid counts until then.
fn quirk(case: &str, host: &str, end_s: f64) -> f64 {
    match (case, host) {
        // Nothing runs there, or a rank that waits from the begin to the end.
        ("E01" | "E02" | "E05" | "E06" | "E07", "cpu2") => 30.0 * end_s,
        // It waits for a message, and then computes for a second.
        ("E03", "cpu2") => 30.0 * (end_s - 1.0),
        _ => 0.0,
    }
}

#[test_with::shared]
fn hosts_and_links_take_the_energy_of_simgrid() {
    let expected = rows(&shared("oracle/energy/expected.csv"));
    let mut compared = 0;
    for case in rows(&shared("oracle/energy/cases.csv")) {
        let (name, folder) = (case["case"].as_str(), tempfile::tempdir().unwrap());
        let (platform, changes) = platform(&case["platform"], folder.path());
        let preset: &'static NetworkPreset = SIMGRID_DEFAULT;
        let mut spec = RunSpec::new(trace(&case, folder.path()), PlatformSource::File(platform), preset);
        let hosts = folder.path().join("hosts.txt");
        std::fs::write(&hosts, case["hosts"].replace(' ', "\n")).unwrap();
        (spec.hosts, spec.changes, spec.host_loads) = (Some(hosts), changes, true);
        spec.network.cross_traffic = case["crosstraffic"] == "yes";
        let simulation = Simulation::load(&spec).unwrap();
        let outcome = simulation.replay(&Progress::new(1)).unwrap();
        let platform = simulation.platform();
        let (hosts, links) = (outcome.hosts.as_ref().unwrap(), outcome.links.as_ref().unwrap());
        let energy = Energy::new(platform, hosts, links, outcome.simulated_time());
        let end_s = energy.time.as_secs_f64();
        let host = |host: &str| energy.hosts_j[platform.host_by_name(host).unwrap().index()];
        let link = |link: &str| {
            energy.links_j[platform.links().iter().position(|found| found.name == link).unwrap()]
        };
        for row in expected.iter().filter(|row| row["case"] == name) {
            let of = row["name"].as_str();
            let all_quirks =
                || platform.hosts().iter().map(|host| quirk(name, &host.name, end_s)).sum::<f64>();
            let used = || hosts.hosts.iter().map(|load| energy.hosts_j[load.host.index()]).sum::<f64>();
            let found = match row["quantity"].as_str() {
                "time_s" => end_s,
                "host_J" => host(of) + quirk(name, of, end_s),
                "hosts_total_J" => energy.hosts_j.iter().sum::<f64>() + all_quirks(),
                "hosts_used_J" if name == "E03" => used() + all_quirks(),
                "hosts_used_J" => used(),
                "link_integral_J" => link(of),
                "links_integral_J" => energy.links_j.iter().sum(),
                // What the plugin samples is not the integral.
                "link_J" | "links_total_J" => continue,
                other => panic!("{other}"),
            };
            let value: f64 = row["value"].parse().unwrap();
            let difference = (found - value).abs();
            let of_sums = if of.is_empty() && name >= "E08" { OF_SUMS * value } else { 0.0 };
            assert!(difference < PRINTED.max(of_sums), "{name} {row:?}: {found}, off by {difference:e}");
            compared += 1;
        }
        let seconds = |bin: usize| {
            let bin_s = energy.bin.as_secs_f64();
            (end_s - bin as f64 * bin_s).min(bin_s)
        };
        let of_bins: f64 = energy.power_w.iter().enumerate().map(|(bin, watts)| watts * seconds(bin)).sum();
        assert!(
            (of_bins / energy.total_j() - 1.0).abs() < 1e-9,
            "{name}: {of_bins} and {}",
            energy.total_j()
        );
    }
    assert!(compared > 200, "{compared}");
}
