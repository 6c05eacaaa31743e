//! Measured times of a trace, and the corresponding times of a replay.

use std::collections::BTreeMap;

use mpi_model::{ActionKind, Region, region_name};
use pdes_core::{Rank, SimDuration};
use replay::Outcome;
use trace_mmap::{Action, Call, LocationId, RankTrace, Trace};

use super::ValidationError;

/// Times summed over all ranks \[ps\], by kind of action and by call site, with 128 bits: those of a million ranks overflow 64.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) by_kind: BTreeMap<Class, Sum>,
    pub(super) by_site: BTreeMap<Option<String>, Sum>,
    /// Time of each rank.
    pub(super) by_rank: Vec<u64>,
}

/// Class of actions that are compared together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Actions of one kind.
    Kind(ActionKind),
    /// Calls that no replay models.
    Unmodelled,
}

impl Class {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.name(),
            Self::Unmodelled => "unmodelled",
        }
    }

    fn of(action: Action, trace: &RankTrace) -> Self {
        match action {
            Action::Call(id) if matches!(trace.call(id), Call::Unmodelled(_)) => Self::Unmodelled,
            action => Self::of_kind(ActionKind::of(action, trace)),
        }
    }

    /// Returns the class of a kind. Sleeps count as computations, because they replace computations that take their measured time.
    fn of_kind(kind: ActionKind) -> Self {
        Self::Kind(if kind == ActionKind::Sleep { ActionKind::Compute } else { kind })
    }
}

/// Number of actions and their total time \[ps\].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) picos: u128,
}

impl Sum {
    fn add(&mut self, count: u64, picos: u64) {
        self.count += count;
        self.picos += u128::from(picos);
    }
}

/// Iterates over the actions of a rank that have a time, each with its call site, if there is one before it, and its time.
pub(super) fn timed_actions(
    trace: &RankTrace,
) -> impl Iterator<Item = (Option<LocationId>, Action, SimDuration)> + '_ {
    let mut site = None;
    trace.measured().into_iter().flatten().filter_map(move |(action, time)| {
        if let Action::Location(id) = action {
            site = Some(id);
        }
        Some((site, action, time?))
    })
}

/// Returns the measured times of the actions of a trace.
pub(super) fn measured_times(trace: &Trace) -> Result<Times, ValidationError> {
    let mut times = Times::default();
    for rank in (0..trace.ranks()).map(Rank::new) {
        times.add_measured(trace.rank(rank));
    }
    trace.integrity().map_err(trace_mmap::TraceError::from)?;
    match times.by_kind.is_empty() {
        true => Err(ValidationError::NoTimes),
        false => Ok(times),
    }
}

/// Returns the times of a replay.
pub(super) fn replayed_times(trace: &Trace, outcome: &Outcome) -> Times {
    let mut times = Times::default();
    for ((rank, statistics), end) in
        (0..).map(Rank::new).zip(&outcome.program().statistics).zip(&outcome.program().ends)
    {
        let trace = trace.rank(rank);
        let regions = statistics.breakdown().into_iter().flat_map(|breakdown| breakdown.regions());
        regions.for_each(|region| times.add_region(trace, region));
        times.by_rank.push(end.as_picos());
    }
    times
}

impl Times {
    fn add_measured(&mut self, trace: &RankTrace) {
        let mut all = SimDuration::ZERO;
        let mut by_site: BTreeMap<Option<LocationId>, Sum> = BTreeMap::new();
        for (site, action, time) in timed_actions(trace) {
            self.by_kind.entry(Class::of(action, trace)).or_default().add(1, time.as_picos());
            by_site.entry(site).or_default().add(1, time.as_picos());
            all += time;
        }
        for (site, sum) in by_site {
            let all = self
                .by_site
                .entry(site.map(|site| region_name(trace.location(site)).to_owned()))
                .or_default();
            all.count += sum.count;
            all.picos += sum.picos;
        }
        self.by_rank.push(all.as_picos());
    }

    fn add_region(&mut self, trace: &RankTrace, region: &Region) {
        let site = region.site().map(|site| region_name(trace.location(site)).to_owned());
        for (kind, share) in region.shares() {
            self.by_kind.entry(Class::of_kind(kind)).or_default().add(share.count, share.time.as_picos());
            self.by_site.entry(site.clone()).or_default().add(share.count, share.time.as_picos());
        }
    }
}
