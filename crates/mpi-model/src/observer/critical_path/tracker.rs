//! Critical-path tracker: the paths that cause the completions of the requests of a rank.

mod endpoints;
mod saved;

use std::collections::BTreeMap;

use pdes_core::{Bytes, Rank, SimTime};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::channel::Receiver;
use super::store::{PathKey, PathStore, PathStores};
use super::transfer_times::TransferTimes;
use crate::critical_path::CriticalPath;
use crate::machine::UncontendedTransfer;
use crate::observer::ObservedRank;
use crate::observer::request_table::RequestTable;
use crate::point_to_point::RequestId;
use crate::statistics::ActionKind;
use endpoints::ChannelEndpoints;

/// Critical paths of a rank.
pub(in crate::observer) struct CriticalPathTracker<'t> {
    pub(super) me: Rank,
    pub(super) envelope: Bytes,
    /// Number of ports of the trace.
    pub(super) trace_ports: usize,
    /// Paths in flight: to all ranks, and to this one.
    pub(super) stores: &'t PathStores,
    pub(super) store: &'t PathStore,
    pub(super) channels: ChannelEndpoints<'t>,
    /// Path to the clock of the current thread of control; the time since its end is attributed when it is next used.
    pub(super) path: CriticalPath,
    /// Path to the clock of each non-blocking operation; while it runs, that of the program.
    pub(super) of_operations: Vec<Option<CriticalPath>>,
    /// Causes of the completions of requests.
    table: RequestTable<Cause>,
    /// Last request posted at the end of `path`, which is not in the table: most requests are complete before the path is extended,
    /// and need no copy of it.
    last: Option<PostedRequest>,
    /// Other requests posted there, or perhaps before. Empty without a last one.
    posted: Vec<RequestId>,
    /// Requests whose completion is after now, of those that are being completed together, with the time of completion.
    pub(super) due: Vec<(SimTime, RequestId)>,
    /// Transfer times without contention, to each port of this rank, and to other ranks.
    to_ports: Vec<TransferTimes>,
    pub(super) to_ranks: FxHashMap<Rank, TransferTimes>,
    /// Fragments from ranks of other processes of the operating system.
    pub(super) fragments: BTreeMap<Rank, Vec<u8>>,
}

/// A request posted at the end of the path.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PostedRequest {
    request: RequestId,
    flow: Option<DataFlow>,
    /// The message was sent later than the post: the cause is the next path in the channel of the flow's port.
    late: bool,
}

/// Cause of a later event: a path, followed by the flow of a message, if there is one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cause<P = CriticalPath> {
    /// `None` for the path of the rank itself while that ends at the post: most receives continue it.
    pub(super) path: Option<P>,
    pub(super) flow: Option<DataFlow>,
}

impl<P> Default for Cause<P> {
    fn default() -> Self {
        Self { path: None, flow: None }
    }
}

/// Transfer of the data of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum DataFlow {
    /// To a port of this rank.
    In { port: u32, bytes: Bytes },
    /// To another rank.
    Out { to: Rank, bytes: Bytes },
}

impl<'t> CriticalPathTracker<'t> {
    /// Creates the tracker of a rank, if it is of this process of the operating system.
    pub(in crate::observer) fn new(rank: &ObservedRank<'t>, stores: &'t PathStores) -> Option<Self> {
        let store = stores.of(rank.rank)?;
        Some(Self {
            me: rank.rank,
            envelope: rank.parameters.envelope,
            trace_ports: rank.trace.ports() as usize,
            stores,
            store,
            channels: ChannelEndpoints::new(store),
            path: CriticalPath::new(rank.rank),
            of_operations: Vec::new(),
            table: RequestTable::new(rank),
            last: None,
            posted: Vec::new(),
            due: Vec::new(),
            to_ports: Vec::new(),
            to_ranks: FxHashMap::default(),
            fragments: BTreeMap::new(),
        })
    }

    /// Records that a request has been posted at the end of the path.
    #[inline(always)]
    pub(super) fn post(&mut self, request: RequestId, flow: Option<DataFlow>) {
        if let Some(before) = self.last.replace(PostedRequest { request, flow, late: false }) {
            self.move_to_table_and_remember(before);
        }
    }

    #[inline(never)]
    fn move_to_table_and_remember(&mut self, posted: PostedRequest) {
        self.move_to_table(posted);
        self.posted.push(posted.request);
    }

    /// Moves what was the last request to the table.
    fn move_to_table(&mut self, PostedRequest { request, flow, late }: PostedRequest) -> &mut Cause {
        let path = match flow {
            Some(DataFlow::In { port, .. }) if late => {
                self.channels.receiver(port as usize).map(Receiver::receive_new)
            }
            _ => None,
        };
        let cause = self.table.get_mut(request);
        *cause = Cause { path, flow };
        cause
    }

    /// Drops the last request, which no longer needs the path.
    #[inline(always)]
    fn drop_last(&mut self) {
        self.last = None;
        if !self.posted.is_empty() {
            self.restore_last();
        }
    }

    #[inline(never)]
    fn restore_last(&mut self) {
        while let Some(request) = self.posted.pop() {
            if let &mut Cause { path: None, flow } = self.table.get_mut(request) {
                self.last = Some(PostedRequest { request, flow, late: false });
                return;
            }
        }
    }

    /// Records the flow that follows the post of a request.
    #[inline(always)]
    pub(super) fn set_flow(&mut self, request: RequestId, flow: DataFlow) {
        match &mut self.last {
            Some(last) if last.request == request => last.flow = Some(flow),
            _ => self.table.get_mut(request).flow = Some(flow),
        }
    }

    /// Records the flow that follows a message which was sent later than the last request was posted, and which is the next one of
    /// its port; returns whether it is so. Then its path stays in the channel until the rank switches to it.
    #[inline(always)]
    pub(super) fn set_late_flow(&mut self, request: RequestId, port: usize, flow: DataFlow) -> bool {
        match &mut self.last {
            Some(last) if last.request == request && self.channels.receiver(port).is_some() => {
                (last.flow, last.late) = (Some(flow), true);
                true
            }
            _ => false,
        }
    }

    /// Returns the cause of the completion of a request, for a change: the post is not the only cause.
    pub(super) fn cause(&mut self, request: RequestId) -> &mut Cause {
        if let Some(last) = self.last.filter(|last| last.request == request) {
            self.drop_last();
            return self.move_to_table(last);
        }
        self.table.get_mut(request)
    }

    pub(super) fn set(&mut self, request: RequestId, path: Option<CriticalPath>, flow: Option<DataFlow>) {
        *self.cause(request) = Cause { path, flow };
    }

    /// Returns the path to the post of a request.
    pub(super) fn path_to_post(&mut self, request: RequestId) -> &CriticalPath {
        if self.last.is_some_and(|last| last.request == request) {
            return &self.path;
        }
        self.table.get_mut(request).path.as_ref().unwrap_or(&self.path)
    }

    /// Returns the path to the clock, to be extended. Requests posted at its end get copies of it first.
    #[inline]
    pub(super) fn path_to_extend(&mut self) -> &mut CriticalPath {
        if self.last.is_some() {
            self.keep_posted();
        }
        &mut self.path
    }

    #[inline(never)]
    fn keep_posted(&mut self) {
        if let Some(last) = self.last.take() {
            self.move_to_table_and_remember(last);
        }
        while let Some(request) = self.posted.pop() {
            self.table.get_mut(request).path.get_or_insert_with(|| self.path.clone());
        }
    }

    /// Extends the path in place where it leads to the post of the request, a receive whose message was then in flight until `at`;
    /// returns whether it did. Fast path: most receives are so.
    #[inline(always)]
    pub(super) fn try_extend_in_place(&mut self, request: RequestId, at: SimTime, kind: ActionKind) -> bool {
        if self.posted.is_empty()
            && let Some(last) = self.last
            && let PostedRequest { flow: Some(DataFlow::In { port, bytes }), late: false, .. } = last
            && last.request == request
            && let Some(uncontended) = self.last_uncontended(port, bytes)
            && self.path.try_add_transfer(kind, uncontended, at)
        {
            self.last = None;
            return true;
        }
        false
    }

    /// Switches to the path that caused the later completion of a request of this rank; returns the flow that follows.
    #[inline(always)]
    pub(super) fn switch_path(&mut self, request: RequestId) -> Option<DataFlow> {
        if let Some(PostedRequest { flow, late, .. }) = self.last.filter(|last| last.request == request) {
            self.drop_last();
            self.path_to_extend();
            if let Some(DataFlow::In { port, .. }) = flow
                && late
                && let Some(channel) = self.channels.receiver(port as usize)
            {
                channel.receive(&mut self.path);
                self.path.move_to(self.me);
            }
            return flow;
        }
        self.path_to_extend();
        let Cause { path, flow } = self.table.get_mut(request);
        if let Some(path) = path {
            self.path.clone_from(path);
            self.path.move_to(self.me);
        }
        *path = None;
        *flow
    }

    /// Removes and returns the path with this key, if there is one.
    pub(super) fn take_path(&mut self, key: PathKey) -> Option<CriticalPath> {
        match self.channels.receiver_of(key) {
            Some((channel, _)) => Some(channel.receive_new()),
            None => self.store.take(key),
        }
    }

    /// Returns a copy of the path with this key, if there is one.
    pub(super) fn peek_path(&mut self, key: PathKey) -> Option<CriticalPath> {
        match self.channels.receiver_of(key) {
            Some((channel, posted)) => channel.peek(posted),
            None => self.store.peek(key),
        }
    }

    /// Returns the transfer time without contention of a message to a port, if the last one had the same size.
    #[inline(always)]
    pub(super) fn last_uncontended(&self, port: u32, bytes: Bytes) -> Option<UncontendedTransfer> {
        self.to_ports.get(port as usize)?.last_for(bytes)
    }

    pub(super) fn transfer_times(&mut self, port: u32) -> &mut TransferTimes {
        let port = port as usize;
        if self.to_ports.len() <= port {
            self.to_ports.resize_with(port + 1, TransferTimes::default);
        }
        &mut self.to_ports[port]
    }
}
