//! Routings: they choose as they are said to.

use std::collections::{BTreeMap, BTreeSet};

use netmodel::{HostId, LinkId, Platform};
use packets::{InFlight, PacketParameters, PacketRouting};

use crate::driver::{Run, Sent, run, run_recorded};
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
/// a link, but for what random loads differ; and with the limit of the loop, that of the longest detour, but for waits in queues.
#[test_with::shared]
fn ways_over_third_hosts_share_a_ring() {
    for (hosts, platform, expected) in rings("valiant_share") {
        let packets = 2000;
        let limits = [(InFlight::Unlimited, 0.93), (InFlight::Loop, 0.9)];
        let cases = [1, hosts / 2 - 1].map(|step| limits.map(|(in_flight, least)| (step, in_flight, least)));
        for (step, in_flight, least) in cases.into_iter().flatten() {
            let messages: Vec<Sent> =
                (0..hosts).map(|host| (0, host, (host + step) % hosts, packets * 1000)).collect();
            let parameters =
                PacketParameters { in_flight: Some(in_flight), ..parameters(PacketRouting::Valiant, 1) };
            let done = run(&platform, &parameters, &messages);
            let share = (packets * 1_000_000) as f64 / done.last() as f64;
            assert!(
                (least * expected..1.01 * expected).contains(&share),
                "{hosts} hosts, {step}, {in_flight:?}: {share}, {expected}"
            );
        }
    }
}

/// A dragonfly of the closed forms, with one cable between any two groups.
struct Groups {
    platform: Platform,
    nodes: u32,
    routers: u32,
    groups: u32,
}

impl Groups {
    /// Makes the network of a case `dfly-p-a-h`.
    fn of(case: &str) -> Self {
        let sizes: Vec<u32> = case.split('-').skip(1).map(|size| size.parse().unwrap()).collect();
        let [nodes, routers, cables] = sizes[..] else { panic!("{case}") };
        let groups = routers * cables + 1;
        let shape = format!(
            "kind = 'dragonfly', groups = {groups}, chassis = 1, blades = {routers}, nodes = {nodes}"
        );
        Self { platform: network(&shape, 1.0, 100.0), nodes, routers, groups }
    }

    fn hosts_of_group(&self) -> u32 {
        self.nodes * self.routers
    }

    fn hosts(&self) -> u32 {
        self.hosts_of_group() * self.groups
    }

    /// Makes a message of each host to that of the same number in the group that follows its own in an order of the groups.
    fn to_group(&self, next: impl Fn(u32) -> u32, packets: u64) -> Vec<Sent> {
        let group = self.hosts_of_group();
        let target = |host| next(host / group) * group + host % group;
        (0..self.hosts()).map(|host| (0, host, target(host), packets * 1000)).collect()
    }

    /// Runs messages; returns the packets on each link, too.
    fn run(&self, messages: &[Sent], routing: PacketRouting) -> (Run, BTreeMap<LinkId, f64>) {
        let homes = vec![0; self.hosts() as usize];
        let (done, loads) = run_recorded(&self.platform, &parameters(routing, 1), &homes, messages);
        (done, loads.links.iter().map(|load| (load.link, load.bytes as f64 / 1000.0)).collect())
    }

    /// Returns the mean packets on each link, when a packet takes the cable of its group to a third group, any but those of its ends, and
    /// from there the shortest way.
    fn mean_loads(&self, messages: &[Sent]) -> BTreeMap<LinkId, f64> {
        let mut loads = BTreeMap::new();
        let (group, mut first, mut second) = (self.hosts_of_group(), Vec::new(), Vec::new());
        for &(_, src, dst, bytes) in messages {
            let ends = [src / group, dst / group];
            let packets = bytes as f64 / 1000.0 / f64::from(self.groups - 2);
            for third in (0..self.groups).filter(|third| !ends.contains(third)) {
                // A host of the router at the other end of that cable, whose own cable is no part of the way.
                let via = HostId::new(third * group + ends[0] % self.routers * self.nodes);
                self.platform.route(HostId::new(src), via, &mut first).unwrap();
                self.platform.route(via, HostId::new(dst), &mut second).unwrap();
                for &link in first[..first.len() - 1].iter().chain(&second[1..]) {
                    *loads.entry(link).or_default() += packets;
                }
            }
        }
        loads
    }
}

/// All hosts of a group of a dragonfly send to another group: over its cable each has `1/(a p)` of a link. It sends all the time from the
/// first packet, which has crossed the link of its host, to the last, which has two links to go.
#[test_with::shared]
fn groups_of_dragonflies_share_one_cable() {
    for (case, expected) in shares("minimal_share") {
        let dragonfly = Groups::of(&case);
        let (groups, packets) = (dragonfly.groups, 32);
        let messages = dragonfly.to_group(|group| (group + 1) % groups, packets);
        let (done, _) = dragonfly.run(&messages, PacketRouting::Minimal);
        let cable = (packets as f64 / expected) as u64 * 1_000_000;
        assert_eq!(done.last(), cable + 3 * 1_000_000 + 4 * 100_000, "{case}");
    }
}

/// Over third groups it is `(g - 2)/(2 a p)` on average where the same router of each third group has the cables from the one group and to
/// the other; else less, as links inside third groups carry more. A run of finite length is below by what random choices add to the most
/// loaded link: it ends when that has sent its packets.
#[test_with::shared]
fn groups_of_dragonflies_share_the_cables_to_third_groups() {
    for (case, expected) in shares("valiant_share_bound") {
        let dragonfly = Groups::of(&case);
        let (groups, routers, packets) = (dragonfly.groups, dragonfly.routers, 100);
        let next = |group| (group + 1) % groups;
        let same_router = |group| if group + routers < groups { group + routers } else { group % routers };
        // A group whose router no other group has stays alone.
        let has_same_router = (0..groups).all(|group| same_router(group) != group);
        let orders: [&dyn Fn(u32) -> u32; 2] = [&next, &same_router];
        for (order, is_same) in orders.into_iter().zip([false, true]).take(1 + usize::from(has_same_router)) {
            let messages = dragonfly.to_group(order, packets);
            let means = dragonfly.mean_loads(&messages);
            let share = packets as f64 / largest(&means);
            assert!(share < expected + 1e-9, "{case}: {share}, bound of the cables {expected}");
            assert!(!is_same || share > expected - 1e-9, "{case}: {share}, expected {expected}");
            let (done, loads) = dragonfly.run(&messages, PacketRouting::Valiant);
            assert_eq!(loads.len(), means.len(), "{case}");
            for (link, carried) in &loads {
                // Five standard errors.
                let (mean, name) = (means[link], &dragonfly.platform.link(*link).name);
                assert!(
                    (carried - mean).abs() <= 5.0 * mean.sqrt(),
                    "{case}, {name}: {carried}, mean {mean}"
                );
            }
            let largest = largest(&loads) as u64 * 1_000_000;
            let end = largest..largest + 10_000_000;
            assert!(end.contains(&done.last()), "{case}: {}, {end:?}", done.last());
        }
    }
}

/// To all other groups hosts send at most what the cables between groups carry, and the most loaded links inside groups; seven eighths of it
/// at least, when they send to the groups in turn, and two hosts in succession to two groups at one time.
#[test_with::shared]
fn uniform_traffic_has_its_share_of_a_dragonfly() {
    for (case, expected) in shares("uniform_minimal_bound") {
        let dragonfly = Groups::of(&case);
        let (group, hosts, groups) = (dragonfly.hosts_of_group(), dragonfly.hosts(), dragonfly.groups);
        let packets = 96;
        let target = |host, number| (host + group * (1 + (host + number) % (groups - 1))) % hosts;
        let messages: Vec<Sent> = (0..hosts * packets)
            .map(|number| (0, number % hosts, target(number % hosts, number / hosts), 1000))
            .collect();
        let (done, loads) = dragonfly.run(&messages, PacketRouting::Minimal);
        let bound = f64::from(packets) / largest(&loads);
        assert!(bound <= expected, "{case}: {bound}, bound of the cables {expected}");
        let share = f64::from(packets) * 1e6 / done.last() as f64;
        assert!((0.875 * bound..=bound).contains(&share), "{case}: {share}, bound {bound}");
    }
}

fn largest(loads: &BTreeMap<LinkId, f64>) -> f64 {
    loads.values().copied().fold(0.0, f64::max)
}

/// Returns the values of a quantity of dragonflies, by case.
fn shares(quantity: &str) -> impl Iterator<Item = (String, f64)> {
    let rows = numbers("closed-forms.csv", "dfly-", "value").into_iter();
    rows.filter(move |row| row.1 == quantity).map(|(case, _, value)| (case, value))
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
