//! Notes of a run: its choices, the other ends that they had, and the messages that came later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpi_model::{CallEnd, Decision};
use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Slot, Tag};

use crate::schedule::{ChoicePoint, End, Schedule, ScheduleError};

/// Choice points in the past of an event.
pub(crate) type Past = Arc<BTreeSet<ChoicePoint>>;

/// A run under a schedule.
#[derive(Clone, Debug, Default)]
pub struct Run(Arc<Mutex<Notes>>);

// Determinism: the hash map is looked up, never iterated.
#[derive(Debug, Default)]
struct Notes {
    choices: Vec<Choice>,
    sent: Vec<Sent>,
    calls: FxHashMap<(Rank, u64), OpenCall>,
    /// Receives and probes from any source, with the messages that they accept, and the number of messages that were sent before.
    receives: BTreeMap<ChoicePoint, (Filter, usize)>,
    /// Prescribed receives that have no message yet.
    unmet: BTreeSet<ChoicePoint>,
    /// Number of choices of each rank.
    made: BTreeMap<u32, u32>,
    /// First prescribed end that its call cannot have.
    wrong: Option<ScheduleError>,
}

/// A choice that the schedule has left open.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) point: ChoicePoint,
    pub(crate) end: End,
    /// All ends that it could have had then.
    pub(crate) ends: BTreeSet<End>,
}

/// A message that could have ended a choice, had that waited for it.
#[derive(Debug)]
pub(crate) struct LateMessage {
    pub(crate) point: ChoicePoint,
    pub(crate) from: Rank,
    /// Choices without which it would not have been sent.
    pub(crate) past: Past,
}

/// A message that has been sent.
#[derive(Debug)]
struct Sent {
    from: Rank,
    to: Rank,
    tag: Tag,
    communicator: CommId,
    past: Past,
    is_taken: bool,
}

/// Messages that a receive or a probe accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    pub(crate) tag: Option<Tag>,
    pub(crate) communicator: CommId,
}

/// Use of messages or requests by a call that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallKind {
    /// Takes a message.
    Receive(Filter),
    /// Waits for a message, and leaves it.
    Probe(Filter),
    /// Looks for a message.
    Poll,
    /// Completes one request, some of them, or all; `fails` if it is a test, which may complete none.
    Requests { completes: Completes, fails: bool },
}

/// Number of requests that a call completes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Completes {
    One,
    Some,
    All,
}

#[derive(Debug)]
struct OpenCall {
    kind: CallKind,
    /// Its choice point, if it is one; whether its end is prescribed.
    point: Option<(ChoicePoint, bool)>,
    /// Past of the message that the receive has taken.
    taken: Option<Past>,
}

impl Filter {
    fn accepts(self, sent: &Sent) -> bool {
        self.communicator == sent.communicator && self.tag.is_none_or(|tag| tag == sent.tag)
    }
}

impl Run {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a message.
    pub(crate) fn sent(&self, (from, to): (Rank, Rank), (tag, communicator): (Tag, CommId), past: Past) {
        self.notes().sent.push(Sent { from, to, tag, communicator, past, is_taken: false });
    }

    /// Notes a call, by the index of its action.
    pub(crate) fn begin(
        &self,
        (rank, action): (Rank, u64),
        kind: CallKind,
        point: Option<(ChoicePoint, bool)>,
    ) {
        let mut notes = self.notes();
        if let (CallKind::Receive(filter) | CallKind::Probe(filter), Some((point, _))) = (kind, point) {
            let before = notes.sent.len();
            notes.receives.insert(point, (filter, before));
        }
        if let (CallKind::Receive(_) | CallKind::Probe(_) | CallKind::Poll, Some((point, true))) =
            (kind, point)
        {
            notes.unmet.insert(point);
        }
        notes.calls.insert((rank, action), OpenCall { kind, point, taken: None });
    }

    /// Notes a choice.
    pub(crate) fn reach(&self, point: ChoicePoint) {
        self.notes().made.insert(point.rank, point.number + 1);
    }

    /// Notes a prescribed end that its call cannot have.
    pub(crate) fn refuse(&self, point: ChoicePoint, expected: String) {
        self.notes().wrong.get_or_insert(ScheduleError::WrongEnd { point, expected });
    }

    /// Checks, after the run, that its program has made the choices of a schedule.
    ///
    /// # Errors
    /// It has not.
    pub fn check(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let notes = self.notes();
        notes.wrong.clone().map_or(Ok(()), Err)?;
        let made = |rank| notes.made.get(&rank).copied().unwrap_or(0);
        let missing = schedule.0.keys().find(|point| point.number >= made(point.rank));
        missing.map_or(Ok(()), |&point| Err(ScheduleError::NotMade { point, made: made(point.rank) }))
    }

    /// Returns the past of the message that a receive has taken, once.
    pub(crate) fn take_past(&self, rank: Rank, action: u64) -> Option<Past> {
        self.notes().calls.get_mut(&(rank, action))?.taken.take()
    }

    /// Notes the end of a call.
    pub(crate) fn decided(&self, Decision { rank, action, end }: &Decision<'_>) {
        let mut notes = self.notes();
        let Notes { choices, sent, calls, unmet, .. } = &mut *notes;
        let Some(call) = calls.get_mut(&(*rank, *action)) else { return };
        if let (CallKind::Receive(filter), CallEnd::Message { source: Some(source), .. }) = (call.kind, end) {
            let is_it = |sent: &&mut Sent| {
                !sent.is_taken && (sent.from, sent.to) == (*source, *rank) && filter.accepts(sent)
            };
            if let Some(message) = sent.iter_mut().find(is_it) {
                message.is_taken = true;
                call.taken = Some(Arc::clone(&message.past));
            }
        }
        match call.point {
            Some((point, true)) => drop(unmet.remove(&point)),
            Some((point, false)) => {
                let (end, ends) = ends(call.kind, end);
                choices.push(Choice { point, end, ends });
            }
            None => {}
        }
    }

    /// Returns whether receives that the schedule prescribes have got no message: then a deadlock is one of the schedule.
    pub(crate) fn has_unmet(&self) -> bool {
        !self.notes().unmet.is_empty()
    }

    /// Returns the choices that the schedule has left open, in their order.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        self.notes().choices.clone()
    }

    /// Returns the schedule of the whole run, which was under `schedule`.
    pub fn schedule(&self, schedule: &Schedule) -> Schedule {
        let open = self.choices().into_iter().map(|choice| (choice.point, choice.end));
        Schedule(schedule.0.clone().into_iter().chain(open).collect())
    }

    /// Returns the first message of each source, beside those of `known` for each receive, that was sent after the receive was posted and
    /// not because of it.
    pub(crate) fn late_messages(&self, known: &BTreeMap<ChoicePoint, BTreeSet<End>>) -> Vec<LateMessage> {
        let notes = self.notes();
        let mut late = Vec::new();
        for (&point, &(filter, before)) in &notes.receives {
            let Some(known) = known.get(&point) else { continue };
            let mut sources = BTreeSet::new();
            for sent in &notes.sent[before..] {
                let is_known = || known.contains(&End::Source(Some(sent.from.get())));
                if sent.to.get() == point.rank
                    && filter.accepts(sent)
                    && !is_known()
                    && !sent.past.contains(&point)
                    && sources.insert(sent.from)
                {
                    late.push(LateMessage { point, from: sent.from, past: Arc::clone(&sent.past) });
                }
            }
        }
        late
    }
}

/// Returns the end of a call, and all that it could have had.
fn ends(kind: CallKind, end: &CallEnd<'_>) -> (End, BTreeSet<End>) {
    let numbers = |slots: &[Slot]| slots.iter().map(|slot| slot.get()).collect::<Vec<u32>>();
    let (end, mut ends) = match *end {
        CallEnd::Message { source, sources } => {
            let message = |source: &Rank| End::Source(Some(source.get()));
            (End::Source(source.map(Rank::get)), sources.iter().map(message).collect::<BTreeSet<End>>())
        }
        CallEnd::Requests { completed, complete } => {
            let each = || complete.iter().map(|slot| End::Requests(vec![slot.get()]));
            let all = || (!complete.is_empty()).then(|| End::Requests(numbers(complete)));
            let ends = match kind {
                CallKind::Requests { completes: Completes::One, .. } => each().collect(),
                CallKind::Requests { completes: Completes::Some, .. } => each().chain(all()).collect(),
                _ => all().into_iter().collect(),
            };
            (End::Requests(numbers(completed)), ends)
        }
    };
    match kind {
        CallKind::Poll => drop(ends.insert(End::Source(None))),
        CallKind::Requests { fails: true, .. } => drop(ends.insert(End::Requests(Vec::new()))),
        _ => {}
    }
    ends.insert(end.clone());
    (end, ends)
}
