//! State of the programs of a run beside that of the network, in files and in memory.

use mpi_model::{Findings, Machine, RankProcess, Replay};
use pdes_core::save_state;
use serde::{Deserialize, Serialize};

/// State of the programs, but for their ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProgramStates {
    /// Costs of the next test and the next probe.
    poll_costs: Vec<(u64, u64)>,
    /// Findings of the analyses so far.
    findings: Vec<Findings>,
}

impl ProgramStates {
    /// Makes the state of programs with findings of all processes.
    pub(super) fn of<M: Machine>(worlds: &[Replay<'_, M>], findings: Vec<Findings>) -> Self {
        Self { poll_costs: worlds.iter().map(Replay::poll_prices).collect(), findings }
    }

    /// Restores the state; the findings only where they are counted, on one of several processes.
    pub(super) fn restore<M: Machine>(self, worlds: &[Replay<'_, M>], counts: bool) {
        for (world, (tests, probes)) in worlds.iter().zip(self.poll_costs) {
            world.set_poll_prices(tests, probes);
        }
        if counts {
            worlds.iter().zip(self.findings).for_each(|(world, findings)| world.restore_findings(findings));
        }
    }
}

/// Returns the findings of the programs so far, of this process.
pub(super) fn findings<M: Machine>(worlds: &[Replay<'_, M>]) -> Vec<Findings> {
    worlds.iter().map(|world| world.findings([])).collect()
}

/// Encodes the state of a rank that has stopped.
pub(super) fn encode<M: Machine>(process: &mut RankProcess<'_, M>) -> Vec<u8> {
    save_state(process).expect("a rank that has stopped can be saved")
}
