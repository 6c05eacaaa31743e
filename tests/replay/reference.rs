//! Reading of the reference times, and comparison with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pdes_core::Progress;
use pdes_replay::{Config, Digest, RunError, Simulation};

/// A row of a table by the names of its columns.
pub(crate) struct Row(BTreeMap<String, String>);

impl std::ops::Index<&str> for Row {
    type Output = String;

    fn index(&self, column: &str) -> &String {
        self.0.get(column).unwrap_or_else(|| panic!("there is no column {column}"))
    }
}

impl Row {
    pub(crate) fn get(&self, column: &str) -> Option<&String> {
        self.0.get(column)
    }

    /// The merged trace: `;` separates lines, and a line of `R` is replicated for each rank.
    pub(crate) fn merged_trace(&self) -> String {
        let ranks: u32 = self["ranks"].parse().unwrap();
        let mut text = String::new();
        for line in self["trace"].split(';') {
            match line.strip_prefix("R ") {
                Some(_) => {
                    for rank in 0..ranks {
                        let number = rank.to_string();
                        let fields: Vec<&str> =
                            line.split(' ').map(|field| if field == "R" { &number } else { field }).collect();
                        text.push_str(&fields.join(" "));
                        text.push('\n');
                    }
                }
                None => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text
    }

    /// Sets SimGrid's options of the case, or returns `None` if one has no equivalent here.
    pub(crate) fn apply_options(&self, config: &mut Config) -> Option<()> {
        let Some(options) = self.get("options").filter(|options| *options != "-") else { return Some(()) };
        for option in options.split(' ') {
            let (name, value) = option.split_once('=').unwrap();
            if name == "finalization-barrier" {
                return None;
            }
            set_mpi_option(name, value, config);
        }
        Some(())
    }
}

/// Sets an option of SimGrid's section `smpi`.
pub(crate) fn set_mpi_option(name: &str, value: &str, config: &mut Config) {
    let assignment = match name {
        "os" => format!("mpi.send_overhead='{value}'"),
        "ois" => format!("mpi.isend_overhead='{value}'"),
        "or" => format!("mpi.receive_overhead='{value}'"),
        "test" => format!("mpi.test_s={value}"),
        "grow-injected-times" => format!("mpi.test_grows={}", value == "yes"),
        "send-is-detached-thresh" => format!("mpi.detached_below_bytes={value}"),
        "async-small-thresh" => format!("mpi.eager_below_bytes={value}"),
        other => panic!("the option {other} is not known"),
    };
    config.set(&assignment).unwrap();
}

/// Reads a table; the separator follows from the name.
pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let separator = if path.extension().is_some_and(|extension| extension == "tsv") { b'\t' } else { b',' };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator).quoting(separator == b',').from_path(path).unwrap();
    let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let row = |record: csv::StringRecord| {
        Row(columns.iter().cloned().zip(record.iter().map(str::to_owned)).collect())
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

/// The result of a comparison with a reference.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Equal,
    Differs(String),
    /// We do not replay this trace.
    Refused(String),
    /// SimGrid has no time, or we refuse by name a call that depends on time: neither is wrong.
    Unanswered,
}

/// Replays and compares the end of every rank, or of the last one if only that is known.
pub(crate) fn compare(config: Config, row: &Row, tolerance_s: f64, relative: f64) -> Verdict {
    let simulation = Simulation::load(&config.resolve().unwrap());
    let outcome =
        simulation.and_then(|simulation| simulation.replay(&Progress::new(simulation.spec().threads)));
    match (row.get("run").map_or("plain", String::as_str), outcome) {
        ("CRASH", _) => Verdict::Unanswered,
        ("DEADLOCK", Err(RunError::Deadlock(_) | RunError::Trace(_))) => Verdict::Equal,
        ("DEADLOCK", other) => Verdict::Differs(format!("SimGrid deadlocks, we say {other:?}")),
        (_, Err(RunError::Trace(error))) if is_refused_by_name(&error) => Verdict::Unanswered,
        (_, Err(RunError::Trace(error))) => Verdict::Refused(error.to_string()),
        (_, Err(error)) => Verdict::Differs(error.to_string()),
        (_, Ok(outcome)) => {
            let ours: Vec<f64> = match row["rank_ends_s"].as_str() {
                "-" => vec![outcome.simulated_time().as_secs_f64()],
                _ => outcome.program().ends.iter().map(|end| end.as_secs_f64()).collect(),
            };
            let column = if row["rank_ends_s"] == "-" { "simulated_s" } else { "rank_ends_s" };
            let theirs: Vec<f64> = row[column].split(' ').map(|end| end.parse().unwrap()).collect();
            assert_eq!(ours.len(), theirs.len());
            let close =
                |(ours, theirs): (&f64, &f64)| (ours - theirs).abs() <= tolerance_s + relative * theirs;
            if ours.iter().zip(&theirs).all(close) {
                Verdict::Equal
            } else {
                Verdict::Differs(format!("found {ours:?}, expected {theirs:?}"))
            }
        }
    }
}

/// Returns whether the error is the refusal of a call that depends on time, by name.
fn is_refused_by_name(error: &trace_mmap::TraceError) -> bool {
    matches!(error.kind(), Some(trace_tools::TextError::Unsupported { .. }))
}

pub(crate) fn digest(config: Config) -> Digest {
    let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
    let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
    Digest::of(outcome.program().ends.iter().copied().zip(&outcome.program().statistics))
}

/// Returns the end of the last rank in seconds.
pub(crate) fn simulated_time(config: Config) -> f64 {
    try_simulated_time(config).unwrap()
}

/// Returns the end of the last rank in seconds, or the error.
pub(crate) fn try_simulated_time(config: Config) -> Result<f64, String> {
    let spec = config.resolve().map_err(|error| error.to_string())?;
    let simulation = Simulation::load(&spec).map_err(|error| error.to_string())?;
    let outcome = simulation.replay(&Progress::new(simulation.spec().threads));
    outcome.map(|outcome| outcome.simulated_time().as_secs_f64()).map_err(|error| error.to_string())
}

/// Returns whether `tests/campaign` runs: then long matrices are complete, otherwise a part of them is tested.
pub(crate) fn is_campaign() -> bool {
    std::env::var_os("PDES_CAMPAIGN").is_some()
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn data(folder: &str) -> PathBuf {
    repository().join("tests/data").join(folder)
}

/// Unpacks all traces into a temporary folder.
pub(crate) fn unpack(traces: &Path) -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(traces).unwrap() {
        let archive = std::fs::File::open(entry.unwrap().path()).unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(archive)).unpack(target.path()).unwrap();
    }
    target
}

/// The trace of this name: an NPB trace, a merged file, or rank files joined by `+`.
pub(crate) fn trace(name: &str, unpacked: &Path, oracle: &Path) -> PathBuf {
    if !name.ends_with(".txt") {
        return unpacked.join(name).join("files.txt");
    }
    let tesh = oracle.join("tesh");
    if !name.contains('+') {
        return tesh.join(name);
    }
    let list = unpacked.join("list.txt");
    let files: Vec<String> = name.split('+').map(|file| tesh.join(file).display().to_string()).collect();
    std::fs::write(&list, files.join("\n")).unwrap();
    list
}
