//! Comparison of two reports as a table.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use pdes_replay::{Breakdown, SavedReport};

/// Prints the simulated times of two runs, and, if both reports have a breakdown, its parts and kinds of actions.
pub(super) fn print(first: &Path, second: &Path) -> Result<()> {
    let (one, two) = (SavedReport::from_path(first)?, SavedReport::from_path(second)?);
    one.unlike(&two).iter().for_each(|warning| tracing::warn!("{warning}"));
    let mut text = String::new();
    for (name, report) in [("A", &one), ("B", &two)] {
        writeln!(text, "{name}: {}, {} ranks", super::name(report), report.ranks)?;
    }
    writeln!(text, "\n{:<20} {:>20} {:>20} {:>10}", "", "A", "B", "change")?;
    line("simulated time", one.simulated_time_s, two.simulated_time_s, &mut text)?;
    if let (Some(one), Some(two)) = (&one.sections.breakdown, &two.sections.breakdown) {
        breakdowns(one, two, &mut text)?;
    }
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn breakdowns(one: &Breakdown, two: &Breakdown, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\n{:<20} {:>20}", "part", "time of all ranks")?;
    for ((name, a), (_, b)) in one.total.named().into_iter().zip(two.total.named()) {
        if a > 0.0 || b > 0.0 {
            line(name, a, b, text)?;
        }
    }
    writeln!(text, "\naction")?;
    let calls = one.call_changes(two);
    calls.iter().try_for_each(|(name, [a, b])| line(name, a.time_s, b.time_s, text))
}

fn line(name: &str, a: f64, b: f64, text: &mut String) -> std::fmt::Result {
    let change = if a > 0.0 { format!("{:+.2} %", 100.0 * (b / a - 1.0)) } else { "new".to_owned() };
    writeln!(text, "{name:<20} {a:>18.9} s {b:>18.9} s {change:>10}")
}
