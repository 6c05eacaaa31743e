//! Costs of lone messages, derived by hand from the model's formula, and some that SimGrid 3.32 printed.

use crate::shared::shared;
use crate::support::cluster;
use netmodel::{ContentionFree, FactorError, FactorTable, HostId, NetworkParameters, Platform, Preset};
use pdes_core::{Bytes, SimDuration};
use proptest::prelude::*;

const A: HostId = HostId::new(0);
const B: HostId = HostId::new(1);

fn model(preset: Preset) -> ContentionFree {
    ContentionFree::new(&NetworkParameters::preset(preset))
}

fn seconds(model: &ContentionFree, platform: &Platform, src: HostId, dst: HostId, size: u64) -> f64 {
    let path = model.path_cost(platform, src, dst).unwrap_or_else(|error| panic!("{error}"));
    model.duration(path, Bytes::new(size)).as_secs_f64()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 + 1e-12 * expected, "found {found}, expected {expected}");
}

/// Two hosts on one link of 1000 B/s with the given latency, the default loopback for messages to oneself.
fn pair(link: &str) -> Platform {
    let text = format!(
        "topology = {{ kind = \"graph\" }}
         host = [{{ name = \"a\", speed = \"1f\" }}, {{ name = \"b\", speed = \"1f\" }}]
         link = [{link}]
         route = [{{ src = \"a\", dst = \"b\", links = [\"l\"] }}]"
    );
    Platform::from_toml(&text, "pair.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test_with::shared]
fn a_megabyte_over_link_9_of_the_small_platform() {
    let platform = Platform::from_path(&shared("oracle/tesh/small_platform.xml")).unwrap();
    let host = |name| platform.host_by_name(name).unwrap();
    // One million bytes and the envelope of 16: SimGrid prints 0.171838.
    let found = seconds(&model(Preset::Smpi), &platform, host("Tremblay"), host("Jupiter"), 1_000_016);
    assert_eq!(format!("{found:.6}"), "0.171838");
    let expected = 1.461517e-3 * 11.6436 + 1_000_016.0 / (0.940694 * 7.20975e6 / 1.05);
    assert_close(found, expected);
    // Six links there and the same back: the narrowest is link 8, of 8.158 MB/s.
    let latency = 479.78e-6 + 514.433e-6 + 136.931e-6 + 59.904e-6 + 514.433e-6 + 270.544e-6;
    let found = seconds(&model(Preset::Cm02), &platform, host("Tremblay"), host("Fafard"), 1_000_000);
    assert_close(found, latency + 1e6 / (4_194_304.0_f64 / (2.0 * latency)).min(8.158e6 / 1.05));
}

#[test]
fn a_gigabyte_to_oneself_over_the_default_loopback() {
    let platform = pair("{ name = \"l\", bandwidth = \"1000Bps\" }");
    let found = seconds(&model(Preset::Smpi), &platform, A, A, 1_000_000_016);
    assert_close(found, 1_000_000_016.0 / (1e10 * 0.940694));
    assert_eq!(format!("{found:.6}"), "0.106304");
}

#[test]
fn an_envelope_on_a_slow_link_pays_for_acknowledgements_on_the_same_link() {
    let platform = pair("{ name = \"l\", bandwidth = \"1000Bps\" }");
    assert_close(seconds(&model(Preset::Smpi), &platform, A, B, 16), 16.0 / (1000.0 / 1.05 * 0.812084));
    assert_close(seconds(&model(Preset::Lv08), &platform, A, B, 16), 16.0 / (1000.0 / 1.05 * 0.97));
    assert_close(seconds(&model(Preset::Raw), &platform, A, B, 16), 0.016);
}

#[test]
fn a_fat_pipe_takes_the_largest_share_only() {
    let platform = pair("{ name = \"l\", bandwidth = \"1000Bps\", sharing = \"fat_pipe\" }");
    assert_close(seconds(&model(Preset::Cm02), &platform, A, B, 500), 0.5);
}

#[test]
fn split_duplex_keeps_acknowledgements_off_the_way_there() {
    let platform = cluster(2, "");
    assert_close(seconds(&model(Preset::Cm02), &platform, A, B, 1_000_000), 2e-6 + 1e-3);
    // To itself a host uses both of its links, there and back: each carries 1.05.
    assert_close(seconds(&model(Preset::Cm02), &platform, A, A, 1_000_000), 2e-6 + 1.05e-3);
    // A limiter carries both directions.
    let limited = cluster(2, "limiter_link=\"1GBps\"");
    assert_close(seconds(&model(Preset::Cm02), &limited, A, B, 1_000_000), 2e-6 + 1.05e-3);
}

#[test]
fn a_link_that_is_crossed_twice_counts_twice() {
    let text = "topology = { kind = \"graph\" }
        host = [{ name = \"a\", speed = \"1f\" }, { name = \"b\", speed = \"1f\" }]
        link = [{ name = \"l\", bandwidth = \"1000Bps\", latency = 0.25 }]
        route = [{ src = \"a\", dst = \"b\", links = [\"l\", \"l\"], symmetrical = false }]";
    let platform = Platform::from_toml(text, "twice.toml").unwrap();
    // The reverse route is not listed: no acknowledgements.
    assert_close(seconds(&model(Preset::Cm02), &platform, A, B, 1000), 0.5 + 2.0);
}

#[test]
fn the_tcp_window_limits_long_routes() {
    let platform = pair("{ name = \"l\", bandwidth = \"10GBps\", latency = \"1s\" }");
    assert_close(seconds(&model(Preset::Cm02), &platform, A, B, 4_194_304), 1.0 + 2.0);
    assert_close(seconds(&model(Preset::Raw), &platform, A, B, 10_000_000_000), 2.0);
}

#[test]
fn a_path_has_its_latency_and_bandwidth() {
    let platform = cluster(2, "bb_bw=\"500MBps\" bb_lat=\"3us\"");
    let path = model(Preset::Smpi).path_cost(&platform, A, B).unwrap();
    assert_close(path.latency(), 5e-6);
    assert!((path.bandwidth() - 500e6 / 1.05).abs() < 1.0);
}

#[test]
fn a_time_beyond_the_clock_is_none() {
    let platform = pair("{ name = \"l\", bandwidth = \"1Bps\" }");
    let model = model(Preset::Raw);
    let path = model.path_cost(&platform, A, B).unwrap();
    assert_eq!(model.try_duration(path, Bytes::new(2)), Some(SimDuration::from_picos(2_000_000_000_000)));
    assert_eq!(model.try_duration(path, Bytes::new(u64::MAX)), None);
}

#[test]
fn bad_factors_are_refused() {
    let parse = |text: &str| text.parse::<FactorTable>().unwrap_err();
    assert_eq!(parse("0:1;5"), FactorError::Section { section: "5".to_owned() });
    assert_eq!(parse("0:1;-3:2"), FactorError::Section { section: "-3:2".to_owned() });
    assert_eq!(parse("0:1;3:x"), FactorError::Factor { found: "x".to_owned() });
    assert_eq!(parse("0"), FactorError::Factor { found: "0".to_owned() });
    assert_eq!(parse("7:1;0:2;7:3"), FactorError::Duplicate { above: 7 });
}

#[test]
fn parameters_have_names_in_toml() {
    #[derive(serde::Deserialize)]
    struct Network {
        presets: Vec<Preset>,
        constant: FactorTable,
        whole: FactorTable,
        table: FactorTable,
    }
    let text = "presets = [\"smpi\", \"lv08\", \"cm02\", \"raw\"]
        constant = 0.97
        whole = 13
        table = \"0:0.5;100:2\"";
    let network: Network = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(network.presets, [Preset::Smpi, Preset::Lv08, Preset::Cm02, Preset::Raw]);
    let factors = |table: &FactorTable| [0, 100, 101].map(|size| table.factor(Bytes::new(size)));
    assert_eq!(factors(&network.constant), [0.97; 3]);
    assert_eq!(factors(&network.whole), [13.0; 3]);
    assert_eq!(factors(&network.table), [1.0, 0.5, 2.0]);
    assert!(toml::from_str::<Network>(&text.replace("13", "-13")).is_err());
}

proptest! {
    #[test]
    fn factors_survive_their_text(sections in prop::collection::btree_map(any::<u64>(), 1e-3..1e3_f64, 1..10)) {
        let sections: Vec<(u64, f64)> = sections.into_iter().collect();
        let table = FactorTable::try_new(&sections).unwrap();
        prop_assert_eq!(table.to_string().parse::<FactorTable>(), Ok(table));
    }

    #[test]
    fn durations_follow_both_tables(
        latency in prop::collection::btree_map(0_u64..5000, 0.1..10_f64, 1..6),
        bandwidth in prop::collection::btree_map(0_u64..5000, 0.1..10_f64, 1..6),
        size in 0_u64..6000,
    ) {
        let table = |sections: std::collections::BTreeMap<u64, f64>| {
            FactorTable::try_new(&sections.into_iter().collect::<Vec<_>>()).unwrap()
        };
        let parameters = NetworkParameters {
            latency_factor: table(latency),
            bandwidth_factor: table(bandwidth),
            ..NetworkParameters::preset(Preset::Raw)
        };
        let found = seconds(&ContentionFree::new(&parameters), &cluster(2, ""), A, B, size);
        let (latency, bandwidth) = (&parameters.latency_factor, &parameters.bandwidth_factor);
        let bytes = Bytes::new(size);
        let expected = 2e-6 * latency.factor(bytes) + size as f64 / (1e9 * bandwidth.factor(bytes));
        prop_assert!((found - expected).abs() <= 1e-12, "found {}, expected {}", found, expected);
    }
}
