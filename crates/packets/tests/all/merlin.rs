//! Latencies of SST's merlin on networks of switches (`../shared/oracle/packets/merlin.csv`).

use packets::{PacketParameters, Queues};

use crate::driver::{Sent, run};
use crate::networks::network;
use crate::oracle::number;

/// Two hosts at each switch send messages of 32 B to random others, at half of the rate of their links: 16 Gb/s. In merlin a link takes
/// 20 ns, one to a host 10 ns, and a switch 40 ns; here each link takes 60 ns, together 60 ns more.
#[test_with::shared]
fn latencies_under_half_load_are_those_of_merlin() {
    for (case, topology) in [
        ("any-complete-4", "kind = 'hyperx', dims = [4], nodes = 2"),
        ("any-polarfly-7", "kind = 'polarfly', order = 2, nodes = 2"),
        ("any-slimfly-18", "kind = 'slim_fly', order = 3, nodes = 2"),
        ("any-jellyfish-16", "kind = 'jellyfish', switches = 16, degree = 4, nodes = 2"),
        ("any-dragonfly-36", "kind = 'dragonfly', groups = 9, chassis = 1, blades = 4, nodes = 2"),
    ] {
        let platform = network(topology, 2.0, 60.0);
        let hosts = platform.hosts().len() as u64;
        let mut random = 1_u64;
        let mut below = |count: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % count
        };
        let messages: Vec<Sent> = (0..hosts * 300)
            .map(|number| {
                let (slot, src) = (number / hosts, number % hosts);
                let dst = (src + 1 + below(hosts - 1)) % hosts;
                (slot * 32_000 + src * 13_000 % 32_000, src as u32, dst as u32, 32)
            })
            .collect();
        let parameters = PacketParameters {
            packet_bytes: 32,
            buffer_bytes: 32_000,
            queues: Queues::Credits,
            ..PacketParameters::default()
        };
        let done = run(&platform, &parameters, &messages);
        // From the third part on queues are as long as they get.
        let late = messages.len() / 3;
        let times = done
            .arrived
            .iter()
            .zip(&messages)
            .skip(late)
            .map(|(&arrived, sent)| (arrived - sent.0) as f64 / 1e3);
        let latency = times.sum::<f64>() / (messages.len() - late) as f64 - 60.0;
        let expected = number("merlin.csv", case, "value");
        let ratio = latency / expected;
        assert!((0.9..1.1).contains(&ratio), "{case}: {latency} ns, expected {expected} ns");
    }
}
