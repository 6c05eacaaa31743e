//! Replays of changed runs, of which only the run time matters.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use mpi_model::{ActionKind, Statistics, region_name};
use pdes_core::{Progress, Rank, SimDuration};
use replay::{Outcome, RunError, RunSpec, Simulation};

/// Largest number of regions whose work is told.
const MAX_REGIONS: usize = 16;

/// A replay without changes, with what a user should know before trusting it.
pub(crate) struct Base {
    pub(crate) simulation: Simulation,
    pub(crate) outcome: Outcome,
    pub(crate) replayed: Replayed,
    pub(crate) warnings: Vec<String>,
}

impl Base {
    /// Replays a run.
    ///
    /// # Errors
    /// Returns an error if the run cannot be replayed.
    pub(crate) fn of(spec: &RunSpec) -> Result<Self, RunError> {
        let simulation = Simulation::load(spec)?;
        let outcome = simulation.replay(&Progress::new(spec.threads))?;
        // Warnings about threads would be others for another number of them.
        let mut warnings = Simulation::load(&RunSpec { threads: 1, ..spec.clone() })?.warnings();
        warnings.extend(simulation.outcome_warnings(&outcome));
        Ok(Self { replayed: Replayed::of(&outcome), simulation, outcome, warnings })
    }

    /// Returns the regions of the program in which ranks compute longest, where there are several, if the run asked for their times. The part
    /// before the first region is `""`.
    pub(crate) fn regions(&self) -> Vec<String> {
        let mut regions = self.regions_by_time(&[ActionKind::Compute]);
        regions.retain(|(_, time)| *time > SimDuration::ZERO);
        let has_several = regions.len() > 1;
        regions.into_iter().filter(|_| has_several).take(MAX_REGIONS).map(|(name, _)| name).collect()
    }

    /// Returns the regions and call sites in which ranks send messages to one another, those first in which that takes longest, if the run
    /// asked for their times.
    pub(crate) fn sending_regions(&self) -> Vec<String> {
        let kinds = [ActionKind::Send, ActionKind::Isend, ActionKind::SendRecv, ActionKind::Start];
        let regions = self.regions_by_time(&kinds).into_iter().map(|(name, _)| name);
        // No selector knows what precedes the first place.
        regions.filter(|name| !name.is_empty()).take(MAX_REGIONS).collect()
    }

    /// Returns the regions with actions of some kinds, with the time of these, the longest first. The part before the first region is `""`.
    fn regions_by_time(&self, kinds: &[ActionKind]) -> Vec<(String, SimDuration)> {
        let trace = self.simulation.trace();
        let mut times: BTreeMap<String, SimDuration> = BTreeMap::new();
        for (rank, statistics) in (0..).map(Rank::new).zip(&self.outcome.program().statistics) {
            for region in statistics.breakdown().into_iter().flat_map(mpi_model::Breakdown::regions) {
                let shares = region.shares().filter(|(kind, share)| kinds.contains(kind) && share.count > 0);
                for (_, share) in shares {
                    let location = region.site().map(|site| trace.rank(rank).location(site));
                    let name = location.map_or(String::new(), |name| region_name(name).to_owned());
                    *times.entry(name).or_default() += share.time;
                }
            }
        }
        let mut regions: Vec<(String, SimDuration)> = times.into_iter().collect();
        // The sort is stable: regions with equal times keep the order of their names.
        regions.sort_by_key(|(_, time)| Reverse(*time));
        regions
    }
}

/// Result of the replay of a changed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// End of the last rank \[ps\].
    pub(crate) time_ps: u64,
    /// Number of actions of the rank that has most.
    pub(crate) actions: u64,
}

impl Replayed {
    fn of(outcome: &Outcome) -> Self {
        let actions =
            |statistics: &Statistics| statistics.kinds().map(|kind| statistics.count(kind)).sum::<u64>();
        let ranks = outcome.programs.iter().flat_map(|program| &program.statistics);
        Self {
            time_ps: outcome.simulated_time().as_picos(),
            actions: ranks.map(actions).max().unwrap_or_default(),
        }
    }
}

/// Replays a run.
///
/// # Errors
/// Returns an error if the run cannot be replayed.
pub(crate) fn replay(spec: &RunSpec) -> Result<Replayed, RunError> {
    Ok(Replayed::of(&Simulation::load(spec)?.replay(&Progress::new(spec.threads))?))
}
