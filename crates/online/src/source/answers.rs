//! Answers: what a rank is told at the end of its operation.

use std::sync::atomic::Ordering;

use mpi_model::{Quiet, Reply, Status};
use pdes_core::SimTime;
use trace_mmap::{Action, Call, CommId, CommIdx, Slot, Source};

use super::RankSource;
use crate::layout::{AHEAD, Completion, NONE};
use crate::run::Run;

/// Number of failed probes after which a blocking probe waits: none may ever succeed.
const MOST_PROBES: u32 = 1000;

/// Number of calls at one instant that only give others time, before they take some.
const FREE_YIELDS: u32 = 16;

/// Answer that is due at the end of an operation.
pub(super) enum Awaited {
    Nothing,
    /// The message of a blocking receive.
    Message(CommIdx),
    /// The message that a probe has found.
    Found,
    /// The message that a blocking probe has found; it began to look at this instant.
    Probed {
        from: Source,
        since: SimTime,
        number: u32,
    },
    /// Those of these requests that are complete; of a test, it fails without any.
    Completed {
        requests: Vec<u32>,
        /// The call ends when all are.
        awaits_all: bool,
        is_test: bool,
        /// The rank knows that the test fails.
        is_unasked: bool,
    },
    /// The state of a request: complete or not.
    Done(u32),
    /// The data of a collective operation, by its communicator and number there.
    Table {
        table: u64,
        key: (CommId, u64),
    },
    /// The ends of accesses to a window that a synchronisation completes, which began at this instant.
    Accesses {
        completed: Vec<u32>,
        since: SimTime,
    },
    /// Nothing, but that others had time.
    Time,
    /// The end.
    End,
}

impl RankSource<'_> {
    /// Tells the rank what has become of its operation.
    pub(super) fn answer(&mut self, reply: Reply<'_>) {
        let (memory, me) = (&self.run.memory, self.me.get());
        let slot = memory.slot(me);
        slot.clock.store(reply.clock().as_picos(), Ordering::Relaxed);
        self.clock = reply.clock();
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Nothing => {}
            Awaited::Message(on) => self.tell_message(on, reply),
            Awaited::Found => {
                slot.flag.store(reply.found().is_some().into(), Ordering::Relaxed);
                match reply.found() {
                    Some(status) => memory.complete(me, NONE, message(status, 0)),
                    None => self.fail_poll(reply),
                }
            }
            Awaited::Probed { from, since, number } => match reply.found() {
                Some(status) => memory.complete(me, NONE, message(status, 0)),
                // A blocking probe is one that is repeated, as in SMPI, where each has a price; else, or after many, it waits.
                None if reply.clock() > since && number < MOST_PROBES => {
                    self.probe(from, reply.clock(), number + 1);
                }
                None => self.await_probed(from),
            },
            Awaited::Completed { requests, is_test, is_unasked, .. } => {
                let is_completed = |request: &u32| reply.is_completed(Slot::new(*request));
                let mut completed: Vec<u32> = requests.into_iter().filter(is_completed).collect();
                if is_unasked && self.run.watches_computations() {
                    // What was told of a computation before its end may be longer: the rank learns it when it asks.
                    completed.clear();
                }
                assert!(!is_unasked || completed.is_empty(), "rank {me} was to know that its test fails");
                if is_test && completed.is_empty() {
                    self.announce_quiet(reply);
                    self.fail_poll(reply);
                }
                completed.into_iter().for_each(|request| self.complete(request, reply));
            }
            Awaited::Done(request) => {
                let is_done = reply.is_done(Slot::new(request));
                slot.flag.store(is_done.into(), Ordering::Relaxed);
                if !is_done {
                    self.fail_poll(reply);
                } else if let (true, Some(status)) =
                    (self.receives.contains_key(&request), reply.status(Slot::new(request)))
                {
                    // Its data are taken when it is completed.
                    let found = Completion { is_complete: 0, ..message(status, 0) };
                    memory.complete(me, request, found);
                }
            }
            Awaited::Table { table, .. } => slot.table.store(table, Ordering::Relaxed),
            Awaited::Accesses { completed, since } => {
                completed.into_iter().for_each(|request| self.complete(request, reply));
                // Loops that look at memory have to end.
                if reply.clock() == since {
                    self.delay_poll(since, FREE_YIELDS);
                }
            }
            Awaited::Time => self.delay_poll(reply.clock(), FREE_YIELDS),
            Awaited::End => self.has_ended = true,
        }
    }

    /// Returns whether it is certain how the operation in progress ends, which is told before it does.
    fn is_certain(&self, reply: Reply<'_>) -> bool {
        match &self.awaited {
            Awaited::Message(_) => reply.received().is_some(),
            Awaited::Completed { requests, awaits_all: true, .. } => requests.iter().all(|request| {
                let slot = Slot::new(*request);
                let is_certain = || match self.tables.get(request) {
                    Some((_, key)) => self.run.exchange.is_complete(*key),
                    None => self.receives.contains_key(request) && reply.status(slot).is_some(),
                };
                !reply.is_pending(slot) || is_certain()
            }),
            Awaited::Table { key, .. } => self.run.exchange.is_complete(*key),
            _ => false,
        }
    }

    /// Lets the rank go on, ahead of simulated time, if it is certain how its operation ends.
    pub(super) fn go_ahead(&mut self, reply: Reply<'_>) {
        let Run { turns, memory, has_files, .. } = &*self.run;
        let may_go = turns.are_apart() && !turns.is_exclusive() && !has_files.load(Ordering::Relaxed);
        if !may_go || !self.is_certain(reply) {
            return;
        }
        let me = self.me.get();
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Message(on) => self.tell_message(on, reply),
            Awaited::Completed { requests, .. } => {
                requests.into_iter().for_each(|request| self.complete(request, reply));
            }
            Awaited::Table { table, .. } => memory.slot(me).table.store(table, Ordering::Relaxed),
            _ => unreachable!("the end is certain"),
        }
        self.is_ahead = true;
        self.run.memory.slot(me).is_ahead.store(AHEAD, Ordering::Relaxed);
        self.get_turn();
    }

    /// Tells the rank, which is ahead, at which instant its operation has ended.
    pub(super) fn catch_up(&mut self, reply: Reply<'_>) {
        self.is_ahead = false;
        self.clock = reply.clock();
        self.run.memory.tell_clock(self.me.get(), self.clock);
    }

    /// Looks for a message once, for a blocking probe.
    pub(super) fn probe(&mut self, from: Source, since: SimTime, number: u32) {
        self.awaited = Awaited::Probed { from, since, number };
        let probe = self.call(Call::Iprobe { from, found: false });
        self.actions.push_back(probe);
    }

    /// Waits for a message.
    pub(super) fn await_probed(&mut self, from: Source) {
        self.awaited = Awaited::Found;
        let probe = self.call(Call::Probe { from });
        self.actions.push_back(probe);
    }

    /// Tells the rank for how long the test that has failed would fail again.
    fn announce_quiet(&self, reply: Reply<'_>) {
        let slot = self.run.memory.slot(self.me.get());
        slot.quiet_until.store(0, Ordering::Relaxed);
        if let Some(Quiet { until, picos_per_flop }) = reply.quiet() {
            let unit_s = self.run.settings.flops_per_unit * picos_per_flop * 1e-12;
            slot.quiet_until.store(until.as_picos(), Ordering::Relaxed);
            slot.quiet_unit_s.store(unit_s.to_bits(), Ordering::Relaxed);
        }
    }

    /// Tells the rank what the poll took that has failed, and lets it wait.
    fn fail_poll(&mut self, reply: Reply<'_>) {
        let seconds = (reply.clock() - self.begun).as_secs_f64();
        self.run.memory.slot(self.me.get()).poll_s.store(seconds.to_bits(), Ordering::Relaxed);
        self.delay_poll(reply.clock(), 1);
    }

    /// Lets the rank wait after a failed poll.
    pub(super) fn delay_poll(&mut self, clock: SimTime, free: u32) {
        self.run.fail_poll();
        if let Some(seconds) = self.failed_polls.delay(clock, free) {
            self.actions.push_back(Action::Sleep { seconds });
        }
    }

    /// Tells the rank of the message of a blocking receive.
    fn tell_message(&self, on: CommIdx, reply: Reply<'_>) {
        let status = reply.received().expect("the receive has matched a message");
        self.run.memory.complete(self.me.get(), NONE, self.received(status, on));
    }

    /// Tells the rank that a request is complete.
    fn complete(&mut self, request: u32, reply: Reply<'_>) {
        self.requests.remove(&request);
        let completion = match (self.receives.get(&request), self.tables.remove(&request)) {
            (_, Some((block, _))) => Completion { is_complete: 1, block, ..Completion::default() },
            (Some(&on), None) => match reply.status(Slot::new(request)) {
                Some(status) => self.received(status, on),
                // It was cancelled.
                None => Completion { is_complete: 1, ..Completion::default() },
            },
            (None, None) => Completion { is_complete: 1, ..Completion::default() },
        };
        self.run.memory.complete(self.me.get(), request, completion);
    }

    /// Returns a message that has been received, with its data.
    fn received(&self, status: Status, on: CommIdx) -> Completion {
        let key = (status.source, status.tag.get(), self.trace.communicator(on).id, status.number);
        message(status, self.run.exchange.take(self.me, key))
    }
}

/// Returns a message as its receiver is told of it.
fn message(Status { source, tag, bytes, .. }: Status, block: u64) -> Completion {
    Completion {
        is_complete: 1,
        is_receive: 1,
        source: source.get() as i32,
        tag: tag.get(),
        bytes: bytes.get(),
        block,
    }
}
