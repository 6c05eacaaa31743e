//! Operations that switches carry out.

use netmodel::{HostId, LinkLoads, Platform, SwitchOperation, SwitchOperationKind};
use packets::{DegradedLink, PacketError, PacketMachine, PacketParameters, Queues, Switching};

use crate::driver::{Part, Run, Sent, machine_of, run_operations};
use crate::networks::{fat_tree, leaf_spine, network};

const ALLREDUCE: SwitchOperationKind = SwitchOperationKind::Allreduce;
/// Time of a packet of 1000 B at 1 B/ns, and the latency of a link \[ps\].
const PACKET: u64 = 1_000_000;
const LATENCY: u64 = 100_000;

fn parameters() -> PacketParameters {
    PacketParameters { packet_bytes: 1000, ..PacketParameters::default() }
}

fn credits() -> PacketParameters {
    PacketParameters { queues: Queues::Credits, ..parameters() }
}

fn star(hosts: u32) -> Platform {
    network(&format!("kind = 'cluster', hosts = {hosts}"), 1.0, 100.0)
}

/// Returns the parts of hosts in the first operation of the communicator 5, which begin at these instants.
fn parts(kind: SwitchOperationKind, bytes: u64, begins: &[(u32, u64)]) -> Vec<Part> {
    let operation = SwitchOperation { communicator: 5, number: 1, kind };
    begins.iter().map(|&(host, at)| (at, host, bytes, operation)).collect()
}

/// Runs messages, and then an operation of all hosts that take part, with output queues; credits make no difference where buffers have room.
fn run_in(platform: &Platform, homes: &[u32], messages: &[Sent], parts: &[Part]) -> (Run, LinkLoads) {
    let with = |parameters: &PacketParameters| {
        let machine = machine_with(platform, parameters, homes, parts).unwrap();
        run_operations(&machine, platform, homes, (messages, parts))
    };
    let (fifo, credits) = (with(&parameters()), with(&credits()));
    let arrivals = |run: &Run| (run.arrived.clone(), run.packets.clone(), run.hops);
    assert_eq!(arrivals(&credits.0), arrivals(&fifo.0), "with credits");
    fifo
}

fn machine_with<'p>(
    platform: &'p Platform,
    parameters: &PacketParameters,
    homes: &[u32],
    parts: &[Part],
) -> Result<PacketMachine<'p>, PacketError> {
    let hosts = parts.iter().map(|part| HostId::new(part.1)).collect();
    machine_of(platform, parameters, homes).with_communicators([(5, hosts)])
}

fn run(platform: &Platform, messages: &[Sent], parts: &[Part]) -> Run {
    run_in(platform, &vec![0; platform.hosts().len()], messages, parts).0
}

fn at_zero(hosts: u32) -> Vec<(u32, u64)> {
    (0..hosts).map(|host| (host, 0)).collect()
}

/// All packets go one after the other over the links of a way up and of a way down, each of which takes a packet's time and a latency.
fn pipeline(links: u64, packets: u64) -> u64 {
    links * (PACKET + LATENCY) + (packets - 1) * PACKET
}

#[test]
fn a_vector_takes_one_way_up_and_one_way_down() {
    for (platform, hosts, links) in [
        (star(5), 5, 2),
        (network(&leaf_spine(4, 4, 2), 1.0, 100.0), 16, 4),
        (network(&fat_tree(4), 1.0, 100.0), 16, 6),
    ] {
        for packets in [1, 2, 7] {
            let done = run(&platform, &[], &parts(ALLREDUCE, packets * 1000, &at_zero(hosts)));
            assert_eq!(done.arrived, vec![pipeline(links, packets); hosts as usize], "{links} links");
            let reduce = SwitchOperationKind::Reduce { to: HostId::new(3) };
            let done = run(&platform, &[], &parts(reduce, packets * 1000, &at_zero(hosts)));
            let ends = |host| if host == 3 { pipeline(links, packets) } else { packets * PACKET };
            assert_eq!(done.arrived, (0..hosts).map(ends).collect::<Vec<_>>(), "{links} links");
        }
        // A packet of a byte, and one without any, which takes a picosecond.
        for (bytes, time) in [(1, 1_000), (0, 1)] {
            let done = run(&platform, &[], &parts(ALLREDUCE, bytes, &at_zero(hosts)));
            assert_eq!(done.last(), links * (time + LATENCY));
        }
    }
}

/// Copies leave each switch on the way up: the nearer a host, the sooner it has them.
#[test]
fn a_broadcast_reaches_near_hosts_first() {
    let platform = network(&fat_tree(4), 1.0, 100.0);
    let bcast = SwitchOperationKind::Bcast { from: HostId::new(5) };
    let mut begins = at_zero(16);
    // Data wait for the host that asks for them late.
    begins[15].1 = 50_000_000;
    let done = run(&platform, &[], &parts(bcast, 3000, &begins));
    let ends = |host| match host {
        5 => 3 * PACKET,
        4 => pipeline(2, 3),
        6 | 7 => pipeline(4, 3),
        15 => 50_000_000,
        _ => pipeline(6, 3),
    };
    assert_eq!(done.arrived, (0..16).map(ends).collect::<Vec<_>>());
}

/// The root of a communicator is as low as possible, and an operation ends a way up and down after its last host has begun.
#[test]
fn the_last_host_decides() {
    let platform = network(&fat_tree(4), 1.0, 100.0);
    for (hosts, links) in [([0, 1], 2), ([1, 2], 4), ([1, 14], 6)] {
        let begins = [(hosts[0], 7_000_000), (hosts[1], 3)];
        let done = run(&platform, &[], &parts(ALLREDUCE, 1000, &begins));
        assert_eq!(done.arrived, [7_000_000 + pipeline(links, 1); 2], "{hosts:?}");
    }
    let begins: Vec<(u32, u64)> = (0..16).map(|host| (host, u64::from(host * 7 % 16) * 300_001)).collect();
    let done = run(&platform, &[], &parts(ALLREDUCE, 0, &begins));
    assert_eq!(done.arrived, [15 * 300_001 + 6 * (LATENCY + 1); 16]);
}

/// Ten packets of a message leave a host one after the other when the packet of an operation joins them; and ten others keep the link
/// of a host busy that gets the result.
#[test]
fn messages_delay_operations() {
    let platform = star(4);
    let (alone, begin) = (pipeline(2, 1), 4_500_000);
    let ready = parts(ALLREDUCE, 1000, &[(0, begin), (1, 0), (2, 0)]);
    let message_alone = pipeline(2, 10);
    let done = run(&platform, &[(0, 0, 3, 10_000)], &ready);
    // The fifth packet is on the link, and the sixth one is next.
    assert_eq!(
        done.arrived,
        [message_alone + PACKET, 6 * PACKET + alone, 6 * PACKET + alone, 6 * PACKET + alone]
    );
    let done = run(&platform, &[(0, 3, 1, 10_000)], &ready);
    // The fifth packet leaves the switch half a microsecond after the result is there.
    let result = begin + alone;
    assert_eq!(done.arrived, [message_alone + PACKET, result, result + PACKET / 2, result]);
    // A message over other links delays nothing.
    let done = run(&platform, &[(0, 3, 0, 0)], &parts(ALLREDUCE, 1000, &[(1, 0), (2, 0)]));
    assert_eq!(done.arrived[1..], [alone; 2]);
}

/// Each cable of the tree carries the vector once up and once down, and the others nothing; a broadcast and a reduction once.
#[test]
fn each_cable_is_crossed_once_in_each_direction() {
    let platform = network(&leaf_spine(4, 4, 2), 1.0, 100.0);
    let homes = [0; 16];
    let bytes = |kind| {
        let (run, loads) = run_in(&platform, &homes, &[], &parts(kind, 5000, &at_zero(16)));
        let carried: Vec<u64> =
            loads.links.iter().map(|load| load.bytes).filter(|&bytes| bytes > 0).collect();
        assert!(carried.iter().all(|&bytes| bytes == 5000), "{carried:?}");
        assert_eq!(run.hops, 5 * carried.len() as u64);
        carried.len()
    };
    // 16 cables of hosts, and one of each leaf.
    assert_eq!(bytes(ALLREDUCE), 2 * 20);
    // From the hosts to the root, and over two links to the one host.
    assert_eq!(bytes(SwitchOperationKind::Reduce { to: HostId::new(6) }), 20 + 2);
    assert_eq!(bytes(SwitchOperationKind::Bcast { from: HostId::new(6) }), 2 + 18);
}

#[test]
fn regions_make_no_difference() {
    let platform = network(&fat_tree(4), 1.0, 100.0);
    let messages: Vec<Sent> = (0..16).map(|host| (0, host, (host * 5 + 3) % 16, 9_000)).collect();
    let mut all = Vec::new();
    for (number, kind) in (1..).zip([
        ALLREDUCE,
        SwitchOperationKind::Reduce { to: HostId::new(9) },
        SwitchOperationKind::Bcast { from: HostId::new(2) },
    ]) {
        let begin = |host: u32| u64::from(host * 11 % 16) * 777_777;
        let operation = SwitchOperation { communicator: 5, number, kind };
        all.extend((0..16).map(|host| (begin(host), host, 7_500, operation)));
    }
    let small = PacketParameters { buffer_bytes: 2000, ..credits() };
    for parameters in [parameters(), credits(), small] {
        let machine = |homes: &[u32]| {
            let members = (0..16).map(HostId::new).collect();
            machine_of(&platform, &parameters, homes).with_communicators([(5, members)]).unwrap()
        };
        let on = |homes: &[u32]| run_operations(&machine(homes), &platform, homes, (&messages, &all)).0;
        let one = on(&[0; 16]);
        assert!(one.last() > pipeline(6, 24));
        for regions in [2, 4, 16] {
            let homes: Vec<u32> = (0..16).map(|host| host * regions / 16).collect();
            assert_eq!(on(&homes), one, "{regions} regions, {parameters:?}");
        }
    }
}

/// Packets that wait in a switch for those of other hosts are in its memory: the vector of a host leaves through a buffer of one packet, and
/// so does a message behind it, before the others begin.
#[test]
fn operations_that_wait_leave_buffers_to_messages() {
    let platform = star(4);
    let parameters = PacketParameters { buffer_bytes: 1000, ..credits() };
    let late = 50_000_000;
    let parts = parts(ALLREDUCE, 5_000, &[(0, 0), (1, late), (2, 0)]);
    let machine = machine_with(&platform, &parameters, &[0; 4], &parts).unwrap();
    let (run, _) = run_operations(&machine, &platform, &[0; 4], (&[(1, 0, 3, 3_000)], &parts));
    // A packet leaves when the credit of the one before it is back, two latencies after its last byte has left: there are eight.
    assert!(run.arrived[0] < 10 * (PACKET + 2 * LATENCY), "{:?}", run.arrived);
    // So do the packets of the host that is late, and those that come down.
    let vector = late + 5 * PACKET + 4 * 2 * LATENCY + PACKET + 2 * LATENCY;
    assert_eq!(run.arrived[1..], [vector; 3]);
}

/// Headers cut through: an allreduce of one packet takes the time of the packet once, and that of its header on each other link.
#[test]
fn switches_combine_what_cuts_through() {
    let platform = network(&leaf_spine(4, 4, 2), 1.0, 100.0);
    let parts = parts(ALLREDUCE, 990, &at_zero(16));
    for queues in [Queues::Fifo, Queues::Credits] {
        let parameters = PacketParameters {
            queues,
            switching: Switching::CutThrough,
            header_bytes: 10,
            packet_bytes: 990,
            ..PacketParameters::default()
        };
        let machine = machine_with(&platform, &parameters, &[0; 16], &parts).unwrap();
        let (run, _) = run_operations(&machine, &platform, &[0; 16], (&[], &parts));
        assert_eq!(run.last(), PACKET + 3 * 10_000 + 4 * LATENCY, "{queues:?}");
    }
}

#[test]
fn what_does_not_work_is_refused() {
    let parts = parts(ALLREDUCE, 0, &at_zero(4));
    let torus = network("kind = 'torus', dims = [4, 4]", 1.0, 100.0);
    let refused = machine_with(&torus, &parameters(), &[0; 16], &parts).map(drop).unwrap_err();
    let first = torus.hosts()[0].name.clone();
    assert_eq!(refused, PacketError::NoSwitchAbove { first, others: 3 });
}

/// A tree avoids links that have failed.
#[test]
fn trees_avoid_links_that_have_failed() {
    let platform = network(&leaf_spine(4, 4, 2), 1.0, 100.0);
    let all = parts(ALLREDUCE, 1000, &at_zero(16));
    let (_, loads) = run_in(&platform, &[0; 16], &[], &all);
    let used: Vec<String> = loads
        .links
        .iter()
        .filter(|load| load.bytes > 0)
        .map(|load| platform.link(load.link).name.clone())
        .collect();
    let between_switches = platform.links().iter().map(|link| &link.name).filter(|name| used.contains(name));
    // Whichever of its links fails, one way up and down is left, through the other spine; without the one of a host there is none.
    let mut rerouted = 0;
    for link in between_switches {
        let degraded = vec![DegradedLink { link: link.clone(), rate: 0.0 }];
        let parameters = PacketParameters { degraded, routing: packets::PacketRouting::Ecmp, ..parameters() };
        let Ok(machine) = PacketMachine::new(&platform, &parameters, (&[0; 16], 1)) else { continue };
        let machine = machine.with_communicators([(5, (0..16).map(HostId::new).collect())]).unwrap();
        let (run, loads) = run_operations(&machine, &platform, &[0; 16], (&[], &all));
        assert_eq!(run.last(), pipeline(4, 1));
        assert!(loads.links.iter().all(|load| platform.link(load.link).name != *link || load.bytes == 0));
        rerouted += 1;
    }
    assert_eq!(rerouted, 8, "four cables between leaves and a spine");
}
