//! Networks of switches with shortest routes: channels that do not wait in a circle, and deliveries.

use packets::{PacketParameters, PacketRouting, Queues};

use crate::driver::{Sent, machine, run};
use crate::networks::network;

/// Topologies, hosts, and the virtual channels of `minimal` and of `spray`, where pairs have several shortest ways.
const NETWORKS: [(&str, u32, &[u32]); 6] = [
    ("kind = 'hyperx', dims = [3, 3], cables = 2, nodes = 2", 18, &[1, 2]),
    ("kind = 'slim_fly', order = 3, nodes = 1", 18, &[2, 2]),
    ("kind = 'polarfly', order = 3, nodes = 1", 13, &[2]),
    ("kind = 'jellyfish', switches = 12, degree = 4, nodes = 1", 12, &[3, 3]),
    ("kind = 'dragonfly_plus', groups = 3, leaves = 2, spines = 2, cables = 2, nodes = 2", 12, &[1, 1]),
    ("kind = 'rail_optimized', units = 2, servers = 2, rails = 3, spines = 2", 12, &[1, 1]),
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
        for (routing, channels) in [PacketRouting::Minimal, PacketRouting::Spray].into_iter().zip(channels) {
            let parameters = PacketParameters {
                queues: Queues::Credits,
                packet_bytes: 1000,
                buffer_bytes: 1000,
                routing,
                ..PacketParameters::default()
            };
            let machine = machine(&platform, &parameters);
            assert_eq!(machine.find_circular_wait().unwrap(), None, "{routing:?} on {topology}");
            assert_eq!(machine.virtual_channels(), *channels, "{routing:?} on {topology}");
            let done = run(&platform, &parameters, &messages);
            assert_eq!(done.packets.len(), 3 * messages.len(), "{routing:?} on {topology}");
        }
    }
}
