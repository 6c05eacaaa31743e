//! Breakdown of the time as tables.

use std::fmt::Write as _;

use super::{MAX_LISTED, percent, seconds};
use crate::report::{Breakdown, CallParts, Parts, RegionParts};

/// Writes the parts of the time, the kinds of actions, the ranks that wait longest, and the call sites.
pub(in crate::report) fn write(breakdown: &Breakdown, text: &mut String) -> std::fmt::Result {
    parts(&breakdown.total, text)?;
    calls(breakdown, text)?;
    ranks(breakdown, text)?;
    regions(&breakdown.regions, text)
}

fn parts(total: &Parts, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\n{:<16} {:>20} {:>7}", "part", "time of all ranks", "share")?;
    for (name, time) in total.named().into_iter().filter(|&(_, time)| time > 0.0) {
        writeln!(text, "{name:<16} {time:>18.9} s {:>5.1} %", percent(time, total.time_s))?;
    }
    Ok(())
}

/// Prints the kinds of actions that take time, in descending order.
fn calls(breakdown: &Breakdown, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "\n{:<16} {:>12} {:>20} {:>9} {:>9} {:>9}  most of the waiting",
        "action", "count", "time of all ranks", "own", "transfer", "waiting"
    )?;
    for CallParts { action, count, parts } in breakdown.calls_by_time() {
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

/// Returns the wait state that takes most time; at a tie, the first.
fn most_waiting(parts: &Parts) -> &'static str {
    let states = parts.named().into_iter().skip(4).filter(|&(_, time)| time > 0.0);
    let most = states.reduce(|most, state| if state.1 > most.1 { state } else { most });
    most.map_or("", |(name, _)| name)
}

/// Prints the ranks that wait longest for others; at a tie, the lowest first.
fn ranks(breakdown: &Breakdown, text: &mut String) -> std::fmt::Result {
    let states = breakdown.ranks.waiting();
    let waited = |rank: usize| -> u64 { states.iter().map(|(_, column)| column[rank]).sum() };
    let mut ranks: Vec<(usize, u64)> =
        (0..breakdown.ranks.end_ps.len()).map(|rank| (rank, waited(rank))).collect();
    ranks.sort_by_key(|&(_, waited)| std::cmp::Reverse(waited));
    writeln!(text, "\n{:<16} {:>20} {:>20} {:>9}  most of the waiting", "rank", "waiting", "end", "share")?;
    for (rank, waited) in ranks.into_iter().take(MAX_LISTED).filter(|&(_, waited)| waited > 0) {
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
    for RegionParts { site, imbalance, parts, .. } in regions.iter().take(MAX_LISTED) {
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
    if regions.len() > MAX_LISTED {
        writeln!(text, "and {} more", regions.len() - MAX_LISTED)?;
    }
    Ok(())
}
