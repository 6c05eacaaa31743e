//! Benchmarks of reading and simulating schedules; rates count LogGOPSim's events, i.e. operations and
//! arrivals.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use goal::pattern::{Stencil, dissemination, linear_alltoall, recursive_doubling_allreduce};
use goal::{LogGops, Schedule, read_text, simulate, write_text};

fn main() {
    divan::main();
}

const PATTERNS: [&str; 5] = ["dissemination", "alltoall", "allreduce", "allreduce_rendezvous", "stencil"];

fn schedule(pattern: &str) -> Schedule {
    let stencil = Stencil { ranks: [32, 32], iterations: 20, bytes: 8192, nanos: 50_000, jitter: 20_000 };
    let schedule = match pattern {
        "dissemination" => dissemination(4096, 1),
        "alltoall" => linear_alltoall(256, 1024),
        "allreduce" => recursive_doubling_allreduce(128, 1 << 16),
        "allreduce_rendezvous" => recursive_doubling_allreduce(128, 1 << 27),
        _ => stencil.schedule(),
    };
    schedule.expect("the schedule is small")
}

#[divan::bench(args = PATTERNS)]
fn simulation(bencher: Bencher<'_, '_>, pattern: &str) {
    let schedule = schedule(pattern);
    let simulate = || simulate(&schedule, &LogGops::default(), 1).expect("the schedule ends");
    let events = simulate().events;
    bencher.counter(ItemsCount::new(events)).bench(simulate);
}

#[divan::bench(args = PATTERNS)]
fn text(bencher: Bencher<'_, '_>, pattern: &str) {
    let mut text = Vec::new();
    write_text(&schedule(pattern), &mut text).expect("a vector takes all");
    bencher.counter(BytesCount::of_slice(&text)).bench(|| read_text(&text).expect("the text is good"));
}
