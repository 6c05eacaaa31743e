//! Routings: they choose as they are said to.

use std::collections::BTreeSet;

use netmodel::Platform;
use packets::{InFlight, PacketParameters, PacketRouting};

use crate::driver::{Sent, run};
use crate::networks::{fat_tree, leaf_spine, network};
use crate::oracle::numbers;

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

/// The rings that a quantity of the closed forms is about: their hosts, the platform, and the value.
fn rings(quantity: &str) -> impl Iterator<Item = (u32, Platform, f64)> {
    let rows = numbers("closed-forms.csv", "ring-", "value").into_iter();
    rows.filter(move |(_, of_row, _)| of_row == quantity).map(|(case, _, value)| {
        let hosts: u32 = case["ring-".len()..].parse().unwrap();
        (hosts, network(&format!("kind = 'torus', dims = [{hosts}]"), 1.0, 100.0), value)
    })
}

/// On a ring on which all send to all, and to themselves, a host has `8/k` of a link and not more; nearly as much, since not the packets of
/// two opposite hosts are divided among both ways, but such pairs of hosts.
#[test_with::shared]
fn uniform_traffic_has_its_share_of_a_ring() {
    for (hosts, platform, bound) in rings("uniform_share") {
        let packets = 30;
        let pairs = (0..hosts).flat_map(|src| (1..hosts).map(move |step| (src, (src + step) % hosts)));
        let messages: Vec<Sent> = pairs.map(|(src, dst)| (0, src, dst, packets * 1000)).collect();
        let done = run(&platform, &parameters(PacketRouting::Spray, 1), &messages);
        let share = (u64::from(hosts) * packets * 1_000_000) as f64 / done.last() as f64;
        assert!((0.7 * bound..=bound).contains(&share), "{hosts} hosts: {share}, bound {bound}");
    }
}

/// Over a third host that is any one, each leg of a way on a ring of `k` hosts has `k/4` links on average: whoever sends to whom has `4/k` of
/// a link, but for what random loads differ.
#[test_with::shared]
fn ways_over_third_hosts_share_a_ring() {
    for (hosts, platform, expected) in rings("valiant_share") {
        let packets = 2000;
        for step in [1, hosts / 2 - 1] {
            let messages: Vec<Sent> =
                (0..hosts).map(|host| (0, host, (host + step) % hosts, packets * 1000)).collect();
            let done = run(&platform, &parameters(PacketRouting::Valiant, 1), &messages);
            let share = (packets * 1_000_000) as f64 / done.last() as f64;
            assert!(
                (0.93 * expected..1.01 * expected).contains(&share),
                "{hosts} hosts, {step}: {share}, {expected}"
            );
        }
    }
}

/// All hosts of a group of a dragonfly send to another group: over one cable each has `1/(a p)` of a link, over third groups at most
/// `(g - 2)/(2 a p)`; and to all other groups at most what the cables between groups carry.
#[test_with::shared]
fn groups_of_dragonflies_have_the_shares_of_their_cables() {
    for (case, quantity, expected) in numbers("closed-forms.csv", "dfly-", "value") {
        let sizes: Vec<u32> = case.split('-').skip(1).map(|size| size.parse().unwrap()).collect();
        let (nodes, routers, groups) = (sizes[0], sizes[1], sizes[1] * sizes[2] + 1);
        let topology = format!(
            "kind = 'dragonfly', groups = {groups}, chassis = 1, blades = {routers}, nodes = {nodes}"
        );
        let platform = network(&topology, 1.0, 100.0);
        let (group, packets) = (nodes * routers, 32);
        let hosts = group * groups;
        // Each host sends so many packets, in messages to one host or to several.
        let share = |routing, messages_of_host: u32, target: &dyn Fn(u32, u32) -> u32| {
            let bytes = u64::from(packets / messages_of_host * 1000);
            let messages: Vec<Sent> = (0..hosts * messages_of_host)
                .map(|number| (0, number % hosts, target(number % hosts, number / hosts) % hosts, bytes))
                .collect();
            f64::from(packets) * 1e6 / run(&platform, &parameters(routing, 1), &messages).last() as f64
        };
        let next_group = |host: u32, _| host + group;
        // The same router of a third group has the cables from the one group and to the other.
        let far_group = |host: u32, _| host + groups / 2 * group;
        match quantity.as_str() {
            "minimal_share" => {
                let share = share(PacketRouting::Minimal, 1, &next_group);
                // The last packet crosses five links and as many queues of a packet.
                assert!((0.8 * expected..=expected).contains(&share), "{case}: {share}, expected {expected}");
            }
            "valiant_share_bound" => {
                let [next, far] = [&next_group as &dyn Fn(u32, u32) -> u32, &far_group]
                    .map(|target| share(PacketRouting::Valiant, 1, target));
                assert!(next <= expected, "{case}: {next}, bound {expected}");
                assert!((0.4 * expected..=expected).contains(&far), "{case}: {far}, bound {expected}");
            }
            _ => {
                let share = share(PacketRouting::Minimal, packets, &|host, number| {
                    host + group * (1 + number % (groups - 1))
                });
                assert!((0.2 * expected..=expected).contains(&share), "{case}: {share}, bound {expected}");
            }
        }
    }
}

/// All hosts of a leaf send to another leaf: the largest number of flows on one of `n` up-links is that of `m` balls in `n` boxes, in
/// distribution and on average over seeds.
#[test_with::shared]
fn hashed_flows_collide_as_often_as_balls_in_boxes() {
    let rows = numbers("closed-forms.csv", "ecmp-", "value");
    let cases: BTreeSet<&str> = rows.iter().map(|row| row.0.as_str()).collect();
    for case in cases {
        let (n, m) = case["ecmp-".len()..].split_once('-').unwrap();
        let (n, m): (u32, u32) = (n.parse().unwrap(), m.parse().unwrap());
        let platform = network(&leaf_spine(2, m, n), 1.0, 100.0);
        let packets = 12;
        let messages: Vec<Sent> = (0..m).map(|host| (0, host, m + host, packets * 1000)).collect();
        let largest = |seed: u64| {
            let done = run(&platform, &parameters(PacketRouting::Ecmp, seed), &messages);
            // The last packet leaves the most loaded link after its load, and crosses three links more.
            (done.last() as f64 / (packets * 1_000_000) as f64).round()
        };
        let seeds = 250_u32;
        let loads: Vec<f64> = (1..=seeds).map(|seed| largest(seed.into())).collect();
        for (_, quantity, expected) in rows.iter().filter(|row| row.0 == case) {
            let (found, deviation) = match quantity.strip_prefix("P_largest_") {
                Some(load) => {
                    let load: f64 = load.parse().unwrap();
                    let count = loads.iter().filter(|&&found| found == load).count() as f64;
                    (count / f64::from(seeds), (expected * (1.0 - expected)).sqrt())
                }
                // The load deviates by less than one flow.
                None => (loads.iter().sum::<f64>() / f64::from(seeds), 1.0),
            };
            let tolerance = 4.0 * deviation / f64::from(seeds).sqrt();
            assert!((found - expected).abs() < tolerance, "{case}, {quantity}: {found}, expected {expected}");
        }
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

/// A host sends two messages, and a while before the second one another host keeps one of two spines busy. Within the gap the second message
/// follows the first one, under some seeds behind the other flow; after a longer pause it takes the spine that is free.
#[test]
fn flowlets_change_their_ways_after_a_pause() {
    let platform = network(&leaf_spine(2, 2, 2), 1.0, 100.0);
    for (gap, pause, follows) in
        [(10e-6, 5_000_000, true), (10e-6, 20_000_000, false), (1e-6, 5_000_000, false)]
    {
        let delayed = (1..=16).filter(|&seed| {
            let parameters =
                PacketParameters { flowlet_gap: gap, ..parameters(PacketRouting::Flowlets, seed) };
            let (first, second) = ((0, 0, 2, 1000), (pause, 0, 2, 20_000));
            // Its packets are half of one apart from those of the second message.
            let other = (pause - 2_500_000, 1, 3, 60_000);
            let done = run(&platform, &parameters, &[first, second, other]);
            // Over four links without a queue.
            let alone = pause + 23_000_000 + 400_000;
            assert!(done.arrived[1] >= alone);
            done.arrived[1] > alone
        });
        let delayed = delayed.count();
        assert_eq!(delayed > 0, follows, "a pause of {pause} ps, a gap of {gap} s: {delayed}");
        assert!(delayed < 16, "{delayed}");
    }
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

/// Two cables of a host carry messages to different hosts at once.
#[test]
fn cables_of_a_host_serve_different_hosts() {
    let levels = "levels = [{ children = 4, parents = 2 }, { children = 4, parents = 2 }]";
    let platform = network(&format!("kind = 'fat_tree', {levels}"), 1.0, 100.0);
    let messages: Vec<Sent> = (1..16).map(|dst| (0, 0, dst, 50_000)).collect();
    for (routing, most) in
        [(PacketRouting::Ecmp, 0.75), (PacketRouting::Spray, 0.75), (PacketRouting::Adaptive, 0.6)]
    {
        let done = run(&platform, &parameters(routing, 1), &messages);
        let share = done.last() as f64 / (messages.len() as f64 * 50e6);
        assert!((0.5..most).contains(&share), "{routing:?}: {share} of the time of one cable");
    }
}
