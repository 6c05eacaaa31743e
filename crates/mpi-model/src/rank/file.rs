//! Calls on files: MPI-IO as SMPI does it (`smpi_file.cpp`).
//!
//! `MPI_File_open` is an allgather and two broadcasts of 8 bytes, `MPI_File_close` three barriers and `MPI_File_sync` one. An access
//! to a device of another host begins (a write) or ends (a read) with a transfer of its data; what a file system does is up to the
//! machine. Where the machine has no storage, all calls on files take no time.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::sync::Arc;

use pdes_core::{Bytes, Rank, StateVisitor, Total};
use rustc_hash::{FxHashSet, FxHasher};
use serde::{Deserialize, Serialize};
use trace_mmap::{
    Action, Call, CallId, CommId, Communicator, FileCall, FileHints, FileState, FileUse, FileView, RankTrace,
    Trace,
};

use super::pending::Pending;
use super::{Outcome, RankProcess};
use crate::collective::file_access::{FileParts, Part};
use crate::collective::runner::Origin;
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::{DeviceHistory, FileAccess, FileOperation, FilePlace, Machine, Work};
use crate::observer::Analysis;
use crate::point_to_point::OperationIndex;
use crate::statistics::ActionKind;

/// The files of a rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Files {
    files: BTreeMap<Box<str>, File>,
    /// Number of collective accesses on each communicator.
    collective_accesses: AccessCounts,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct AccessCounts(BTreeMap<CommId, u32>);

/// A file as a rank sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct File {
    /// State of the file: unused, open or closed.
    state: FileState,
    /// Individual pointer: amount of the data of the view \[B\].
    pointer: u64,
    /// Phase of the shared pointer.
    phase: Phase,
    calls: FileCalls,
}

/// The calls of a rank that say how it sees a file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FileCalls {
    /// The call that opened it.
    open: Option<CallId>,
    /// The call that set its view.
    view: Option<CallId>,
}

impl FileCalls {
    /// Returns the view; `None` for the whole file.
    pub(crate) fn view(self, trace: &RankTrace) -> Option<&FileView> {
        match trace.call(self.view?) {
            Call::SetView { view, .. } => Some(view),
            _ => None,
        }
    }

    /// Returns the hints with which the file was opened.
    pub(crate) fn hints(self, trace: &RankTrace) -> FileHints {
        match self.open.map(|id| trace.call(id)) {
            Some(Call::File { call: FileCall::Open { hints, .. }, .. }) => *hints,
            _ => FileHints::default(),
        }
    }
}

/// Number of the times that the shared pointer of a file was set, when the file was opened, its view was set, or it was accessed in the
/// order of ranks. In a phase ranks move the pointer in the order of time.
type Phase = u32;

/// Place of an access in its file, in the data of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A part.
    Part(Part),
    /// At the shared pointer, in one of its phases.
    Shared(Phase),
    /// At the shared pointer, in the order of ranks.
    Ordered(Phase),
}

impl File {
    /// Begins the next phase of the shared pointer; returns the last one.
    fn next_phase(&mut self) -> Phase {
        self.phase += 1;
        self.phase - 1
    }

    /// Follows a call; returns the place of its access.
    fn follow(&mut self, id: CallId, call: FileCall) -> Option<Place> {
        let begin = call.move_pointer(&mut self.pointer);
        match call {
            FileCall::Open { .. } => {
                self.next_phase();
                self.calls = FileCalls { open: Some(id), view: None };
                None
            }
            FileCall::Access { bytes, .. } => {
                begin.map(|begin| Place::Part((begin, begin.saturating_add(bytes.get()))))
            }
            FileCall::SharedAccess { is_ordered: true, .. } => Some(Place::Ordered(self.next_phase())),
            FileCall::SharedAccess { is_ordered: false, .. } => Some(Place::Shared(self.phase)),
            FileCall::Close | FileCall::Sync | FileCall::Seek { .. } => None,
        }
    }

    /// Follows the call that sets the view, which sets all pointers back.
    fn set_view(&mut self, id: CallId) {
        self.pointer = 0;
        self.next_phase();
        self.calls.view = Some(id);
    }
}

impl Files {
    fn get_mut(&mut self, file: &str) -> &mut File {
        if !self.files.contains_key(file) {
            self.files.insert(file.into(), File::default());
        }
        self.files.get_mut(file).expect("the file is there")
    }

    /// Visits the files. Numbers that only grow are not compared, and of individual pointers those that matter are.
    ///
    /// Iterations are the same for all ranks, so that collective accesses have the same parts again. A pointer matters if times depend on
    /// positions, or if a view or a collective access has it.
    pub(super) fn visit(&mut self, has_positions: bool, visitor: &mut StateVisitor<'_>) {
        let Self { files, collective_accesses } = self;
        visitor.total(collective_accesses);
        visitor.saved(files);
        let has_positions = has_positions || !collective_accesses.0.is_empty();
        for (name, File { state, pointer, phase: _, calls }) in files {
            let matters = has_positions || calls.view.is_some();
            visitor.compare(&(name, state, calls, matters.then_some(pointer)));
        }
    }

    /// Counts a collective access on a communicator; returns its number there, from 0.
    fn next_collective_access(&mut self, communicator: CommId) -> u32 {
        let count = self.collective_accesses.0.entry(communicator).or_default();
        *count += 1;
        *count - 1
    }
}

/// Counts wrap around.
impl Total for AccessCounts {
    fn repeated(&self, Self(before): &Self, times: u64) -> Option<Self> {
        let repeated = self.0.iter().map(|(&communicator, &count)| {
            let counted = count.wrapping_sub(before.get(&communicator).copied().unwrap_or(0));
            (communicator, count.wrapping_add(counted.wrapping_mul(times as u32)))
        });
        Some(Self(repeated.collect()))
    }
}

/// A phase of the shared pointer of a file of a communicator.
type SharedPhase = (CommId, Box<str>, Phase);

/// Two ranks with their files, by communicator and number of a collective access.
type DifferentFiles = BTreeMap<(CommId, u32), [(Rank, Arc<str>); 2]>;

/// Accesses to files that ranks do together: the parts of collective accesses on each communicator, and the begins of phases of
/// shared pointers.
#[derive(Debug, Default)]
pub(crate) struct CollectiveAccesses {
    parts: BTreeMap<CommId, Vec<FileParts>>,
    /// Those accesses in which not all ranks access the same file.
    different_files: DifferentFiles,
    /// First position of phases that begin after an access in the order of ranks \[B\].
    phase_begins: BTreeMap<SharedPhase, u64>,
}

/// A collective access, of which the parts of some ranks are known; before positions follow from the shared pointer, parts have
/// the right sizes only.
#[derive(Clone, Debug)]
struct FoundAccess {
    parts: Vec<Part>,
    /// The lowest rank that takes part, and its file.
    first: (Rank, Arc<str>),
    /// Views of those members that have set one.
    views: BTreeMap<u32, Arc<FileView>>,
    hints: FileHints,
    /// File and phase of an access in the order of ranks.
    ordered: Option<(Box<str>, Phase)>,
}

#[derive(Debug, Default)]
struct FoundAccesses {
    accesses: BTreeMap<CommId, Vec<FoundAccess>>,
    /// Amounts that ranks access in a phase of a shared pointer \[B\].
    shared: BTreeMap<SharedPhase, u64>,
    /// The views of all ranks, each once.
    views: FxHashSet<Arc<FileView>>,
    /// The names of all files of collective accesses, each once.
    names: FxHashSet<Arc<str>>,
    different_files: DifferentFiles,
}

impl CollectiveAccesses {
    /// Finds the collective accesses of all ranks, loaded or not. Costs the actions of all ranks with calls on files.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut found = FoundAccesses::default();
        for rank in (0..trace.ranks()).map(Rank::new) {
            // A damaged rank ends the run on the process that replays it.
            let _ = trace.with_rank(rank, |of_rank| found.add_rank(rank, of_rank));
        }
        let (mut parts, mut phase_begins) = (BTreeMap::new(), BTreeMap::new());
        for (communicator, accesses) in found.accesses {
            let placed = accesses.into_iter().map(|FoundAccess { parts, views, hints, ordered, .. }| {
                let Some((file, phase)) = ordered else { return FileParts::new(parts, &views, hints) };
                let mut key = (communicator, file, phase);
                let begin: u64 = phase_begins.get(&key).copied().unwrap_or(0);
                let begin = begin.saturating_add(found.shared.get(&key).copied().unwrap_or(0));
                let (parts, end) = in_rank_order(begin, &parts);
                key.2 += 1;
                phase_begins.insert(key, end);
                FileParts::new(parts, &views, hints)
            });
            let placed: Vec<FileParts> = placed.collect();
            parts.insert(communicator, placed);
        }
        Self { parts, different_files: found.different_files, phase_begins }
    }

    /// Returns the parts of an access on a communicator.
    pub(crate) fn get(&self, communicator: CommId, number: u32) -> Option<&FileParts> {
        self.parts.get(&communicator)?.get(number as usize)
    }

    /// Returns another rank, with its file, that takes part in an access on a communicator with another file than this one.
    fn other_file(&self, communicator: CommId, number: u32, file: &str) -> Option<&(Rank, Arc<str>)> {
        self.different_files.get(&(communicator, number))?.iter().find(|(_, other)| **other != *file)
    }

    /// Returns the first position of a phase of a shared pointer \[B\].
    fn phase_begin(&self, communicator: CommId, file: &str, phase: Phase) -> u64 {
        self.phase_begins.get(&(communicator, file.into(), phase)).copied().unwrap_or(0)
    }
}

/// Returns parts of these sizes, and the end of the last one. As in SMPI, the part of rank 0 is at the pointer, and that of another one
/// behind it by the sizes of all up to its own: parts of unequal sizes leave holes, or overlap.
fn in_rank_order(pointer: u64, parts: &[Part]) -> (Vec<Part>, u64) {
    let mut begin = pointer;
    let placed = (0..).zip(parts).map(|(rank, (from, to))| {
        begin = begin.saturating_add(if rank == 0 { 0 } else { to - from });
        (begin, begin.saturating_add(to - from))
    });
    let placed: Vec<Part> = placed.collect();
    let end = placed.last().map_or(pointer, |part| part.1);
    (placed, end)
}

impl FoundAccesses {
    /// Adds what a rank accesses together with others.
    fn add_rank(&mut self, me: Rank, rank: &RankTrace) {
        if !rank.has_file_calls() {
            return;
        }
        let mut files = Files::default();
        for action in rank.cursor() {
            let Action::Call(id) = action else { continue };
            match rank.call(id) {
                Call::SetView { file, .. } => files.get_mut(file.as_str()).set_view(id),
                Call::File { communicator, file, call, .. } => {
                    let communicator = rank.communicator(*communicator);
                    self.add_call((me, rank), communicator, (file.as_str(), id, *call), &mut files);
                }
                _ => {}
            }
        }
    }

    fn add_call(
        &mut self,
        (me, rank): (Rank, &RankTrace),
        communicator: &Communicator,
        (name, id, call): (&str, CallId, FileCall),
        files: &mut Files,
    ) {
        let bytes = call.access().map_or(0, |(_, bytes)| bytes.get());
        let file = files.get_mut(name);
        let (part, ordered) = match file.follow(id, call) {
            Some(Place::Part(part)) if call.is_collective() => (part, None),
            Some(Place::Ordered(phase)) => ((0, bytes), Some((name.into(), phase))),
            Some(Place::Shared(phase)) => {
                let amount = self.shared.entry((communicator.id, name.into(), phase)).or_default();
                *amount = amount.saturating_add(bytes);
                return;
            }
            _ => return,
        };
        let calls = file.calls;
        let number = files.next_collective_access(communicator.id) as usize;
        let view = calls.view(rank).map(|view| self.view(view));
        let name = self.name(name);
        let accesses = self.accesses.entry(communicator.id).or_default();
        if accesses.len() <= number {
            let parts = vec![(0, 0); communicator.group.len() as usize];
            // The ranks of a communicator give the same hints.
            let hints = calls.hints(rank);
            let (first, views) = ((me, Arc::clone(&name)), BTreeMap::new());
            accesses.resize(number + 1, FoundAccess { parts, first, views, hints, ordered: None });
        }
        let access = &mut accesses[number];
        access.parts[communicator.rank as usize] = part;
        access.views.extend(view.map(|view| (communicator.rank, view)));
        access.ordered = ordered;
        if access.first.1 != name {
            let key = (communicator.id, number as u32);
            self.different_files.entry(key).or_insert_with(|| [access.first.clone(), (me, name)]);
        }
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    fn view(&mut self, view: &FileView) -> Arc<FileView> {
        if let Some(known) = self.views.get(view) {
            return Arc::clone(known);
        }
        let view = Arc::new(view.clone());
        self.views.insert(Arc::clone(&view));
        view
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Begins a call on a file.
    pub(super) fn file_call(&mut self, id: CallId, outbox: &mut RankOutbox<'_, M>) -> Outcome<M::Error> {
        let context = &self.context;
        let call = context.trace.call(id);
        let kind = ActionKind::of_call(call, context.trace);
        let Call::File { communicator, file, slot, call } = call else {
            unreachable!("the call is one on a file")
        };
        self.follow_file(id)?;
        let context = &self.context;
        let found = context.replay.machine.find_file(context.me, file.as_str());
        let place = found.map_err(|source| context.fail(ReplayErrorKind::NoStorage { source }))?;
        if place.is_none() {
            // A nonblocking access leaves its request inactive, for which no wait waits.
            return Ok(self.end(kind));
        }
        let communicator = context.communicator(*communicator);
        let trace = context.trace;
        let opened = self.files.get_mut(file.as_str());
        let (place, calls) = (opened.follow(id, *call), opened.calls);
        let (access, with_holes) = match place {
            Some(_) if call.is_collective() => {
                let number = self.files.next_collective_access(communicator);
                let accesses = self.context.replay.collective_accesses();
                if let Some((peer, other)) = accesses.other_file(communicator, number, file.as_str()) {
                    let (peer, file, other) = (*peer, file.as_str().into(), (&**other).into());
                    return Err(self.context.fail(ReplayErrorKind::DifferentFiles { peer, file, other }));
                }
                return self.start_operation(Origin::FileAccess { call: id, number }, outbox);
            }
            Some(Place::Part((begin, end))) => match calls.view(trace) {
                Some(view) if !view.is_contiguous(begin, end) => {
                    (self.context.access(id, begin), Some(calls))
                }
                Some(view) => (self.context.access(id, view.position(begin)), None),
                None => (self.context.access(id, begin), None),
            },
            Some(Place::Shared(phase) | Place::Ordered(phase)) => {
                let accesses = self.context.replay.collective_accesses();
                let begin = accesses.phase_begin(communicator, file.as_str(), phase);
                // The machine decides the position, and knows of no holes.
                let begin = calls.view(trace).map_or(begin, |view| view.position(begin));
                let shared_pointer = Some(pointer_number(communicator, phase));
                (FileAccess { shared_pointer, ..self.context.access(id, begin) }, None)
            }
            None if call.is_collective() => return self.start_operation(Origin::Call(id), outbox),
            None => return Ok(self.end(kind)),
        };
        if slot.is_some() || with_holes.is_some() {
            return self.start_operation(Origin::Access { call: id, access, with_holes }, outbox);
        }
        self.continue_access(id, access, 0, outbox)
    }

    /// Follows whether the file of a call is open.
    fn follow_file(&mut self, id: CallId) -> Result<(), Failure<M::Error>> {
        let call = self.context.trace.call(id);
        let Some((file, used)) = FileUse::of(call) else { return Ok(()) };
        let followed = self.files.get_mut(file.as_str()).state.follow(used);
        let file = || file.as_str().into();
        followed.map_err(|misuse| {
            self.context.fail(ReplayErrorKind::FileMisuse { call: call.name(), file: file(), misuse })
        })
    }

    /// Begins the call that sets the view of a file.
    pub(super) fn set_view(&mut self, id: CallId, outbox: &mut RankOutbox<'_, M>) -> Outcome<M::Error> {
        let context = &self.context;
        let Call::SetView { file, .. } = context.trace.call(id) else {
            unreachable!("the call sets the view of a file")
        };
        self.follow_file(id)?;
        let context = &self.context;
        self.files.get_mut(file.as_str()).set_view(id);
        let found = context.replay.machine.find_file(context.me, file.as_str());
        match found.map_err(|source| context.fail(ReplayErrorKind::NoStorage { source }))? {
            Some(_) => self.start_operation(Origin::Call(id), outbox),
            None => Ok(self.end(ActionKind::FileSetView)),
        }
    }

    /// Continues an independent access to a file of which some steps are done.
    fn continue_access(
        &mut self,
        id: CallId,
        access: FileAccess,
        mut steps_done: u8,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let context = &mut self.context;
        let kind = ActionKind::of_call(context.trace.call(id), context.trace);
        while steps_done < FileAccess::MAX_STEPS && !access.is_nothing() {
            steps_done += 1;
            if context.start_access_step(id, &access, steps_done - 1, None, outbox)? {
                // What the machine decides is one step, so the position of others is enough to continue.
                let steps_done =
                    if access.shared_pointer.is_some() { FileAccess::MAX_STEPS } else { steps_done };
                let offset = access.offset;
                return Ok(self.keep_pending(Pending::Access { call: id, offset, steps_done, done: false }));
            }
        }
        Ok(self.end(kind))
    }

    /// Resumes an independent access to a part of a file.
    pub(super) fn resume_access(
        &mut self,
        id: CallId,
        offset: u64,
        steps_done: u8,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let access = self.context.access(id, offset);
        self.continue_access(id, access, steps_done, outbox)
    }
}

/// Returns the number of the shared pointer of a communicator in a phase; different ones may have one number, with a probability of
/// 2^-32.
fn pointer_number(communicator: CommId, phase: Phase) -> NonZeroU32 {
    let mut hasher = FxHasher::default();
    (communicator, phase).hash(&mut hasher);
    NonZeroU32::new(hasher.finish() as u32).unwrap_or(NonZeroU32::MIN)
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

    /// Returns the access of a call, from a position on.
    fn access(&self, id: CallId, offset: u64) -> FileAccess {
        let Call::File { call, .. } = self.trace.call(id) else { unreachable!("the call is one on a file") };
        let (direction, bytes) = call.access().expect("the call is an access to a file");
        self.file_operation(id, direction.into()).at(offset, bytes.get())
    }

    /// Returns an operation on the file of a call, with an access to nothing.
    pub(crate) fn file_operation(&self, id: CallId, operation: FileOperation) -> FileAccess {
        let Call::File { file, .. } = self.trace.call(id) else { unreachable!("the call is one on a file") };
        FileAccess::new(&self.file_place(id), file.as_str(), operation)
    }

    /// Starts a step of an access to the file of a call, of the program or of an operation; returns whether it has to be waited for.
    pub(crate) fn start_access_step(
        &mut self,
        id: CallId,
        access: &FileAccess,
        number: u8,
        operation: Option<OperationIndex>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some(work) = self.file_place(id).step(access, number) else { return Ok(false) };
        if self.submit_work(work, operation, outbox) {
            return Ok(true);
        }
        let machine = self.replay.machine;
        let duration = match work {
            Work::Transfer { route, bytes } => machine.transfer(route, bytes, self.thread.clock),
            _ => {
                // Nonblocking collective accesses go on beside others, in no order that this rank alone could tell.
                let mut unknown = DeviceHistory::unknown();
                let history = match self.trace.call(id) {
                    Call::File { call, slot: Some(_), .. } if call.is_collective() => &mut unknown,
                    _ => self.device_histories.entry(access.number).or_default(),
                };
                machine.access_time(access, self.thread.clock, history)
            }
        };
        self.advance(duration, "an access to a file", || Bytes::new(access.bytes).to_string())?;
        Ok(false)
    }
}

impl<Route: Copy> FilePlace<Route> {
    /// Returns a step of an access, from 0.
    fn step(&self, access: &FileAccess, number: u8) -> Option<Work<Route>> {
        let transfer = |route| Work::Transfer { route, bytes: Bytes::new(access.bytes) };
        let whole = Some(Work::Access(*access));
        let steps = match (access.operation, self.remote) {
            // The machine does all steps of an access at a pointer whose position it decides.
            _ if access.shared_pointer.is_some() => [whole, None],
            (FileOperation::Write, Some((to, _))) => [Some(transfer(to)), whole],
            (FileOperation::Read | FileOperation::ReadExisting, Some((_, from))) => {
                [whole, Some(transfer(from))]
            }
            _ => [whole, None],
        };
        steps.get(usize::from(number)).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use trace_mmap::{FileDirection, FileHints};

    use super::*;

    /// SMPI adds the sizes up to a rank's own to the pointer: the second part of 20 bytes begins 20 bytes behind the first.
    #[test]
    fn ordered_parts_follow_a_prefix_sum() {
        let (parts, end) = in_rank_order(100, &[(0, 10), (0, 20), (0, 0), (0, 5)]);
        assert_eq!((parts, end), (vec![(100, 110), (120, 140), (120, 120), (125, 130)], 130));
        assert_eq!(in_rank_order(7, &[]), (Vec::new(), 7));
    }

    /// The shared pointer begins anew when the file is opened, and after each access in the order of ranks.
    #[test]
    fn files_follow_their_pointers() {
        let mut file = File::default();
        let (id, bytes) = (CallId::new(0), Bytes::new(10));
        let shared =
            |is_ordered| FileCall::SharedAccess { is_ordered, direction: FileDirection::Write, bytes };
        let individual =
            FileCall::Access { is_collective: false, direction: FileDirection::Read, offset: None, bytes };
        let calls = [
            FileCall::Open { mode: 0, hints: FileHints::default() },
            shared(false),
            individual,
            shared(true),
            shared(false),
            individual,
        ];
        let places: Vec<_> = calls.iter().map(|call| file.follow(id, *call)).collect();
        let part = |begin| Some(Place::Part((begin, begin + 10)));
        let expected = [
            None,
            Some(Place::Shared(1)),
            part(0),
            Some(Place::Ordered(1)),
            Some(Place::Shared(2)),
            part(10),
        ];
        assert_eq!(places, expected);
        assert_ne!(pointer_number(CommId::WORLD, 1), pointer_number(CommId::WORLD, 2));
    }
}
