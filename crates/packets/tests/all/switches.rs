//! Networks of switches with shortest routes: channels that do not wait in a circle, and deliveries.

use packets::{InFlight, PacketError, PacketMachine, PacketParameters, PacketRouting, Queues};

use crate::driver::{Sent, machine, run};
use crate::networks::network;

/// Topologies, hosts, and the virtual channels of `minimal`, of routings over third switches, if there are some, and of `spray`, where pairs
/// have several shortest ways.
const NETWORKS: [(&str, u32, [Option<u32>; 3]); 6] = [
    ("kind = 'hyperx', dims = [3, 3], cables = 2, nodes = 2", 18, [Some(1), Some(4), Some(2)]),
    ("kind = 'slim_fly', order = 3, nodes = 1", 18, [Some(2), Some(4), Some(2)]),
    ("kind = 'polarfly', order = 3, nodes = 1", 13, [Some(2), Some(4), None]),
    ("kind = 'jellyfish', switches = 12, degree = 4, nodes = 1", 12, [Some(3), Some(6), Some(3)]),
    (
        "kind = 'dragonfly_plus', groups = 3, leaves = 2, spines = 2, cables = 2, nodes = 2",
        12,
        [Some(1), Some(2), Some(1)],
    ),
    ("kind = 'rail_optimized', units = 2, servers = 2, rails = 3, spines = 2", 12, [Some(1), None, Some(1)]),
];

/// The graph of channels that wait for each other has no circle, and with buffers of one packet everything arrives.
#[test]
fn networks_of_switches_do_not_deadlock() {
    for (topology, hosts, channels) in NETWORKS {
        let platform = network(topology, 1.0, 100.0);
        let messages: Vec<Sent> = (0..hosts * 20)
            .map(|number| (0, number % hosts, (number * 7 + number / hosts * 11 + 1) % hosts, 3_000))
            .filter(|&(_, src, dst, _)| src != dst)
            .collect();
        let [minimal, third, spray] = channels;
        for (routing, channels) in [
            (PacketRouting::Minimal, minimal),
            (PacketRouting::Valiant, third),
            (PacketRouting::UgalL, third),
            (PacketRouting::UgalG, third),
            (PacketRouting::Spray, spray),
        ] {
            let Some(channels) = channels else { continue };
            let parameters = PacketParameters {
                queues: Queues::Credits,
                packet_bytes: 1000,
                buffer_bytes: 1000,
                routing,
                ..PacketParameters::default()
            };
            let machine = machine(&platform, &parameters);
            assert_eq!(machine.find_circular_wait().unwrap(), None, "{routing:?} on {topology}");
            assert_eq!(machine.virtual_channels(), channels, "{routing:?} on {topology}");
            let done = run(&platform, &parameters, &messages);
            assert_eq!(done.packets.len(), 3 * messages.len(), "{routing:?} on {topology}");
        }
    }
}

/// Eight switches, each joined with all others, and four hosts on each.
const COMPLETE: &str = "kind = 'hyperx', dims = [8], nodes = 4";

fn parameters(routing: PacketRouting) -> PacketParameters {
    let queues = if routing == PacketRouting::Valiant { Queues::Fifo } else { Queues::Credits };
    PacketParameters {
        queues,
        packet_bytes: 1000,
        buffer_bytes: 32_000,
        routing,
        in_flight: Some(InFlight::Unlimited),
        ..PacketParameters::default()
    }
}

/// Over a third switch a packet crosses a link more; without load UGAL takes the shortest way.
#[test]
fn packets_go_over_a_third_switch_or_not() {
    let platform = network(COMPLETE, 1.0, 100.0);
    for (routing, hops) in [(PacketRouting::Valiant, 4), (PacketRouting::UgalL, 3), (PacketRouting::UgalG, 3)]
    {
        let messages: Vec<Sent> = (0..10).map(|number| (number * 5_000_000, 0, 9, 1000)).collect();
        assert_eq!(run(&platform, &parameters(routing), &messages).hops, 10 * hops, "{routing:?}");
        // Hosts of one switch need no other.
        assert_eq!(run(&platform, &parameters(routing), &[(0, 0, 1, 1000)]).hops, 2, "{routing:?}");
    }
}

/// All `p` hosts of a switch send to the next one: over one link each has `1/p` of it. Over third switches a link, but for those to the next
/// one, has `2 p/(n - 2)` flows.
#[test]
fn third_switches_relieve_the_links_of_neighbours() {
    let platform = network(COMPLETE, 1.0, 100.0);
    let packets = 200;
    let messages: Vec<Sent> = (0..32).map(|host| (0, host, (host + 4) % 32, packets * 1000)).collect();
    let share = |routing| {
        (packets * 1_000_000) as f64 / run(&platform, &parameters(routing), &messages).last() as f64
    };
    let minimal = share(PacketRouting::Minimal);
    assert!((0.24..=0.25).contains(&minimal), "{minimal}");
    let valiant = share(PacketRouting::Valiant);
    assert!((0.6..=0.75).contains(&valiant), "{valiant}");
    for routing in [PacketRouting::UgalL, PacketRouting::UgalG] {
        let share = share(routing);
        assert!((0.5..=1.0).contains(&share), "{routing:?}: {share}");
    }
}

#[test]
fn networks_without_third_switches_are_refused() {
    let refused = |topology: &str, routing| {
        let platform = network(topology, 1.0, 100.0);
        let homes = vec![0; platform.hosts().len()];
        PacketMachine::new(&platform, &parameters(routing), (&homes, 1)).unwrap_err()
    };
    let rails = "kind = 'rail_optimized', units = 2, servers = 2, rails = 3, spines = 2";
    for (topology, routing) in [
        (rails, PacketRouting::Valiant),
        (rails, PacketRouting::UgalL),
        (COMPLETE, PacketRouting::Par),
        ("kind = 'hyperx', dims = [2], nodes = 2", PacketRouting::UgalG),
        (
            "kind = 'dragonfly_plus', groups = 2, leaves = 2, spines = 2, cables = 2, nodes = 2",
            PacketRouting::Valiant,
        ),
    ] {
        let expected = PacketError::NoGroups { routing: routing.name().to_owned() };
        assert_eq!(refused(topology, routing), expected, "{topology}");
    }
    // Switches that know all queues are in one region.
    let platform = network(COMPLETE, 1.0, 100.0);
    let homes: Vec<u32> = (0..32).map(|host| host / 16).collect();
    let machine = |routing| PacketMachine::new(&platform, &parameters(routing), (&homes, 2));
    assert_eq!(machine(PacketRouting::UgalG).unwrap_err(), PacketError::DividedSwitches);
    assert!(machine(PacketRouting::UgalL).is_ok());
}
