//! The program of a rank, where it is known while it runs only.

use std::task::Poll;

use pdes_core::SimTime;
use trace_mmap::{Action, CallId};

use super::RankProcess;
use crate::context::Failure;
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::Status;
use crate::source::{ActionSource, Quiet, Reply};

/// The source of the actions of a rank, and what is kept for its next reply.
pub(super) struct Program<'t> {
    source: Box<dyn ActionSource + 't>,
    /// Number of actions that have begun.
    actions: u64,
    /// Message that the last probe has found.
    found: Option<Status>,
    /// Time in which the requests of a test that has just failed stay as they are.
    quiet: Option<Quiet>,
    /// Instant before which nothing that others do comes to the rank, in the turn of the last conditional event.
    undisturbed_until: SimTime,
    /// It decides outside what it does next.
    is_outside: bool,
    has_ended: bool,
}

impl<'t> Program<'t> {
    pub(super) fn new(source: Box<dyn ActionSource + 't>) -> Self {
        Self {
            source,
            actions: 0,
            found: None,
            quiet: None,
            undisturbed_until: SimTime::ZERO,
            is_outside: false,
            has_ended: false,
        }
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Returns the next action of a program that runs; `None` at its end, and where the program is a trace. It is pending while the program
    /// decides outside what it does next: other ranks have their turns first.
    #[cold]
    pub(super) fn next_of_program(&mut self) -> Result<Poll<Option<Action>>, Failure<M::Error>> {
        let Self { context, point_to_point, program, .. } = self;
        let Some(program) = program.as_deref_mut().filter(|program| !program.has_ended) else {
            return Ok(Poll::Ready(None));
        };
        let (clock, found, quiet) = (context.thread.clock, program.found, program.quiet);
        let reply = Reply { found, quiet, ..point_to_point.reply(clock) };
        program.is_outside = !program.is_outside && program.source.release(reply);
        if program.is_outside {
            return Ok(Poll::Pending);
        }
        (program.found, program.quiet) = (None, None);
        let next = program.source.next(reply);
        let action = next.map_err(|message| context.fail(ReplayErrorKind::Program { message }))?;
        point_to_point.requests.grow(program.source.slots());
        match action {
            Some(_) => {
                context.thread.action = program.actions;
                program.actions += 1;
            }
            None => program.has_ended = true,
        }
        Ok(Poll::Ready(action))
    }

    /// Tells a program that runs, and waits, what has happened.
    #[cold]
    pub(super) fn let_foresee(&mut self) {
        let Self { context, point_to_point, program, pending, .. } = self;
        if let Some(program) = program.as_deref_mut().filter(|program| !program.has_ended)
            && pending.is_some()
        {
            program.source.foresee(point_to_point.reply(context.thread.clock));
        }
    }

    /// Returns the source of the program, where it is known while it runs only.
    pub(super) fn source_of_program(&self) -> Option<&dyn ActionSource> {
        self.program.as_ref().map(|program| &*program.source)
    }

    /// Returns the number of actions that a program which runs has begun.
    pub(super) fn actions_of_program(&self) -> Option<u64> {
        self.program.as_ref().map(|program| program.actions)
    }

    /// Returns whether a program runs that has not ended.
    pub(super) fn has_running_program(&self) -> bool {
        self.program.as_ref().is_some_and(|program| !program.has_ended)
    }

    /// Keeps the instant before which nothing that others do comes to the rank, for a program that runs.
    #[inline]
    pub(super) fn keep_undisturbed(&mut self, until: SimTime) {
        if let Some(program) = &mut self.program {
            program.undisturbed_until = until;
        }
    }

    /// Keeps, for the program to be told, for how long the requests of a test that has failed stay as they are: not beyond the first of them
    /// that is known to end.
    pub(super) fn keep_quiet(&mut self, call: CallId) {
        let (replay, known) = (self.context.replay, [self.mail_due(), self.first_complete(call)]);
        let is_alone = replay.machine.has_own_host(self.context.me) && self.collectives.is_idle();
        let has_steady_price = !replay.parameters.test_grows;
        if let (Some(program), Some(picos)) = (&mut self.program, self.context.steady_pace())
            && is_alone
            && has_steady_price
            && self.offload.is_none()
            && !self.point_to_point.has_delayed()
        {
            let until = known.into_iter().flatten().fold(program.undisturbed_until, SimTime::min);
            program.quiet = Some(Quiet { until, picos_per_flop: picos * self.compute_factor });
        }
    }

    /// Keeps the message that a probe has found, for the program to be told.
    pub(super) fn keep_found(&mut self, from: trace_mmap::Source) {
        let Self { context, point_to_point, program, .. } = self;
        if let (Some(program), Some(statuses)) = (program, &point_to_point.statuses) {
            let first = point_to_point.first_message(context, from);
            program.found =
                first.map(|(queue, message)| statuses.of(point_to_point.sender_to(queue), message));
        }
    }
}
