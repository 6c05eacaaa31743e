//! The past that runs of an ensemble share: the run without failures, until the first failure of each.

use pdes_core::SimTime;
use replay::{Digest, Outcome, Simulation};

use super::{EnsembleError, Member};

/// Largest number of instants before which the state of the run without failures is kept.
const MAX_INSTANTS: usize = 64;

/// Inverse of the share of the time before a failure by which another state is kept earlier: ranks may be ahead of the last one.
const MARGIN: u64 = 256;

/// Lets the run without failures keep states from which the members go on, or returns the reason why it does not.
pub(super) fn keep(
    simulation: Simulation,
    members: &[Member],
) -> Result<(Simulation, Option<String>), EnsembleError> {
    if let Some(obstacle) = simulation.past_obstacle() {
        return Ok((simulation, Some(obstacle)));
    }
    let platform = simulation.platform();
    let mut firsts = Vec::new();
    for member in members {
        firsts.extend(member.failures.first(platform)?);
    }
    firsts.sort_unstable();
    firsts.dedup();
    let stride = firsts.len().div_ceil(MAX_INSTANTS).max(1);
    let around = |&at: &SimTime| {
        let early = SimTime::from_picos(at.as_picos() - at.as_picos() / MARGIN);
        [early, at]
    };
    let instants = firsts.iter().step_by(stride).flat_map(around).filter(|&at| at > SimTime::ZERO);
    let instants = instants.collect();
    Ok((simulation.keeping_past(instants), None))
}

/// Returns the digest of a replay.
pub(super) fn digest(outcome: &Outcome) -> String {
    let programs = outcome.programs.iter();
    Digest::of(programs.flat_map(|program| program.ends.iter().copied().zip(&program.statistics))).to_string()
}
