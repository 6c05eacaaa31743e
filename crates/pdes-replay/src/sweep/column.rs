//! The columns that the tables of a sweep have in common.

use super::{RunResult, SweepResults};

/// Values of a column: one per run, or none if the run failed.
pub(super) enum Cells {
    Text(Vec<Option<String>>),
    Number(Vec<Option<f64>>),
    Count(Vec<Option<u64>>),
    /// Simulated times \[ps\], in a table \[s\].
    Time(Vec<Option<u64>>),
}

/// Returns the results of all runs by column.
pub(super) fn columns(results: &SweepResults) -> [(&'static str, Cells); 15] {
    let found = |of: fn(&RunResult) -> f64| Cells::Number(values(results, of));
    let counted = |of: fn(&RunResult) -> u64| Cells::Count(values(results, of));
    let relative = results.rows.iter().map(|row| results.relative(row)).collect();
    let errors = results.rows.iter().map(|row| row.result.as_ref().err().cloned()).collect();
    [
        ("simulated_time_s", Cells::Time(values(results, |found| found.simulated_time_ps))),
        ("simulated_time_ps", counted(|found| found.simulated_time_ps)),
        ("relative", Cells::Number(relative)),
        ("cost", Cells::Number(results.rows.iter().map(|row| row.cost).collect())),
        ("compute_s", found(|found| found.compute_s)),
        ("communication_s", found(|found| found.communication_s)),
        ("ranks", counted(|found| found.ranks.into())),
        ("actions", counted(|found| found.actions)),
        ("messages", counted(|found| found.messages)),
        ("message_bytes", counted(|found| found.message_bytes)),
        ("wall_time_s", found(|found| found.wall_time_s)),
        ("actions_per_s", found(|found| found.actions_per_s)),
        ("digest", Cells::Text(values(results, |found| found.digest.clone()))),
        ("warnings", Cells::Text(values(results, |found| found.warnings.join("; ")))),
        ("error", Cells::Text(errors)),
    ]
}

fn values<T>(results: &SweepResults, of: fn(&RunResult) -> T) -> Vec<Option<T>> {
    results.rows.iter().map(|row| row.result.as_ref().ok().map(of)).collect()
}
