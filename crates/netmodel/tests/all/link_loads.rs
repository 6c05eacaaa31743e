//! Link loads, against figures derived by hand and against the messages sent.

use netmodel::{
    EpochNetwork, FlowNetwork, HostId, LinkLoad, LinkLoads, Message, NetworkModel, NetworkParameters,
    Platform, Preset, Regions, Sharing,
};
use pdes_core::{Bytes, SimDuration, SimTime};
use proptest::prelude::*;

/// Links of 1 GB/s (a byte per nanosecond) and 1 us.
fn platform(shape: &str) -> Platform {
    let text = format!("[topology]\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n{shape}\n");
    Platform::from_toml(&text, "test.toml").unwrap()
}

const FLAT: &str = "kind = \"cluster\"\nhosts = 4";
const SHAPES: [&str; 3] = [
    FLAT,
    "kind = \"fat_tree\"\nlevels = [{ children = 4, parents = 1 }, { children = 4, parents = 2 }]\nlimiter = \"3GBps\"",
    "kind = \"torus\"\ndims = [4, 2, 2]\nloopback = { bandwidth = \"2GBps\", latency = \"100ns\" }",
];

fn raw() -> NetworkParameters {
    NetworkParameters::preset(Preset::Raw)
}

fn epochs<'p>(platform: &'p Platform, parameters: &NetworkParameters) -> EpochNetwork<'p, usize> {
    let regions = Regions::with_count(platform, 2);
    let epoch = regions.lookahead(platform, parameters).unwrap();
    EpochNetwork::new(platform, parameters, regions, epoch).unwrap()
}

/// Sends messages, by host, host, size and time [ns], and runs to their end; returns the loads until then and so much longer.
macro_rules! loads {
    ($network:expr, $messages:expr, $longer:expr) => {{
        let mut network = $network.with_link_loads();
        for (tag, &(src, dst, bytes, nanos)) in $messages.iter().enumerate() {
            let at = SimTime::from_picos(nanos * 1000);
            network
                .send(Message::new(at, HostId::new(src), HostId::new(dst), Bytes::new(bytes), tag))
                .unwrap();
        }
        let mut done = Vec::new();
        while network.next_event().is_some() {
            network.advance(&mut done);
        }
        assert_eq!(done.len(), $messages.len());
        let end = network.now().saturating_add(SimDuration::from_picos($longer * 1000));
        (network.link_loads(end), end)
    }};
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs().max(1e-3)
}

/// Two messages of 998,000 bytes share the link of host 2 from 2 us on, until 1.998 ms; then nothing happens for as long.
#[test]
fn the_bottleneck_link_is_recorded() {
    let platform = platform(FLAT);
    let messages = [(0, 2, 998_000, 0), (1, 2, 998_000, 0)];
    let (exact, end) = loads!(FlowNetwork::new(&platform, &raw()), messages, 1_998_000);
    let (in_epochs, end_in_epochs) = loads!(epochs(&platform, &raw()), messages, 1_998_000);
    for (loads, end) in [(exact.unwrap(), end), (in_epochs.unwrap(), end_in_epochs)] {
        let name = |load: &LinkLoad| platform.link(load.link).name.clone();
        let [one, other, shared] = &loads.links[..] else { panic!("{loads:?}") };
        assert_ne!(name(one), name(shared));
        for load in [one, other] {
            assert_eq!((load.bytes, load.saturated), (998_000, SimDuration::ZERO));
            assert!(close(load.utilisation, 998_000.0 * 1000.0 / end.as_picos() as f64), "{load:?}");
        }
        assert_eq!(shared.bytes, 2 * 998_000);
        // In epochs the link is evaluated at the next boundary only.
        let back = shared.saturated.as_picos().abs_diff(1_996_000_000);
        assert!(back <= 4_000_000, "{loads:?}");
        let (bin, bins) = (loads.bin.as_picos(), shared.series.len());
        assert_eq!(bins as u64, end.as_picos().div_ceil(bin));
        assert!(bins > 60 && bins <= 128);
        assert!(shared.series[1..bins / 2 - 2].iter().all(|&load| close(load, 1.0)), "{shared:?}");
        assert!(one.series[1..bins / 2 - 2].iter().all(|&load| close(load, 0.5)), "{one:?}");
        let after = &shared.series[bins / 2 + 2..];
        assert!(after.iter().all(|&load| load == 0.0), "{shared:?}");
    }
}

/// A single message has a bottleneck, but slows down no other.
#[test]
fn a_message_alone_waits_for_nobody() {
    let platform = platform(FLAT);
    let (loads, _) = loads!(FlowNetwork::new(&platform, &raw()), [(0, 3, 5000, 10)], 0);
    let loads = loads.unwrap();
    assert_eq!(loads.links.len(), 2);
    assert!(loads.links.iter().all(|load| load.saturated == SimDuration::ZERO && load.bytes == 5000));
}

#[test]
fn nothing_is_recorded_by_default() {
    let platform = platform(FLAT);
    let end = SimTime::from_picos(1000);
    assert_eq!(FlowNetwork::<usize>::new(&platform, &raw()).link_loads(end), None);
    assert_eq!(epochs(&platform, &raw()).link_loads(end).unwrap().links, []);
}

fn check(platform: &Platform, messages: &[(u32, u32, u64, u64)], loads: &LinkLoads, end: SimTime, most: f64) {
    let mut expected = vec![0; platform.links().len()];
    let mut route = Vec::new();
    for &(src, dst, bytes, _) in messages {
        platform.route(HostId::new(src), HostId::new(dst), &mut route).unwrap();
        route.iter().for_each(|link| expected[link.index()] += bytes);
    }
    let is_shared = |number: &usize| platform.links()[*number].sharing == Sharing::Shared;
    let used = (0..expected.len()).filter(|number| expected[*number] > 0).filter(is_shared);
    assert_eq!(
        loads.links.iter().map(|load| load.link.index()).collect::<Vec<_>>(),
        used.collect::<Vec<_>>()
    );
    let (bin, picos) = (loads.bin.as_picos() as f64, end.as_picos() as f64);
    for load in &loads.links {
        assert_eq!(load.bytes, expected[load.link.index()]);
        let capacity = platform.link(load.link).bandwidth / 1e12;
        // Rates in epochs are rounded to a unit of about 1 B/s.
        let carried = load.utilisation * capacity * picos;
        assert!((carried - load.bytes as f64).abs() <= 1e-3 * load.bytes as f64 + 1.0, "{load:?}");
        let last = picos - bin * (load.series.len() - 1) as f64;
        let (series, rest) = load.series.split_at(load.series.len() - 1);
        let sum = series.iter().sum::<f64>() * bin + rest[0] * last;
        assert!(close(sum * capacity, carried), "{load:?}");
        // Times are whole picoseconds: of a short last bin, one is a large part.
        assert!(series.iter().all(|&load| load <= most) && rest[0] <= most + 1.0 / last, "{load:?}");
        assert!(load.saturated <= end - SimTime::ZERO);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Links carry what is sent over them, and no more than they can.
    #[test]
    fn links_carry_what_is_sent(
        shape in 0..SHAPES.len(),
        messages in proptest::collection::vec((0_u32..4, 0_u32..4, 1_u64..300_000, 0_u64..400_000), 1..40),
    ) {
        let platform = platform(SHAPES[shape]);
        let messages: Vec<_> = messages.into_iter().filter(|message| message.0 != message.1).collect();
        prop_assume!(!messages.is_empty());
        let (exact, end) = loads!(FlowNetwork::new(&platform, &raw()), messages, 0);
        check(&platform, &messages, &exact.unwrap(), end, 1.0 + 1e-6);
        // Provisional rates may be too high for an epoch, which later epochs compensate.
        let (in_epochs, end) = loads!(epochs(&platform, &raw()), messages, 0);
        check(&platform, &messages, &in_epochs.unwrap(), end, 4.0);
    }

    /// A link that is full carries its capacity: it is full no longer than it takes to carry at its capacity what it carries.
    #[test]
    fn full_links_carry_their_capacity(
        shape in 1..SHAPES.len(),
        preset in prop::sample::select(vec![Preset::Raw, Preset::Smpi]),
        messages in proptest::collection::vec((0_u32..16, 0_u32..16, 1_u64..300_000, 0_u64..400_000), 1..200),
    ) {
        let platform = platform(SHAPES[shape]);
        let parameters = NetworkParameters::preset(preset);
        let (exact, end) = loads!(FlowNetwork::new(&platform, &parameters), messages, 0);
        let (in_epochs, end_in_epochs) = loads!(epochs(&platform, &parameters), messages, 0);
        for (loads, end) in [(exact.unwrap(), end), (in_epochs.unwrap(), end_in_epochs)] {
            for load in &loads.links {
                let full = load.saturated.as_secs_f64() / end.as_secs_f64();
                prop_assert!(full <= load.utilisation * (1.0 + 1e-6), "full for {full} of the time: {load:?}");
            }
        }
    }
}
