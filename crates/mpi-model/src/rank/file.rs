//! Calls on files: MPI-IO as SMPI does it (`smpi_file.cpp`).
//!
//! `MPI_File_open` is an allgather and two broadcasts of 8 bytes, `MPI_File_close` three barriers and `MPI_File_sync` one. An access
//! to a device of another host begins (a write) or ends (a read) with a transfer of its data. Where the machine has no storage, all
//! calls on files take no time.

use std::collections::BTreeMap;

use pdes_core::{Bytes, Rank};
use serde::{Deserialize, Serialize};
use trace_mmap::{Action, Call, CallId, CommId, FileCall, FileDirection, RankTrace, Trace};

use super::pending::Pending;
use super::{Outcome, RankProcess};
use crate::collective::file_access::{FileParts, Part};
use crate::collective::runner::Origin;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::{DeviceAccess, FilePlace, Machine, Work};
use crate::observer::Analysis;
use crate::point_to_point::OperationIndex;
use crate::statistics::ActionKind;

/// The files of a rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Files {
    /// Individual pointers \[B\].
    pointers: BTreeMap<Box<str>, u64>,
    /// Number of collective accesses on each communicator.
    collective_accesses: BTreeMap<CommId, u32>,
}

impl Files {
    /// Follows a call; returns the part of the file that it accesses.
    fn follow(&mut self, file: &str, call: FileCall) -> Option<Part> {
        let pointer = match self.pointers.get_mut(file) {
            Some(pointer) => pointer,
            None => self.pointers.entry(file.into()).or_default(),
        };
        match call {
            FileCall::Open { .. } => *pointer = 0,
            FileCall::Close | FileCall::Sync => {}
            FileCall::Seek { offset } => *pointer = offset,
            FileCall::Access { offset: Some(offset), bytes, .. } => {
                return Some((offset, offset.saturating_add(bytes.get())));
            }
            FileCall::Access { offset: None, bytes, .. } => {
                let begin = *pointer;
                *pointer = begin.saturating_add(bytes.get());
                return Some((begin, *pointer));
            }
        }
        None
    }

    /// Counts a collective access on a communicator; returns its number there, from 0.
    fn next_collective_access(&mut self, communicator: CommId) -> u32 {
        let count = self.collective_accesses.entry(communicator).or_default();
        *count += 1;
        *count - 1
    }
}

/// The collective accesses to files on each communicator.
#[derive(Debug, Default)]
pub(crate) struct CollectiveAccesses(BTreeMap<CommId, Vec<FileParts>>);

impl CollectiveAccesses {
    /// Finds the collective accesses of all ranks, loaded or not. Costs the actions of all ranks with calls on files.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut found: BTreeMap<CommId, Vec<Vec<Part>>> = BTreeMap::new();
        for rank in (0..trace.ranks()).map(Rank::new) {
            // A damaged rank ends the run on the process that replays it.
            let _ = trace.with_rank(rank, |rank| add_rank(rank, &mut found));
        }
        let parts = |parts: Vec<Vec<Part>>| parts.into_iter().map(FileParts::new).collect();
        Self(found.into_iter().map(|(communicator, accesses)| (communicator, parts(accesses))).collect())
    }

    /// Returns the parts of an access on a communicator.
    pub(crate) fn get(&self, communicator: CommId, number: u32) -> Option<&FileParts> {
        self.0.get(&communicator)?.get(number as usize)
    }
}

/// Adds the parts that a rank accesses together with others.
fn add_rank(rank: &RankTrace, found: &mut BTreeMap<CommId, Vec<Vec<Part>>>) {
    if !rank.has_file_calls() {
        return;
    }
    let mut files = Files::default();
    for action in rank.cursor() {
        let Action::Call(id) = action else { continue };
        let Call::File { communicator, file, call } = rank.call(id) else { continue };
        let Some(part) = files.follow(file.as_str(), *call).filter(|_| call.is_collective()) else {
            continue;
        };
        let communicator = &rank.communicators()[communicator.index()];
        let number = files.next_collective_access(communicator.id) as usize;
        let accesses = found.entry(communicator.id).or_default();
        if accesses.len() <= number {
            accesses.resize(number + 1, vec![(0, 0); communicator.group.len() as usize]);
        }
        accesses[number][communicator.rank as usize] = part;
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Begins a call on a file.
    pub(super) fn file_call(&mut self, id: CallId, outbox: &mut RankOutbox<M>) -> Outcome<M::Error> {
        let context = &self.context;
        let call = context.trace.call(id);
        let kind = ActionKind::of_call(call, context.trace);
        let Call::File { communicator, file, call } = call else { unreachable!("the call is one on a file") };
        let found = context.replay.machine.find_file(context.me, file.as_str());
        let place = found.map_err(|source| context.fail(ReplayErrorKind::NoStorage { source }))?;
        if place.is_none() {
            return Ok(self.end(kind));
        }
        let communicator = context.communicator(*communicator);
        match self.files.follow(file.as_str(), *call) {
            Some(_) if call.is_collective() => {
                let number = self.files.next_collective_access(communicator);
                self.start_operation(Origin::FileAccess { call: id, number }, outbox)
            }
            Some((begin, _)) => self.continue_access(id, begin, 0, outbox),
            None if call.is_collective() => self.start_operation(Origin::Call(id), outbox),
            None => Ok(self.end(kind)),
        }
    }

    /// Continues an independent access to a file of which some steps are done.
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
        let Call::File { call: FileCall::Access { bytes, .. }, .. } = call else {
            unreachable!("the call is an access to a file")
        };
        let access = context.access(id, offset, bytes.get());
        while steps_done < DeviceAccess::MAX_STEPS && access.bytes > 0 {
            steps_done += 1;
            if context.start_access_step(id, &access, steps_done - 1, None, outbox)? {
                return Ok(self.keep_pending(Pending::Access { call: id, offset, steps_done, done: false }));
            }
        }
        Ok(self.end(kind))
    }
}

impl<M: Machine, A: Analysis> RankContext<'_, M, A> {
    /// Returns the place of the file of a call.
    fn file_place(&self, id: CallId) -> FilePlace<M::Route> {
        let Call::File { file, .. } = self.trace.call(id) else { unreachable!("the call is one on a file") };
        match self.replay.machine.find_file(self.me, file.as_str()) {
            Ok(Some(place)) => place,
            _ => unreachable!("the file was found when the call began"),
        }
    }

    /// Returns an access to a part of the file of a call.
    pub(crate) fn access(&self, id: CallId, offset: u64, bytes: u64) -> DeviceAccess {
        let Call::File { file, call: FileCall::Access { direction, .. }, .. } = self.trace.call(id) else {
            unreachable!("the call is an access to a file")
        };
        let device = self.file_place(id).device;
        DeviceAccess::new(device, file.as_str(), *direction, offset, Bytes::new(bytes))
    }

    /// Starts a step of an access to the file of a call, of the program or of an operation; returns whether it has to be waited for.
    pub(crate) fn start_access_step(
        &mut self,
        id: CallId,
        access: &DeviceAccess,
        number: u8,
        operation: Option<OperationIndex>,
        outbox: &mut RankOutbox<M>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some(work) = self.file_place(id).step(access, number) else { return Ok(false) };
        if self.submit_work(work, operation, outbox) {
            return Ok(true);
        }
        let machine = self.replay.machine;
        let duration = match work {
            Work::Transfer { route, bytes } => machine.transfer(route, bytes),
            _ => machine.access_time(access),
        };
        self.advance(duration, "an access to a file", || Bytes::new(access.bytes).to_string())?;
        Ok(false)
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
