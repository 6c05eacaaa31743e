//! The trace of a rank while its lines are read.

mod requests;

pub(crate) use requests::RequestKey;
use requests::Requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::action::{Action, CollectiveId, LocationId, SendRecv, SendRecvId};
use crate::channel::{InIdx, Incoming, OutIdx, Outgoing, PortId, Tag};
use crate::collective::Collective;
use crate::datatype::Datatype;
use crate::error::TraceError;
use crate::record::Record;
use crate::side::Side;
use crate::store::{CHUNK, Records, Store};
use crate::trace::{Body, RankTrace};

/// The trace of a rank, with what is needed to resolve names to indices.
///
/// The maps are only asked, never iterated: the order of the tables is that of first appearance.
pub(crate) struct RankDraft {
    rank: Rank,
    ranks: u32,
    default_type: Option<Datatype>,
    buffer: Vec<Record>,
    records: Records,
    side: Side,
    linkable: Linkable,
    pub(crate) requests: Requests,
    receiving: Vec<(Rank, Option<Tag>)>,
    outgoing_by_key: FxHashMap<(Rank, Tag), OutIdx>,
    incoming_by_key: FxHashMap<(Rank, Option<Tag>), InIdx>,
    collective_by_text: FxHashMap<Box<[u8]>, (CollectiveId, bool)>,
    send_recv_by_value: FxHashMap<SendRecv, SendRecvId>,
    location_by_name: FxHashMap<String, LocationId>,
}

/// A trace of a rank that is complete but for the ports of its outgoing channels.
#[derive(Default)]
pub(crate) struct Linkable {
    pub(crate) trace: RankTrace,
    /// Messages of each outgoing channel.
    pub(crate) sends: Vec<u64>,
    /// Receives of each incoming channel.
    pub(crate) receives: Vec<u64>,
    /// Receives from any source.
    pub(crate) receives_from_any: u64,
}

impl RankDraft {
    /// Starts the trace of a rank of a run on this many ranks.
    pub(crate) fn new(rank: Rank, ranks: u32) -> Self {
        Self {
            rank,
            ranks,
            default_type: None,
            buffer: Vec::new(),
            records: Records::default(),
            side: Side::default(),
            linkable: Linkable::default(),
            requests: Requests::default(),
            receiving: Vec::new(),
            outgoing_by_key: FxHashMap::default(),
            incoming_by_key: FxHashMap::default(),
            collective_by_text: FxHashMap::default(),
            send_recv_by_value: FxHashMap::default(),
            location_by_name: FxHashMap::default(),
        }
    }

    /// Returns the rank.
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of ranks of the run.
    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the datatype of fields that are left out, once there was an `init`.
    pub(crate) fn default_type(&self) -> Option<Datatype> {
        self.default_type
    }

    /// Sets the datatype of fields that are left out.
    pub(crate) fn set_default_type(&mut self, datatype: Datatype) {
        if self.default_type.replace(datatype) != Some(datatype) {
            self.collective_by_text.clear();
        }
    }

    /// Appends an action.
    #[inline]
    pub(crate) fn push(&mut self, action: Action, store: &Store<'_>) -> Result<(), TraceError> {
        self.buffer.push(Record::encode(action));
        if self.buffer.len() == CHUNK {
            let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
            self.records.push(full, store)?;
        }
        Ok(())
    }

    /// Counts a message to this channel.
    #[inline]
    pub(crate) fn send_to(&mut self, peer: Rank, tag: Tag) -> OutIdx {
        let Linkable { trace, sends, .. } = &mut self.linkable;
        let index = *self.outgoing_by_key.entry((peer, tag)).or_insert_with(|| {
            trace.outgoing.push(Outgoing { peer, tag, port: None });
            sends.push(0);
            OutIdx::new(sends.len() as u32 - 1)
        });
        sends[index.index()] += 1;
        index
    }

    /// Counts a receive from this channel.
    #[inline]
    pub(crate) fn receive_from(&mut self, peer: Rank, tag: Option<Tag>) -> InIdx {
        let receives = &mut self.linkable.receives;
        let index = *self.incoming_by_key.entry((peer, tag)).or_insert_with(|| {
            self.receiving.push((peer, tag));
            receives.push(0);
            InIdx::new(receives.len() as u32 - 1)
        });
        receives[index.index()] += 1;
        index
    }

    /// Counts a receive from any source.
    pub(crate) fn receive_from_any(&mut self) {
        self.linkable.receives_from_any += 1;
    }

    /// Stores a combined send and receive, once per value.
    pub(crate) fn send_recv(&mut self, value: SendRecv) -> SendRecvId {
        let values = &mut self.side.send_recvs;
        *self.send_recv_by_value.entry(value).or_insert_with(|| {
            values.push(value);
            SendRecvId::new(values.len() as u32 - 1)
        })
    }

    /// Stores a call site, once per value.
    pub(crate) fn location(&mut self, file: &str, line: i64) -> LocationId {
        let names = &mut self.side.locations;
        *self.location_by_name.entry(format!("{file}:{line}")).or_insert_with_key(|name| {
            names.push(name.clone());
            LocationId::new(names.len() as u32 - 1)
        })
    }

    /// Finds a collective by its text, and whether that has extra fields.
    pub(crate) fn known_collective(&self, text: &[u8]) -> Option<(CollectiveId, bool)> {
        self.collective_by_text.get(text).copied()
    }

    /// Stores a collective under its text.
    pub(crate) fn remember_collective(
        &mut self,
        text: &[u8],
        value: Collective,
        has_extra: bool,
    ) -> CollectiveId {
        let collectives = &mut self.side.collectives;
        let id = CollectiveId::new(collectives.len() as u32);
        collectives.push(value);
        self.collective_by_text.insert(text.into(), (id, has_extra));
        id
    }

    /// Ends the trace.
    pub(crate) fn finish(mut self, store: &Store<'_>) -> Result<Linkable, TraceError> {
        if !self.buffer.is_empty() {
            let rest = std::mem::take(&mut self.buffer);
            self.records.push(rest, store)?;
        }
        Ok(self.finish_tables())
    }

    /// Ends the trace where its last actions are stored already.
    pub(crate) fn finish_tables(mut self) -> Linkable {
        let trace = &mut self.linkable.trace;
        trace.body = Body::Memory(self.records);
        trace.side = Arc::new(self.side);
        trace.slots = self.requests.slots();
        trace.pending_at_end = self.requests.pending_at_end();
        (trace.incoming, trace.ports) = assign_ports(&self.receiving);
        self.linkable
    }
}

/// Numbers the ports by first appearance: one per source and tag, but one for all tags of a source from which some
/// receive takes any tag.
pub(crate) fn assign_ports(receiving: &[(Rank, Option<Tag>)]) -> (Vec<Incoming>, u32) {
    let mut shared: BTreeMap<Rank, Option<PortId>> =
        receiving.iter().filter(|(_, tag)| tag.is_none()).map(|(peer, _)| (*peer, None)).collect();
    let mut ports = 0;
    let mut incoming = Vec::with_capacity(receiving.len());
    for &(peer, tag) in receiving {
        let mut new = || {
            ports += 1;
            PortId::new(ports - 1)
        };
        let port = match shared.get_mut(&peer) {
            Some(port) => *port.get_or_insert_with(new),
            None => new(),
        };
        incoming.push(Incoming { peer, tag, port });
    }
    (incoming, ports)
}
