//! File formats of timelines.

use std::fmt;
use std::path::Path;

use crate::record::Order;

/// File format of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Trace events in JSON, for Perfetto and Chrome's tracing page; compressed if the file name ends in `.gz`.
    Chrome,
    /// Tables of states, wait states and messages, each a CSV file.
    Csv,
    /// Paje traces.
    Paje,
    /// The tables of CSV, each as a Parquet file, if the program was built with the feature `parquet`.
    Parquet,
    /// Open Trace Format 2, if the program was built with its library.
    Otf2,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Chrome, Self::Csv, Self::Paje, Self::Parquet, Self::Otf2];

    /// Returns the name that configurations use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chrome => "chrome",
            Self::Csv => "csv",
            Self::Paje => "paje",
            Self::Parquet => "parquet",
            Self::Otf2 => "otf2",
        }
    }

    /// Returns the format with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the file name extensions of the format.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Chrome => &[".json", ".json.gz"],
            Self::Csv => &[".csv"],
            Self::Paje => &[".trace"],
            Self::Parquet => &[".parquet"],
            Self::Otf2 => &[".otf2"],
        }
    }

    /// Returns the format that the extension of a file name selects.
    pub fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let is_of = |format: &Self| format.extensions().iter().any(|extension| name.ends_with(extension));
        Self::ALL.into_iter().find(is_of)
    }

    /// Returns the typical sizes of a state and of a message in a file of this name \[B\], as in a timeline of NPB LU class S on 16 ranks.
    pub fn event_bytes(self, path: &Path) -> (f64, f64) {
        match self {
            Self::Chrome if path.extension().is_some_and(|extension| extension == "gz") => (13.0, 55.0),
            Self::Chrome => (110.0, 440.0),
            Self::Csv => (31.0, 35.0),
            Self::Paje => (45.0, 85.0),
            Self::Parquet => (2.6, 1.3),
            Self::Otf2 => (10.0, 22.0),
        }
    }

    /// Returns true if the program was built with the format.
    pub fn is_built(self) -> bool {
        match self {
            Self::Chrome | Self::Csv | Self::Paje => true,
            Self::Parquet => cfg!(feature = "parquet"),
            Self::Otf2 => cfg!(feature = "otf2"),
        }
    }

    /// Returns the order of events that the format requires.
    pub fn order(self) -> Order {
        match self {
            Self::Chrome | Self::Csv | Self::Paje | Self::Parquet => Order::Time,
            // A location is written as a whole.
            Self::Otf2 => Order::Rank,
        }
    }
}

/// Displays the name.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_formats() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            for extension in format.extensions() {
                assert_eq!(Format::from_path(Path::new(&format!("runs/a.b{extension}"))), Some(format));
            }
        }
        assert_eq!(Format::from_path(Path::new("json")), None);
        assert_eq!(Format::from_path(Path::new("a.txt")), None);
    }
}
