//! The command that looks at a report: where the time went, as a table.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use pdes_replay::{Breakdown, CallParts, Parts, RegionParts, SavedReport};

/// The most ranks and call sites that are listed.
const LISTED: usize = 10;

/// Prints where the time of a run went.
pub(crate) fn run(path: &Path) -> Result<()> {
    let report = SavedReport::from_path(path)?;
    let Some(breakdown) = &report.breakdown else {
        bail!(
            "the report {} does not say where the time went: replay with analysis.waits = true",
            path.display()
        );
    };
    let mut text = String::new();
    heading(&report, &mut text)?;
    parts(&breakdown.total, &mut text)?;
    calls(&breakdown.calls, &mut text)?;
    ranks(breakdown, &mut text)?;
    regions(&breakdown.regions, &mut text)?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn heading(report: &SavedReport, text: &mut String) -> std::fmt::Result {
    let SavedReport { simulated_time_s, ranks, parameters, imbalance, .. } = report;
    writeln!(
        text,
        "{} on {} ({}): {ranks} ranks, {simulated_time_s:.9} s",
        parameters.trace, parameters.platform, parameters.model
    )?;
    if let Some(imbalance) = imbalance {
        writeln!(
            text,
            "computation: {:.9} s at most (rank {}), {:.9} s on average, imbalance {:.1} %",
            imbalance.max_s,
            imbalance.rank,
            imbalance.mean_s,
            100.0 * imbalance.compute
        )?;
    }
    Ok(())
}

fn parts(total: &Parts, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\n{:<16} {:>20} {:>7}", "part", "time of all ranks", "share")?;
    for (name, time) in total.named().into_iter().filter(|&(_, time)| time > 0.0) {
        writeln!(text, "{name:<16} {time:>18.9} s {:>5.1} %", percent(time, total.time_s))?;
    }
    Ok(())
}

/// The kinds of actions that take time, those with most of it first.
fn calls(calls: &[CallParts], text: &mut String) -> std::fmt::Result {
    let mut calls: Vec<&CallParts> = calls.iter().filter(|call| call.parts.time_s > 0.0).collect();
    // Stable: kinds that take equally long keep their order.
    calls.sort_by(|one, other| other.parts.time_s.total_cmp(&one.parts.time_s));
    writeln!(
        text,
        "\n{:<16} {:>12} {:>20} {:>9} {:>9} {:>9}  most of the waiting",
        "action", "count", "time of all ranks", "own", "transfer", "waiting"
    )?;
    for CallParts { action, count, parts } in calls {
        let own = parts.compute_s + parts.sleep_s + parts.library_s;
        let share = |part| percent(part, parts.time_s);
        let line = format!(
            "{action:<16} {count:>12} {:>18.9} s {:>7.1} % {:>7.1} % {:>7.1} %  {}",
            parts.time_s,
            share(own),
            share(parts.transfer_s),
            share(parts.waiting_s),
            most_waiting(parts)
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The state that takes most of the waiting; of equals, the first.
fn most_waiting(parts: &Parts) -> &'static str {
    let states = parts.named().into_iter().skip(4).filter(|&(_, time)| time > 0.0);
    let most = states.reduce(|most, state| if state.1 > most.1 { state } else { most });
    most.map_or("", |(name, _)| name)
}

/// The ranks that wait longest for others; of equals, the lowest first.
fn ranks(breakdown: &Breakdown, text: &mut String) -> std::fmt::Result {
    let states = breakdown.ranks.waiting();
    let waited = |rank: usize| -> u64 { states.iter().map(|(_, column)| column[rank]).sum() };
    let mut ranks: Vec<(usize, u64)> =
        (0..breakdown.ranks.end_ps.len()).map(|rank| (rank, waited(rank))).collect();
    ranks.sort_by_key(|&(_, waited)| std::cmp::Reverse(waited));
    writeln!(text, "\n{:<16} {:>20} {:>20} {:>9}  most of the waiting", "rank", "waiting", "end", "share")?;
    for (rank, waited) in ranks.into_iter().take(LISTED).filter(|&(_, waited)| waited > 0) {
        let most = states.iter().rev().max_by_key(|(_, column)| column[rank]);
        let (waited, end) = (seconds(waited), seconds(breakdown.ranks.end_ps[rank]));
        writeln!(
            text,
            "{rank:<16} {waited:>18.9} s {end:>18.9} s {:>7.1} %  {}",
            percent(waited, end),
            most.map_or("", |(state, _)| state.name())
        )?;
    }
    Ok(())
}

fn regions(regions: &[RegionParts], text: &mut String) -> std::fmt::Result {
    if regions.iter().all(|region| region.site.is_none()) {
        return Ok(());
    }
    writeln!(
        text,
        "\n{:<32} {:>20} {:>9} {:>9} {:>9}",
        "call site", "time of all ranks", "transfer", "waiting", "imbalance"
    )?;
    for RegionParts { site, imbalance, parts, .. } in regions.iter().take(LISTED) {
        writeln!(
            text,
            "{:<32} {:>18.9} s {:>7.1} % {:>7.1} % {:>7.1} %",
            site.as_deref().unwrap_or("before the first"),
            parts.time_s,
            percent(parts.transfer_s, parts.time_s),
            percent(parts.waiting_s, parts.time_s),
            100.0 * imbalance
        )?;
    }
    if regions.len() > LISTED {
        writeln!(text, "and {} more", regions.len() - LISTED)?;
    }
    Ok(())
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { 100.0 * part / whole }
}

fn seconds(picos: u64) -> f64 {
    picos as f64 / 1e12
}
