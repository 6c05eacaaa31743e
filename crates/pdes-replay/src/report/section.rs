//! Sections of a report: what not every run has, such as the result of an analysis.
//!
//! A section is one file, with a type that implements [`Section`], and one row of [`Sections`].

use std::fmt;

use netmodel::Layout;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[cfg(feature = "pictures")]
use super::SavedReport;
use super::{Breakdown, CriticalPath, Epochs, Histograms, Links};
use crate::simulation::{Outcome, Simulation};

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

    /// Returns the sections of the page, and with them the figures.
    #[cfg(feature = "pictures")]
    fn on_page(&self, _run: &SavedReport) -> Vec<figures::Section> {
        Vec::new()
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

            /// Returns the sections of the page.
            #[cfg(feature = "pictures")]
            pub(super) fn on_page(&self, run: &SavedReport) -> Vec<figures::Section> {
                let mut shown = Vec::new();
                $(shown.extend(self.$name.iter().flat_map(|section| Section::on_page(section, run)));)*
                shown
            }
        }
    };
}

sections! {
    /// Epochs at whose boundaries rates changed; null if they changed at every event.
    epochs: Epochs,
    /// Causes of lost time, and who waited for whom.
    breakdown: Breakdown,
    /// Critical path to the end of the last rank.
    critical_path: CriticalPath,
    /// Loads of links.
    links: Links,
    /// Topology of the platform's network; null if not all hosts are in one cluster.
    topology: Layout,
    /// Histograms of messages and waits.
    histograms: Histograms,
}
