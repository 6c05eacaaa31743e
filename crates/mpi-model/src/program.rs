//! The program of a rank: its actions, with collective operations unfolded into steps.

use trace_mmap::{Action, Collective, CollectiveId, Cursor, RankTrace};

use crate::collective::{self, Member, Schedule, Step};
use crate::statistics::ActionKind;

/// Yields what a rank does, one thing at a time. It does not know time: what it yields never depends on when.
pub(crate) struct Program<'t> {
    trace: &'t RankTrace,
    cursor: Cursor<'t>,
    schedule: Option<(ActionKind, Schedule<'t>)>,
    member: Member<'t>,
}

/// The next thing that a rank does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// An action that is not a collective operation.
    Action(Action),
    /// A step of the collective operation in progress.
    Step(Step),
    /// The collective operation is over.
    CollectiveDone(ActionKind),
    /// The trace is over.
    End,
}

impl<'t> Program<'t> {
    pub(crate) fn new(trace: &'t RankTrace, member: Member<'t>) -> Self {
        Self { trace, cursor: trace.cursor(), schedule: None, member }
    }

    /// Returns the number of actions that have been begun.
    pub(crate) fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Returns the collective operation in progress.
    pub(crate) fn operation(&self) -> Option<ActionKind> {
        self.schedule.as_ref().map(|(kind, _)| *kind)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        if self.schedule.is_some() {
            return self.next_step();
        }
        match self.cursor.next() {
            Some(Action::Collective(id)) => self.begin(id),
            Some(action) => Next::Action(action),
            None => Next::End,
        }
    }

    fn begin(&mut self, id: CollectiveId) -> Next {
        let operation: &'t Collective = self.trace.collective(id);
        self.schedule = Some((operation.into(), collective::schedule(self.member, operation)));
        self.next_step()
    }

    fn next_step(&mut self) -> Next {
        let Some((kind, schedule)) = &mut self.schedule else { return Next::End };
        match schedule.next() {
            Some(step) => Next::Step(step),
            None => {
                let done = Next::CollectiveDone(*kind);
                self.schedule = None;
                done
            }
        }
    }
}
