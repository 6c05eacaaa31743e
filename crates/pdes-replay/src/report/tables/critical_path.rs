//! The critical path of a run as a table.

use std::fmt::Write as _;

use super::{MAX_LISTED, percent, seconds};
use crate::report::CriticalPath;

/// Writes the parts of a path, the kinds of actions on it, and the ranks.
pub(in crate::report) fn write(path: &CriticalPath, text: &mut String) -> std::fmt::Result {
    let CriticalPath { rank, time_ps, hops, parts, calls, ranks, .. } = path;
    writeln!(
        text,
        "\ncritical path to the end of rank {rank}: {:.9} s, {hops} hops between ranks",
        seconds(*time_ps)
    )?;
    let parts = parts.named().into_iter().filter(|&(_, time)| time > 0);
    rows("part", parts.map(|(name, time)| (name.to_owned(), time)), *time_ps, text)?;
    let calls = calls.iter().take(MAX_LISTED).map(|call| (call.call.to_string(), call.time_ps));
    rows("action", calls, *time_ps, text)?;
    let ranks = ranks.iter().take(MAX_LISTED).map(|rank| (rank.rank.to_string(), rank.time_ps));
    rows("rank", ranks, *time_ps, text)
}

fn rows(
    heading: &str,
    rows: impl Iterator<Item = (String, u64)>,
    whole: u64,
    text: &mut String,
) -> std::fmt::Result {
    writeln!(text, "{heading:<16} {:>20} {:>7}", "on the path", "share")?;
    for (name, time) in rows {
        let share = percent(seconds(time), seconds(whole));
        writeln!(text, "{name:<16} {:>18.9} s {share:>5.1} %", seconds(time))?;
    }
    Ok(())
}
