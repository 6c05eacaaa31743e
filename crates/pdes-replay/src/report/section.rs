//! Sections of a report: what not every run has, such as the result of an analysis.
//!
//! A section is one file, with a type that implements [`Section`], and one row of [`Sections`].

use std::fmt;

use netmodel::Layout;
use replay::{Outcome, Simulation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[cfg(feature = "pictures")]
use super::SavedReport;
use super::column::Column;
use super::{
    Breakdown, CallTree, Communication, CriticalPath, Energy, Epochs, Failures, FileServers, Histograms,
    IdealMachines, Jobs, Links, Sampling, Training,
};

/// A section of a report, from the outcome of a run to the page.
pub(super) trait Section: Serialize + DeserializeOwned {
    /// Returns the section of a run, if there is one.
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self>
    where
        Self: Sized;

    /// Writes the tables that `pdes-replay report` prints.
    fn write_tables(&self, _text: &mut String) -> fmt::Result {
        Ok(())
    }

    /// Returns the tables that are written as CSV.
    fn csv(&self) -> Vec<CsvTable> {
        Vec::new()
    }

    /// Returns the figures that are written as files.
    #[cfg(feature = "pictures")]
    fn figures(&self, _run: &SavedReport) -> Vec<figures::Figure> {
        Vec::new()
    }

    /// Returns the warnings that a user should know before trusting the section.
    fn warnings(&self) -> &[String] {
        &[]
    }
}

/// A table of a report, to be written as CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvTable {
    /// Name of the file, without its ending.
    pub name: &'static str,
    /// Names of the columns, with units.
    pub header: Vec<String>,
    /// Rows, with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl CsvTable {
    /// Makes a table of columns of equal length.
    pub(super) fn of_columns(name: &'static str, columns: &[(&str, &Column)]) -> Self {
        let rows = columns.iter().map(|(_, column)| column.len()).min().unwrap_or_default();
        let row = |row: usize| columns.iter().map(|(_, column)| column[row].to_string()).collect();
        let header = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { name, header, rows: (0..rows).map(row).collect() }
    }
}

/// Declares [`Sections`]: a row for each, in the order in which they are shown.
macro_rules! sections {
    ($($(#[$documentation:meta])* $name:ident: $section:ty,)*) => {
        /// Sections of a report; each is null if it was not requested, or if the run has nothing of the kind.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Sections {
            $($(#[$documentation])* pub $name: Option<$section>,)*
        }

        impl Sections {
            /// Returns the sections of a run.
            pub(super) fn new(simulation: &Simulation, outcome: &Outcome) -> Self {
                Self { $($name: <$section as Section>::new(simulation, outcome),)* }
            }

            /// Writes the tables of all sections; those who have none write nothing.
            pub fn write_tables(&self, text: &mut String) -> fmt::Result {
                $(self.$name.as_ref().map_or(Ok(()), |section| Section::write_tables(section, text))?;)*
                Ok(())
            }

            /// Returns the tables that are written as CSV.
            pub fn csv(&self) -> Vec<CsvTable> {
                let mut tables = Vec::new();
                $(tables.extend(self.$name.iter().flat_map(Section::csv));)*
                tables
            }

            /// Returns the warnings of all sections.
            pub fn warnings(&self) -> Vec<String> {
                let mut warnings = Vec::new();
                $(warnings.extend(self.$name.iter().flat_map(Section::warnings).cloned());)*
                warnings
            }

            /// Returns the figures that are written as files.
            #[cfg(feature = "pictures")]
            pub(super) fn figures(&self, run: &SavedReport) -> Vec<figures::Figure> {
                let mut figures = Vec::new();
                $(figures.extend(self.$name.iter().flat_map(|section| Section::figures(section, run)));)*
                figures
            }
        }
    };
}

sections! {
    /// Jobs of the run; null if the configuration has none. The other analyses of ranks are those of the first one.
    jobs: Jobs,
    /// Failures of hosts and links; null if nothing fails.
    failures: Failures,
    /// Epochs at whose boundaries rates changed; null if they changed at every event.
    epochs: Epochs,
    /// Run times on machines that have one cost after the other; null without `analysis.ideal_machines`, by default of long runs.
    ideal_machines: IdealMachines,
    /// Training of a transformer; null if it was not generated for the run.
    training: Training,
    /// Causes of lost time, and who waited for whom.
    breakdown: Breakdown,
    /// Time by call site and kind of call, and by rank.
    call_tree: CallTree,
    /// Messages between ranks.
    communication: Communication,
    /// Critical path to the end of the last rank.
    critical_path: CriticalPath,
    /// Loads of links.
    links: Links,
    /// Energy of hosts and links.
    energy: Energy,
    /// Use of the I/O servers of file systems.
    file_servers: FileServers,
    /// Sampled blocks; null if no program ran online with them.
    sampling: Sampling,
    /// Topology of the platform's network; null if not all hosts are in one cluster.
    topology: Layout,
    /// Histograms of messages and waits.
    histograms: Histograms,
}
