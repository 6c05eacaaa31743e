//! The processes of the operating system on which one simulation runs.

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

/// The processes of the operating system that run a simulation together, as one of them, a member, sees them.
///
/// Every member makes the same calls of [`Engine::run_across`](crate::Engine::run_across), and of those below that all
/// members make, in the same order. A member that drops its cluster leaves it, and waits until all others have left as
/// well. Whoever still needs it is told, so that a member that fails on its own, with an error or a panic, holds up
/// nobody.
pub struct Cluster {
    mail: Mail,
    /// Whether this member has said farewell.
    left: bool,
    /// Calls of all members that were begun, and those that came to their end.
    begun: u32,
    completed: u32,
}

/// Why a simulation on a cluster came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterError {
    /// A member has left the cluster before the simulation ended: it failed on its own, and has said so.
    Departed {
        /// The member.
        member: usize,
        /// The message of its panic; `None` where it left without one.
        message: Option<String>,
    },
    /// A member sends what are no tokens for processes of this one: it runs another version of the program.
    Garbled {
        /// The member that got it.
        receiver: usize,
    },
    /// A member runs another simulation.
    Mismatch {
        /// The member.
        member: usize,
        /// What it runs.
        theirs: Terms,
        /// What this member runs.
        ours: Terms,
    },
}

/// What all members must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Ranks of the simulation.
    pub ranks: u32,
    /// Workers of each member.
    pub workers: u32,
    /// Size of a token as it is sent \[B\].
    pub token_bytes: u32,
}

impl Cluster {
    /// Runs something once for each member of a cluster whose members are threads of this process, and returns what
    /// each gave, or its panic: to test what is to run on processes.
    ///
    /// # Panics
    /// Where `members` is zero.
    pub fn in_memory<R: Send>(
        members: usize,
        program: impl Fn(Cluster) -> R + Sync,
    ) -> Vec<thread::Result<R>> {
        assert!(members > 0, "a cluster needs at least one member");
        thread::scope(|scope| {
            let seats = memory::connect(members);
            // Each cluster is made in the thread of its member, because those of other kinds cannot be sent.
            let program = &program;
            let member = |seat| scope.spawn(move || program(Self::over(Link::Memory(seat))));
            let threads: Vec<_> = seats.into_iter().map(member).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        })
    }

    /// Joins the processes that were started by `mpirun`, or by the like; a process that was started alone is a
    /// cluster of one.
    ///
    /// The thread that calls this has to keep the cluster. Dropping it finalises MPI.
    ///
    /// # Errors
    /// Where MPI has been initialised already, or does not serve a program of several threads.
    #[cfg(feature = "mpi")]
    pub fn from_mpi() -> Result<Self, MpiError> {
        mpi::MpiLink::new().map(|link| Self::over(Link::Mpi(link)))
    }

    fn over(link: Link) -> Self {
        Self { mail: Mail::new(link), left: false, begun: 0, completed: 0 }
    }

    /// Returns the number of this member, counted from zero.
    pub fn member(&self) -> usize {
        self.mail.me()
    }

    /// Returns how many members the cluster has.
    pub fn members(&self) -> usize {
        self.mail.members()
    }

    pub(crate) fn mail(&mut self) -> &mut Mail {
        &mut self.mail
    }

    /// Begins a simulation.
    ///
    /// # Panics
    /// Where this member has failed before.
    pub(crate) fn begin(&mut self) {
        assert!(!self.left, "this member of the cluster has failed before, and the others know");
        self.begun += 1;
        self.mail.begin(self.begun);
    }

    /// Ends a simulation that has come to its end.
    pub(crate) fn complete(&mut self) {
        self.completed = self.begun;
    }

    /// Returns whether all members are there that the present simulation needs.
    pub(crate) fn check(&self) -> Result<(), ClusterError> {
        match self.mail.departure(self.begun).cloned() {
            Some(Cause { member, message }) => Err(ClusterError::Departed { member, message }),
            None => Ok(()),
        }
    }

    /// Runs this member's part of something; where that panics, the others are told, and the panic goes on.
    pub(crate) fn telling_of_panics<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| run(&mut *self)));
        result.unwrap_or_else(|panic| {
            self.fail(Some(message(&*panic)));
            std::panic::resume_unwind(panic)
        })
    }

    /// Leaves the cluster at once: this member has failed, in a panic with this message if there is one.
    pub(crate) fn fail(&mut self, message: Option<&str>) {
        if !self.left {
            self.left = true;
            self.mail.discard_outgoing();
            let cause = Cause { member: self.member(), message: message.map(str::to_owned) };
            self.mail.say_farewell(self.completed, &cause);
        }
    }

    /// Leaves the cluster after all has been sent.
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

/// Leaves the cluster and waits for the others to do so: they may still be sending.
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
                "process {receiver} of the cluster gets what are no tokens for it; run the same version of the program on all hosts"
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

/// Why MPI cannot be used.
#[cfg(feature = "mpi")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiError {
    /// It was initialised before.
    Initialised,
    /// It does not let several threads call it one at a time (`MPI_THREAD_SERIALIZED`).
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
