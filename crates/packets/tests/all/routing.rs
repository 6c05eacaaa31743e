//! Routings: they choose as they are said to.

use packets::{InFlight, PacketParameters, PacketRouting};

use crate::driver::{Sent, run};
use crate::networks::{fat_tree, leaf_spine, network};

fn parameters(routing: PacketRouting, seed: u64) -> PacketParameters {
    PacketParameters {
        packet_bytes: 1000,
        routing,
        in_flight: Some(InFlight::Unlimited),
        seed,
        ..PacketParameters::default()
    }
}

/// Tornado on a torus: each host sends so far along each ring that all links of one direction have three flows. The last one completes
/// at a third of the rate: `T = 3 P s/C`, but for the way of one packet.
#[test]
fn tornado_has_a_third_of_a_link() {
    let platform = network("kind = 'torus', dims = [8]", 1.0, 100.0);
    let packets = 200;
    let messages: Vec<Sent> = (0..8).map(|host| (0, host, (host + 3) % 8, packets * 1000)).collect();
    let done = run(&platform, &parameters(PacketRouting::Minimal, 1), &messages);
    let bound = 3 * packets * 1_000_000;
    // At the end a link carries the last packets of one flow after the other: at most a few packets and latencies more.
    assert!((bound..bound + 4_000_000).contains(&done.last()), "{} {bound}", done.last());
}

/// All hosts of a leaf send to another leaf: the largest number of flows on one of `n` up-links is that of `n` balls in `n` boxes, on
/// average over seeds.
#[test]
fn hashed_flows_collide_as_often_as_balls_in_boxes() {
    for (n, expected) in [(2, 1.5), (4, 2.125), (8, 2.597_232_82)] {
        let platform = network(&leaf_spine(2, n, n), 1.0, 100.0);
        let packets = 50;
        let messages: Vec<Sent> = (0..n).map(|host| (0, host, n + host, packets * 1000)).collect();
        let largest = |seed: u64| {
            let done = run(&platform, &parameters(PacketRouting::Ecmp, seed), &messages);
            // The last packet leaves the most loaded link after its load, and crosses four links and two more.
            (done.last() as f64 / (packets * 1_000_000) as f64).round()
        };
        let seeds = 300_u32;
        let mean = (1..=seeds).map(|seed| largest(seed.into())).sum::<f64>() / f64::from(seeds);
        // Four standard errors; the load varies by less than 0.75.
        let tolerance = 4.0 * 0.75 / f64::from(seeds).sqrt();
        assert!((mean - expected).abs() < tolerance, "{n} links: {mean}, expected {expected}");
    }
}

/// Packets of one flow that nobody disturbs go all ways, and all arrive.
#[test]
fn sprayed_packets_overtake_each_other_and_all_arrive() {
    let platform = network(&fat_tree(4), 12.5, 1000.0);
    let messages: Vec<Sent> = (0..16).map(|host| (0, host, (host + 8) % 16, 500_000)).collect();
    for routing in [PacketRouting::Spray, PacketRouting::Adaptive] {
        let done = run(&platform, &parameters(routing, 1), &messages);
        assert_eq!(done.packets.len(), 16 * 500, "{routing:?}");
        assert_eq!(done.hops, 16 * 500 * 6, "{routing:?}");
        let numbers = done.packets.windows(2).filter(|pair| pair[0].message == pair[1].message);
        let overtakes = numbers.into_iter().any(|pair| pair[0].number > pair[1].number);
        assert!(overtakes || routing == PacketRouting::Adaptive);
        for (message, &arrived) in done.arrived.iter().enumerate() {
            let own = done.packets.iter().filter(|packet| packet.message.src.index() == message);
            assert_eq!(own.map(|packet| packet.at).max(), Some(arrived), "{routing:?}");
        }
    }
}

/// In symmetric traffic a choice of the least loaded output must not be the same for all: one permutation with keyed ties takes little
/// longer than the hosts' links, with hashed flows several times as long (packets.md, 3).
#[test]
fn adaptive_routing_balances_symmetric_traffic() {
    let platform = network(&fat_tree(8), 12.5, 1000.0);
    let messages: Vec<Sent> = (0..128).map(|host| (0, host, (host + 64) % 128, 1_000_000)).collect();
    let last = |routing| run(&platform, &parameters(routing, 1), &messages).last() as f64;
    let bound = 80_000_000.0 + 6.0 * 1_080_000.0;
    assert!(last(PacketRouting::Adaptive) < 1.25 * bound, "{}", last(PacketRouting::Adaptive) / bound);
    assert!(last(PacketRouting::Spray) < 1.35 * bound, "{}", last(PacketRouting::Spray) / bound);
    assert!(last(PacketRouting::Ecmp) > 2.0 * bound, "{}", last(PacketRouting::Ecmp) / bound);
}

/// On a torus all shortest ways are taken.
#[test]
fn tori_route_adaptively() {
    let platform = network("kind = 'torus', dims = [4, 4]", 1.0, 100.0);
    let message = [(0, 0, 5, 400_000)];
    let minimal = run(&platform, &parameters(PacketRouting::Minimal, 1), &message);
    let adaptive = run(&platform, &parameters(PacketRouting::Adaptive, 1), &message);
    assert_eq!((minimal.hops, adaptive.hops), (800, 800));
    assert_eq!(minimal.last(), 400_000_000 + 1_000_000 + 200_000);
    // The first link is that of the message: both leave through it.
    assert_eq!(adaptive.last(), minimal.last());
}
