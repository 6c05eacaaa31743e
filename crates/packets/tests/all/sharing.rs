//! What can be said of the rates of messages that share links: the capacity bound, and fairness at one bottleneck.

use std::collections::BTreeMap;

use netmodel::{HostId, LinkId, Platform};
use packets::{InFlight, PacketParameters, PacketRouting};
use proptest::prelude::*;

use crate::driver::{Run, Sent, run};
use crate::networks::{fat_tree, network};

const PACKET: u64 = 1000;

fn parameters(in_flight: InFlight) -> PacketParameters {
    PacketParameters {
        packet_bytes: PACKET as u32,
        in_flight: Some(in_flight),
        ..PacketParameters::default()
    }
}

/// Returns the bytes that messages send over each link of their routes.
fn loads(platform: &Platform, messages: &[Sent]) -> BTreeMap<LinkId, u64> {
    let (mut loads, mut route) = (BTreeMap::new(), Vec::new());
    for &(_, src, dst, bytes) in messages {
        platform.route(HostId::new(src), HostId::new(dst), &mut route).unwrap();
        route.iter().for_each(|&link| *loads.entry(link).or_default() += bytes);
    }
    loads
}

/// Returns, of messages that begin at 0 and cross so many parallel links, the bytes that arrive before the links can have sent them, and
/// when; `None` if there are none.
fn early(messages: &[Sent], done: &Run, links: u64, crosses: &dyn Fn(&Sent) -> bool) -> Option<(u64, u64)> {
    let crossing = messages.iter().zip(&done.arrived).filter(|(sent, _)| crosses(sent));
    let mut arrivals: Vec<(u64, u64)> = crossing.map(|(sent, &at)| (at, sent.3)).collect();
    arrivals.sort_unstable();
    let mut bytes = 0;
    let mut sums = arrivals.into_iter().map(|(at, more)| {
        bytes += more;
        (bytes, at)
    });
    sums.find(|(bytes, at)| bytes * 1000 > at * links)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A permutation completes when its most loaded link has sent everything: that link always has something to send. No more than the
    /// way of a packet to it and from it, and the ways of those before, come on top.
    #[test]
    fn the_last_completion_of_a_permutation_is_the_bound_of_the_bottleneck(
        order in Just((0..16_u32).collect::<Vec<_>>()).prop_shuffle(),
        packets in 200..600_u64,
    ) {
        let platform = network(&fat_tree(4), 1.0, 100.0);
        let pairs = (0..).zip(&order).filter(|(src, dst)| src != *dst);
        let messages: Vec<Sent> = pairs.map(|(src, &dst)| (0, src, dst, packets * PACKET)).collect();
        prop_assume!(!messages.is_empty());
        let largest = loads(&platform, &messages).into_values().max().unwrap() * 1000;
        let last = run(&platform, &parameters(InFlight::Unlimited), &messages).last();
        prop_assert!((largest..largest + 12 * 1_100_000).contains(&last), "{} {}", last, largest);
    }

    /// At one bottleneck with the limit of each message, every message ends as if its rate were fair: within a packet for each message
    /// and each link, and what the limit lets one be ahead.
    #[test]
    fn one_bottleneck_is_shared_fairly(sizes in proptest::collection::vec(300..900_u64, 2..7)) {
        let hosts = sizes.len() as u32 + 1;
        let platform = network(&format!("kind = 'cluster', hosts = {hosts}"), 1.0, 100.0);
        let messages: Vec<Sent> = (0..).zip(&sizes).map(|(src, &packets)| (0, src, hosts - 1, packets * PACKET)).collect();
        let done = run(&platform, &parameters(InFlight::Loop), &messages);
        for (message, &size) in sizes.iter().enumerate() {
            // Fair: while a message is there, each other one has sent as much as it, or all of its own.
            let fair: u64 = sizes.iter().map(|&other| other.min(size)).sum::<u64>() * 1_000_000;
            let tolerance = (sizes.len() as u64 + 2) * 1_000_000 + 400_000;
            prop_assert!(done.arrived[message].abs_diff(fair) <= tolerance, "{} {}", done.arrived[message], fair);
        }
    }

    /// No set of messages beats the capacity of the links that it shares: with any routing those of a host, and all up-links or all
    /// down-links of switches, which are fewer than the hosts below; with one way for each message, any link.
    #[test]
    fn nothing_beats_the_capacity_of_links(
        messages in proptest::collection::vec((0..16_u32, 1..16_u32, 0..200_000_u64), 1..40),
        routing in proptest::sample::select(vec![
            PacketRouting::Minimal, PacketRouting::Ecmp, PacketRouting::Spray, PacketRouting::Adaptive,
        ]),
        in_flight in proptest::sample::select(vec![InFlight::Unlimited, InFlight::Loop]),
    ) {
        let levels = "{ children = 4, parents = 1 }, { children = 2, parents = 2 }, { children = 2, parents = 1 }";
        let platform = network(&format!("kind = 'fat_tree', levels = [{levels}]"), 1.0, 100.0);
        let messages: Vec<Sent> =
            messages.into_iter().map(|(src, step, bytes)| (0, src, (src + step) % 16, bytes)).collect();
        let done = run(&platform, &PacketParameters { routing, ..parameters(in_flight) }, &messages);
        let early = |links, crosses: &dyn Fn(&Sent) -> bool| early(&messages, &done, links, crosses);
        for (hosts, links) in [(1, 1), (4, 2), (8, 2)] {
            for group in 0..16 / hosts {
                let below = |host: u32| host / hosts == group;
                prop_assert_eq!(early(links, &|&(_, src, dst, _)| below(src) && !below(dst)), None, "{} up", hosts);
                prop_assert_eq!(early(links, &|&(_, src, dst, _)| below(dst) && !below(src)), None, "{} down", hosts);
            }
        }
        if routing == PacketRouting::Minimal {
            for link in loads(&platform, &messages).into_keys() {
                let crosses = |&(_, src, dst, _): &Sent| {
                    let mut route = Vec::new();
                    platform.route(HostId::new(src), HostId::new(dst), &mut route).unwrap();
                    route.contains(&link)
                };
                prop_assert_eq!(early(1, &crosses), None, "{}", platform.link(link).name);
            }
        }
    }
}
