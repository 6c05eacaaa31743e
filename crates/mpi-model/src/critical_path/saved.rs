//! Paths in checkpoints: the sums that several paths share are saved once.

use std::sync::Arc;

use pdes_core::SimDuration;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{CriticalPath, InlineSums, SharedSums};
use crate::statistics::ActionKind;

/// A path, with the index of its shared sums among the [saved ones](SavedSums).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SavedPath {
    inline: InlineSums,
    sums: u32,
}

/// Saves paths, and the shared sums of each once.
#[derive(Default)]
pub(crate) struct PathSaver {
    sums: Vec<SharedSums>,
    /// Index of the sums that are saved, by their address.
    index_of: FxHashMap<*const SharedSums, u32>,
}

impl PathSaver {
    /// Saves a path.
    pub(crate) fn save(&mut self, path: &CriticalPath) -> SavedPath {
        let Self { sums, index_of } = self;
        let index = index_of.entry(Arc::as_ptr(&path.shared)).or_insert_with(|| {
            sums.push(SharedSums::clone(&path.shared));
            sums.len() as u32 - 1
        });
        SavedPath { inline: path.inline, sums: *index }
    }

    /// Returns the shared sums of all saved paths.
    pub(crate) fn into_sums(self) -> Vec<SharedSums> {
        self.sums
    }
}

/// Restores saved paths, which share their sums again.
pub(crate) struct PathRestorer {
    sums: Vec<Arc<SharedSums>>,
}

impl PathRestorer {
    /// Creates the restorer of paths with these shared sums.
    pub(crate) fn new(sums: Vec<SharedSums>) -> Self {
        Self { sums: sums.into_iter().map(Arc::new).collect() }
    }

    /// Restores a path; `None` if it is none.
    pub(crate) fn restore(&self, saved: &SavedPath) -> Option<CriticalPath> {
        let are_kinds = saved.inline.kinds.iter().all(|&kind| usize::from(kind) < ActionKind::ALL.len());
        let path = CriticalPath::from_sums(saved.inline, self.sums.get(saved.sums as usize)?);
        (are_kinds && path.adds_up()).then_some(path)
    }
}

impl CriticalPath {
    /// Returns whether the times of kinds of actions add up to the end, and those of messages to no more.
    fn adds_up(&self) -> bool {
        let InlineSums { end, latency, bandwidth, waiting, kinds, times, .. } = self.inline;
        let wide = |time: SimDuration| u128::from(time.as_picos());
        let shared: u128 = self.shared.times.iter().copied().map(wide).sum();
        let own = |kind: ActionKind| {
            let own = kinds.iter().zip(times).filter(|&(&of, _)| of == kind as u8);
            wide(self.shared.times[kind as usize]) + own.map(|(_, time)| u128::from(time)).sum::<u128>()
        };
        let of_messages = [latency, bandwidth, waiting].map(u128::from).iter().sum::<u128>();
        let of_program = own(ActionKind::Compute) + own(ActionKind::Sleep);
        let all = shared + times.iter().copied().map(u128::from).sum::<u128>();
        all == u128::from(end.as_picos()) && of_program + of_messages <= all
    }
}
