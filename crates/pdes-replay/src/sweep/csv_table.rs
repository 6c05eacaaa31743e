//! The results of a sweep as CSV.

use std::io::Write;

use super::SweepResults;

/// Writes a line per run: its values of the axes, its results, and the simulated time relative to the first run.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write_csv(results: &SweepResults, output: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    let found = [
        "simulated_time_s",
        "relative",
        "compute_s",
        "communication_s",
        "ranks",
        "actions",
        "messages",
        "message_bytes",
        "wall_time_s",
        "actions_per_s",
        "digest",
        "warnings",
        "error",
    ];
    writer.write_record(results.axes.iter().map(String::as_str).chain(found))?;
    for row in &results.rows {
        let relative = results.relative(row).map_or_else(String::new, |relative| relative.to_string());
        let cells = match &row.result {
            Ok(found) => vec![
                format!(
                    "{}.{:012}",
                    found.simulated_time_ps / 10_u64.pow(12),
                    found.simulated_time_ps % 10_u64.pow(12)
                ),
                relative,
                found.compute_s.to_string(),
                found.communication_s.to_string(),
                found.ranks.to_string(),
                found.actions.to_string(),
                found.messages.to_string(),
                found.message_bytes.to_string(),
                found.wall_time_s.to_string(),
                found.actions_per_s.to_string(),
                found.digest.clone(),
                found.warnings.join("; "),
                String::new(),
            ],
            Err(error) => {
                let mut cells = vec![String::new(); 13];
                cells[12].clone_from(error);
                cells
            }
        };
        writer.write_record(row.labels.iter().chain(&cells))?;
    }
    writer.flush()?;
    Ok(())
}
