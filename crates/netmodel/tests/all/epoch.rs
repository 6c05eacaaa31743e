//! Messages in epochs, against times derived by hand and against the exact model.

use netmodel::epoch::EpochError;
use netmodel::{
    EpochNetwork, FlowNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset,
    RegionError, Regions,
};
use pdes_core::{Bytes, SimDuration, SimTime};
use proptest::prelude::*;

/// Hosts of two cores of 1 Gflop/s, on links of 1 GB/s (a byte per nanosecond) and 1 us.
fn platform(shape: &str) -> Platform {
    let text = format!(
        "[topology]\nspeed = \"1Gf\"\ncores = 2\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n{shape}\n"
    );
    Platform::from_toml(&text, "test.toml").unwrap()
}

const FLAT: &str = "kind = \"cluster\"\nhosts = 8";
const SHAPES: [&str; 6] = [
    FLAT,
    "kind = \"cluster\"\nhosts = 16\nbackbone = { bandwidth = \"4GBps\", latency = \"1us\", sharing = \"fat_pipe\" }\nlimiter = \"1.5GBps\"",
    "kind = \"fat_tree\"\nlevels = [{ children = 4, parents = 1 }, { children = 4, parents = 2 }]\nlimiter = \"3GBps\"",
    "kind = \"torus\"\ndims = [4, 2, 2]\nlimiter = \"1.5GBps\"\nloopback = { bandwidth = \"2GBps\", latency = \"100ns\" }",
    "kind = \"dragonfly\"\ngroups = 4\nchassis = 1\nblades = 4\nnodes = 1\nloopback = { bandwidth = \"2GBps\", latency = \"0s\" }",
    "kind = \"dragonfly\"\ngroups = 2\nchassis = 2\nblades = 2\nnodes = 2",
];

fn raw() -> NetworkParameters {
    NetworkParameters::preset(Preset::Raw)
}

fn host(number: u32) -> HostId {
    HostId::new(number)
}

fn nanos(count: u64) -> SimTime {
    SimTime::from_picos(count * 1000)
}

fn epoch(nanos: u64) -> SimDuration {
    SimDuration::from_picos(nanos * 1000)
}

/// Two regions of half of the hosts each.
fn halves(platform: &Platform, nanos: u64) -> EpochNetwork<'_, usize> {
    EpochNetwork::new(platform, &raw(), Regions::with_count(platform, 2), epoch(nanos)).unwrap()
}

macro_rules! finish {
    ($network:expr, $tags:expr) => {{
        let mut network = $network;
        let mut ends = vec![SimTime::MAX; $tags];
        let mut done = Vec::new();
        while network.next_event().is_some() {
            network.advance(&mut done);
            done.drain(..).for_each(|tag: usize| ends[tag] = network.now());
        }
        ends
    }};
}

/// Two links of 1 us, then 1000 bytes at one per nanosecond.
#[test]
fn a_single_message_takes_the_same_time_without_epochs() {
    let platform = platform(FLAT);
    for dst in [1, 7] {
        let mut network = halves(&platform, 2000);
        network.send(Message::new(nanos(300), host(0), host(dst), Bytes::new(1000), 0)).unwrap();
        assert_eq!(finish!(network, 1), [nanos(3300)]);
    }
}

/// A flow that ends in the epoch lets a link carry more than its capacity at the boundary, though the link is not
/// full; the check of each boundary must allow this.
#[test]
fn a_link_with_room_only_for_what_leaves() {
    let platform = platform(SHAPES[5]);
    let mut network =
        EpochNetwork::new(&platform, &raw(), Regions::with_count(&platform, 1), epoch(500)).unwrap();
    let messages =
        [(0, 4, 1, 10_899), (0, 2, 0, 1982), (0, 2, 0, 8323), (0, 2, 4, 5794), (11_251, 4, 0, 125)];
    for (tag, (at, src, dst, size)) in messages.into_iter().enumerate() {
        network.send(Message::new(nanos(at), host(src), host(dst), Bytes::new(size), tag)).unwrap();
    }
    assert!(finish!(network, 5).iter().all(|&end| end < SimTime::MAX));
}

/// Rates are rounded to a unit of about 1 B/s, times to a picosecond.
fn assert_close(ends: &[SimTime], expected: &[SimTime]) {
    for (end, expected) in ends.iter().zip(expected) {
        assert!(end.as_picos().abs_diff(expected.as_picos()) <= 3, "{end} s, expected {expected} s");
    }
}

/// Both begin in the epoch from 2 to 4 us, the second 500 ns after the first, and that is known at 2 us. Sharing the link, the
/// first would send 500 bytes alone and 750 beside the second: 0.625 bytes per nanosecond in the mean; the second 750 in
/// 1500 ns. At 4 us the second has 250 bytes left and keeps its half until it ends, at 4.5 us. That is an eighth of the link in
/// the epoch until 6 us; the first has the other seven and sends 1750 bytes. With its last 1000 it ends before the next boundary, so that
/// it goes on with seven eighths, for 1142.857 ns.
#[test]
fn flows_begin_at_their_mean_rates() {
    let platform = platform(FLAT);
    for there in [1, 5] {
        let mut network = halves(&platform, 2000);
        network.send(Message::new(nanos(0), host(0), host(there), Bytes::new(4000), 0)).unwrap();
        network.send(Message::new(nanos(500), host(0), host(there + 1), Bytes::new(1000), 1)).unwrap();
        assert_close(&finish!(network, 2), &[SimTime::from_picos(7_142_857), nanos(4500)]);
    }
}

/// The first begins at 2 us with all of the link, alone. At 4 us it is known that the second begins at 5 us, which may have a
/// half then: a quarter of the epoch until 6 us. So the first goes on with three quarters, and has 2500 of 6000 bytes left at 6 us,
/// when the second has 500 of its 1000. Then that keeps its half until it ends at 7 us, a quarter of the epoch until 8 us; the first has three
/// quarters, also for the 1000 bytes that it has left then, because it ends before the next boundary.
#[test]
fn capacity_is_reserved_for_announced_flows() {
    let platform = platform(FLAT);
    let mut network = halves(&platform, 2000);
    network.send(Message::new(nanos(0), host(0), host(5), Bytes::new(6000), 0)).unwrap();
    network.send(Message::new(nanos(3000), host(0), host(6), Bytes::new(1000), 1)).unwrap();
    assert_close(&finish!(network, 2), &[SimTime::from_picos(9_333_333), nanos(7000)]);
}

/// Epochs of 4 us. The first begins at 4 us. That the second will begin at 6.5 us is not known then: the first goes on with all of the link
/// until 8 us. Half of it would be 750 bytes too much for the second; it gets a twelfth of the 4000 bytes of the epoch until then. At 8 us it has
/// 4041.667 bytes left. The link compensates with 333.333 of the next 4000, so that each sends 1833.333, then 2000 until 16 us, when
/// the second has 208.333 left and goes on with its half. The first has the rest.
#[test]
fn excess_load_is_compensated() {
    let platform = platform(FLAT);
    let mut network = EpochNetwork::new(&platform, &raw(), Regions::whole(&platform), epoch(4000)).unwrap();
    network.send(Message::new(nanos(2000), host(0), host(1), Bytes::new(15_625), 0)).unwrap();
    network.send(Message::new(nanos(4500), host(0), host(2), Bytes::new(4375), 1)).unwrap();
    assert_close(&finish!(network, 2), &[nanos(24_000), SimTime::from_picos(16_416_667)]);
}

#[test]
fn computations_share_cores_and_timers_end_on_time() {
    let platform = platform(FLAT);
    let mut network = halves(&platform, 2000);
    for tag in 0..3 {
        network.compute(nanos(100), host(6), 1000.0, tag);
    }
    network.schedule(nanos(700), 3);
    // Three computations of 1000 operations on two cores of one per nanosecond.
    assert_eq!(finish!(network, 4), [nanos(1600), nanos(1600), nanos(1600), nanos(700)]);
}

#[test]
fn an_epoch_is_not_longer_than_the_lookahead() {
    let platform = platform(SHAPES[2]);
    let leaves = Regions::natural(&platform);
    assert_eq!(leaves.count(), 4);
    assert_eq!(leaves.lookahead(&platform, &raw()), Some(epoch(4000)));
    let longer = EpochNetwork::<()>::new(&platform, &raw(), leaves, epoch(4001));
    let most = epoch(4000);
    assert_eq!(longer.err(), Some(EpochError::TooLong { found: epoch(4001), most, regions: 4 }));
    // Two hosts of one switch in two regions.
    assert_eq!(Regions::with_count(&platform, 8).lookahead(&platform, &raw()), Some(epoch(2000)));
    // One region has no limit.
    assert!(EpochNetwork::<()>::new(&platform, &raw(), Regions::whole(&platform), epoch(1 << 40)).is_ok());
    let none = EpochNetwork::<()>::new(&platform, &raw(), Regions::whole(&platform), epoch(0));
    assert_eq!(none.err(), Some(EpochError::Zero));
}

/// The compared pairs of hosts include one of the shortest.
#[test]
fn the_lookahead_is_that_of_the_closest_hosts_of_two_regions() {
    for shape in SHAPES {
        let platform = platform(shape);
        for count in 2..=8 {
            let regions = Regions::with_count(&platform, count);
            let hosts = platform.hosts().len() as u32;
            let pairs = (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (host(src), host(dst))));
            let mut route = Vec::new();
            let mut latency = |(src, dst)| {
                platform.route(src, dst, &mut route).unwrap();
                route.iter().map(|&link| (platform.link(link).latency * 1e9) as u64).sum::<u64>()
            };
            let two = pairs.clone().filter(|(src, dst)| src != dst);
            let shortest = two.map(&mut latency).min().unwrap();
            assert_eq!(platform.min_latency_phase(&raw()), Some(epoch(shortest)), "{shape}");
            let apart = pairs.filter(|&(src, dst)| regions.of_host(src) != regions.of_host(dst));
            let shortest = apart.map(latency).min().unwrap();
            assert_eq!(regions.lookahead(&platform, &raw()), Some(epoch(shortest)), "{shape}, {count}");
        }
    }
}

#[test]
fn a_file_names_the_region_of_each_host() {
    let platform = platform(FLAT);
    let names: Vec<&str> = platform.hosts().iter().map(|host| host.name.as_str()).collect();
    let line =
        |(number, name): (usize, &&str)| format!("{name} {}\n", if number % 2 == 0 { "even" } else { "odd" });
    let text: String = names.iter().enumerate().map(line).collect();
    let regions = Regions::from_text(&platform, &format!("# two\n\n{text}"), "regions.txt").unwrap();
    assert_eq!(regions.count(), 2);
    assert_eq!([0, 1, 2].map(|number| regions.of_host(host(number)).get()), [0, 1, 0]);
    let of = |text: &str| Regions::from_text(&platform, text, "regions.txt").unwrap_err();
    assert!(matches!(of(&format!("{} a", names[0])), RegionError::Missing { .. }));
    assert!(matches!(of("nobody a"), RegionError::UnknownHost { line: 1, .. }));
    assert!(matches!(of(names[0]), RegionError::Line { line: 1, .. }));
    let twice = format!("{0} a\n{0} a", names[0]);
    assert!(matches!(of(&twice), RegionError::Repeated { line: 2, .. }));
}

/// A message: when [ns], from, how many hosts further, size.
type Sent = (u64, u32, u32, u64);

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    proptest::collection::vec((0..20_000_u64, 0..8_u32, 1..8_u32, 1..100_000_u64), 1..40)
}

macro_rules! deliver {
    ($network:expr, $messages:expr) => {{
        let mut network = $network;
        for (tag, &(at, src, step, size)) in $messages.iter().enumerate() {
            let dst = (src + step) % 8;
            network.send(Message::new(nanos(at), host(src), host(dst), Bytes::new(size), tag)).unwrap();
        }
        finish!(network, $messages.len())
    }};
}

fn error(exact: &[SimTime], found: &[SimTime]) -> f64 {
    let ends = exact.iter().zip(found);
    ends.map(|(one, other)| one.as_picos().abs_diff(other.as_picos()) as f64).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// No event is ever later or earlier than a few epochs for each change of rates that it sees.
    #[test]
    fn short_epochs_tend_to_the_exact_model(shape in 0..SHAPES.len(), messages in messages()) {
        let platform = platform(SHAPES[shape]);
        let exact = deliver!(FlowNetwork::new(&platform, &raw()), messages);
        for nanos in [100, 10, 1] {
            let network =
                EpochNetwork::new(&platform, &raw(), Regions::with_count(&platform, 2), epoch(nanos)).unwrap();
            let error = error(&exact, &deliver!(network, messages));
            let most = (nanos * 1000) as f64 * 4.0 * messages.len() as f64;
            prop_assert!(error <= most, "{error} ps with epochs of {nanos} ns");
        }
    }

    #[test]
    fn runs_are_equal(shape in 0..SHAPES.len(), messages in messages(), count in 1..8_u32) {
        let platform = platform(SHAPES[shape]);
        let regions = || Regions::with_count(&platform, count);
        let run = || deliver!(EpochNetwork::new(&platform, &raw(), regions(), epoch(500)).unwrap(), messages);
        prop_assert_eq!(run(), run());
    }

    /// Alone, a message takes the same time as without epochs, for all parameters, up to a picosecond or two and the
    /// rounding of rates.
    #[test]
    fn presets_loopbacks_and_limiters_are_those_of_the_exact_model(
        shape in 3..5_usize,
        preset in prop_oneof![Just(Preset::Raw), Just(Preset::Lv08), Just(Preset::Cm02), Just(Preset::Smpi)],
        src in 0..8_u32,
        dst in 0..8_u32,
        size in 0..10_000_000_u64,
    ) {
        let platform = platform(SHAPES[shape]);
        let parameters = NetworkParameters { precision_s: 0.0, ..NetworkParameters::preset(preset) };
        let mut one = FlowNetwork::new(&platform, &parameters);
        one.send(Message::new(nanos(7), host(src), host(dst), Bytes::new(size), 0)).unwrap();
        let regions = Regions::with_count(&platform, 4);
        let mut other = EpochNetwork::new(&platform, &parameters, regions, epoch(1000)).unwrap();
        other.send(Message::new(nanos(7), host(src), host(dst), Bytes::new(size), 0)).unwrap();
        let (one, other) = (finish!(one, 1), finish!(other, 1));
        let (one, other) = (one[0].as_picos(), other[0].as_picos());
        prop_assert!(one.abs_diff(other) <= 3 + one / 100_000_000, "{one} and {other}");
    }
}
