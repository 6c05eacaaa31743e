//! Start and end of a program that a launcher starts during the run.

use pdes_core::{Fault, Pause, Rank, SimTime, Wake};

use super::RankProcess;
use crate::context::{Failure, RankOutbox};
use crate::launcher::Launcher;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::token::Token;

/// Progress of a rank of a program that a launcher starts.
pub(crate) struct Launched<'t> {
    launcher: &'t dyn Launcher,
    program: usize,
    stage: Stage,
    /// At rank 0, the number of ranks that have not ended, and the last end.
    unfinished: u32,
    last_end: SimTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The program is not submitted, as far as its rank 0 knows.
    Expected,
    /// The program waits for its start.
    Waiting,
    Running,
    /// Rank 0 has ended, and waits for the others.
    Ended,
}

impl<'t> Launched<'t> {
    pub(crate) fn new(launcher: &'t dyn Launcher, program: usize, ranks: u32, is_first: bool) -> Self {
        let stage = match launcher.start(program) {
            Some(_) => Stage::Running,
            None if is_first && launcher.submission(program).is_some() => Stage::Expected,
            None => Stage::Waiting,
        };
        Self { launcher, program, stage, unfinished: ranks, last_end: SimTime::ZERO }
    }

    /// Returns whether the program waits for its start.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Expected | Stage::Waiting)
    }

    /// Counts the end of a rank; returns that of the program, if all have ended.
    fn rank_ended(&mut self, at: SimTime) -> Option<SimTime> {
        self.unfinished -= 1;
        self.last_end = self.last_end.max(at);
        (self.unfinished == 0).then(|| {
            self.launcher.end(self.program, self.last_end);
            self.last_end
        })
    }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Returns the pause of a rank whose program waits for its start, or has ended; `None` if it runs.
    #[cold]
    pub(super) fn resume_launched(&mut self, granted: bool, outbox: &mut RankOutbox<'_, M>) -> Option<Pause> {
        let launched = self.launched.as_deref_mut()?;
        let (now, next) = match launched.stage {
            Stage::Running => return None,
            Stage::Waiting => return Some(Pause::Blocked),
            Stage::Expected => {
                let submission = launched.launcher.submission(launched.program);
                (submission.expect("only a program that is submitted is expected"), Pause::Blocked)
            }
            Stage::Ended => (launched.last_end, Pause::Finished),
        };
        if !granted {
            return Some(Pause::Conditional(now));
        }
        if launched.stage == Stage::Expected {
            launched.stage = Stage::Waiting;
        }
        for lps in launched.launcher.launch(now) {
            (lps.start.get()..lps.end.get()).for_each(|lp| outbox.send_to_lp(lp, Token::Started));
        }
        Some(next)
    }

    /// Reports the end of the rank; rank 0 waits for the other ones.
    #[cold]
    pub(super) fn end_launched(&mut self, outbox: &mut RankOutbox<'_, M>) -> Pause {
        let Self { context, launched, .. } = self;
        let Some(launched) = launched else { return Pause::Finished };
        let at = context.thread.clock;
        if context.me.get() > 0 {
            outbox.send(Rank::new(0), Token::RankEnded { at });
            return Pause::Finished;
        }
        launched.stage = Stage::Ended;
        launched.rank_ended(at).map_or(Pause::Blocked, Pause::Conditional)
    }

    /// Takes notice of the end of another rank of the program.
    pub(super) fn rank_ended(&mut self, at: SimTime) -> Wake {
        let launched =
            self.launched.as_deref_mut().expect("only ranks of launched programs report their ends");
        launched.rank_ended(at).map_or(Wake::No, Wake::Conditional)
    }

    /// Starts the rank with the first token that reaches it: its program has been started and placed by then.
    #[cold]
    pub(super) fn start_launched(&mut self) -> Result<(), Failure<M::Error>> {
        let started = Self::new(self.context.replay, self.context.me);
        *self = started.map_err(|error| Fault { at: self.context.thread.clock, order: 0, error })?;
        Ok(())
    }
}
