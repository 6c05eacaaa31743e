//! Tables of a rank whose program is code: they grow while it runs.

use std::hash::Hash;

use elsa::sync::FrozenVec;
use pdes_core::Rank;
use rustc_hash::FxHashMap;

use super::RankTrace;
use crate::action::{CollectiveId, LocationId};
use crate::builder::{OpError, check_collective};
use crate::call::{Call, CallId};
use crate::channel::{Arrival, InIdx, Incoming, OutIdx, Outgoing, PortId, Tag};
use crate::collective::Collective;
use crate::communicator::{CommIdx, Communicator};

/// Entries after those of the tables of a [`RankTrace`]. Actions refer to both in the same way, so that a replay need not know whether
/// a program is recorded or runs.
#[derive(Debug, Default)]
pub(crate) struct GrowingTables {
    outgoing: FrozenVec<Box<Outgoing>>,
    incoming: FrozenVec<Box<Incoming>>,
    communicators: FrozenVec<Box<Communicator>>,
    collectives: FrozenVec<Box<Collective>>,
    calls: FrozenVec<Box<Call>>,
    locations: FrozenVec<String>,
}

/// Returns an entry of a table, or of what has been added to it.
///
/// # Panics
/// Panics if there is no such entry.
macro_rules! entry {
    ($trace:expr, $table:expr, $added:ident, $index:expr) => {
        match $table.get($index) {
            Some(entry) => entry,
            None => $trace.added(|tables| tables.$added.get($index - $table.len())),
        }
    };
}

impl RankTrace {
    /// Lets the tables grow: the program of the rank is known while it runs only. All messages match in the mailbox of the rank, because
    /// its receives are not known before. Its requests are named by their slots.
    pub(crate) fn grow(&mut self) {
        self.growing = Some(Box::default());
        self.has_named_requests = true;
        self.has_timing_dependent_matching = true;
    }

    /// Returns whether the program of the rank is known while it runs only; its tables grow then, and no action is stored.
    pub fn grows(&self) -> bool {
        self.growing.is_some()
    }

    #[cold]
    fn added<'a, T: ?Sized>(&'a self, find: impl FnOnce(&'a GrowingTables) -> Option<&'a T>) -> &'a T {
        self.growing.as_deref().and_then(find).expect("the identifier is from this rank")
    }

    /// Returns a channel to which the rank sends.
    ///
    /// # Panics
    /// Panics if the index is not from this rank.
    #[inline]
    pub fn outgoing_channel(&self, to: OutIdx) -> &Outgoing {
        entry!(self, self.outgoing, outgoing, to.index())
    }

    /// Returns a channel from which the rank receives.
    ///
    /// # Panics
    /// Panics if the index is not from this rank.
    #[inline]
    pub fn incoming_channel(&self, from: InIdx) -> &Incoming {
        entry!(self, self.incoming, incoming, from.index())
    }

    /// Returns a communicator of the rank.
    ///
    /// # Panics
    /// Panics if the index is not from this rank.
    #[inline]
    pub fn communicator(&self, index: CommIdx) -> &Communicator {
        entry!(self, self.communicators, communicators, index.index())
    }

    /// Returns a collective operation.
    ///
    /// # Panics
    /// Panics if the identifier is not from this rank.
    #[inline]
    pub fn collective(&self, id: CollectiveId) -> &Collective {
        match self.side_tables.collective(id) {
            Some(collective) => collective,
            None => {
                self.added(|tables| tables.collectives.get(id.index() - self.side_tables.collectives.len()))
            }
        }
    }

    /// Returns all call sites as `file:line`, in the order of their identifiers.
    pub fn locations(&self) -> impl Iterator<Item = &str> {
        let added = self.growing.iter().flat_map(|tables| tables.locations.iter());
        self.side_tables.locations.iter().map(|name| &**name).chain(added)
    }

    /// Returns a call site as `file:line`.
    ///
    /// # Panics
    /// Panics if the identifier is not from this rank.
    pub fn location(&self, id: LocationId) -> &str {
        let stored = &self.side_tables.locations;
        match stored.get(id.index()) {
            Some(site) => site,
            None => self.added(|tables| tables.locations.get(id.index() - stored.len())),
        }
    }

    /// Returns a call.
    ///
    /// # Panics
    /// Panics if the identifier is not from this rank.
    #[inline]
    pub fn call(&self, id: CallId) -> &Call {
        entry!(self, self.side_tables.calls, calls, id.index())
    }
}

/// Number of the first entries of a table that are compared one by one. Most ranks have no more, and maps of them would be a fifth of the
/// memory of a rank.
const FEW: usize = 4;

/// Writer of the tables of a rank while its program runs. Equal entries are stored once: maps find those after the first few.
///
/// # Panics
/// The functions panic beyond 2^32 different entries.
// Determinism: the hash maps are looked up, never iterated.
pub struct TableWriter<'t> {
    trace: &'t RankTrace,
    tables: &'t GrowingTables,
    outgoing: FxHashMap<(Rank, Tag, CommIdx), u32>,
    incoming: FxHashMap<(Rank, Option<Tag>, CommIdx), u32>,
    collectives: FxHashMap<String, u32>,
    calls: FxHashMap<Call, u32>,
    locations: FxHashMap<String, LocationId>,
}

impl<'t> TableWriter<'t> {
    /// Creates the writer of the tables of a rank; `None` unless they [grow](RankTrace::grows).
    pub fn new(trace: &'t RankTrace) -> Option<Self> {
        Some(Self {
            trace,
            tables: trace.growing.as_deref()?,
            outgoing: FxHashMap::default(),
            incoming: FxHashMap::default(),
            collectives: FxHashMap::default(),
            calls: FxHashMap::default(),
            locations: FxHashMap::default(),
        })
    }

    /// Returns the channel to a rank.
    pub fn outgoing(&mut self, peer: Rank, tag: Tag, communicator: CommIdx) -> OutIdx {
        let Self { trace, tables, outgoing, .. } = self;
        let channel = Outgoing::new(peer, tag, communicator, Arrival::AnySource);
        let key = || (peer, tag, communicator);
        let (table, entry) = ((&tables.outgoing, trace.outgoing.len()), |known: &_| *known == channel);
        OutIdx::new(index_of(table, outgoing, entry, key, || channel))
    }

    /// Returns the channel from a rank, with one tag or any.
    pub fn incoming(&mut self, peer: Rank, tag: Option<Tag>, communicator: CommIdx) -> InIdx {
        let Self { trace, tables, incoming, .. } = self;
        // Messages match in the mailbox: there are no ports.
        let channel = Incoming { peer, tag, communicator, port: PortId::new(0) };
        let key = || (peer, tag, communicator);
        let (table, entry) = ((&tables.incoming, trace.incoming.len()), |known: &_| *known == channel);
        InIdx::new(index_of(table, incoming, entry, key, || channel))
    }

    /// Returns the identifier of a collective operation on a communicator.
    ///
    /// # Errors
    /// Fails if its arguments are invalid there.
    pub fn collective(&mut self, operation: Collective, on: CommIdx) -> Result<CollectiveId, OpError> {
        let Self { trace, tables, collectives, .. } = self;
        check_collective(&operation, trace.communicator(on).group.len())?;
        let table = (&tables.collectives, trace.side_tables.collectives.len());
        // Amounts have no hash: the text of a value stands for it.
        let key = || format!("{operation:?}");
        let entry = |known: &_| *known == operation;
        Ok(CollectiveId::new(index_of(table, collectives, entry, key, || operation.clone())))
    }

    /// Returns the identifier of a call.
    pub fn call(&mut self, call: Call) -> CallId {
        let Self { trace, tables, calls, .. } = self;
        let table = (&tables.calls, trace.side_tables.calls.len());
        CallId::new(index_of(table, calls, |known| *known == call, || call.clone(), || call.clone()))
    }

    /// Returns the identifier of a call site, `file:line`.
    pub fn location(&mut self, site: &str) -> LocationId {
        let Self { trace, tables, locations, .. } = self;
        *locations.entry(site.to_owned()).or_insert_with_key(|site| {
            let index = trace.side_tables.locations.len() + tables.locations.push_get_index(site.clone());
            LocationId::new(u32::try_from(index).expect("a rank has fewer than 2^32 call sites"))
        })
    }

    /// Adds a communicator, which the rank has just made.
    pub fn communicator(&mut self, communicator: Communicator) -> CommIdx {
        CommIdx::new(add(&self.tables.communicators, self.trace.communicators.len(), communicator))
    }
}

/// Returns the index of the entry for which `is_equal` holds, of a table behind one of `stored` entries. If there is none yet, adds what
/// `new` makes.
fn index_of<T, K: Hash + Eq>(
    (table, stored): (&FrozenVec<Box<T>>, usize),
    map: &mut FxHashMap<K, u32>,
    is_equal: impl Fn(&T) -> bool,
    key: impl FnOnce() -> K,
    new: impl FnOnce() -> T,
) -> u32 {
    let mut first = table.iter().take(FEW).zip(stored as u32..);
    if let Some((_, index)) = first.find(|(entry, _)| is_equal(entry)) {
        return index;
    }
    if table.len() < FEW {
        return add(table, stored, new());
    }
    *map.entry(key()).or_insert_with(|| add(table, stored, new()))
}

/// Adds an entry; returns its index behind those that are stored.
fn add<T>(table: &FrozenVec<Box<T>>, stored: usize, entry: T) -> u32 {
    let index = stored + table.push_get_index(Box::new(entry));
    u32::try_from(index).expect("a rank has fewer than 2^32 entries of a table")
}
