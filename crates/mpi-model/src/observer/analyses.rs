//! The analyses that come with this crate.

use std::cmp::Reverse;

use pdes_core::{Rank, StateVisitor, Total};
use serde::{Deserialize, Serialize};

use super::composition::forward_events;
use super::critical_path::{CriticalPathTracker, PathStores};
use super::distributions::Sampler;
use super::recorder::EventRecorder;
use super::traffic::TrafficCounter;
use super::{Analysis, ObservedRank, Observer};
use crate::communication_matrix::{CommunicationMatrix, SharedMatrix};
use crate::critical_path::CriticalPath;
use crate::distribution::{Distributions, SharedHistograms};
use crate::machine::Machine;
use crate::rank::RankProcess;
use crate::replay::Replay;
use crate::timeline::Recording;

/// Analyses that a replay has on request: wait states, critical paths, histograms, a communication matrix, a timeline.
#[derive(Debug, Default)]
pub struct Analyses<'t> {
    pub(crate) has_breakdowns: bool,
    pub(crate) has_wait_states: bool,
    pub(crate) has_causes: bool,
    /// Critical paths in flight with messages.
    pub(crate) path_stores: Option<PathStores>,
    pub(crate) histograms: Option<SharedHistograms>,
    pub(crate) matrix: Option<SharedMatrix>,
    pub(crate) recording: Option<Recording<'t>>,
}

/// Results of the analyses of some ranks; each is `None` if it was not requested.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// Histograms of messages and waits.
    pub distributions: Option<Distributions>,
    /// Critical path to the end of the last rank; at a tie, of the lowest.
    pub critical_path: Option<CriticalPath>,
    /// Messages between ranks.
    pub matrix: Option<CommunicationMatrix>,
}

impl Findings {
    /// Adds what was found on the ranks of another process of the operating system.
    pub fn merge(&mut self, other: Self) {
        if let Some(more) = other.distributions {
            self.distributions.get_or_insert_default().add(&more);
        }
        if let Some(more) = other.matrix {
            self.matrix.get_or_insert_default().add(&more);
        }
        self.critical_path =
            self.critical_path.take().into_iter().chain(other.critical_path).min_by_key(by_end);
    }
}

/// Critical paths are no sums, and stay out.
impl Total for Findings {
    fn repeated(&self, before: &Self, times: u64) -> Option<Self> {
        let distributions = match (&self.distributions, &before.distributions) {
            (Some(now), Some(before)) => Some(now.repeated(before, times)?),
            _ => None,
        };
        let matrix = match (&self.matrix, &before.matrix) {
            (Some(now), Some(before)) => Some(now.repeated(before, times)?),
            _ => None,
        };
        Some(Self { distributions, matrix, critical_path: None })
    }
}

/// Key of the path that ends last; at a tie, of that of the lowest rank.
fn by_end(path: &CriticalPath) -> impl Ord + use<> {
    (Reverse(path.end()), path.rank())
}

impl<'t, M: Machine> Replay<'t, M> {
    /// Requests breakdowns of the time of ranks, or not: see [`Statistics::breakdown`](crate::Statistics::breakdown).
    pub fn with_breakdowns(mut self, has_breakdowns: bool) -> Self {
        self.analysis.has_breakdowns = has_breakdowns;
        self.analysis.has_wait_states = has_breakdowns;
        self
    }

    /// Requests breakdowns without wait states, which cost more than the times of regions and kinds of actions.
    pub fn with_region_times(mut self) -> Self {
        self.analysis.has_breakdowns = true;
        self
    }

    /// Requests the causes of waits, which need [breakdowns](Replay::with_breakdowns): see
    /// [`Breakdown::delays`](crate::Breakdown::delays).
    pub fn with_causes(mut self, has_causes: bool) -> Self {
        self.analysis.has_causes = has_causes;
        self
    }

    /// Requests histograms of messages and waits, which need [breakdowns](Replay::with_breakdowns).
    pub fn with_distributions(mut self, counts: bool) -> Self {
        self.analysis.histograms = counts.then(SharedHistograms::default);
        self
    }

    /// Requests the communication matrix, with at most `groups` groups of ranks.
    ///
    /// Memory: 50 B for each pair of groups that communicate, and 24 B per request.
    pub fn with_matrix(mut self, groups: Option<u32>) -> Self {
        self.analysis.matrix = groups.map(|groups| SharedMatrix::new(self.trace.ranks(), groups));
        self
    }

    /// Requests critical paths: see [`RankProcess::critical_path`]. Takes the ranks of this process of the operating system: all,
    /// unless there are [other processes](Replay::with_other_processes).
    ///
    /// Memory: 1 kB more per rank, 110 B per request, 300 B per port, and 90 B per message that is in flight to a port at the same
    /// time as others, their number rounded up to a power of two.
    pub fn with_critical_paths(mut self, of: impl Iterator<Item = Rank>) -> Self {
        self.analysis.path_stores = Some(PathStores::new(of, self.trace));
        self
    }

    /// Records a timeline. Waits are recorded only with [breakdowns](Replay::with_breakdowns).
    ///
    /// Iterations over which a rank is [fast-forwarded](RankProcess::skip_iterations) are not recorded. Events that the consumer has are
    /// not part of the state of a rank.
    pub fn with_recording(mut self, recording: Option<Recording<'t>>) -> Self {
        self.analysis.recording = recording;
        self
    }

    /// Returns what the analyses have found so far on the ranks of these processes.
    pub fn findings<'p, 'o: 'p>(
        &self,
        processes: impl IntoIterator<Item = &'p RankProcess<'o, M>>,
    ) -> Findings
    where
        M: 'o,
    {
        let paths = processes.into_iter().filter_map(RankProcess::critical_path);
        Findings {
            distributions: self.analysis.histograms.as_ref().map(SharedHistograms::distributions),
            critical_path: paths.min_by_key(|path| by_end(path)).cloned(),
            matrix: self.analysis.matrix.as_ref().map(SharedMatrix::matrix),
        }
    }

    /// Visits what ranks share, for comparison and repetition: when the machine changes next, the prices of polls, and the sums that these
    /// processes have counted.
    pub fn visit(&self, processes: &mut [RankProcess<'_, M>], visitor: &mut StateVisitor<'_>) {
        processes.iter_mut().for_each(RankProcess::publish);
        let now = visitor.now();
        visitor.compare(&self.machine.next_change(now).map(|at| at - now));
        visitor.compare(&self.poll_prices());
        let mut findings = self.findings([]);
        visitor.total(&mut findings);
        if visitor.is_repeating() {
            self.restore_findings(findings);
        }
    }

    /// Continues with findings of ranks that are [restored](Self::restore_process).
    pub fn restore_findings(&self, findings: Findings) {
        if let (Some(histograms), Some(distributions)) = (&self.analysis.histograms, findings.distributions) {
            histograms.replace(distributions);
        }
        if let (Some(shared), Some(matrix)) = (&self.analysis.matrix, findings.matrix) {
            shared.replace(matrix);
        }
    }

    /// Returns the number of tokens that carried [critical paths](Replay::with_critical_paths) to
    /// [other processes](Replay::with_other_processes).
    pub fn path_tokens(&self) -> u64 {
        self.analysis.path_stores.as_ref().map_or(0, PathStores::fragments)
    }
}

/// Observers of a rank for [`Analyses`].
pub struct RankAnalyses<'a> {
    critical_path: Option<Box<CriticalPathTracker<'a>>>,
    sampler: Option<Box<Sampler<'a>>>,
    traffic: Option<Box<TrafficCounter<'a>>>,
    recorder: Option<Box<EventRecorder<'a>>>,
}

impl RankAnalyses<'_> {
    /// Returns the critical path to the end of the rank, where requested.
    pub(crate) fn critical_path(&self) -> Option<&CriticalPath> {
        self.critical_path.as_deref().map(CriticalPathTracker::path)
    }
}

impl<'t> Analysis for Analyses<'t> {
    type Observer<'a>
        = RankAnalyses<'a>
    where
        Self: 'a;

    fn observer<'a>(&'a self, rank: &ObservedRank<'a>) -> RankAnalyses<'a> {
        let tracker = |stores| CriticalPathTracker::new(rank, stores);
        RankAnalyses {
            critical_path: self.path_stores.as_ref().and_then(tracker).map(Box::new),
            sampler: self.histograms.as_ref().map(|histograms| Box::new(Sampler::new(rank, histograms))),
            traffic: self.matrix.as_ref().map(|matrix| Box::new(TrafficCounter::new(rank, matrix))),
            recorder: self.recording.map(|recording| Box::new(EventRecorder::new(recording, rank.rank))),
        }
    }

    fn needs_breakdowns(&self) -> bool {
        self.has_breakdowns
    }

    fn needs_wait_states(&self) -> bool {
        self.has_wait_states
    }

    fn needs_causes(&self) -> bool {
        self.has_causes
    }
}

/// Visits an observer, which is there in all states of a rank, or in none.
fn visit<O: Observer>(observer: &mut Option<Box<O>>, visitor: &mut StateVisitor<'_>) {
    visitor.context(observer.is_some());
    observer.iter_mut().for_each(|observer| observer.visit(visitor));
}

impl Observer for RankAnalyses<'_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { critical_path, sampler, traffic, recorder } = self;
        visit(critical_path, visitor);
        visit(sampler, visitor);
        visit(traffic, visitor);
        visit(recorder, visitor);
    }

    fn is_active(&self) -> bool {
        self.counts_messages() || self.critical_path.is_some() || self.recorder.is_some()
    }

    fn counts_messages(&self) -> bool {
        self.sampler.is_some() || self.traffic.is_some()
    }

    forward_events!(all self => [
        self.critical_path.as_deref_mut(), self.sampler.as_deref_mut(), self.traffic.as_deref_mut(), self.recorder.as_deref_mut()
    ]);
}
