//! The commands that create, convert and inspect traces.

pub(crate) mod acquire;
pub(crate) mod chakra;
mod deadlock;
pub(crate) mod generate;
mod launcher;
mod shards;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result};
use pdes_core::Rank;
use serde_json::{Number, json};
use trace_mmap::{
    ConvertOptions, Converted, Cut, Finding, Folding, Info, LoadOptions, NoteKind, PairTraffic, Provenance,
    Storage, Summary, Trace, UnmodelledCalls, WorkMetric,
};
use trace_tools::{
    Export, Extrapolated, ExtrapolationOptions, FORMATS, Input, Scaling, Suspicion, open_input,
};

use super::arguments::{ScalingArgument, TraceCommand, TraceFormat};
use super::{Misuse, files, goal, progress, what_if};
use ::goal::is_schedule_file;
use pdes_replay::available_threads;
use training::ExecutionTrace;

/// Runs one of the trace commands.
pub(crate) fn run(command: &TraceCommand) -> Result<()> {
    if let TraceCommand::Convert { trace, output, .. }
    | TraceCommand::Cut { trace, output, .. }
    | TraceCommand::Transform { trace, output, .. } = command
    {
        files::check_output(trace, output)?;
    }
    if let TraceCommand::Convert { trace, output, from, .. } = command
        && (ExecutionTrace::knows(trace) || *from == TraceFormat::Goal || is_schedule_file(trace))
        && let Some(export) = Export::of(output).filter(|export| export.extension != "goal")
    {
        let hint = format!("{}: a graph of operations has no form among {}", trace.display(), export.name);
        return Err(Misuse(hint).into());
    }
    if let TraceCommand::Extrapolate { traces, output, .. } = command {
        traces.iter().try_for_each(|trace| files::check_output(trace, output))?;
    }
    let text = match command {
        TraceCommand::Convert {
            trace,
            output,
            from: TraceFormat::Ti,
            threads,
            flat,
            shards,
            speed,
            counter: None,
            chakra,
        } if ExecutionTrace::knows(trace) => {
            if (*threads, *flat, *shards, *speed) != (1, false, 1, None) {
                let hint = "--threads, --flat, --shards and --speed are for traces of MPI programs, not for Chakra execution traces";
                return Err(Misuse(hint.to_owned()).into());
            }
            chakra.convert(trace, output)?
        }
        TraceCommand::Convert { chakra, .. } if !chakra.is_default() => {
            let hint = "--algorithm and its options, --gpu-speed and --gpu-bandwidth are for Chakra execution traces (.et)";
            return Err(Misuse(hint.to_owned()).into());
        }
        TraceCommand::Convert {
            trace,
            output,
            from,
            threads,
            flat,
            shards,
            speed,
            counter: None,
            chakra: _,
        } if *from == TraceFormat::Goal || is_schedule_file(trace) => {
            if (*threads, *flat, *shards, *speed) != (1, false, 1, None) {
                let hint = "--threads, --flat, --shards and --speed are for traces of MPI programs, not for GOAL schedules";
                return Err(Misuse(hint.to_owned()).into());
            }
            goal::convert(trace, output)?
        }
        TraceCommand::Convert {
            trace,
            output,
            from: _,
            threads,
            flat,
            shards,
            speed,
            counter,
            chakra: _,
        } => match Export::of(output) {
            Some(export) if *flat || *shards != 1 || counter.is_some() => {
                let hint =
                    format!("--flat, --shards and --counter are for archives, not for {}", export.name);
                return Err(Misuse(hint).into());
            }
            Some(export) => write_export(export, trace, output, *speed)?,
            None => {
                let folding = if *flat { Folding::Never } else { Folding::WhereFaster };
                let provenance = speed.map(|speed| with_speed(trace, speed)).transpose()?;
                let options =
                    ConvertOptions { folding, shards: *shards, provenance, ..ConvertOptions::default() };
                convert(trace, output, *threads, options, counter.as_deref())?
            }
        },
        TraceCommand::Info { trace, json } if is_schedule_file(trace) => match json {
            true => return Err(Misuse("--json is for traces of MPI programs".to_owned()).into()),
            false => goal::info(trace)?,
        },
        TraceCommand::Info { trace, json: true } => info_json(&load(trace)?)?,
        TraceCommand::Info { trace, json: false } => info(&load(trace)?)?,
        TraceCommand::Check { trace } if is_schedule_file(trace) => goal::check(trace)?,
        TraceCommand::Check { trace } if ExecutionTrace::knows(trace) => chakra::check(trace)?,
        TraceCommand::Check { trace } => check(trace)?,
        TraceCommand::Lint { trace } if is_schedule_file(trace) => {
            let found = trace_tools::lint_schedule(&goal::load(trace)?, available_threads());
            describe_suspicions(trace, &found)
        }
        TraceCommand::Lint { trace } if ExecutionTrace::knows(trace) => {
            describe_suspicions(trace, &ExecutionTrace::read(trace)?.lint())
        }
        TraceCommand::Lint { trace } => lint(trace)?,
        TraceCommand::Dump { trace, output: None } if is_schedule_file(trace) => return goal::dump(trace),
        TraceCommand::Dump { trace, output } => return dump(trace, output.as_deref()),
        TraceCommand::Cut { trace, output, ranks, iterations } => {
            cut(trace, output, Cut { ranks: ranks.clone(), iterations: *iterations })?
        }
        TraceCommand::Transform { trace, output, with, hypothesis, threads } => {
            transform(trace, output, with, hypothesis.as_deref(), *threads)?
        }
        TraceCommand::Extrapolate { traces, ranks, grid, misfit, scaling, output } => {
            let scaling = scaling.map(|scaling| match scaling {
                ScalingArgument::Weak => Scaling::Weak,
                ScalingArgument::Strong => Scaling::Strong,
            });
            let options =
                ExtrapolationOptions { ranks: *ranks, grid: grid.clone(), misfit: *misfit, scaling };
            extrapolate(traces, output, &options)?
        }
        TraceCommand::Generate(arguments) => generate::run(arguments)?,
        TraceCommand::Acquire(arguments) => acquire::acquire(arguments)?,
        TraceCommand::Gather(arguments) => acquire::gather(arguments)?,
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Loads a trace and logs its warnings.
fn load(path: &Path) -> Result<Trace> {
    if is_schedule_file(path) {
        anyhow::bail!("{}: this is a GOAL schedule, expected a trace of an MPI program", path.display());
    }
    let actions = AtomicU64::new(0);
    let options = LoadOptions { progress: Some(&actions), ..LoadOptions::default() };
    let trace = progress::watch_load(&actions, || trace_tools::load(path, &options)).context("the trace")?;
    trace.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(trace)
}

/// Returns the provenance of a trace whose amounts are times at a speed [flop/s].
fn with_speed(path: &Path, speed: f64) -> Result<Provenance> {
    let provenance = match open_input(path, FORMATS).context("the trace")? {
        Input::Archive(trace) => trace.provenance(),
        Input::Source(source) => Provenance { work_metric: source.work_metric(), ..Provenance::default() },
    };
    if let Some(counted) = provenance.work_metric {
        let path = path.display();
        let message =
            format!("--speed: {path} counts {counted} already; give the speed to the replay, as trace.speed");
        return Err(Misuse(message).into());
    }
    Ok(Provenance { work_metric: Some(WorkMetric::Time { rate: speed }), ..provenance })
}

fn convert(
    input: &Path,
    output: &Path,
    threads: usize,
    options: ConvertOptions<'_>,
    counter: Option<&str>,
) -> Result<String> {
    let actions = AtomicU64::new(0);
    let load = LoadOptions { threads, progress: Some(&actions), ..LoadOptions::default() };
    let options = ConvertOptions { load, ..options };
    let converted = progress::watch_load(&actions, || -> Result<Converted> {
        match counter {
            None => Ok(trace_tools::convert(input, output, &options)?),
            #[cfg(feature = "otf2")]
            Some(counter) => Ok(trace_tools::convert_counted(input, output, counter, &options)?),
            #[cfg(not(feature = "otf2"))]
            Some(_) => {
                Err(Misuse("--counter: this build reads no OTF2, it lacks --features otf2".to_owned()).into())
            }
        }
    })?;
    converted.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(describe_archive(output, &converted.summary))
}

/// Writes a trace in a format other than an archive.
fn write_export(export: &Export, input: &Path, output: &Path, speed: Option<f64>) -> Result<String> {
    let exported = export.write(&load(input)?, output, speed)?;
    for (name, calls) in &exported.left_out {
        tracing::warn!("{name}: {calls} call(s) are not in {}", output.display());
    }
    Ok(format!("{}: {}\n", output.display(), exported.extent))
}

fn cut(input: &Path, output: &Path, what: Cut) -> Result<String> {
    let trace = load(input)?;
    if trace.has_measured_times() {
        tracing::warn!("a part of a trace does not keep the times that were measured");
    }
    let actions = AtomicU64::new(0);
    let load = LoadOptions { progress: Some(&actions), ..LoadOptions::default() };
    let options = ConvertOptions { load, ..ConvertOptions::default() };
    let cut = progress::watch_load(&actions, || trace_mmap::cut(&trace, output, &what, &options))?;
    Ok(describe_archive(output, &cut.summary))
}

fn transform(input: &Path, output: &Path, with: &Path, name: Option<&str>, threads: usize) -> Result<String> {
    files::check_output(with, output)?;
    let hypotheses = what_if::read(with)?;
    let hypothesis = match (name, &hypotheses[..]) {
        (None, [only]) => only,
        (name, all) => {
            let found = all.iter().find(|hypothesis| Some(hypothesis.name()) == name);
            let names: Vec<String> =
                all.iter().map(|hypothesis| format!("{:?}", hypothesis.name())).collect();
            let message =
                format!("{}: expected --hypothesis with one of {}", with.display(), names.join(", "));
            found.ok_or(Misuse(message))?
        }
    };
    if hypothesis.placements().next().is_some() || !hypothesis.settings().is_empty() {
        let message = format!(
            "the hypothesis {:?} places ranks or sets values of the configuration, which are not part of a trace: test it with what-if",
            hypothesis.name()
        );
        return Err(Misuse(message).into());
    }
    let trace = Arc::new(load(input)?);
    let actions = AtomicU64::new(0);
    let load = LoadOptions { threads, progress: Some(&actions), ..LoadOptions::default() };
    let options = ConvertOptions { load, ..ConvertOptions::default() };
    let written = progress::watch_load(&actions, || hypothesis.write(&trace, input, output, &options));
    Ok(describe_archive(output, &written.map_err(what_if::misuse)?))
}

fn extrapolate(traces: &[PathBuf], output: &Path, options: &ExtrapolationOptions) -> Result<String> {
    let traces: Vec<&Path> = traces.iter().map(PathBuf::as_path).collect();
    let Extrapolated { summary, grids, points, laws } = trace_tools::extrapolate(&traces, output, options)?;
    let mut text = describe_archive(output, &summary);
    let grid = |sides: &Vec<u32>| sides.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ");
    writeln!(text, "grids:  {}", grids.iter().map(grid).collect::<Vec<_>>().join(", "))?;
    if options.scaling.is_some() {
        tracing::warn!(
            "of one trace: --scaling is taken for granted, and how far laws miss on other numbers of ranks is not known"
        );
    }
    for (dimension, points) in (1..).zip(points) {
        match points {
            Some(points) => writeln!(text, "points: {points} along dimension {dimension}")?,
            None => tracing::warn!(
                "no value tells the points along dimension {dimension}: all ranks have equal shares"
            ),
        }
    }
    for (law, values, misfit) in laws {
        writeln!(text, "law:    {law}: {values} values, misfit {:.4} %", 100.0 * misfit)?;
    }
    Ok(text)
}

/// Describes an archive that was written.
fn describe_archive(output: &Path, summary: &Summary) -> String {
    let Summary { ranks, actions, programs, bytes, flat_bytes } = *summary;
    format!(
        "{}: {ranks} ranks, {actions} actions, {programs} different program(s), {bytes} bytes ({:.4} per action; \
         flat {flat_bytes}, {:.1} times as many)\n",
        output.display(),
        bytes as f64 / actions.max(1) as f64,
        flat_bytes as f64 / bytes.max(1) as f64
    )
}

fn info(trace: &Trace) -> Result<String> {
    let (info, provenance) = (Info::of(trace)?, trace.provenance());
    let mut text = String::new();
    writeln!(text, "ranks:    {}", info.ranks)?;
    writeln!(text, "actions:  {}", info.actions)?;
    for (kind, count) in &info.by_kind {
        writeln!(text, "  {kind:<14} {count:>16}")?;
    }
    writeln!(text, "messages: {} with {} bytes, point to point", info.messages, info.message_bytes)?;
    writeln!(text, "pairs:    {} (at most {} receivers of one sender)", info.pairs, info.max_receivers)?;
    for pair in &info.heaviest {
        writeln!(
            text,
            "  {:>7} -> {:<7} {:>14} messages, {}",
            pair.from, pair.to, pair.messages, pair.bytes
        )?;
    }
    if !info.unmodelled.is_empty() {
        writeln!(text, "unmodelled, without time in a replay:")?;
    }
    for UnmodelledCalls { name, calls, bytes } in &info.unmodelled {
        writeln!(text, "  {name:<28} {calls:>16} calls, {bytes} B")?;
    }
    if let Some(counted) = provenance.work_metric {
        writeln!(text, "counted:  {counted}")?;
    }
    if trace.has_measured_times() {
        writeln!(text, "times:    measured, for computations and calls")?;
    }
    if provenance.ended_early > 0 {
        let Provenance { ended_early, cut_actions, .. } = provenance;
        writeln!(
            text,
            "ends early: {ended_early} rank(s) did not leave MPI, {cut_actions} action(s) were cut"
        )?;
    }
    if provenance.is_deadlocked {
        writeln!(text, "deadlock: no rank could proceed when the recording ended")?;
    }
    for note in &provenance.notes {
        writeln!(text, "recording: {note}")?;
    }
    if let Some(Storage { programs, records, depth, data_bytes, shards, absent, inserted }) = info.storage {
        let times = if trace.has_measured_times() { " and those times" } else { "" };
        writeln!(
            text,
            "storage:  {programs} program(s) of {records} records in all, loops {depth} deep, {absent} optional \
             computations left out and {inserted} inserted, {data_bytes} bytes of data in {shards} file(s), {:.2} per action, flat 16{times}",
            data_bytes as f64 / info.actions.max(1) as f64
        )?;
    }
    Ok(text)
}

/// Describes a trace as JSON, with the names of its types.
fn info_json(trace: &Trace) -> Result<String> {
    let (info, provenance) = (Info::of(trace)?, trace.provenance());
    let pair = |pair: &PairTraffic| json!({ "from": pair.from.get(), "to": pair.to.get(), "messages": pair.messages, "bytes": pair.bytes.get() });
    let unmodelled = |call: &UnmodelledCalls| json!({ "name": call.name, "calls": call.calls, "bytes": Number::from_u128(call.bytes) });
    let storage = |storage: Storage| {
        json!({
            "programs": storage.programs, "records": storage.records, "depth": storage.depth, "data_bytes": storage.data_bytes,
            "shards": storage.shards, "absent": storage.absent, "inserted": storage.inserted,
        })
    };
    let value = json!({
        "ranks": info.ranks,
        "actions": info.actions,
        "by_kind": info.by_kind.iter().copied().collect::<BTreeMap<_, _>>(),
        "messages": info.messages,
        "message_bytes": Number::from_u128(info.message_bytes),
        "pairs": info.pairs,
        "max_receivers": info.max_receivers,
        "heaviest": info.heaviest.iter().map(pair).collect::<Vec<_>>(),
        "unmodelled": info.unmodelled.iter().map(unmodelled).collect::<Vec<_>>(),
        "counted": provenance.work_metric.map(|metric| metric.to_string()),
        "has_measured_times": trace.has_measured_times(),
        "ended_early": provenance.ended_early,
        "cut_actions": provenance.cut_actions,
        "is_deadlocked": provenance.is_deadlocked,
        "notes": provenance.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "storage": info.storage.map(storage),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn check(path: &Path) -> Result<String> {
    let trace = load(path)?;
    let ranks = AtomicU64::new(0);
    let mut report = progress::watch_count(&ranks, trace.ranks().into(), "ranks checked", || {
        trace_mmap::check(&trace, Some(&ranks))
    });
    if report.pending > 0 {
        tracing::warn!("{} request(s) are still pending at the end of their ranks", report.pending);
    }
    let mut findings = Vec::new();
    let provenance = trace.provenance();
    if provenance.is_deadlocked {
        let calls = provenance.notes_of(NoteKind::CallInProgress).map(|call| format!("\n    {call}"));
        findings.push(format!(
            "\n  the program was in a deadlock when its recording ended:{}",
            calls.collect::<String>()
        ));
    }
    let notes = provenance.notes.iter().filter(|note| note.kind != NoteKind::CallInProgress);
    notes.for_each(|note| tracing::warn!("{note}"));
    if provenance.ended_early > 0 {
        // The end of the recording explains requests that were not completed, and messages that were not received.
        report.findings.retain(|finding| !matches!(finding, Finding::Unfinished { .. }));
        report.unreceived.iter().for_each(|unreceived| tracing::warn!("{unreceived}"));
    } else if let Some(unreceived) = report.unreceived {
        let limit = mpi_model::Parameters::default().detached_below;
        findings.push(format!(
            "\n  {unreceived}; a send of mpi.detached_below_bytes ({limit} by default) or more waits for its receive: a deadlock"
        ));
    }
    findings.extend(report.findings.iter().map(|finding| format!("\n  {finding}")));
    if findings.is_empty() && provenance.ended_early == 0 {
        findings.extend(deadlock::find(path, trace.ranks(), trace.actions())?);
    }
    if findings.is_empty() {
        return Ok(format!(
            "{}: {} ranks, {} actions, all right\n",
            path.display(),
            trace.ranks(),
            trace.actions()
        ));
    }
    let are = if findings.len() == 1 { "thing is" } else { "things are" };
    anyhow::bail!("{}: {} {are} wrong:{}", path.display(), findings.len(), findings.concat())
}

/// Lists what is suspicious, among it the warnings of loading.
fn lint(path: &Path) -> Result<String> {
    let actions = AtomicU64::new(0);
    let options = LoadOptions { progress: Some(&actions), ..LoadOptions::default() };
    let trace = progress::watch_load(&actions, || trace_tools::load(path, &options)).context("the trace")?;
    Ok(describe_suspicions(path, &trace_tools::lint(&trace)))
}

fn describe_suspicions(path: &Path, found: &[Suspicion]) -> String {
    if found.is_empty() {
        return format!("{}: nothing is suspicious\n", path.display());
    }
    found.iter().map(|Suspicion { lint, text }| format!("{lint}: {text}\n")).collect()
}

fn dump(path: &Path, output: Option<&Path>) -> Result<()> {
    let trace = load(path)?;
    let actions = AtomicU64::new(0);
    if let Some(directory) = output {
        let write = || trace_tools::dump(&trace, directory, Some(&actions));
        return Ok(progress::watch_count(&actions, trace.actions(), "actions", write)?);
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for rank in (0..trace.ranks()).map(Rank::new) {
        trace_tools::write_text(&trace, rank, &mut out, None)?;
    }
    out.flush()?;
    Ok(trace.integrity()?)
}
