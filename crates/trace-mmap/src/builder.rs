//! Builder of a rank's trace: resolves the names in its operations to dense indices.

mod calls;
mod check;
mod communicators;
mod error;
mod named_requests;
mod ops;
mod requests;
mod windows;

pub(crate) use calls::ResolveError;
pub(crate) use check::check_collective;
pub use check::{check_amount, check_size};
use communicators::CommunicatorTable;
pub use error::{OpError, explain_peer};
pub use requests::RequestKey;
use requests::{RequestState, Requests};
use windows::Windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::action::{Action, CollectiveId, LocationId, SendRecv, SendRecvId};
use crate::call::{Call, CallId, Source};
use crate::channel::{Arrival, InIdx, Incoming, OutIdx, Outgoing, PortId, Tag};
use crate::communicator::CommIdx;
use crate::error::TraceError;
use crate::graph::OperationGraph;
use crate::measured::{self, MeasuredTimes};
use crate::record::Record;
use crate::side_tables::{SideTables, TableRequirements};
use crate::store::{CHUNK, Records, Store};
use crate::trace::{ActionStorage, RankTrace};

/// Builder of the trace of a rank: operations in the order of the program are [resolved](Self::resolve) to actions with dense
/// indices, which are [pushed](Self::push).
///
/// Equal operations yield equal indices, in the order of first appearance.
// Determinism: the hash maps are looked up, never iterated.
pub struct RankBuilder<'s> {
    rank: Rank,
    ranks: u32,
    store: &'s Store<'s>,
    buffer: Vec<Record>,
    records: Records,
    times: Option<TimesBuilder>,
    side: SideTables,
    linkable: LinkableRank,
    requests: Requests,
    communicators: CommunicatorTable,
    windows: Windows,
    outgoing: Vec<Outgoing>,
    incoming: Vec<ReceiveKey>,
    outgoing_by_key: FxHashMap<(Rank, Tag, CommIdx), OutIdx>,
    incoming_by_key: FxHashMap<ReceiveKey, InIdx>,
    call_by_value: FxHashMap<Call, CallId>,
    collective_by_value: FxHashMap<(CommIdx, String), CollectiveId>,
    send_recv_by_value: FxHashMap<SendRecv, SendRecvId>,
    location_by_name: FxHashMap<String, LocationId>,
}

/// Builder of the measured times of a rank.
#[derive(Default)]
struct TimesBuilder {
    buffer: Vec<Record>,
    records: Records,
}

impl TimesBuilder {
    fn push(&mut self, nanos: Option<u64>, store: &Store<'_>) -> Result<(), TraceError> {
        self.buffer.push(measured::encode_time(nanos));
        if self.buffer.len() == CHUNK {
            let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
            self.records.push_annotations(full, store)?;
        }
        Ok(())
    }

    fn finish(mut self, store: &Store<'_>) -> Result<Records, TraceError> {
        if !self.buffer.is_empty() {
            self.records.push_annotations(self.buffer, store)?;
        }
        Ok(self.records)
    }
}

/// Source, tag (`None` for any) and communicator of the receives of a channel.
pub(crate) type ReceiveKey = (Rank, Option<Tag>, CommIdx);

/// The state of a rank between two actions. From equal states, equal lines lead to equal actions and equal states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuilderState {
    requests: RequestState,
    communicators: Vec<bool>,
    windows: Windows,
}

/// The trace of a rank before linking: complete except for the arrival ports of its outgoing channels.
#[derive(Default)]
pub(crate) struct LinkableRank {
    pub(crate) trace: RankTrace,
    /// Number of messages of each outgoing channel.
    pub(crate) sends: Vec<u64>,
    /// Number of receives of each incoming channel.
    pub(crate) receives: Vec<u64>,
    /// Number of wildcard receives.
    pub(crate) receives_from_any: u64,
}

impl<'s> RankBuilder<'s> {
    /// Starts the trace of a rank in a run of `ranks` ranks.
    pub(crate) fn new(rank: Rank, ranks: u32, store: &'s Store<'s>) -> Self {
        Self {
            rank,
            ranks,
            store,
            buffer: Vec::new(),
            records: Records::default(),
            times: None,
            side: SideTables::default(),
            linkable: LinkableRank::default(),
            requests: Requests::default(),
            communicators: CommunicatorTable::new(rank, ranks),
            windows: Windows::default(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            outgoing_by_key: FxHashMap::default(),
            incoming_by_key: FxHashMap::default(),
            call_by_value: FxHashMap::default(),
            collective_by_value: FxHashMap::default(),
            send_recv_by_value: FxHashMap::default(),
            location_by_name: FxHashMap::default(),
        }
    }

    /// Returns the rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of ranks of the run.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Appends an action, with its duration in the recorded run if it is known \[ns\], at most [`MAX_NANOS`](crate::MAX_NANOS).
    ///
    /// # Errors
    /// Fails if the actions exceed the memory budget and cannot be stored in a temporary file.
    #[inline]
    pub fn push(&mut self, action: Action, nanos: Option<u64>) -> Result<(), TraceError> {
        if nanos.is_some() || self.times.is_some() {
            self.push_time(nanos)?;
        }
        self.buffer.push(Record::encode(action));
        if self.buffer.len() == CHUNK {
            let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
            self.records.push(full, self.store)?;
        }
        Ok(())
    }

    /// Appends the time of the next action. Times are stored from the first action on that has one, which is preceded by an unknown
    /// time for each earlier action.
    fn push_time(&mut self, nanos: Option<u64>) -> Result<(), TraceError> {
        let (untimed, store) = (self.records.len() + self.buffer.len() as u64, self.store);
        if self.times.is_none() {
            let times = self.times.insert(TimesBuilder::default());
            (0..untimed).try_for_each(|_| times.push(None, store))?;
        }
        self.times.as_mut().map_or(Ok(()), |times| times.push(nanos, store))
    }

    /// Counts a message on the world communicator and returns its channel.
    #[inline]
    fn send_to(&mut self, peer: Rank, tag: Tag) -> OutIdx {
        let index = self.outgoing_index(peer, tag, CommIdx::WORLD);
        self.count_send(index);
        index
    }

    /// Counts a receive on the world communicator and returns its channel.
    #[inline]
    fn receive_from(&mut self, peer: Rank, tag: Option<Tag>) -> InIdx {
        let index = self.incoming_index(peer, tag, CommIdx::WORLD);
        self.linkable.receives[index.index()] += 1;
        index
    }

    #[inline]
    fn outgoing_index(&mut self, peer: Rank, tag: Tag, communicator: CommIdx) -> OutIdx {
        let sends = &mut self.linkable.sends;
        *self.outgoing_by_key.entry((peer, tag, communicator)).or_insert_with(|| {
            self.outgoing.push(Outgoing::new(peer, tag, communicator, Arrival::Unmatched));
            sends.push(0);
            OutIdx::new(sends.len() as u32 - 1)
        })
    }

    #[inline]
    fn incoming_index(&mut self, peer: Rank, tag: Option<Tag>, communicator: CommIdx) -> InIdx {
        let receives = &mut self.linkable.receives;
        *self.incoming_by_key.entry((peer, tag, communicator)).or_insert_with(|| {
            self.incoming.push((peer, tag, communicator));
            receives.push(0);
            InIdx::new(receives.len() as u32 - 1)
        })
    }

    #[inline]
    fn count_send(&mut self, to: OutIdx) {
        self.linkable.sends[to.index()] += 1;
    }

    /// Adds `by` to the number of receives: 1 for a receive, -1 for a cancelled one.
    fn count_receive(&mut self, from: Source, by: i64) {
        let receives = match from {
            Source::ProcNull => return,
            Source::Rank(from) => &mut self.linkable.receives[from.index()],
            Source::Any { .. } => &mut self.linkable.receives_from_any,
        };
        *receives = receives.saturating_add_signed(by);
    }

    /// Returns the pending requests, the live communicators and the epochs of windows.
    pub(crate) fn state(&self) -> BuilderState {
        let (requests, communicators) = (self.requests.state(), self.communicators.live());
        BuilderState { requests, communicators, windows: self.windows.clone() }
    }

    /// Stores a combined send and receive, once per value.
    fn insert_send_recv(&mut self, value: SendRecv) -> SendRecvId {
        let values = &mut self.side.send_recvs;
        *self.send_recv_by_value.entry(value).or_insert_with(|| {
            values.push(value);
            SendRecvId::new(values.len() as u32 - 1)
        })
    }

    /// Makes the program of the rank a graph, in place of actions.
    pub fn set_graph(&mut self, graph: OperationGraph) {
        self.linkable.trace.graph = Some(Box::new(graph));
    }

    /// Finishes the trace.
    pub(crate) fn finish(mut self) -> Result<LinkableRank, TraceError> {
        if !self.buffer.is_empty() {
            let rest = std::mem::take(&mut self.buffer);
            self.records.push(rest, self.store)?;
        }
        if let Some(times) = self.times.take() {
            self.linkable.trace.measured_times = Some(MeasuredTimes::Memory(times.finish(self.store)?));
        }
        Ok(self.finish_tables())
    }

    /// Finishes the trace, given that all its actions are stored.
    pub(crate) fn finish_tables(mut self) -> LinkableRank {
        let trace = &mut self.linkable.trace;
        trace.storage = ActionStorage::Memory(self.records);
        trace.has_timing_dependent_matching = TableRequirements::of(&self.side).has_timing_dependent_matching
            || trace.graph.as_ref().is_some_and(|graph| graph.has_timing_dependent_matching());
        trace.side_tables = Arc::new(self.side);
        trace.slots = self.requests.slot_count();
        trace.pending_at_end = self.requests.pending_at_end().into();
        trace.has_named_requests = self.requests.has_names();
        trace.communicators = self.communicators.into_list().into();
        trace.outgoing = self.outgoing.into();
        (trace.incoming, trace.ports) = assign_ports(&self.incoming);
        self.linkable
    }
}

impl LinkableRank {
    /// Makes the trace of a rank without actions.
    pub(crate) fn empty(rank: Rank, ranks: u32) -> Self {
        RankBuilder::new(rank, ranks, &Store::new(0, None, None)).finish_tables()
    }
}

/// Assigns ports to incoming channels, in the order of first appearance: one per source, tag and communicator, but a single one
/// for all tags of a source and communicator if some receive takes any tag.
pub(crate) fn assign_ports(receiving: &[ReceiveKey]) -> (Box<[Incoming]>, u32) {
    let any_tag = receiving.iter().filter(|(_, tag, _)| tag.is_none());
    let mut shared: BTreeMap<(Rank, CommIdx), Option<PortId>> =
        any_tag.map(|(peer, _, communicator)| ((*peer, *communicator), None)).collect();
    let mut ports = 0;
    let mut incoming = Vec::with_capacity(receiving.len());
    for &(peer, tag, communicator) in receiving {
        let mut new = || {
            ports += 1;
            PortId::new(ports - 1)
        };
        let port = match shared.get_mut(&(peer, communicator)) {
            Some(port) => *port.get_or_insert_with(new),
            None => new(),
        };
        incoming.push(Incoming { peer, tag, communicator, port });
    }
    (incoming.into(), ports)
}
