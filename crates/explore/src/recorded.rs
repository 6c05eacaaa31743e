//! A recorded program as one that runs, so that its receives from any source may take other messages than in the recorded run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mpi_model::{ActionSource, ActionSources, Reply, Selection};
use pdes_core::Rank;
use replay::RunningProgram;
use trace_mmap::{
    Action, Call, CommIdx, InIdx, OutIdx, RankTrace, SendRecv, Slot, Source, TableWriter, Trace, WorkMetric,
};

/// The program of a trace. Its waits for some requests and its tests end as in the recorded run: what it does after them is recorded for
/// these ends alone. So do receives from any source of a rank that [answers](RankTrace::depends_on_sources) the senders.
#[derive(Clone, Debug)]
pub struct Recorded {
    name: PathBuf,
    trace: Arc<Trace>,
    /// Factor of amounts of computation.
    scale: f64,
}

impl Recorded {
    /// Creates the program of a trace, which ran on a machine of a speed [flop/s], if that is given.
    ///
    /// # Errors
    /// Fails if the trace has files, cancels receives, or is a graph.
    pub fn new(name: &Path, trace: Trace, speed: Option<f64>) -> Result<Self, String> {
        if trace.has_graphs() {
            return Err("the operations of a GOAL schedule have no order that could be explored".to_owned());
        }
        for rank in (0..trace.ranks()).map(|rank| trace.rank(Rank::new(rank))) {
            let unknown = rank.calls().find(|call| {
                matches!(
                    call,
                    Call::File { .. } | Call::SetView { .. } | Call::Cancel { .. } | Call::Unmodelled(_)
                )
            });
            if let Some(call) = unknown {
                return Err(format!("explore has no {} of traces", call.name()));
            }
        }
        let rate = trace.provenance().work_metric.and_then(WorkMetric::rate);
        let scale = speed.zip(rate).map_or(1.0, |(speed, rate)| speed / rate);
        Ok(Self { name: name.to_path_buf(), trace: Arc::new(trace), scale })
    }

    /// Returns the place of an action in the trace.
    pub fn place(&self, rank: Rank, action: u64) -> Option<String> {
        self.trace.locate(rank, action).ok().map(|location| location.to_string())
    }

    /// Returns the ranks whose receives from any source keep their recorded sources.
    pub fn kept(&self) -> Vec<Rank> {
        let ranks = (0..self.trace.ranks()).map(Rank::new);
        ranks.filter(|rank| self.trace.rank(*rank).depends_on_sources()).collect()
    }
}

impl RunningProgram for Recorded {
    fn name(&self) -> &Path {
        &self.name
    }

    fn ranks(&self) -> u32 {
        self.trace.ranks()
    }

    fn sources(&self, _: u32, _: &Selection) -> Arc<dyn ActionSources> {
        Arc::new(RecordedSources(self.clone()))
    }
}

#[derive(Debug)]
struct RecordedSources(Recorded);

impl ActionSources for RecordedSources {
    fn source<'t>(&self, rank: Rank, trace: &'t RankTrace) -> Box<dyn ActionSource + 't> {
        let Recorded { trace: recorded, scale, .. } = &self.0;
        let of_rank = recorded.rank(rank);
        let ends = of_rank.pending_at_end();
        Box::new(RecordedSource {
            recorded: Arc::clone(recorded),
            rank,
            scale: *scale,
            keeps_sources: of_rank.depends_on_sources(),
            actions: of_rank.cursor().collect::<Vec<Action>>().into_iter(),
            at_end: (!ends.is_empty()).then(|| Call::Waitall { slots: ends.into() }),
            writer: TableWriter::new(trace).expect("the trace of a program grows"),
            communicators: vec![CommIdx::WORLD],
        })
    }
}

/// The actions of a rank of a trace, each of which is one of the program, with the tables of that.
struct RecordedSource<'t> {
    recorded: Arc<Trace>,
    rank: Rank,
    scale: f64,
    keeps_sources: bool,
    actions: std::vec::IntoIter<Action>,
    /// Wait for the requests that are pending at the end.
    at_end: Option<Call>,
    writer: TableWriter<'t>,
    /// Communicators of the program for those of the trace.
    communicators: Vec<CommIdx>,
}

impl ActionSource for RecordedSource<'_> {
    fn next(&mut self, _: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        match (self.actions.next(), self.at_end.take()) {
            (Some(action), at_end) => {
                self.at_end = at_end;
                self.translate(action).map(Some)
            }
            (None, Some(wait)) => Ok(Some(Action::Call(self.writer.call(wait)))),
            (None, None) => Ok(None),
        }
    }

    fn slots(&self) -> u32 {
        self.recorded.rank(self.rank).slots()
    }
}

impl RecordedSource<'_> {
    fn translate(&mut self, action: Action) -> Result<Action, Box<str>> {
        let recorded = Arc::clone(&self.recorded);
        let trace = recorded.rank(self.rank);
        Ok(match action {
            Action::Compute { flops } => Action::Compute { flops: flops * self.scale },
            // Call sites are those of the trace.
            Action::Location(_) => Action::Communicator,
            Action::Send { to, bytes } => Action::Send { to: self.outgoing(trace, to), bytes },
            Action::Isend { to, bytes, slot } => Action::Isend { to: self.outgoing(trace, to), bytes, slot },
            Action::Recv { from, bytes } => Action::Recv { from: self.incoming(trace, from), bytes },
            Action::Irecv { from, bytes, slot } => {
                Action::Irecv { from: self.incoming(trace, from), bytes, slot }
            }
            Action::SendRecv(id) => {
                let SendRecv { to, send_bytes, from, recv_bytes } = *trace.send_recv(id);
                let to = to.map(|to| self.outgoing(trace, to));
                let from = from.map_or(Source::ProcNull, |from| Source::Rank(self.incoming(trace, from)));
                self.call(Call::SendRecv { to, send_bytes, from, recv_bytes })
            }
            Action::Collective(id) => {
                let operation = self.writer.collective(trace.collective(id).clone(), CommIdx::WORLD);
                Action::Collective(operation.map_err(|error| error.to_string())?)
            }
            Action::Call(id) => self.translate_call(trace, trace.call(id).clone())?,
            other => other,
        })
    }

    fn translate_call(&mut self, trace: &RankTrace, call: Call) -> Result<Action, Box<str>> {
        let call = match call {
            Call::Send { mode, to, bytes } => {
                Call::Send { mode, to: to.map(|to| self.outgoing(trace, to)), bytes }
            }
            Call::Isend { mode, to, bytes, slot } => {
                Call::Isend { mode, to: to.map(|to| self.outgoing(trace, to)), bytes, slot }
            }
            Call::SendInit { mode, to, bytes, slot } => {
                Call::SendInit { mode, to: to.map(|to| self.outgoing(trace, to)), bytes, slot }
            }
            Call::Recv { from, bytes } => Call::Recv { from: self.source(trace, from), bytes },
            Call::Irecv { from, bytes, slot } => Call::Irecv { from: self.source(trace, from), bytes, slot },
            Call::RecvInit { from, bytes, slot } => {
                Call::RecvInit { from: self.source(trace, from), bytes, slot }
            }
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                let (to, from) = (to.map(|to| self.outgoing(trace, to)), self.source(trace, from));
                Call::SendRecv { to, send_bytes, from, recv_bytes }
            }
            Call::Probe { from } | Call::Iprobe { from, found: true } => {
                Call::Probe { from: self.source(trace, from) }
            }
            Call::Waitany { done, .. } | Call::Testany { done, .. } => {
                return Ok(self.completed(done.into_iter().collect()));
            }
            Call::Waitsome { done, .. } | Call::Testsome { done, .. } => return Ok(self.completed(done)),
            Call::Testall { slots, done: true } => return Ok(self.completed(slots)),
            Call::Test { slot, done: true } => return Ok(self.completed([slot].into())),
            Call::Testall { .. } | Call::Test { .. } | Call::Iprobe { .. } | Call::GetStatus { .. } => {
                return Ok(Action::Communicator);
            }
            Call::Collective { operation, communicator, slot } => {
                let on = self.communicator(trace, communicator);
                let operation = self.writer.collective(trace.collective(operation).clone(), on);
                let operation = operation.map_err(|error| error.to_string())?;
                Call::Collective { operation, communicator: on, slot }
            }
            Call::NeighborAlltoall { communicator, to, from, slot } => {
                let communicator = self.communicator(trace, communicator);
                Call::NeighborAlltoall { communicator, to, from, slot }
            }
            Call::NewCommunicator { kind, parent, new } => {
                let parent = self.communicator(trace, parent);
                let new = new.map(|new| self.communicator(trace, new));
                Call::NewCommunicator { kind, parent, new }
            }
            Call::FreeCommunicator { communicator } => {
                Call::FreeCommunicator { communicator: self.communicator(trace, communicator) }
            }
            Call::Window { communicator, group, slot, call, access, completed, puts } => {
                let communicator = self.communicator(trace, communicator);
                Call::Window { communicator, group, slot, call, access, completed, puts }
            }
            call @ (Call::Waitall { .. } | Call::Start { .. } | Call::Free { .. }) => call,
            call @ (Call::File { .. } | Call::SetView { .. } | Call::Cancel { .. } | Call::Unmodelled(_)) => {
                return Err(format!("explore has no {} of traces", call.name()).into());
            }
        };
        Ok(self.call(call))
    }

    fn call(&mut self, call: Call) -> Action {
        Action::Call(self.writer.call(call))
    }

    fn completed(&mut self, slots: Box<[Slot]>) -> Action {
        if slots.is_empty() { Action::Communicator } else { self.call(Call::Waitall { slots }) }
    }

    /// Returns the communicator of the program; those of the trace are added in their order.
    fn communicator(&mut self, trace: &RankTrace, index: CommIdx) -> CommIdx {
        while self.communicators.len() <= index.index() {
            let next = trace.communicators()[self.communicators.len()].clone();
            self.communicators.push(self.writer.communicator(next));
        }
        self.communicators[index.index()]
    }

    fn outgoing(&mut self, trace: &RankTrace, to: OutIdx) -> OutIdx {
        let channel = trace.outgoing_channel(to);
        let on = self.communicator(trace, channel.communicator);
        self.writer.outgoing(channel.peer, channel.tag, on)
    }

    fn incoming(&mut self, trace: &RankTrace, from: InIdx) -> InIdx {
        let channel = trace.incoming_channel(from);
        let on = self.communicator(trace, channel.communicator);
        self.writer.incoming(channel.peer, channel.tag, on)
    }

    fn source(&mut self, trace: &RankTrace, from: Source) -> Source {
        match from {
            Source::ProcNull => Source::ProcNull,
            Source::Rank(from) => Source::Rank(self.incoming(trace, from)),
            Source::Any { tag, communicator, recorded } => {
                let communicator = self.communicator(trace, communicator);
                match recorded.filter(|_| self.keeps_sources) {
                    Some(rank) => Source::Rank(self.writer.incoming(rank, tag, communicator)),
                    None => Source::Any { tag, communicator, recorded: None },
                }
            }
        }
    }
}
