//! Failures of a replay, with their places in the traces and with advice.

use std::collections::BTreeMap;

use mpi_model::{Outcomes, ReplayError, ReplayErrorKind, WaitReason};
use netmodel::{Resource, RouteError};
use pdes_core::{LpId, Rank, SimTime};
use trace_mmap::RankTrace;

use super::{RunError, Simulation};
use crate::deadlock::Deadlock;
use crate::programs::Program;

impl Simulation {
    /// Returns an error of a logical process with its place in the trace.
    pub(crate) fn locate(&self, lp: LpId, mut error: Box<ReplayError<RouteError>>) -> RunError {
        let program;
        (program, error.rank) = self.programs.locate(lp);
        let place = match program.trace.locate(error.rank, error.action) {
            Ok(location) => location.to_string(),
            // The text may have gone since it was read; the error itself still names rank and action.
            Err(_) => program.spec.trace.to_string(),
        };
        let advice = match error.kind {
            ReplayErrorKind::Truncated { .. } => any_source_advice(program),
            ReplayErrorKind::TimeOverflow { .. } => self.off_for_good_advice(),
            _ => None,
        };
        RunError::Replay { place, error, advice }
    }

    /// Returns which resources are off from some instant on for good, so that what needs them never ends.
    fn off_for_good_advice(&self) -> Option<String> {
        let describe = |(resource, at): (Resource, SimTime)| {
            format!("the {} is 0 from {at} s on", resource.describe(&self.platform))
        };
        let off: Vec<String> = self.platform.changes().off_for_good().map(describe).collect();
        (!off.is_empty())
            .then(|| format!("{}: what needs it never ends, unless it changes again", off.join(", ")))
    }

    /// Returns the deadlock of the first program that has one.
    /// `locks` are the ranks that wait for locks of the memory of a logical process, each with a holder.
    pub(super) fn deadlock(
        &self,
        stalled: &[LpId],
        waits: Vec<(LpId, WaitReason)>,
        locks: Vec<(LpId, (Rank, Rank))>,
    ) -> RunError {
        let (program, _) = self.programs.locate(stalled[0]);
        let stalled: Vec<Rank> = program.ranks_of(stalled).collect();
        let mut reasons = vec![None; program.trace.ranks() as usize];
        for (lp, reason) in waits.into_iter().filter(|(lp, _)| program.has(*lp)) {
            let (_, rank) = self.programs.locate(lp);
            reasons[rank.index()] = Some(reason);
        }
        let locks: BTreeMap<Rank, Rank> =
            locks.into_iter().filter(|(lp, _)| program.has(*lp)).map(|(_, wait)| wait).collect();
        let holder = |rank: Rank| locks.get(&rank).copied();
        let found = Deadlock::find(&program.trace, &stalled, |rank| reasons[rank.index()], holder);
        let advice = self.off_for_good_advice().or_else(|| any_source_advice(program));
        RunError::Deadlock(Box::new(Deadlock { advice, ..found }))
    }
}

/// Returns what may help if messages and receives do not fit together and some rank receives from any source, in an order that
/// need not be that of the recorded run.
fn any_source_advice(Program { spec, trace, .. }: &Program) -> Option<String> {
    if trace.grows() {
        return None;
    }
    let is_recorded = |rank| trace.with_rank(rank, RankTrace::any_sources_are_recorded).ok().flatten();
    let reenacts = spec.mpi.outcomes == Outcomes::Reenact;
    let ranks = (0..trace.ranks()).map(Rank::new);
    let mut receivers = ranks.filter_map(|rank| Some((rank, is_recorded(rank)?)));
    let (rank, is_recorded) = receivers.find(|(_, is_recorded)| reenacts || !is_recorded)?;
    let remedy = match (reenacts, is_recorded) {
        (true, true) => "; mpi.outcomes = \"recorded\" takes the messages of the recorded run",
        (true, false) => {
            "; mpi.outcomes = \"recorded\" takes the messages of the recorded run, for which the trace needs their sources \
                 (source=), as trace acquire records them"
        }
        (false, _) => {
            ", although mpi.outcomes = \"recorded\": the trace lacks their recorded sources (source=), as trace acquire records them"
        }
    };
    Some(format!(
        "rank {rank} receives from any source (MPI_ANY_SOURCE), and takes messages in the order of simulated time, which a program that \
             depends on their senders need not fit{remedy}"
    ))
}
