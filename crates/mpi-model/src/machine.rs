//! The machine on which a program runs, as the MPI library sees it: routes, transfer times, speeds.

use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

use std::ops::Range;

use pdes_core::{Bytes, LpId, Rank, SimDuration, SimTime, StateVisitor};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, FileDirection};

use crate::completion::Completion;

/// Model of the hardware: the cost of computing and sending.
///
/// A machine without contention answers at once, by [`transfer`](Machine::transfer) and [`speed`](Machine::speed). A
/// machine whose links or cores are shared answers in the order of time: [`work_request`](Machine::work_request) makes requests
/// to the [`Region`](pdes_core::Region) that simulates them, which reports their end by [`Completion::received`].
///
/// # Laws
/// All answers depend on the arguments alone, and those that take an instant are constant from each
/// [change](Machine::next_change) to the next. A machine that makes a request for some work makes one for all work of this
/// kind.
pub trait Machine: Sync {
    /// Route between two ranks, looked up once and used for every message.
    type Route: Copy + Send;
    /// Request for work in the order of time; [`Infallible`](std::convert::Infallible) where there is none.
    type WorkRequest: Copy + Send;
    /// Reason why there is no route.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the route from one rank to another, which may be the same.
    ///
    /// # Errors
    /// There is no route.
    fn route(&self, from: Rank, to: Rank) -> Result<Self::Route, Self::Error>;

    /// Makes a request for some work, which begins when the request is submitted; `None` (the default) where the cost of the work
    /// follows from [`transfer`](Machine::transfer) or [`speed`](Machine::speed).
    #[inline]
    fn work_request(&self, work: Work<Self::Route>, completion: Completion) -> Option<Self::WorkRequest> {
        let _ = (work, completion);
        None
    }

    /// Returns whether the end of a computation of a rank depends on nothing else in the machine, because no other rank uses its
    /// core. The rank then runs ahead of work in progress, and mostly makes no request for a computation. `false` by default.
    #[inline]
    fn has_dedicated_core(&self, rank: Rank) -> bool {
        let _ = rank;
        false
    }

    /// Returns whether no other rank is on the host of a rank; `false` by default.
    fn has_own_host(&self, rank: Rank) -> bool {
        let _ = rank;
        false
    }

    /// Returns the first instant after another one at which an answer changes; `None` (the default) where none does any more.
    fn next_change(&self, after: SimTime) -> Option<SimTime> {
        let _ = after;
        None
    }

    /// Returns the time from `begin`, when both sides are ready, to the arrival of the last byte; `None` where it exceeds a
    /// [`SimDuration`].
    ///
    /// `bytes` includes the envelope. Called for every message without a work request, and for the messages of collective
    /// operations in closed form, which never contend.
    fn transfer(&self, route: Self::Route, bytes: Bytes, begin: SimTime) -> Option<SimDuration>;

    /// Returns the transfer time of a message without contention that begins at an instant, in its parts, cut at the longest
    /// [`SimDuration`]. By default, the latency is the transfer time of a message of zero bytes.
    fn uncontended(&self, route: Self::Route, bytes: Bytes, begin: SimTime) -> UncontendedTransfer {
        UncontendedTransfer::new(self.transfer(route, bytes, begin), self.transfer(route, Bytes::ZERO, begin))
    }

    /// Returns the speed of a rank [flop/s] at an instant.
    fn speed(&self, rank: Rank, at: SimTime) -> f64;

    /// Returns whether the speed of a rank ever changes; `false` by default.
    fn has_changing_speed(&self, rank: Rank) -> bool {
        let _ = rank;
        false
    }

    /// Returns the time of a computation without a work request that begins at an instant; `None` where it exceeds a [`SimDuration`].
    /// Called where the speed [changes](Machine::has_changing_speed); by default, it is that at the begin.
    fn compute_time(&self, rank: Rank, flops: f64, begin: SimTime) -> Option<SimDuration> {
        SimDuration::try_from_picos_f64(flops * (1e12 / self.speed(rank, begin)))
    }

    /// Returns whether there is [noise](Machine::noise); `false` by default.
    fn has_noise(&self) -> bool {
        false
    }

    /// Returns the noise of the operating system in a computation of a rank that begins at an instant and takes a time without noise, which
    /// is not zero; none by default. Called where [there is any](Machine::has_noise), unless the rank knows that its host is quiet: `known`
    /// is the quiet time that was answered last.
    fn noise(
        &self,
        rank: Rank,
        begin: SimTime,
        length: SimDuration,
        known: &Range<SimTime>,
    ) -> ComputationNoise {
        let _ = (rank, begin, length, known);
        ComputationNoise { delay: SimDuration::ZERO, quiet: SimTime::ZERO..SimTime::MAX }
    }

    /// Returns whether [accelerators](Machine::accelerator) compute for ranks; `false` by default.
    fn has_accelerators(&self) -> bool {
        false
    }

    /// Returns the accelerator on which the program of a rank computes in a region; `None` (the default) where a core of its host does.
    fn accelerator(&self, rank: Rank, region: &str) -> Option<Accelerator<Self::Route>> {
        let _ = (rank, region);
        None
    }

    /// Returns the time of a computation on an accelerator without a work request that begins at an instant; `None` where it exceeds a
    /// [`SimDuration`]. By default, the speed stays that at the begin of the run.
    fn accelerator_time(
        &self,
        accelerator: &Accelerator<Self::Route>,
        flops: f64,
        begin: SimTime,
    ) -> Option<SimDuration> {
        let _ = begin;
        SimDuration::try_from_picos_f64(flops * (1e12 / accelerator.speed))
    }

    /// Returns the bandwidth with which a rank reads and writes the memory of its host \[B/s\]; infinite by default.
    fn memory_bandwidth(&self, rank: Rank) -> f64 {
        let _ = rank;
        f64::INFINITY
    }

    /// Returns the place of a file as a rank sees it; `None` (the default) if the machine has no storage, for any rank and file.
    ///
    /// # Errors
    /// The rank sees no device with this file, or there is no route to it.
    fn find_file(&self, rank: Rank, file: &str) -> Result<Option<FilePlace<Self::Route>>, Self::Error> {
        let _ = (rank, file);
        Ok(None)
    }

    /// Returns whether times depend on the positions of accesses in their files; true by default.
    fn has_file_positions(&self) -> bool {
        true
    }

    /// Returns the duration of an access that begins at an instant, for machines that make no work request of it; `None` where it
    /// exceeds a [`SimDuration`]. `history` is what the accesses of the rank have left on the device before, and is brought up to date.
    fn access_time(
        &self,
        access: &FileAccess,
        begin: SimTime,
        history: &mut DeviceHistory,
    ) -> Option<SimDuration> {
        let _ = (access, begin, history);
        None
    }

    /// Returns the number of a communicator for the switches that carry out its [operations](Work::Switches); `None` (the default) where the
    /// cost of these follows from [`transfer`](Machine::transfer).
    fn switch_communicator(&self, communicator: CommId) -> Option<u32> {
        let _ = communicator;
        None
    }

    /// Returns the number of the node of a rank. Some collective algorithms depend on which ranks share a node.
    fn node(&self, rank: Rank) -> u32;
}

/// Transfer time of a message without contention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UncontendedTransfer {
    /// Part that does not depend on bandwidths.
    pub latency: SimDuration,
    /// Remaining part.
    pub bandwidth: SimDuration,
}

impl UncontendedTransfer {
    /// Splits a time; a latency above the whole becomes the whole. `None` stands for more than a [`SimDuration`] holds.
    pub fn new(all: Option<SimDuration>, latency: Option<SimDuration>) -> Self {
        let longest = SimDuration::from_picos(u64::MAX);
        let all = all.unwrap_or(longest);
        let latency = latency.unwrap_or(longest).min(all);
        Self { latency, bandwidth: SimDuration::from_picos(all.as_picos() - latency.as_picos()) }
    }
}

/// Accelerator on which the program of a rank computes in a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accelerator<Route> {
    /// Number of its host.
    pub host: u32,
    /// Speed of one of its cores [flop/s] at the begin of the run.
    pub speed: f64,
    /// Bandwidth with which a rank reads and writes its memory \[B/s\].
    pub memory_bandwidth: f64,
    /// Route and size of the copy to it where the region begins.
    pub copy_in: Option<(Route, Bytes)>,
    /// Route and size of the copy from it where the region ends.
    pub copy_out: Option<(Route, Bytes)>,
}

/// Work that ranks ask of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work<Route> {
    /// Transfer of a message.
    Transfer {
        /// Its route.
        route: Route,
        /// Size on the wire, envelope included \[B\].
        bytes: Bytes,
    },
    /// Computation on a core.
    Compute {
        /// Number of floating-point operations.
        flops: f64,
        /// Number of the host of the accelerator that computes; by default the host of the rank does.
        accelerator: Option<u32>,
    },
    /// Operation on a file.
    Access(FileAccess),
    /// Part of a node in an operation of switches: it ends when the node has received the last byte or, if it receives nothing, when the
    /// last byte has left it.
    Switches {
        /// Number of the [communicator](Machine::switch_communicator).
        communicator: u32,
        /// Number of the operation among those on the communicator.
        number: u32,
        /// Operation, with numbers of nodes.
        operation: SwitchOperation<u32>,
        /// Size of the vector on the wire, envelope included.
        bytes: Bytes,
    },
    /// Delay.
    Sleep {
        /// Its length.
        duration: SimDuration,
    },
    /// Nothing: work that was requested by logical processes from `first` to before `end` is not done any more. Only if
    /// [death](crate::Launcher::death) comes to programs.
    Abandon {
        /// The first process.
        first: LpId,
        /// The process after the last one.
        end: LpId,
    },
}

/// Operation of switches on the vectors of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOperation<P> {
    /// All members send, and all receive the combination of their vectors.
    Allreduce,
    /// All members send, and one receives the combination.
    Reduce {
        /// That member.
        to: P,
    },
    /// One member sends, and the others receive copies.
    Bcast {
        /// That member.
        from: P,
    },
}

impl<P> SwitchOperation<P> {
    /// Returns the operation with `number(member)` in place of a member.
    pub fn map<Q>(self, number: impl FnOnce(P) -> Q) -> SwitchOperation<Q> {
        match self {
            Self::Allreduce => SwitchOperation::Allreduce,
            Self::Reduce { to } => SwitchOperation::Reduce { to: number(to) },
            Self::Bcast { from } => SwitchOperation::Bcast { from: number(from) },
        }
    }
}

/// Noise in a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputationNoise {
    /// Time by which it is longer.
    pub delay: SimDuration,
    /// Time near its end without any event: a computation within it has no noise. It may be empty, or shorter than it could be.
    pub quiet: Range<SimTime>,
}

/// Place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlace<Route> {
    /// Device or file system.
    pub storage: StorageKind,
    /// Its number.
    pub number: u32,
    /// Routes to and from the device, unless it belongs to the host of the rank.
    pub remote: Option<(Route, Route)>,
}

/// Storage that a rank accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageKind {
    /// A device: the rank transfers its data, and accesses it.
    Device,
    /// A file system: its clients and servers do all work of an access, and of opening and synchronising a file.
    FileSystem,
}

/// Access to a part of a file, or another operation on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAccess {
    /// Number of the device or of the file system.
    pub number: u32,
    /// Hash of the name of the file.
    pub file: u32,
    /// First position in the file \[B\]; the first position of a shared pointer.
    pub offset: u64,
    /// Size \[B\].
    pub bytes: u64,
    /// Number of the pointer that ranks share, which decides the position; `None` for the position above.
    pub shared_pointer: Option<NonZeroU32>,
    /// Device or file system.
    pub storage: StorageKind,
    /// Operation.
    pub operation: FileOperation,
}

const _: () = assert!(size_of::<FileAccess>() <= 32, "it is a part of all work");

/// State of a device that one rank alone uses, after the accesses of this rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceHistory {
    /// File and position at which the last access ended.
    pub last: Option<(u32, u64)>,
    /// Instant from which the write cache is empty, if nothing else is accessed.
    pub cache_empty_at: SimTime,
}

impl DeviceHistory {
    /// Returns a history that makes the next access take longest: that of a device whose state is not known.
    pub(crate) fn unknown() -> Self {
        Self { last: None, cache_empty_at: SimTime::from_picos(u64::MAX) }
    }

    /// Visits the history of a device; an instant before `past` makes no difference.
    pub(crate) fn visit(&mut self, has_positions: bool, past: SimTime, visitor: &mut StateVisitor<'_>) {
        let Self { last, cache_empty_at } = self;
        visitor.compare(&last.filter(|_| has_positions));
        visitor.time_from(past, cache_empty_at);
    }
}

/// Operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOperation {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Reads what exists of a part, before some of it is written.
    ReadExisting,
    /// Opens the file.
    Open,
    /// Waits until all data are on devices.
    Sync,
}

impl From<FileDirection> for FileOperation {
    fn from(direction: FileDirection) -> Self {
        match direction {
            FileDirection::Read => Self::Read,
            FileDirection::Write => Self::Write,
        }
    }
}

impl FileAccess {
    /// Maximum number of steps of an access: on the device, and a transfer of its data.
    pub(crate) const MAX_STEPS: u8 = 2;

    /// Creates an operation on a file, with an access to nothing.
    pub(crate) fn new<Route>(place: &FilePlace<Route>, file: &str, operation: FileOperation) -> Self {
        let &FilePlace { storage, number, .. } = place;
        let file = Self::file_number(file);
        Self { number, file, offset: 0, bytes: 0, shared_pointer: None, storage, operation }
    }

    /// Returns this access at another part of the file.
    pub(crate) fn at(self, offset: u64, bytes: u64) -> Self {
        Self { offset, bytes, ..self }
    }

    /// Returns the number of a file by its name.
    pub fn file_number(file: &str) -> u32 {
        let mut hasher = FxHasher::default();
        file.hash(&mut hasher);
        hasher.finish() as u32
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_nothing(&self) -> bool {
        match self.operation {
            FileOperation::Read | FileOperation::Write | FileOperation::ReadExisting => self.bytes == 0,
            FileOperation::Open | FileOperation::Sync => self.storage == StorageKind::Device,
        }
    }
}
