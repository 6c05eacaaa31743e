//! Writer of traces for Dimemas.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, Collective, CommId, CommIdx, Communicator, CommunicatorCall, Datatype, OutIdx, RankTrace,
    SendMode, SendRecv, Slot, Source, Trace,
};

use super::{COLLECTIVE, COLLECTIVES, FUNCTIONS, OTHER, POINT_TO_POINT};
use crate::export::{ExportError, Exported};

/// Number of the world.
pub(in crate::paraver) const WORLD: usize = 1;

/// Writes a trace; `speed` makes times of amounts of computation \[flop/s\]. Cost: O(actions).
pub(crate) fn write(
    trace: &Trace,
    name: &Path,
    speed: Option<f64>,
    out: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let ranks = (0..trace.ranks()).map(Rank::new);
    let communicators = Numbers::of(trace);
    let name = name.file_name().unwrap_or_default().to_string_lossy().replace('"', "");
    let threads = vec!["1"; trace.ranks() as usize].join(",");
    writeln!(
        out,
        "#DIMEMAS:\"{name}\":0:{}({threads}),{}",
        trace.ranks(),
        communicators.groups.len() + WORLD
    )?;
    let all: Vec<Rank> = ranks.clone().collect();
    for (number, members) in (WORLD..).zip([&all].into_iter().chain(&communicators.groups)) {
        write!(out, "d:1:{number}:{}", members.len())?;
        members.iter().try_for_each(|rank| write!(out, ":{rank}"))?;
        writeln!(out)?;
    }
    let (mut records, mut left_out) = (0, BTreeMap::new());
    if trace.has_measured_times() {
        left_out.insert("measured time".to_owned(), 1);
    }
    for rank in ranks {
        let program = trace.rank(rank);
        if program.graph().is_some() {
            return Err(ExportError::Graph { rank });
        }
        let mut task = Task {
            rank,
            program,
            communicators: communicators.of_rank(program),
            pending: BTreeMap::new(),
            persistent: FxHashMap::default(),
            out: &mut *out,
            records: 0,
            left_out: &mut left_out,
        };
        program.cursor().try_for_each(|action| task.action(action, speed))?;
        records += task.records;
    }
    Ok(Exported { extent: format!("{} ranks, {records} records", trace.ranks()), left_out })
}

/// Numbers of the communicators of a trace.
#[derive(Default)]
pub(in crate::paraver) struct Numbers {
    /// Members of the communicators beside the world, in the order of their numbers.
    pub(in crate::paraver) groups: Vec<Vec<Rank>>,
    by_group: FxHashMap<(CommId, Vec<Rank>), usize>,
}

impl Numbers {
    pub(in crate::paraver) fn of(trace: &Trace) -> Self {
        let mut numbers = Self::default();
        for rank in (0..trace.ranks()).map(Rank::new) {
            for communicator in trace.rank(rank).communicators() {
                let key = key(communicator);
                if communicator.id != CommId::WORLD && !numbers.by_group.contains_key(&key) {
                    numbers.groups.push(key.1.clone());
                    numbers.by_group.insert(key, WORLD + numbers.groups.len());
                }
            }
        }
        numbers
    }

    pub(in crate::paraver) fn of_rank(&self, rank: &RankTrace) -> Vec<usize> {
        let number = |communicator| self.by_group.get(&key(communicator)).copied().unwrap_or(WORLD);
        rank.communicators().iter().map(number).collect()
    }
}

fn key(communicator: &Communicator) -> (CommId, Vec<Rank>) {
    (communicator.id, communicator.group.members().collect())
}

/// A message of a persistent request.
#[derive(Clone, Copy)]
enum Transfer {
    Send(Option<OutIdx>, Bytes, SendMode),
    Receive(Source, Bytes),
}

/// Writer of the records of a task.
struct Task<'a> {
    rank: Rank,
    program: &'a RankTrace,
    /// Numbers of the communicators of the rank.
    communicators: Vec<usize>,
    /// The record that waits for each pending request; `None` for sends, which Dimemas does not wait for.
    pending: BTreeMap<Slot, Option<String>>,
    persistent: FxHashMap<Slot, Transfer>,
    out: &'a mut dyn Write,
    records: u64,
    left_out: &'a mut BTreeMap<String, u64>,
}

impl Task<'_> {
    fn action(&mut self, action: Action, speed: Option<f64>) -> Result<(), ExportError> {
        match action {
            Action::Init => self.call(OTHER, "Init", &[])?,
            Action::Finalize => self.call(OTHER, "Finalize", &[])?,
            Action::Communicator => self.call(OTHER, "Comm_size", &[])?,
            Action::Location(_) => self.leave_out("call site"),
            Action::Compute { flops } => {
                let speed = speed.ok_or(ExportError::NoSpeed)?;
                self.compute(flops * (1e9 / speed))?;
            }
            Action::Sleep { seconds } => {
                self.leave_out("sleep, which is written as a computation,");
                self.compute(seconds * 1e9)?;
            }
            Action::ProcNull { slot: None } => self.call(POINT_TO_POINT, "Send", &[])?,
            Action::ProcNull { slot: Some(slot) } => {
                self.pending.insert(slot, None);
                self.call(POINT_TO_POINT, "Isend", &[])?;
            }
            Action::Send { to, bytes } => {
                self.transfer(Transfer::Send(Some(to), bytes, SendMode::Standard))?
            }
            Action::Recv { from, bytes } => self.transfer(Transfer::Receive(Source::Rank(from), bytes))?,
            Action::Isend { to, bytes, slot } => {
                self.post(slot, Transfer::Send(Some(to), bytes, SendMode::Standard))?;
            }
            Action::Irecv { from, bytes, slot } => {
                self.post(slot, Transfer::Receive(Source::Rank(from), bytes))?;
            }
            Action::SendRecv(id) => {
                let SendRecv { to, send_bytes, from, recv_bytes } = *self.program.send_recv(id);
                self.send_recv(to, send_bytes, from.map_or(Source::ProcNull, Source::Rank), recv_bytes)?;
            }
            Action::Wait { slot } => self.wait("Wait", &[slot])?,
            Action::Test { .. } => self.leave_out("test without a recorded outcome"),
            Action::WaitAll => {
                let slots: Vec<Slot> = self.pending.keys().copied().collect();
                self.wait("Waitall", &slots)?;
            }
            Action::Collective(id) => {
                self.collective(self.program.collective(id), CommIdx::WORLD, None)?;
            }
            Action::Call(id) => self.other(self.program.call(id))?,
        }
        Ok(())
    }

    fn other(&mut self, call: &Call) -> io::Result<()> {
        match call {
            Call::Send { to, mode, bytes } => self.transfer(Transfer::Send(*to, *bytes, *mode)),
            Call::Recv { from, bytes } => self.transfer(Transfer::Receive(*from, *bytes)),
            Call::Isend { to, mode, bytes, slot } => self.post(*slot, Transfer::Send(*to, *bytes, *mode)),
            Call::Irecv { from, bytes, slot } => self.post(*slot, Transfer::Receive(*from, *bytes)),
            Call::SendRecv { to, from, send_bytes, recv_bytes } => {
                self.send_recv(*to, *send_bytes, *from, *recv_bytes)
            }
            Call::SendInit { to, mode, bytes, slot } => {
                self.persistent.insert(*slot, Transfer::Send(*to, *bytes, *mode));
                self.call(POINT_TO_POINT, "Send_init", &[])
            }
            Call::RecvInit { from, bytes, slot } => {
                self.persistent.insert(*slot, Transfer::Receive(*from, *bytes));
                self.call(POINT_TO_POINT, "Recv_init", &[])
            }
            Call::Start { slots } => {
                let started = slots.iter().filter_map(|slot| Some((*slot, *self.persistent.get(slot)?)));
                let started: Vec<_> = started.collect();
                let records = started.into_iter().filter_map(|(slot, transfer)| self.posted(slot, transfer));
                let records: Vec<_> = records.collect();
                self.call(POINT_TO_POINT, "Startall", &records)
            }
            Call::Free { slot } => {
                self.persistent.remove(slot);
                self.call(POINT_TO_POINT, "Request_free", &[])
            }
            Call::Waitall { slots } => self.wait("Waitall", slots),
            Call::Waitany { done, .. } => self.wait("Waitany", done.as_slice()),
            Call::Waitsome { done, .. } => self.wait("Waitsome", done),
            Call::Testany { done: Some(done), .. } => self.wait("Testany", &[*done]),
            Call::Testsome { done, .. } if !done.is_empty() => self.wait("Testsome", done),
            Call::Test { slot, done: true } => self.wait("Test", &[*slot]),
            Call::Testall { slots, done: true } => self.wait("Testall", slots),
            Call::Test { .. } | Call::Testall { .. } | Call::Testany { .. } | Call::Testsome { .. } => {
                self.leave_out("test that completes nothing");
                Ok(())
            }
            Call::Collective { operation, communicator, slot } => {
                self.collective(self.program.collective(*operation), *communicator, *slot)
            }
            Call::NewCommunicator { kind, .. } => {
                let Some(name) = creation(*kind) else { return Ok(()) };
                self.leave_out("time of making a communicator");
                self.call(OTHER, name, &[])
            }
            Call::FreeCommunicator { .. } => self.call(OTHER, "Comm_free", &[]),
            Call::Cancel { slot, cancelled, .. } => {
                if *cancelled {
                    self.pending.remove(slot);
                }
                self.leave_out("MPI_Cancel");
                Ok(())
            }
            Call::NeighborAlltoall { .. } => self.left_out("MPI_Neighbor_alltoall"),
            Call::Probe { .. } | Call::Iprobe { .. } => self.left_out("MPI_Probe"),
            Call::GetStatus { .. } => self.left_out("MPI_Request_get_status"),
            Call::Unmodelled(call) => self.left_out(call.name()),
            Call::File { .. } | Call::SetView { .. } => self.left_out("call on a file"),
            Call::Window { .. } => self.left_out("one-sided communication"),
        }
    }

    fn left_out(&mut self, name: &str) -> io::Result<()> {
        self.leave_out(name);
        Ok(())
    }

    fn leave_out(&mut self, name: &str) {
        *self.left_out.entry(name.to_owned()).or_default() += 1;
    }

    /// Writes a record of the first thread.
    fn record(&mut self, kind: u64, rest: &str) -> io::Result<()> {
        self.records += 1;
        writeln!(self.out, "{kind}:{}:0:{rest}", self.rank)
    }

    /// Writes a call with its records, each without the number of the thread.
    fn call(&mut self, event: u64, function: &str, records: &[String]) -> io::Result<()> {
        let value = FUNCTIONS.split_whitespace().position(|name| name == function);
        let value = value.expect("the function is in the table") + 1;
        self.record(20, &format!("{event}:{value}"))?;
        for record in records {
            self.records += 1;
            let (kind, rest) = record.split_once(':').expect("a record has a kind");
            writeln!(self.out, "{kind}:{}:0:{rest}", self.rank)?;
        }
        self.record(20, &format!("{event}:0"))
    }

    fn compute(&mut self, nanos: f64) -> io::Result<()> {
        self.record(1, &seconds(nanos))
    }

    fn transfer(&mut self, transfer: Transfer) -> io::Result<()> {
        let record = match transfer {
            Transfer::Send(to, bytes, mode) => self.send(to, bytes, mode, 0),
            Transfer::Receive(from, bytes) => self.receive(from, bytes, 0),
        };
        self.call(POINT_TO_POINT, function(transfer, false), record.as_slice())
    }

    fn post(&mut self, slot: Slot, transfer: Transfer) -> io::Result<()> {
        let record = self.posted(slot, transfer);
        self.call(POINT_TO_POINT, function(transfer, true), record.as_slice())
    }

    /// Returns the record of a request, whose wait is kept; `None` for `MPI_PROC_NULL`.
    fn posted(&mut self, slot: Slot, transfer: Transfer) -> Option<String> {
        let (record, wait) = match transfer {
            Transfer::Send(to, bytes, mode) => (self.send(to, bytes, mode, 2), None),
            Transfer::Receive(from, bytes) => (self.receive(from, bytes, 1), self.receive(from, bytes, 2)),
        };
        self.pending.insert(slot, wait);
        record
    }

    fn send_recv(
        &mut self,
        to: Option<OutIdx>,
        send_bytes: Bytes,
        from: Source,
        recv_bytes: Bytes,
    ) -> io::Result<()> {
        let send = self.send(to, send_bytes, SendMode::Standard, 2);
        let receive = self.receive(from, recv_bytes, 0);
        let records: Vec<String> = send.into_iter().chain(receive).collect();
        self.call(POINT_TO_POINT, "Sendrecv", &records)
    }

    fn send(&self, to: Option<OutIdx>, bytes: Bytes, mode: SendMode, immediate: u32) -> Option<String> {
        let to = self.program.outgoing()[to?.index()];
        let mode = u32::from(mode == SendMode::Synchronous) + immediate;
        let (bytes, communicator) = (bytes.get(), self.communicators[to.communicator.index()]);
        Some(format!("2:{}:-1:{bytes}:{}:{communicator}:{mode}", to.peer, to.tag))
    }

    fn receive(&mut self, from: Source, bytes: Bytes, kind: u32) -> Option<String> {
        let (peer, tag, communicator) = match from {
            Source::ProcNull => return None,
            Source::Rank(from) => {
                let from = self.program.incoming()[from.index()];
                (Some(from.peer), from.tag, from.communicator)
            }
            Source::Any { tag, communicator, recorded } => {
                if recorded.is_some() && kind != 2 {
                    self.leave_out("recorded sender of a receive from any source");
                }
                (None, tag, communicator)
            }
        };
        let peer = peer.map_or("-1".to_owned(), |peer| peer.to_string());
        let tag = tag.map_or("-1".to_owned(), |tag| tag.to_string());
        let (bytes, communicator) = (bytes.get(), self.communicators[communicator.index()]);
        Some(format!("3:{peer}:-1:{bytes}:{tag}:{communicator}:{kind}"))
    }

    fn wait(&mut self, function: &str, slots: &[Slot]) -> io::Result<()> {
        let records: Vec<String> = slots.iter().filter_map(|slot| self.pending.remove(slot)?).collect();
        self.call(POINT_TO_POINT, function, &records)
    }

    fn collective(
        &mut self,
        operation: &Collective,
        communicator: CommIdx,
        slot: Option<Slot>,
    ) -> io::Result<()> {
        if operation.flops().is_some_and(|flops| flops > 0.0) {
            self.leave_out("computation of a reduction");
        }
        if let Collective::Alltoallv { .. } = operation {
            self.leave_out("vector of counts of MPI_Alltoallv, of which there is the sum,");
        }
        let members = &self.program.communicators()[communicator.index()];
        let root = operation.root().map(|root| members.group.member(root.get()));
        let is_root = root == Some(self.rank);
        let [sent, received] = amounts(operation, members.rank, is_root);
        let name = name(operation);
        if let Collective::Exscan { .. } = operation {
            self.leave_out("difference of MPI_Exscan from MPI_Scan");
        }
        let number = COLLECTIVES.iter().position(|known| *known == name).expect("the name is in the table");
        let (root, blocking) = match (operation, root) {
            (Collective::Reduce { .. }, Some(root)) => (root.get(), 3),
            _ => (u32::from(is_root), 1),
        };
        let communicator = self.communicators[communicator.index()];
        let record = |kind| format!("10:{number}:{communicator}:{root}:0:{sent}:{received}:{kind}");
        match slot {
            None => self.call(COLLECTIVE, name, &[record(blocking)]),
            Some(slot) => {
                let nonblocking = format!("I{}", name.to_ascii_lowercase());
                let (posted, wait) = (record(0), record(2));
                self.pending.insert(slot, Some(wait));
                self.call(COLLECTIVE, &nonblocking, &[posted])
            }
        }
    }
}

/// Returns the function that posts or completes a transfer.
fn function(transfer: Transfer, is_immediate: bool) -> &'static str {
    match (transfer, is_immediate) {
        (Transfer::Receive(..), false) => "Recv",
        (Transfer::Receive(..), true) => "Irecv",
        (Transfer::Send(.., SendMode::Standard), false) => "Send",
        (Transfer::Send(.., SendMode::Standard), true) => "Isend",
        (Transfer::Send(.., SendMode::Synchronous), false) => "Ssend",
        (Transfer::Send(.., SendMode::Synchronous), true) => "Issend",
        (Transfer::Send(.., SendMode::Buffered), false) => "Bsend",
        (Transfer::Send(.., SendMode::Buffered), true) => "Ibsend",
        (Transfer::Send(.., SendMode::Ready), false) => "Rsend",
        (Transfer::Send(.., SendMode::Ready), true) => "Irsend",
    }
}

/// Returns the name of the function that creates a communicator, or a window, without `MPI_`; `None` if none does.
pub(in crate::paraver) fn creation(kind: CommunicatorCall) -> Option<&'static str> {
    match kind {
        CommunicatorCall::Split => Some("Comm_split"),
        CommunicatorCall::Dup => Some("Comm_dup"),
        CommunicatorCall::Create | CommunicatorCall::CreateGroup => Some("Comm_create"),
        CommunicatorCall::Window => Some("Win_create"),
        CommunicatorCall::Define => None,
    }
}

/// Returns the name of an operation, without `MPI_`.
pub(in crate::paraver) fn name(operation: &Collective) -> &'static str {
    match operation {
        Collective::Barrier => "Barrier",
        Collective::Bcast { .. } => "Bcast",
        Collective::Reduce { .. } => "Reduce",
        Collective::Allreduce { .. } => "Allreduce",
        Collective::Alltoall { .. } => "Alltoall",
        Collective::Alltoallv { .. } => "Alltoallv",
        Collective::Gather { .. } => "Gather",
        Collective::Scatter { .. } => "Scatter",
        Collective::Allgather { .. } => "Allgather",
        Collective::Gatherv { .. } => "Gatherv",
        Collective::Scatterv { .. } => "Scatterv",
        Collective::Allgatherv { .. } => "Allgatherv",
        Collective::ReduceScatter { .. } => "Reduce_scatter",
        Collective::Scan { .. } | Collective::Exscan { .. } => "Scan",
    }
}

/// Returns the bytes that a rank sends and receives, as tracers record them: for each peer where all have as many, or else for all.
pub(in crate::paraver) fn amounts(operation: &Collective, rank: u32, is_root: bool) -> [u64; 2] {
    let bytes = |count: u64, datatype: &Datatype| count.saturating_mul(datatype.size().get());
    let sum = |counts: &[u64], datatype: &Datatype| {
        counts.iter().fold(0_u64, |sum, count| sum.saturating_add(bytes(*count, datatype)))
    };
    let of_root = |amount: u64| if is_root { amount } else { 0 };
    match operation {
        Collective::Barrier => [0, 0],
        Collective::Bcast { count, datatype, .. } if is_root => [bytes(*count, datatype), 0],
        Collective::Bcast { count, datatype, .. } => [0, bytes(*count, datatype)],
        Collective::Reduce { count, datatype, .. } => {
            [bytes(*count, datatype), of_root(bytes(*count, datatype))]
        }
        Collective::Allreduce { count, datatype, .. }
        | Collective::Scan { count, datatype, .. }
        | Collective::Exscan { count, datatype, .. } => [bytes(*count, datatype); 2],
        Collective::ReduceScatter { recv_counts, datatype, .. } => {
            let own = recv_counts.get(rank as usize).copied().unwrap_or(0);
            [sum(recv_counts, datatype), bytes(own, datatype)]
        }
        Collective::Alltoall { send_count, recv_count, send_type, recv_type }
        | Collective::Allgather { send_count, recv_count, send_type, recv_type } => {
            [bytes(*send_count, send_type), bytes(*recv_count, recv_type)]
        }
        Collective::Gather { send_count, recv_count, send_type, recv_type, .. } => {
            [bytes(*send_count, send_type), of_root(bytes(*recv_count, recv_type))]
        }
        Collective::Scatter { send_count, recv_count, send_type, recv_type, .. } => {
            [of_root(bytes(*send_count, send_type)), bytes(*recv_count, recv_type)]
        }
        Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
            [sum(send_counts, send_type), sum(recv_counts, recv_type)]
        }
        Collective::Gatherv { send_count, recv_counts, send_type, recv_type, .. } => {
            [bytes(*send_count, send_type), of_root(sum(recv_counts, recv_type))]
        }
        Collective::Scatterv { send_counts, recv_count, send_type, recv_type, .. } => {
            [of_root(sum(send_counts, send_type)), bytes(*recv_count, recv_type)]
        }
        Collective::Allgatherv { send_count, recv_counts, send_type, recv_type } => {
            [bytes(*send_count, send_type), sum(recv_counts, recv_type)]
        }
    }
}

/// Formats a time in seconds, with all digits of its nanoseconds.
fn seconds(nanos: f64) -> String {
    let text = format!("{nanos}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = format!("{whole:0>10}");
    let (seconds, nanos) = whole.split_at(whole.len() - 9);
    format!("{seconds}.{nanos}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_all_digits() {
        let nanos = [0.0, 1.0, 250_000.0, 1.5e9, 123.456, 1e-7];
        let texts = [
            "0.000000000",
            "0.000000001",
            "0.000250000",
            "1.500000000",
            "0.000000123456",
            "0.0000000000000001",
        ];
        assert_eq!(nanos.map(seconds), texts);
    }
}
