//! Readers of files of measurements, whose format is detected from their content.
//!
//! | format | content that is read |
//! |---|---|
//! | observations of this program ([`write_observations`]) | all |
//! | OSU micro-benchmarks | `osu_latency` as ping-pong, `osu_bw` as streams |
//! | Intel MPI Benchmarks | the tables of `PingPong`, and of `Uniband` as streams |
//! | SKaMPI 5 | results of `Pingpong_Send_Recv` |
//! | SimGrid's platform-calibration, CSV | `MPI_Send`, `MPI_Recv` (a pair with one start is ping-pong), `MPI_Isend`, `MPI_Test`, `MPI_Iprobe` |
//! | SimGrid's network calibration, JSON | segments of `pingpong`, `send`, `isend`, `recv`, by the name of the file |

mod imb;
mod observations;
mod osu;
mod simgrid_csv;
mod simgrid_json;
mod skampi;

use std::path::{Path, PathBuf};

use crate::observation::Measurements;
pub use observations::write_observations;

/// Error of reading a file of measurements.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The format of the file is unknown.
    #[error(
        "{}: found {found:?} at the beginning, expected the output of osu_latency, osu_bw, IMB or SKaMPI, CSV or JSON of \
         SimGrid's calibration, or observations of `pdes-replay calibrate --data`", file.display()
    )]
    Unknown {
        /// The file.
        file: PathBuf,
        /// First line that is not empty.
        found: String,
    },
    /// A line violates its format.
    #[error("{}:{line}: found {found:?}, expected {expected}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Text that was found.
        found: String,
        /// Description of what was expected.
        expected: &'static str,
    },
    /// The format is known, but there are no usable measurements.
    #[error("{}: found no measurements, expected {expected}", file.display())]
    NoMeasurements {
        /// The file.
        file: PathBuf,
        /// Description of what was expected.
        expected: &'static str,
    },
    /// A JSON file does not hold the segments of a calibration.
    #[error("{}: {message}, expected the segments of SimGrid's network calibration", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Description of the error, with its line.
        message: String,
    },
}

/// Reads a file of measurements, whose format is detected from its content.
///
/// # Errors
/// If the file cannot be read, has an unknown format, or violates its format.
pub fn read(file: &Path) -> Result<Measurements, FormatError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| FormatError::Read { file: file.to_owned(), source })?;
    read_text(&text, file)
}

/// Reads files, with a note for each: the number of observations of each operation.
///
/// # Errors
/// As [`read`], of the first file that cannot be read.
pub fn read_all(files: &[PathBuf]) -> Result<Measurements, FormatError> {
    let mut measurements = Measurements::default();
    for file in files {
        let mut found = read(file)?;
        found.notes.push((format!("from {}", file.display()), found.describe()));
        measurements.extend(found);
    }
    Ok(measurements)
}

/// Reads measurements from a text; `file` names it in messages, and determines the operation of SimGrid's JSON.
///
/// # Errors
/// If the text has an unknown format, or violates its format.
pub fn read_text(text: &str, file: &Path) -> Result<Measurements, FormatError> {
    let text = Text { text, file };
    let (measurements, expected) = match text.detect() {
        Some(reader) => (reader.read)(text).map(|measurements| (measurements, reader.expected))?,
        None => {
            let found = text.lines().map(|(_, line)| line).find(|line| !line.is_empty()).unwrap_or_default();
            let found = found.chars().take(60).collect();
            return Err(FormatError::Unknown { file: file.to_owned(), found });
        }
    };
    match measurements.observations.is_empty() {
        true => Err(FormatError::NoMeasurements { file: file.to_owned(), expected }),
        false => Ok(measurements),
    }
}

/// A format.
struct Reader {
    read: fn(Text<'_>) -> Result<Measurements, FormatError>,
    /// Description of the expected content.
    expected: &'static str,
}

/// A text and the file that it was read from.
#[derive(Clone, Copy)]
struct Text<'a> {
    text: &'a str,
    file: &'a Path,
}

impl<'a> Text<'a> {
    fn detect(self) -> Option<Reader> {
        let first = |is_it: fn(&str) -> bool| {
            self.lines()
                .find(|(_, line)| !line.is_empty() && !line.starts_with('#'))
                .is_some_and(|(_, line)| is_it(line))
        };
        let any = |is_it: fn(&str) -> bool| self.lines().any(|(_, line)| is_it(line));
        if first(|line| line.starts_with('{')) {
            Some(Reader { read: simgrid_json::read, expected: "segments" })
        } else if any(|line| line.starts_with(osu::TITLE)) {
            Some(Reader { read: osu::read, expected: "rows of sizes and values" })
        } else if any(|line| line.contains(skampi::BEGIN)) {
            Some(Reader { read: skampi::read, expected: "a result of Pingpong_Send_Recv" })
        } else if any(|line| line.starts_with(imb::BENCHMARK)) {
            Some(Reader { read: imb::read, expected: "a table of PingPong or Uniband" })
        } else if first(|line| line == observations::HEADER) {
            Some(Reader { read: observations::read, expected: "observations" })
        } else if first(|line| line.starts_with("MPI_") && line.contains(',')) {
            Some(Reader { read: simgrid_csv::read, expected: "rows of MPI_Send, MPI_Recv or MPI_Isend" })
        } else {
            None
        }
    }

    /// Returns the lines, trimmed, with their numbers from 1.
    fn lines(self) -> impl Iterator<Item = (u64, &'a str)> {
        (1..).zip(self.text.lines().map(str::trim))
    }

    fn error(self, line: u64, found: &str, expected: &'static str) -> FormatError {
        FormatError::Line { file: self.file.to_owned(), line, found: found.to_owned(), expected }
    }

    fn size(self, line: u64, field: Option<&str>) -> Result<u64, FormatError> {
        let field = field.unwrap_or_default();
        field.parse().map_err(|_| self.error(line, field, "a size in whole bytes"))
    }

    /// Parses a positive number; `expected` describes it in messages.
    fn number(self, line: u64, field: Option<&str>, expected: &'static str) -> Result<f64, FormatError> {
        let field = field.unwrap_or_default();
        let number = field.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| self.error(line, field, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Operation;

    /// Reads a text, and returns the points of an operation: amounts and durations.
    pub(super) fn points(text: &str, operation: Operation) -> Vec<(u64, f64)> {
        let measurements = read_text(text, Path::new("file")).unwrap();
        measurements.points(operation).iter().map(|point| (point.amount, point.typical_s)).collect()
    }

    /// Reads a text that is wrong, and returns the error.
    pub(super) fn error(text: &str) -> String {
        read_text(text, Path::new("file")).unwrap_err().to_string()
    }

    #[test]
    fn unknown_content_is_reported() {
        assert!(
            error("\nlatency 4\n")
                .starts_with("file: found \"latency 4\" at the beginning, expected the output of osu")
        );
        assert!(error("").starts_with("file: found \"\""));
        let missing = read(Path::new("/no/such/file")).unwrap_err();
        assert!(matches!(missing, FormatError::Read { .. }), "{missing}");
    }
}
