//! Links whose bandwidths change, that fail and return.

use netmodel::{LinkId, NetworkGraph, NodeId, Platform, Resource, ResourceChange};
use packets::{DegradedLink, PacketError, PacketMachine, PacketParameters, PacketRouting, Queues, Switching};
use pdes_core::SimTime;

use crate::driver::{Run, Sent, run, run_in, run_recorded};
use crate::networks::{chain, leaf_spine, network};

fn parameters(queues: Queues, routing: PacketRouting) -> PacketParameters {
    PacketParameters { queues, routing, packet_bytes: 1000, ..PacketParameters::default() }
}

fn link(platform: &Platform, name: &str) -> LinkId {
    let place = platform.links().iter().position(|link| link.name == name).unwrap();
    LinkId::new(place as u32)
}

/// Changes the bandwidth of a link [B/s] at instants \[ps\].
fn change(platform: &mut Platform, link: LinkId, values: &[(u64, f64)]) {
    let resource = Resource::Bandwidth(link);
    let change = |&(at, value)| ResourceChange { at: SimTime::from_picos(at), resource, value };
    platform.set_changes(values.iter().map(change)).unwrap();
}

const QUEUES: [Queues; 2] = [Queues::Fifo, Queues::Credits];

/// Ten packets of a microsecond each. The third one is half sent when the bandwidth changes: to a half, it takes 0.5 us more, and each of
/// the seven others 1 us; to nothing, all wait.
#[test]
fn packets_go_on_at_the_present_bandwidth() {
    for (values, delay) in [
        (&[(2_500_000, 5e8)][..], 7_500_000),
        (&[(2_500_000, 2e9)], -3_750_000),
        (&[(2_500_000, 0.0), (4_500_000, 1e9)], 2_000_000),
        (&[(2_500_000, 0.0), (4_500_000, 5e8)], 9_500_000),
        (&[(1_000_000_000_000, 0.0)], 0),
    ] {
        for (links, name, alone) in [(1, "0_UP", 10_100_000), (2, "0_UP", 11_200_000)] {
            for queues in QUEUES {
                let mut platform = chain(&vec![(1.0, 100.0); links]);
                let link = link(&platform, name);
                change(&mut platform, link, values);
                let parameters = parameters(queues, PacketRouting::Minimal);
                let message = [(0, 0, 1, 10_000)];
                let (done, loads) = run_recorded(&platform, &parameters, &[0; 2], &message);
                // A second link takes what comes when it comes, each microsecond at the most.
                let delay = if links == 2 { i64::max(delay, 0) } else { delay };
                assert_eq!(done.last() as i64, alone + delay, "{values:?} {queues:?} {links} links");
                let load = loads.links.iter().find(|load| load.link == link).unwrap();
                // It carries what it can while it sends, and has no load while it is off.
                let sending = alone + delay - 100_000 - if links == 2 { 1_100_000 } else { 0 };
                let off = if values[0].1 == 0.0 && values.len() > 1 { 2_000_000 } else { 0 };
                if links == 1 {
                    let full = (sending - off) as f64 / 1e12;
                    assert!((load.full_time_s / full - 1.0).abs() < 1e-6, "{values:?}: {load:?}, {full}");
                }
                assert!(load.series.iter().all(|part| part.is_finite()), "{load:?}");
            }
        }
    }
}

/// Two leaves of four hosts each below two spines, and the link from the first leaf to the first spine.
fn tree() -> (Platform, LinkId) {
    let platform = network(&leaf_spine(2, 4, 2), 1.0, 100.0);
    let graph = NetworkGraph::of(&platform).unwrap();
    let leaf = graph.channel(graph.outputs(NodeId::new(0))[0]).to;
    let mut up = graph.outputs(leaf).iter().map(|&channel| graph.channel(channel));
    let up = up.find(|channel| channel.to.index() >= graph.hosts() as usize).unwrap();
    (platform, up.link)
}

fn messages() -> Vec<Sent> {
    (0..8).map(|host| (0, host, (host + 4) % 8, 30_000)).collect()
}

/// Packets go around a link that is off from the begin on as around one that has failed, and around one that fails later.
#[test]
fn packets_go_around_links_that_are_off() {
    for routing in [PacketRouting::Ecmp, PacketRouting::Spray, PacketRouting::Adaptive] {
        let (mut platform, up) = tree();
        let parameters = parameters(Queues::Fifo, routing);
        let whole = run(&platform, &parameters, &messages());
        let degraded = vec![DegradedLink { link: platform.link(up).name.clone(), rate: 0.0 }];
        let failed = run(&platform, &PacketParameters { degraded, ..parameters.clone() }, &messages());
        change(&mut platform, up, &[(0, 0.0)]);
        assert_eq!(run(&platform, &parameters, &messages()), failed, "{routing:?}");
        change(&mut platform, up, &[(10_000_000, 0.0), (10_000_000_000_000, 1e9)]);
        let done = run(&platform, &parameters, &messages());
        let lasts = [&whole, &done, &failed].map(Run::last);
        if routing == PacketRouting::Ecmp {
            // The hashes decide which flows have to move.
            assert!(lasts.is_sorted() && lasts[1] < 1_000_000_000, "{routing:?}: {lasts:?}");
        } else {
            assert!(lasts[0] < lasts[1] && lasts[1] < lasts[2], "{routing:?}: {lasts:?}");
        }
        let homes = [0, 0, 0, 1, 1, 2, 2, 2];
        assert_eq!(run_in(&platform, &parameters, &homes, &messages()), done, "{routing:?}");
        change(&mut platform, up, &[(0, 0.0), (1, 1e9)]);
        assert_eq!(run(&platform, &parameters, &messages()), whole, "{routing:?}: it is back");
    }
}

/// Without a way around packets wait for the repair: 900 B of the second packet are sent after 3 us, and all that follows is 5 us late.
#[test]
fn packets_that_are_cut_off_wait() {
    for (routing, queues) in [
        (PacketRouting::Minimal, Queues::Fifo),
        (PacketRouting::Minimal, Queues::Credits),
        (PacketRouting::Spray, Queues::Fifo),
    ] {
        let mut platform = network(&leaf_spine(2, 1, 1), 1.0, 100.0);
        let graph = NetworkGraph::of(&platform).unwrap();
        let leaf = graph.channel(graph.outputs(NodeId::new(0))[0]).to;
        let mut up = graph.outputs(leaf).iter().map(|&channel| graph.channel(channel));
        let up = up.next_back().filter(|up| up.to.index() > 1).unwrap().link;
        change(&mut platform, up, &[(3_000_000, 0.0), (8_000_000, 1e9)]);
        let done = run(&platform, &parameters(queues, routing), &[(0, 0, 1, 10_000)]);
        assert_eq!(done.last(), 13_400_000 + 5_000_000, "{routing:?} {queues:?}");
    }
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    let refusal = |changes: &[(u64, f64)], parameters: PacketParameters| {
        let (mut platform, up) = tree();
        change(&mut platform, up, changes);
        let name = platform.link(up).name.clone();
        (PacketMachine::new(&platform, &parameters, (&[0; 8], 1)).unwrap_err(), name)
    };
    let fifo = parameters(Queues::Fifo, PacketRouting::Spray);
    let cut_through = PacketParameters { switching: Switching::CutThrough, ..fifo.clone() };
    let (error, link) = refusal(&[(5, 2e9)], cut_through);
    assert_eq!(error, PacketError::ChangingCutThrough { link });
    let (error, link) = refusal(&[(5, 0.0)], parameters(Queues::Credits, PacketRouting::Spray));
    assert_eq!(error, PacketError::ChangingWays { link, routing: "spray".to_owned() });
    let often: Vec<(u64, f64)> = (0..300).map(|at| (at, f64::from(at as u32 % 2))).collect();
    let (error, link) = refusal(&often, fifo);
    assert_eq!(error, PacketError::ManyOutages { link, most: 256 });
    let (mut platform, up) = tree();
    let latency = ResourceChange { at: SimTime::ZERO, resource: Resource::Latency(up), value: 1e-6 };
    platform.set_changes([latency]).unwrap();
    let error = PacketMachine::new(&platform, &PacketParameters::default(), (&[0; 8], 1)).unwrap_err();
    assert_eq!(error, PacketError::ChangingLatency { link: platform.link(up).name.clone() });
}
