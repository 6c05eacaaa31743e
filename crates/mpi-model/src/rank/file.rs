//! Calls on files: MPI-IO as SMPI does it (`smpi_file.cpp`).
//!
//! `MPI_File_open` is an allgather and two broadcasts of 8 bytes, `MPI_File_close` three barriers and `MPI_File_sync` one. An access
//! to a device of another host begins (a write) or ends (a read) with a transfer of its data. Where the machine has no storage, all
//! calls on files take no time.

use std::collections::BTreeMap;

use pdes_core::Bytes;
use trace_mmap::{Call, CallId, FileCall, FileDirection};

use super::pending::Pending;
use super::{Outcome, RankProcess};
use crate::collective::runner::Origin;
use crate::context::RankOutbox;
use crate::error::ReplayErrorKind;
use crate::machine::{DeviceAccess, FilePlace, Machine, Work};
use crate::observer::Analysis;
use crate::statistics::ActionKind;

/// Individual pointers of the files that a rank has opened or used \[B\].
pub(super) type FilePointers = BTreeMap<Box<str>, u64>;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Begins a call on a file.
    pub(super) fn file_call(&mut self, id: CallId, outbox: &mut RankOutbox<M>) -> Outcome<M::Error> {
        let context = &self.context;
        let call = context.trace.call(id);
        let kind = ActionKind::of_call(call, context.trace);
        let Call::File { file, call, .. } = call else { unreachable!("the call is one on a file") };
        let found = context.replay.machine.find_file(context.me, file.as_str());
        let place = found.map_err(|source| context.fail(ReplayErrorKind::NoStorage { source }))?;
        if place.is_none() {
            return Ok(self.end(kind));
        }
        let pointer = match self.files.get_mut(file.as_str()) {
            Some(pointer) => pointer,
            None => self.files.entry(file.as_str().into()).or_default(),
        };
        match *call {
            FileCall::Open { .. } => {
                *pointer = 0;
                self.start_operation(Origin::Call(id), outbox)
            }
            FileCall::Close | FileCall::Sync => self.start_operation(Origin::Call(id), outbox),
            FileCall::Seek { offset } => {
                *pointer = offset;
                Ok(self.end(kind))
            }
            FileCall::Access { offset: Some(offset), .. } => self.continue_access(id, offset, 0, outbox),
            FileCall::Access { offset: None, bytes, .. } => {
                let offset = *pointer;
                *pointer = pointer.saturating_add(bytes.get());
                self.continue_access(id, offset, 0, outbox)
            }
        }
    }

    /// Continues an access to a file of which some steps are done.
    pub(super) fn continue_access(
        &mut self,
        id: CallId,
        offset: u64,
        mut steps_done: u8,
        outbox: &mut RankOutbox<M>,
    ) -> Outcome<M::Error> {
        let context = &mut self.context;
        let call = context.trace.call(id);
        let kind = ActionKind::of_call(call, context.trace);
        let Call::File { file, call: FileCall::Access { direction, bytes, .. }, .. } = call else {
            unreachable!("the call is an access to a file")
        };
        let machine = context.replay.machine;
        let found = machine.find_file(context.me, file.as_str());
        let Ok(Some(place)) = found else { unreachable!("the file was found when the access began") };
        let access = DeviceAccess::new(place.device, file.as_str(), *direction, offset, *bytes);
        while let Some(work) = place.step(&access, steps_done).filter(|_| *bytes > Bytes::ZERO) {
            steps_done += 1;
            if context.submit_work(work, None, outbox) {
                return Ok(self.keep_pending(Pending::Access { call: id, offset, steps_done, done: false }));
            }
            let duration = match work {
                Work::Transfer { route, bytes } => machine.transfer(route, bytes),
                _ => machine.access_time(&access),
            };
            context.advance(duration, "an access to a file", || bytes.to_string())?;
        }
        Ok(self.end(kind))
    }
}

impl<Route: Copy> FilePlace<Route> {
    /// Returns a step of an access, from 0.
    fn step(&self, access: &DeviceAccess, number: u8) -> Option<Work<Route>> {
        let transfer = |route| Work::Transfer { route, bytes: Bytes::new(access.bytes) };
        let steps = match (access.direction, self.remote) {
            (_, None) => [Some(Work::Access(*access)), None],
            (FileDirection::Write, Some((to, _))) => [Some(transfer(to)), Some(Work::Access(*access))],
            (FileDirection::Read, Some((_, from))) => [Some(Work::Access(*access)), Some(transfer(from))],
        };
        steps.get(usize::from(number)).copied().flatten()
    }
}
