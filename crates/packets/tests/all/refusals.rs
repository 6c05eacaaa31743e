//! What cannot be simulated is refused by name.

use netmodel::{GraphError, Platform, RoutingRule};
use packets::{PacketError, PacketMachine, PacketParameters, PacketRouting};

use crate::networks::network;

fn refusal(platform: &Platform, parameters: &PacketParameters) -> PacketError {
    let homes = vec![0; platform.hosts().len()];
    PacketMachine::new(platform, parameters, (&homes, 1)).unwrap_err()
}

#[test]
fn links_need_latency_and_two_directions() {
    let parameters = PacketParameters::default();
    let flat = network("kind = 'cluster', hosts = 3", 1.0, 0.0);
    let link = flat.links()[0].name.clone();
    assert_eq!(refusal(&flat, &parameters), PacketError::NoLatency { link });
    let shared = network("kind = 'cluster', hosts = 3, sharing = 'shared'", 1.0, 100.0);
    let link = shared.links()[0].name.clone();
    assert_eq!(refusal(&shared, &parameters), PacketError::Graph(GraphError::HalfDuplex { link }));
}

#[test]
fn routes_are_paths() {
    let shape =
        "kind = 'dragonfly', groups = 3, blue = 1, chassis = 2, black = 1, blades = 4, green = 1, nodes = 2";
    let mut dragonfly = network(shape, 1.0, 100.0);
    dragonfly.set_routing_rule(RoutingRule::Simgrid);
    let refused = refusal(&dragonfly, &PacketParameters::default());
    assert!(matches!(refused, PacketError::BrokenRoute { .. }), "{refused}");
}

#[test]
fn parameters_make_sense_on_the_platform() {
    let flat = network("kind = 'cluster', hosts = 3", 1.0, 100.0);
    let none = PacketParameters { packet_bytes: 0, ..PacketParameters::default() };
    assert_eq!(refusal(&flat, &none), PacketError::EmptyPackets);
    let long = PacketParameters { header_bytes: u32::MAX, ..PacketParameters::default() };
    assert_eq!(refusal(&flat, &long), PacketError::LongPackets { found: 4096 + u64::from(u32::MAX) });
    let spray = PacketParameters { routing: PacketRouting::Spray, ..PacketParameters::default() };
    assert_eq!(refusal(&flat, &spray), PacketError::NoChoice { routing: "spray".to_owned() });
}
