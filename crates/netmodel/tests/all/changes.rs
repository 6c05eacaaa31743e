//! Resources that change while messages and computations are under way.

use netmodel::epoch::EpochError;
use netmodel::{
    ContentionFree, EpochNetwork, FlowNetwork, HostId, LinkId, Message, NetworkModel, NetworkParameters,
    Platform, Preset, Regions, Resource, ResourceChange, UncontendedNetwork,
};
use pdes_core::{Bytes, SimDuration, SimTime};
use proptest::prelude::*;

const A: HostId = HostId::new(0);
const B: HostId = HostId::new(1);

/// Two hosts of 1 Gflop/s, joined by one link of 1 MB/s (a byte per microsecond) and 10 us.
fn pair() -> Platform {
    let text = r#"<platform version="4.1"><zone id="w" routing="Full">
        <host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>
        <link id="l" bandwidth="1MBps" latency="10us"/>
        <route src="a" dst="b"><link_ctn id="l"/></route>
    </zone></platform>"#;
    Platform::from_xml(text, "pair.xml").unwrap()
}

fn micros(count: u64) -> SimTime {
    SimTime::from_picos(count * 1_000_000)
}

fn change(at: u64, resource: Resource, value: f64) -> ResourceChange {
    ResourceChange { at: micros(at), resource, value }
}

fn bandwidth(at: u64, value: f64) -> ResourceChange {
    change(at, Resource::Bandwidth(LinkId::new(0)), value)
}

fn latency(at: u64, value: f64) -> ResourceChange {
    change(at, Resource::Latency(LinkId::new(0)), value)
}

fn speed(at: u64, host: HostId, value: f64) -> ResourceChange {
    change(at, Resource::Speed(host), value)
}

/// Runs to the end and returns when each tag is done, in microseconds.
fn finish(network: &mut impl NetworkModel<usize>, tags: usize) -> Vec<f64> {
    let mut ends = vec![f64::NAN; tags];
    let mut done = Vec::new();
    while network.next_event().is_some_and(|at| at < SimTime::MAX) {
        network.advance(&mut done);
        done.drain(..).for_each(|tag| ends[tag] = network.now().as_picos() as f64 / 1e6);
    }
    ends
}

fn send(network: &mut impl NetworkModel<usize>, at: u64, bytes: u64, tag: usize) {
    network.send(Message::new(micros(at), A, B, Bytes::new(bytes), tag)).unwrap();
}

/// 490 bytes in the 490 us before the change, and 510 in 1020 us.
#[test]
fn a_message_that_spans_a_change_is_served_at_both_rates() {
    let mut platform = pair();
    platform.set_changes([bandwidth(500, 0.5e6)]).unwrap();
    let parameters = NetworkParameters::preset(Preset::Raw);
    let mut flow = FlowNetwork::new(&platform, &parameters);
    send(&mut flow, 0, 1000, 0);
    assert_eq!(finish(&mut flow, 1), [1520.0]);
    let mut alone = UncontendedNetwork::new(&platform, &parameters);
    send(&mut alone, 0, 1000, 0);
    assert_eq!(finish(&mut alone, 1), [1520.0]);
}

/// Two messages share the link until it is off for 1000 us; the third one begins meanwhile, and all share it then.
#[test]
fn messages_wait_while_a_link_is_off() {
    let mut platform = pair();
    platform.set_changes([bandwidth(510, 0.0), bandwidth(1510, 1e6)]).unwrap();
    let mut network = FlowNetwork::new(&platform, &NetworkParameters::preset(Preset::Raw));
    send(&mut network, 0, 1000, 0);
    send(&mut network, 0, 1000, 1);
    send(&mut network, 600, 100, 2);
    // 250 bytes of each by 510 us; 100 of each in 300 us after 1510 us, then 650 of two.
    assert_eq!(finish(&mut network, 3), [3110.0, 3110.0, 1810.0]);
}

#[test]
fn work_on_what_is_off_for_good_does_not_end() {
    let mut platform = pair();
    platform.set_changes([bandwidth(510, 0.0), speed(0, A, 0.0)]).unwrap();
    let off: Vec<_> =
        platform.changes().off_for_good().map(|(resource, at)| (resource.describe(&platform), at)).collect();
    assert_eq!(
        off,
        [
            ("bandwidth of the link \"l\"".to_owned(), micros(510)),
            ("speed of the host \"a\"".to_owned(), micros(0))
        ]
    );
    let parameters = NetworkParameters::preset(Preset::Raw);
    let mut network = FlowNetwork::new(&platform, &parameters);
    send(&mut network, 0, 1000, 0);
    network.compute(micros(0), A, 1.0, 1);
    network.compute(micros(0), B, 1e3, 2);
    let ends = finish(&mut network, 3);
    assert!(ends[0].is_nan() && ends[1].is_nan() && ends[2] == 1.0, "{ends:?}");
    assert_eq!(network.next_event(), Some(SimTime::MAX));
    assert_eq!(platform.compute_time(A, 1.0, micros(0)), None);
    let model = ContentionFree::new(&parameters);
    let route = model.route(&platform, A, B).unwrap();
    assert_eq!(model.transfer(&platform, route, Bytes::new(1000), micros(0)), None);
}

/// Latency counts for messages that begin after the change, also at its instant.
#[test]
fn a_message_takes_the_latency_of_its_begin() {
    let mut platform = pair();
    platform.set_changes([latency(5, 30e-6)]).unwrap();
    for at in [4, 5] {
        let expected = [if at < 5 { 114.0 } else { 135.0 }];
        let parameters = NetworkParameters::preset(Preset::Raw);
        let mut flow = FlowNetwork::new(&platform, &parameters);
        send(&mut flow, at, 100, 0);
        assert_eq!(finish(&mut flow, 1), expected);
        let mut alone = UncontendedNetwork::new(&platform, &parameters);
        send(&mut alone, at, 100, 0);
        assert_eq!(finish(&mut alone, 1), expected);
    }
}

/// Three computations on two cores, of which each has 2/3 of a core.
#[test]
fn computations_that_share_cores_go_on_at_the_new_speed() {
    let text = "[topology]\nkind = \"cluster\"\nhosts = 2\nspeed = \"1Gf\"\ncores = 2\nbandwidth = \"1MBps\"\nlatency = \"0s\"\n";
    let mut platform = Platform::from_toml(text, "cores.toml").unwrap();
    platform.set_changes([speed(300, A, 2e9), speed(450, A, 0.0), speed(500, A, 1e9)]).unwrap();
    let mut network = FlowNetwork::new(&platform, &NetworkParameters::preset(Preset::Raw));
    (0..3).for_each(|tag| network.compute(micros(0), A, 500e3, tag));
    // 200 of 500 by 300 us, 200 more by 450, nothing until 500, and 100 in 150 us.
    assert_eq!(finish(&mut network, 3), [650.0; 3]);
}

/// Changes count from the next boundary on, at 1200 us.
#[test]
fn with_epochs_resources_change_at_boundaries() {
    let text = "[topology]\nkind = \"cluster\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1MBps\"\nlatency = \"200us\"\n";
    let mut platform = Platform::from_toml(text, "epochs.toml").unwrap();
    let mut links = Vec::new();
    platform.route(A, B, &mut links).unwrap();
    let resource = Resource::Bandwidth(links[0]);
    platform.set_changes([change(900, resource, 0.5e6), change(1100, Resource::Speed(A), 2e9)]).unwrap();
    let parameters = NetworkParameters::preset(Preset::Raw);
    let epoch = SimDuration::from_picos(400_000_000);
    let regions = |platform: &Platform| Regions::with_count(platform, 4);
    let mut network = EpochNetwork::new(&platform, &parameters, regions(&platform), epoch).unwrap();
    send(&mut network, 0, 1000, 0);
    network.compute(micros(0), A, 1.6e6, 1);
    // From 400 us on 800 bytes until the boundary at 1200 us, then 200 in 400 us.
    let ends = finish(&mut network, 2);
    assert!((ends[0] - 1600.0).abs() < 1e-2, "{ends:?}");
    assert_eq!(ends[1], 1400.0);
    platform.set_changes([change(900, resource, 0.0)]).unwrap();
    let refused = EpochNetwork::<usize>::new(&platform, &parameters, regions(&platform), epoch).unwrap_err();
    assert!(matches!(refused, EpochError::Off { at, .. } if at == micros(900)), "{refused}");
}

fn preset() -> impl Strategy<Value = Preset> {
    prop_oneof![Just(Preset::Raw), Just(Preset::Smpi), Just(Preset::Cm02)]
}

proptest! {
    /// A message alone takes the same time with contention and without, whatever changes.
    #[test]
    fn contention_makes_no_difference_to_one_message(
        preset in preset(),
        sizes in prop::collection::vec(0_u64..3_000_000, 1..4),
        changes in prop::collection::vec((0_u64..6_000, 0_u32..3, 0_u32..5), 0..12),
    ) {
        let mut platform = pair();
        let changes = changes.into_iter().map(|(at, kind, size)| match kind {
            0 => bandwidth(at, f64::from(size) * 0.7e6),
            1 => latency(at, f64::from(size) * 30e-6),
            _ => speed(at, A, f64::from(size) * 0.4e9),
        });
        let end = [bandwidth(7_000, 1e6), speed(7_000, A, 1e9)];
        platform.set_changes(changes.chain(end)).unwrap();
        let parameters = NetworkParameters { precision_s: 0.0, ..NetworkParameters::preset(preset) };
        for size in sizes {
            let mut flow = FlowNetwork::new(&platform, &parameters);
            let mut alone = UncontendedNetwork::new(&platform, &parameters);
            let ends = [submit(&mut flow, size), submit(&mut alone, size)];
            for (flow, alone) in ends[0].iter().zip(&ends[1]) {
                prop_assert!((flow - alone).abs() <= 1e-5 + 1e-12 * alone, "{} and {}", flow, alone);
            }
        }
    }
}

/// Sends a message and computes, and returns the ends of both.
fn submit(network: &mut impl NetworkModel<usize>, size: u64) -> Vec<f64> {
    send(network, size % 5_000, size, 0);
    network.compute(micros(size % 3_000), A, size as f64, 1);
    finish(network, 2)
}
