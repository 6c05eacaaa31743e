//! Writer of traces for Paraver: the `.prv`, and beside it the names of calls (`.pcf`) and ranks (`.row`).
//!
//! A call lasts for its measured time, but at least [`SHORTEST`], so that no two begin at once: messages belong to calls by their times.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;

use outputs::AtomicFile;
use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, Collective, CommIdx, OutIdx, RankTrace, SendMode, SendRecv, Slot, Source, Tag, Trace, nanos,
};

use super::dimemas::writer::{Numbers, WORLD, amounts, creation, name};
use super::dimemas::{COLLECTIVE, FUNCTIONS, OTHER, POINT_TO_POINT};
use crate::export::{ExportError, Exported};

/// Shortest time of a call \[ns\]: one to begin, and one for its message.
const SHORTEST: u64 = 2;

/// Numbers and names of states.
const STATES: [(u32, &str); 8] = [
    (IDLE, "Idle"),
    (RUNNING, "Running"),
    (3, "Waiting a message"),
    (4, "Blocking Send"),
    (8, "Immediate Send"),
    (11, "Immediate Receive"),
    (13, "Group Communication"),
    (OTHERS, "Others"),
];
const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const OTHERS: u32 = 15;

/// Writes a trace with measured times. Cost: O(actions + messages) in time and memory.
pub(crate) fn write(
    trace: &Trace,
    path: &Path,
    _: Option<f64>,
    out: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let communicators = Numbers::of(trace);
    let (mut records, mut left_out) = (Vec::new(), BTreeMap::new());
    let mut messages = Messages::default();
    let mut end = 0;
    for rank in (0..trace.ranks()).map(Rank::new) {
        let program = trace.rank(rank);
        if program.graph().is_some() {
            return Err(ExportError::Graph { rank });
        }
        let mut task = Task {
            rank,
            program,
            communicators: communicators.of_rank(program),
            now: 0,
            records: &mut records,
            messages: &mut messages,
            pending: BTreeMap::new(),
            persistent: FxHashMap::default(),
            left_out: &mut left_out,
        };
        if !program.is_empty() {
            let measured = program.measured().ok_or(ExportError::NoTimes)?;
            measured.for_each(|(action, time)| task.action(action, time.map_or(0, nanos)));
        }
        end = end.max(task.now);
    }
    let end = end + 1;
    messages.write(end, &mut records, &mut left_out);
    // Stable: records of a rank at one time stay in their order.
    records.sort_by_key(|(time, _)| *time);
    let ranks = trace.ranks();
    let tasks = vec!["1:1"; ranks as usize].join(",");
    writeln!(
        out,
        "#Paraver (01/01/2000 at 00:00):{end}_ns:1({ranks}):1:{ranks}({tasks}),{}",
        communicators.groups.len() + WORLD
    )?;
    let all: Vec<Rank> = (0..ranks).map(Rank::new).collect();
    for (number, members) in (WORLD..).zip([&all].into_iter().chain(&communicators.groups)) {
        write!(out, "c:1:{number}:{}", members.len())?;
        members.iter().try_for_each(|rank| write!(out, ":{}", rank.get() + 1))?;
        writeln!(out)?;
    }
    records.iter().try_for_each(|(_, record)| writeln!(out, "{record}"))?;
    beside(path, "pcf", write_labels)?;
    beside(path, "row", |out| {
        writeln!(out, "LEVEL THREAD SIZE {ranks}")?;
        (1..=ranks).try_for_each(|task| writeln!(out, "THREAD 1.{task}.1"))
    })?;
    Ok(Exported { extent: format!("{ranks} ranks, {} records", records.len()), left_out })
}

/// Writes a file beside the trace.
fn beside(
    path: &Path,
    extension: &str,
    write: impl FnOnce(&mut AtomicFile) -> io::Result<()>,
) -> Result<(), ExportError> {
    let file = path.with_extension(extension);
    let written = AtomicFile::create(&file).and_then(|mut out| {
        write(&mut out)?;
        out.commit()
    });
    written.map(drop).map_err(|source| ExportError::File { file, source })
}

/// Writes the names of states, and of calls by the types and values of events.
fn write_labels(out: &mut AtomicFile) -> io::Result<()> {
    writeln!(out, "STATES")?;
    STATES.iter().try_for_each(|(number, name)| writeln!(out, "{number}    {name}"))?;
    let kinds =
        [(POINT_TO_POINT, "MPI Point-to-point"), (COLLECTIVE, "MPI Collective Comm"), (OTHER, "MPI Other")];
    for (event, kind) in kinds {
        writeln!(out, "\nEVENT_TYPE\n9    {event}    {kind}\nVALUES")?;
        for (value, name) in (1..).zip(FUNCTIONS.split_whitespace()) {
            writeln!(out, "{value}    MPI_{name}")?;
        }
        writeln!(out, "0    Outside MPI")?;
    }
    writeln!(
        out,
        "\nEVENT_TYPE\n1    50100001    Send Size in MPI Global OP\n1    50100002    Recv Size in MPI Global OP\n\
         1    50100003    Root in MPI Global OP\n1    50100004    Communicator in MPI Global OP"
    )
}

/// The messages of all ranks.
#[derive(Default)]
struct Messages {
    /// Messages of each sender to each receiver on each communicator, in their order.
    sent: BTreeMap<(Rank, Rank, usize), VecDeque<Sent>>,
    /// Receives of each receiver, in the order of their posting.
    received: Vec<(Rank, Received)>,
}

struct Sent {
    time: u64,
    tag: Tag,
    bytes: Bytes,
}

struct Received {
    from: Rank,
    tag: Option<Tag>,
    communicator: usize,
    /// When it is posted.
    logical: u64,
    /// When it is complete; `None` if nothing completes it.
    physical: Option<u64>,
}

impl Messages {
    /// Writes the messages that are received, in a trace that ends at `end`.
    fn write(&mut self, end: u64, records: &mut Vec<(u64, String)>, left_out: &mut BTreeMap<String, u64>) {
        for (to, Received { from, tag, communicator, logical, physical }) in &self.received {
            let sent = self.sent.entry((*from, *to, *communicator)).or_default();
            let Some(index) = sent.iter().position(|sent| tag.is_none_or(|tag| tag == sent.tag)) else {
                *left_out.entry("receive without a message".to_owned()).or_default() += 1;
                continue;
            };
            let Sent { time, tag, bytes } = sent.remove(index).expect("it was found");
            let side = |rank: Rank| format!("{0}:1:{0}:1", rank.get() + 1);
            let (from, to, bytes, physical) = (side(*from), side(*to), bytes.get(), physical.unwrap_or(end));
            records.push((time, format!("3:{from}:{time}:{time}:{to}:{logical}:{physical}:{bytes}:{tag}")));
        }
        let unreceived = self.sent.values().map(|sent| sent.len() as u64).sum();
        if unreceived > 0 {
            left_out.insert("message that nobody receives".to_owned(), unreceived);
        }
    }
}

/// A message of a persistent request.
#[derive(Clone, Copy)]
enum Transfer {
    Send(Option<OutIdx>, Bytes),
    Receive(Source),
}

/// Writer of the records of a rank.
struct Task<'a> {
    rank: Rank,
    program: &'a RankTrace,
    /// Numbers of the communicators of the rank.
    communicators: Vec<usize>,
    /// Time \[ns\].
    now: u64,
    records: &'a mut Vec<(u64, String)>,
    messages: &'a mut Messages,
    /// Index of the receive of each pending request; `None` for others.
    pending: BTreeMap<Slot, Option<usize>>,
    persistent: FxHashMap<Slot, Transfer>,
    left_out: &'a mut BTreeMap<String, u64>,
}

impl Task<'_> {
    fn action(&mut self, action: Action, time: u64) {
        match action {
            Action::Init => self.call(OTHER, "Init", OTHERS, time, ""),
            Action::Finalize => self.call(OTHER, "Finalize", OTHERS, time, ""),
            Action::Communicator => self.call(OTHER, "Comm_size", OTHERS, time, ""),
            Action::Location(_) => self.leave_out("call site"),
            Action::Compute { .. } => self.state(RUNNING, time),
            Action::Sleep { .. } => self.state(IDLE, time),
            Action::ProcNull { slot: None } => self.call(POINT_TO_POINT, "Send", 4, time, ""),
            Action::ProcNull { slot: Some(slot) } => {
                self.pending.insert(slot, None);
                self.call(POINT_TO_POINT, "Isend", 8, time, "");
            }
            Action::Send { to, bytes } => self.send(Some(to), bytes, SendMode::Standard, None, time),
            Action::Recv { from, .. } => self.receive(Source::Rank(from), None, time),
            Action::Isend { to, bytes, slot } => {
                self.send(Some(to), bytes, SendMode::Standard, Some(slot), time);
            }
            Action::Irecv { from, slot, .. } => self.receive(Source::Rank(from), Some(slot), time),
            Action::SendRecv(id) => {
                let SendRecv { to, send_bytes, from, .. } = *self.program.send_recv(id);
                self.send_recv(to, send_bytes, from.map_or(Source::ProcNull, Source::Rank), time);
            }
            Action::Wait { slot } => self.wait("Wait", &[slot], time),
            Action::Test { .. } => self.call(POINT_TO_POINT, "Test", OTHERS, time, ""),
            Action::WaitAll => {
                let slots: Vec<Slot> = self.pending.keys().copied().collect();
                self.wait("Waitall", &slots, time);
            }
            Action::Collective(id) => {
                self.collective(self.program.collective(id), CommIdx::WORLD, None, time);
            }
            Action::Call(id) => self.other(self.program.call(id), time),
        }
    }

    fn other(&mut self, call: &Call, time: u64) {
        match call {
            Call::Send { to, mode, bytes } => self.send(*to, *bytes, *mode, None, time),
            Call::Recv { from, .. } => self.receive(*from, None, time),
            Call::Isend { to, mode, bytes, slot } => self.send(*to, *bytes, *mode, Some(*slot), time),
            Call::Irecv { from, slot, .. } => self.receive(*from, Some(*slot), time),
            Call::SendRecv { to, from, send_bytes, .. } => self.send_recv(*to, *send_bytes, *from, time),
            Call::SendInit { to, bytes, slot, .. } => {
                self.persistent.insert(*slot, Transfer::Send(*to, *bytes));
                self.call(POINT_TO_POINT, "Send_init", OTHERS, time, "");
            }
            Call::RecvInit { from, slot, .. } => {
                self.persistent.insert(*slot, Transfer::Receive(*from));
                self.call(POINT_TO_POINT, "Recv_init", OTHERS, time, "");
            }
            Call::Start { slots } => {
                for slot in slots {
                    match self.persistent.get(slot) {
                        Some(&Transfer::Send(to, bytes)) => {
                            self.sent(to, bytes);
                            self.pending.insert(*slot, None);
                        }
                        Some(&Transfer::Receive(from)) => {
                            let received = self.received(from);
                            self.pending.insert(*slot, received);
                        }
                        None => {}
                    }
                }
                self.call(POINT_TO_POINT, "Startall", OTHERS, time, "");
            }
            Call::Free { slot } => {
                self.persistent.remove(slot);
                self.call(POINT_TO_POINT, "Request_free", OTHERS, time, "");
            }
            Call::Waitall { slots } => self.wait("Waitall", slots, time),
            Call::Waitany { done, .. } => self.wait("Waitany", done.as_slice(), time),
            Call::Waitsome { done, .. } => self.wait("Waitsome", done, time),
            Call::Testany { done, .. } => self.wait("Testany", done.as_slice(), time),
            Call::Testsome { done, .. } => self.wait("Testsome", done, time),
            Call::Test { slot, done } => {
                self.wait("Test", if *done { std::slice::from_ref(slot) } else { &[] }, time)
            }
            Call::Testall { slots, done } => self.wait("Testall", if *done { slots } else { &[] }, time),
            Call::Collective { operation, communicator, slot } => {
                self.collective(self.program.collective(*operation), *communicator, *slot, time);
            }
            // One that was made for its first use, when nobody called anything.
            Call::NewCommunicator { .. } if time == 0 => {}
            Call::NewCommunicator { kind, .. } => {
                let Some(function) = creation(*kind) else { return };
                self.call(OTHER, function, OTHERS, time, "");
            }
            Call::FreeCommunicator { .. } => self.call(OTHER, "Comm_free", OTHERS, time, ""),
            Call::Probe { .. } => self.call(OTHER, "Probe", OTHERS, time, ""),
            Call::Iprobe { .. } => self.call(OTHER, "Iprobe", OTHERS, time, ""),
            Call::GetStatus { .. } => self.call(OTHER, "Request_get_status", OTHERS, time, ""),
            Call::Cancel { slot, cancelled, .. } => {
                if *cancelled {
                    self.pending.remove(slot);
                }
                self.call(OTHER, "Cancel", OTHERS, time, "");
            }
            Call::Unmodelled(call) => {
                let known = call.name().strip_prefix("MPI_");
                let known = FUNCTIONS.split_whitespace().find(|function| Some(*function) == known);
                match known {
                    Some(function) => self.call(OTHER, function, OTHERS, time, ""),
                    None => self.skip(call.name(), time),
                }
            }
            Call::NeighborAlltoall { .. } => self.skip("MPI_Neighbor_alltoall", time),
            Call::File { .. } | Call::SetView { .. } => self.skip("call on a file", time),
            Call::Window { .. } => self.skip("one-sided communication", time),
        }
    }

    fn leave_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    /// Passes the time of a call that is left out.
    fn skip(&mut self, what: &str, time: u64) {
        self.leave_out(what);
        self.state(OTHERS, time);
    }

    fn state(&mut self, state: u32, time: u64) {
        let (task, begin) = (self.rank.get() + 1, self.now);
        self.now += time;
        if time > 0 {
            self.records.push((begin, format!("1:{task}:1:{task}:1:{begin}:{}:{state}", self.now)));
        }
    }

    /// Writes a call, with further events at its begin.
    fn call(&mut self, event: u64, function: &str, state: u32, time: u64, more: &str) {
        if time < SHORTEST {
            self.leave_out("call of less than 2 ns, which takes 2 ns,");
        }
        let value = FUNCTIONS.split_whitespace().position(|name| name == function);
        let value = value.expect("the function is in the table") + 1;
        let (task, begin) = (self.rank.get() + 1, self.now);
        self.records.push((begin, format!("2:{task}:1:{task}:1:{begin}:{event}:{value}{more}")));
        self.state(state, time.max(SHORTEST));
        let end = self.now;
        self.records.push((end, format!("2:{task}:1:{task}:1:{end}:{event}:0")));
    }

    /// Notes a message of the call that begins now.
    fn sent(&mut self, to: Option<OutIdx>, bytes: Bytes) {
        let Some(to) = to else { return };
        let to = self.program.outgoing()[to.index()];
        let communicator = self.communicators[to.communicator.index()];
        if communicator != WORLD {
            self.leave_out("communicator of a message");
        }
        let sent = self.messages.sent.entry((self.rank, to.peer, communicator)).or_default();
        sent.push_back(Sent { time: self.now + 1, tag: to.tag, bytes });
    }

    /// Notes a receive of the call that begins now, and returns its index; `None` without a message that is known.
    fn received(&mut self, from: Source) -> Option<usize> {
        let (from, tag, communicator) = match from {
            Source::ProcNull => return None,
            Source::Rank(from) => {
                let from = self.program.incoming()[from.index()];
                (from.peer, from.tag, from.communicator)
            }
            Source::Any { tag, communicator, recorded: Some(from) } => (from, tag, communicator),
            Source::Any { recorded: None, .. } => {
                self.leave_out("message of a receive from any source whose sender is not recorded");
                return None;
            }
        };
        let communicator = self.communicators[communicator.index()];
        let logical = self.now + 1;
        let received = Received { from, tag, communicator, logical, physical: None };
        self.messages.received.push((self.rank, received));
        Some(self.messages.received.len() - 1)
    }

    /// Notes that a receive is complete now.
    fn complete(&mut self, receive: Option<usize>) {
        if let Some(receive) = receive {
            self.messages.received[receive].1.physical = Some(self.now);
        }
    }

    fn send(&mut self, to: Option<OutIdx>, bytes: Bytes, mode: SendMode, slot: Option<Slot>, time: u64) {
        self.sent(to, bytes);
        let letter = match mode {
            SendMode::Standard => "",
            SendMode::Synchronous => "s",
            SendMode::Buffered => "b",
            SendMode::Ready => "r",
        };
        let (function, state) = match slot {
            None if letter.is_empty() => ("Send".to_owned(), 4),
            None => (letter.to_ascii_uppercase() + "send", 4),
            Some(slot) => {
                self.pending.insert(slot, None);
                (format!("I{letter}send"), 8)
            }
        };
        self.call(POINT_TO_POINT, &function, state, time, "");
    }

    fn receive(&mut self, from: Source, slot: Option<Slot>, time: u64) {
        let received = self.received(from);
        match slot {
            None => {
                self.call(POINT_TO_POINT, "Recv", 3, time, "");
                self.complete(received);
            }
            Some(slot) => {
                self.pending.insert(slot, received);
                self.call(POINT_TO_POINT, "Irecv", 11, time, "");
            }
        }
    }

    fn send_recv(&mut self, to: Option<OutIdx>, bytes: Bytes, from: Source, time: u64) {
        self.sent(to, bytes);
        let received = self.received(from);
        self.call(POINT_TO_POINT, "Sendrecv", 3, time, "");
        self.complete(received);
    }

    fn wait(&mut self, function: &str, slots: &[Slot], time: u64) {
        self.call(POINT_TO_POINT, function, 3, time, "");
        for slot in slots {
            let received = self.pending.remove(slot).flatten();
            self.complete(received);
        }
    }

    fn collective(&mut self, operation: &Collective, communicator: CommIdx, slot: Option<Slot>, time: u64) {
        if operation.flops().is_some_and(|flops| flops > 0.0) {
            self.leave_out("computation of a reduction");
        }
        match operation {
            Collective::Alltoallv { .. } => {
                self.leave_out("vector of counts of MPI_Alltoallv, of which there is the sum,");
            }
            Collective::Exscan { .. } => self.leave_out("difference of MPI_Exscan from MPI_Scan"),
            _ => {}
        }
        let members = &self.program.communicators()[communicator.index()];
        let is_root = operation.root().map(|root| members.group.member(root.get())) == Some(self.rank);
        let [sent, received] = amounts(operation, members.rank, is_root);
        let number = self.communicators[communicator.index()];
        let root = if is_root { ":50100003:1" } else { "" };
        let more = format!(":50100001:{sent}:50100002:{received}:50100004:{number}{root}");
        let function = name(operation);
        let function = match slot {
            None => function.to_owned(),
            Some(slot) => {
                self.pending.insert(slot, None);
                format!("I{}", function.to_ascii_lowercase())
            }
        };
        self.call(COLLECTIVE, &function, 13, time, &more);
    }
}
