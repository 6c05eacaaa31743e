//! GOAL schedules: conversion, and replay with the model LogGOPS (Hoefler et al., LogGOPSim, 2010).

use std::fmt::Write as _;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::goal::{
    EmptyMessage, FileError, LogGops, NANOSECOND, Noise, Outcome, RecurringNoise, Schedule, simulate,
    simulate_with_noise,
};
use anyhow::{Context, Result, bail};
use machine::noise::{GeneratedNoise, NoiseSection, NoiseSectionError};
use netmodel::HostId;
use netmodel::quantity::{Nanoseconds, Size};
use outputs::is_stdout;
use pdes_core::{SimDuration, SimTime};
use pdes_replay::{
    Config, ConfigError, Execution, Feature, Model, RankEnd, available_threads, peak_rss_bytes, write_json,
};
use replay::HostNoise as _;
use serde::Serialize;

use super::{Misuse, large_pages, summary};

/// Name of the model in configurations.
const MODEL: &str = "loggops";
/// Name of the hash scheme; any change of the hashed data or of their order changes the number.
const SCHEME: &[u8] = b"pdes-replay goal digest 1";

/// Returns whether a configuration replays a GOAL schedule, with any model.
pub(crate) fn is_goal(config: &Config) -> bool {
    config.text("network", "model") == Some(MODEL)
        || path(config).is_some_and(|path| ::goal::is_schedule_file(&path))
}

/// Returns whether a configuration replays a GOAL schedule with its own model: the default without a platform.
pub(crate) fn is_loggops(config: &Config) -> bool {
    match config.text("network", "model") {
        Some(model) => model == MODEL,
        None => !has_platform(config) && is_goal(config),
    }
}

fn has_platform(config: &Config) -> bool {
    config.section("platform").is_some_and(|platform| !platform.is_empty())
}

/// Refuses what the model does not do.
pub(crate) fn check_features(config: &Config, processes: usize) -> Result<()> {
    let asked = [
        (Feature::Processes, processes > 1),
        (Feature::Checkpoints, config.section("checkpoint").is_some()),
        (Feature::Timeline, config.section("timeline").is_some()),
        (Feature::Profile, config.text("output", "profile").is_some()),
        (Feature::Certificate, config.text("output", "certificate").is_some()),
    ];
    let features = asked.into_iter().filter_map(|(feature, is_asked)| is_asked.then_some(feature)).collect();
    let model = Model::find(MODEL).expect("it is in the registry");
    let execution = Execution::of(model, &features, 0, || unreachable!("a schedule has no windows"));
    execution.obstacles.first().map_or(Ok(()), |(_, why)| Err(Misuse(why.to_string()).into()))
}

/// Replays a schedule as configured and prints the result.
pub(crate) fn run(config: &Config, quiet: bool) -> Result<()> {
    config.check_keys()?;
    if has_platform(config) {
        let hint = "the model loggops, for GOAL schedules, has [loggops] in place of a platform: leave --platform (or [platform]) out, or set --model flow";
        return Err(Misuse(hint.to_owned()).into());
    }
    for section in ["mpi", "compute", "parallel", "analysis", "energy", "failure", "failures"] {
        if config.has(section) {
            tracing::warn!("[{section}] has no effect with the model loggops");
        }
    }
    if config.section("trace").is_some_and(|trace| trace.contains_key("speed")) {
        tracing::warn!("trace.speed has no effect with the model loggops, whose computations are times");
    }
    let parameters = section(config).map_err(|error| config.locate(error))?;
    let threads = config.threads()?;
    let Some(path) = path(config) else {
        return Err(Misuse("no trace: give --trace PATH of a GOAL schedule".to_owned()).into());
    };
    large_pages::set_large_pages(true);
    tracing::info!("reading {}", path.display());
    let start = Instant::now();
    if path.is_dir() || has_other_content(&path) {
        let path = path.display();
        bail!(
            "{path} is not a GOAL schedule, and the model loggops replays these only: for the trace of an MPI program, leave --model loggops out, and name a platform with --platform"
        );
    }
    let schedule = Schedule::load(&path, threads).context("the schedule")?;
    let load = start.elapsed();
    tracing::info!("replaying {} ({MODEL})", schedule.extent());
    let start = Instant::now();
    let outcome = match config.noise()? {
        Some(section) => {
            let noise = noise(&section, schedule.extent().ranks)
                .map_err(|error| Misuse(format!("[{}] {error}", NoiseSection::NAME)))?;
            simulate_with_noise(&schedule, &parameters, &*noise, threads)?
        }
        None => simulate(&schedule, &parameters, threads)?,
    };
    let report = Report::new(&path, &schedule, &parameters, &outcome, threads, [load, start.elapsed()]);
    report.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if let Some(path) = config.text("output", "report").map(Path::new) {
        write_json(&report, path).with_context(|| format!("the report {}", path.display()))?;
        tracing::info!("wrote the report {}", path.display());
    }
    let mut text = if quiet { String::new() } else { report.summary() };
    writeln!(text, "simulated time: {:.9} s", pdes_core::SimTime::from_picos(outcome.end()))?;
    summary::write(&text, config.text("output", "report").is_some_and(|path| is_stdout(Path::new(path))))
}

/// Returns the noise of a section: that of a trace as LogGOPSim has it, or the generated one of hosts with a rank each.
fn noise(section: &NoiseSection, ranks: u32) -> Result<Box<dyn Noise>, NoiseSectionError> {
    Ok(match section.trace()? {
        Some(trace) => Box::new(RecurringNoise::new(trace, ranks, section.seed(), section.synchronised)),
        None => Box::new(NoiseOfHosts(section.generated()?)),
    })
}

/// Noise of hosts with a rank each.
struct NoiseOfHosts(GeneratedNoise);

impl Noise for NoiseOfHosts {
    fn delay(&self, rank: u32, begin: u64, length: u64) -> u64 {
        let (begin, length) = (SimTime::from_picos(begin), SimDuration::from_picos(length));
        self.0.delay(HostId::new(rank), begin, length).as_picos()
    }
}

/// Returns true if a file is there and its first bytes are neither those of a schedule nor a comment before one.
fn has_other_content(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && !::goal::is_schedule(&head) && !head.trim_ascii_start().starts_with(b"/")
}

/// Converts a schedule in text or binary form to an archive.
pub(crate) fn convert(input: &Path, output: &Path) -> Result<String> {
    write_archive(&load(input)?, output)
}

/// Writes a schedule as an archive, and describes it.
pub(crate) fn write_archive(schedule: &Schedule, output: &Path) -> Result<String> {
    let bytes = ::goal::write_archive(schedule, output)?;
    Ok(format!("{}: {}, {bytes} bytes\n", output.display(), schedule.extent()))
}

/// Writes a schedule as text, and describes it.
pub(crate) fn write_text(schedule: &Schedule, output: &Path) -> Result<String> {
    let mut file = BufWriter::new(outputs::AtomicFile::create(output)?);
    ::goal::write_text(schedule, &mut file)?;
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.commit()?;
    Ok(format!("{}: {}\n", output.display(), schedule.extent()))
}

/// Describes the size of a schedule and its operations.
pub(crate) fn info(path: &Path) -> Result<String> {
    let schedule = load(path)?;
    let mut kinds = [("send", 0_u64, 0_u128), ("recv", 0, 0), ("calc", 0, 0)];
    for operation in (0..schedule.extent().ranks).flat_map(|rank| schedule.operations(rank)) {
        let (_, count, size) = &mut kinds[operation.kind as usize - 1];
        *count += 1;
        *size += u128::from(operation.size);
    }
    let mut text = format!("GOAL schedule: {}\n", schedule.extent());
    for ((name, count, size), unit) in kinds.into_iter().zip(["B", "B", "ns"]) {
        writeln!(text, "  {name:<14} {count:>16}, {size} {unit}")?;
    }
    text += "counted:  nanoseconds; on a platform, times at 1000000000 flops per second\n";
    Ok(text)
}

/// Checks a schedule, and that its receives and messages match.
pub(crate) fn check(path: &Path) -> Result<String> {
    check_schedule(&load(path)?, path)
}

/// Checks the schedule of a file, and that its receives and messages match.
pub(crate) fn check_schedule(schedule: &Schedule, path: &Path) -> Result<String> {
    simulate(schedule, &LogGops::default(), available_threads())
        .with_context(|| path.display().to_string())?;
    Ok(format!("{}: {}, all right\n", path.display(), schedule.extent()))
}

/// Writes a schedule as text to stdout.
pub(crate) fn dump(path: &Path) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    ::goal::write_text(&load(path)?, &mut out)?;
    Ok(out.flush()?)
}

/// Loads a schedule on all cores.
pub(crate) fn load(path: &Path) -> Result<Schedule, FileError> {
    Schedule::load(path, available_threads())
}

fn path(config: &Config) -> Option<PathBuf> {
    config.text("trace", "path").map(PathBuf::from)
}

/// Resolves the section `[loggops]`.
fn section(config: &Config) -> Result<LogGops, ConfigError> {
    let section = config.loggops()?;
    let defaults = LogGops::default();
    let parameters = LogGops {
        latency: picos("L", section.L, defaults.latency)?,
        overhead: picos("o", section.o, defaults.overhead)?,
        gap: picos("g", section.g, defaults.gap)?,
        gap_per_byte: picos("G", section.G, defaults.gap_per_byte)?,
        overhead_per_byte: picos("O", section.O, defaults.overhead_per_byte)?,
        eager_up_to: section.S.map_or(defaults.eager_up_to, |Size(bytes)| bytes as u64),
        empty: find_choice(
            "empty",
            section.empty,
            [EmptyMessage::Wraps, EmptyMessage::OneByte].map(|one| (one.name(), one)),
        )?,
    };
    Ok(parameters)
}

/// Converts nanoseconds to picoseconds; the largest value is an hour.
fn picos(key: &'static str, time: Option<Nanoseconds>, default: u64) -> Result<u64, ConfigError> {
    let Some(Nanoseconds(nanos)) = time else { return Ok(default) };
    let picos = nanos * NANOSECOND as f64;
    if (0.0..=3.6e15).contains(&picos) && (picos - picos.round()).abs() < 1e-6 {
        return Ok(picos.round() as u64);
    }
    let message = format!("found {nanos}, expected nanoseconds from 0 to 3.6e12 with at most three decimals");
    Err(ConfigError::Value { section: MODEL, key, message })
}

/// Returns the choice with the name `found`; the first one is the default.
fn find_choice<T: Copy, const N: usize>(
    key: &'static str,
    found: Option<String>,
    known: [(&str, T); N],
) -> Result<T, ConfigError> {
    let Some(found) = found else { return Ok(known[0].1) };
    let names = known.map(|(name, _)| format!("{name:?}")).join(" or ");
    let message = format!("found {found:?}, expected {names}");
    let named = known.into_iter().find(|(name, _)| *name == found);
    named.map(|(_, one)| one).ok_or(ConfigError::Value { section: MODEL, key, message })
}

/// The report of a replay; fields that mean the same have the names of the other models' reports.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    version: u32,
    program_version: &'static str,
    simulated_time_s: f64,
    simulated_time_ps: u64,
    ranks: u32,
    actions: u64,
    events: u64,
    messages: u64,
    message_bytes: u64,
    digest: String,
    /// Noise in the operations of all ranks; null without noise.
    noise_s: Option<f64>,
    wall_time_s: f64,
    load_s: f64,
    replay_s: f64,
    actions_per_s: f64,
    events_per_s: f64,
    peak_rss_bytes: Option<u64>,
    threads: usize,
    processes: usize,
    slowest_rank: Option<RankEnd>,
    fastest_rank: Option<RankEnd>,
    parameters: Parameters,
    warnings: Vec<String>,
}

/// All parameters that can change the result; times in picoseconds.
#[derive(Debug, Serialize)]
#[expect(non_snake_case, reason = "the model's names differ in case only")]
struct Parameters {
    trace: String,
    model: &'static str,
    L_ps: u64,
    o_ps: u64,
    g_ps: u64,
    G_ps_per_byte: u64,
    O_ps_per_byte: u64,
    S_bytes: u64,
    empty: &'static str,
}

impl Report {
    fn new(
        path: &Path,
        schedule: &Schedule,
        parameters: &LogGops,
        outcome: &Outcome,
        threads: usize,
        times: [Duration; 2],
    ) -> Self {
        let [load_s, replay_s] = times.map(|time| time.as_secs_f64());
        let actions = schedule.extent().operations;
        let rate = |count: u64| count as f64 / replay_s.max(1e-9);
        let ends = || (0..).zip(&outcome.ends).map(|(rank, &end)| (end, rank));
        let rank = |(end, rank): (u64, u32)| RankEnd { rank, end_s: seconds(end) };
        Self {
            format: "pdes-replay report",
            version: 1,
            program_version: env!("CARGO_PKG_VERSION"),
            simulated_time_s: seconds(outcome.end()),
            simulated_time_ps: outcome.end(),
            ranks: schedule.extent().ranks,
            actions,
            events: outcome.events,
            messages: outcome.messages,
            message_bytes: outcome.message_bytes,
            digest: digest(outcome),
            noise_s: (!outcome.noise.is_empty())
                .then(|| outcome.noise.iter().map(|&picos| seconds(picos)).sum()),
            wall_time_s: load_s + replay_s,
            load_s,
            replay_s,
            actions_per_s: rate(actions),
            events_per_s: rate(outcome.events),
            peak_rss_bytes: peak_rss_bytes(),
            threads,
            processes: 1,
            slowest_rank: ends().max_by_key(|&(end, rank)| (end, std::cmp::Reverse(rank))).map(rank),
            fastest_rank: ends().min().map(rank),
            parameters: Parameters::new(path, parameters),
            warnings: warnings(outcome),
        }
    }

    fn summary(&self) -> String {
        let Self { ranks, actions, events, messages, message_bytes, replay_s, load_s, digest, .. } = self;
        let mut text =
            format!("{ranks} ranks, {actions} operations, {messages} messages with {message_bytes} B\n\n");
        for (what, end) in [("slowest", &self.slowest_rank), ("fastest", &self.fastest_rank)] {
            if let Some(RankEnd { rank, end_s }) = end {
                text.push_str(&format!("{what} rank {rank}: {end_s:.9} s\n"));
            }
        }
        text.push_str(&format!(
            "replayed {events} events in {replay_s:.3} s ({:.1} million events/s) after {load_s:.3} s of loading\ndigest: {digest}\n",
            self.events_per_s / 1e6
        ));
        text
    }
}

impl Parameters {
    fn new(path: &Path, parameters: &LogGops) -> Self {
        Self {
            trace: path.display().to_string(),
            model: MODEL,
            L_ps: parameters.latency,
            o_ps: parameters.overhead,
            g_ps: parameters.gap,
            G_ps_per_byte: parameters.gap_per_byte,
            O_ps_per_byte: parameters.overhead_per_byte,
            S_bytes: parameters.eager_up_to,
            empty: parameters.empty.name(),
        }
    }
}

fn seconds(picos: u64) -> f64 {
    pdes_core::SimTime::from_picos(picos).as_secs_f64()
}

fn warnings(outcome: &Outcome) -> Vec<String> {
    match outcome.protocol_mismatches {
        0 => Vec::new(),
        count => vec![format!(
            "{count} receive(s) lie on the other side of S than their message: the size of the message decides whether its \
             sender waits; LogGOPSim may end such a send twice or never"
        )],
    }
}

/// Hashes the end time of every rank \[ps\], then messages, their bytes and events, in little-endian order.
fn digest(outcome: &Outcome) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(SCHEME);
    for number in outcome.ends.iter().chain([&outcome.messages, &outcome.message_bytes, &outcome.events]) {
        hasher.update(&number.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
