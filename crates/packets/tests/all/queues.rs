//! Mean waits in queues at random times (`../shared/oracle/packets/closed-forms.csv`).

use packets::{InFlight, PacketParameters};

use crate::driver::{Sent, run};
use crate::networks::{chain, network};

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Between 0 and 1.
    fn share(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }
}

fn unlimited(packet_bytes: u32) -> PacketParameters {
    PacketParameters { packet_bytes, in_flight: Some(InFlight::Unlimited), ..PacketParameters::default() }
}

/// Bytes of a packet, in mean; a packet time is a microsecond.
const BYTES: f64 = 1000.0;

/// Returns the mean wait, in packet times, before a link of packets of these mean sizes at random times.
fn wait_at_random_times(load: f64, size: impl Fn(&mut Random) -> f64) -> f64 {
    let (mut random, mut now) = (Random(7), 0.0);
    let messages: Vec<Sent> = (0..30_000)
        .map(|_| {
            now += random.exponential() / load;
            ((now * 1e6) as u64, 0, 1, size(&mut random).round().max(1.0) as u64)
        })
        .collect();
    let done = run(&chain(&[(1.0, 100.0)]), &unlimited(100_000), &messages);
    let waits = done
        .arrived
        .iter()
        .zip(&messages)
        .map(|(at, (from, _, _, bytes))| at - from - bytes * 1000 - 100_000);
    waits.sum::<u64>() as f64 / 1e6 / messages.len() as f64
}

/// The mean wait is `rho / (2 (1 - rho))` with equal sizes, `rho / (1 - rho)` with exponential ones.
#[test]
fn packets_at_random_times_wait_as_long_as_pollaczek_and_khinchine_say() {
    for load in [0.1, 0.5] {
        let expected = load / (2.0 * (1.0 - load));
        let equal = wait_at_random_times(load, |_| BYTES);
        assert!((equal / expected - 1.0).abs() < 0.06, "load {load}: {equal}, expected {expected}");
        let exponential = wait_at_random_times(load, |random| BYTES * random.exponential());
        assert!(
            (exponential / expected / 2.0 - 1.0).abs() < 0.08,
            "load {load}: {exponential}, expected {}",
            2.0 * expected
        );
    }
}

/// In slots, from `n` inputs to `n` outputs: `(n - 1)/n rho / (2 (1 - rho))`.
#[test]
fn packets_in_slots_wait_at_outputs() {
    for (ports, load, slots) in [
        (2, 0.1, 40_000),
        (2, 0.5, 20_000),
        (2, 0.7, 20_000),
        (8, 0.1, 10_000),
        (8, 0.5, 5_000),
        (8, 0.7, 8_000),
    ] {
        let platform = network(&format!("kind = 'cluster', hosts = {}", 2 * ports), 1.0, 100.0);
        let mut random = Random(u64::from(ports));
        let mut messages: Vec<Sent> = Vec::new();
        for slot in 0..slots {
            for host in 0..ports {
                if random.share() < load {
                    let target = ports + (random.word() % u64::from(ports)) as u32;
                    messages.push((slot * 1_000_000, host, target, 1000));
                }
            }
        }
        let done = run(&platform, &unlimited(1000), &messages);
        let waits = done.arrived.iter().zip(&messages).map(|(at, (from, ..))| at - from - 2_200_000);
        let mean = waits.sum::<u64>() as f64 / 1e6 / messages.len() as f64;
        let n = f64::from(ports);
        let expected = (n - 1.0) / n * load / (2.0 * (1.0 - load));
        // Four standard errors of rare waits, and what long ones add.
        let tolerance = 4.0 * (expected / messages.len() as f64).sqrt() + 0.05 * expected;
        assert!(
            (mean - expected).abs() < tolerance,
            "{ports} ports, load {load}: {mean}, expected {expected}"
        );
    }
}
