//! Times that follow from a formula (`../shared/oracle/packets/closed-forms.csv`), in nanoseconds.

use packets::{InFlight, PacketParameters, Switching};

use crate::driver::run;
use crate::networks::{chain, network};

fn nanos(picos: u64) -> f64 {
    picos as f64 / 1e3
}

/// Parameters for packets of so many bytes, with any number in flight and with the limit of the loop: the limit makes no difference to
/// a lone message.
fn both_limits(packet_bytes: u32) -> [PacketParameters; 2] {
    [InFlight::Unlimited, InFlight::Loop].map(|in_flight| PacketParameters {
        packet_bytes,
        in_flight: Some(in_flight),
        ..PacketParameters::default()
    })
}

#[test]
fn chains_store_and_forward() {
    // T = sum of (s/C_i + d_i) + (P - 1) s/min C, the last packet shorter in the fourth case.
    let equal = |links: usize, rate: f64, latency: f64| vec![(rate, latency); links];
    for (bytes, packet, links, expected) in [
        (4096, 4096, equal(1, 12.5, 500.0), 827.68),
        (4096, 4096, equal(4, 12.5, 500.0), 3310.72),
        (100 * 4096, 4096, equal(4, 12.5, 500.0), 35751.04),
        (244 * 4096 + 576, 4096, equal(6, 12.5, 1000.0), 87638.4),
        (64, 4096, equal(3, 25.0, 300.0), 907.68),
        (64 * 4096, 4096, vec![(12.5, 500.0), (6.25, 1000.0), (25.0, 500.0)], 44434.56),
        (10 * 1500, 1500, vec![(125.0, 10.0), (0.125, 10000.0), (125.0, 10.0)], 130044.0),
    ] {
        for parameters in both_limits(packet) {
            let done = run(&chain(&links), &parameters, &[(0, 0, 1, bytes)]);
            assert_eq!(nanos(done.last()), expected, "{bytes} bytes over {links:?}, {parameters:?}");
        }
    }
}

#[test]
fn the_sender_is_free_when_its_last_byte_has_left() {
    let [parameters, _] = both_limits(4096);
    let done = run(&chain(&[(12.5, 500.0); 4]), &parameters, &[(0, 0, 1, 100 * 4096)]);
    assert_eq!(nanos(done.left[0]), 100.0 * 4096.0 / 12.5);
    assert_eq!(done.hops, 400);
}

#[test]
fn chains_cut_through() {
    // T = h d + (h - 1) (H/C + t_r) + M/C, in any number of packets back to back; a routing time is latency of the links before.
    let cases = [
        (4096, 32, vec![(12.5, 150.0), (12.5, 150.0), (12.5, 100.0)], 732.8),
        (1 << 20, 64, vec![(25.0, 100.0); 5], 42453.28),
        (4096, 4096, vec![(12.5, 100.0); 3], 1283.04),
    ];
    for (bytes, header_bytes, links, expected) in cases {
        // All bytes are those of packets with their headers.
        for packets in [1, 4, 16].into_iter().filter(|packets| bytes / packets >= header_bytes.into()) {
            let parameters = PacketParameters {
                packet_bytes: ((bytes / packets) as u32 - header_bytes).max(1),
                header_bytes,
                switching: Switching::CutThrough,
                ..PacketParameters::default()
            };
            let payload = bytes - packets * u64::from(header_bytes);
            let done = run(&chain(&links), &parameters, &[(0, 0, 1, payload)]);
            assert_eq!(nanos(done.last()), expected, "{packets} packets over {links:?}");
        }
    }
}

#[test]
fn a_faster_output_waits_for_the_last_byte() {
    // 1000 bytes at 1 B/ns, then at 4 B/ns: the last byte enters the switch at 1000 + 10 ns and leaves as it comes.
    let parameters = PacketParameters {
        packet_bytes: 990,
        header_bytes: 10,
        switching: Switching::CutThrough,
        ..PacketParameters::default()
    };
    let done = run(&chain(&[(1.0, 10.0), (4.0, 10.0)]), &parameters, &[(0, 0, 1, 990)]);
    assert_eq!(nanos(done.last()), 1000.0 + 10.0 + 10.0);
    // With a slower output the head start remains: 10 B at 4 B/ns and 10 ns, then 1000 ns and 10 ns.
    let done = run(&chain(&[(4.0, 10.0), (1.0, 10.0)]), &parameters, &[(0, 0, 1, 990)]);
    assert_eq!(nanos(done.last()), 2.5 + 10.0 + 1000.0 + 10.0);
}

#[test]
fn incasts_serve_senders_in_turn() {
    // T_i = 2 d + t + t (P_i + sum over j < i of min(P_j, P_i) + sum over j > i of min(P_j, P_i - 1)).
    for (packets, time, latency, expected) in [
        ([5, 5, 5, 5], 328.0, 500.0, [6904.0, 7232.0, 7560.0, 7888.0]),
        ([1, 2, 4, 8], 100.0, 50.0, [300.0, 700.0, 1200.0, 1700.0]),
    ] {
        let platform = network("kind = 'cluster', hosts = 5", 1.0, latency);
        let [parameters, _] = both_limits(time as u32);
        let sent = |(src, &count): (u32, &u64)| (0, src, 4, count * time as u64);
        let messages: Vec<_> = (0..).zip(&packets).map(sent).collect();
        let done = run(&platform, &parameters, &messages);
        let arrived: Vec<f64> = done.arrived.iter().copied().map(nanos).collect();
        assert_eq!(arrived, expected);
    }
}

#[test]
fn messages_without_bytes_are_a_header() {
    let links = [(12.5, 500.0); 3];
    let parameters = PacketParameters { header_bytes: 100, ..PacketParameters::default() };
    let done = run(&chain(&links), &parameters, &[(0, 0, 1, 0)]);
    assert_eq!(nanos(done.last()), 3.0 * (8.0 + 500.0));
    // Without a header each link takes a picosecond, and messages stay in their order.
    let done = run(&chain(&links), &PacketParameters::default(), &[(0, 0, 1, 0), (0, 0, 1, 0), (0, 0, 1, 0)]);
    assert_eq!(done.arrived, [1_500_003, 1_500_004, 1_500_005]);
}
