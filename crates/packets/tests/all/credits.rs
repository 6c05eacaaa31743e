//! Credits: closed forms (`../shared/oracle/packets/closed-forms.csv`), and networks that cannot deadlock.

use packets::{Arbitration, Crossbar, PacketParameters, PacketRouting, Queues, Switching};

use crate::driver::{Sent, machine, run};
use crate::networks::{chain, fat_tree, network};

/// Parameters for buffers of so many packets, without headers.
fn credits(packet_bytes: u32, buffer_packets: u32) -> PacketParameters {
    PacketParameters {
        queues: Queues::Credits,
        packet_bytes,
        buffer_bytes: buffer_packets * packet_bytes,
        ..PacketParameters::default()
    }
}

/// One link: `T = floor((P - 1) / B) max(loop, B s/C) + ((P - 1) mod B) s/C + s/C + d`, where the loop is `s/C + 2 d`.
#[test]
fn a_link_sends_a_buffer_in_each_loop() {
    for (packets, bytes, buffer, rate, latency, expected) in [
        (1000, 256, 4, 12.5, 100.0, 55_081_440),
        (1000, 256, 16, 12.5, 100.0, 20_580_000),
        (777, 4096, 1, 25.0, 500.0, 903_803_680),
        (100, 1000, 11, 10.0, 450.0, 10_450_000),
    ] {
        let done = run(
            &chain(&[(rate, latency)]),
            &credits(bytes, buffer),
            &[(0, 0, 1, packets * u64::from(bytes))],
        );
        assert_eq!(done.last(), expected, "{packets} packets, {buffer} buffers");
    }
}

/// The share of the link is that of a buffer in a loop.
#[test]
fn a_buffer_in_each_loop_is_a_share_of_the_link() {
    for (bytes, buffer, rate, latency, expected) in [
        (256, 4, 12.5, 100.0, 0.371_552_975),
        (256, 16, 12.5, 100.0, 1.0),
        (4096, 1, 25.0, 500.0, 0.140_775_364),
        (1000, 11, 10.0, 450.0, 1.0),
    ] {
        let last = |buffers: u32| {
            let message = (0, 0, 1, u64::from(buffers * buffer) * u64::from(bytes));
            run(&chain(&[(rate, latency)]), &credits(bytes, buffer), &[message]).last()
        };
        let sent = f64::from(100 * buffer * bytes) / rate * 1e3;
        let share = sent / (last(101) - last(1)) as f64;
        assert!((share - expected).abs() < 1e-9, "{buffer} buffers: {share}, expected {expected}");
    }
}

/// One message of 489 packets of 4150 B and one of 2010 B over six links of 100 Gb/s and 1 us, with cut-through: `B` packets in each loop
/// of 2.332 us, 0.161 us for the last packet and 6 us of latency.
#[test]
fn a_way_sends_a_buffer_in_each_loop() {
    for (buffer, expected) in
        [(1, 1146.509), (2, 575.501), (4, 290.997), (6, 196.049), (7, 169.061), (8, 168.509), (64, 168.509)]
    {
        let parameters = PacketParameters { switching: Switching::CutThrough, ..credits(4150, buffer) };
        let done = run(&chain(&[(12.5, 1000.0); 6]), &parameters, &[(0, 0, 1, 489 * 4150 + 2010)]);
        let micros = (done.last() as f64 / 1e3).round() / 1e3;
        assert_eq!(micros, expected, "{buffer} packets per buffer");
    }
}

/// In an incast the switch serves inputs in turn, as output queues do.
#[test]
fn incasts_serve_senders_in_turn() {
    let platform = network("kind = 'cluster', hosts = 5", 1.0, 50.0);
    let sent = |(src, packets): (u32, u64)| (0, src, 4, packets * 100);
    let messages: Vec<_> = (0..).zip([1, 2, 4, 8]).map(sent).collect();
    for buffer in [3, 64] {
        let done = run(&platform, &credits(100, buffer), &messages);
        assert_eq!(done.arrived, [300_000, 700_000, 1_200_000, 1_700_000], "{buffer} packets per buffer");
    }
}

/// Saturated inputs whose packets go to random outputs: the first packet of a buffer keeps those behind it from outputs that are free
/// (Karol, Hluchyj and Morgan, "Input Versus Output Queueing on a Space-Division Packet Switch", 1987). The shares are exact values of
/// the Markov chain of the first packets.
#[test]
fn packets_behind_the_first_one_wait() {
    for (ports, expected) in [(2, 0.75), (3, 0.682_539_683), (4, 0.655_241_935), (8, 0.618_389_892)] {
        let platform = network(&format!("kind = 'cluster', hosts = {}", 2 * ports), 1.0, 1000.0);
        for arbitration in [Arbitration::RoundRobin, Arbitration::Age] {
            let packets = 4000;
            let mut random = 1_u64;
            let mut target = || {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ports + ((random >> 33) % u64::from(ports)) as u32
            };
            let messages: Vec<Sent> =
                (0..packets * ports).map(|number| (0, number % ports, target(), 1000)).collect();
            let parameters =
                PacketParameters { arbitration, crossbar: Crossbar::Serial, ..credits(1000, 16) };
            let done = run(&platform, &parameters, &messages);
            // From a tenth to three quarters of the packets that the outputs could send: all inputs have packets.
            let slot = |slots: u32| u64::from(slots) * 1_000_000;
            let (begin, end) = (packets / 10, packets / 2);
            let window = slot(begin)..slot(end);
            let arrived = done.packets.iter().filter(|packet| window.contains(&packet.at)).count();
            let share = arrived as f64 / f64::from((end - begin) * ports);
            // Some four standard errors.
            assert!(
                (share - expected).abs() < 0.02,
                "{ports} ports, {arbitration:?}: {share}, expected {expected}"
            );
        }
    }
}

/// Tornado on a torus: all links of one direction have three flows, and each has a third by age. In turn, the channels behind the
/// dateline are at an advantage.
#[test]
fn tornado_has_a_third_of_a_link_by_age() {
    let platform = network("kind = 'torus', dims = [8]", 1.0, 100.0);
    let packets = 400;
    let messages: Vec<Sent> = (0..8).map(|host| (0, host, (host + 3) % 8, packets * 1000)).collect();
    let last = |arbitration| {
        let parameters = PacketParameters { arbitration, ..credits(1000, 16) };
        run(&platform, &parameters, &messages).last() as f64 / (packets * 1_000_000) as f64
    };
    assert!((3.0..3.15).contains(&last(Arbitration::Age)), "{}", last(Arbitration::Age));
    assert!(last(Arbitration::RoundRobin) > last(Arbitration::Age));
}

const DRAGONFLY: &str =
    "kind = 'dragonfly', groups = 5, blue = 1, chassis = 2, black = 1, blades = 3, green = 1, nodes = 2";

/// For each topology and routing the graph of channels that wait for each other has no circle; with one channel it has one where ways do
/// not only go up and down.
#[test]
fn channels_do_not_wait_in_a_circle() {
    use PacketRouting::{Adaptive, Ecmp, Minimal, Par, Spray, UgalG, UgalL, Valiant};
    let tree = fat_tree(4);
    for (topology, routing, has_circle) in [
        ("kind = 'cluster', hosts = 4", Minimal, false),
        (&tree, Minimal, false),
        (&tree, Ecmp, false),
        (&tree, Adaptive, false),
        ("kind = 'torus', dims = [5, 4, 3]", Minimal, true),
        ("kind = 'torus', dims = [4, 4]", Spray, true),
        ("kind = 'torus', dims = [4, 3]", Valiant, true),
        (DRAGONFLY, Minimal, true),
        (DRAGONFLY, Adaptive, true),
        (DRAGONFLY, Valiant, true),
        (DRAGONFLY, UgalL, true),
        (DRAGONFLY, UgalG, true),
        (DRAGONFLY, Par, true),
    ] {
        let platform = network(topology, 1.0, 100.0);
        let parameters = PacketParameters { routing, ..credits(1000, 1) };
        let circle = machine(&platform, &parameters).find_circular_wait().unwrap();
        assert_eq!(circle, None, "{routing:?} on {topology}");
        // With FIFO queues there is one channel.
        let fifo = PacketParameters { queues: Queues::Fifo, ..parameters };
        if !matches!(routing, Valiant | UgalL | UgalG | Par) {
            let circle = machine(&platform, &fifo).find_circular_wait().unwrap();
            assert_eq!(circle.is_some(), has_circle, "{routing:?} on {topology}");
        }
    }
}

/// Routings of a dragonfly whose longest shortest ways cross three cables between routers need no more channels than they change.
#[test]
fn each_routing_has_as_many_channels_as_it_needs() {
    let shape =
        "kind = 'dragonfly', groups = 4, blue = 1, chassis = 1, black = 1, blades = 4, green = 1, nodes = 1";
    let platform = network(shape, 1.0, 100.0);
    let with_credits = PacketRouting::ALL.into_iter().filter(|&routing| routing != PacketRouting::Reps);
    let channels = with_credits.map(|routing| {
        let machine = machine(&platform, &PacketParameters { routing, ..credits(1000, 1) });
        (routing.name(), machine.virtual_channels())
    });
    let expected = [
        ("minimal", 2),
        ("ecmp", 3),
        ("spray", 3),
        ("adaptive", 3),
        ("flowlets", 3),
        ("valiant", 3),
        ("ugal-l", 3),
        ("ugal-g", 3),
        ("par", 4),
    ];
    assert_eq!(channels.collect::<Vec<_>>(), expected);
}

/// With buffers of one packet everything arrives.
#[test]
fn the_smallest_buffers_do_not_deadlock() {
    use PacketRouting::{Adaptive, Minimal, Par, Spray, UgalG, UgalL, Valiant};
    for (topology, hosts, routings) in [
        ("kind = 'torus', dims = [5, 3]", 15, &[Minimal, Spray, Adaptive, Valiant][..]),
        (DRAGONFLY, 60, &[Minimal, Adaptive, Valiant, UgalL, UgalG, Par]),
    ] {
        let platform = network(topology, 1.0, 100.0);
        let messages: Vec<Sent> = (0..hosts * 40_u32)
            .map(|number| (0, number % hosts, (number * 7 + number / hosts * 11 + 1) % hosts, 3_000))
            .filter(|&(_, src, dst, _)| src != dst)
            .collect();
        for &routing in routings {
            let done = run(&platform, &PacketParameters { routing, ..credits(1000, 1) }, &messages);
            assert_eq!(done.packets.len(), 3 * messages.len(), "{routing:?} on {topology}");
        }
    }
}

/// Returns the share of the rate of its link that each host receives, when all hosts send without end; without the filling of the network.
fn accepted(
    topology: &str,
    hosts: u32,
    parameters: &PacketParameters,
    target: impl Fn(u32, u32) -> u32,
) -> f64 {
    let platform = network(topology, 12.5, 100.0);
    let packets = 300;
    let bytes = u64::from(parameters.packet_bytes);
    let messages: Vec<Sent> = (0..hosts * packets)
        .map(|number| (0, number % hosts, target(number % hosts, number / hosts), bytes))
        .collect();
    let done = run(&platform, parameters, &messages);
    let slot = bytes as f64 / 12.5 * 1e3;
    let window = (packets as f64 * 0.3 * slot) as u64..(packets as f64 * 0.8 * slot) as u64;
    let arrived = done.packets.iter().filter(|packet| window.contains(&packet.at)).count();
    arrived as f64 / (f64::from(hosts) * 0.5 * f64::from(packets))
}

/// All hosts of a group send to one other group, over one cable: `1/(a p)` of a link each. Over third groups it is `(g - 2)/(2 a p)` at
/// most, of which heads of buffers that wait take less than a tenth; UGAL and PAR have both, but for that tenth. The groups of source and
/// destination are such that the same router of each third group has the cables to both: otherwise links inside groups are the bottleneck.
#[test]
fn routings_of_dragonflies_share_the_cables_between_groups() {
    // 2 hosts a router, 4 routers a group, 2 cables to other groups a router.
    let shape =
        "kind = 'dragonfly', groups = 9, blue = 1, chassis = 1, black = 1, blades = 4, green = 1, nodes = 2";
    let share = |routing| {
        let parameters = PacketParameters { routing, ..credits(4096, 16) };
        accepted(shape, 72, &parameters, |host, number| {
            let group = host / 8;
            let other = if group + 4 < 9 { group + 4 } else { group % 4 };
            other * 8 + (host + number) % 8
        })
    };
    let minimal = share(PacketRouting::Minimal);
    let cable = 1.0 / 8.0;
    assert!((minimal - cable).abs() < 0.001, "{minimal}");
    let third_groups = 7.0 / 16.0;
    for (routing, bound) in [
        (PacketRouting::Valiant, third_groups),
        (PacketRouting::UgalL, third_groups + cable),
        (PacketRouting::UgalG, third_groups + cable),
        (PacketRouting::Par, third_groups + cable),
    ] {
        let share = share(routing);
        assert!((0.9 * bound..bound).contains(&share), "{routing:?}: {share}, bound {bound}");
    }
}
