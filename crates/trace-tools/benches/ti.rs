//! Speed of reading text and of a bare cursor, on text like that of NPB LU.

use std::fmt::Write;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

#[path = "reading/sum.rs"]
mod sum;

use sum::sum;

fn main() {
    divan::main();
}

/// Writes a pipeline of four ranks like LU's sweeps: compute, receive from the previous rank, send to the next one.
fn lu_like(sweeps: u32) -> String {
    let mut text = String::new();
    for rank in 0..4_u32 {
        let mut line =
            |rest: std::fmt::Arguments<'_>| writeln!(text, "{rank} {rest}").expect("a string takes all");
        line(format_args!("init"));
        for sweep in 0..sweeps {
            let flops = 1e3 * f64::from(sweep % 997) + 1.1e6;
            if rank > 0 {
                line(format_args!("recv {} 10 680 0", rank - 1));
            }
            line(format_args!("compute {}", 3000 + sweep % 1001));
            if rank < 3 {
                line(format_args!("send {} 10 680 0", rank + 1));
            }
            line(format_args!("compute {flops:e}"));
            if sweep % 100 == 0 {
                line(format_args!("irecv {rank} 3 10240 0"));
                line(format_args!("send {rank} 3 10240 0"));
                line(format_args!("wait {rank} {rank} 3"));
                line(format_args!("allreduce 5 0 0"));
            }
        }
        line(format_args!("finalize"));
    }
    text
}

#[divan::bench(sample_count = 10)]
fn parse(bencher: Bencher<'_, '_>) {
    let text = lu_like(100_000);
    let actions = trace_tools::from_text(&text).expect("the text is a trace").actions();
    bencher
        .counter(ItemsCount::new(actions))
        .counter(BytesCount::of_str(&text))
        .bench(|| trace_tools::from_text(&text).expect("the text is a trace"));
}

#[divan::bench(sample_count = 50)]
fn cursor(bencher: Bencher<'_, '_>) {
    let trace = trace_tools::from_text(&lu_like(100_000)).expect("the text is a trace");
    bencher.counter(ItemsCount::new(trace.actions())).bench(|| sum(&trace));
}
