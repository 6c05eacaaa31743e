//! Resolution of calls on windows.

use std::collections::BTreeMap;

use pdes_core::Bytes;

use crate::action::Action;
use crate::builder::{RankBuilder, ResolveError};
use crate::call::{Call, CallError, WindowCall, WindowSync};
use crate::communicator::{CommId, CommIdx};
use crate::structure::RequestName;
use crate::window::Window;

/// The windows of a rank.
pub(crate) type Windows = BTreeMap<CommIdx, Window>;

impl RankBuilder<'_> {
    pub(crate) fn window_call(
        &mut self,
        id: &CommId,
        group: &[(u32, Bytes)],
        request: &Option<RequestName>,
        &call: &WindowCall,
    ) -> Result<Action, ResolveError> {
        let communicator = self.communicators.find(*id)?;
        let mut window = self.windows.remove(&communicator).ok_or(CallError::NotWindow { id: *id })?;
        let slot = self.post_collective(*request)?;
        let rank = self.communicators.get(communicator).rank;
        let needs_slot = window.needs_slot(rank, call, slot.is_some());
        let access = if needs_slot { Some(self.requests.allocate_slot()?) } else { None };
        let resolved = window.follow((communicator, rank), call, group.into(), (slot, access));
        let resolved = resolved.map_err(|begin| CallError::NoEpoch { id: *id, begin })?;
        if let Call::Window { completed, .. } = &resolved {
            completed.iter().for_each(|&slot| self.requests.release_slot(slot));
        }
        if matches!(call, WindowCall::Sync { kind: WindowSync::Free, .. }) {
            self.communicators.free(*id)?;
        } else {
            self.windows.insert(communicator, window);
        }
        Ok(self.intern(resolved))
    }

    /// Takes note of a new window.
    pub(super) fn add_window(&mut self, communicator: CommIdx) {
        self.windows.insert(communicator, Window::default());
    }

    /// Returns whether a communicator stands for a window.
    pub(super) fn is_window(&self, communicator: CommIdx) -> bool {
        self.windows.contains_key(&communicator)
    }
}
