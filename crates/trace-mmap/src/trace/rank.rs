//! The trace of one rank.

use std::sync::Arc;

use crate::action::{SendRecv, SendRecvId};
use crate::archive::{ArchivedRank, Damage};
use crate::call::{Call, FileName};
use crate::channel::{Incoming, Outgoing, Slot};
use crate::communicator::{Communicator, RankCommunicators};
use crate::graph::OperationGraph;
use crate::measured::{MeasuredTimes, TimedActions};
use crate::record::Record;
use crate::side_tables::SideTables;
use crate::store::Records;
use crate::trace::growing::GrowingTables;
use crate::trace::{Cursor, CursorPosition};

/// Storage of the actions of a rank.
#[derive(Debug)]
pub(crate) enum ActionStorage {
    /// One record per action, in memory or in a temporary file.
    Memory(Records),
    /// Program and columns in an archive.
    Archive(ArchivedRank),
}

impl ActionStorage {
    /// Returns a cursor before the first action.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        match self {
            Self::Memory(records) => Cursor::in_memory(records),
            Self::Archive(rank) => Cursor::archived(rank),
        }
    }

    /// Returns a cursor before the first action that stops at iteration boundaries.
    pub(crate) fn cursor_with_boundaries(&self) -> Cursor<'_> {
        match self {
            Self::Memory(_) => self.cursor(),
            Self::Archive(rank) => Cursor::with_boundaries(rank),
        }
    }
}

impl ActionStorage {
    /// Returns the actions with their measured times; `None` if `times` is of the other kind of storage.
    pub(crate) fn measured<'a>(&'a self, times: &'a MeasuredTimes) -> Option<TimedActions<'a>> {
        match (self, times) {
            (_, MeasuredTimes::Memory(times)) => Some(TimedActions::in_memory(self.cursor(), times)),
            (Self::Archive(rank), MeasuredTimes::Archive { columns, blocks }) => {
                Some(TimedActions::archived(rank, columns, *blocks))
            }
            (Self::Memory(_), MeasuredTimes::Archive { .. }) => None,
        }
    }

    /// Returns the records: those of the program for an archive, else one per action.
    pub(crate) fn records(&self) -> Box<dyn Iterator<Item = Result<Record, Damage>> + '_> {
        match self {
            Self::Memory(records) => {
                let chunks = (0..).map_while(|chunk| records.chunk(chunk));
                Box::new(chunks.flatten().copied().map(Ok))
            }
            Self::Archive(rank) => Box::new(rank.records()),
        }
    }
}

impl Default for ActionStorage {
    fn default() -> Self {
        Self::Memory(Records::default())
    }
}

/// The actions of one rank, with the tables to which they refer.
#[derive(Debug, Default)]
pub struct RankTrace {
    pub(crate) storage: ActionStorage,
    pub(crate) outgoing: Box<[Outgoing]>,
    pub(crate) incoming: Box<[Incoming]>,
    pub(crate) ports: u32,
    pub(crate) slots: u32,
    pub(crate) pending_at_end: Box<[Slot]>,
    pub(crate) has_timing_dependent_matching: bool,
    /// True if some requests are named: text then names all requests, by their slots.
    pub(crate) has_named_requests: bool,
    /// Communicators of the rank, the world first.
    pub(crate) communicators: RankCommunicators,
    pub(crate) side_tables: Arc<SideTables>,
    pub(crate) measured_times: Option<MeasuredTimes>,
    /// The program, where it is a graph: there are no actions then.
    pub(crate) graph: Option<Box<OperationGraph>>,
    /// Entries that a program adds to the tables while it runs: there are no actions then.
    pub(crate) growing: Option<Box<GrowingTables>>,
}

impl RankTrace {
    /// Returns a copy of the tables, without actions and measured times.
    pub(crate) fn tables(&self) -> Self {
        Self {
            storage: ActionStorage::default(),
            outgoing: self.outgoing.clone(),
            incoming: self.incoming.clone(),
            ports: self.ports,
            slots: self.slots,
            pending_at_end: self.pending_at_end.clone(),
            has_timing_dependent_matching: self.has_timing_dependent_matching,
            has_named_requests: self.has_named_requests,
            communicators: self.communicators.clone(),
            side_tables: Arc::clone(&self.side_tables),
            measured_times: None,
            graph: None,
            growing: None,
        }
    }

    /// Returns a cursor before the first action.
    pub fn cursor(&self) -> Cursor<'_> {
        self.storage.cursor()
    }

    /// Returns a cursor before the first action that stops at iteration boundaries, for a caller that skips equal iterations:
    /// at a boundary the cursor yields `None` once, while [`Cursor::iteration_boundary`] is `Some`, and then continues. Only loops of
    /// an archive have boundaries: outermost ones, and long ones in short ones.
    pub fn cursor_with_boundaries(&self) -> Cursor<'_> {
        self.storage.cursor_with_boundaries()
    }

    /// Returns a cursor that resumes at a [position](Cursor::saved_position) of a cursor of this rank.
    ///
    /// With a position of another trace the cursor yields wrong actions, or ends early as over a damaged archive.
    pub fn cursor_at(&self, mark: &CursorPosition) -> Cursor<'_> {
        let mut cursor = self.cursor();
        cursor.resume_at(mark);
        cursor
    }

    /// Returns the records of actions and of measured times that are in memory.
    pub(crate) fn records_mut(&mut self) -> impl Iterator<Item = &mut Records> {
        let actions = match &mut self.storage {
            ActionStorage::Memory(records) => Some(records),
            ActionStorage::Archive(_) => None,
        };
        let times = match &mut self.measured_times {
            Some(MeasuredTimes::Memory(records)) => Some(records),
            Some(MeasuredTimes::Archive { .. }) | None => None,
        };
        actions.into_iter().chain(times)
    }

    /// Returns the actions with the times that they took when the program was traced; `None` if no times were kept.
    ///
    /// ```
    /// use trace_mmap::Action;
    /// let trace = trace_tools::from_text("0 init\n0 compute 5e6 time=4000000\n0 barrier time=1500\n")?;
    /// let measured = trace.rank(pdes_core::Rank::new(0)).measured().expect("some lines have times");
    /// let picos = measured.map(|(_, time)| time.map(|time| time.as_picos()));
    /// assert_eq!(picos.collect::<Vec<_>>(), [None, Some(4_000_000_000), Some(1_500_000)]);
    /// # Ok::<(), trace_mmap::TraceError>(())
    /// ```
    pub fn measured(&self) -> Option<TimedActions<'_>> {
        self.storage.measured(self.measured_times.as_ref()?)
    }

    /// Returns the program, where it is a graph; it has no actions then.
    pub fn graph(&self) -> Option<&OperationGraph> {
        self.graph.as_deref()
    }

    /// Returns the number of actions, or of the operations of a graph.
    pub fn len(&self) -> u64 {
        if let Some(graph) = &self.graph {
            return graph.operations().len() as u64;
        }
        match &self.storage {
            ActionStorage::Memory(records) => records.len(),
            ActionStorage::Archive(rank) => rank.class.actions,
        }
    }

    /// Returns whether the rank has no actions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the channels to which the rank sends, in the order of their first use.
    pub fn outgoing(&self) -> &[Outgoing] {
        &self.outgoing
    }

    /// Returns the channels from which the rank receives, in the order of their first use.
    pub fn incoming(&self) -> &[Incoming] {
        &self.incoming
    }

    /// Returns the number of ports, the queues in which messages to this rank arrive.
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// Returns the largest number of requests that are pending at once.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the requests for which the end of the trace waits, in the order of their posting: the last pending one of each
    /// (source, destination, tag); if the rank has named requests, all pending ones except freed ones.
    pub fn pending_at_end(&self) -> &[Slot] {
        &self.pending_at_end
    }

    /// Returns whether the rank has calls on files.
    pub fn has_file_calls(&self) -> bool {
        self.side_tables.has_file_calls()
    }

    /// Returns the files of the calls of the rank, each perhaps several times.
    pub fn files(&self) -> impl Iterator<Item = &FileName> {
        self.side_tables.calls.iter().filter_map(|call| match call {
            Call::File { file, .. } | Call::SetView { file, .. } => Some(file),
            _ => None,
        })
    }

    /// Returns the distinct calls of the rank, and perhaps those of others.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.side_tables.calls.iter()
    }

    /// Returns the communicators of the rank in the order of their first use; the first one is the world.
    pub fn communicators(&self) -> &[Communicator] {
        &self.communicators
    }

    /// Returns whether the matching of messages and receives of the rank depends on time: some receive or probe is from any
    /// source, or some receive was cancelled. Messages to the rank then arrive in its [mailbox](crate::Arrival::AnySource).
    pub fn has_timing_dependent_matching(&self) -> bool {
        self.has_timing_dependent_matching
    }

    /// Returns whether some receive of the rank was cancelled before it got a message.
    pub fn cancels_receives(&self) -> bool {
        self.side_tables.calls.iter().any(|call| matches!(call, Call::Cancel { cancelled: true, .. }))
    }

    /// Returns a combined send and receive.
    ///
    /// # Panics
    /// Panics if the identifier is not from this rank.
    pub fn send_recv(&self, id: SendRecvId) -> &SendRecv {
        &self.side_tables.send_recvs[id.index()]
    }
}
