//! Speed of writing and opening archives, and of bare cursors over them, on text like that of NPB LU.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use divan::Bencher;
use divan::counter::ItemsCount;
use tempfile::TempDir;
use trace_mmap::{ConvertOptions, Folding, LoadOptions, Trace};
use trace_tools::convert;

#[path = "reading/sum.rs"]
mod sum;

use sum::sum;

fn main() {
    divan::main();
}

/// A pipeline of four ranks like LU's sweeps, in a file per rank: steps of planes, in each of which a rank receives, computes some
/// (rarely the same) amount, and sends.
struct Input {
    dir: TempDir,
}

impl Input {
    fn new(steps: u32) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for rank in 0..4_u32 {
            let path = dir.path().join(format!("rank-{rank}.txt"));
            fs::write(path, Self::text(rank, steps)).expect("the text is written");
        }
        Self { dir }
    }

    fn text(rank: u32, steps: u32) -> String {
        let mut text = String::new();
        let mut line =
            |rest: std::fmt::Arguments<'_>| writeln!(text, "{rank} {rest}").expect("a string takes all");
        line(format_args!("init"));
        for step in 0..steps {
            for plane in 0..62 {
                let jitter = (step * 7919 + plane * 104_729) % 4001;
                if rank > 0 {
                    line(format_args!("recv {} 10 680 0", rank - 1));
                }
                line(format_args!("compute {}", 3000 + jitter));
                if rank < 3 {
                    line(format_args!("send {} 10 680 0", rank + 1));
                }
                line(format_args!("compute {}", 61_000 + jitter));
            }
            line(format_args!("irecv {rank} 3 10240 0"));
            line(format_args!("send {rank} 3 10240 0"));
            line(format_args!("wait {rank} {rank} 3"));
            line(format_args!("allreduce 5 0 0"));
        }
        line(format_args!("finalize"));
        text
    }

    fn archive(&self, fold: bool) -> PathBuf {
        let path = self.dir.path().join("trace.pdt");
        let folding = if fold { Folding::WhereFaster } else { Folding::Never };
        let options = ConvertOptions { folding, ..ConvertOptions::default() };
        convert(self.dir.path(), &path, &options).expect("the trace converts");
        path
    }

    fn load(&self, fold: bool) -> Trace {
        trace_tools::load(&self.archive(fold), &LoadOptions::default()).expect("the archive opens")
    }
}

#[divan::bench(args = [false, true], sample_count = 10)]
fn conversion(bencher: Bencher<'_, '_>, fold: bool) {
    let input = Input::new(3000);
    let actions = input.load(true).actions();
    bencher.counter(ItemsCount::new(actions)).bench_local(|| input.archive(fold));
}

#[divan::bench(sample_count = 10)]
fn parsing_alone(bencher: Bencher<'_, '_>) {
    let input = Input::new(3000);
    let actions = input.load(true).actions();
    let load = || trace_tools::load(input.dir.path(), &LoadOptions::default()).expect("the trace loads");
    bencher.counter(ItemsCount::new(actions)).bench_local(load);
}

#[divan::bench(args = [false, true], sample_count = 50)]
fn open(bencher: Bencher<'_, '_>, fold: bool) {
    let path = Input::new(3000);
    let path = (path.archive(fold), path);
    bencher.bench_local(|| trace_tools::load(&path.0, &LoadOptions::default()).expect("the archive opens"));
}

#[divan::bench(args = [false, true], sample_count = 50)]
fn cursor(bencher: Bencher<'_, '_>, fold: bool) {
    let input = Input::new(3000);
    let trace = input.load(fold);
    bencher.counter(ItemsCount::new(trace.actions())).bench_local(|| sum(&trace));
}

#[divan::bench(sample_count = 50)]
fn cursor_in_memory(bencher: Bencher<'_, '_>) {
    let input = Input::new(3000);
    let trace = trace_tools::load(input.dir.path(), &LoadOptions::default()).expect("the trace loads");
    bencher.counter(ItemsCount::new(trace.actions())).bench_local(|| sum(&trace));
}
