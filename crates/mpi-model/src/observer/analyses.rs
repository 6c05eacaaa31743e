//! The analyses that come with this crate.

use super::composition::forward_events;
use super::critical_path::{CriticalPathTracker, PathStores};
use super::distributions::Sampler;
use super::recorder::EventRecorder;
use super::{Analysis, ObservedRank, Observer};
use crate::critical_path::CriticalPath;
use crate::distribution::SharedHistograms;
use crate::timeline::Recording;

/// Analyses that a replay has on request: wait states, critical paths, histograms, a timeline.
#[derive(Debug, Default)]
pub struct Analyses<'t> {
    pub(crate) has_breakdowns: bool,
    /// Critical paths in flight with messages.
    pub(crate) path_stores: Option<PathStores>,
    pub(crate) histograms: Option<SharedHistograms>,
    pub(crate) recording: Option<Recording<'t>>,
}

/// Observers of a rank for [`Analyses`].
pub struct RankAnalyses<'a> {
    critical_path: Option<Box<CriticalPathTracker<'a>>>,
    sampler: Option<Box<Sampler<'a>>>,
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
            recorder: self.recording.map(|recording| Box::new(EventRecorder::new(recording, rank.rank))),
        }
    }

    fn needs_wait_states(&self) -> bool {
        self.has_breakdowns
    }
}

/// Nothing is saved: recorded events are not part of a checkpoint, and the other analyses need the whole replay.
impl Observer for RankAnalyses<'_> {
    type Saved = ();

    fn save(&self) {}

    fn restore(&mut self, (): ()) {}

    forward_events!(all self => [
        self.critical_path.as_deref_mut(), self.sampler.as_deref_mut(), self.recorder.as_deref_mut()
    ]);
}
