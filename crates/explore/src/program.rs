//! A program under a schedule.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mpi_model::{ActionSource, ActionSources, Decision, Reply, Selection};
use pdes_core::{Bytes, Rank};
use replay::RunningProgram;
use trace_mmap::{Action, Call, CallId, InIdx, OutIdx, RankTrace, Slot, Source, TableWriter, WorkMetric};

use crate::run::{CallKind, Completes, Filter, Past, Run};
use crate::schedule::{ChoicePoint, End, Schedule};

/// Number of failed polls, without another call in between, after which a rank is said to poll for ever.
const MOST_POLLS: u32 = 10_000;

/// A program whose calls end as a schedule says, and which notes the choices that it leaves open.
#[derive(Clone, Debug)]
pub struct Scheduled {
    program: Arc<dyn RunningProgram>,
    schedule: Arc<Schedule>,
    run: Run,
}

impl Scheduled {
    /// Creates a program, for one run.
    pub fn new(program: impl RunningProgram + 'static, schedule: &Schedule, run: &Run) -> Self {
        Self { program: Arc::new(program), schedule: Arc::new(schedule.clone()), run: run.clone() }
    }
}

impl RunningProgram for Scheduled {
    fn name(&self) -> &Path {
        self.program.name()
    }

    fn ranks(&self) -> u32 {
        self.program.ranks()
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        self.program.work_metric()
    }

    fn sources(&self, ranks: u32, selection: &Selection) -> Arc<dyn ActionSources> {
        let sources = self.program.sources(ranks, selection);
        Arc::new(ScheduledSources { sources, schedule: Arc::clone(&self.schedule), run: self.run.clone() })
    }
}

#[derive(Debug)]
struct ScheduledSources {
    sources: Arc<dyn ActionSources>,
    schedule: Arc<Schedule>,
    run: Run,
}

impl ActionSources for ScheduledSources {
    fn source<'t>(&self, rank: Rank, trace: &'t RankTrace) -> Box<dyn ActionSource + 't> {
        Box::new(ScheduledSource {
            source: self.sources.source(rank, trace),
            rank,
            trace,
            writer: TableWriter::new(trace).expect("the trace of a program grows"),
            schedule: Arc::clone(&self.schedule),
            run: self.run.clone(),
            actions: 0,
            points: 0,
            past: Past::default(),
            open: Vec::new(),
            sends: HashMap::new(),
            receives: HashMap::new(),
            polled: BTreeSet::new(),
            polls: 0,
        })
    }

    fn decided(&self, decision: &Decision<'_>) {
        self.run.decided(decision);
        self.sources.decided(decision);
    }
}

/// The actions of a rank, whose calls end as the schedule says.
// Determinism: the hash maps are looked up, never iterated.
struct ScheduledSource<'t> {
    source: Box<dyn ActionSource + 't>,
    rank: Rank,
    trace: &'t RankTrace,
    writer: TableWriter<'t>,
    schedule: Arc<Schedule>,
    run: Run,
    /// Number of actions so far.
    actions: u64,
    /// Number of choice points so far.
    points: u32,
    /// Choice points on which depends what the rank does.
    past: Past,
    /// Calls that the rank has not seen the end of.
    open: Vec<OpenCall>,
    /// Channels of persistent sends.
    sends: HashMap<Slot, OutIdx>,
    /// Persistent receives.
    receives: HashMap<Slot, (Source, Bytes)>,
    /// Polls since the last other call: only the first of equal ones is a choice.
    polled: BTreeSet<CallId>,
    /// Number of them.
    polls: u32,
}

/// A call that receives a message, or is a choice point.
struct OpenCall {
    action: u64,
    point: Option<ChoicePoint>,
    /// Request of a nonblocking receive; others end with their action.
    slot: Option<Slot>,
}

impl ActionSource for ScheduledSource<'_> {
    fn next(&mut self, reply: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        self.learn(reply);
        let Some(action) = self.source.next(reply)? else { return Ok(None) };
        let action = self.begin(action)?;
        self.actions += 1;
        Ok(Some(action))
    }

    fn slots(&self) -> u32 {
        self.source.slots()
    }
}

impl<'t> ScheduledSource<'t> {
    /// Adds what the rank has learned by calls that have ended to its past.
    fn learn(&mut self, reply: Reply<'_>) {
        let Self { open, past, run, rank, .. } = self;
        open.retain(|call| {
            let has_ended = call.slot.is_none_or(|slot| reply.is_completed(slot));
            if has_ended {
                let of_message = run.take_past(*rank, call.action);
                let points = of_message.iter().flat_map(|past| past.iter().copied()).chain(call.point);
                Arc::make_mut(past).extend(points);
            }
            !has_ended
        });
    }

    /// Returns the action that is carried out in place of one of the program.
    fn begin(&mut self, action: Action) -> Result<Action, Box<str>> {
        let begun = match action {
            Action::Call(call) => return self.begin_call(action, call),
            Action::Compute { .. } | Action::Sleep { .. } => return Ok(action),
            Action::Send { to, .. } | Action::Isend { to, .. } => {
                self.sent(to);
                action
            }
            Action::Recv { from, .. } => {
                self.receive(Source::Rank(from), None);
                action
            }
            Action::Irecv { from, slot, .. } => {
                self.receive(Source::Rank(from), Some(slot));
                action
            }
            _ => action,
        };
        self.end_polls();
        Ok(begun)
    }

    fn begin_call(&mut self, action: Action, id: CallId) -> Result<Action, Box<str>> {
        let call = match self.trace.call(id).clone() {
            Call::Iprobe { from, .. } => {
                return Ok(self.poll(id, CallKind::Poll, Some(from))?.unwrap_or(action));
            }
            Call::Testall { .. } | Call::Test { .. } => return self.test(action, id, Completes::All),
            Call::Testany { .. } => return self.test(action, id, Completes::One),
            Call::Testsome { .. } => return self.test(action, id, Completes::Some),
            call => call,
        };
        self.end_polls();
        let replaced = match call {
            Call::Send { to, .. } | Call::Isend { to, .. } => {
                to.into_iter().for_each(|to| self.sent(to));
                None
            }
            Call::SendInit { to, slot, .. } => {
                self.receives.remove(&slot);
                if let Some(to) = to {
                    self.sends.insert(slot, to);
                }
                None
            }
            Call::RecvInit { from, bytes, slot } => {
                self.sends.remove(&slot);
                self.receives.insert(slot, (from, bytes));
                None
            }
            Call::Start { slots } => {
                let sends: Vec<OutIdx> =
                    slots.iter().filter_map(|slot| self.sends.get(slot).copied()).collect();
                sends.into_iter().for_each(|to| self.sent(to));
                match &*slots {
                    [slot] => self.receives.get(slot).copied().and_then(|(from, bytes)| {
                        let from = self.receive(from, Some(*slot))?;
                        Some(Call::Irecv { from, bytes, slot: *slot })
                    }),
                    _ => None,
                }
            }
            Call::Recv { from, bytes } => self.receive(from, None).map(|from| Call::Recv { from, bytes }),
            Call::Irecv { from, bytes, slot } => {
                self.receive(from, Some(slot)).map(|from| Call::Irecv { from, bytes, slot })
            }
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                to.into_iter().for_each(|to| self.sent(to));
                self.receive(from, None).map(|from| Call::SendRecv { to, send_bytes, from, recv_bytes })
            }
            Call::Probe { from: from @ Source::Any { .. } } => {
                let filter = self.filter(from);
                let source =
                    filter.and_then(|filter| self.choose_source(from, CallKind::Probe(filter), None));
                source.map(|from| Call::Probe { from })
            }
            Call::Waitany { .. } => self.wait(id, Completes::One),
            Call::Waitsome { .. } => self.wait(id, Completes::Some),
            _ => None,
        };
        Ok(replaced.map_or(action, |call| Action::Call(self.writer.call(call))))
    }

    fn end_polls(&mut self) {
        self.polled.clear();
        self.polls = 0;
    }

    /// Notes a message to a rank.
    fn sent(&mut self, to: OutIdx) {
        let channel = self.trace.outgoing_channel(to);
        let communicator = self.trace.communicator(channel.communicator).id;
        self.run.sent((self.rank, channel.peer), (channel.tag, communicator), Arc::clone(&self.past));
    }

    /// Returns the next choice point, and its end if one is prescribed that it can have.
    fn next_point(&mut self, ends: Ends<'_>) -> (ChoicePoint, Option<End>) {
        let point = ChoicePoint { rank: self.rank.get(), number: self.points };
        self.points += 1;
        self.run.reach(point);
        let prescribed = self.schedule.0.get(&point).cloned();
        if prescribed.as_ref().is_some_and(|end| !ends.has(end)) {
            self.run.refuse(point, ends.to_string());
            return (point, None);
        }
        (point, prescribed)
    }

    /// Returns the ends of a call that completes requests.
    fn ends_of_requests(&self, id: CallId, completes: Completes) -> Ends<'t> {
        let requests =
            self.trace.call(id).completion().map_or(&[] as &[Slot], |completion| completion.requests);
        Ends::Requests { requests, most: if let Completes::One = completes { 1 } else { requests.len() } }
    }

    /// Notes a call that is a choice point, or receives a message.
    fn open(&mut self, kind: CallKind, point: Option<(ChoicePoint, bool)>, slot: Option<Slot>) {
        self.run.begin((self.rank, self.actions), kind, point);
        self.open.push(OpenCall { action: self.actions, point: point.map(|(point, _)| point), slot });
    }

    fn filter(&self, from: Source) -> Option<Filter> {
        let (tag, communicator) = match from {
            Source::ProcNull => return None,
            Source::Rank(channel) => {
                let channel = self.trace.incoming_channel(channel);
                (channel.tag, channel.communicator)
            }
            Source::Any { tag, communicator, .. } => (tag, communicator),
        };
        Some(Filter { tag, communicator: self.trace.communicator(communicator).id })
    }

    /// Notes a receive; returns its source, if that is prescribed.
    fn receive(&mut self, from: Source, slot: Option<Slot>) -> Option<Source> {
        let filter = self.filter(from)?;
        if let Source::Rank(_) = from {
            self.open(CallKind::Receive(filter), None, slot);
            return None;
        }
        self.choose_source(from, CallKind::Receive(filter), slot)
    }

    /// Notes a receive or a blocking probe from any source; returns its source, if that is prescribed.
    fn choose_source(&mut self, from: Source, kind: CallKind, slot: Option<Slot>) -> Option<Source> {
        let (point, prescribed) = self.next_point(Ends::Source { fails: false });
        let rank = match prescribed {
            Some(End::Source(rank)) => rank,
            _ => None,
        };
        self.open(kind, Some((point, rank.is_some())), slot);
        rank.map(|rank| Source::Rank(self.channel_from(from, rank)))
    }

    /// Returns the channel from a rank of the messages that a receive accepts.
    fn channel_from(&mut self, from: Source, rank: u32) -> InIdx {
        match from {
            Source::Any { tag, communicator, .. } => self.writer.incoming(Rank::new(rank), tag, communicator),
            Source::Rank(channel) => channel,
            Source::ProcNull => unreachable!("no message of no process is prescribed"),
        }
    }

    /// Notes a wait; returns the one in its place, if its end is prescribed.
    fn wait(&mut self, id: CallId, completes: Completes) -> Option<Call> {
        let (point, prescribed) = self.next_point(self.ends_of_requests(id, completes));
        let call = prescribed.as_ref().and_then(wait_for);
        self.open(CallKind::Requests { completes, fails: false }, Some((point, call.is_some())), None);
        call
    }

    fn test(&mut self, action: Action, id: CallId, completes: Completes) -> Result<Action, Box<str>> {
        let kind = CallKind::Requests { completes, fails: true };
        Ok(self.poll(id, kind, None)?.unwrap_or(action))
    }

    /// Notes a test or a probe; returns the action in its place, if its end is prescribed.
    fn poll(&mut self, id: CallId, kind: CallKind, from: Option<Source>) -> Result<Option<Action>, Box<str>> {
        self.polls += 1;
        if self.polls > MOST_POLLS {
            return Err(format!("the rank polls for ever: {MOST_POLLS} times without another call").into());
        }
        if from == Some(Source::ProcNull) || !self.polled.insert(id) {
            return Ok(None);
        }
        let ends = match kind {
            CallKind::Requests { completes, .. } => self.ends_of_requests(id, completes),
            _ => Ends::Source { fails: true },
        };
        let (point, prescribed) = self.next_point(ends);
        let call = match (&prescribed, from) {
            (Some(End::Source(Some(rank))), Some(from)) => {
                Some(Call::Probe { from: Source::Rank(self.channel_from(from, *rank)) })
            }
            (Some(End::Requests(requests)), None) if !requests.is_empty() => {
                wait_for(&End::Requests(requests.clone()))
            }
            _ => None,
        };
        if prescribed.is_some() && call.is_none() {
            // It finds nothing, in no time.
            Arc::make_mut(&mut self.past).insert(point);
            return Ok(Some(Action::Sleep { seconds: 0.0 }));
        }
        self.open(kind, Some((point, call.is_some())), None);
        Ok(call.map(|call| Action::Call(self.writer.call(call))))
    }
}

/// Ends that a call can have.
#[derive(Clone, Copy)]
enum Ends<'t> {
    /// The message of a rank, or none where it `fails`.
    Source { fails: bool },
    /// Up to `most` of these requests.
    Requests { requests: &'t [Slot], most: usize },
}

impl Ends<'_> {
    fn has(self, end: &End) -> bool {
        match (self, end) {
            (Self::Source { fails }, End::Source(source)) => fails || source.is_some(),
            (Self::Requests { requests, most }, End::Requests(ended)) => {
                ended.len() <= most && ended.iter().all(|request| requests.contains(&Slot::new(*request)))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Ends<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { fails: false } => write!(f, "a source"),
            Self::Source { fails: true } => write!(f, "a source, or null"),
            Self::Requests { requests, most } => {
                let numbers: Vec<String> = requests.iter().map(|slot| slot.get().to_string()).collect();
                write!(f, "at most {most} of the requests {}", numbers.join(", "))
            }
        }
    }
}

/// Returns the wait for the requests of an end.
fn wait_for(end: &End) -> Option<Call> {
    match end {
        End::Requests(requests) => {
            Some(Call::Waitall { slots: requests.iter().copied().map(Slot::new).collect() })
        }
        End::Source(_) => None,
    }
}
