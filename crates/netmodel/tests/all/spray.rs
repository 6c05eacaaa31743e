//! Messages that are split over several routes: times in closed form, bytes, state.

use netmodel::{
    FlowNetwork, HostId, LinkId, Message, MessageRouting, NetworkModel, NetworkParameters, Platform, Preset,
    Resource, ResourceChange, RoutingRule,
};
use pdes_core::{Bytes, SimDuration, SimTime, load_state, save_state};

use crate::message_routing::finish;

/// Bytes of a message, and the time that a cable takes for them \[ps\].
const SIZE: u64 = 1_200_000;
const TIME: u64 = 1_200_000_000;

/// Four spines above four leaves of sixteen hosts, of which every fourth destination has the same spine.
const TREE: &str =
    "kind = 'fat_tree', levels = [{ children = 16, parents = 1 }, { children = 4, parents = 4 }]";
/// The same with two spines and two parallel cables to each.
const CABLES: &str =
    "kind = 'fat_tree', levels = [{ children = 16, parents = 1 }, { children = 4, parents = 2, cables = 2 }]";
/// A group for each of five; host `i` of a group at router `i / 6`.
const DRAGONFLY: &str = "kind = 'dragonfly', groups = 5, chassis = 1, blades = 5, nodes = 6";
/// Two units of 24 servers with two rails, four spines.
const RAILS: &str =
    "kind = 'rail_optimized', units = 2, servers = 24, rails = 2, spines = 4, cables = 1, local = 8";

fn platform(topology: &str, latency: &str) -> Platform {
    let rates = format!("speed = '1Gf', bandwidth = '1GBps', latency = '{latency}'");
    Platform::from_toml(&format!("topology = {{ {topology}, {rates} }}"), "test").unwrap()
}

fn parameters(routing: MessageRouting, routing_parts: u8) -> NetworkParameters {
    NetworkParameters { routing, routing_parts, ..NetworkParameters::preset(Preset::Raw) }
}

fn send(network: &mut FlowNetwork<'_, u32>, (src, dst): (u32, u32), size: u64, tag: u32) {
    let [src, dst] = [src, dst].map(HostId::new);
    network.send(Message::new(network.now(), src, dst, Bytes::new(size), tag)).unwrap();
}

/// Messages of `n` hosts whose routes have a cable in common take `n / k` times as long as one if they are split over `k` routes, which
/// have no other cable in common: the cable has `n` parts, and other cables have no more. Hosts send no faster than one cable.
#[test]
fn parts_share_what_routes_have_in_common() {
    let of_tree: Vec<(u32, u32)> = (0..6).map(|place| (place, 16 + 4 * place)).collect();
    let of_dragonfly: Vec<(u32, u32)> = (0..6).map(|place| (place, 36 + place)).collect();
    // Host 2 s + r is on rail r of server s.
    let of_rails: Vec<(u32, u32)> = (0..6).map(|place| (2 * place, 2 * (24 + 4 * place))).collect();
    for (topology, pairs) in
        [(TREE, &of_tree), (CABLES, &of_tree), (DRAGONFLY, &of_dragonfly), (RAILS, &of_rails)]
    {
        let platform = platform(topology, "0s");
        assert!(platform.has_several_routes(), "{topology}");
        for senders in [1, 2, 6] {
            for parts in [1, 2, 3, 4, 9] {
                let parameters = parameters(MessageRouting::Spray, parts);
                let mut network = FlowNetwork::new(&platform, &parameters);
                for (tag, &pair) in (0..).zip(&pairs[..senders]) {
                    send(&mut network, pair, SIZE, tag);
                }
                let ends = finish(&mut network);
                let routes = u64::from(parts.min(4));
                let expected = TIME.max(TIME * senders as u64 / routes);
                let last = ends.last().unwrap().0.as_picos();
                assert!(last.abs_diff(expected) <= 8, "{topology}: {senders}, {parts}: {last} of {expected}");
                let mut tags: Vec<u32> = ends.iter().map(|&(_, tag)| tag).collect();
                tags.sort_unstable();
                assert_eq!(tags, Vec::from_iter(0..senders as u32), "each message completes once");
            }
        }
    }
    assert!(!platform("kind = 'cluster', hosts = 8", "0s").has_several_routes());
}

#[test]
fn a_message_in_one_part_takes_the_route_of_the_platform() {
    for (topology, rule) in
        [(TREE, RoutingRule::Simgrid), (TREE, RoutingRule::Random), (DRAGONFLY, RoutingRule::Simgrid)]
    {
        let mut platform = platform(topology, "1us");
        platform.set_routing_rule(rule);
        let times = [(MessageRouting::Minimal, 4), (MessageRouting::Spray, 1)].map(|(routing, parts)| {
            let parameters = parameters(routing, parts);
            let mut network = FlowNetwork::new(&platform, &parameters);
            (0..24)
                .for_each(|tag| send(&mut network, (tag, (3 * tag + 29) % 64), 1000 + u64::from(tag), tag));
            finish(&mut network)
        });
        assert_eq!(times[0], times[1], "{topology}");
    }
}

/// Factors are those of the whole message, whatever the size of its parts: alone on equal routes it takes as long as in one part.
#[test]
fn parts_have_the_factors_of_the_whole_message() {
    let platform = platform(TREE, "1us");
    for size in [0, 1, 3, 1000, 5000, 100_001] {
        let times = [MessageRouting::Minimal, MessageRouting::Spray].map(|routing| {
            let preset = NetworkParameters::preset(Preset::Smpi);
            let mut network = FlowNetwork::new(&platform, &preset);
            let parameters = NetworkParameters { routing, ..preset.clone() };
            if routing == MessageRouting::Spray {
                network = FlowNetwork::new(&platform, &parameters);
            }
            send(&mut network, (0, 20), size, 0);
            finish(&mut network)[0].0.as_picos()
        });
        // The TCP window and the precision of a nanosecond leave no more.
        assert!(times[0].abs_diff(times[1]) <= 1000, "{size}: {times:?}");
    }
}

/// Links carry each byte once: the cables of hosts, and those of a leaf together.
#[test]
fn bytes_are_conserved() {
    let platform = platform(TREE, "1us");
    let parameters = parameters(MessageRouting::Spray, 3);
    let mut network = FlowNetwork::new(&platform, &parameters).with_link_loads();
    let sizes = [1_u64, 2, 3, 4, 1000, 12_345];
    for (place, &size) in (0..).zip(&sizes) {
        send(&mut network, (place, 16 + 4 * place), size, place);
    }
    let end = finish(&mut network).last().unwrap().0;
    let loads = network.link_loads(end).unwrap();
    let bytes_of = |links: &mut dyn Iterator<Item = usize>| -> u64 {
        let of_link = |link: usize| loads.links.iter().find(|load| load.link.index() == link);
        links.filter_map(of_link).map(|load| load.bytes).sum()
    };
    for (place, size) in (0..).zip(sizes) {
        assert_eq!(bytes_of(&mut [2 * place].into_iter()), size);
        assert_eq!(bytes_of(&mut [2 * (16 + 4 * place) + 1].into_iter()), size);
    }
    // Up-links of the first leaf: four cables after those of 64 hosts, two links each.
    let ups = (64..68).map(|cable| 2 * cable);
    assert_eq!(bytes_of(&mut ups.clone()), sizes.iter().sum::<u64>());
    assert!(ups.filter(|&link| bytes_of(&mut [link].into_iter()) > 0).count() > 1);
}

/// A network that was saved at any event and loaded goes on as the other, and messages in parts are pending once.
#[test]
fn a_loaded_network_completes_messages_in_parts() {
    let platform = platform(TREE, "1us");
    let parameters = parameters(MessageRouting::Spray, 3);
    for events in 0..30 {
        let mut network = FlowNetwork::new(&platform, &parameters);
        for tag in 0..24 {
            send(&mut network, (tag, (3 * tag + 29) % 64), 1000 * u64::from(tag), tag);
        }
        let mut done = Vec::new();
        for _ in 0..events {
            network.next_event();
            network.advance(&mut done);
        }
        network.next_event();
        done.extend(network.unfinished());
        done.sort_unstable();
        assert_eq!(done, Vec::from_iter(0..24), "after {events} events");
        let bytes = save_state(&mut network).unwrap();
        let mut loaded = FlowNetwork::new(&platform, &parameters);
        assert_eq!(load_state(&mut loaded, &bytes), Ok(()));
        for network in [&mut network, &mut loaded] {
            send(network, (1, 40), 5000, 99);
        }
        assert_eq!(finish(&mut loaded), finish(&mut network), "after {events} events");
    }
}

/// The cable of one part slows to an eighth when a quarter of the message is there: the rest of that part, at half of its share of the
/// host's cable, is last.
#[test]
fn a_message_waits_for_its_slowest_part() {
    let mut platform = platform(TREE, "0s");
    let change = ResourceChange {
        at: SimTime::from_picos(TIME / 4),
        resource: Resource::Bandwidth(LinkId::new(2 * 65)),
        value: 0.125e9,
    };
    platform.set_changes([change]).unwrap();
    let parameters = parameters(MessageRouting::Spray, 4);
    let mut network = FlowNetwork::new(&platform, &parameters);
    send(&mut network, (0, 16), SIZE, 0);
    let end = finish(&mut network)[0].0.as_picos();
    assert!(end.abs_diff(TIME / 4 + TIME * 3 / 2) <= 8, "{end}");
}

/// A message that is dropped leaves with all of its parts: the other one has the cables alone.
#[test]
fn a_dropped_message_leaves_with_its_parts() {
    let platform = platform(TREE, "0s");
    let parameters = parameters(MessageRouting::Spray, 2);
    let mut network = FlowNetwork::new(&platform, &parameters);
    // The same host sends both: each has half of its cable.
    send(&mut network, (0, 16), SIZE, 0);
    send(&mut network, (0, 20), SIZE, 1);
    network.next_event();
    let half = SimTime::ZERO + SimDuration::from_picos(TIME);
    network.abandon(half, |tag| tag == 0);
    assert_eq!(network.unfinished().collect::<Vec<_>>(), [1]);
    let ends = finish(&mut network);
    assert_eq!(ends.len(), 1);
    assert!(ends[0].0.as_picos().abs_diff(TIME + TIME / 2) <= 8, "{ends:?}");
}
