//! Reader of SKaMPI 5: results of `Pingpong_Send_Recv`.

use super::{FormatError, Text};
use crate::observation::{Measurements, Operation};

/// Prefix of the name of a result.
pub(super) const BEGIN: &str = "begin result \"";
const END: &str = "end result";
/// The measurement that is a blocking ping-pong; names of results may continue with a hyphen and the varied parameter.
const PING_PONG: &str = "Pingpong_Send_Recv";

pub(super) fn read(text: Text<'_>) -> Result<Measurements, FormatError> {
    let mut measurements = Measurements::default();
    let mut is_ping_pong = false;
    for (number, line) in text.lines() {
        if let Some((_, name)) = line.split_once(BEGIN) {
            let rest = name.strip_prefix(PING_PONG);
            is_ping_pong = rest.is_some_and(|rest| rest.starts_with(['-', '"']));
        } else if line.contains(END) {
            is_ping_pong = false;
        } else if is_ping_pong && !line.is_empty() && !line.starts_with('#') {
            row(text, number, line, &mut measurements)?;
        }
    }
    Ok(measurements)
}

/// Reads a row: the varied parameters, such as `count= 4`, then the size, the round-trip time, its error, and more.
fn row(text: Text<'_>, number: u64, line: &str, measurements: &mut Measurements) -> Result<(), FormatError> {
    let varied = line.rfind('=').map_or("", |last| &line[..=last]);
    let mut fields = line[varied.len()..].split_whitespace().skip(usize::from(!varied.is_empty()));
    let size = text.size(number, fields.next())?;
    let micros = text.number(number, fields.next(), "a time in microseconds, above 0")?;
    measurements.push(Operation::PingPong, size, 0.0, 1e-6 * micros);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::format::tests::{error, points};
    use crate::observation::Operation;

    #[test]
    fn ping_pong_there_and_back() {
        let text = "# SKaMPI Version 5.0 rev. 191\n# begin result \"Pingpong_Send_Recv\"\n\
            count= 1        4      14.5       0.3       16      13.5      13.2\n\
            nodes= 2 count= 2        8      13.0       0.2        8      12.9      12.4\n\
            # end result \"Pingpong_Send_Recv\"\n# duration = 0.01 sec\n\
            # begin result \"Pingpong_Send_Recv_AT\"\ncount= 1        4      99.0       0.3\n# end result\n";
        assert_eq!(points(text, Operation::PingPong), [(4, 14.5e-6), (8, 13e-6)]);
        let varied = "# begin result \"Pingpong_Send_Recv-length\"\ncount= 1 4 2.0\n";
        assert_eq!(points(varied, Operation::PingPong), [(4, 2e-6)]);
    }

    #[test]
    fn wrong_lines_are_named() {
        let begin = "# begin result \"Pingpong_Send_Recv\"\n";
        let wrong = error(&format!("{begin}count= 1 four 2.0\n"));
        assert_eq!(wrong, "file:2: found \"four\", expected a size in whole bytes");
        let wrong = error(&format!("{begin}count= 1 4 nan\n"));
        assert_eq!(wrong, "file:2: found \"nan\", expected a time in microseconds, above 0");
        assert!(
            error("# begin result \"MPI_Bcast\"\ncount= 1 4 2.0\n")
                .ends_with("expected a result of Pingpong_Send_Recv")
        );
    }
}
