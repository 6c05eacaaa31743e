//! The source of the actions of a rank that is a process: its operations, and the answers to them.

mod answers;
mod collectives;
mod files;
mod messages;
mod windows;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mpi_model::{ActionSource, Reply, Selection};
use pdes_core::{Bytes, Rank, SimTime};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, CommId, CommIdx, FileName, RankTrace, Slot, Source, TableWriter, Tag, check_amount,
};

use crate::computing::Computing;
use crate::layout::{OMITS_SHARED_POINTERS, Operation, OperationKind};
use crate::polling::{COMPUTES, FailedPolls};
use crate::run::Run;
use crate::turns::Look;
use answers::Awaited;
use messages::mode;
use windows::OnlineWindow;

/// The source of the actions of a rank.
pub(crate) struct RankSource<'t> {
    me: Rank,
    trace: &'t RankTrace,
    writer: TableWriter<'t>,
    selection: Selection,
    run: Arc<Run>,
    /// Number of operations that are known of the turn of the rank, and of those that have been read.
    operations: (u32, u32),
    /// The computation of the rank since the last of them.
    computing: RefCell<Computing>,
    /// Actions of the operation in progress that have not begun.
    actions: VecDeque<Action>,
    /// Answer that the rank gets when they have ended.
    awaited: Awaited,
    /// Communicators, by the numbers of the rank.
    communicators: FxHashMap<u32, CommIdx>,
    /// Windows, by the communicators that they are made of.
    windows: FxHashMap<CommIdx, OnlineWindow>,
    /// Names of files, by the numbers of the rank.
    files: FxHashMap<i32, FileName>,
    /// Call on a file that its members agree on next.
    file_call: Option<Call>,
    /// Requests that are not complete.
    requests: BTreeSet<u32>,
    /// Receives, with the communicator of each; those of persistent ones stay.
    receives: FxHashMap<u32, CommIdx>,
    /// Persistent sends: destination, tag and communicator.
    sends: FxHashMap<u32, (Rank, i32, CommIdx)>,
    /// Nonblocking collective operations: table, communicator and number there.
    tables: FxHashMap<u32, (u64, (CommId, u64))>,
    /// Number of messages sent so far to each rank, with each tag, on each communicator.
    sent: FxHashMap<(Rank, i32, CommIdx), u64>,
    /// Number of collective operations so far on each communicator.
    contributions: FxHashMap<CommIdx, u64>,
    slots: u32,
    failed_polls: FailedPolls,
    /// Clock at the last answer.
    clock: SimTime,
    /// Clock at the begin of the action in progress.
    begun: SimTime,
    /// The rank has been told how its operation has ended, and has the turn or waits for it.
    is_outside: bool,
    /// So it has before the operation has ended.
    is_ahead: bool,
    has_ended: bool,
}

impl<'t> RankSource<'t> {
    pub(crate) fn new(me: Rank, trace: &'t RankTrace, selection: Selection, run: Arc<Run>) -> Self {
        let writer = TableWriter::new(trace).expect("the trace of a program grows");
        Self {
            me,
            trace,
            writer,
            selection,
            run,
            operations: (0, 0),
            computing: RefCell::default(),
            actions: VecDeque::new(),
            awaited: Awaited::Nothing,
            communicators: [(0, CommIdx::WORLD)].into_iter().collect(),
            windows: FxHashMap::default(),
            files: FxHashMap::default(),
            file_call: None,
            requests: BTreeSet::new(),
            receives: FxHashMap::default(),
            sends: FxHashMap::default(),
            tables: FxHashMap::default(),
            sent: FxHashMap::default(),
            contributions: FxHashMap::default(),
            slots: 1,
            failed_polls: FailedPolls::default(),
            clock: SimTime::ZERO,
            begun: SimTime::ZERO,
            is_outside: false,
            is_ahead: false,
            has_ended: false,
        }
    }

    /// Returns whether all operations of the turn of the rank have been read.
    fn needs_turn(&self) -> bool {
        self.operations.0 == self.operations.1
    }

    /// Gives the rank the turn, which at its begin it has.
    fn get_turn(&mut self) {
        if std::mem::take(&mut self.operations).0 > 0 {
            let Run { turns, memory, .. } = &*self.run;
            // Nobody waits for one that is ahead, yet.
            if self.run.watches_computations() && turns.are_apart() && !self.is_ahead {
                self.computing.get_mut().begin_turn(memory.slot(self.me.get()));
            }
            turns.give(memory, self.me.get());
        }
    }

    /// Returns the number of operations that a rank which has the turn has posted so far.
    fn operations_so_far(&self) -> u32 {
        self.run.memory.slot(self.me.get()).posted.load(Ordering::Acquire)
    }

    /// Returns the next operation of the rank, for which it gets the turn if the last one has ended.
    fn next_operation(&mut self) -> Result<Operation, Box<str>> {
        if self.needs_turn() && !self.is_outside {
            self.is_outside = true;
            self.get_turn();
        }
        let Run { turns, memory, .. } = &*self.run;
        // What a rank posts is read while it has the turn, unless the others have to wait for it.
        if self.needs_turn() && !turns.is_exclusive() && turns.look(memory, self.me.get()) == Look::Running {
            self.operations.0 = self.operations_so_far();
        }
        if self.needs_turn() {
            self.is_outside = false;
            self.run.take_turn(self.me.get())?;
            self.computing.get_mut().end_turn();
            self.operations.0 = self.run.memory.slot(self.me.get()).operations.load(Ordering::Relaxed);
            if self.needs_turn() {
                return Err("the rank has given its turn without an operation".into());
            }
        }
        let read = &mut self.operations.1;
        *read += 1;
        let operation = self.run.memory.operation(self.me.get(), *read - 1);
        self.run.begin(self.me.get(), operation);
        Ok(operation)
    }

    /// Lets the rank compute, in units of computation.
    fn compute(&mut self, units: f64) -> Result<(), String> {
        if units > 0.0 {
            if units >= COMPUTES {
                self.run.polling.progress();
            }
            let flops =
                check_amount(units * self.run.settings.flops_per_unit).map_err(|error| error.to_string())?;
            self.actions.push_back(Action::Compute { flops });
            self.failed_polls = FailedPolls::default();
        }
        Ok(())
    }

    /// Translates an operation to actions.
    fn begin(&mut self, operation: Operation) -> Result<(), String> {
        let Operation { kind, request, seconds, computed, polled, .. } = operation;
        let kind = OperationKind::from_number(kind)
            .ok_or_else(|| format!("it posts an operation {kind}, which there is not"))?;
        let rest = self.computing.get_mut().rest(computed);
        self.compute(rest)?;
        if polled > 0.0 {
            let seconds = check_amount(polled).map_err(|error| error.to_string())?;
            self.actions.push_back(Action::Sleep { seconds });
        }
        let is_poll = matches!(
            kind,
            OperationKind::Testall
                | OperationKind::Testany
                | OperationKind::Testsome
                | OperationKind::GetStatus
                | OperationKind::Iprobe
        );
        let may_poll = matches!(
            kind,
            OperationKind::Clock | OperationKind::Sync | OperationKind::Yield | OperationKind::Window
        );
        if !is_poll && !may_poll {
            self.failed_polls = FailedPolls::default();
            self.run.polling.progress();
        }
        let action = match kind {
            OperationKind::Init => Action::Init,
            OperationKind::Clock | OperationKind::Sync => return Ok(()),
            OperationKind::Region => {
                let path = self.text(operation);
                Action::Location(self.writer.location(&format!("{path}:0")))
            }
            OperationKind::Send | OperationKind::Isend => self.send(operation)?,
            OperationKind::Recv | OperationKind::Irecv => self.receive(operation)?,
            OperationKind::SendRecv => self.send_receive(operation)?,
            OperationKind::SendInit => {
                let on = self.communicator(operation)?;
                let (peer, mode) = (self.peer(operation.peer)?, mode(operation.flags)?);
                self.receives.remove(&request);
                self.sends.insert(request, (peer, operation.tag, on));
                let to = Some(self.writer.outgoing(peer, Tag::new(operation.tag), on));
                let slot = self.slot(request);
                self.call(Call::SendInit { mode, to, bytes: Bytes::new(operation.bytes), slot })
            }
            OperationKind::RecvInit => {
                let (from, on) = self.source(operation)?;
                self.receives.insert(request, on);
                let slot = self.slot(request);
                self.call(Call::RecvInit { from, bytes: Bytes::new(operation.source_bytes), slot })
            }
            OperationKind::Start => {
                if let Some(&(peer, tag, on)) = self.sends.get(&request) {
                    self.put((peer, tag, on), operation);
                }
                self.requests.insert(request);
                self.call(Call::Start { slots: [Slot::new(request)].into() })
            }
            OperationKind::Free => {
                self.sends.remove(&request);
                self.receives.remove(&request);
                self.call(Call::Free { slot: Slot::new(request) })
            }
            OperationKind::Waitall
            | OperationKind::Waitany
            | OperationKind::Waitsome
            | OperationKind::Testall
            | OperationKind::Testany
            | OperationKind::Testsome => self.complete_listed(kind, operation, is_poll),
            OperationKind::GetStatus => {
                self.awaited = Awaited::Done(request);
                self.call(Call::GetStatus { slot: Slot::new(request), done: false })
            }
            OperationKind::Probe => {
                let (from, _) = self.source(operation)?;
                match self.run.settings.blocking_probes {
                    true => self.await_probed(from),
                    false => self.probe(from, self.clock, 0),
                }
                return Ok(());
            }
            OperationKind::Iprobe => {
                let (from, _) = self.source(operation)?;
                self.awaited = Awaited::Found;
                self.call(Call::Iprobe { from, found: false })
            }
            OperationKind::Cancel => {
                let slot = Slot::new(request);
                self.call(Call::Cancel { slot, cancelled: true, from: Source::ProcNull })
            }
            OperationKind::Omit => return self.omit(operation.flags),
            OperationKind::Warn => {
                let text = self.text(operation);
                self.run.warn(self.me, text);
                return Ok(());
            }
            OperationKind::File => return self.call_file(operation),
            OperationKind::Sampled => {
                let place = self.text(operation);
                self.run.samples.add(self.me.get(), place, &operation);
                return Ok(());
            }
            OperationKind::Yield => {
                self.awaited = Awaited::Time;
                return Ok(());
            }
            OperationKind::Window => self.call_window(operation)?,
            OperationKind::Collective => self.collective(operation)?,
            OperationKind::Join => self.join(operation)?,
            OperationKind::Sleep => {
                Action::Sleep { seconds: check_amount(seconds).map_err(|error| error.to_string())? }
            }
            OperationKind::Finalize => {
                self.awaited = Awaited::End;
                let slots: Box<[Slot]> = self.requests.iter().copied().map(Slot::new).collect();
                if !slots.is_empty() {
                    let wait = self.call(Call::Waitall { slots });
                    self.actions.push_back(wait);
                }
                Action::Finalize
            }
            OperationKind::Abort => {
                let why = self.text(operation);
                return Err(self.run.abort(self.me.get(), operation.peer, &why));
            }
        };
        self.actions.push_back(action);
        Ok(())
    }

    /// Takes the text of an operation.
    fn text(&self, operation: Operation) -> String {
        let text: Vec<u8> = self.run.memory.numbers(operation.block, operation.count);
        self.run.memory.free(operation.block);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn call(&mut self, call: Call) -> Action {
        Action::Call(self.writer.call(call))
    }

    /// Returns the slot of a request, which has the same number.
    fn slot(&mut self, request: u32) -> Slot {
        self.slots = self.slots.max(request + 1);
        Slot::new(request)
    }

    fn communicator(&self, operation: Operation) -> Result<CommIdx, String> {
        let number = operation.communicator;
        self.communicators
            .get(&number)
            .copied()
            .ok_or_else(|| format!("it names a communicator {number}, which it has not made"))
    }

    fn peer(&self, peer: i32) -> Result<Rank, String> {
        let ranks = self.run.memory.ranks();
        let rank = u32::try_from(peer).ok().filter(|rank| *rank < ranks);
        rank.map(Rank::new).ok_or_else(|| format!("a peer is rank {peer}, expected one below {ranks}"))
    }

    /// Notes what the time of the run leaves out.
    fn omit(&self, omission: u32) -> Result<(), String> {
        self.run.has_files.store(true, Ordering::Relaxed);
        match omission {
            OMITS_SHARED_POINTERS => self.require_one_thread("an access by the shared pointer of a file"),
            _ => Ok(()),
        }
    }

    /// Checks that one rank runs at a time, where ranks access memory of others at the instants of their calls.
    fn require_one_thread(&self, what: &str) -> Result<(), String> {
        self.run.turns.exclude();
        match self.run.settings.threads {
            0 | 1 => Ok(()),
            _ => Err(format!("{what} runs on one thread: set engine.threads = 1")),
        }
    }
}

impl ActionSource for RankSource<'_> {
    fn release(&mut self, reply: Reply<'_>) -> bool {
        if self.is_ahead {
            self.catch_up(reply);
            self.is_outside = true;
        } else if !self.is_outside {
            if self.actions.is_empty() {
                self.answer(reply);
            }
            let needs_turn = self.actions.is_empty() && !self.has_ended && self.needs_turn();
            self.is_outside = needs_turn && !self.run.turns.is_exclusive();
            if self.is_outside {
                self.get_turn();
            }
        }
        let is_awaited = self.is_outside && self.actions.is_empty() && self.needs_turn();
        self.run.turns.set_awaited(self.me.get(), is_awaited);
        is_awaited
    }

    fn foresee(&mut self, reply: Reply<'_>) {
        if !self.is_outside && !self.is_ahead && self.actions.is_empty() && self.needs_turn() {
            self.go_ahead(reply);
        }
    }

    fn has_decided(&self) -> bool {
        let Run { turns, memory, .. } = &*self.run;
        match turns.look(memory, self.me.get()) {
            Look::Running if self.run.watches_computations() && turns.lack_ranks() => {
                let are_read = self.operations_so_far() == self.operations.1;
                self.computing.borrow_mut().look(memory.slot(self.me.get()), are_read)
            }
            look => look == Look::Back,
        }
    }

    fn await_decision(&self) -> bool {
        let Run { turns, memory, has_ended, .. } = &*self.run;
        turns.await_decision(memory, self.run.watches_computations(), has_ended.load(Ordering::Acquire))
    }

    fn next(&mut self, reply: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        self.run.turns.set_awaited(self.me.get(), false);
        loop {
            if let Some(action) = self.actions.pop_front() {
                self.begun = reply.clock();
                return Ok(Some(action));
            }
            if self.is_outside {
                // It has posted tests that it knows to fail.
                self.awaited = Awaited::Nothing;
            } else {
                self.answer(reply);
            }
            if self.failed_polls.are_endless {
                return Err("livelock in the program: its ranks poll for what never comes, until the end of simulated time".into());
            }
            if self.has_ended {
                self.run.end_turn(self.me.get());
                return Ok(None);
            }
            let certain = self.computing.get_mut().tell();
            self.compute(certain)?;
            if self.actions.is_empty() {
                let operation = self.next_operation()?;
                self.begin(operation)?;
            }
        }
    }

    fn slots(&self) -> u32 {
        // Grows in few steps.
        self.slots.next_power_of_two()
    }
}
