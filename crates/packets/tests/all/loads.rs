//! Loads of links.

use netmodel::{LinkLoad, LinkLoads, Platform};
use packets::{InFlight, PacketParameters, Queues};
use pdes_core::SimDuration;

use crate::driver::{Sent, run_recorded};
use crate::networks::{chain, network};

fn parameters(queues: Queues) -> PacketParameters {
    PacketParameters {
        queues,
        packet_bytes: 1000,
        in_flight: Some(InFlight::Unlimited),
        ..PacketParameters::default()
    }
}

fn load<'a>(platform: &Platform, loads: &'a LinkLoads, name: &str) -> &'a LinkLoad {
    loads.links.iter().find(|load| platform.link(load.link).name == name).unwrap()
}

const QUEUES: [Queues; 2] = [Queues::Fifo, Queues::Credits];

/// Ten packets over a link of 1 B/ns and one of 2: the first one is busy for 10 us, and wanted by the next packet for 9 of them.
#[test]
fn links_are_loaded_while_they_send() {
    let platform = chain(&[(1.0, 100.0), (2.0, 100.0)]);
    for queues in QUEUES {
        let (run, loads) = run_recorded(&platform, &parameters(queues), &[0; 2], &[(0, 0, 1, 10_000)]);
        let end = 10_700_000;
        assert_eq!(run.last(), end);
        for (name, busy, saturated) in [("0_UP", 10_000_000, 9), ("1_UP", 5_000_000, 0)] {
            let load = load(&platform, &loads, name);
            assert_eq!(load.bytes, 10_000, "{name}");
            assert_eq!(load.saturated, SimDuration::from_picos(saturated * 1_000_000), "{name} {queues:?}");
            assert!((load.utilisation - f64::from(busy) / end as f64).abs() < 1e-9, "{name}: {load:?}");
            assert!((load.full_time_s - f64::from(busy) / 1e12).abs() < 1e-15, "{name}: {load:?}");
            let bins = load.series.iter().map(|part| part * loads.bin.as_picos() as f64);
            // The last bin may be incomplete.
            assert!((bins.sum::<f64>() / f64::from(busy) - 1.0).abs() < 0.03, "{name}: {load:?}");
        }
        // The first packet leaves the second link after 1.6 us.
        let second = load(&platform, &loads, "1_UP");
        let until = 1_100_000 / loads.bin.as_picos() as usize;
        assert!(second.series[..until].iter().all(|&part| part == 0.0), "{second:?}");
    }
}

/// Two hosts send five packets each to a third one: from 1.1 us to 11.1 us its link sends, and a packet waits but for the last of these.
#[test]
fn links_are_saturated_while_packets_wait() {
    let platform = network("kind = 'cluster', hosts = 3", 1.0, 100.0);
    let messages: Vec<Sent> = (0..2).map(|src| (0, src, 2, 5000)).collect();
    for queues in QUEUES {
        let (_, loads) = run_recorded(&platform, &parameters(queues), &[0; 3], &messages);
        let load = loads.links.iter().find(|load| load.bytes == 10_000).unwrap();
        assert_eq!(load.saturated, SimDuration::from_picos(9_000_000), "{queues:?}");
        assert!((load.full_time_s - 10e-6).abs() < 1e-15, "{load:?}");
    }
}
