//! Clusters: the processes of the operating system that run one simulation.

mod backend;
pub(crate) mod backoff;
mod collective;
mod cores;
pub(crate) mod encoding;
mod memory;
#[cfg(feature = "mpi")]
mod mpi;
mod transport;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::SimTime;
use backend::Backend;
use backoff::Backoff;
pub(crate) use collective::FragmentAssembler;
use transport::DepartureCause;
pub(crate) use transport::{ReceivedMessage, Transport};

/// One member's handle on a cluster, the processes of the operating system (members) that run a simulation together.
///
/// Every member makes the same calls of [`Engine::run_distributed`](crate::Engine::run_distributed), and of the collective
/// calls below, in the same order. A member that drops its cluster leaves it, and waits until all others have left as
/// well. Members that still need it get an error, so that a member that fails on its own, with an error or a panic, blocks
/// nobody.
pub struct Cluster {
    transport: Transport,
    /// True if this member has announced its departure.
    has_left: bool,
    /// Number of collective calls (runs included) that this member has begun.
    begun: u32,
    /// Number of the last collective call that this member has completed.
    completed: u32,
}

/// An error that ends a simulation on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterError {
    /// A member has left the cluster before the simulation ended, because it failed on its own.
    MemberLeft {
        /// Member that left.
        member: usize,
        /// Message of its panic; `None` if it left without one.
        message: Option<String>,
    },
    /// A member received data that are not tokens for its processes: the sender runs another version of the program.
    Undecodable {
        /// Member that received them.
        receiver: usize,
    },
    /// A member runs another simulation.
    Mismatch {
        /// The other member.
        member: usize,
        /// Parameters of its run.
        theirs: RunParameters,
        /// Parameters of this member's run.
        ours: RunParameters,
    },
}

/// The parameters of a run, on which all members must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunParameters {
    /// Number of processes of the simulation.
    pub lps: u32,
    /// Number of workers of each member.
    pub workers: u32,
    /// Size of a token in memory \[B\], of the largest type of message.
    pub token_bytes: u32,
}

impl Cluster {
    /// Runs a program once for each member of a cluster whose members are threads of this process; returns the result of
    /// each, or its panic. It serves to test programs that run on processes.
    ///
    /// # Panics
    /// If `members` is zero.
    pub fn in_memory<R: Send>(
        members: usize,
        program: impl Fn(Cluster) -> R + Sync,
    ) -> Vec<thread::Result<R>> {
        assert!(members > 0, "a cluster needs at least one member");
        thread::scope(|scope| {
            let backends = memory::connect(members);
            // Each cluster is made in the thread of its member, because clusters over MPI are not `Send`.
            let program = &program;
            let member = |backend| scope.spawn(move || program(Self::with_backend(Backend::Memory(backend))));
            let threads: Vec<_> = backends.into_iter().map(member).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        })
    }

    /// Makes a cluster of this process alone.
    ///
    /// ```
    /// let mut cluster = pdes_core::Cluster::alone();
    /// assert_eq!((cluster.member(), cluster.members()), (0, 1));
    /// assert_eq!(cluster.first_failure(true), Ok(None));
    /// ```
    pub fn alone() -> Self {
        let backend = memory::connect(1).pop().expect("one member is connected");
        Self::with_backend(Backend::Memory(backend))
    }

    /// Joins the processes that `mpirun` or another launcher has started; a process that was started alone is a cluster of
    /// one.
    ///
    /// The calling thread has to keep the cluster. Dropping it finalises MPI.
    ///
    /// # Errors
    /// If MPI has been initialised already, or does not support several threads.
    #[cfg(feature = "mpi")]
    pub fn from_mpi() -> Result<Self, MpiError> {
        mpi::MpiBackend::new().map(|link| Self::with_backend(Backend::Mpi(link)))
    }

    fn with_backend(link: Backend) -> Self {
        Self { transport: Transport::new(link), has_left: false, begun: 0, completed: 0 }
    }

    /// Returns the index of this member, counted from zero.
    pub fn member(&self) -> usize {
        self.transport.me()
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.transport.members()
    }

    pub(crate) fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Begins a run or another collective call.
    ///
    /// # Panics
    /// If this member has failed before.
    pub(crate) fn begin(&mut self) {
        assert!(!self.has_left, "this member of the cluster has failed before, and the others know");
        self.begun += 1;
        self.transport.begin(self.begun);
    }

    /// Marks the present call as completed.
    pub(crate) fn complete(&mut self) {
        self.completed = self.begun;
    }

    /// Checks that no member has left before it completed the present call.
    ///
    /// # Errors
    /// If a member has left; the error names the first cause.
    pub(crate) fn check(&self) -> Result<(), ClusterError> {
        match self.transport.early_departure(self.begun).cloned() {
            Some(DepartureCause { member, message }) => Err(ClusterError::MemberLeft { member, message }),
            None => Ok(()),
        }
    }

    /// Runs this member's part of a call. If it panics, the other members are notified and the panic is propagated.
    pub(crate) fn reporting_panics<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| run(&mut *self)));
        result.unwrap_or_else(|panic| {
            self.fail(Some(panic_message(&*panic)));
            std::panic::resume_unwind(panic)
        })
    }

    /// Leaves the cluster at once because this member has failed; `message` is that of its panic, if it has panicked.
    pub(crate) fn fail(&mut self, message: Option<&str>) {
        if !self.has_left {
            self.has_left = true;
            self.transport.discard_outgoing();
            let cause = DepartureCause { member: self.member(), message: message.map(str::to_owned) };
            self.transport.announce_departure(self.completed, &cause);
        }
    }

    /// Fails the present call for all members because this one received data that it cannot decode.
    pub(crate) fn fail_undecodable(&mut self) -> ClusterError {
        self.fail(None);
        ClusterError::Undecodable { receiver: self.member() }
    }

    /// Leaves the cluster after all queued frames have been sent.
    fn leave(&mut self) {
        let mut backoff = Backoff::new();
        while !self.has_left && self.transport.has_outgoing() {
            self.transport.exchange(SimTime::MAX);
            self.transport.discard_incoming();
            backoff.pause();
        }
        if !self.has_left {
            self.has_left = true;
            let own = DepartureCause { member: self.member(), message: None };
            let cause = self.transport.early_departure(self.begun).cloned().unwrap_or(own);
            self.transport.announce_departure(self.completed, &cause);
        }
    }
}

/// Leaves the cluster and waits until all other members have left, because they may still be sending.
impl Drop for Cluster {
    fn drop(&mut self) {
        self.leave();
        let mut backoff = Backoff::patient();
        while !self.transport.all_departed() {
            self.transport.exchange(SimTime::MAX);
            self.transport.discard_incoming();
            backoff.pause();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "member {} of {}", self.member(), self.members())
    }
}

impl std::fmt::Display for ClusterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MemberLeft { member, message: Some(message) } => {
                write!(f, "process {member} of the cluster panicked: {message}")
            }
            Self::MemberLeft { member, message: None } => {
                write!(f, "process {member} of the cluster ended before the simulation did")
            }
            Self::Undecodable { receiver } => write!(
                f,
                "process {receiver} of the cluster received data that it cannot decode; run the same version of the program on all hosts"
            ),
            Self::Mismatch { member, theirs, ours } => write!(
                f,
                "process {member} of the cluster runs {theirs}, this one {ours}; give all of them the same arguments"
            ),
        }
    }
}

impl std::error::Error for ClusterError {}

impl std::fmt::Display for RunParameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lps, workers, token_bytes } = self;
        write!(f, "{lps} lps on {workers} threads with tokens of {token_bytes} B")
    }
}

/// An error that prevents the use of MPI.
#[cfg(feature = "mpi")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiError {
    /// MPI was initialised before.
    Initialised,
    /// The MPI library does not support calls of several threads, one at a time (`MPI_THREAD_SERIALIZED`).
    Threads,
}

#[cfg(feature = "mpi")]
impl std::fmt::Display for MpiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Initialised => "mpi is initialised already; a process joins a cluster once",
            Self::Threads => {
                "the mpi library does not support MPI_THREAD_SERIALIZED; build it with support for threads"
            }
        })
    }
}

#[cfg(feature = "mpi")]
impl std::error::Error for MpiError {}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
