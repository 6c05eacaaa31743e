//! Published results of uet-htsim (`../shared/samples/htsim`). It has packets of 4150 B with 4086 B of payload, and completes a message
//! when its last acknowledgement, of 64 B, is back. Queues drop nothing here, so where htsim drops packets it takes longer.

use std::path::PathBuf;

use packets::{Congestion, DegradedLink, InFlight, PacketParameters, PacketRouting, Weights};

use crate::driver::{Run, Sent, run};
use crate::networks::{fat_tree, leaf_spine, network};
use crate::oracle;

fn parameters(routing: PacketRouting) -> PacketParameters {
    PacketParameters {
        packet_bytes: 4086,
        header_bytes: 64,
        routing,
        in_flight: Some(InFlight::Unlimited),
        ..PacketParameters::default()
    }
}

/// Reads a published matrix.
fn matrix(name: &str) -> (u32, Vec<Sent>) {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/htsim/data/cm");
    matrix_of(&std::fs::read_to_string(directory.join(name)).unwrap())
}

/// Reads a matrix: its number of hosts, and `src->dst [id k] start t size bytes`, the start in picoseconds.
fn matrix_of(text: &str) -> (u32, Vec<Sent>) {
    let sent = |line: &str| {
        let (ends, rest) = line.split_once(' ')?;
        let (src, dst) = ends.split_once("->")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let number = |key: &str| {
            let place = words.iter().position(|word| *word == key)?;
            words.get(place + 1)?.parse::<u64>().ok()
        };
        Some((number("start")?, src.parse().ok()?, dst.parse().ok()?, number("size")?))
    };
    let messages: Vec<Sent> = text.lines().filter_map(sent).collect();
    assert!(!messages.is_empty());
    let hosts = text.lines().find_map(|line| line.strip_prefix("Nodes ")?.trim().parse().ok());
    (hosts.unwrap(), messages)
}

/// Returns when the acknowledgements of the first and of the last message are back, over so many links of a rate [B/ns] \[us\].
fn acknowledged(done: &Run, links: f64, rate: f64) -> (f64, f64) {
    let back = links * (1000.0 + 64.0 / rate);
    let micros = |at: u64| (at as f64 / 1e3 + back) / 1e3;
    (micros(*done.arrived.iter().min().unwrap()), micros(done.last()))
}

/// Runs a matrix on the default network: the full fat tree of three levels that has room for all hosts, 100 Gb/s and 1 us.
fn last_on_fat_tree(name: &str, routing: PacketRouting) -> f64 {
    last_of(&matrix(name), &parameters(routing))
}

fn last_of((hosts, messages): &(u32, Vec<Sent>), parameters: &PacketParameters) -> f64 {
    let ports = (2..).step_by(2).find(|ports: &u32| ports.pow(3) / 4 >= *hosts).unwrap();
    let platform = network(&fat_tree(ports), 12.5, 1000.0);
    acknowledged(&run(&platform, parameters, messages), 6.0, 12.5).1
}

#[track_caller]
fn assert_within(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found} us, expected {expected} us");
}

#[test_with::shared]
fn one_flow_is_the_same_to_the_digit() {
    // Six digits are printed.
    for (name, routing, expected) in [
        ("one.cm", PacketRouting::Minimal, "176.200"),
        ("one.cm", PacketRouting::Spray, "176.200"),
        ("test_cr_1f1m10p.cm", PacketRouting::Minimal, "17.0107"),
        ("test_cr_1f1m100p.cm", PacketRouting::Minimal, "46.8907"),
    ] {
        let digits = expected.len() - expected.find('.').unwrap() - 1;
        assert_eq!(format!("{:.digits$}", last_on_fat_tree(name, routing)), expected, "{name}");
    }
}

#[test_with::shared]
fn cases_without_drops_are_within_five_percent() {
    // Acknowledgements, which queue behind data there, are pure delay here.
    assert_within(last_on_fat_tree("bidir.cm", PacketRouting::Spray), 176.804, 0.005);
    assert_within(last_on_fat_tree("outcast_incast.cm", PacketRouting::Spray), 1638.08, 0.005);
    assert_within(last_on_fat_tree("perm_16n_16c_2MB.cm", PacketRouting::Spray), 194.022, 0.05);
    let large = "perm_1024n_1024c_0u_2000000b.cm";
    assert_within(last_on_fat_tree(large, PacketRouting::Spray), 200.507, 0.05);
    assert_within(last_on_fat_tree(large, PacketRouting::Adaptive), 200.507, 0.05);
}

#[test_with::shared]
fn incasts_are_as_long_without_their_drops() {
    assert_within(last_on_fat_tree("incast.cm", PacketRouting::Spray), 2478.53, 0.02);
    assert_within(last_on_fat_tree("incast_128.cm", PacketRouting::Spray), 21029.3, 0.025);
}

/// One hashed path for each flow: the result is that of the hash; that of htsim is within the spread of seeds.
#[test_with::shared]
fn hashed_paths_collide() {
    let platform = network(&fat_tree(4), 12.5, 1000.0);
    let (_, messages) = matrix("perm_16n_16c_2MB.cm");
    let last = |seed| {
        let parameters = PacketParameters { seed, ..parameters(PacketRouting::Ecmp) };
        acknowledged(&run(&platform, &parameters, &messages), 6.0, 12.5).1
    };
    let lasts: Vec<f64> = (1..=40).map(last).collect();
    let (least, most) =
        lasts.iter().fold((f64::MAX, 0.0_f64), |(least, most), &last| (least.min(last), most.max(last)));
    assert!(least < 527.755 && 527.755 < most, "{lasts:?}");
}

/// The permutation of 8,192 hosts below 128 leaves, which send 1 MB each.
struct Permutation(Vec<Sent>);

impl Permutation {
    fn read() -> Self {
        Self(matrix("perm_8192n_8192c_1MB.cm").1)
    }

    /// Returns the last completion with links of a rate [Gbit/s] and so many spines \[us\].
    fn last(&self, gbits: u32, spines: u32, parameters: &PacketParameters) -> f64 {
        let rate = f64::from(gbits) / 8.0;
        let platform = network(&leaf_spine(128, 64, spines), rate, 1000.0);
        acknowledged(&run(&platform, parameters, &self.0), 4.0, rate).1
    }
}

/// Returns a column of the published results of the permutation, with 32, 64 and 128 hashed paths for each flow.
fn published(gbits: u32, spines: u32, column: &str) -> [f64; 3] {
    let ratio = match 64 / spines {
        1 => String::new(),
        hosts => format!("-{hosts}-to-1"),
    };
    [1, 2, 3].map(|row| {
        let case = format!("perm-{gbits}g{ratio}-00{row}");
        oracle::number("../../samples/htsim/expected.csv", &case, column)
    })
}

/// As many spines as a leaf has hosts. In htsim a flow has 32, 64 or 128 paths; here each of its packets takes any, as with many.
#[test_with::shared]
fn leaves_and_spines_of_8192_hosts() {
    let permutation = Permutation::read();
    for (gbits, tolerances) in [(200, [0.05; 3]), (400, [0.18, 0.1, 0.06]), (800, [0.18, 0.1, 0.06])] {
        let last = permutation.last(gbits, 64, &parameters(PacketRouting::Spray));
        for (expected, tolerance) in published(gbits, 64, "last_us").into_iter().zip(tolerances) {
            assert_within(last, expected, tolerance);
        }
    }
}

/// Four or eight times as many hosts as up-links, where htsim drops packets: its later revision takes up to 20 % longer, and nothing is
/// faster than the capacity of the up-links.
#[test_with::shared]
fn oversubscribed_leaves_of_8192_hosts() {
    let permutation = Permutation::read();
    for spines in [16, 8] {
        for gbits in [200, 400, 800] {
            let last = permutation.last(gbits, spines, &parameters(PacketRouting::Spray));
            let [bound, ..] = published(gbits, spines, "capacity_bound_us");
            for longest in published(gbits, spines, "last_us_rerun") {
                let range = bound.max(0.8 * longest)..longest;
                assert!(range.contains(&last), "{gbits} Gb/s, {spines} spines: {last} us, {range:?} us");
            }
        }
    }
}

/// Windows that marks shrink, with htsim's upper threshold for marks, in packets of 4150 B: within 10 % of its first revision, with too few
/// up-links, too. At 800 Gb/s 1 MB is less than the first window, and no mark is in time.
#[test_with::shared]
fn marks_of_long_queues_cost_what_they_do_in_htsim() {
    let permutation = Permutation::read();
    for (gbits, threshold, spines) in
        [(200, 37, 64), (200, 37, 16), (200, 37, 8), (400, 75, 16), (400, 75, 8)]
    {
        let windows = PacketParameters {
            congestion: Congestion::Dctcp,
            mark_bytes: threshold * 4150,
            in_flight: Some(InFlight::Loop),
            ..parameters(PacketRouting::Spray)
        };
        let last = permutation.last(gbits, spines, &windows);
        for expected in published(gbits, spines, "last_us") {
            assert_within(last, expected, 0.1);
        }
    }
}

/// A network with four times as many hosts as up-links is between the capacity bound and htsim, which drops packets, and within 20 %.
#[test_with::shared]
fn oversubscribed_networks_are_between_the_bound_and_htsim() {
    let platform = network(&leaf_spine(32, 32, 8), 12.5, 1000.0);
    let (_, messages) = matrix("perm_1024n_1024c_0u_2000000b.cm");
    let (_, last) = acknowledged(&run(&platform, &parameters(PacketRouting::Spray), &messages), 4.0, 12.5);
    assert!((640.0..785.774).contains(&last), "{last}");
    assert_within(last, 785.774, 0.2);
}

fn of_receivers() -> PacketParameters {
    PacketParameters {
        congestion: Congestion::ReceiverCredits,
        in_flight: Some(InFlight::Loop),
        ..parameters(PacketRouting::Spray)
    }
}

/// Published results with credits of receivers (`validate_uec_rcv.out` and `results/200g_rccc.txt` of uet-htsim), whose senders learn of
/// dropped packets, of which there are none here.
#[test_with::shared]
fn credits_of_receivers_are_within_ten_percent() {
    for (name, expected) in [
        ("one.cm", 177.368),
        ("bidir.cm", 178.18),
        ("incast.cm", 2464.44),
        ("incast_128.cm", 20891.4),
        ("outcast_incast.cm", 1637.76),
        ("perm_16n_16c_2MB.cm", 195.673),
        ("perm_1024n_1024c_0u_2000000b.cm", 203.384),
    ] {
        assert_within(last_of(&matrix(name), &of_receivers()), expected, 0.1);
    }
    let ends = |topology: &str, links, rate, name| {
        let done = run(&network(topology, rate, 1000.0), &of_receivers(), &matrix(name).1);
        acknowledged(&done, links, rate)
    };
    let large = "perm_1024n_1024c_0u_2000000b.cm";
    assert_within(ends(&leaf_spine(32, 32, 8), 4.0, 12.5, large).1, 749.717, 0.1);
    assert_within(ends(&leaf_spine(32, 32, 4), 4.0, 12.5, large).1, 1459.06, 0.1);
    // Full bisection at 200 Gb/s: 59.7 to 60.9 us.
    assert_within(ends(&leaf_spine(128, 64, 64), 4.0, 25.0, "perm_8192n_8192c_1MB.cm").1, 60.4, 0.05);
    // Two short messages and a long one.
    assert_within(ends(&fat_tree(8), 6.0, 12.5, "incast_3-1_overlapped.tm").1, 217.08, 0.1);
}

/// Reads the matrix of a run of `../shared/oracle/packets/htsim.csv`, and the range of the ends of its last message, by seed \[us\].
fn own_run(case: &str, matrix: &str) -> ((u32, Vec<Sent>), [f64; 2]) {
    let messages = matrix_of(&oracle::text(&format!("cm/{matrix}.cm")));
    (messages, ["last_us_min", "last_us_max"].map(|column| oracle::number("htsim.csv", case, column)))
}

/// Runs of htsim on other matrices. Queues drop nothing here, and know at once what htsim's senders learn from acknowledgements.
#[test_with::shared]
fn own_runs_are_within_ten_percent() {
    for (case, matrix, routing) in [
        ("i16-nscc", "incast16", PacketRouting::Spray),
        ("i128-nscc", "incast128", PacketRouting::Spray),
        ("o16", "outcast16", PacketRouting::Spray),
        ("p128-oblivious", "perm128", PacketRouting::Spray),
        ("p128-reps", "perm128", PacketRouting::Spray),
        ("p128-mixed", "perm128", PacketRouting::Spray),
        ("p128-ar", "perm128", PacketRouting::Adaptive),
        ("p1024", "perm1024", PacketRouting::Spray),
    ] {
        let (messages, [least, most]) = own_run(case, matrix);
        let last = last_of(&messages, &parameters(routing));
        assert!(
            (0.9 * least..1.1 * most).contains(&last),
            "{case}: {last} us, expected {least} to {most} us"
        );
    }
}

/// One hashed path for each flow: htsim's seeds are within the spread of ours.
#[test_with::shared]
fn own_runs_with_hashed_paths_are_within_the_spread_of_seeds() {
    for (case, matrix) in [("p16-1", "perm16"), ("shift128-1", "shift128")] {
        let (messages, [least, most]) = own_run(case, matrix);
        let last = |seed| last_of(&messages, &PacketParameters { seed, ..parameters(PacketRouting::Ecmp) });
        let lasts: Vec<f64> = (1..=20).map(last).collect();
        assert!(
            lasts.iter().any(|&last| last < least) && lasts.iter().any(|&last| last > most),
            "{case}: {lasts:?}"
        );
    }
}

/// A slow link costs little where its share of packets is what it can carry, as htsim's senders find out.
#[test_with::shared]
fn a_slow_link_costs_little_by_weight() {
    let (messages, [least, most]) = own_run("p128-failed1", "perm128");
    let platform = network(&fat_tree(8), 12.5, 1000.0);
    let cable = platform.links().last().unwrap().name.strip_suffix("_DOWN").unwrap();
    let degraded = vec![DegradedLink { link: cable.to_owned(), rate: 0.25 }];
    let by_weight =
        PacketParameters { degraded, weights: Weights::Capacity, ..parameters(PacketRouting::Spray) };
    let last = last_of(&messages, &by_weight);
    assert!((0.9 * least..1.1 * most).contains(&last), "{last} us, expected {least} to {most} us");
    let blind = PacketParameters { weights: Weights::Equal, ..by_weight };
    assert!(last_of(&messages, &blind) > 1.1 * most);
}

/// Without weights, senders whose acknowledgements tell them of marks find out as htsim's do.
#[test_with::shared]
fn a_slow_link_costs_little_by_feedback() {
    let (messages, [least, most]) = own_run("p128-failed1", "perm128");
    let platform = network(&fat_tree(8), 12.5, 1000.0);
    let cable = platform.links().last().unwrap().name.strip_suffix("_DOWN").unwrap();
    let degraded = vec![DegradedLink { link: cable.to_owned(), rate: 0.25 }];
    let in_flight = Some(InFlight::Loop);
    let reps = PacketParameters { degraded, in_flight, ..parameters(PacketRouting::Reps) };
    let last = last_of(&messages, &reps);
    let blind = last_of(&messages, &PacketParameters { routing: PacketRouting::Spray, ..reps });
    assert!((0.9 * least..1.1 * most).contains(&last), "{last} us, expected {least} to {most} us");
    assert!(blind > 1.1 * most, "{blind} us");
}

#[test_with::shared]
fn an_own_oversubscribed_run_is_between_the_bound_and_htsim() {
    let (messages, [least, _]) = own_run("p128-4to1", "perm128");
    let bound = oracle::number("htsim.csv", "p128-4to1", "capacity_bound_us");
    let platform = network(&leaf_spine(8, 16, 4), 12.5, 1000.0);
    let (_, last) = acknowledged(&run(&platform, &parameters(PacketRouting::Spray), &messages.1), 4.0, 12.5);
    assert!((bound..least).contains(&last), "{last} us, between {bound} and {least} us");
}
