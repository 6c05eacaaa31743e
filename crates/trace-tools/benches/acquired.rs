//! Speed of bare cursors over acquired traces, folded and flat: least times of alternating passes, each preceded by another pass over
//! the same archive, which warms the cache. Each trace runs for two seconds, or once with `--test`.

use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use trace_mmap::{ConvertOptions, Folding, LoadOptions, Trace};
use trace_tools::convert;

#[path = "reading/sum.rs"]
mod sum;

use sum::sum;

fn archive(text: &Path, folding: Folding) -> Trace {
    let path = text.with_extension("pdt");
    let options = ConvertOptions { folding, ..ConvertOptions::default() };
    convert(text, &path, &options).expect("the trace converts");
    trace_tools::load(&path, &LoadOptions::default()).expect("the archive opens")
}

fn second_pass(trace: &Trace) -> Duration {
    black_box(sum(trace));
    let begin = Instant::now();
    black_box(sum(trace));
    begin.elapsed()
}

#[expect(clippy::print_stdout, reason = "the figures are what a benchmark is for")]
fn main() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if !traces.is_dir() {
        println!("SKIPPED: {} is absent", traces.display());
        return;
    }
    let is_test = std::env::args().any(|argument| argument == "--test");
    let mut files: Vec<PathBuf> =
        fs::read_dir(traces).expect("the traces").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in files {
        let dir = tempfile::tempdir().expect("a temporary directory");
        tar::Archive::new(GzDecoder::new(File::open(&file).expect("the file opens")))
            .unpack(dir.path())
            .expect("the file unpacks");
        let name =
            file.file_name().and_then(|name| name.to_str()).expect("a name").trim_end_matches(".tar.gz");
        let text = dir.path().join(name);
        let traces = [Folding::Never, Folding::WhereFaster].map(|folding| archive(&text, folding));
        let (mut least, begin) = ([Duration::MAX; 2], Instant::now());
        loop {
            for (trace, least) in traces.iter().zip(&mut least) {
                *least = second_pass(trace).min(*least);
            }
            if is_test || begin.elapsed() > Duration::from_secs(2) {
                break;
            }
        }
        let [flat, folded] = least.map(|time| time.as_secs_f64() * 1e9 / traces[0].actions() as f64);
        println!("{name:8} {flat:6.2} ns per action flat, {folded:6.2} folded, {:.2} times", folded / flat);
    }
}
