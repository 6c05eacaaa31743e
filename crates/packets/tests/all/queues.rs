//! Waiting times of queueing theory (`md1`, `mm1` and `outq` of `../shared/oracle/packets/closed-forms.csv`).

use packets::{InFlight, PacketParameters};

use crate::driver::{Sent, run};
use crate::networks::{chain, network};
use crate::oracle::numbers;

/// A generator of numbers from 0 to 1 (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

fn parameters() -> PacketParameters {
    PacketParameters {
        packet_bytes: 1 << 20,
        in_flight: Some(InFlight::Unlimited),
        ..PacketParameters::default()
    }
}

/// Compares the mean of waiting times with an expectation: four standard errors, which are those of the means of 25 successive parts,
/// since packets near each other wait for the same others.
#[track_caller]
fn assert_mean(case: &str, waits: &[f64], expected: f64) {
    let part = waits.len() / 25;
    let means: Vec<f64> =
        waits.chunks_exact(part).map(|part_waits| part_waits.iter().sum::<f64>() / part as f64).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|part_mean| (part_mean - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    assert!(
        error < 0.05 * expected,
        "{case}: a mean of {mean} with a standard error of {error} tells nothing"
    );
    assert!(
        (mean - expected).abs() < 4.0 * error,
        "{case}: {mean} with a standard error of {error}, expected {expected}"
    );
}

/// Packets that arrive at random at a switch, all of the same size or of sizes that are distributed exponentially, wait for its output
/// as the formulas of Pollaczek and Khinchine say. The link to the switch is ten thousand times as fast.
#[test_with::shared]
fn packets_that_arrive_at_random_wait_as_in_theory() {
    const MEAN_BYTES: f64 = 1000.0;
    for (queue, has_equal_sizes) in [("md1-", true), ("mm1-", false)] {
        for (case, _, expected) in numbers("closed-forms.csv", queue, "value") {
            let load: f64 = case[queue.len()..].parse().unwrap();
            let platform = chain(&[(10_000.0, 100.0), (1.0, 100.0)]);
            let mut random = Random(7);
            let mut at = 0.0;
            let count = if load > 0.8 { 150_000 } else { 30_000 };
            let messages: Vec<Sent> = (0..count)
                .map(|_| {
                    at += MEAN_BYTES * 1e3 / load * random.exponential();
                    let bytes = if has_equal_sizes { MEAN_BYTES } else { MEAN_BYTES * random.exponential() };
                    (at as u64, 0, 1, bytes.round() as u64)
                })
                .collect();
            let done = run(&platform, &parameters(), &messages);
            let wait = |(&arrived, &(at, _, _, bytes)): (&u64, &Sent)| {
                let alone = 200_000.0 + bytes as f64 * 1e3 * 1.0001;
                ((arrived - at) as f64 - alone) / (MEAN_BYTES * 1e3)
            };
            let waits: Vec<f64> = done.arrived.iter().zip(&messages).map(wait).collect();
            assert_mean(&case, &waits, expected);
        }
    }
}

/// A switch with a queue at each output, to which each input sends a packet in a slot or none.
#[test_with::shared]
fn packets_in_slots_wait_at_outputs_as_in_theory() {
    for (case, _, expected) in numbers("closed-forms.csv", "outq-", "value") {
        let (ports, load) = case["outq-".len()..].split_once('-').unwrap();
        let (ports, load): (u32, f64) = (ports.parse().unwrap(), load.parse().unwrap());
        let platform = network(&format!("kind = 'cluster', hosts = {}", 2 * ports), 1.0, 100.0);
        let slot = 1_000_000;
        let packets = if load > 0.8 { 80_000.0 } else { 25_000.0 };
        let slots = (packets / load) as u64 / u64::from(ports);
        let mut random = Random(11);
        let mut messages: Vec<Sent> = Vec::new();
        for number in 0..slots {
            for src in 0..ports {
                if random.uniform() < load {
                    let target = ports + (random.uniform() * f64::from(ports)) as u32;
                    messages.push((number * slot, src, target, 1000));
                }
            }
        }
        let done = run(&platform, &parameters(), &messages);
        let alone = 2 * (slot + 100_000);
        let wait = |(&arrived, &(at, ..)): (&u64, &Sent)| ((arrived - at - alone) / slot) as f64;
        let waits: Vec<f64> = done.arrived.iter().zip(&messages).map(wait).collect();
        assert_mean(&case, &waits, expected);
    }
}
