//! Start and end of a program that a launcher starts during the run, or whose hosts die.

use pdes_core::{Fault, Pause, Rank, SimTime, Turn, Wake};

use super::RankProcess;
use super::checkpoint::Checkpoints;
use super::pending::Pending;
use crate::completion::Completion;
use crate::context::{Failure, RankOutbox, lp_of};
use crate::launcher::Launcher;
use crate::machine::{Machine, Work};
use crate::observer::{ActionSpan, Analysis};
use crate::statistics::ActionKind;
use crate::token::Token;

/// Progress of a rank of a program that a launcher starts, or that may die.
///
/// The death of a program is a conditional event of each of its ranks that runs then, so that nothing lies before it that has not happened.
/// A rank that dies reports its end as others do; ranks of such a program wait after their end, because it may start again.
pub(crate) struct Launched<'t> {
    launcher: &'t dyn Launcher,
    program: usize,
    stage: Stage,
    /// At rank 0, the number of ranks that have not ended, the last end, and the number of checkpoints that all have written.
    unfinished: u32,
    last_end: SimTime,
    written: u32,
    /// Instant at which the program dies unless it has ended before.
    death: Option<SimTime>,
    /// Number of the present start of the program.
    starts: u32,
    /// Conditional event of the rank itself for which it has paused.
    due: Option<SimTime>,
    pub(super) checkpoints: Option<Checkpoints>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The program is not submitted, as far as its rank 0 knows, or starts again at this instant.
    Expected(SimTime),
    /// The program waits for its start.
    Waiting,
    Running,
    /// The rank has ended. Rank 0 waits for the others; where the program may start again, all wait for that.
    Ended,
    /// The rank has died, and waits as if it had ended.
    Dead,
}

impl<'t> Launched<'t> {
    pub(crate) fn new(launcher: &'t dyn Launcher, program: usize, ranks: u32, is_first: bool) -> Self {
        let submission = || launcher.submission(program).filter(|_| is_first);
        let stage = match launcher.start(program) {
            Some(_) => Stage::Running,
            None => submission().map_or(Stage::Waiting, Stage::Expected),
        };
        Self {
            launcher,
            program,
            stage,
            unfinished: ranks,
            last_end: SimTime::ZERO,
            death: launcher.death(program),
            starts: launcher.starts(program),
            due: None,
            written: u32::MAX,
            checkpoints: None,
        }
        .going_on_after(0)
    }

    /// Lets the program write checkpoints, after it has repeated a number of actions of the rank.
    fn going_on_after(self, actions: u64) -> Self {
        let start = self.launcher.start(self.program);
        let times = start.zip(self.launcher.checkpoints(self.program));
        Self { checkpoints: times.map(|(start, times)| Checkpoints::new(times, start, actions)), ..self }
    }

    /// Returns the number of checkpoints that the rank has written up to its end.
    fn checkpoints_until(&self, end: SimTime) -> u32 {
        match (&self.checkpoints, self.stage) {
            (Some(checkpoints), Stage::Dead) => checkpoints.until(end),
            (None, Stage::Dead) => 0,
            _ => u32::MAX,
        }
    }

    /// Returns the clock of the rank, whose death ends what it does.
    pub(super) fn clock(&self, clock: SimTime) -> SimTime {
        self.death.map_or(clock, |death| clock.min(death))
    }

    /// Returns whether the next token is the first one of a start of the program.
    fn awaits_start(&self) -> bool {
        match self.stage {
            Stage::Expected(_) | Stage::Waiting => true,
            Stage::Running => false,
            // No token of the life before is in transit when a program starts again: all its ranks have ended.
            Stage::Ended | Stage::Dead => self.launcher.starts(self.program) > self.starts,
        }
    }

    /// Counts the end of a rank; returns that of the program, if all have ended.
    fn rank_ended(&mut self, at: SimTime, checkpoints: u32) -> Option<SimTime> {
        self.unfinished -= 1;
        self.last_end = self.last_end.max(at);
        self.written = self.written.min(checkpoints);
        (self.unfinished == 0).then(|| {
            self.launcher.end(self.program, self.last_end, self.written);
            self.last_end
        })
    }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Resumes a rank of a program that is launched or may die.
    #[cold]
    pub(super) fn resume_launched(
        &mut self,
        turn: &mut Turn,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Pause, Failure<M::Error>> {
        if let Some(pause) = self.await_launch(turn.granted, outbox) {
            return Ok(pause);
        }
        let Some((death, due)) = self.mortality() else {
            return Ok(match self.run_with_checkpoints(turn, outbox)? {
                Pause::Finished => self.end_launched(Stage::Ended, outbox),
                pause => pause,
            });
        };
        if turn.granted && due.is_none_or(|due| due >= death) {
            return Ok(self.die(death, outbox));
        }
        if self.context.thread.clock >= death {
            return Ok(Pause::Conditional(death));
        }
        let horizon = turn.horizon;
        turn.horizon = horizon.min(SimTime::from_picos(death.as_picos() - 1));
        let pause = self.run_with_checkpoints(turn, outbox)?;
        turn.horizon = horizon;
        let is_over = self.context.thread.clock >= death;
        let due = match pause {
            Pause::Finished => {
                let stage = if is_over { Stage::Dead } else { Stage::Ended };
                return Ok(self.end_launched(stage, outbox));
            }
            Pause::Conditional(at) => Some(at),
            _ => None,
        };
        self.set_due(due);
        Ok(match pause {
            Pause::Blocked => Pause::Conditional(death),
            Pause::Horizon if is_over => Pause::Conditional(death),
            Pause::Conditional(at) => Pause::Conditional(at.min(death)),
            pause => pause,
        })
    }

    /// Returns the instant at which the rank dies unless its program has ended before, and its own conditional event.
    fn mortality(&self) -> Option<(SimTime, Option<SimTime>)> {
        let launched = self.launched.as_deref()?;
        Some((launched.death?, launched.due))
    }

    fn set_due(&mut self, due: Option<SimTime>) {
        self.launched.iter_mut().for_each(|launched| launched.due = due);
    }

    /// Starts a rank of a program that is launched or may die with the first token; returns how it wakes where the token is for nothing else.
    #[cold]
    pub(super) fn before_token(&mut self, token: &Token) -> Result<Option<Wake>, Failure<M::Error>> {
        let launched = self.launched.as_deref().expect("the program is launched");
        if launched.awaits_start() {
            self.start_launched()?;
        } else if let Stage::Ended | Stage::Dead = launched.stage {
            return Ok(match *token {
                Token::Started => Some(Wake::Ready),
                Token::RankEnded { at, checkpoints } => Some(self.rank_ended(at, checkpoints)),
                _ => (launched.stage == Stage::Dead).then_some(Wake::No),
            });
        }
        Ok(None)
    }

    /// Returns how a rank of a program that is launched or may die wakes after a token.
    #[cold]
    pub(super) fn after_token(&mut self, wake: Wake) -> Wake {
        let is_over = self.launched.as_deref().is_some_and(|launched| {
            matches!(launched.stage, Stage::Ended | Stage::Dead) && launched.death.is_some()
        });
        match (wake, self.mortality()) {
            _ if is_over => Wake::No,
            (Wake::Conditional(at), Some((death, _))) => {
                self.set_due(Some(at));
                Wake::Conditional(at.min(death))
            }
            (wake, _) => wake,
        }
    }

    /// Returns the pause of a rank whose program waits for its start, or has ended; `None` if it runs.
    fn await_launch(&mut self, granted: bool, outbox: &mut RankOutbox<'_, M>) -> Option<Pause> {
        let is_first = self.context.me == Rank::new(0);
        let launched = self.launched.as_deref_mut()?;
        let now = match launched.stage {
            Stage::Running => return None,
            Stage::Waiting => return Some(Pause::Blocked),
            Stage::Ended | Stage::Dead if !is_first => return Some(Pause::Finished),
            Stage::Expected(at) => at,
            Stage::Ended | Stage::Dead => launched.last_end,
        };
        if !granted {
            return Some(Pause::Conditional(now));
        }
        let has_ended = !matches!(launched.stage, Stage::Expected(_));
        launched.stage = Stage::Waiting;
        for lps in launched.launcher.launch(now) {
            (lps.start.get()..lps.end.get()).for_each(|lp| outbox.send_to_lp(lp, Token::Started));
        }
        if !has_ended {
            return Some(Pause::Blocked);
        }
        if launched.death.is_none() {
            return Some(Pause::Finished);
        }
        Some(self.end_mortal(now, outbox))
    }

    /// Ends a program that might have died before it did, and perhaps has.
    fn end_mortal(&mut self, now: SimTime, outbox: &mut RankOutbox<'_, M>) -> Pause {
        let Self { context, launched, .. } = self;
        let launched = launched.as_deref_mut().expect("the program is launched");
        let ranks = context.replay.trace.ranks();
        let [first, end] = [0, ranks].map(|rank| lp_of(context.replay.first_lp, Rank::new(rank)));
        if launched.death == Some(now) {
            let abandon = Work::Abandon { first, end };
            let request = context.replay.machine.work_request(abandon, Completion::of_work(first, None));
            request.into_iter().for_each(|request| outbox.submit(now, 0, request));
        }
        if let Some(restart) = launched.launcher.restart(launched.program) {
            launched.stage = Stage::Expected(restart);
            return Pause::Conditional(restart);
        }
        (1..ranks).for_each(|rank| outbox.send(Rank::new(rank), Token::Started));
        Pause::Finished
    }

    /// Ends the rank at the death of its program: the action in progress has taken its time until now.
    fn die(&mut self, death: SimTime, outbox: &mut RankOutbox<'_, M>) -> Pause {
        self.context.thread.clock = self.context.thread.clock.max(death);
        let kind = match self.pending {
            Pending::One { kind, .. }
            | Pending::All { kind, .. }
            | Pending::RequestList { kind, .. }
            | Pending::Work { kind, .. }
            | Pending::First { kind, .. }
            | Pending::Probe { kind, .. } => Some(kind),
            Pending::Operation { index } => self.collectives.kind(index),
            Pending::Copy { .. } => Some(ActionKind::Copy),
            Pending::Nothing
            | Pending::AtEnd { .. }
            | Pending::Access { .. }
            | Pending::Poll { .. }
            | Pending::Graph => None,
        };
        kind.into_iter().for_each(|kind| {
            self.end(kind);
        });
        let (begin, end) = (self.action_begin, self.context.thread.clock);
        self.context.observers.rank_ended(&ActionSpan { kind: ActionKind::Finalize, begin, end });
        self.action_begin = end;
        self.end_launched(Stage::Dead, outbox)
    }

    /// Reports the end of the rank; rank 0 waits for the other ones.
    fn end_launched(&mut self, stage: Stage, outbox: &mut RankOutbox<'_, M>) -> Pause {
        let Self { context, launched, .. } = self;
        let launched = launched.as_deref_mut().expect("the program is launched");
        let at = launched.clock(context.thread.clock);
        launched.stage = stage;
        let checkpoints = launched.checkpoints_until(at);
        if context.me.get() > 0 {
            outbox.send(Rank::new(0), Token::RankEnded { at, checkpoints });
            return if launched.death.is_some() { Pause::Blocked } else { Pause::Finished };
        }
        launched.rank_ended(at, checkpoints).map_or(Pause::Blocked, Pause::Conditional)
    }

    /// Takes notice of the end of another rank of the program.
    pub(super) fn rank_ended(&mut self, at: SimTime, checkpoints: u32) -> Wake {
        let launched =
            self.launched.as_deref_mut().expect("only ranks of launched programs report their ends");
        launched.rank_ended(at, checkpoints).map_or(Wake::No, Wake::Conditional)
    }

    /// Starts the rank with the first token that reaches it: its program has been started and placed by then.
    fn start_launched(&mut self) -> Result<(), Failure<M::Error>> {
        let of_checkpoint = |launched: &Launched<'_>| {
            let number = launched.launcher.recovered(launched.program);
            launched.checkpoints.as_ref().map_or(0, |checkpoints| checkpoints.actions_at(number))
        };
        let repeated = self.launched.as_deref().map_or(0, of_checkpoint);
        let started = Self::new(self.context.replay, self.context.me);
        *self = started.map_err(|error| Fault { at: self.context.thread.clock, order: 0, error })?;
        self.context.set_repeats(repeated > 0);
        self.launched = self.launched.take().map(|launched| Box::new(launched.going_on_after(repeated)));
        Ok(())
    }
}
