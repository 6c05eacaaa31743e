//! The results of a sweep as CSV.

use std::io::Write;

use super::SweepResults;
use super::column::{Cells, columns};

/// Writes a line per run: its values of the axes, its results, and the simulated time relative to the first run.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write_csv(results: &SweepResults, output: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    // The time in seconds is exact.
    let columns: Vec<_> =
        columns(results).into_iter().filter(|(name, _)| *name != "simulated_time_ps").collect();
    let names = columns.iter().map(|(name, _)| *name);
    writer.write_record(results.axes.iter().map(String::as_str).chain(names))?;
    for (place, row) in results.rows.iter().enumerate() {
        let cells = columns.iter().map(|(_, cells)| cells.text(place).unwrap_or_default());
        writer.write_record(row.labels.iter().cloned().chain(cells))?;
    }
    writer.flush()?;
    Ok(())
}

impl Cells {
    fn text(&self, place: usize) -> Option<String> {
        match self {
            Self::Text(cells) => cells[place].clone(),
            Self::Number(cells) => cells[place].map(|number| number.to_string()),
            Self::Count(cells) => cells[place].map(|count| count.to_string()),
            Self::Time(cells) => {
                let second = 10_u64.pow(12);
                cells[place].map(|picos| format!("{}.{:012}", picos / second, picos % second))
            }
        }
    }
}
