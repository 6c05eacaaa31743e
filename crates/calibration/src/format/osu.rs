//! Reader of the OSU micro-benchmarks: `osu_latency` and `osu_bw`.

use super::{FormatError, Text};
use crate::observation::{Measurements, Operation};

/// Prefix of the title of a benchmark.
pub(super) const TITLE: &str = "# OSU MPI ";

/// Kind of a table.
#[derive(Clone, Copy)]
enum Table {
    /// One-way message times [us].
    Latency,
    /// Bandwidths [10^6 B/s].
    Bandwidth,
}

pub(super) fn read(text: Text<'_>) -> Result<Measurements, FormatError> {
    let mut measurements = Measurements::default();
    let mut table = None;
    for (number, line) in text.lines() {
        if let Some(title) = line.strip_prefix(TITLE) {
            table = Some(table_of(title).ok_or_else(|| {
                text.error(number, line, "\"OSU MPI Latency Test\" or \"OSU MPI Bandwidth Test\"")
            })?);
        }
        // The output of launchers precedes the title.
        let Some(table) = table.filter(|_| !line.is_empty() && !line.starts_with('#')) else { continue };
        let mut fields = line.split_whitespace();
        let size = text.size(number, fields.next())?;
        match table {
            Table::Latency => {
                let micros = text.number(number, fields.next(), "a latency in microseconds, above 0")?;
                measurements.push(Operation::PingPong, size, 0.0, 2e-6 * micros);
            }
            Table::Bandwidth => {
                let rate = text.number(number, fields.next(), "a bandwidth in MB/s, above 0")?;
                measurements.push(Operation::Stream, size, 0.0, size as f64 / (1e6 * rate));
            }
        }
    }
    Ok(measurements)
}

fn table_of(title: &str) -> Option<Table> {
    match title {
        _ if title.starts_with("Latency Test") => Some(Table::Latency),
        _ if title.starts_with("Bandwidth Test") => Some(Table::Bandwidth),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::format::tests::{error, points};
    use crate::observation::Operation;

    const BOTH: &str = "mpirun says hello\n# OSU MPI Latency Test v5.3.2\n# Size          Latency (us)\n0    1.11\n\
        8                       1.50\n\n# OSU MPI Bandwidth Test v7.2\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n\
        4                      10.00\n1048576              1048.576\n";

    #[test]
    fn latencies_and_bandwidths() {
        assert_eq!(points(BOTH, Operation::PingPong), [(0, 2.22e-6), (8, 3e-6)]);
        assert_eq!(points(BOTH, Operation::Stream), [(4, 4e-7), (1_048_576, 1e-3)]);
    }

    #[test]
    fn wrong_lines_are_named() {
        let title = "# OSU MPI Latency Test v5.3.2\n";
        assert_eq!(error(&format!("{title}8x 1\n")), "file:2: found \"8x\", expected a size in whole bytes");
        let expected = "expected a latency in microseconds, above 0";
        assert_eq!(error(&format!("{title}8\n")), format!("file:2: found \"\", {expected}"));
        assert_eq!(error(&format!("{title}# Size\n8 -1\n")), format!("file:3: found \"-1\", {expected}"));
        assert!(
            error("# OSU MPI Multi Latency Test v5\n")
                .starts_with("file:1: found \"# OSU MPI Multi Latency Test v5\"")
        );
        assert_eq!(error(title), "file: found no measurements, expected rows of sizes and values");
    }
}
