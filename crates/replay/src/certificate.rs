//! Certificates: all that a run of a program did on a machine, as text that another program verifies without this one.
//!
//! The work of the network is recorded by a [`CertifiedNetwork`], which wraps the network of the model, and the actions and messages of
//! ranks by an [`EventSink`]. Neither exists in a run without a certificate. `docs/certificates.md` has the format and what is proven.

mod network;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mpi_model::collective::{Operation, Selector};
use mpi_model::{ActionKind, Event, EventSink, Parameters, Progress};
use netmodel::{FatPipes, NetworkParameters};
use outputs::AtomicFile;
use pdes_core::{Bytes, Rank, SimDuration, SimTime};
use trace_mmap::{Action, CommId, Trace};
use trace_tools::TextLine;

use crate::execution::Obstacle;
use crate::{RunError, RunSpec, Simulation};
pub(crate) use network::{CertifiedNetwork, Rates, TaggedWork};

/// Algorithm of collective operations without messages.
const CLOSED_FORM: &str = "analytic";
/// Begin of the names of those whose messages depend on who has arrived.
const BY_ARRIVAL: &str = "arrival_";

/// Calls whose begin and end the checker derives, beside blocking collective operations.
const CALLS: [&str; 12] = [
    "init",
    "finalize",
    "comm_size",
    "location",
    "compute",
    "sleep",
    "send",
    "isend",
    "recv",
    "irecv",
    "sendRecv",
    "wait",
];

/// Blocking operations whose messages the checker finds inside their calls.
const OPERATIONS: [&str; 14] = [
    "waitall",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "reducescatter",
];

/// Size and cost of a certificate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CertificateSummary {
    /// Size of the file \[B\].
    pub bytes: u64,
    /// Number of messages on the network.
    pub messages: u64,
    /// Wall-clock time of writing: of the programs of the ranks, after the replay.
    pub writing_time: Duration,
}

/// Recorder of the certificate of a run.
#[derive(Debug)]
pub(crate) struct CertificateRecorder {
    path: PathBuf,
    lines: Mutex<Lines>,
}

/// The lines of a certificate: those of the network are written at once, those of ranks at the end.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    file: Option<AtomicFile>,
    /// The first error of the file.
    failed: Option<io::Error>,
    /// Number of lines so far.
    count: u64,
    messages: u64,
    states: Vec<Vec<State>>,
    messages_of_ranks: Vec<RankMessage>,
    /// The last two cuts.
    cuts: [Option<Cut>; 2],
    repetitions: Vec<Repetition>,
    /// Time of all that was skipped so far.
    skipped: SimDuration,
}

/// An instant at which the simulation was compared, and the number of states of each rank until then.
#[derive(Clone, Debug, PartialEq)]
struct Cut {
    at: u64,
    states: Vec<usize>,
}

/// The interval between two cuts with equal states, and how often it was skipped after them.
#[derive(Debug)]
struct Repetition {
    from: Cut,
    to: Cut,
    times: u64,
}

/// An action of a rank; instants as they are [told](Lines::told).
#[derive(Clone, Copy, Debug)]
struct State {
    kind: ActionKind,
    begin: u64,
    end: u64,
}

/// A message between ranks.
#[derive(Clone, Copy, Debug)]
struct RankMessage {
    from: Rank,
    to: Rank,
    sent: u64,
    arrived: u64,
    bytes: Bytes,
    tag: u32,
    communicator: CommId,
    operation: Option<ActionKind>,
}

impl Lines {
    /// Writes to the file; an error is reported at the end.
    pub(crate) fn write(&mut self, line: std::fmt::Arguments<'_>) {
        if let (Some(file), None) = (&mut self.file, &self.failed) {
            self.failed = file.write_fmt(line).err();
            self.count += 1;
        }
    }

    /// Returns an instant as the certificate tells it \[ps\]: as if what was skipped took no time.
    pub(crate) fn told(&self, at: SimTime) -> u64 {
        at.as_picos() - self.skipped.as_picos()
    }

    /// Tells that the simulation is compared at an instant; the events of ranks until then are recorded.
    pub(crate) fn cut(&mut self, now: SimTime) {
        let cut = Cut { at: self.told(now), states: self.states.iter().map(Vec::len).collect() };
        // What was skipped is compared once more at its end.
        if self.cuts[1].as_ref() != Some(&cut) {
            self.write(format_args!("cut {}\n", cut.at));
            self.cuts = [self.cuts[1].take(), Some(cut)];
        }
    }

    /// Tells that what lies between the last two cuts is skipped as often as it takes so much time.
    pub(crate) fn repeat(&mut self, skipped: SimDuration) {
        let [Some(from), Some(to)] = self.cuts.clone() else { unreachable!("two cuts were compared") };
        let times = skipped.as_picos() / (to.at - from.at);
        self.write(format_args!("repeat {times}\n"));
        self.repetitions.push(Repetition { from, to, times });
        self.skipped += skipped;
    }
}

impl EventSink for CertificateRecorder {
    fn record(&self, events: &[Event]) {
        let mut lines = self.lines();
        for event in events {
            match *event {
                Event::State { rank, kind, begin, end, .. } => {
                    if lines.states.len() <= rank.index() {
                        lines.states.resize_with(rank.index() + 1, Vec::new);
                    }
                    let state = State { kind, begin: lines.told(begin), end: lines.told(end) };
                    lines.states[rank.index()].push(state);
                }
                Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation } => {
                    let [sent, arrived] = [sent, arrived].map(|at| lines.told(at));
                    let message =
                        RankMessage { from, to, sent, arrived, bytes, tag, communicator, operation };
                    lines.messages_of_ranks.push(message);
                }
                Event::Wait { .. } => {}
            }
        }
    }

    fn begin_anew(&self) {
        *self.lines() = Lines::default();
    }
}

impl CertificateRecorder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, lines: Mutex::default() }
    }

    pub(crate) fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the file of a run: parameters, and the hosts of ranks.
    ///
    /// # Errors
    /// If the checker does not know a parameter or a call of the program, or the file cannot be created.
    pub(crate) fn begin(&self, simulation: &Simulation) -> Result<(), RunError> {
        let spec = simulation.spec();
        check_parameters(spec)?;
        check_calls(simulation.trace())?;
        let file = AtomicFile::create(&self.path).map_err(|error| self.failed(error))?;
        let mut lines = self.lines();
        lines.file = Some(file);
        let NetworkParameters { weight_s, tcp_gamma, cross_traffic, fat_pipes, .. } = spec.network;
        let Parameters { envelope, detached_below, eager_below, .. } = spec.mpi;
        let [envelope, eager_below, detached_below] = [envelope, eager_below, detached_below].map(Bytes::get);
        let (cross_traffic, joint) = (u8::from(cross_traffic), u8::from(fat_pipes == FatPipes::Joint));
        lines.write(format_args!("pdes-replay certificate 1\n"));
        lines.write(format_args!("model {}\n", spec.model.key));
        lines.write(format_args!("sharing {weight_s:?} {tcp_gamma:?} {cross_traffic} {joint}\n"));
        lines.write(format_args!("protocols {envelope} {eager_below} {detached_below}\n"));
        for (rank, host) in simulation.placement().hosts().iter().enumerate() {
            lines.write(format_args!("P {rank} {host}\n"));
        }
        Ok(())
    }

    /// Writes what the ranks did, and completes the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(&self, simulation: &Simulation) -> Result<CertificateSummary, RunError> {
        let started = Instant::now();
        let mut lines = self.lines();
        let mut messages = std::mem::take(&mut lines.messages_of_ranks);
        messages
            .sort_by_key(|message| (message.to, message.from, message.sent, message.arrived, message.bytes));
        for RankMessage { from, to, sent, arrived, bytes, tag, communicator, operation } in messages {
            let operation = operation.map_or("-", ActionKind::name);
            lines.write(format_args!(
                "M {from} {to} {sent} {arrived} {} {tag} {} {operation}\n",
                bytes.get(),
                communicator.get()
            ));
        }
        let mut states = std::mem::take(&mut lines.states);
        let trace = simulation.trace();
        states.resize_with(trace.ranks() as usize, Vec::new);
        for (rank, states) in (0..).map(Rank::new).zip(states) {
            write_program(&mut lines, trace, rank, &states);
        }
        let count = lines.count;
        lines.write(format_args!("end {count}\n"));
        let (file, failed) = (lines.file.take(), lines.failed.take());
        let written = failed.map_or(Ok(()), Err).and_then(|()| file.expect("the run has begun").commit());
        let bytes = written.map_err(|error| self.failed(error))?;
        Ok(CertificateSummary { bytes, messages: lines.messages, writing_time: started.elapsed() })
    }

    fn failed(&self, source: io::Error) -> RunError {
        RunError::Certificate { path: self.path.clone(), source }
    }
}

/// Writes the actions of a rank in their order, each with its begin and its end; of repetitions the first one.
fn write_program(lines: &mut Lines, trace: &Trace, rank: Rank, states: &[State]) {
    let program = trace.rank(rank);
    let mut actions = program.cursor().zip(trace.ops(rank));
    let marks: Vec<Mark> = lines.repetitions.iter().flat_map(|repetition| repetition.marks(rank)).collect();
    let mut marks = marks.into_iter().peekable();
    let (mut written, mut now) = (0, 0);
    // Number of actions so far, and at the last mark.
    let (mut position, mut marked) = (0, 0);
    loop {
        while let Some(mark) = marks.next_if(|mark| mark.states == written) {
            lines.write(format_args!("{} {rank}\n", mark.name));
            let skipped = (position - marked) * mark.times;
            if let Some(last) = skipped.checked_sub(1) {
                actions.nth(last as usize);
            }
            marked = position;
        }
        let Some((action, op)) = actions.next() else { break };
        position += 1;
        let kind = ActionKind::of(action, program);
        // Markers, and the end of a program that waits for nothing, are no states.
        let state = states.get(written).filter(|state| state.kind == kind);
        written += usize::from(state.is_some());
        let (begin, end) = state.map_or((now, now), |state| (state.begin, state.end));
        now = end;
        lines.write(format_args!("A {begin} {end} {}\n", TextLine { rank, op: &op }));
    }
    // Requests that the program leaves pending are completed at its end.
    for State { begin, end, .. } in &states[written..] {
        lines.write(format_args!("A {begin} {end} {rank} finalize\n"));
    }
    marks.for_each(|mark| lines.write(format_args!("{} {rank}\n", mark.name)));
}

/// Place in the program of a rank where a repeated interval begins or ends.
#[derive(Clone, Copy, Debug)]
struct Mark {
    name: &'static str,
    /// Number of states before it.
    states: usize,
    /// Number of times that the actions since the last mark are skipped.
    times: u64,
}

impl Repetition {
    fn marks(&self, rank: Rank) -> [Mark; 2] {
        let states = |cut: &Cut| cut.states.get(rank.index()).copied().unwrap_or(0);
        [
            Mark { name: "since", states: states(&self.from), times: 0 },
            Mark { name: "again", states: states(&self.to), times: self.times },
        ]
    }
}

/// Checks that costs and rates are those that the checker derives.
fn check_parameters(spec: &RunSpec) -> Result<(), Obstacle> {
    let mpi = &spec.mpi;
    let has_overheads = !(mpi.send.is_zero() && mpi.isend.is_zero() && mpi.receive.is_zero())
        || mpi.irecv > SimDuration::ZERO
        || !mpi.call_overheads.is_empty();
    let has_regions = !(mpi.region_speeds.is_empty() && mpi.region_bytes_per_flop.is_empty());
    let is_merging = spec.model.key == "flow" && !spec.network.separates_messages();
    let uses = |is_meant: fn(&str) -> bool| {
        Operation::ALL.into_iter().any(|operation| {
            let rows = mpi.collectives.rows(operation).map(|(_, algorithm)| algorithm);
            rows.chain(mpi.collectives.chosen(operation)).any(is_meant)
        })
    };
    let has_closed_forms =
        mpi.collectives.selector() == Selector::Analytic || uses(|name| name == CLOSED_FORM);
    let obstacles = [
        (
            has_closed_forms,
            "collective operations in closed form send no messages: choose another selector than \"analytic\" (mpi.collectives)",
        ),
        (
            uses(|name| name.starts_with(BY_ARRIVAL)),
            "collective operations that serve ranks as they arrive send when they have looked: choose other algorithms (mpi)",
        ),
        (
            is_merging,
            "it proves that rates are max-min at every event: set network.precision_s = 0 and network.solve_scope = \"complete\"",
        ),
        (
            has_overheads,
            "the checker knows no overheads of calls (mpi): take a preset without them, such as links or raw",
        ),
        (
            has_regions || mpi.bytes_per_flop > 0.0,
            "the checker knows one speed of each host: leave regions and the traffic with the memory out ([compute])",
        ),
        (
            mpi.progress != Progress::Asynchronous,
            "the data of messages move at any time: set mpi.progress = \"asynchronous\"",
        ),
    ];
    let first = obstacles.into_iter().find(|(is_so, _)| *is_so);
    first.map_or(Ok(()), |(_, why)| Err(Obstacle::NotCertified(why)))
}

/// Checks that the checker knows all calls of a program.
fn check_calls(trace: &Trace) -> Result<(), RunError> {
    for rank in (0..trace.ranks()).map(Rank::new) {
        for (index, (action, op)) in (0_u64..).zip(trace.rank(rank).cursor().zip(trace.ops(rank))) {
            if !matches!(action, Action::Collective(_) | Action::Call(_)) {
                continue;
            }
            let text = TextLine { rank, op: &op }.to_string();
            let name = text.split(' ').nth(1).unwrap_or_default();
            if !CALLS.contains(&name) && !OPERATIONS.contains(&name) {
                return Err(RunError::UncertifiedCall { rank, action: index, call: name.to_owned() });
            }
        }
    }
    Ok(())
}
