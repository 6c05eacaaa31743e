//! One-sided communication: the calls on windows, whose records tell window, target and size.

use std::collections::BTreeSet;

use ::otf2::reader::Event;
use pdes_core::{Bytes, Rank};
use trace_mmap::{
    CallOp, CommId, CommunicatorCall, Op, TraceError, WindowAccess, WindowCall, WindowFetch, WindowSync,
};

use super::program::RankProgram;
use crate::timed::{Given, Resolved};

/// A window that the rank has, and its epochs.
pub(super) struct OpenWindow {
    communicator: Resolved,
    is_started: bool,
    is_posted: bool,
    /// Locked ranks; `None` for all.
    locks: BTreeSet<Option<u32>>,
}

/// Arguments of a call in its first record about a window.
#[derive(Clone, Copy)]
struct Told {
    window: u32,
    target: Option<u32>,
    bytes: u64,
    group: Option<u32>,
    is_exclusive: bool,
}

impl Told {
    fn of(event: &Event) -> Option<Self> {
        let nothing = Self { window: 0, target: None, bytes: 0, group: None, is_exclusive: false };
        Some(match *event {
            Event::Access { window, target, bytes } => {
                Self { window, target: Some(target), bytes, ..nothing }
            }
            Event::Window { window } => Self { window, ..nothing },
            Event::WindowGroup { window, group } => Self { window, group: Some(group), ..nothing },
            Event::WindowLock { window, target, is_exclusive } => {
                Self { window, target: Some(target), is_exclusive, ..nothing }
            }
            _ => return None,
        })
    }
}

impl RankProgram<'_, '_, '_> {
    /// Adds a call on a window; returns false if its records do not tell which, or not enough of it.
    pub(super) fn window_call(&mut self, name: &str, events: &[Event]) -> Result<bool, TraceError> {
        let Some(told) = events.iter().find_map(Told::of) else { return Ok(false) };
        let name = name.to_ascii_lowercase();
        let name = name.trim_start_matches("mpi_");
        if ["win_create", "win_allocate", "win_allocate_shared", "win_create_dynamic"].contains(&name) {
            return self.create_window(told.window);
        }
        let group = self.group(told);
        let Some(window) = self.windows.get_mut(&told.window) else { return Ok(false) };
        let Some(call) = window.call(name, told) else { return Ok(false) };
        let group = match call {
            WindowCall::Sync { kind, .. } if kind.has_group() => match group {
                Some(group) => group,
                None => return Ok(false),
            },
            _ => Vec::new(),
        };
        window.follow(call);
        let communicator = window.communicator.0;
        if matches!(call, WindowCall::Sync { kind: WindowSync::Free, .. }) {
            self.windows.remove(&told.window);
        }
        self.calls.push(Op::Call(CallOp::Window { communicator, group, request: None, call }));
        Ok(true)
    }

    /// Adds the creation of a window, on the communicator of its definition.
    fn create_window(&mut self, window: u32) -> Result<bool, TraceError> {
        let definitions = &self.archive.definitions;
        let Some(&parent) = definitions.windows.get(&window) else { return Ok(false) };
        let given = self.archive.communicators.given(parent.into());
        if !matches!(given, Some(Given::World | Given::Group(_))) {
            return Ok(false);
        }
        let (parent, group) = self.calls.communicator(parent.into())?;
        // Behind all communicators, and those of single ranks.
        let number = definitions.communicators.len() as u32 + 1 + self.archive.communicators.ranks();
        let communicator = (CommId::new(number.saturating_add(window)), group);
        let new = Some(communicator.clone());
        self.calls.push(Op::Call(CallOp::NewCommunicator { kind: CommunicatorCall::Window, parent, new }));
        let locks = BTreeSet::new();
        self.windows.insert(window, OpenWindow { communicator, is_started: false, is_posted: false, locks });
        Ok(true)
    }

    /// Returns the ranks of the window in the group of a record.
    fn group(&self, told: Told) -> Option<Vec<(u32, Bytes)>> {
        let (_, of_window) = &self.windows.get(&told.window)?.communicator;
        let group = self.archive.definitions.groups.get(&told.group?)?;
        let position = |member: &u64| of_window.position(Rank::new(u32::try_from(*member).ok()?));
        group.members.iter().map(|member| Some((position(member)?, Bytes::ZERO))).collect()
    }
}

impl OpenWindow {
    /// Returns a call by its name; `None` for one that is not modelled, or whose begin is not recorded.
    fn call(&self, name: &str, told: Told) -> Option<WindowCall> {
        let sync = |kind: WindowSync| {
            let target = if kind.has_target() { Some(told.target?) } else { None };
            Some(WindowCall::Sync { kind, target })
        };
        let target = told.target.filter(|target| *target < self.communicator.1.len());
        let (bytes, writes) = (Bytes::new(told.bytes), true);
        let access = |kind| Some(WindowCall::Access { kind, target: target?, bytes });
        let fetch = |kind| Some(WindowCall::Fetch { kind, target: target?, bytes, writes });
        match name {
            "put" => access(WindowAccess::Put),
            "get" => access(WindowAccess::Get),
            "accumulate" => access(WindowAccess::Accumulate),
            "get_accumulate" => fetch(WindowFetch::GetAccumulate),
            "fetch_and_op" => fetch(WindowFetch::FetchAndOp),
            "compare_and_swap" => fetch(WindowFetch::CompareAndSwap),
            "win_fence" => sync(WindowSync::Fence),
            "win_free" => sync(WindowSync::Free),
            "win_post" => sync(WindowSync::Post),
            "win_start" => sync(WindowSync::Start),
            "win_complete" if self.is_started => sync(WindowSync::Complete),
            "win_wait" if self.is_posted => sync(WindowSync::Wait),
            "win_lock" if told.is_exclusive => sync(WindowSync::LockExclusive),
            "win_lock" => sync(WindowSync::Lock),
            "win_unlock" if self.locks.contains(&told.target) => sync(WindowSync::Unlock),
            "win_lock_all" => sync(WindowSync::LockAll),
            "win_unlock_all" if self.locks.contains(&None) => sync(WindowSync::UnlockAll),
            "win_flush" => sync(WindowSync::Flush),
            "win_flush_local" => sync(WindowSync::FlushLocal),
            "win_flush_all" => sync(WindowSync::FlushAll),
            "win_flush_local_all" => sync(WindowSync::FlushLocalAll),
            _ => None,
        }
    }

    /// Notes which epochs a call begins and ends.
    fn follow(&mut self, call: WindowCall) {
        let WindowCall::Sync { kind, target } = call else { return };
        match kind {
            WindowSync::Start | WindowSync::Complete => self.is_started = kind == WindowSync::Start,
            WindowSync::Post | WindowSync::Wait => self.is_posted = kind == WindowSync::Post,
            WindowSync::Lock | WindowSync::LockExclusive | WindowSync::LockAll => {
                self.locks.insert(target);
            }
            WindowSync::Unlock | WindowSync::UnlockAll => {
                self.locks.remove(&target);
            }
            _ => {}
        }
    }
}
