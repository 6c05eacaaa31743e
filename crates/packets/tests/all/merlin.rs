//! Latencies of SST's merlin on networks of switches (`../shared/oracle/packets/merlin.csv`).

use std::collections::VecDeque;

use netmodel::Platform;
use packets::{InFlight, PacketParameters, PacketRouting, Queues};

use crate::driver::{Run, Sent, run};
use crate::networks::network;
use crate::oracle::number;

/// Makes messages of 32 B to random other hosts, at half of the rate of links of 16 Gb/s: one of each host in each slot of 32 ns.
fn half_load(hosts: u64, slots: u64) -> Vec<Sent> {
    let mut random = 1_u64;
    let mut below = |count: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % count
    };
    let message = |number| {
        let (slot, src) = (number / hosts, number % hosts);
        let dst = (src + 1 + below(hosts - 1)) % hosts;
        (slot * 32_000 + src * 13_000 % 32_000, src as u32, dst as u32, 32)
    };
    (0..hosts * slots).map(message).collect()
}

fn parameters(routing: PacketRouting) -> PacketParameters {
    PacketParameters {
        packet_bytes: 32,
        buffer_bytes: 32_000,
        queues: Queues::Credits,
        routing,
        ..PacketParameters::default()
    }
}

/// Returns the mean latency of those of the messages that are counted by their number and arrival \[ns\]. In merlin a link takes 20 ns, one to
/// a host 10 ns, and a switch 40 ns; here each link takes 60 ns, together 60 ns more.
fn latency(messages: &[Sent], done: &Run, counts: impl Fn(usize, u64) -> bool) -> f64 {
    let arrived = done.arrived.iter().enumerate().filter(|&(number, &arrived)| counts(number, arrived));
    let times: Vec<u64> = arrived.map(|(number, arrived)| arrived - messages[number].0).collect();
    times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e3 - 60.0
}

/// Returns the mean latency on a topology with two hosts at each switch, when queues are as long as they get: from the third part on.
fn latency_on(topology: &str, routing: PacketRouting) -> f64 {
    let platform = network(topology, 2.0, 60.0);
    let messages = half_load(platform.hosts().len() as u64, 300);
    let done = run(&platform, &parameters(routing), &messages);
    latency(&messages, &done, |number, _| number >= messages.len() / 3)
}

#[test_with::shared]
fn latencies_under_half_load_are_those_of_merlin() {
    for (case, topology) in [
        ("any-complete-4", "kind = 'hyperx', dims = [4], nodes = 2"),
        ("any-polarfly-7", "kind = 'polarfly', order = 2, nodes = 2"),
        ("any-slimfly-18", "kind = 'slim_fly', order = 3, nodes = 2"),
        ("any-jellyfish-16", "kind = 'jellyfish', switches = 16, degree = 4, nodes = 2"),
        ("any-dragonfly-36", "kind = 'dragonfly', groups = 9, chassis = 1, blades = 4, nodes = 2"),
    ] {
        let latency = latency_on(topology, PacketRouting::Minimal);
        let expected = number("merlin.csv", case, "value");
        let ratio = latency / expected;
        assert!((0.9..1.1).contains(&ratio), "{case}: {latency} ns, expected {expected} ns");
    }
}

/// Merlin's UGAL takes any of several ways of equal weight, and one to an empty queue has none: of three detours and the shortest way all
/// are equal where queues are empty. So most packets go around, the busiest link carries 0.7 to 0.9 of its rate in place of 0.4 to 0.5, and
/// latencies are 48 times those of shortest ways; with its threshold, by which packets go around any other ones, 26 times (rows
/// `any-slimfly-18-ugal` and `-threshold`). Here a detour must be better, and UGAL costs less than a tenth under uniform traffic.
#[test]
fn detours_cost_little_under_half_load() {
    let slim_fly = "kind = 'slim_fly', order = 3, nodes = 2";
    let minimal = latency_on(slim_fly, PacketRouting::Minimal);
    for routing in [PacketRouting::UgalL, PacketRouting::UgalG] {
        let ratio = latency_on(slim_fly, routing) / minimal;
        assert!((1.0..1.1).contains(&ratio), "{routing:?}: {ratio} times the latency of shortest ways");
    }
    assert!(latency_on(slim_fly, PacketRouting::Valiant) > 2.0 * minimal);
}

/// The switches next to each switch of the cube of NetworkX.
const CUBE: [[usize; 3]; 8] =
    [[1, 3, 4], [0, 2, 7], [1, 3, 6], [0, 2, 5], [0, 5, 7], [3, 4, 6], [2, 5, 7], [1, 4, 6]];

/// Returns for each switch the last one before it on the shortest way from `src` that a search in the order of neighbours finds first, as
/// that of NetworkX.
fn predecessors(src: usize) -> [usize; 8] {
    let mut predecessors = [None; 8];
    predecessors[src] = Some(src);
    let mut queue = VecDeque::from([src]);
    while let Some(switch) = queue.pop_front() {
        for next in CUBE[switch] {
            if predecessors[next].is_none() {
                predecessors[next] = Some(switch);
                queue.push_back(next);
            }
        }
    }
    predecessors.map(Option::unwrap)
}

/// The cube with two hosts at each switch, and those ways.
fn cube() -> Platform {
    let link = |id: String| {
        format!("<link id=\"{id}\" bandwidth=\"2GBps\" latency=\"60ns\" sharing_policy=\"SPLITDUPLEX\"/>")
    };
    let cables =
        (0..8).flat_map(|one| CUBE[one].map(|other| (one, other))).filter(|(one, other)| one < other);
    let links: String = cables.map(|(one, other)| link(format!("{one}-{other}"))).collect();
    let hosts = (0..16).map(|host| format!("<host id=\"{host}\" speed=\"1Gf\"/>{}", link(host.to_string())));
    let hosts: String = hosts.collect();
    let hop = |id: String, is_up: bool| {
        format!("<link_ctn id=\"{id}\" direction=\"{}\"/>", if is_up { "UP" } else { "DOWN" })
    };
    let mut routes = String::new();
    for (src, dst) in
        (0..16).flat_map(|src| (0..16).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst)
    {
        let predecessors = predecessors(src / 2);
        let (mut hops, mut at) = (hop(dst.to_string(), false), dst / 2);
        while at != src / 2 {
            let before = predecessors[at];
            hops = hop(format!("{}-{}", before.min(at), before.max(at)), before < at) + &hops;
            at = before;
        }
        hops = hop(src.to_string(), true) + &hops;
        routes += &format!("<route src=\"{src}\" dst=\"{dst}\" symmetrical=\"NO\">{hops}</route>");
    }
    let text = format!(
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">{hosts}{links}{routes}</zone></platform>"
    );
    Platform::from_xml(&text, "cube").unwrap()
}

/// Nine of 56 pairs of switches send over one cable, in each direction 9 * 2/15 = 1.2 of its rate. A message that arrives over it at time `t`
/// has waited for `t/6`: on average 50 us from 200 to 400 us, for 25,000 of 95,000 messages. Queues without a limit delay these only, buffers
/// hold up others as well. Merlin has queues at inputs and outputs, and lies between.
#[test_with::shared]
fn one_way_for_each_pair_overloads_a_cable_of_a_cube() {
    let platform = cube();
    let messages = half_load(16, 12_500);
    let window = 200_000_000..400_000_000;
    let latency = |parameters: &PacketParameters| {
        let done = run(&platform, parameters, &messages);
        latency(&messages, &done, |_, arrived| window.contains(&arrived))
    };
    let credits = parameters(PacketRouting::Minimal);
    let in_flight = Some(InFlight::Unlimited);
    let unlimited = latency(&PacketParameters { queues: Queues::Fifo, in_flight, ..credits.clone() });
    let fluid = 50_000.0 * 25.0 / 95.0;
    assert!((fluid..1.05 * fluid).contains(&unlimited), "{unlimited} ns, expected {fluid} ns");
    let expected = number("merlin.csv", "any-cube-8", "value");
    let range = unlimited..latency(&credits);
    assert!(range.contains(&expected), "{range:?} ns, expected {expected} ns");
}
