//! Structure of a program: properties of its calls that follow from the trace alone, by call site and kind.

use std::collections::BTreeMap;

use mpi_model::ActionKind;
use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{Action, Call, Collective, CommIdx, LocationId, RankTrace, SendMode, Slot, Trace};

/// Messages below this size are small \[B\].
const SMALL: u64 = 1024;

macro_rules! properties {
    ($($(#[doc = $doc:literal])* $property:ident = $name:literal,)*) => {
        /// A number that is counted for the calls of one kind at one call site.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Property {
            $($(#[doc = $doc])* $property,)*
        }

        impl Property {
            /// Names of the variables in rules, with their meanings.
            pub(super) const NAMED: [(&str, &str); [$($name),*].len()] = [$(($name, concat!($($doc),*))),*];
        }
    };
}

properties! {
    /// Messages that point-to-point calls send.
    Sends = "sends",
    /// Messages that point-to-point calls send or receive; those that a nonblocking call receives count there.
    Messages = "messages",
    /// Those of less than a kibibyte.
    SmallMessages = "small_messages",
    /// Payload of messages sent, of collective operations on the rank, and of accesses to files \[B\].
    Bytes = "bytes",
    /// Sends that wait for their receive, and would not if they were up to half as long.
    SendsAboveLimit = "sends_above_limit",
    /// Synchronous sends.
    SynchronousSends = "synchronous_sends",
    /// Waits with no computation since the nonblocking call that they wait for.
    WaitsAtOnce = "waits_at_once",
    /// Barriers followed at once by another collective operation of the same communicator.
    BarriersBeforeCollective = "barriers_before_collective",
    /// Collective operations in which the rank neither sends nor receives data.
    Unused = "unused",
    /// Counts of data for the ranks of an alltoall.
    Counts = "counts",
    /// Those that are zero.
    ZeroCounts = "zero_counts",
}

/// Number of properties.
pub(super) const PROPERTIES: usize = Property::NAMED.len();

/// Numbers of the calls of one kind at one call site.
pub(super) type Counts = [u64; PROPERTIES];

/// Structure of a rank.
#[derive(Clone, Default)]
pub(super) struct RankStructure {
    /// Numbers of all calls, by call site and kind.
    pub(super) calls: FxHashMap<(Option<LocationId>, ActionKind), Counts>,
    /// Computation of the program by call site \[flop\].
    pub(super) flops: BTreeMap<Option<LocationId>, f64>,
}

impl RankStructure {
    /// Returns the computation of the whole program \[flop\].
    pub(super) fn all_flops(&self) -> f64 {
        self.flops.values().sum()
    }
}

/// Counts the properties of the calls of a rank, in time proportional to its actions; of iterations that are equal, one is read.
/// Messages of less than `detached_below` bytes do not wait for their receive.
pub(super) fn of_rank(trace: &Trace, rank: Rank, detached_below: Bytes) -> RankStructure {
    let rank = trace.rank(rank);
    let mut counter = Counter::new(rank, detached_below);
    let mut cursor = rank.cursor_with_boundaries();
    // The counts at the last boundary between equal iterations.
    let mut at_boundary: Option<RankStructure> = None;
    loop {
        match cursor.next() {
            Some(action) => counter.add(&action),
            None => match cursor.iteration_boundary() {
                None => return counter.found,
                Some(boundary) => match at_boundary.take() {
                    Some(before) if boundary.completed_equal > 1 => {
                        counter.repeat(&before, boundary.upcoming_equal);
                        cursor.skip_iterations(boundary.upcoming_equal);
                    }
                    _ => at_boundary = Some(counter.found.clone()),
                },
            },
        }
    }
}

/// State of the walk through a rank.
struct Counter<'a> {
    rank: &'a RankTrace,
    detached_below: u64,
    found: RankStructure,
    site: Option<LocationId>,
    /// Payload of the persistent sends, by slot \[B\].
    persistent: BTreeMap<Slot, (SendMode, u64)>,
    /// A nonblocking call has begun since the last wait, and whether the rank has computed since.
    started: Option<bool>,
    /// Call site and communicator of a barrier, if it is the last call.
    barrier: Option<(Option<LocationId>, CommIdx)>,
}

impl<'a> Counter<'a> {
    fn new(rank: &'a RankTrace, detached_below: Bytes) -> Self {
        Self {
            rank,
            detached_below: detached_below.get(),
            found: RankStructure::default(),
            site: None,
            persistent: BTreeMap::new(),
            started: None,
            barrier: None,
        }
    }

    /// Adds the growth since earlier counts `times` more times.
    fn repeat(&mut self, before: &RankStructure, times: u64) {
        for (site, flops) in &mut self.found.flops {
            *flops += (*flops - before.flops.get(site).copied().unwrap_or_default()) * times as f64;
        }
        for (place, counts) in &mut self.found.calls {
            let before = before.calls.get(place).copied().unwrap_or_default();
            for (count, before) in counts.iter_mut().zip(before) {
                *count = count.saturating_add((*count - before).saturating_mul(times));
            }
        }
    }

    fn add(&mut self, action: &Action) {
        let kind = ActionKind::of(*action, self.rank);
        match *action {
            Action::Location(site) => self.site = Some(site),
            Action::Init | Action::Finalize | Action::Communicator => {}
            Action::Compute { flops } => {
                *self.found.flops.entry(self.site).or_default() += flops;
                self.work();
            }
            Action::Sleep { .. } => self.work(),
            Action::Collective(id) => {
                self.add_collective(kind, self.rank.collective(id), CommIdx::WORLD, false);
            }
            Action::Call(id) => {
                let rank = self.rank;
                self.add_call(kind, rank.call(id));
            }
            _ => {
                self.barrier = None;
                match *action {
                    Action::Send { bytes, .. } => self.add_send(kind, SendMode::Standard, bytes.get()),
                    Action::Isend { bytes, .. } => {
                        self.add_send(kind, SendMode::Standard, bytes.get());
                        self.started.get_or_insert(false);
                    }
                    Action::Recv { bytes, .. } => self.add_message(kind, bytes.get()),
                    Action::Irecv { bytes, .. } => {
                        self.add_message(kind, bytes.get());
                        self.started.get_or_insert(false);
                    }
                    Action::SendRecv(id) => {
                        let both = self.rank.send_recv(id);
                        if both.to.is_some() {
                            self.add_exchange(kind, both.send_bytes.get());
                        }
                    }
                    Action::Wait { .. } | Action::WaitAll => self.add_wait(kind),
                    _ => {}
                }
            }
        }
    }

    /// Notes that the program works: barriers and nonblocking calls before are apart from what follows.
    fn work(&mut self) {
        self.barrier = None;
        self.started = self.started.map(|_| true);
    }

    fn add_call(&mut self, kind: ActionKind, call: &Call) {
        if let Call::Collective { operation, slot, communicator, .. } = call {
            let operation = self.rank.collective(*operation);
            return self.add_collective(kind, operation, *communicator, slot.is_some());
        }
        if kind == ActionKind::Marker {
            if let Call::SendInit { mode, bytes, slot, .. } = *call {
                self.persistent.insert(slot, (mode, bytes.get()));
            }
            return;
        }
        self.barrier = None;
        match *call {
            Call::Send { mode, to, bytes } if to.is_some() => self.add_send(kind, mode, bytes.get()),
            Call::Isend { mode, to, bytes, .. } => {
                if to.is_some() {
                    self.add_send(kind, mode, bytes.get());
                }
                self.started.get_or_insert(false);
            }
            Call::Recv { bytes, .. } => self.add_message(kind, bytes.get()),
            Call::Irecv { bytes, .. } => {
                self.add_message(kind, bytes.get());
                self.started.get_or_insert(false);
            }
            Call::SendRecv { to: Some(_), send_bytes, .. } => self.add_exchange(kind, send_bytes.get()),
            Call::Start { ref slots } => {
                for slot in slots {
                    if let Some(&(mode, bytes)) = self.persistent.get(slot) {
                        self.add_send(kind, mode, bytes);
                    }
                }
                self.started.get_or_insert(false);
            }
            Call::Waitall { .. } | Call::Waitany { .. } | Call::Waitsome { .. } => self.add_wait(kind),
            Call::NeighborAlltoall { slot: Some(_), .. } => {
                self.started.get_or_insert(false);
            }
            Call::Window { call, .. } => {
                self.count(kind, Property::Bytes, call.bytes().map_or(0, |bytes| bytes.get()));
            }
            Call::File { call, slot, .. } => {
                let bytes = call.access().map_or(0, |(_, bytes)| bytes.get());
                self.count(kind, Property::Bytes, bytes);
                if slot.is_some() {
                    self.started.get_or_insert(false);
                }
            }
            _ => {}
        }
    }

    fn add_send(&mut self, kind: ActionKind, mode: SendMode, bytes: u64) {
        self.add_exchange(kind, bytes);
        let is_synchronous = mode == SendMode::Synchronous;
        self.count(kind, Property::SynchronousSends, u64::from(is_synchronous));
        let waits = mode != SendMode::Buffered && bytes >= self.detached_below;
        let is_near = waits && !is_synchronous && bytes / 2 < self.detached_below;
        self.count(kind, Property::SendsAboveLimit, u64::from(is_near));
    }

    fn add_exchange(&mut self, kind: ActionKind, bytes: u64) {
        self.count(kind, Property::Sends, 1);
        self.count(kind, Property::Bytes, bytes);
        self.add_message(kind, bytes);
    }

    fn add_message(&mut self, kind: ActionKind, bytes: u64) {
        self.count(kind, Property::Messages, 1);
        self.count(kind, Property::SmallMessages, u64::from(bytes < SMALL));
    }

    fn add_wait(&mut self, kind: ActionKind) {
        let is_at_once = self.started.take() == Some(false);
        self.count(kind, Property::WaitsAtOnce, u64::from(is_at_once));
    }

    fn add_collective(
        &mut self,
        kind: ActionKind,
        operation: &Collective,
        communicator: CommIdx,
        is_nonblocking: bool,
    ) {
        let barrier = self.barrier.take();
        if let (Some((site, of)), false) = (barrier, is_nonblocking)
            && of == communicator
            && *operation != Collective::Barrier
        {
            let counts = self.found.calls.entry((site, ActionKind::Barrier)).or_default();
            counts[Property::BarriersBeforeCollective as usize] += 1;
        }
        if is_nonblocking {
            self.started.get_or_insert(false);
        } else if *operation == Collective::Barrier {
            self.barrier = Some((self.site, communicator));
        }
        if let Some(bytes) = operation.payload() {
            self.count(kind, Property::Bytes, bytes);
            self.count(kind, Property::Unused, u64::from(bytes == 0));
        }
        if let Collective::Alltoallv { send_counts, .. } = operation {
            self.count(kind, Property::Counts, send_counts.len() as u64);
            let zeros = send_counts.iter().filter(|&&count| count == 0).count();
            self.count(kind, Property::ZeroCounts, zeros as u64);
        }
    }

    fn count(&mut self, kind: ActionKind, property: Property, more: u64) {
        if more > 0 {
            let counts = self.found.calls.entry((self.site, kind)).or_default();
            counts[property as usize] = counts[property as usize].saturating_add(more);
        }
    }
}
