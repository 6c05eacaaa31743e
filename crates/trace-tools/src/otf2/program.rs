//! The program of a rank.

use ::otf2::reader::{Counter, Event, read_events};
use pdes_core::Bytes;
use rustc_hash::FxHashMap;
use trace_mmap::{Op, SendMode, TraceError};

use super::amounts::{Record, kind_of, place_of};
use super::windows::OpenWindow;
use super::{Otf2, Otf2ProgramError, library};
use crate::timed::{
    Between, Calls, CommPeer, Done, Envelope, Function, Given, Handle, Requests, TimedProgram,
};

const OFF: &str =
    "the measurement was switched off; what happened until it was on again is missing, and takes no time";
const NO_RECORD: &str = "a collective operation has no record, as nonblocking ones of early versions of Score-P; the replay does not do it";
const CANCELLED: &str = "a request is cancelled; the replay does not post it";
const BACKWARDS: &str = "the counter of computations runs backwards; the computation is left out";
const IO: &str = "an operation on a file outside of MPI is a sleep of its time";
const NO_END: &str = "a call has no end in the archive; it ends with the archive";

/// Nanoseconds per second.
const NANOS: u128 = 1_000_000_000;

/// Writes the program of a rank.
pub(super) fn write(archive: &Otf2, program: &mut TimedProgram<'_>) -> Result<(), TraceError> {
    let location = archive.locations[program.rank().index()];
    write_events(archive, program, |take| read_events(&archive.anchor, location, take).map_err(library))
}

/// Writes the program of a rank whose events `read` yields, with their times \[ticks\], until it is told to stop.
fn write_events(
    archive: &Otf2,
    program: &mut TimedProgram<'_>,
    read: impl FnOnce(&mut dyn FnMut(u64, Event) -> bool) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let ticks = u128::from(archive.definitions.ticks_per_second);
    let calls = Calls::new(&archive.communicators, program);
    let (events, vectors) = (Vec::new(), FxHashMap::default());
    let (counted, io) = (Counted::default(), None);
    let mut rank = RankProgram {
        archive,
        calls,
        open: None,
        events,
        vectors,
        line: 0,
        now: 0,
        is_off: false,
        counted,
        io,
        windows: FxHashMap::default(),
    };
    let mut result = Ok(());
    let read = read(&mut |time, event| {
        let nanos = u64::try_from(u128::from(time) * NANOS / ticks).unwrap_or(u64::MAX);
        result = rank.event(nanos, event);
        result.is_ok()
    });
    result.and(read)?;
    if let (Some(counter), false) = (archive.counters.first(), rank.counted.has_values) {
        return Err(rank.calls.error(Otf2ProgramError::NoValue { counter: counter.name.clone() }));
    }
    rank.finish()
}

/// The counter of computations.
#[derive(Default)]
struct Counted {
    /// Its value at the end of the last call, and the last value.
    since: Option<f64>,
    last: f64,
    has_values: bool,
}

pub(super) struct RankProgram<'c, 'p, 'a> {
    pub(super) archive: &'c Otf2,
    pub(super) calls: Calls<'c, 'p, 'a>,
    /// The outermost region of MPI that the rank is in.
    open: Option<OpenCall<'c>>,
    /// The events in it.
    events: Vec<Event>,
    /// Number of operations on vectors so far on each communicator.
    vectors: FxHashMap<u32, usize>,
    /// Number and time \[ns\] of the current event.
    line: u64,
    now: u64,
    is_off: bool,
    counted: Counted,
    /// The operation on a file outside of MPI that is under way.
    io: Option<u64>,
    /// The windows that the rank has, by their numbers.
    pub(super) windows: FxHashMap<u32, OpenWindow>,
}

#[derive(Clone, Copy)]
struct OpenCall<'c> {
    region: u32,
    name: &'c str,
    /// Computation before it.
    before: Between,
    /// Number and time of its first event.
    line: u64,
    begin: u64,
    /// Number of times that its region is entered again.
    depth: u32,
}

impl RankProgram<'_, '_, '_> {
    fn event(&mut self, now: u64, event: Event) -> Result<(), TraceError> {
        self.line += 1;
        if self.line == 1 {
            self.calls.start_at(now);
        }
        self.now = now;
        match (event, &mut self.open) {
            (Event::Measurement { is_on: false }, _) => {
                self.is_off = true;
                self.calls.leave_out(self.line, 1, OFF);
                self.finish()
            }
            (Event::Metric { metric, index, value }, _) => {
                let is_it = |counter: &&Counter| (counter.metric, counter.index) == (metric, index);
                if let Some(counter) = self.archive.counters.iter().find(is_it) {
                    self.counted.last = value as f64 * counter.scale;
                    self.counted.since.get_or_insert(self.counted.last);
                    self.counted.has_values = true;
                }
                Ok(())
            }
            (Event::Measurement { is_on: true }, _) => {
                if std::mem::take(&mut self.is_off) {
                    self.counted.since = None;
                    self.calls.start_at(now);
                }
                Ok(())
            }
            (Event::Enter { region }, Some(open)) => {
                open.depth += u32::from(region == open.region);
                Ok(())
            }
            (Event::Leave { region }, Some(open)) if region == open.region && open.depth == 0 => {
                self.end_call()
            }
            (Event::Leave { region }, Some(open)) => {
                open.depth -= u32::from(region == open.region);
                Ok(())
            }
            (Event::Enter { region }, None) => {
                let region = self.archive.definitions.regions.get(&region).map(|found| (region, found));
                if let Some((region, found)) =
                    region.filter(|(_, found)| found.is_mpi || found.name.starts_with("MPI_"))
                {
                    let before = self.computation();
                    self.open = Some(OpenCall {
                        before,
                        region,
                        name: found.name.trim_end_matches("()"),
                        line: self.line,
                        begin: now,
                        depth: 0,
                    });
                }
                Ok(())
            }
            // The end of a region other than MPI's.
            (Event::Leave { .. }, None) => Ok(()),
            // Of operations within operations the outer one counts.
            (Event::IoBegin { is_nonblocking: false, operation, .. }, None) if self.io.is_none() => {
                self.io = Some(operation);
                self.pass_computation()
            }
            (Event::IoComplete { operation }, None) if self.io == Some(operation) => {
                self.io = None;
                self.calls.leave_out(self.line, 1, IO);
                self.calls.pass(now, Between::Idleness, self.line)
            }
            (Event::IoBegin { .. } | Event::IoComplete { .. }, None) => Ok(()),
            // Outside of all calls it belongs to the next one.
            (event, _) => {
                self.events.push(event);
                Ok(())
            }
        }
    }

    /// Ends the program at the last event, or where the measurement is switched off.
    fn finish(&mut self) -> Result<(), TraceError> {
        if let Some(open) = self.open {
            self.calls.leave_out(open.line, 1, NO_END);
            self.end_call()?;
        }
        self.pass_computation()
    }

    /// Passes the time until now, as a computation.
    fn pass_computation(&mut self) -> Result<(), TraceError> {
        let between = self.computation();
        self.counted.since = self.counted.since.map(|_| self.counted.last);
        self.calls.pass(self.now, between, self.line)
    }

    /// Returns the computation since the last call.
    fn computation(&mut self) -> Between {
        if self.archive.counters.is_empty() {
            return Between::Computation;
        }
        let counted = self.counted.last - self.counted.since.unwrap_or(self.counted.last);
        if counted < 0.0 {
            self.calls.leave_out(self.line, 1, BACKWARDS);
        }
        Between::Counted(counted.max(0.0))
    }

    fn end_call(&mut self) -> Result<(), TraceError> {
        let Some(OpenCall { before, name, line, begin, .. }) = self.open.take() else { return Ok(()) };
        let events = std::mem::take(&mut self.events);
        self.calls.enter_after(before, name, line, begin)?;
        self.counted.since = self.counted.since.map(|_| self.counted.last);
        self.call(name, &events)?;
        self.calls.leave(self.now)?;
        // The buffer is used again.
        self.events = events;
        self.events.clear();
        Ok(())
    }

    /// Adds the operations of a call with its events.
    fn call(&mut self, name: &str, events: &[Event]) -> Result<(), TraceError> {
        let completed = self.completed(events)?;
        let function = Function::of(name);
        match function {
            Function::Init => {
                self.calls.push(Op::Init);
                return self.make_communicators();
            }
            Function::Finalize => self.calls.push(Op::Finalize),
            Function::Wait(_) | Function::Test(_) => return self.complete(function, events, completed),
            Function::Collective { is_nonblocking: false, .. } => self.collective(events)?,
            Function::SendRecv => self.send_recv(events)?,
            Function::Send(_)
            | Function::Isend(_)
            | Function::Recv
            | Function::Irecv
            | Function::Start
            | Function::Collective { .. } => self.post(function, events)?,
            Function::Local | Function::SendInit(_) | Function::RecvInit | Function::Free => {
                self.calls.push(Op::Communicator);
            }
            Function::Other if self.window_call(name, events)? => {}
            Function::Other => self.calls.unmodelled_with(&arguments(events))?,
        }
        if completed.is_empty() {
            return Ok(());
        }
        self.calls.wait(Requests::All, completed.into_iter().map(Some), &Done::All)
    }

    /// Makes all communicators of which the rank is a member: their first use may be a receive that is known late.
    fn make_communicators(&mut self) -> Result<(), TraceError> {
        let rank = self.calls.rank();
        let is_member =
            |given: &Given| matches!(given, Given::Group((_, group)) if group.position(rank).is_some());
        let mut groups: Vec<Handle> = self
            .archive
            .communicators
            .all_given()
            .filter(|(_, given)| is_member(given))
            .map(|(handle, _)| handle)
            .collect();
        groups.sort_unstable();
        groups.into_iter().try_for_each(|handle| self.calls.communicator(handle).map(|_| ()))
    }

    /// Notes the messages and operations of requests that are complete, and returns these.
    fn completed(&mut self, events: &[Event]) -> Result<Vec<Handle>, TraceError> {
        let mut completed = Vec::new();
        for event in events {
            match *event {
                Event::IsendComplete { request } => completed.push(request),
                Event::Irecv { sender, communicator, tag, bytes, request } => {
                    let envelope = envelope(sender, communicator, tag);
                    self.calls.received(request, envelope, Bytes::new(bytes))?;
                    completed.push(request);
                }
                Event::CollectiveComplete { operation, communicator, root, sent, received, request } => {
                    let record = Record { operation, root, sent, received };
                    if let Some(operation) = self.operation(communicator, record) {
                        self.calls.completed(request, communicator.into(), operation)?;
                    }
                    completed.push(request);
                }
                Event::RequestCancelled { request } => {
                    self.calls.leave_out(self.line, 1, CANCELLED);
                    self.calls.forget(request)?;
                }
                _ => {}
            }
        }
        Ok(completed)
    }

    /// Adds a wait or a test.
    fn complete(
        &mut self,
        function: Function,
        events: &[Event],
        completed: Vec<Handle>,
    ) -> Result<(), TraceError> {
        let all = || completed.iter().copied().map(Some);
        match (function, completed.len()) {
            (Function::Wait(_), 0) => self.calls.push(Op::Communicator),
            (Function::Wait(_), 1) => return self.calls.wait(Requests::One, all(), &Done::All),
            (Function::Wait(_), _) => return self.calls.wait(Requests::All, all(), &Done::All),
            (_, 0) => {
                let tested = events.iter().filter_map(|event| match event {
                    Event::RequestTest { request } => Some(Some(*request)),
                    _ => None,
                });
                return self.calls.test(Requests::Some, tested, &Done::Nothing);
            }
            _ => return self.calls.test(Requests::Some, all(), &Done::All),
        }
        Ok(())
    }

    /// Adds the messages and requests that a call begins. A call without any is one with `MPI_PROC_NULL`.
    fn post(&mut self, function: Function, events: &[Event]) -> Result<(), TraceError> {
        let mode = match function {
            Function::Send(mode) | Function::Isend(mode) => mode,
            _ => SendMode::Standard,
        };
        let mut has_begun = false;
        for event in events {
            match *event {
                Event::Send { receiver, communicator, tag, bytes } => {
                    self.calls.send(envelope(receiver, communicator, tag), mode, Bytes::new(bytes))?;
                }
                Event::Isend { receiver, communicator, tag, bytes, request } => {
                    let envelope = envelope(receiver, communicator, tag);
                    self.calls.isend(envelope, mode, Bytes::new(bytes), request)?;
                }
                Event::Recv { sender, communicator, tag, bytes } => {
                    self.calls.recv(envelope(sender, communicator, tag), Bytes::new(bytes))?;
                }
                Event::IrecvRequest { request } | Event::CollectiveRequest { request } => {
                    self.calls.post_unknown(request)?;
                }
                _ => continue,
            }
            has_begun = true;
        }
        match function {
            _ if has_begun => {}
            Function::Collective { .. } => {
                self.calls.leave_out(self.line, 1, NO_RECORD);
                self.calls.unmodelled()?;
            }
            _ => self.calls.push(Op::Communicator),
        }
        Ok(())
    }

    fn send_recv(&mut self, events: &[Event]) -> Result<(), TraceError> {
        let nothing = |communicator| Envelope { peer: CommPeer::ProcNull, tag: 0, communicator };
        let sent = events.iter().find_map(|event| match *event {
            Event::Send { receiver, communicator, tag, bytes }
            | Event::Isend { receiver, communicator, tag, bytes, .. } => {
                Some((envelope(receiver, communicator, tag), bytes))
            }
            _ => None,
        });
        let received = events.iter().find_map(|event| match *event {
            Event::Recv { sender, communicator, tag, bytes } => {
                Some((envelope(sender, communicator, tag), bytes))
            }
            _ => None,
        });
        let (to, from) = match (sent, received) {
            (None, None) => {
                self.calls.push(Op::Communicator);
                return Ok(());
            }
            (Some(to), None) => (to, (nothing(to.0.communicator), 0)),
            (None, Some(from)) => ((nothing(from.0.communicator), 0), from),
            (Some(to), Some(from)) => (to, from),
        };
        self.calls.send_recv([to.0, from.0], [Bytes::new(to.1), Bytes::new(from.1)])
    }

    fn collective(&mut self, events: &[Event]) -> Result<(), TraceError> {
        let found = events.iter().find_map(|event| match *event {
            Event::Collective { operation, communicator, root, sent, received } => {
                Some((communicator, Record { operation, root, sent, received }))
            }
            _ => None,
        });
        let operation = found
            .and_then(|(communicator, record)| Some((communicator, self.operation(communicator, record)?)));
        match operation {
            Some((communicator, operation)) => self.calls.collective(communicator.into(), None, operation),
            None => {
                self.calls.leave_out(self.line, 1, NO_RECORD);
                self.calls.unmodelled()
            }
        }
    }

    fn operation(&mut self, communicator: u32, record: Record) -> Option<trace_mmap::Collective> {
        let kind = kind_of(record.operation)?;
        let place = place_of(&self.archive.communicators, communicator, self.calls.rank())?;
        let parts = if record.is_vector() {
            let number = self.vectors.entry(communicator).or_default();
            *number += 1;
            self.archive.vectors.parts(communicator, *number - 1)
        } else {
            Vec::new()
        };
        Some(record.operation(kind, place, &parts))
    }
}

/// Returns the arguments of an access to a window or a file.
fn arguments(events: &[Event]) -> String {
    let found = events.iter().find_map(|event| match *event {
        Event::Access { target, bytes, .. } => Some((format!("target={target} "), bytes)),
        Event::IoBegin { bytes, .. } => Some((String::new(), bytes)),
        _ => None,
    });
    match found {
        // The size may be unknown.
        Some((target, bytes)) if bytes < 1 << 63 => format!("{target}bytes={bytes}"),
        Some((target, _)) => target,
        None => String::new(),
    }
}

/// Makes the envelope of a message that was sent or received.
fn envelope(peer: u32, communicator: u32, tag: u32) -> Envelope {
    Envelope { peer: CommPeer::Rank(peer.into()), tag: tag.into(), communicator: communicator.into() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use ::otf2::reader::{Definitions, GroupKind, Region};
    use pdes_core::Rank;
    use trace_mmap::{CommId, Group, LoadOptions, Trace};

    use super::super::amounts::Vectors;
    use super::*;
    use crate::timed::{Communicators, TimedCalls, source};

    /// An archive whose events are written here.
    #[derive(Debug)]
    struct Scripted {
        archive: Otf2,
        events: Vec<Vec<(u64, Event)>>,
    }

    impl TimedCalls for Scripted {
        type Shared = ();

        fn path(&self) -> &Path {
            self.archive.path()
        }

        fn files(&self) -> Vec<&Path> {
            Vec::new()
        }

        fn file(&self, rank: Rank) -> &Path {
            self.archive.file(rank)
        }

        fn ranks(&self) -> Result<u32, TraceError> {
            self.archive.ranks()
        }

        fn shared(&self) -> Result<(), TraceError> {
            Ok(())
        }

        fn write(&self, (): &(), program: &mut TimedProgram<'_>) -> Result<(), TraceError> {
            let mut events = self.events[program.rank().index()].iter();
            write_events(&self.archive, program, |take| {
                events.all(|(time, event)| take(*time, *event));
                Ok(())
            })
        }
    }

    /// The regions: number, name.
    const REGIONS: [(u32, &str); 17] = [
        (0, "main"),
        (1, "MPI_Init"),
        (2, "MPI_Finalize"),
        (3, "MPI_Isend"),
        (4, "MPI_Irecv"),
        (5, "MPI_Waitall"),
        (6, "MPI_Test"),
        (7, "MPI_Allreduce"),
        (8, "MPI_Ibcast"),
        (9, "MPI_Gatherv"),
        (10, "MPI_Sendrecv"),
        (11, "MPI_Put"),
        (12, "MPI_Win_allocate"),
        (13, "MPI_Win_post"),
        (14, "MPI_Win_start"),
        (15, "MPI_Win_complete"),
        (16, "MPI_Win_wait"),
    ];

    /// Makes the events of a rank: calls of 10 ns, 100 ns apart, each with the events in it.
    fn rank(calls: &[(u32, &[Event])]) -> Vec<(u64, Event)> {
        let all = [(1, &[][..])].into_iter().chain(calls.iter().copied()).chain([(2, &[][..])]);
        let events = |(begin, (region, events)): (u64, (u32, &[Event]))| {
            let inner = events.iter().map(move |event| (begin + 5, *event)).collect::<Vec<_>>();
            let enter = [(begin, Event::Enter { region })];
            enter.into_iter().chain(inner).chain([(begin + 10, Event::Leave { region })])
        };
        (0..).step_by(100).zip(all).flat_map(events).collect()
    }

    /// Reads two ranks. Communicator 0 is the world, 1 has ranks 1 and 0.
    fn read(events: Vec<Vec<(u64, Event)>>) -> Trace {
        let region = |(number, name): &(u32, &str)| {
            (*number, Region { name: (*name).to_owned(), is_mpi: name.starts_with("MPI_") })
        };
        let group = |rank: u32| ::otf2::reader::Group {
            kind: GroupKind::Members,
            is_mpi: true,
            members: vec![rank.into()],
        };
        let definitions = Definitions {
            communicators: [0, 1]
                .map(|number| (number, ::otf2::reader::Communicator { group: number }))
                .into(),
            ticks_per_second: 1_000_000_000,
            regions: REGIONS.iter().map(region).collect(),
            groups: [0, 1].map(|rank| (rank, group(rank))).into(),
            windows: [(4, 1)].into(),
            ..Definitions::default()
        };
        let reversed = Group::new([1, 0].map(Rank::new)).expect("ranks are there once");
        let given = [(0, Given::World), (1, Given::Group((CommId::new(2), Arc::new(reversed))))];
        let communicators = Communicators::new(given.into_iter().collect(), 2, 3);
        let event_files = vec!["0.evt".into(), "1.evt".into()];
        let archive = Otf2 {
            anchor: "a.otf2".into(),
            files: Vec::new(),
            event_files,
            definitions,
            counters: Vec::new(),
            locations: vec![0, 1],
            communicators,
            vectors: Vectors::default(),
        };
        Trace::read(source(Scripted { archive, events }), &LoadOptions::default()).expect("a trace")
    }

    fn text(trace: &Trace, rank: u32) -> Vec<String> {
        let mut text = Vec::new();
        crate::write_text(trace, Rank::new(rank), &mut text, None).expect("memory takes all");
        let text = String::from_utf8(text).expect("text");
        let lines = text.lines().map(|line| line.split(" time=").next().unwrap_or_default()[2..].to_owned());
        lines.filter(|line| !line.starts_with("compute")).collect()
    }

    #[test]
    fn receives_and_operations_are_known_when_they_are_complete() {
        let bytes = 8;
        let send = |request| Event::Isend { receiver: 0, communicator: 1, tag: 5, bytes, request };
        let receive = |request| Event::Irecv { sender: 1, communicator: 1, tag: 5, bytes, request };
        let bcast = |request| Event::CollectiveComplete {
            operation: 1,
            communicator: 0,
            root: Some(1),
            sent: 0,
            received: 64,
            request,
        };
        let allreduce =
            Event::Collective { operation: 11, communicator: 1, root: None, sent: 16, received: 16 };
        let trace = read(vec![
            rank(&[
                (3, &[send(1)]),
                (8, &[Event::CollectiveRequest { request: 2 }]),
                (6, &[Event::RequestTest { request: 1 }]),
                (5, &[Event::IsendComplete { request: 1 }, bcast(2)]),
                (7, &[allreduce]),
            ]),
            rank(&[
                (4, &[Event::IrecvRequest { request: 7 }]),
                (8, &[Event::CollectiveRequest { request: 8 }]),
                (5, &[receive(7), bcast(8)]),
                (7, &[allreduce]),
                (11, &[]),
            ]),
        ]);
        let both = ["init", "comm_create_group comm=0 new=2 members=1-0:-1"];
        let first =
            ["isend 1 5 8 6 comm=2 req=0", "ibcast 64 1 6 req=1", "testsome req=0 done=-", "waitall req=0,1"];
        assert_eq!(text(&trace, 0), [&both[..], &first, &["allreduce 8 0 6 comm=2", "finalize"]].concat());
        let second = ["irecv 0 5 8 6 comm=2 req=0", "ibcast 64 1 6 req=1", "waitall req=0,1"];
        let end = ["allreduce 8 0 6 comm=2", "unmodelled MPI_Put", "finalize"];
        assert_eq!(text(&trace, 1), [&both[..], &second, &end].concat());
        assert_eq!(trace.warnings(), []);
    }

    /// Ranks of the window are those of its communicator, in which rank 1 of the world is the first.
    #[test]
    fn epochs_of_windows_have_their_groups() {
        let created = (12, &[Event::Window { window: 4 }][..]);
        let group = |group| Event::WindowGroup { window: 4, group };
        let put = Event::Access { window: 4, target: 0, bytes: 64 };
        let unknown = Event::Access { window: 9, target: 0, bytes: 32 };
        let trace = read(vec![
            rank(&[
                created,
                (14, &[group(1)]),
                (11, &[put]),
                (15, &[group(1)]),
                (15, &[group(1)]),
                (11, &[unknown]),
            ]),
            rank(&[created, (13, &[group(0)]), (16, &[group(0)])]),
        ]);
        let both = ["init", "comm_create_group comm=0 new=2 members=1-0:-1", "win_create comm=2 new=9"];
        let first = [
            "win_start to=0 comm=9",
            "put 0 64 comm=9",
            "win_complete comm=9",
            "unmodelled MPI_Win_complete",
            "unmodelled MPI_Put target=0 bytes=32",
            "finalize",
        ];
        assert_eq!(text(&trace, 0), [&both[..], &first].concat());
        assert_eq!(
            text(&trace, 1),
            [&both[..], &["win_post to=1 comm=9", "win_wait comm=9", "finalize"]].concat()
        );
    }

    #[test]
    fn what_is_not_in_the_archive_is_named() {
        let recv = Event::Recv { sender: 0, communicator: 0, tag: 3, bytes: 4 };
        let send = Event::Send { receiver: 1, communicator: 0, tag: 3, bytes: 4 };
        let mut first = rank(&[(10, &[send]), (8, &[]), (4, &[Event::IrecvRequest { request: 1 }])]);
        first.truncate(first.len() - 2);
        first.extend([
            (320, Event::RequestCancelled { request: 1 }),
            (330, Event::Measurement { is_on: false }),
            (900, Event::Measurement { is_on: true }),
            (950, Event::Leave { region: 0 }),
            (960, Event::Enter { region: 2 }),
        ]);
        let trace = read(vec![first, rank(&[(10, &[recv]), (8, &[])])]);
        let measured = trace.rank(Rank::new(0)).measured().expect("it has measured times");
        let time: u64 = measured.map(|(_, time)| trace_mmap::nanos(time.expect("a time"))).sum();
        // All but the 570 ns without measurement.
        assert_eq!(time, 390);
        assert_eq!(
            text(&trace, 0)[2..],
            ["sendRecv 4 1 0 -666 6 6 stag=3 rtag=-444", "unmodelled MPI_Ibcast", "comm_size", "finalize"]
        );
        let warnings: Vec<String> = trace.warnings().iter().map(ToString::to_string).collect();
        let expected = [
            "0.evt:7: a collective operation has no record",
            "0.evt:12: the measurement was switched off",
            "0.evt:15: a call has no end",
            "0.evt:15: a request is cancelled",
        ];
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(warning.starts_with(expected), "{warnings:?}");
        }
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(warnings[0].ends_with("(2 such record(s))"), "{warnings:?}");
    }
}
