//! What cannot be simulated is refused by name.

use netmodel::{GraphError, Platform, RouteError, RoutingRule};
use packets::{Congestion, InFlight, PacketError, PacketMachine, PacketParameters, PacketRouting, Queues};

use crate::networks::{fat_tree, network};

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
    for [groups, chassis, blades, nodes] in [[3, 2, 4, 2], [4, 2, 4, 2], [1, 3, 2, 1], [8, 4, 8, 4]] {
        let shape = format!(
            "kind = 'dragonfly', groups = {groups}, blue = 1, chassis = {chassis}, black = 1, blades = {blades}, green = 1, nodes = {nodes}"
        );
        let mut dragonfly = network(&shape, 1.0, 100.0);
        dragonfly.set_routing_rule(RoutingRule::Simgrid);
        let refused = refusal(&dragonfly, &PacketParameters::default());
        assert!(matches!(refused, PacketError::Route(RouteError::Broken { .. })), "{refused} in {shape}");
    }
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

#[test]
fn credits_need_room_and_channels() {
    let torus = network("kind = 'torus', dims = [5, 4]", 1.0, 100.0);
    let credits =
        PacketParameters { queues: Queues::Credits, header_bytes: 4, ..PacketParameters::default() };
    let small = PacketParameters { buffer_bytes: 4099, ..credits.clone() };
    assert_eq!(refusal(&torus, &small), PacketError::SmallBuffers { found: 4099, packet: 4100 });
    let one = PacketParameters { virtual_channels: Some(1), ..credits.clone() };
    let routing = || "minimal".to_owned();
    assert_eq!(refusal(&torus, &one), PacketError::FewChannels { routing: routing(), needed: 2, found: 1 });
    let many = PacketParameters { virtual_channels: Some(65), ..credits };
    assert_eq!(refusal(&torus, &many), PacketError::BadChannels { found: 65, most: 64 });
}

#[test]
fn windows_need_output_queues_and_a_limit() {
    let flat = network("kind = 'cluster', hosts = 3", 1.0, 100.0);
    let unlimited = PacketParameters { in_flight: Some(InFlight::Unlimited), ..PacketParameters::default() };
    for (congestion, name) in [(Congestion::Dctcp, "dctcp"), (Congestion::Dcqcn, "dcqcn")] {
        let credits = PacketParameters { queues: Queues::Credits, congestion, ..PacketParameters::default() };
        let unlimited = PacketParameters { congestion, ..unlimited.clone() };
        for parameters in [credits, unlimited] {
            let error = refusal(&flat, &parameters);
            assert_eq!(error, PacketError::NoMarks { congestion: name });
            assert!(error.to_string().contains(&format!("congestion = {name:?} sets")), "{error}");
        }
    }
    let of_receivers = PacketParameters { congestion: Congestion::ReceiverCredits, ..unlimited };
    assert_eq!(refusal(&flat, &of_receivers), PacketError::NoFirstWindow);
}

#[test]
fn feedback_needs_marks_and_acknowledgements() {
    let tree = network(&fat_tree(4), 1.0, 100.0);
    let reps = PacketParameters { routing: PacketRouting::Reps, ..PacketParameters::default() };
    let credits =
        PacketParameters { queues: Queues::Credits, in_flight: Some(InFlight::Loop), ..reps.clone() };
    let unlimited = PacketParameters { in_flight: Some(InFlight::Unlimited), ..reps.clone() };
    let of_receivers = PacketParameters { congestion: Congestion::ReceiverCredits, ..reps };
    for parameters in [credits, unlimited, of_receivers] {
        assert_eq!(refusal(&tree, &parameters), PacketError::NoFeedback);
    }
}

#[test]
fn pauses_are_times() {
    for (gap, found) in [(-1e-6, "-0.000001"), (f64::NAN, "NaN")] {
        let parameters = PacketParameters { flowlet_gap: gap, ..PacketParameters::default() };
        let refused = refusal(&network("kind = 'cluster', hosts = 3", 1.0, 100.0), &parameters);
        assert_eq!(refused, PacketError::BadGap { found: found.to_owned() });
    }
}

#[test]
fn routings_of_dragonflies_need_groups_and_credits() {
    let of = |routing, queues| PacketParameters { routing, queues, ..PacketParameters::default() };
    let flat = network("kind = 'cluster', hosts = 3", 1.0, 100.0);
    let valiant = of(PacketRouting::Valiant, Queues::Fifo);
    assert_eq!(refusal(&flat, &valiant), PacketError::NoGroups { routing: "valiant".to_owned() });
    let torus = network("kind = 'torus', dims = [5, 4]", 1.0, 100.0);
    let ugal = refusal(&torus, &of(PacketRouting::UgalL, Queues::Credits));
    assert_eq!(ugal, PacketError::NoGroups { routing: "ugal-l".to_owned() });
    let remedies = [PacketRouting::Ecmp, PacketRouting::Spray, PacketRouting::Adaptive];
    for routing in remedies {
        assert!(ugal.to_string().contains(&format!("{:?}", routing.name())), "{ugal}");
        let homes = vec![0; torus.hosts().len()];
        assert!(PacketMachine::new(&torus, &of(routing, Queues::Credits), (&homes, 1)).is_ok());
    }
    let shape =
        "kind = 'dragonfly', groups = 3, blue = 1, chassis = 1, black = 1, blades = 2, green = 1, nodes = 1";
    let dragonfly = network(shape, 1.0, 100.0);
    for (routing, name) in
        [(PacketRouting::UgalL, "ugal-l"), (PacketRouting::UgalG, "ugal-g"), (PacketRouting::Par, "par")]
    {
        let refused = refusal(&dragonfly, &of(routing, Queues::Fifo));
        assert_eq!(refused, PacketError::BlindRouting { routing: name.to_owned() });
    }
    // The routers of the first group are in two regions.
    let homes = ([0, 1, 0, 0, 0, 0], 2);
    let parameters = of(PacketRouting::UgalG, Queues::Credits);
    let refused = PacketMachine::new(&dragonfly, &parameters, (&homes.0, homes.1)).unwrap_err();
    assert_eq!(refused, PacketError::DividedGroup { group: 0 });
}
