//! The program of a rank.

use std::path::Path;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::table::CollectiveKind;
use trace_mmap::{Collective, Datatype, FileCall, FileDirection, FileHints, FileName, Op, TraceError};

use super::element::{Element, Elements};
use super::sizes::{Sizes, communicator, elements, has_vector, sent};
use super::{HdtraceError, Names};
use crate::timed::{
    Calls, CommPeer, Communicators, Done, Envelope, Function, Handle, Requests, TimedProgram,
};

const OUTCOME: &str = "the trace does not tell which requests a call of MPI_Waitany, MPI_Waitsome or a test of several completes; the \
                       replay does not call it, and waits for the requests where a later call does, or at the end of the rank";
const NAME: &str = "the name of a file has characters other than printable ASCII, in whose place there is _";
const VIEW: &str = "a view of a file is left out: positions are those of the recording";

/// Writes the program of a rank.
pub(super) fn write(
    file: &Path,
    names: &Names,
    communicators: &Communicators,
    sizes: &Sizes,
    program: &mut TimedProgram<'_>,
) -> Result<(), TraceError> {
    let rank = program.rank();
    let mut elements = Elements::open(file)?;
    let mut rank = RankProgram {
        file,
        rank,
        names,
        sizes,
        calls: Calls::new(communicators, program),
        has_begun: false,
        files: FxHashMap::default(),
        vectors: FxHashMap::default(),
    };
    while let Some((call, number)) = elements.next_call()? {
        rank.call(&call, number)?;
    }
    Ok(())
}

struct RankProgram<'c, 'p, 'a> {
    file: &'c Path,
    rank: Rank,
    names: &'c Names,
    sizes: &'c Sizes,
    calls: Calls<'c, 'p, 'a>,
    has_begun: bool,
    /// Open files by their numbers, with their communicators.
    files: FxHashMap<u64, (FileName, Handle)>,
    /// Number of calls so far with counts for each rank, by communicators.
    vectors: FxHashMap<Handle, usize>,
}

impl RankProgram<'_, '_, '_> {
    fn call(&mut self, call: &Element, number: u64) -> Result<(), TraceError> {
        let name = format!("MPI_{}", call.name);
        let function = Function::of(&name);
        // What a library calls in MPI_Init stands before it.
        if !self.has_begun && function != Function::Init {
            return Ok(());
        }
        let time = |attribute| call.nanos(attribute).map_err(|error| error.locate(self.file, number));
        let (begin, end) = (time("time")?, time("end")?);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.calls.start_at(begin);
        }
        self.calls.enter(&name, number, begin)?;
        match function {
            Function::Init => self.calls.push(Op::Init),
            Function::Finalize => self.calls.push(Op::Finalize),
            Function::Send(mode) => {
                let (envelope, bytes) = self.send(call)?;
                self.calls.send(envelope, mode, bytes)?;
            }
            Function::Isend(mode) => {
                let (envelope, bytes) = self.send(call)?;
                let request = self.check(call.number("rid"))?;
                self.calls.isend(envelope, mode, bytes, request)?;
            }
            Function::Recv => {
                let (envelope, bytes) = self.receive(call)?;
                self.calls.recv(envelope, bytes)?;
            }
            Function::Irecv => {
                let (envelope, bytes) = self.receive(call)?;
                let request = self.check(call.number("rid"))?;
                self.calls.irecv(envelope, bytes, request)?;
            }
            Function::SendRecv => {
                let ((to, sent), (from, received)) = (self.send(call)?, self.receive(call)?);
                self.calls.send_recv([to, from], [sent, received])?;
            }
            Function::Wait(requests) if requests == Requests::All || call.name == "Wait" => {
                let awaited = self.check(requests_of(call))?;
                self.calls.wait(requests, awaited.into_iter(), &Done::All)?;
            }
            Function::Test(Requests::One) if call.name == "Test" => {
                match self.check(requests_of(call))?[..] {
                    [Some(request)] => self.calls.test_unknown(request),
                    _ => self.calls.push(Op::Communicator),
                }
            }
            Function::Wait(_) | Function::Test(_) => {
                self.calls.leave_out(number, 1, OUTCOME);
                self.calls.push(Op::Communicator);
            }
            Function::Collective { kind, is_nonblocking: false } => self.collective(call, kind)?,
            Function::Local if call.name == "Comm_free" => {
                let freed = self.check(communicator(call, self.names, self.rank));
                match freed {
                    Ok((handle, _)) => self.calls.free_communicator(handle),
                    Err(_) => self.calls.push(Op::Communicator),
                }
            }
            Function::Local => self.calls.push(Op::Communicator),
            _ if call.name.starts_with("File_") => self.file(call, number)?,
            _ => self.calls.unmodelled()?,
        }
        self.calls.leave(end)
    }

    fn check<T>(&self, found: Result<T, HdtraceError>) -> Result<T, TraceError> {
        found.map_err(|kind| self.calls.error(kind))
    }

    /// Returns the peer of a message in a communicator.
    fn peer(&self, call: &Element, handle: Handle, rank: i64) -> Result<CommPeer, TraceError> {
        if rank >= 0 {
            let not_member = || HdtraceError::NotMember { call: call.name.clone(), rank };
            let position = self.names.position(handle, rank).ok_or_else(not_member);
            return Ok(CommPeer::Rank(self.check(position)?.into()));
        }
        let any = if self.sizes.is_open_mpi { -1 } else { -2 };
        Ok(if rank == any { CommPeer::Any { recorded: None } } else { CommPeer::ProcNull })
    }

    fn send(&self, call: &Element) -> Result<(Envelope, Bytes), TraceError> {
        let (handle, _) = self.check(communicator(call, self.names, self.rank))?;
        let (to, tag) = (self.check(call.signed("toRank"))?, self.check(call.signed("toTag"))?);
        let peer = if to >= 0 { self.peer(call, handle, to)? } else { CommPeer::ProcNull };
        Ok((Envelope { peer, tag, communicator: handle }, Bytes::new(self.check(sent(call))?)))
    }

    fn receive(&self, call: &Element) -> Result<(Envelope, Bytes), TraceError> {
        let (handle, _) = self.check(communicator(call, self.names, self.rank))?;
        let (from, tag) = (self.check(call.signed("fromRank"))?, self.check(call.signed("fromTag"))?);
        let peer = self.peer(call, handle, from)?;
        let bytes = self.sizes.buffer(handle, from, self.rank, tag);
        Ok((Envelope { peer, tag, communicator: handle }, bytes))
    }

    fn collective(&mut self, call: &Element, kind: CollectiveKind) -> Result<(), TraceError> {
        let (handle, position) = self.check(communicator(call, self.names, self.rank))?;
        let round = match has_vector(kind) {
            true => {
                let round = self.vectors.entry(handle).or_default();
                *round += 1;
                *round - 1
            }
            false => 0,
        };
        let operation = self.check(self.operation(call, kind, handle, position, round))?;
        self.calls.collective(handle, None, operation)
    }

    fn operation(
        &self,
        call: &Element,
        kind: CollectiveKind,
        handle: Handle,
        position: u32,
        round: usize,
    ) -> Result<Collective, HdtraceError> {
        let root = || {
            let attribute = if call.optional("root").is_some() { "root" } else { "rootRank" };
            let rank = call.signed(attribute)?;
            let not_member = || HdtraceError::NotMember { call: call.name.clone(), rank };
            self.names.position(handle, rank).map(Rank::new).ok_or_else(not_member)
        };
        let of_members = |position| self.sizes.of_members(call, kind, handle, round, position, self.names);
        let (datatype, flops) = (Datatype::BYTE, 0.0);
        let (send_type, recv_type) = (datatype, datatype);
        Ok(match kind {
            CollectiveKind::Barrier => Collective::Barrier,
            CollectiveKind::Bcast => {
                Collective::Bcast { count: call.number("size")?, root: root()?, datatype }
            }
            CollectiveKind::Reduce => {
                Collective::Reduce { count: call.number("size")?, flops, root: root()?, datatype }
            }
            CollectiveKind::Allreduce => {
                Collective::Allreduce { count: call.number("size")?, flops, datatype }
            }
            CollectiveKind::Scan => Collective::Scan { count: call.number("size")?, flops, datatype },
            CollectiveKind::Exscan => Collective::Exscan { count: call.number("size")?, flops, datatype },
            CollectiveKind::Alltoall => {
                let count = call.number("size")?;
                Collective::Alltoall { send_count: count, recv_count: count, send_type, recv_type }
            }
            CollectiveKind::Allgather => {
                let (send_count, recv_count) = (call.number("size")?, call.number("recvSize")?);
                Collective::Allgather { send_count, recv_count, send_type, recv_type }
            }
            CollectiveKind::Gather => {
                let (send_count, recv_count) = (call.number("size")?, call.number("recvSize")?);
                Collective::Gather { send_count, recv_count, root: root()?, send_type, recv_type }
            }
            CollectiveKind::Scatter => {
                let (send_count, recv_count) = (call.number("size")?, call.number("recvSize")?);
                Collective::Scatter { send_count, recv_count, root: root()?, send_type, recv_type }
            }
            CollectiveKind::Gatherv => {
                let (send_count, recv_counts) = (call.number("size")?, of_members(None)?);
                Collective::Gatherv { send_count, recv_counts, root: root()?, send_type, recv_type }
            }
            CollectiveKind::Scatterv => {
                let (recv_count, send_counts) = (call.number("recvSize")?, of_members(None)?);
                Collective::Scatterv { send_counts, recv_count, root: root()?, send_type, recv_type }
            }
            CollectiveKind::Allgatherv => {
                let (send_count, recv_counts) = (call.number("size")?, of_members(None)?);
                Collective::Allgatherv { send_count, recv_counts, send_type, recv_type }
            }
            CollectiveKind::Alltoallv => {
                let (send_counts, recv_counts) = (elements(call)?.into(), of_members(Some(position))?);
                Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }
            }
            CollectiveKind::ReduceScatter => {
                Collective::ReduceScatter { recv_counts: elements(call)?.into(), flops, datatype }
            }
        })
    }

    /// Adds a call on a file.
    fn file(&mut self, call: &Element, number: u64) -> Result<(), TraceError> {
        let name = call.name.to_ascii_lowercase();
        if name == "file_open" {
            return self.open(call, number);
        }
        let direction = match &name {
            name if name.contains("read") => Some(FileDirection::Read),
            name if name.contains("write") => Some(FileDirection::Write),
            _ => None,
        };
        let action = match (name.as_str(), direction) {
            ("file_close", _) => FileCall::Close,
            ("file_sync", _) => FileCall::Sync,
            ("file_seek", _) => FileCall::Seek { offset: self.check(call.number("offset"))? },
            ("file_set_view", _) => {
                self.calls.leave_out(number, 1, VIEW);
                self.calls.push(Op::Communicator);
                return Ok(());
            }
            (_, Some(direction)) => {
                // A call that begins a collective access has its data inside.
                let data = call.children.iter().find(|child| child.name == "Data").unwrap_or(call);
                let Ok(bytes) = data.number("size").map(Bytes::new) else {
                    return self.calls.unmodelled();
                };
                if name.contains("_shared") || name.contains("_ordered") {
                    FileCall::SharedAccess { is_ordered: name.contains("_ordered"), direction, bytes }
                } else {
                    let offset = Some(self.check(data.number("offset"))?);
                    let is_collective = name.contains("_all");
                    FileCall::Access { is_collective, direction, offset, bytes }
                }
            }
            // Sizes, hints and atomicity.
            _ => return self.calls.unmodelled(),
        };
        let id = self.check(call.number("fid"))?;
        let not_open = || HdtraceError::NotOpen { call: call.name.clone(), number: id };
        let (file, communicator) = self.check(self.files.get(&id).cloned().ok_or_else(not_open))?;
        if action == FileCall::Close {
            self.files.remove(&id);
        }
        let request = call.optional("rid").map(|_| call.number("rid")).transpose();
        let request = self.check(request)?;
        self.calls.file(communicator, request, file, action)
    }

    fn open(&mut self, call: &Element, number: u64) -> Result<(), TraceError> {
        let (handle, _) = self.check(communicator(call, self.names, self.rank))?;
        let text = self.check(call.text("name"))?;
        let name = FileName::new(text).unwrap_or_else(|| {
            self.calls.leave_out(number, 1, NAME);
            let printable = |letter: char| if letter.is_ascii_graphic() { letter } else { '_' };
            let name: String = text.chars().map(printable).chain(text.is_empty().then_some('_')).collect();
            FileName::new(&name).expect("all letters are printable")
        });
        let id = self.check(call.number("fid"))?;
        self.files.insert(id, (name.clone(), handle));
        let mode = self.check(call.number("flags"))? as u32;
        self.calls.file(handle, None, name, FileCall::Open { mode, hints: FileHints::default() })
    }
}

/// Returns the requests that a call lists; `None` is `MPI_REQUEST_NULL`.
fn requests_of(call: &Element) -> Result<Vec<Option<Handle>>, HdtraceError> {
    let listed = call.children.iter().filter(|child| child.name == "For");
    listed.map(|child| child.signed("rid").map(|id| Handle::try_from(id).ok())).collect()
}
