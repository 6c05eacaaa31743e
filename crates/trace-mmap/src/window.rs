//! A window between two calls on it: which accesses a synchronisation ends follows from the calls before it.

use std::collections::BTreeSet;

use pdes_core::Bytes;

use crate::call::{Call, WindowAccess, WindowCall, WindowFetch, WindowSync};
use crate::channel::Slot;
use crate::communicator::CommIdx;

/// Ranks of a window, with sizes.
type Targets = Vec<(u32, Bytes)>;

/// A window of a rank between two calls on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Puts since the last fence, or the begin of the epoch, to ranks that are not locked.
    puts: Targets,
    /// Accesses to be completed, in the order of the program.
    pending: Vec<PendingAccess>,
    /// Locked ranks; `None` for all.
    locks: BTreeSet<Option<u32>>,
    /// Group whose memory is accessed until [`WindowSync::Complete`].
    started: Option<Targets>,
    /// Group to which the memory is exposed until [`WindowSync::Wait`].
    posted: Option<Targets>,
}

/// An access that a later call completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingAccess {
    target: u32,
    is_get: bool,
    slot: Slot,
}

impl Window {
    /// Returns whether a call is an access that a later one completes by a request which the program does not have. `rank` is that of the
    /// caller in the window, `has_request` whether the call has a request.
    pub fn needs_slot(&self, rank: u32, call: WindowCall, has_request: bool) -> bool {
        match call {
            // A copy in memory.
            _ if call.target() == Some(rank) => false,
            WindowCall::Access { kind: WindowAccess::Put, target, .. } => self.is_locked(target),
            WindowCall::Access { kind: WindowAccess::Get, .. } => !has_request,
            // The put of a comparison is not waited for; other accesses are complete when the call returns.
            WindowCall::Fetch { kind: WindowFetch::CompareAndSwap, target, writes, .. } => {
                writes && self.is_locked(target)
            }
            _ => false,
        }
    }

    /// Returns a call on the window with what follows from those before it. `on` is the communicator of the window, with the rank of the
    /// caller; `group` that of a begin of an epoch; `slot` has the request of the program, and `access` the one that the call
    /// [needs](Self::needs_slot).
    ///
    /// # Errors
    /// Returns the name of the call that should have begun the epoch which this one ends.
    pub fn follow(
        &mut self,
        (communicator, rank): (CommIdx, u32),
        call: WindowCall,
        group: Box<[(u32, Bytes)]>,
        (slot, access): (Option<Slot>, Option<Slot>),
    ) -> Result<Call, &'static str> {
        if let Some(slot) = access
            && let Some(target) = call.target()
        {
            let is_get = matches!(call, WindowCall::Access { kind: WindowAccess::Get, .. });
            self.pending.push(PendingAccess { target, is_get, slot });
        }
        let (mut group, mut puts, mut completed) = (group, Targets::new(), Vec::new());
        match call {
            WindowCall::Access { kind: WindowAccess::Put, target, bytes }
            | WindowCall::Fetch { kind: WindowFetch::CompareAndSwap, target, bytes, writes: true } => {
                if target != rank && !self.is_locked(target) {
                    self.puts.push((target, bytes));
                }
            }
            WindowCall::Access { .. } | WindowCall::Fetch { .. } => {}
            WindowCall::Sync { kind, target } => {
                let is_concerned =
                    |access: &PendingAccess| target.is_none_or(|target| access.target == target);
                match kind {
                    WindowSync::Fence | WindowSync::Free => {
                        puts = std::mem::take(&mut self.puts);
                        completed = self.take(|_| true);
                    }
                    WindowSync::Post => self.posted = Some(group.to_vec()),
                    WindowSync::Start => self.started = Some(group.to_vec()),
                    WindowSync::Complete => {
                        let started = self.started.take().ok_or("win_start")?;
                        let in_group = |target: u32| started.iter().any(|(rank, _)| *rank == target);
                        puts = self.puts.extract_if(.., |(target, _)| in_group(*target)).collect();
                        completed = self.take(|access| access.is_get);
                        group = started.into();
                    }
                    WindowSync::Wait => group = self.posted.take().ok_or("win_post")?.into(),
                    WindowSync::Lock | WindowSync::LockExclusive | WindowSync::LockAll => {
                        self.locks.insert(target);
                    }
                    WindowSync::Unlock | WindowSync::UnlockAll => {
                        if !self.locks.remove(&target) {
                            return Err(if target.is_some() { "win_lock" } else { "win_lock_all" });
                        }
                        completed = self.take(is_concerned);
                    }
                    WindowSync::Flush | WindowSync::FlushAll => completed = self.take(is_concerned),
                    WindowSync::FlushLocal | WindowSync::FlushLocalAll => {
                        completed = self.take(|access| access.is_get && is_concerned(access));
                    }
                }
            }
        }
        let (completed, puts) = (completed.into(), puts.into());
        Ok(Call::Window { communicator, group, slot, call, access, completed, puts })
    }

    fn is_locked(&self, target: u32) -> bool {
        self.locks.contains(&None) || self.locks.contains(&Some(target))
    }

    /// Takes those accesses that are selected.
    fn take(&mut self, is_completed: impl Fn(&PendingAccess) -> bool) -> Vec<Slot> {
        self.pending.extract_if(.., |access| is_completed(access)).map(|access| access.slot).collect()
    }
}
