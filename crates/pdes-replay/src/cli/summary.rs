//! The summary of a run on stdout.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use figures::quantity::prefixed;
use pdes_replay::{
    CertificateSummary, CheckpointSummary, FastForward, Outcome, Parameters, PartitionCut, RankEnd, Report,
};
use replay::Model;

/// Prints the summary, unless the command is quiet, and the simulated time: to stdout, or to stderr if stdout is one of the outputs.
pub(crate) fn print(report: &Report, outcome: &Outcome, quiet: bool, to_stderr: bool) -> Result<()> {
    let mut text = String::new();
    if !quiet {
        summarize(report, outcome, &mut text)?;
    }
    writeln!(text, "simulated time: {:.9} s", outcome.simulated_time())?;
    write(&text, to_stderr)
}

/// Writes a summary to stdout, or to stderr if stdout is one of the outputs.
pub(crate) fn write(text: &str, to_stderr: bool) -> Result<()> {
    match to_stderr {
        true => std::io::stderr().write_all(text.as_bytes())?,
        false => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(())
}

fn summarize(report: &Report, outcome: &Outcome, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "{} ranks, {} actions, {} messages with {}",
        report.ranks,
        report.actions,
        report.messages,
        size(report.message_bytes)
    )?;
    writeln!(text, "{}", setting(&report.parameters))?;
    writeln!(text)?;
    writeln!(text, "{:<14} {:>14} {:>20} {:>7}", "action", "count", "time of all ranks", "share")?;
    let mut totals = report.time_by_action.clone();
    // The sort is stable: kinds with equal times keep their order.
    totals.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
    for total in totals {
        writeln!(
            text,
            "{:<14} {:>14} {:>18.9} s {:>5.1} %",
            total.action,
            total.count,
            total.time_s,
            100.0 * total.share
        )?;
    }
    if let Some(jobs) = &report.sections.jobs {
        jobs.write(text)?;
    }
    writeln!(text)?;
    for (what, end) in [("slowest", &report.slowest_rank), ("fastest", &report.fastest_rank)] {
        if let Some(RankEnd { rank, end_s }) = end {
            writeln!(text, "{what} rank {rank}: {end_s:.9} s")?;
        }
    }
    writeln!(
        text,
        "replayed in {:.3} s ({:.1} million actions/s, {}{} thread(s)) after {:.3} s of loading",
        report.replay_s,
        report.actions_per_s / 1e6,
        if report.processes > 1 { format!("{} processes with ", report.processes) } else { String::new() },
        report.threads,
        report.load_s
    )?;
    if let Some(forwarded) = report.fast_forward {
        writeln!(text, "fast-forward: {}", forwarded_sentence(forwarded, report.parameters.model))?;
    }
    if let Some(CheckpointSummary { resumed_from, replayed_before_s, written, writing_s }) =
        report.checkpoints
    {
        write!(text, "checkpoints: {written} written in {writing_s:.3} s")?;
        if let Some(actions) = resumed_from {
            write!(text, ", resumed after {actions} actions that took {replayed_before_s:.3} s")?;
        }
        writeln!(text)?;
    }
    if let Some(CertificateSummary { bytes, messages, writing_time }) = outcome.certificate {
        writeln!(
            text,
            "certificate: {} ({} B per message), of which the programs took {:.3} s after the replay",
            size(bytes),
            bytes / messages.max(1),
            writing_time.as_secs_f64()
        )?;
    }
    if let Some(PartitionCut { messages, bytes, blocks_messages, blocks_bytes }) = report.cuts {
        writeln!(
            text,
            "partition {}: {messages} messages with {} between workers, {blocks_messages} with {} if they had blocks",
            report.partition,
            size(bytes),
            size(blocks_bytes)
        )?;
    }
    if let Some(energy) = &report.sections.energy {
        writeln!(text, "{}", energy.sentence())?;
    }
    if let Some(failures) = &report.sections.failures {
        writeln!(text, "{}", failures.sentence())?;
    }
    writeln!(text, "digest: {}", report.digest)
}

/// Says what was skipped, or that nothing recurred, and what does with the model.
fn forwarded_sentence(forwarded: FastForward, model: &str) -> String {
    let FastForward { skipped_iterations, skipped_actions, period, iteration_boundaries } = forwarded;
    if skipped_iterations > 0 {
        return format!(
            "{skipped_iterations} iterations with {skipped_actions} actions were not replayed (period {period}, found at \
             {iteration_boundaries} iteration boundaries)"
        );
    }
    let reason = Model::find(model).and_then(|model| model.recurrence);
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("no iteration recurred, in {iteration_boundaries} that were compared{reason}")
}

/// Describes what decides the result beside the trace and the platform: model, preset and placement.
fn setting(parameters: &Parameters) -> String {
    let Parameters { model, epoch_s, preset, latency_scale, bandwidth_scale, mpi, .. } = parameters;
    let Parameters { computation_factors, hosts, placement, used_hosts, ranks_per_host, .. } = parameters;
    let mut text = format!("{model}, preset {} (eager below {})", preset.key, size(mpi.eager_below_bytes));
    if *epoch_s > 0.0 {
        text += &format!(", epochs of {epoch_s:e} s");
    }
    for (what, scale) in [("latencies", latency_scale), ("bandwidths", bandwidth_scale)] {
        if *scale != 1.0 {
            text += &format!(", {what} x {scale}");
        }
    }
    match computation_factors {
        None | Some([1.0, 1.0]) => {}
        Some([least, greatest]) if least == greatest => text += &format!(", recorded computations x {least}"),
        Some([least, greatest]) => text += &format!(", recorded computations x {least} to {greatest}"),
    }
    let placement = hosts.as_deref().unwrap_or(placement.name());
    let [hosts, ranks] = [(*used_hosts as u64, "host"), (u64::from(*ranks_per_host), "rank")]
        .map(|(number, noun)| format!("{number} {noun}{}", if number == 1 { "" } else { "s" }));
    text + &format!("; placement {placement}: {hosts}, up to {ranks} each")
}

fn size(bytes: u64) -> String {
    match prefixed(bytes as f64) {
        (_, "") => format!("{bytes} B"),
        (number, prefix) => format!("{number:.2} {prefix}B"),
    }
}
