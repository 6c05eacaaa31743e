//! Windows that marks of long queues set, and credits of receivers.

use std::path::PathBuf;

use packets::{Congestion, PacketParameters, Queues};

use crate::driver::{Run, Sent, run};
use crate::networks::{leaf_spine, network};

fn dctcp(packet_bytes: u32, header_bytes: u32, mark_bytes: u32) -> PacketParameters {
    PacketParameters {
        packet_bytes,
        header_bytes,
        congestion: Congestion::Dctcp,
        mark_bytes,
        ..PacketParameters::default()
    }
}

/// Ten senders and one receiver. With the limit of the loop, 14 packets of each sender wait before the receiver; with windows the queue
/// is near the mark of 8 packets or a packet of each sender, as a message that comes later notices. The receiver's link is as busy.
#[test]
fn windows_keep_queues_short_and_links_busy() {
    let platform = network("kind = 'cluster', hosts = 12", 1.0, 3000.0);
    let mut messages: Vec<Sent> = (0..10).map(|src| (0, src, 11, 2_000_000)).collect();
    messages.push((10_000_000_000, 10, 11, 1000));
    let marked = dctcp(1000, 0, 8000);
    let none = PacketParameters { congestion: Congestion::None, ..marked.clone() };
    let [none, marked] = [none, marked].map(|parameters| run(&platform, &parameters, &messages));
    let latency = |done: &Run| (done.arrived[10] - 10_000_000_000) / 1_000_000;
    let alone = 2 * 3 + 2;
    assert!(latency(&none) > alone + 100, "{} us", latency(&none));
    assert!(latency(&marked) < alone + 40, "{} us", latency(&marked));
    let bound = 20_001_000_000;
    assert!(none.last() < bound + bound / 1000, "{}", none.last());
    assert!(marked.last() < bound + bound / 50, "{}", marked.last());
}

/// Another sender makes one packet and all behind it wait, so that one notification halves the rate of a message. It rises by half of what
/// is missing every 55 us: all in all it loses the bytes of 55 us, and is as much later.
#[test]
fn a_notification_costs_a_message_one_step_of_its_timer() {
    let platform = network("kind = 'cluster', hosts = 3", 1.0, 1000.0);
    let dcqcn = PacketParameters { congestion: Congestion::Dcqcn, ..dctcp(1000, 0, 1000) };
    let alone = run(&platform, &dcqcn, &[(0, 0, 2, 2_000_000)]);
    let none = PacketParameters { congestion: Congestion::None, ..dcqcn.clone() };
    assert_eq!(alone, run(&platform, &none, &[(0, 0, 2, 2_000_000)]), "without marks nothing changes");
    let disturbed = run(&platform, &dcqcn, &[(0, 0, 2, 2_000_000), (300_000_000, 1, 2, 2000)]);
    let lost = (disturbed.arrived[0] - alone.arrived[0]) as f64 / 1e6;
    assert!((lost - 55.0).abs() < 3.0, "{lost} us");
}

/// Ten senders and one receiver: a message that comes later waits for next to nothing, and no sender is favoured. As the estimate of the
/// congestion falls by a 256th in 55 us only, each cut is by half, and the link is idle for more than with windows.
#[test]
fn rates_keep_queues_short_and_share_links() {
    let platform = network("kind = 'cluster', hosts = 12", 1.0, 3000.0);
    let mut messages: Vec<Sent> = (0..10).map(|src| (0, src, 11, 2_000_000)).collect();
    messages.push((10_000_000_000, 10, 11, 1000));
    let dcqcn = PacketParameters { congestion: Congestion::Dcqcn, ..dctcp(1000, 0, 8000) };
    let done = run(&platform, &dcqcn, &messages);
    let alone = 2 * 3 + 2;
    let latency = (done.arrived[10] - 10_000_000_000) / 1_000_000;
    assert!(latency < alone + 40, "{latency} us");
    let (bound, first) = (20_001_000_000, *done.arrived[..10].iter().min().unwrap());
    assert!((bound..bound + bound / 5).contains(&done.last()), "{}", done.last());
    assert!(first > done.last() - done.last() / 20, "{first}");
}

fn of_receivers(packet_bytes: u32) -> PacketParameters {
    PacketParameters { congestion: Congestion::ReceiverCredits, packet_bytes, ..PacketParameters::default() }
}

/// A lone message, and those of one sender, are as fast as without: credits come in time.
#[test]
fn credits_of_receivers_delay_no_lone_sender() {
    for (topology, rate) in [("kind = 'cluster', hosts = 4".to_owned(), 1.0), (leaf_spine(2, 2, 2), 12.5)] {
        let platform = network(&topology, rate, 700.0);
        for messages in [vec![(0, 0, 3, 1_000_000)], vec![(0, 0, 3, 400_300), (5_000, 0, 2, 300_000)]] {
            let credits = of_receivers(1000);
            let none = PacketParameters { congestion: Congestion::None, ..credits.clone() };
            let [none, credits] = [none, credits].map(|parameters| run(&platform, &parameters, &messages));
            assert_eq!(credits, none, "{topology}, {messages:?}");
        }
    }
}

/// Ten senders and one receiver: the link of the receiver is busy until the last byte, and once the first windows of 14 packets each
/// have drained no packet finds another one before it, as a message that comes later notices. Without credits all windows stay there.
#[test]
fn an_incast_has_no_queue_behind_the_first_windows() {
    let platform = network("kind = 'cluster', hosts = 12", 1.0, 3000.0);
    let mut messages: Vec<Sent> = (0..10).map(|src| (0, src, 11, 500_000)).collect();
    messages.push((2_000_000_000, 10, 11, 1000));
    for queues in [Queues::Fifo, Queues::Credits] {
        let in_flight = Some(packets::InFlight::Loop);
        let credits = PacketParameters { queues, in_flight, buffer_bytes: 1 << 20, ..of_receivers(1000) };
        let none = PacketParameters { congestion: Congestion::None, ..credits.clone() };
        let [none, credits] = [none, credits].map(|parameters| run(&platform, &parameters, &messages));
        let latency = |done: &Run| (done.arrived[10] - 2_000_000_000) / 1_000_000;
        let alone = 2 * 3 + 2;
        // Buffers of inputs are served in turn.
        assert!(queues == Queues::Credits || latency(&none) > alone + 100, "{} us", latency(&none));
        assert!(latency(&credits) <= alone + 2, "{} us", latency(&credits));
        // The first packet, and 5,000 more back to back.
        let bound = 1_000_000 + 3_000_000 + 5_001 * 1_000_000 + 3_000_000;
        assert_eq!((none.last(), credits.last()), (bound, bound), "{queues:?}");
        // In turn: no message is later than another one by more than a packet of each.
        let first = credits.arrived[..10].iter().min().unwrap();
        assert!(bound - first <= 12 * 1_000_000, "{first}");
    }
}

/// A receiver takes turns, whenever messages begin: one of half the length that comes in the middle of another one ends with it.
#[test]
fn credits_of_receivers_share_a_link() {
    let platform = network("kind = 'cluster', hosts = 3", 1.0, 1000.0);
    let messages = [(0, 0, 2, 2_000_000), (1_000_000_000, 1, 2, 500_000)];
    let done = run(&platform, &of_receivers(1000), &messages);
    // Both at half the link from 1 ms on; the first window comes on top.
    let end = done.arrived[1] as f64 / 1e9;
    assert!((end / 2.0 - 1.0).abs() < 0.01, "{end} ms");
}

/// Flows on a path of three hosts (`../shared/oracle/maxmin`): in ns-3 flows above 100 kB took 1.013 of their max-min time with DCTCP in the
/// median; with a congestion control that works it is between 0.99 and 1.12.
#[test_with::shared]
fn long_flows_are_near_max_min() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/oracle/maxmin/shards");
    let platform = network("kind = 'torus', dims = [5]", 1.25, 1000.0);
    let mut ratios = Vec::new();
    for shard in ["00", "03", "04", "07", "08", "10"] {
        let Ok(text) = std::fs::read_to_string(directory.join(format!("{shard}.csv"))) else { continue };
        let flows: Vec<Vec<f64>> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|field| field.parse().unwrap()).collect())
            .collect();
        let sent = |flow: &Vec<f64>| (flow[0] as u64 * 1000, flow[2] as u32, flow[3] as u32, flow[1] as u64);
        let messages: Vec<Sent> = flows.iter().map(sent).collect();
        let done = run(&platform, &dctcp(1000, 48, 12_000), &messages);
        for (flow, (arrived, sent)) in flows.iter().zip(done.arrived.iter().zip(&messages)) {
            if flow[1] > 100_000.0 {
                ratios.push((arrived - sent.0) as f64 / 1e3 / flow[4]);
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    assert!(ratios.len() > 50, "{} long flows", ratios.len());
    let median = ratios[ratios.len() / 2];
    assert!((0.99..1.12).contains(&median), "{median}");
}
