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

/// Tornado on a ring of `k` hosts: each sends so far that all links of one direction have `k/2 - 1` flows. The last one completes at this
/// share of the rate: `T = (k/2 - 1) P s/C`, but for the way of a few packets.
#[test]
fn tornado_has_a_share_of_a_link() {
    for hosts in [8, 16] {
        let platform = network(&format!("kind = 'torus', dims = [{hosts}]"), 1.0, 100.0);
        let (packets, flows) = (200, hosts / 2 - 1);
        let messages: Vec<Sent> =
            (0..hosts).map(|host| (0, host, (host + flows) % hosts, packets * 1000)).collect();
        let done = run(&platform, &parameters(PacketRouting::Minimal, 1), &messages);
        let bound = u64::from(flows) * packets * 1_000_000;
        // At the end a link carries the last packets of one flow after the other: at most a few packets and latencies more.
        let most = bound + u64::from(flows + 1) * 1_000_000;
        assert!((bound..most).contains(&done.last()), "{hosts} hosts: {} {bound}", done.last());
    }
}

/// All `m` hosts of a leaf send to another leaf: the largest number of flows on one of `n` up-links is that of `m` balls in `n` boxes, on
/// average over seeds.
#[test]
fn hashed_flows_collide_as_often_as_balls_in_boxes() {
    // Up-links, flows, mean of the largest load, and its standard deviation at most.
    for (n, m, expected, deviation) in [
        (2, 2, 1.5, 0.75),
        (4, 4, 2.125, 0.75),
        (8, 8, 2.597_232_82, 0.75),
        (16, 16, 3.078_246_8, 0.75),
        (32, 32, 3.532_940_99, 0.75),
        (4, 8, 3.538_085_94, 0.75),
        (8, 32, 7.047_784_07, 1.2),
    ] {
        let platform = network(&leaf_spine(2, m, n), 1.0, 100.0);
        let packets = 50;
        let messages: Vec<Sent> = (0..m).map(|host| (0, host, m + host, packets * 1000)).collect();
        let largest = |seed: u64| {
            let done = run(&platform, &parameters(PacketRouting::Ecmp, seed), &messages);
            // The last packet leaves the most loaded link after its load, and crosses four links and two more.
            (done.last() as f64 / (packets * 1_000_000) as f64).round()
        };
        let seeds = 300_u32;
        let mean = (1..=seeds).map(|seed| largest(seed.into())).sum::<f64>() / f64::from(seeds);
        // Four standard errors.
        let tolerance = 4.0 * deviation / f64::from(seeds).sqrt();
        assert!((mean - expected).abs() < tolerance, "{m} flows, {n} links: {mean}, expected {expected}");
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
