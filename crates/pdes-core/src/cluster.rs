//! Clusters: the processes of the operating system that run one simulation.

mod assembly;
mod link;
mod mail;
mod memory;
#[cfg(feature = "mpi")]
mod mpi;
pub(crate) mod patience;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::thread;

use crate::SimTime;
pub(crate) use assembly::Pieces;
use link::Link;
use mail::Cause;
pub(crate) use mail::{Delivery, Mail};
use patience::Patience;

/// One member's handle on a cluster, the processes of the operating system (members) that run a simulation together.
///
/// Every member makes the same calls of [`Engine::run_distributed`](crate::Engine::run_distributed), and of the collective
/// calls below, in the same order. A member that drops its cluster leaves it, and waits until all others have left as
/// well. Members that still need it get an error, so that a member that fails on its own, with an error or a panic, blocks
/// nobody.
pub struct Cluster {
    mail: Mail,
    /// True if this member has announced its departure.
    left: bool,
    /// Number of collective calls (runs included) that this member has begun.
    begun: u32,
    /// Number of the last collective call that this member has completed.
    completed: u32,
}

/// An error that ends a simulation on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterError {
    /// A member has left the cluster before the simulation ended, because it failed on its own.
    Departed {
        /// Member that left.
        member: usize,
        /// Message of its panic; `None` if it left without one.
        message: Option<String>,
    },
    /// A member received data that are not tokens for its processes: the sender runs another version of the program.
    Garbled {
        /// Member that received them.
        receiver: usize,
    },
    /// A member runs another simulation.
    Mismatch {
        /// The other member.
        member: usize,
        /// Parameters of its run.
        theirs: Terms,
        /// Parameters of this member's run.
        ours: Terms,
    },
}

/// The parameters of a run, on which all members must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Number of ranks of the simulation.
    pub ranks: u32,
    /// Number of workers of each member.
    pub workers: u32,
    /// Size of an encoded token \[B\].
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
            let seats = memory::connect(members);
            // Each cluster is made in the thread of its member, because clusters over MPI are not `Send`.
            let program = &program;
            let member = |seat| scope.spawn(move || program(Self::over(Link::Memory(seat))));
            let threads: Vec<_> = seats.into_iter().map(member).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        })
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
        mpi::MpiLink::new().map(|link| Self::over(Link::Mpi(link)))
    }

    fn over(link: Link) -> Self {
        Self { mail: Mail::new(link), left: false, begun: 0, completed: 0 }
    }

    /// Returns the index of this member, counted from zero.
    pub fn member(&self) -> usize {
        self.mail.me()
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.mail.members()
    }

    pub(crate) fn mail(&mut self) -> &mut Mail {
        &mut self.mail
    }

    /// Begins a run or another collective call.
    ///
    /// # Panics
    /// If this member has failed before.
    pub(crate) fn begin(&mut self) {
        assert!(!self.left, "this member of the cluster has failed before, and the others know");
        self.begun += 1;
        self.mail.begin(self.begun);
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
        match self.mail.departure(self.begun).cloned() {
            Some(Cause { member, message }) => Err(ClusterError::Departed { member, message }),
            None => Ok(()),
        }
    }

    /// Runs this member's part of a call. If it panics, the other members are notified and the panic is propagated.
    pub(crate) fn telling_of_panics<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| run(&mut *self)));
        result.unwrap_or_else(|panic| {
            self.fail(Some(message(&*panic)));
            std::panic::resume_unwind(panic)
        })
    }

    /// Leaves the cluster at once because this member has failed; `message` is that of its panic, if it has panicked.
    pub(crate) fn fail(&mut self, message: Option<&str>) {
        if !self.left {
            self.left = true;
            self.mail.discard_outgoing();
            let cause = Cause { member: self.member(), message: message.map(str::to_owned) };
            self.mail.say_farewell(self.completed, &cause);
        }
    }

    /// Leaves the cluster after all queued frames have been sent.
    fn leave(&mut self) {
        let mut patience = Patience::new();
        while !self.left && self.mail.has_outgoing() {
            self.mail.exchange(SimTime::MAX);
            self.mail.forget_incoming();
            patience.pause();
        }
        if !self.left {
            self.left = true;
            let own = Cause { member: self.member(), message: None };
            let cause = self.mail.departure(self.begun).cloned().unwrap_or(own);
            self.mail.say_farewell(self.completed, &cause);
        }
    }
}

/// Leaves the cluster and waits until all other members have left, because they may still be sending.
impl Drop for Cluster {
    fn drop(&mut self) {
        self.leave();
        let mut patience = Patience::new();
        while !self.mail.all_departed() {
            self.mail.exchange(SimTime::MAX);
            self.mail.forget_incoming();
            patience.pause();
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
            Self::Departed { member, message: Some(message) } => {
                write!(f, "process {member} of the cluster panicked: {message}")
            }
            Self::Departed { member, message: None } => {
                write!(f, "process {member} of the cluster ended before the simulation did")
            }
            Self::Garbled { receiver } => write!(
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

impl std::fmt::Display for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ranks, workers, token_bytes } = self;
        write!(f, "{ranks} ranks on {workers} threads with tokens of {token_bytes} B")
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
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
