//! Recording of a run as a trace, whose replay takes the same steps.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mpi_model::{ActionSource, Reply};
use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, CallOp, ConvertOptions, Converted, Location, Op, OpDecoder, Peer, RankBuilders, RankTrace,
    RecvFrom, Slot, TraceError, TraceSource, WorkMetric, WriteError, convert,
};

use crate::extrapolate::LoopSearch;

/// The trace of a run, in memory until it is written: some 200 B for each action.
#[derive(Clone, Debug)]
pub struct Recording(Arc<Recorded>);

#[derive(Debug)]
struct Recorded {
    name: PathBuf,
    work_metric: Option<WorkMetric>,
    /// Operations of each rank that has ended.
    ranks: Box<[Mutex<Vec<Op>>]>,
}

impl Recording {
    pub(crate) fn new(name: &Path, work_metric: Option<WorkMetric>, ranks: u32) -> Self {
        let ranks = (0..ranks).map(|_| Mutex::default()).collect();
        Self(Arc::new(Recorded { name: name.to_path_buf(), work_metric, ranks }))
    }

    /// Writes the archive, after the run. With the settings of the run its replay has the same digest.
    ///
    /// # Errors
    /// Fails if the archive cannot be written, or if the program used MPI in a way that a trace does not have.
    pub fn write(&self, path: &Path) -> Result<Converted, WriteError> {
        convert(Box::new(self.clone()), path, &ConvertOptions::default())
    }

    /// Returns a source of actions that records those of another one.
    pub(crate) fn of_source<'t>(
        &self,
        rank: Rank,
        trace: &'t RankTrace,
        source: Box<dyn ActionSource + 't>,
        search: Option<LoopSearch>,
    ) -> Box<dyn ActionSource + 't> {
        Box::new(RecordedSource {
            recording: self.clone(),
            rank,
            trace,
            decoder: OpDecoder::new(trace),
            source,
            search,
            last: None,
            ops: Vec::new(),
            pending: FxHashMap::default(),
            taken: Vec::new(),
            polls: false,
        })
    }
}

impl TraceSource for Recording {
    fn path(&self) -> &Path {
        &self.0.name
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.0.ranks.len() as u64)
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        self.0.work_metric
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        for rank in ranks.wanted() {
            let (ops, builder) = (&self.0.ranks[rank as usize], ranks.get(rank.into()));
            let builder = builder.expect("the rank is wanted");
            for (index, op) in (0..).zip(&*ops.lock().unwrap_or_else(PoisonError::into_inner)) {
                let action = builder.resolve(op).map_err(|kind| TraceError::Action {
                    location: self.place(index),
                    kind: Box::new(kind),
                })?;
                builder.push(action, None)?;
            }
        }
        Ok(())
    }

    fn locate(&self, _: Rank, index: u64) -> Result<Location, TraceError> {
        Ok(self.place(index))
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        Err(TraceError::NotStored { name: self.0.name.clone() })
    }
}

impl Recording {
    /// Returns the place of an action: lines are numbers of actions of the rank, from 1.
    fn place(&self, index: u64) -> Location {
        Location { file: self.0.name.clone(), line: index + 1 }
    }
}

/// A source of actions that records them.
struct RecordedSource<'t> {
    recording: Recording,
    rank: Rank,
    trace: &'t RankTrace,
    decoder: OpDecoder<'t>,
    source: Box<dyn ActionSource + 't>,
    /// Search for a loop after which the program is left.
    search: Option<LoopSearch>,
    /// The action in progress.
    last: Option<Action>,
    ops: Vec<Op>,
    /// Operation that has posted the receive from any source in each slot.
    pending: FxHashMap<Slot, usize>,
    /// Sources of the messages that operations from any source have taken.
    taken: Vec<(usize, Rank)>,
    /// The rank has calls whose outcome depends on time, other than receives from any source.
    polls: bool,
}

impl RecordedSource<'_> {
    /// Records the last action, with its outcome.
    fn record(&mut self, reply: Reply<'_>) {
        let Some(action) = self.last.take() else { return };
        let (index, mut posts) = (self.ops.len(), None);
        let mut op = self.decoder.decode(action);
        if let Action::Call(id) = action {
            let mut call = self.trace.call(id).clone();
            self.polls |= set_outcome(&mut call, reply);
            if let Call::Irecv { slot, .. } = call {
                posts = Some(slot);
            }
            op = Op::Call(call.to_op(self.trace));
        }
        if from_any(&mut op).is_some() {
            match posts {
                Some(slot) => drop(self.pending.insert(slot, index)),
                None => {
                    let is_probe = matches!(op, Op::Call(CallOp::Probe { .. } | CallOp::Iprobe { .. }));
                    let message = if is_probe { reply.found() } else { reply.received() };
                    self.taken.extend(message.map(|message| (index, message.source)));
                }
            }
        }
        self.ops.push(op);
    }

    /// Takes note of the source of the message that the last receive in a slot has taken.
    fn end_receive(&mut self, slot: Slot, reply: Reply<'_>) {
        if let Some(index) = self.pending.remove(&slot) {
            self.taken.extend(reply.status(slot).map(|status| (index, status.source)));
        }
    }

    /// Hands the operations over.
    fn finish(&mut self, reply: Reply<'_>) {
        let slots: Vec<Slot> = self.pending.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.end_receive(slot, reply));
        // A replay in which a rank keeps recorded sources keeps all its outcomes, and does not count them as decided: the digest of a rank
        // that polls would be another one. Such programs receive what a probe has found, by its source.
        for (index, source) in mem::take(&mut self.taken).into_iter().filter(|_| !self.polls) {
            if let Some(RecvFrom { peer, .. }) = from_any(&mut self.ops[index]) {
                *peer = Peer::Any { recorded: Some(source) };
            }
        }
        let ops = &self.recording.0.ranks[self.rank.index()];
        *ops.lock().unwrap_or_else(PoisonError::into_inner) = mem::take(&mut self.ops);
    }
}

impl ActionSource for RecordedSource<'_> {
    /// While a loop is searched for, no rank goes on before it is known that the program is not left.
    fn release(&mut self, reply: Reply<'_>) -> bool {
        self.search.is_none() && {
            self.record(reply);
            self.source.release(reply)
        }
    }

    fn has_decided(&self) -> bool {
        self.source.has_decided()
    }

    fn await_decision(&self) -> bool {
        self.source.await_decision()
    }

    fn next(&mut self, reply: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        self.record(reply);
        if let Some(search) = &mut self.search
            && search.follow(&self.ops).map_err(|error| format!("the loop of the program: {error}"))?
        {
            return Err("the program is left, as its calls repeat".into());
        }
        self.last = self.source.next(reply)?;
        match self.last {
            Some(Action::Call(id)) => {
                // What is known of a request is forgotten when another one is posted in its slot.
                if let Call::Irecv { slot, .. } = *self.trace.call(id) {
                    self.end_receive(slot, reply);
                }
            }
            Some(_) => {}
            None => self.finish(reply),
        }
        Ok(self.last)
    }

    fn slots(&self) -> u32 {
        self.source.slots()
    }
}

/// Sets the outcome of a call, where that depends on time; returns whether it does.
fn set_outcome(call: &mut Call, reply: Reply<'_>) -> bool {
    let completed = |slots: &[Slot]| -> Box<[Slot]> {
        slots.iter().copied().filter(|slot| reply.is_completed(*slot)).collect()
    };
    match call {
        Call::Waitany { slots, done } | Call::Testany { slots, done } => {
            *done = completed(slots).first().copied();
        }
        Call::Waitsome { slots, done } | Call::Testsome { slots, done } => *done = completed(slots),
        Call::Testall { slots, done } => *done = completed(slots).len() == slots.len(),
        Call::Test { slot, done } => *done = reply.is_completed(*slot),
        Call::GetStatus { slot, done } => *done = reply.is_done(*slot),
        Call::Iprobe { found, .. } => *found = reply.found().is_some(),
        // A receive that has matched a message is not cancelled.
        Call::Cancel { slot, cancelled, .. } => *cancelled = reply.status(*slot).is_none(),
        _ => return false,
    }
    true
}

/// Returns the source of the message of an operation, if it takes one from any.
fn from_any(op: &mut Op) -> Option<&mut RecvFrom> {
    let Op::Call(
        CallOp::Recv { from, .. }
        | CallOp::Irecv { from, .. }
        | CallOp::SendRecv { from, .. }
        | CallOp::Probe { from }
        | CallOp::Iprobe { from, .. },
    ) = op
    else {
        return None;
    };
    matches!(from.peer, Peer::Any { .. }).then_some(from)
}
