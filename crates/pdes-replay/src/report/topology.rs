//! Topology of the network, for the report.

use netmodel::Layout;
use replay::{Outcome, Simulation};

use super::section::Section;

impl Section for Layout {
    fn new(simulation: &Simulation, _: &Outcome) -> Option<Self> {
        Self::of(simulation.platform())
    }

    #[cfg(feature = "pictures")]
    fn figures(&self, run: &super::SavedReport) -> Vec<figures::Figure> {
        super::page::network::figure(self, run).into_iter().collect()
    }
}
