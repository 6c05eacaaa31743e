//! Links that have failed or are slow from the start (`leaf-*` of `../shared/oracle/packets/closed-forms.csv`).

use netmodel::{HostId, NetworkGraph, NodeId, Platform};
use packets::{
    DegradedLink, InFlight, PacketError, PacketMachine, PacketParameters, PacketRouting, Queues, Weights,
};

use crate::driver::{Sent, machine, run};
use crate::networks::{fat_tree, leaf_spine, network};

/// Returns the name of the cable of the first output of a node that leads to a switch.
fn first_cable(platform: &Platform, graph: &NetworkGraph, node: NodeId) -> String {
    let mut channels = graph.outputs(node).iter().map(|&channel| graph.channel(channel));
    let channel = channels.rfind(|channel| channel.to.index() >= graph.hosts() as usize).unwrap();
    let name = &platform.link(channel.link).name;
    name.strip_suffix("_UP").or(name.strip_suffix("_DOWN")).unwrap().to_owned()
}

/// Degrades one cable above each leaf.
fn above_leaves(platform: &Platform, rate: f64) -> Vec<DegradedLink> {
    let graph = NetworkGraph::of(platform).unwrap();
    let hosts = (0..graph.hosts()).map(HostId::new);
    let mut leaves: Vec<NodeId> = hosts.map(|host| graph.channel(graph.outputs(host.into())[0]).to).collect();
    leaves.dedup();
    leaves.into_iter().map(|leaf| DegradedLink { link: first_cable(platform, &graph, leaf), rate }).collect()
}

fn parameters(degraded: Vec<DegradedLink>, weights: Weights) -> PacketParameters {
    PacketParameters {
        packet_bytes: 1000,
        routing: PacketRouting::Spray,
        in_flight: Some(InFlight::Unlimited),
        degraded,
        weights,
        ..PacketParameters::default()
    }
}

/// A permutation in which all leave their leaf, with `u` up-links of a leaf of `n` hosts: sprayed by weight it has `(u - 0.75)/n` of a link
/// if one of the up-links has a quarter of its rate, and `0.25 u/n` if all outputs are alike; `(u - 1)/n` if one has failed.
#[test]
fn permutations_have_the_shares_of_degraded_up_links() {
    for (hosts, up_links) in [(16, 4), (32, 8)] {
        let platform = network(&leaf_spine(2, hosts, up_links), 1.0, 100.0);
        let share = |rate, weights| {
            let packets = 400;
            let messages: Vec<Sent> =
                (0..2 * hosts).map(|host| (0, host, (host + hosts) % (2 * hosts), packets * 1000)).collect();
            let degraded = if rate < 1.0 { above_leaves(&platform, rate) } else { Vec::new() };
            let done = run(&platform, &parameters(degraded, weights), &messages);
            (packets * 1_000_000) as f64 / done.last() as f64
        };
        let (n, u) = (f64::from(hosts), f64::from(up_links));
        for (rate, weights, expected) in [
            (1.0, Weights::Equal, u / n),
            (1.0, Weights::Capacity, u / n),
            (0.25, Weights::Capacity, (u - 0.75) / n),
            (0.25, Weights::Equal, 0.25 * u / n),
            (0.0, Weights::Equal, (u - 1.0) / n),
        ] {
            let share = share(rate, weights);
            // The most loaded of random shares is some deviations above the mean.
            let range = 0.9 * expected..1.01 * expected;
            assert!(
                range.contains(&share),
                "{hosts} hosts, {rate}, {weights:?}: {share}, expected {expected}"
            );
        }
    }
}

/// Around failed links ways go down and up again: they need more channels, and do not wait in a circle.
#[test]
fn ways_around_failed_links_arrive_without_deadlock() {
    let platform = network(&fat_tree(4), 1.0, 100.0);
    let messages: Vec<Sent> = (0..16).map(|host| (0, host, (host + 5) % 16, 20_000)).collect();
    for routing in [PacketRouting::Ecmp, PacketRouting::Spray, PacketRouting::Adaptive] {
        for queues in [Queues::Fifo, Queues::Credits] {
            let degraded = above_leaves(&platform, 0.0);
            let parameters = PacketParameters { routing, queues, ..parameters(degraded, Weights::Equal) };
            let done = run(&platform, &parameters, &messages);
            assert_eq!(done.packets.len(), 16 * 20, "{routing:?} {queues:?}");
            if queues == Queues::Credits {
                assert_eq!(machine(&platform, &parameters).find_circular_wait().unwrap(), None);
            }
        }
    }
}

#[test]
fn degraded_links_make_sense() {
    let platform = network(&leaf_spine(2, 2, 2), 1.0, 100.0);
    let graph = NetworkGraph::of(&platform).unwrap();
    let refusal = |degraded: Vec<DegradedLink>, routing| {
        let parameters = PacketParameters { routing, ..parameters(degraded, Weights::Equal) };
        PacketMachine::new(&platform, &parameters, (&[0; 4], 1)).unwrap_err()
    };
    let link = |link: &str, rate| vec![DegradedLink { link: link.to_owned(), rate }];
    let cable = first_cable(&platform, &graph, graph.channel(graph.outputs(NodeId::new(0))[0]).to);
    let unknown = refusal(link("no link", 0.5), PacketRouting::Spray);
    assert_eq!(unknown, PacketError::UnknownLink { link: "no link".to_owned() });
    let bad = refusal(link(&cable, 1.5), PacketRouting::Spray);
    assert_eq!(bad, PacketError::BadRate { link: cable.clone(), found: "1.5".to_owned() });
    let up = || format!("{cable}_UP");
    for second in [cable.clone(), up()] {
        let twice = [link(&cable, 0.5), link(&second, 0.25)].concat();
        assert_eq!(refusal(twice, PacketRouting::Spray), PacketError::RepeatedLink { link: up() });
    }
    let slow = refusal(link(&cable, 1e-300), PacketRouting::Spray);
    assert_eq!(slow, PacketError::SlowLink { link: cable.clone(), found: "1e-300".to_owned() });
    let minimal = refusal(link(&cable, 0.0), PacketRouting::Minimal);
    assert_eq!(minimal, PacketError::UnavoidableLink { link: up(), routing: "minimal".to_owned() });
    let host = platform.link(graph.channel(graph.outputs(NodeId::new(0))[0]).link).name.clone();
    let cable = host.strip_suffix("_UP").unwrap();
    let down = format!("{cable}_DOWN");
    for (failed, first) in [(cable, &host), (&host, &host), (&down, &down)] {
        let alone = refusal(link(failed, 0.0), PacketRouting::Spray);
        let name = platform.host(HostId::new(0)).name.clone();
        assert_eq!(alone, PacketError::CutOff { host: name, link: first.clone() });
    }
}
