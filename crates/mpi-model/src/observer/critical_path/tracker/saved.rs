//! State of a critical-path tracker in checkpoints.

use serde::{Deserialize, Serialize};

use super::{Cause, CriticalPathTracker, DataFlow, PostedRequest};
use crate::critical_path::{CriticalPath, PathRestorer, PathSaver, SavedPath, SharedSums};
use crate::observer::critical_path::store::PathKey;
use crate::observer::request_table::RequestTable;
use crate::point_to_point::RequestId;

/// Critical paths of a rank between two turns, with those in flight to it. Caches of transfer times are left out.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::observer) struct SavedPaths {
    sums: Vec<SharedSums>,
    path: SavedPath,
    of_operations: Vec<Option<SavedPath>>,
    causes: RequestTable<Cause<SavedPath>>,
    last: Option<PostedRequest>,
    posted: Vec<RequestId>,
    /// Paths in flight to each port with a channel, in their order.
    to_ports: Vec<Vec<SavedPath>>,
    /// Other paths in flight.
    others: Vec<(PathKey, SavedPath)>,
}

impl<P> Cause<P> {
    /// Returns the cause with a function of its path; `None` where that is `None`.
    fn try_map<Q>(&self, map: impl FnOnce(&P) -> Option<Q>) -> Option<Cause<Q>> {
        let path = match &self.path {
            Some(path) => Some(map(path)?),
            None => None,
        };
        Some(Cause { path, flow: self.flow })
    }
}

impl CriticalPathTracker<'_> {
    pub(in crate::observer::critical_path) fn saved(&self) -> SavedPaths {
        let mut saver = PathSaver::default();
        let mut save = |path: &CriticalPath| saver.save(path);
        let path = save(&self.path);
        let of_operations = self.of_operations.iter().map(|path| path.as_ref().map(&mut save)).collect();
        let causes = self.table.try_map(|cause| cause.try_map(|path| Some(save(path))));
        let to_ports = self.channels.receivers().map(|receiver| match receiver {
            Some(receiver) => receiver.paths().iter().map(&mut save).collect(),
            None => Vec::new(),
        });
        let to_ports = to_ports.collect();
        let others = self.store.others(&mut save);
        SavedPaths {
            path,
            of_operations,
            causes: causes.expect("all paths can be saved"),
            last: self.last,
            posted: self.posted.clone(),
            to_ports,
            others,
            sums: saver.into_sums(),
        }
    }

    /// Continues from a state; `None` if it is not one of this rank.
    pub(in crate::observer::critical_path) fn continue_from(&mut self, saved: SavedPaths) -> Option<()> {
        let SavedPaths { sums, path, of_operations, causes, last, posted, to_ports, others } = saved;
        let restorer = PathRestorer::new(sums);
        let restore = |path: &SavedPath| restorer.restore(path);
        let fits = self.table.has_slots_of(&causes)
            && to_ports.len() == self.channels.receivers().len()
            && posted
                .iter()
                .copied()
                .chain(last.map(|last| last.request))
                .all(|posted| self.table.may_have(posted))
            && last.is_none_or(|last| !last.late || matches!(last.flow, Some(DataFlow::In { .. })));
        if !fits {
            return None;
        }
        self.path = restore(&path)?;
        let restore_optional = |path: &Option<SavedPath>| match path {
            Some(path) => Some(Some(restore(path)?)),
            None => Some(None),
        };
        self.of_operations = of_operations.iter().map(restore_optional).collect::<Option<_>>()?;
        self.table = causes.try_map(|cause| cause.try_map(restore))?;
        (self.last, self.posted) = (last, posted);
        for (channel, paths) in self.store.channels().iter().zip(&to_ports) {
            let paths = paths.iter().map(restore).collect::<Option<Vec<_>>>()?;
            match channel {
                Some(channel) => channel.restore(paths.iter()),
                None if paths.is_empty() => {}
                None => return None,
            }
        }
        others.iter().try_for_each(|(key, path)| self.store.insert_new(*key, &restore(path)?))
    }
}
