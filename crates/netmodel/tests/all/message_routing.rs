//! Messages that choose their routes: throughputs in closed form, ways, state.

use netmodel::{
    FlowNetwork, HostId, Message, MessageRouting, NetworkModel, NetworkParameters, Platform, Preset,
};
use pdes_core::{Bytes, SimTime, load_state, save_state};

/// A dragonfly of `groups` groups of one router for each other group, a host at each; cables of 1 GB/s and 1 us.
fn dragonfly(groups: u32) -> Platform {
    platform(&format!("kind = 'dragonfly', groups = {groups}, chassis = 1, blades = {groups}, nodes = 1"))
}

fn platform(topology: &str) -> Platform {
    let rates = "speed = '1Gf', bandwidth = '1GBps', latency = '1us'";
    Platform::from_toml(&format!("topology = {{ {topology}, {rates} }}"), "test").unwrap()
}

fn parameters(routing: MessageRouting, routing_seed: u64) -> NetworkParameters {
    NetworkParameters { routing, routing_seed, ..NetworkParameters::preset(Preset::Raw) }
}

/// Sends messages of a megabyte from each host to that of a group further on with the same place.
fn adversarial(network: &mut FlowNetwork<'_, u32>, (groups, of_group): (u32, u32), rounds: u32) {
    let hosts = groups * of_group;
    for message in 0..hosts * rounds {
        let src = message % hosts;
        let [src, dst] = [src, (src + of_group) % hosts].map(HostId::new);
        network.send(Message::new(SimTime::ZERO, src, dst, Bytes::new(1_000_000), message)).unwrap();
    }
}

/// Returns the completions, in order.
pub(crate) fn finish(network: &mut FlowNetwork<'_, u32>) -> Vec<(SimTime, u32)> {
    let (mut ends, mut done) = (Vec::new(), Vec::new());
    while network.next_event().is_some() {
        network.advance(&mut done);
        let now = network.now();
        ends.extend(done.drain(..).map(|message| (now, message)));
    }
    ends
}

/// Bytes of a group over the time until its last message arrives, in multiples of a cable's bandwidth.
fn throughput(routing: MessageRouting, groups: u32) -> f64 {
    let platform = dragonfly(groups);
    let parameters = parameters(routing, 1);
    let mut network = FlowNetwork::new(&platform, &parameters);
    adversarial(&mut network, (groups, groups), 8);
    let (end, _) = *finish(&mut network).last().unwrap();
    f64::from(8 * groups) * 1e6 / (end.as_secs_f64() - 1e-5) / 1e9
}

/// All messages of a group for the next one: 1 cable's bandwidth by shortest ways. Over third groups at most the `g - 2` cables to these,
/// each of which carries two parts of ways.
#[test]
fn dragonflies_under_adversarial_traffic_reach_their_bounds() {
    let groups = 9;
    let minimal = throughput(MessageRouting::Minimal, groups);
    assert!((0.999..1.02).contains(&minimal), "{minimal}");
    let bound = f64::from(groups - 2) / 2.0;
    let valiant = throughput(MessageRouting::Valiant, groups);
    assert!((0.5 * bound..=bound).contains(&valiant), "{valiant} of {bound}");
    let ugal = throughput(MessageRouting::Ugal, groups);
    assert!((0.5 * bound..=bound + 1.0).contains(&ugal), "{ugal} of {bound}");
}

/// Without other messages the shortest way costs least: two hops of 1 us between groups, and those of hosts.
#[test]
fn ugal_takes_the_shortest_way_of_an_idle_network() {
    let platform = dragonfly(5);
    let mut times = [MessageRouting::Minimal, MessageRouting::Ugal, MessageRouting::Valiant].map(|routing| {
        let parameters = parameters(routing, 1);
        let mut network = FlowNetwork::new(&platform, &parameters);
        let [src, dst] = [0, 7].map(HostId::new);
        network.send(Message::new(SimTime::ZERO, src, dst, Bytes::new(1000), 0)).unwrap();
        finish(&mut network)[0].0
    });
    assert_eq!(times[0], times[1]);
    times.sort_unstable();
    assert!(times[2] > times[0], "over a third group it takes longer");
}

/// Ways of Valiant differ by seed, and not otherwise; they are paths of the links between both hosts in every topology that has some.
#[test]
fn ways_depend_on_the_seed_alone() {
    for (topology, groups, of_group) in [
        ("kind = 'dragonfly', groups = 4, chassis = 2, blades = 4, nodes = 2", 4, 16),
        ("kind = 'torus', dims = [4, 4, 2]", 4, 8),
        ("kind = 'hyperx', dims = [3, 3], nodes = 2", 3, 6),
    ] {
        let platform = platform(topology);
        assert!(platform.has_indirect_routes(), "{topology}");
        let ends = |seed| {
            let parameters = parameters(MessageRouting::Valiant, seed);
            let mut network = FlowNetwork::new(&platform, &parameters);
            adversarial(&mut network, (groups, of_group), 2);
            finish(&mut network)
        };
        assert_eq!(ends(1), ends(1), "{topology}");
        assert_ne!(ends(1), ends(2), "{topology}");
    }
    for topology in
        ["kind = 'cluster', hosts = 8", "kind = 'dragonfly', groups = 2, chassis = 1, blades = 2, nodes = 2"]
    {
        assert!(!platform(topology).has_indirect_routes(), "{topology}");
    }
}

/// A network that was saved at any event and loaded goes on as the other: loads of links and turns of pairs are in its state.
#[test]
fn a_loaded_network_chooses_as_the_saved_one() {
    let platform = dragonfly(5);
    let parameters = parameters(MessageRouting::Ugal, 1);
    for events in 0..30 {
        let mut network = FlowNetwork::new(&platform, &parameters);
        adversarial(&mut network, (5, 5), 3);
        for _ in 0..events {
            network.next_event();
            network.advance(&mut Vec::new());
        }
        network.next_event();
        let bytes = save_state(&mut network).unwrap();
        let mut loaded = FlowNetwork::new(&platform, &parameters);
        assert_eq!(load_state(&mut loaded, &bytes), Ok(()));
        for network in [&mut network, &mut loaded] {
            network
                .send(Message::new(network.now(), HostId::new(1), HostId::new(8), Bytes::new(5000), 99))
                .unwrap();
        }
        assert_eq!(finish(&mut loaded), finish(&mut network), "after {events} events");
    }
}
