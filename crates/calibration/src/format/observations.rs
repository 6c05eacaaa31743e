//! Reader and writer of this program's observations: CSV with a header, preceded by notes as comments.

use std::io::{self, Write};

use super::{FormatError, Text};
use crate::observation::{Measurements, Observation, Operation};

/// Header line.
pub(super) const HEADER: &str = "operation,amount,start_s,duration_s";

/// Writes all observations as CSV; the notes precede the header, as comments `# key: value`.
///
/// The columns are `operation`, `amount` (bytes or flops: [`Operation`]), `start_s`, and `duration_s`, in the order of the
/// observations.
///
/// # Errors
/// If the output cannot be written to.
pub fn write_observations(measurements: &Measurements, mut output: impl Write) -> io::Result<()> {
    for (key, value) in &measurements.notes {
        writeln!(output, "# {key}: {}", value.replace(['\n', '\r'], " "))?;
    }
    writeln!(output, "{HEADER}")?;
    for Observation { operation, amount, start_s, duration_s } in &measurements.observations {
        writeln!(output, "{operation},{amount},{start_s:.9},{duration_s:e}")?;
    }
    output.flush()
}

pub(super) fn read(text: Text<'_>) -> Result<Measurements, FormatError> {
    let mut measurements = Measurements::default();
    for (number, line) in text.lines().filter(|&(_, line)| !line.is_empty() && line != HEADER) {
        if let Some(comment) = line.strip_prefix('#') {
            let note =
                comment.split_once(':').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
            measurements.notes.extend(note);
            continue;
        }
        let mut fields = line.split(',').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let expected =
            "pingpong, send, send_late, send_overlap, isend, irecv, recv, stream, test, iprobe or compute";
        let operation = Operation::from_name(name).ok_or_else(|| text.error(number, name, expected))?;
        let amount = text.size(number, fields.next())?;
        let start = fields.next().unwrap_or_default();
        let start_s = start.parse().map_err(|_| text.error(number, start, "a start in seconds"))?;
        let duration_s = text.number(number, fields.next(), "a duration in seconds, above 0")?;
        measurements.push(operation, amount, start_s, duration_s);
    }
    Ok(measurements)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::format::read_text;
    use crate::format::tests::error;

    #[test]
    fn what_is_written_is_read() {
        let mut measurements = Measurements::default();
        measurements.notes.push(("mpi".to_owned(), "Open MPI: 4.1.4".to_owned()));
        for (place, operation) in Operation::ALL.into_iter().enumerate() {
            measurements.push(operation, place as u64, place as f64 / 8.0, 1.2345678901234e-7);
        }
        let mut text = Vec::new();
        write_observations(&measurements, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(read_text(&text, Path::new("file")).unwrap(), measurements);
    }

    #[test]
    fn wrong_lines_are_named() {
        let wrong = |row: &str| error(&format!("# host: a\n{HEADER}\n{row}\n"));
        assert!(wrong("ping,1,0,1").starts_with("file:3: found \"ping\", expected pingpong, send"));
        assert!(wrong("test,-1,0,1").starts_with("file:3: found \"-1\", expected a size"));
        assert!(wrong("test,1,now,1").starts_with("file:3: found \"now\", expected a start"));
        assert!(wrong("test,1,0,0").starts_with("file:3: found \"0\", expected a duration"));
        assert_eq!(error(HEADER), "file: found no measurements, expected observations");
    }
}
