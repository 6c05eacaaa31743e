//! Reader of CSV files of SimGrid's platform-calibration: call, size, start and duration, without a header.

use super::{FormatError, Text};
use crate::observation::{Measurements, Operation};

pub(super) fn read(text: Text<'_>) -> Result<Measurements, FormatError> {
    let mut measurements = Measurements::default();
    // The last send, whose receive may follow: size, start and duration.
    let mut sent: Option<(u64, f64, f64)> = None;
    for (number, line) in text.lines().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let mut fields = line.split(',').map(str::trim);
        let call = fields.next().unwrap_or_default();
        let size = text.size(number, fields.next())?;
        let start = fields.next().unwrap_or_default();
        let start: f64 = start.parse().map_err(|_| text.error(number, start, "a start in seconds"))?;
        let duration = text.number(number, fields.next(), "a duration in seconds, above 0")?;
        let send = sent.take().filter(|&(bytes, since, _)| bytes == size && since == start);
        match (call, send) {
            ("MPI_Send", _) => {
                measurements.push(Operation::Send, size, start, duration);
                sent = Some((size, start, duration));
            }
            // A receive with the start of its send: together they are a ping-pong.
            ("MPI_Recv", Some((.., before))) => {
                measurements.push(Operation::PingPong, size, start, before + duration);
            }
            ("MPI_Recv", None) => measurements.push(Operation::Receive, size, start, duration),
            ("MPI_Isend", _) => measurements.push(Operation::Isend, size, start, duration),
            ("MPI_Test", _) => measurements.push(Operation::Test, 0, start, duration),
            ("MPI_Iprobe", _) => measurements.push(Operation::Iprobe, 0, start, duration),
            // Readings of the clock are not used.
            ("MPI_Wtime", _) => {}
            (other, _) => {
                let expected = "MPI_Send, MPI_Recv, MPI_Isend, MPI_Test, MPI_Iprobe or MPI_Wtime";
                return Err(text.error(number, other, expected));
            }
        }
    }
    Ok(measurements)
}

#[cfg(test)]
mod tests {
    use crate::format::tests::{error, points};
    use crate::observation::Operation;

    #[test]
    fn pairs_with_one_start_are_ping_pong() {
        let text = "MPI_Send,72,42.725509,3e-06\nMPI_Recv,72,42.725509,7e-06\nMPI_Recv,72,42.8,1e-06\n\
            MPI_Isend,8,43.0,2e-06\nMPI_Test,8,43.1,5e-08\nMPI_Iprobe,16,43.2,6e-08\nMPI_Wtime,1,43.3,1e-2\n";
        let expected = [
            (Operation::PingPong, (72, 3e-6 + 7e-6)),
            (Operation::Send, (72, 3e-6)),
            (Operation::Receive, (72, 1e-6)),
            (Operation::Isend, (8, 2e-6)),
            (Operation::Test, (0, 5e-8)),
            (Operation::Iprobe, (0, 6e-8)),
        ];
        for (operation, point) in expected {
            assert_eq!(points(text, operation), [point], "{operation}");
        }
    }

    #[test]
    fn wrong_lines_are_named() {
        let first = "MPI_Isend,8,1.0,1e-6\n";
        let errors = [
            ("MPI_Bcast,8,1.0,1e-6", "file:2: found \"MPI_Bcast\", expected MPI_Send"),
            ("MPI_Isend,8.5,1.0,1e-6", "file:2: found \"8.5\", expected a size"),
            ("MPI_Isend,8,x,1e-6", "file:2: found \"x\", expected a start"),
            ("MPI_Isend,8,1.0", "file:2: found \"\", expected a duration"),
        ];
        for (line, expected) in errors {
            let error = error(&format!("{first}{line}\n"));
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
