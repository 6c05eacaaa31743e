//! Sources of actions that are no traces: programs that run, and are told what has become of their calls.

use std::fmt;

use pdes_core::{Rank, SimTime};
use trace_mmap::{Action, RankTrace, Slot};

use crate::point_to_point::{Request, Requests, Status, Statuses};

/// Source of the actions of a rank: its program.
///
/// The first source of actions is the [cursor](trace_mmap::Cursor) over the trace of a rank; behind its end, a rank whose trace
/// [grows](RankTrace::grows) asks a source like this one. So a replay of a trace does not pay for programs that run, and the engine is
/// compiled once for both.
///
/// # Laws
/// What a source does depends on the replies alone, and on what other sources have done before they sent what a reply tells of. Then
/// results are the same on any number of threads. A source may block until a process outside has decided what it does next: that takes real
/// time alone.
pub trait ActionSource: Send {
    /// Lets the process outside go on after the last action has ended, and does not wait for it; returns whether it decides meanwhile, so
    /// that [`next`](Self::next) is called later, with the same reply, once no other rank can run. By default there is none.
    fn release(&mut self, reply: Reply<'_>) -> bool {
        let _ = reply;
        false
    }

    /// Learns of what has happened while the last action goes on. If its outcome is certain, but for the instant, the process outside may go on:
    /// what it does next begins when the action has ended. Does nothing by default.
    fn foresee(&mut self, reply: Reply<'_>) {
        let _ = reply;
    }

    /// Returns whether a program that was [released](Self::release) has decided what it does next: [`next`](Self::next) waits for nothing.
    fn has_decided(&self) -> bool {
        false
    }

    /// Waits until this program, or that of another rank, may have decided what it does next; returns false at once if that is not told.
    fn await_decision(&self) -> bool {
        false
    }

    /// Returns the next action, after the last one has ended; `None` at the end of the program, after which it is not called again.
    ///
    /// Actions refer to the tables of the rank, to which a [`TableWriter`](trace_mmap::TableWriter) adds. Calls whose outcome depends on
    /// time have none: `MPI_Waitany` is said to complete one of its requests, a probe to find nothing.
    ///
    /// # Errors
    /// Returns what is wrong with the program, which ends the replay.
    fn next(&mut self, reply: Reply<'_>) -> Result<Option<Action>, Box<str>>;

    /// Returns the number of slots of requests that the program uses so far; it never decreases.
    fn slots(&self) -> u32;
}

/// The sources of the actions of all ranks.
pub trait ActionSources: fmt::Debug + Send + Sync {
    /// Creates the source of a rank, whose trace grows.
    fn source<'t>(&self, rank: Rank, trace: &'t RankTrace) -> Box<dyn ActionSource + 't>;

    /// Returns whether receives take messages that are longer than they have room for, which their programs are told. By default such a
    /// message ends the replay.
    fn truncates(&self) -> bool {
        false
    }

    /// Notes how a call has ended that MPI lets end in several ways. Does nothing by default.
    fn decided(&self, decision: &Decision<'_>) {
        let _ = decision;
    }
}

/// A choice point: the end of a call that MPI lets end in several ways, and the other ends that were possible at that moment.
///
/// Without contention a choice is made when no rank can go on otherwise, so that all is there which can be without it.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// The rank that made the call.
    pub rank: Rank,
    /// Index of the action of the call, from 0; of a receive, that which posted it.
    pub action: u64,
    /// The end.
    pub end: CallEnd<'a>,
}

/// An end of a call, among those that were possible.
#[derive(Clone, Copy, Debug)]
pub enum CallEnd<'a> {
    /// A receive has taken a message, or a probe has found one.
    Message {
        /// Its source; `None` for a probe that has found none.
        source: Option<Rank>,
        /// The sources of which a message was there.
        sources: &'a [Rank],
    },
    /// A wait or a test has completed requests.
    Requests {
        /// Those that it has completed.
        completed: &'a [Slot],
        /// Those that it could have completed; of a test of all requests none, unless it could have completed all.
        complete: &'a [Slot],
    },
}

/// Answer to a program when its last action has ended.
#[derive(Clone, Copy)]
pub struct Reply<'a> {
    pub(crate) clock: SimTime,
    pub(crate) requests: &'a Requests,
    pub(crate) statuses: Option<&'a Statuses>,
    pub(crate) found: Option<Status>,
    pub(crate) quiet: Option<Quiet>,
}

/// Time after a test that has failed in which further ones would fail, if the rank does nothing else but compute and test.
#[derive(Clone, Copy, Debug)]
pub struct Quiet {
    /// Its end.
    pub until: SimTime,
    /// Time of a flop of the rank \[ps\].
    pub picos_per_flop: f64,
}

impl Reply<'_> {
    /// Returns the clock of the rank.
    pub fn clock(&self) -> SimTime {
        self.clock
    }

    /// Returns whether a request has been completed by a wait or a test, or was never posted.
    pub fn is_completed(&self, slot: Slot) -> bool {
        matches!(self.requests.get(self.requests.slot(slot)), Request::Inactive)
    }

    /// Returns whether a request has been completed by the clock of the rank, whether or not a call has taken notice.
    pub fn is_done(&self, slot: Slot) -> bool {
        match self.requests.get(self.requests.slot(slot)) {
            Request::Inactive => true,
            Request::Complete(completion) => completion.at <= self.clock,
            Request::Pending(_) => false,
        }
    }

    /// Returns whether a request waits for something of which the instant is not known.
    pub fn is_pending(&self, slot: Slot) -> bool {
        matches!(self.requests.get(self.requests.slot(slot)), Request::Pending(_))
    }

    /// Returns the last message that a non-blocking receive has matched; `None` since one was posted that has matched none.
    pub fn status(&self, slot: Slot) -> Option<Status> {
        self.statuses?.get(self.requests.slot(slot))
    }

    /// Returns the message of the last blocking receive.
    pub fn received(&self) -> Option<Status> {
        self.statuses?.get(self.requests.blocking_receive())
    }

    /// Returns for how long the requests of the last action, a test that has failed, stay as they are, as far as it is known.
    pub fn quiet(&self) -> Option<Quiet> {
        self.quiet
    }

    /// Returns the message that the last action, a probe, has found.
    pub fn found(&self) -> Option<Status> {
        self.found
    }
}
