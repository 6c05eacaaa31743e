//! Windows of one-sided communication. The ranks move the data themselves; here are the times.

use std::sync::Arc;

use pdes_core::Bytes;
use trace_mmap::{Action, Call, CommId, CommIdx, Communicator, CommunicatorCall, Slot, Window, WindowCall};

use super::{Awaited, FailedPolls, RankSource};
use crate::layout::{Completion, NONE, Operation};

/// What a number of a window has in place of that of its communicator: other bits.
const WINDOW_BITS: u32 = 0x5bd1_e995;

/// A window of a rank.
pub(super) struct OnlineWindow {
    /// Its communicator in a trace.
    communicator: CommIdx,
    calls: Window,
}

impl RankSource<'_> {
    /// Makes a window of a communicator of its own, on which the exchange of its members is that of the call.
    pub(super) fn create_window(&mut self, on: CommIdx) -> Result<Action, String> {
        self.require_one_thread("one-sided communication")?;
        let Communicator { id, rank, group } = self.trace.communicator(on);
        let (id, rank, group) = (CommId::new(id.get() ^ WINDOW_BITS), *rank, Arc::clone(group));
        let communicator = self.writer.communicator(Communicator { id, rank, group });
        self.windows.insert(on, OnlineWindow { communicator, calls: Window::default() });
        let (kind, new) = (CommunicatorCall::Window, Some(communicator));
        Ok(self.call(Call::NewCommunicator { kind, parent: on, new }))
    }

    /// Translates a call on a window.
    pub(super) fn call_window(&mut self, operation: Operation) -> Result<Action, String> {
        let Operation { flags, peer, tag, request, bytes, block, count, recv_count, .. } = operation;
        let on = self.communicator(operation)?;
        let OnlineWindow { communicator, .. } =
            *self.windows.get(&on).ok_or("it names a window that it has not made")?;
        let Communicator { rank, group, .. } = self.trace.communicator(communicator);
        let (rank, size) = (*rank, group.len());
        let member = |rank: i32| {
            let rank = u32::try_from(rank).ok().filter(|rank| *rank < size);
            rank.ok_or_else(|| format!("it accesses rank {peer} of a window, which has {size}"))
        };
        let call = u8::try_from(flags).ok().zip(Some(member(peer)?));
        let call = call.and_then(|(number, target)| {
            WindowCall::from_number(number, target, Bytes::new(bytes), tag != 0)
        });
        let call = call.ok_or_else(|| format!("it makes a call {flags} on a window, which there is not"))?;
        let ranks: Vec<i32> = if block == 0 { Vec::new() } else { self.run.memory.numbers(block, count) };
        if block != 0 {
            self.run.memory.free(block);
        }
        let group = ranks.into_iter().map(|rank| Ok((member(rank)?, Bytes::ZERO)));
        let group = group.collect::<Result<Box<[_]>, String>>()?;
        let slot = (request != NONE).then(|| self.posted(request));
        let unnamed = u32::try_from(recv_count).ok().filter(|number| *number != NONE);
        let window = &self.windows[&on].calls;
        let access = match unnamed {
            Some(number) if window.needs_slot(rank, call, slot.is_some()) => Some(self.posted(number)),
            Some(number) => {
                let completion = Completion { is_complete: 1, ..Completion::default() };
                self.run.memory.complete(self.me.get(), number, completion);
                None
            }
            None => None,
        };
        let window = &mut self.windows.get_mut(&on).expect("it was there").calls;
        let resolved = window.follow((communicator, rank), call, group, (slot, access));
        let resolved = resolved.map_err(|begin| format!("it ends an epoch of a window before {begin}"))?;
        match (call, &resolved) {
            (WindowCall::Sync { .. }, Call::Window { completed, .. }) => {
                let completed = completed.iter().map(|slot| slot.get()).collect();
                self.awaited = Awaited::Accesses { completed, since: self.clock };
            }
            _ if call.target() != Some(rank) => {
                self.failed_polls = FailedPolls::default();
                self.run.polling.progress();
            }
            _ => {}
        }
        Ok(self.call(resolved))
    }

    /// Returns the slot of a request that is not complete.
    pub(super) fn posted(&mut self, request: u32) -> Slot {
        self.receives.remove(&request);
        self.requests.insert(request);
        self.slot(request)
    }
}
