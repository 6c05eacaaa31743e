//! The program of a rank.

use pdes_core::{Bytes, Rank};
use trace_mmap::table::CollectiveKind;
use trace_mmap::{Collective, Datatype, Op, TraceError};

use super::communicators::Names;
use super::line::{CallLine, LiballprofError};
use crate::text::Lines;
use crate::timed::{
    Calls, CommPeer, Communicators, Done, Envelope, Function, Handle, Requests, TimedProgram,
};

const OUTCOME: &str = "the trace does not tell which requests a call of MPI_Waitany, MPI_Waitsome, MPI_Testany, MPI_Testsome or \
                       MPI_Testall completes; the replay does not call it, and waits for the requests where a later call does, or \
                       at the end of the rank";
const COUNTS: &str = "a collective operation on vectors has no counts in the trace, of which some tracers write the address only; \
                      the replay does not do it";
const AMBIGUOUS: &str = "a call is on a communicator that several calls before it may have made; it is taken as that of the first one";

/// `MPI_COMM_WORLD` of MPICH. Its numbers of no and of any process are those of Open MPI, exchanged.
const MPICH_WORLD: i64 = 0x4400_0000;

/// Writes the program of a rank.
pub(super) fn write(
    mut lines: Lines<'_>,
    ranks: u32,
    communicators: &Communicators,
    program: &mut TimedProgram<'_>,
) -> Result<(), TraceError> {
    let file = lines.file().to_path_buf();
    let calls = Calls::new(communicators, program);
    let mut rank = RankProgram { calls, names: Names::new(ranks), any_source: -1, has_begun: false };
    while let Some(line) = lines.next()? {
        let call = CallLine::parse(line.number, line.text);
        rank.line(call.map_err(|kind| CallLine::locate(&file, line.number, kind))?)?;
    }
    Ok(())
}

struct RankProgram<'c, 'p, 'a> {
    calls: Calls<'c, 'p, 'a>,
    names: Names,
    /// The number of `MPI_ANY_SOURCE`; other negative numbers are `MPI_PROC_NULL`.
    any_source: i64,
    has_begun: bool,
}

/// A message: buffer, count, datatype, peer, tag, communicator.
type Message = (Envelope, Bytes);

impl RankProgram<'_, '_, '_> {
    fn line(&mut self, mut call: CallLine<'_>) -> Result<(), TraceError> {
        // MPI_Init has no begin, MPI_Finalize no end.
        let (begin, end) = (call.begin.or(call.end).unwrap_or(0), call.end.or(call.begin).unwrap_or(0));
        if !std::mem::replace(&mut self.has_begun, true) {
            self.calls.start_at(begin);
        }
        self.calls.enter(call.name, call.line, begin)?;
        self.call(&mut call)?;
        self.calls.leave(end)
    }

    fn call(&mut self, call: &mut CallLine<'_>) -> Result<(), TraceError> {
        let made = self.names.note(call);
        if let Some((parent, new, by)) = self.check(made)? {
            return self.calls.create(parent, new, &by);
        }
        match Function::of(call.name) {
            Function::Init => self.calls.push(Op::Init),
            Function::Finalize => self.calls.push(Op::Finalize),
            Function::Send(mode) => {
                let (envelope, bytes) = self.message(call)?;
                self.calls.send(envelope, mode, bytes)?;
            }
            Function::Isend(mode) => {
                let (envelope, bytes) = self.message(call)?;
                let request = self.request(call)?;
                self.calls.isend(envelope, mode, bytes, request)?;
            }
            Function::SendInit(mode) => {
                let (envelope, bytes) = self.message(call)?;
                let request = self.request(call)?;
                self.calls.send_init(envelope, mode, bytes, request)?;
            }
            Function::Recv => {
                let (envelope, bytes) = self.message(call)?;
                self.calls.recv(envelope, bytes)?;
            }
            Function::Irecv => {
                let (envelope, bytes) = self.message(call)?;
                let request = self.request(call)?;
                self.calls.irecv(envelope, bytes, request)?;
            }
            Function::RecvInit => {
                let (envelope, bytes) = self.message(call)?;
                let request = self.request(call)?;
                self.calls.recv_init(envelope, bytes, request)?;
            }
            Function::SendRecv => self.send_recv(call)?,
            Function::Start => {
                let requests = if call.left() > 1 { self.requests(call)? } else { vec![self.request(call)?] };
                self.calls.start(requests.into_iter().map(Some));
            }
            Function::Free => {
                let request = self.request(call)?;
                self.calls.free(request)?;
            }
            Function::Wait(Requests::One) if call.name.eq_ignore_ascii_case("MPI_Wait") => {
                let request = self.request(call)?;
                self.calls.wait(Requests::One, [Some(request)].into_iter(), &Done::All)?;
            }
            Function::Wait(Requests::All) => {
                let requests = self.requests(call)?;
                self.calls.wait(Requests::All, requests.into_iter().map(Some), &Done::All)?;
            }
            Function::Test(Requests::One) if call.name.eq_ignore_ascii_case("MPI_Test") => {
                let request = self.request(call)?;
                self.calls.test_unknown(request);
            }
            Function::Wait(_) | Function::Test(_) => {
                self.calls.leave_out(call.line, 1, OUTCOME);
                self.calls.push(Op::Communicator);
            }
            Function::Collective { kind, is_nonblocking } => self.collective(call, kind, is_nonblocking)?,
            Function::Local => self.calls.push(Op::Communicator),
            Function::Other => self.calls.unmodelled()?,
        }
        Ok(())
    }

    fn check<T>(&self, found: Result<T, LiballprofError>) -> Result<T, TraceError> {
        found.map_err(|kind| self.calls.error(kind))
    }

    /// Reads a communicator.
    fn communicator(&mut self, call: &mut CallLine<'_>) -> Result<Handle, TraceError> {
        let raw = self.check(call.communicator())?;
        if raw.handle == MPICH_WORLD {
            self.any_source = -2;
        }
        let found = self.names.find(call.name, raw);
        let handle = self.check(found)?;
        if std::mem::take(&mut self.names.is_ambiguous) {
            self.calls.leave_out(call.line, 1, AMBIGUOUS);
        }
        let (_, group) = self.calls.communicator(handle)?;
        if i64::from(group.len()) != raw.size {
            let (name, found, expected) = (call.name.to_owned(), raw.size, group.len());
            return Err(self.calls.error(LiballprofError::Members { name, found, expected }));
        }
        Ok(handle)
    }

    fn number(&self, call: &mut CallLine<'_>, expected: &'static str) -> Result<i64, TraceError> {
        self.check(call.number(expected))
    }

    fn request(&self, call: &mut CallLine<'_>) -> Result<Handle, TraceError> {
        Ok(self.number(call, "request")? as Handle)
    }

    /// Reads the number and the address of requests, and finds those of the array that are posted: elements have 4 or 8 bytes.
    fn requests(&self, call: &mut CallLine<'_>) -> Result<Vec<Handle>, TraceError> {
        let (count, first) = (self.check(call.count("number of requests"))?, self.request(call)?);
        let [four, eight] = [4, 8].map(|stride| self.calls.posted(first, count, stride));
        Ok(if four.len() > eight.len() { four } else { eight })
    }

    /// Reads buffer, count and datatype.
    fn buffer(&self, call: &mut CallLine<'_>) -> Result<(i64, Bytes), TraceError> {
        let address = self.number(call, "buffer")?;
        let count = self.check(call.count("count"))?;
        Ok((address, Bytes::new(count.saturating_mul(self.check(call.size())?))))
    }

    fn peer(&self, peer: i64, is_receive: bool) -> CommPeer {
        match peer {
            0.. => CommPeer::Rank(peer),
            _ if is_receive && peer == self.any_source => CommPeer::Any { recorded: None },
            _ => CommPeer::ProcNull,
        }
    }

    /// Reads the arguments of a call for one message up to its communicator.
    fn message(&mut self, call: &mut CallLine<'_>) -> Result<Message, TraceError> {
        let (_, bytes) = self.buffer(call)?;
        let (peer, tag) = (self.number(call, "peer")?, self.number(call, "tag")?);
        let communicator = self.communicator(call)?;
        let is_receive =
            matches!(Function::of(call.name), Function::Recv | Function::Irecv | Function::RecvInit);
        Ok((Envelope { peer: self.peer(peer, is_receive), tag, communicator }, bytes))
    }

    fn send_recv(&mut self, call: &mut CallLine<'_>) -> Result<(), TraceError> {
        let (_, send_bytes) = self.buffer(call)?;
        let (to, send_tag) = (self.number(call, "destination")?, self.number(call, "tag")?);
        let is_replaced = call.name.to_ascii_lowercase().ends_with("_replace");
        let recv_bytes = if is_replaced { send_bytes } else { self.buffer(call)?.1 };
        let (from, recv_tag) = (self.number(call, "source")?, self.number(call, "tag")?);
        let communicator = self.communicator(call)?;
        let to = Envelope { peer: self.peer(to, false), tag: send_tag, communicator };
        let from = Envelope { peer: self.peer(from, true), tag: recv_tag, communicator };
        self.calls.send_recv([to, from], [send_bytes, recv_bytes])
    }

    fn collective(
        &mut self,
        call: &mut CallLine<'_>,
        kind: CollectiveKind,
        is_nonblocking: bool,
    ) -> Result<(), TraceError> {
        let (datatype, flops) = (Datatype::BYTE, 0.0);
        let (send_type, recv_type) = (datatype, datatype);
        let operation = match kind {
            CollectiveKind::Barrier => Collective::Barrier,
            CollectiveKind::Bcast => {
                let count = self.buffer(call)?.1.get();
                Collective::Bcast { count, root: self.root(call)?, datatype }
            }
            CollectiveKind::Reduce
            | CollectiveKind::Allreduce
            | CollectiveKind::Scan
            | CollectiveKind::Exscan => {
                self.number(call, "buffer")?;
                let count = self.buffer(call)?.1.get();
                self.check(call.skip(1, "operator"))?;
                match kind {
                    CollectiveKind::Reduce => {
                        Collective::Reduce { count, flops, root: self.root(call)?, datatype }
                    }
                    CollectiveKind::Allreduce => Collective::Allreduce { count, flops, datatype },
                    CollectiveKind::Scan => Collective::Scan { count, flops, datatype },
                    _ => Collective::Exscan { count, flops, datatype },
                }
            }
            CollectiveKind::Gather
            | CollectiveKind::Scatter
            | CollectiveKind::Allgather
            | CollectiveKind::Alltoall => {
                let ((sent, send), (received, recv)) = (self.buffer(call)?, self.buffer(call)?);
                // In place, the other buffer has the amount of a rank.
                let is_in_place = |buffer: i64| matches!(buffer, 1 | -1);
                let send_count = if is_in_place(sent) { recv.get() } else { send.get() };
                let recv_count = if is_in_place(received) { send.get() } else { recv.get() };
                match kind {
                    CollectiveKind::Gather => {
                        let root = self.root(call)?;
                        Collective::Gather { send_count, recv_count, root, send_type, recv_type }
                    }
                    CollectiveKind::Scatter => {
                        let root = self.root(call)?;
                        Collective::Scatter { send_count, recv_count, root, send_type, recv_type }
                    }
                    CollectiveKind::Allgather => {
                        Collective::Allgather { send_count, recv_count, send_type, recv_type }
                    }
                    _ => Collective::Alltoall { send_count, recv_count, send_type, recv_type },
                }
            }
            CollectiveKind::Gatherv
            | CollectiveKind::Scatterv
            | CollectiveKind::Allgatherv
            | CollectiveKind::Alltoallv
            | CollectiveKind::ReduceScatter => match self.vectors(call, kind, is_nonblocking)? {
                Some(operation) => operation,
                None => {
                    self.calls.leave_out(call.line, 1, COUNTS);
                    return self.calls.unmodelled();
                }
            },
        };
        let communicator = self.communicator(call)?;
        let request = is_nonblocking.then(|| self.request(call)).transpose()?;
        self.calls.collective(communicator, request, operation)
    }

    fn root(&self, call: &mut CallLine<'_>) -> Result<Rank, TraceError> {
        Ok(Rank::new(u32::try_from(self.number(call, "root")?).unwrap_or(u32::MAX)))
    }

    /// Reads an operation on vectors up to its communicator; `None` if the trace does not have the counts.
    fn vectors(
        &self,
        call: &mut CallLine<'_>,
        kind: CollectiveKind,
        is_nonblocking: bool,
    ) -> Result<Option<Collective>, TraceError> {
        let (send_type, recv_type) = (Datatype::BYTE, Datatype::BYTE);
        let (arguments, vectors) = match kind {
            CollectiveKind::Gatherv | CollectiveKind::Scatterv => (9, 2),
            CollectiveKind::Allgatherv => (8, 2),
            CollectiveKind::Alltoallv => (9, 4),
            _ => (6, 1),
        };
        // The counts of MPI_Alltoallw have several datatypes.
        let is_several = call.name.eq_ignore_ascii_case("MPI_Alltoallw");
        if is_several || call.left() != arguments + vectors + usize::from(is_nonblocking) {
            return Ok(None);
        }
        let vector = |call: &mut CallLine<'_>| self.check(call.vector("vector of counts"));
        let sizes =
            |counts: &[u64], size: u64| counts.iter().map(|count| count.saturating_mul(size)).collect();
        Ok(Some(match kind {
            CollectiveKind::Gatherv | CollectiveKind::Allgatherv => {
                let (_, sent) = self.buffer(call)?;
                self.number(call, "buffer")?;
                let (counts, _) = (vector(call)?, vector(call)?);
                let (recv_counts, send_count) = (sizes(&counts, self.check(call.size())?), sent.get());
                if kind == CollectiveKind::Allgatherv {
                    Collective::Allgatherv { send_count, recv_counts, send_type, recv_type }
                } else {
                    let root = self.root(call)?;
                    Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type }
                }
            }
            CollectiveKind::Scatterv => {
                self.number(call, "buffer")?;
                let (counts, _) = (vector(call)?, vector(call)?);
                let send_counts = sizes(&counts, self.check(call.size())?);
                let recv_count = self.buffer(call)?.1.get();
                let root = self.root(call)?;
                Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type }
            }
            CollectiveKind::Alltoallv => {
                let mut side = || -> Result<_, TraceError> {
                    self.number(call, "buffer")?;
                    let (counts, _) = (vector(call)?, vector(call)?);
                    Ok(sizes(&counts, self.check(call.size())?))
                };
                let (send_counts, recv_counts) = (side()?, side()?);
                Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }
            }
            _ => {
                self.check(call.skip(2, "buffers"))?;
                let counts = vector(call)?;
                let recv_counts = sizes(&counts, self.check(call.size())?);
                self.check(call.skip(1, "operator"))?;
                Collective::ReduceScatter { recv_counts, flops: 0.0, datatype: Datatype::BYTE }
            }
        }))
    }
}
