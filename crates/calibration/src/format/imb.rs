//! Reader of the Intel MPI Benchmarks: `PingPong` and `Uniband`.

use super::{FormatError, Text};
use crate::observation::{Measurements, Operation};

/// Prefix of the name of a benchmark.
pub(super) const BENCHMARK: &str = "# Benchmarking ";
/// Header of the column of one-way message times.
const TIME: &str = "t[usec]";
/// Header of the column of messages per second.
const RATE: &str = "Msg/sec";

/// The table that is being read.
#[derive(Clone, Copy)]
struct Table {
    operation: Operation,
    /// Index of the column with the value.
    column: usize,
}

pub(super) fn read(text: Text<'_>) -> Result<Measurements, FormatError> {
    let mut measurements = Measurements::default();
    let (mut benchmark, mut table) = (None, None);
    for (number, line) in text.lines() {
        if let Some(name) = line.strip_prefix(BENCHMARK) {
            // The other benchmarks do not measure single messages.
            benchmark = match name {
                "PingPong" => Some((Operation::PingPong, TIME)),
                "Uniband" => Some((Operation::Stream, RATE)),
                _ => None,
            };
            table = None;
        } else if let Some((operation, header)) = benchmark.filter(|_| line.starts_with("#bytes")) {
            let column = line.split_whitespace().position(|field| field == header);
            let column = column.ok_or_else(|| {
                text.error(number, line, "a column t[usec] (PingPong) or Msg/sec (Uniband)")
            })?;
            table = Some(Table { operation, column });
        } else if line.is_empty() || line.starts_with('#') {
            table = None;
        } else if let Some(table) = table {
            row(text, number, line, table, &mut measurements)?;
        }
    }
    Ok(measurements)
}

fn row(
    text: Text<'_>,
    number: u64,
    line: &str,
    table: Table,
    measurements: &mut Measurements,
) -> Result<(), FormatError> {
    let field = |column| line.split_whitespace().nth(column);
    let size = text.size(number, field(0))?;
    let value = field(table.column);
    let duration = match table.operation {
        Operation::PingPong => 2e-6 * text.number(number, value, "a time in microseconds, above 0")?,
        _ => 1.0 / text.number(number, value, "messages per second, above 0")?,
    };
    measurements.push(table.operation, size, 0.0, duration);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::format::tests::{error, points};
    use crate::observation::Operation;

    const TABLES: &str = "# List of Benchmarks to run:\n# PingPong\n#-----\n# Benchmarking PingPong\n# #processes = 2\n#-----\n\
        \x20      #bytes #repetitions      t[usec]   Mbytes/sec\n            0         1000         2.23         0.00\n\
        \x20           8         1000         2.26         3.38\n\n# Benchmarking PingPing\n\
        \x20      #bytes #repetitions      t[usec]   Mbytes/sec\n            0         1000         9.99         0.00\n\n\
        # Benchmarking Uniband\n       #bytes #repetitions   Mbytes/sec      Msg/sec\n            4         1000         8.0       2000000\n";

    #[test]
    fn ping_pong_and_streams() {
        assert_eq!(points(TABLES, Operation::PingPong), [(0, 2e-6 * 2.23), (8, 2e-6 * 2.26)]);
        assert_eq!(points(TABLES, Operation::Stream), [(4, 5e-7)]);
    }

    #[test]
    fn wrong_lines_are_named() {
        let begin = "# Benchmarking PingPong\n#bytes #repetitions t[usec] Mbytes/sec\n";
        let expected = "expected a time in microseconds, above 0";
        assert_eq!(
            error(&format!("{begin}0 1000 0.00 0.00\n")),
            format!("file:3: found \"0.00\", {expected}")
        );
        assert_eq!(error(&format!("{begin}0 1000\n")), format!("file:3: found \"\", {expected}"));
        assert_eq!(
            error(&format!("{begin}none\n")),
            "file:3: found \"none\", expected a size in whole bytes"
        );
        assert!(
            error("# Benchmarking PingPong\n#bytes time\n")
                .starts_with("file:2: found \"#bytes time\", expected a column")
        );
        assert!(error("# Benchmarking Bcast\n#bytes\n").ends_with("expected a table of PingPong or Uniband"));
    }
}
