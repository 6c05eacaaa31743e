//! Accuracy of the epoch model for messages that are sent at given times, compared with the exact model: errors of
//! the transfer times, by message size, beside the errors of the exact model for sizes larger by a millionth.
#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

mod platforms;
#[path = "../shared/random.rs"]
mod random;
mod traffic;

use std::ops::Range;

use netmodel::{
    EpochNetwork, FlowNetwork, Message, NetworkModel, NetworkParameters, Platform, Preset, Regions,
};
use pdes_core::{Bytes, SimDuration, SimTime};
use platforms::PLATFORMS;
use traffic::{PATTERNS, Sent, Traffic};

/// Maximum rate at which a host sends and receives [B/s].
const RATE: f64 = 12.5e9;

fn parameters() -> NetworkParameters {
    NetworkParameters::preset(Preset::Raw)
}

/// Returns the arrival time of each message, with all sizes multiplied by `scale`.
fn exact(platform: &Platform, messages: &[Sent], scale: f64) -> Vec<SimTime> {
    let mut network = FlowNetwork::new(platform, &parameters());
    let mut ends = vec![SimTime::ZERO; messages.len()];
    let mut done = Vec::new();
    for (tag, sent) in messages.iter().enumerate() {
        while network.next_event().is_some_and(|at| at <= sent.at) {
            network.advance(&mut done);
            done.drain(..).for_each(|tag: usize| ends[tag] = network.now());
        }
        let size = Bytes::new((sent.size as f64 * scale).ceil() as u64);
        network.send(Message::new(sent.at, sent.src, sent.dst, size, tag)).expect("all hosts are joined");
    }
    while network.next_event().is_some() {
        network.advance(&mut done);
        done.drain(..).for_each(|tag: usize| ends[tag] = network.now());
    }
    ends
}

struct EpochRun {
    ends: Vec<SimTime>,
    counts: netmodel::epoch::EpochCounts,
    violation: f64,
}

fn in_epochs(platform: &Platform, messages: &[Sent], regions: Regions, epoch: SimDuration) -> EpochRun {
    let network = EpochNetwork::new(platform, &parameters(), regions, epoch);
    let mut network = network.expect("the epoch is not longer than the lookahead");
    let mut ends = vec![SimTime::ZERO; messages.len()];
    let mut done = Vec::new();
    for (tag, sent) in messages.iter().enumerate() {
        while network.next_event().is_some_and(|at| at <= sent.at) {
            network.advance(&mut done);
            done.drain(..).for_each(|tag: usize| ends[tag] = network.now());
        }
        let size = Bytes::new(sent.size);
        network.send(Message::new(sent.at, sent.src, sent.dst, size, tag)).expect("all hosts are joined");
    }
    while network.next_event().is_some() {
        network.advance(&mut done);
        done.drain(..).for_each(|tag: usize| ends[tag] = network.now());
    }
    EpochRun { ends, counts: network.counts(), violation: network.summary().capacity_violation }
}

/// Relative errors of transfer times.
struct Errors {
    bias: f64,
    mean: f64,
    median: f64,
    p99: f64,
}

impl Errors {
    fn of(messages: &[Sent], exact: &[SimTime], found: &[SimTime], class: &Range<u64>) -> Option<Self> {
        let times = messages.iter().zip(exact.iter().zip(found));
        let of = |(sent, (&exact, &found)): (&Sent, (&SimTime, &SimTime))| {
            let [exact, found] = [exact, found].map(|end| (end - sent.at).as_picos() as f64);
            found / exact - 1.0
        };
        let errors: Vec<f64> = times.filter(|(sent, _)| class.contains(&sent.size)).map(of).collect();
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let count = sizes.len() as f64;
        let (bias, mean) = (errors.iter().sum::<f64>() / count, sizes.iter().sum::<f64>() / count);
        let at = |part: usize| sizes.get(sizes.len() * part / 100).copied();
        Some(Self { bias, mean, median: at(50)?, p99: at(99)? })
    }
}

fn main() {
    let filter: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_chosen = |name: &str| filter.iter().all(|filter| name.contains(filter.as_str()));
    let testing = std::env::args().any(|argument| argument == "--test");
    let count = if testing { 200 } else { 20_000 };
    println!(
        "| case | size | bias | mean | p50 | p99 | floor mean | violation | rounds, evaluations, messages per flow |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, text) in PLATFORMS {
        let platform = Platform::from_toml(text, name).expect("the platform is valid");
        for pattern in PATTERNS {
            for load in [0.3, 0.6, 0.9] {
                let case = format!("{name}, {}, {load}", pattern.name());
                if is_chosen(&case) {
                    compare(&case, &platform, &Traffic { pattern, load, count, rate: RATE }.draw(&platform));
                }
            }
        }
    }
}

fn compare(case: &str, platform: &Platform, messages: &[Sent]) {
    let regions = Regions::natural(platform);
    let epoch = regions.lookahead(platform, &parameters()).expect("there is more than one region");
    let reference = exact(platform, messages, 1.0);
    let floor = exact(platform, messages, 1.0 + 1e-6);
    let run = in_epochs(platform, messages, regions, epoch);
    let short = (epoch.as_secs_f64() * RATE) as u64;
    let classes =
        [("below D", 0..short), ("D to 10 D", short..10 * short), ("above 10 D", 10 * short..u64::MAX)];
    for (class, sizes) in classes {
        let (Some(error), Some(floor)) = (
            Errors::of(messages, &reference, &run.ends, &sizes),
            Errors::of(messages, &reference, &floor, &sizes),
        ) else {
            continue;
        };
        let percent = |part: f64| format!("{:+.2} %", 100.0 * part);
        let per_flow = |count: u64| format!("{:.2}", count as f64 / messages.len() as f64);
        let [bias, mean, median, p99] = [error.bias, error.mean, error.median, error.p99].map(percent);
        let (floor, violation) = (percent(floor.mean), percent(run.violation));
        let counts =
            [run.counts.rounds, run.counts.evaluations, run.counts.messages].map(per_flow).join(", ");
        println!(
            "| {case} | {class} | {bias} | {mean} | {median} | {p99} | {floor} | {violation} | {counts} |"
        );
    }
}
