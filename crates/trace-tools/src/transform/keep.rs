//! `keep`: a program runs some iterations of its main loop.

use pdes_core::Rank;
use rustc_hash::FxHashSet;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op};

use super::keys::Keys;
use super::messages::SelectedMessages;
use super::remove::check_collectives;
use super::requests::RemovedRequests;
use super::selector::{Select, Tracker};
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "keep",
    subject: Subject::Visits,
    keys: &[],
    semantics: "Visits other than `iterations` disappear on all ranks, with all that they do. A visit of the `region` or `site` ends here where the next one \
                begins, the last one at `finalize` or at the end. Messages, collective operations and requests must disappear as a whole.",
    read,
};

#[derive(Clone, Debug)]
struct Keep {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    match selector.has_iterations() {
        true => Ok(Box::new(Keep { selector })),
        false => Err("keep lacks iterations: the visits of a region or site that stay".to_owned()),
    }
}

impl Transform for Keep {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let select = |rank| Visits::new(&self.selector, rank);
        for rank in program.ranks() {
            let values = &mut (select(rank), KeptRequests::default());
            program.walk(rank, values, |(visits, kept), step| {
                let is_removed = visits.selects(&step.op);
                let reason = kept.follow(&step, is_removed);
                reason.map_or(Ok(()), |reason| Err(Refusal::at(rank, step.action, reason)))
            })?;
        }
        check_collectives(program, select)?;
        SelectedMessages::check_sides(program, select)?;
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Keep {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let visits = Visits::new(&self.selector, rank);
        Box::new(WithoutVisits { visits, requests: RemovedRequests::default() })
    }
}

/// Follows the visits of a rank.
#[derive(Debug)]
struct Visits<'p> {
    tracker: Tracker<'p>,
    is_removed: bool,
}

impl<'p> Visits<'p> {
    fn new(selector: &'p Selector, rank: Rank) -> Self {
        Self { tracker: Tracker::new(selector, rank), is_removed: false }
    }
}

/// Selects what is removed.
impl Select for Visits<'_> {
    fn selects(&mut self, op: &Op) -> bool {
        let visits = self.tracker.visits();
        self.tracker.follow(op);
        if self.tracker.visits() > visits {
            self.is_removed = !self.tracker.is_here();
        }
        self.is_removed &= *op != Op::Finalize;
        self.is_removed
    }
}

impl Stateful for Visits<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.tracker, &mut self.is_removed).state(state);
    }
}

/// Requests that are posted or started by operations that stay, and may be pending, by slot.
#[derive(Debug, Default)]
struct KeptRequests(FxHashSet<u32>);

impl Stateful for KeptRequests {
    fn state(&mut self, state: &mut State<'_>) {
        self.0.state(state);
    }
}

impl KeptRequests {
    /// Takes note of the next operation of the rank; returns the reason why it cannot be removed, if it is.
    fn follow(&mut self, step: &Step, is_removed: bool) -> Option<String> {
        let completed: Vec<u32> = match &step.op {
            Op::WaitAll => self.0.iter().copied().collect(),
            Op::Call(call) => {
                let done = call.completion().map_or(&[][..], |completion| completion.done());
                done.iter().map(|name| name.get()).collect()
            }
            Op::Wait(_) => step.awaited.iter().map(|slot| slot.get()).collect(),
            _ => Vec::new(),
        };
        let is_kept = completed.iter().filter(|slot| self.0.remove(slot)).count() > 0;
        if !is_removed {
            self.0.extend(step.posted.map(|slot| slot.get()));
            if let Op::Call(CallOp::Start { requests }) = &step.op {
                self.0.extend(requests.iter().map(|name| name.get()));
            }
            return None;
        }
        let refused = "would be removed: keep its visit, too (iterations)";
        if is_kept {
            return Some(format!("the wait or test for a request of an operation that stays {refused}"));
        }
        match &step.op {
            Op::Call(
                call @ (CallOp::SendInit { .. }
                | CallOp::RecvInit { .. }
                | CallOp::Free { .. }
                | CallOp::Cancel { .. }
                | CallOp::NewCommunicator { .. }
                | CallOp::FreeCommunicator { .. }
                | CallOp::File { .. }
                | CallOp::SetView { .. }
                | CallOp::Window { .. }),
            ) => Some(format!("{}, on which other visits may depend, {refused}", call.name())),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct WithoutVisits<'p> {
    visits: Visits<'p>,
    requests: RemovedRequests,
}

impl Rewrite for WithoutVisits<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        if self.visits.selects(&step.op) {
            self.requests.add(&step);
        } else {
            out.extend(self.requests.keep(step));
        }
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.visits, &mut self.requests).state(state);
    }
}
