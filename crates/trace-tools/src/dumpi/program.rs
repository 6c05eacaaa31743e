//! The program of a rank.

use pdes_core::{Bytes, Rank};
use trace_mmap::table::CollectiveKind;
use trace_mmap::{Collective, Datatype, Op, TraceError};

use super::DumpiError;
use super::creations::{Grids, made};
use super::datatypes::Datatypes;
use super::file::{Parts, Record};
use crate::timed::{
    Calls, CommPeer, Communicators, Done, Envelope, Function, Handle, Made, Requests, TimedProgram,
};

/// The largest number of no request: `MPI_REQUEST_NULL`.
const NULL: i64 = 1;

const THREADS: &str = "a call is of another thread than the first one; all calls of a rank are replayed as of one thread, in the \
                       order of the records";
const CANCEL: &str = "MPI_Cancel is recorded without its outcome; the replay does not cancel";

/// Writes the program of a rank.
pub(super) fn write(
    parts: &Parts,
    communicators: &Communicators,
    program: &mut TimedProgram<'_>,
) -> Result<(), TraceError> {
    let mut records = parts.records()?;
    let datatypes = Datatypes::new(parts.sizes.as_deref());
    let mut rank =
        RankProgram { calls: Calls::new(communicators, program), datatypes, grids: Grids::default() };
    let mut count = 0;
    while let Some(record) = records.next().map_err(|bad| bad.locate(&parts.path))? {
        if record.number == 1 {
            rank.calls.start_at(record.times[0]);
        }
        count = record.number;
        rank.record(record)?;
    }
    for (function, [_, unrecorded]) in
        parts.calls.iter().enumerate().filter(|(_, [_, unrecorded])| *unrecorded > 0)
    {
        if let Some(name) = super::functions::name(function) {
            let what = format!(
                "{name} was called and not recorded, by the counters at the end of the file; its calls are missing"
            );
            rank.calls.leave_out(count + 1, (*unrecorded).into(), &what);
        }
    }
    Ok(())
}

struct RankProgram<'c, 'p, 'a> {
    calls: Calls<'c, 'p, 'a>,
    datatypes: Datatypes<'c>,
    grids: Grids,
}

impl RankProgram<'_, '_, '_> {
    fn record(&mut self, record: &Record) -> Result<(), TraceError> {
        if record.name.is_empty() {
            return Ok(());
        }
        let [begin, end] = record.times;
        self.calls.enter(record.name, record.number, begin)?;
        if record.thread != 0 {
            self.calls.leave_out(record.number, 1, THREADS);
        }
        self.datatypes.note(record);
        self.call(record)?;
        self.calls.leave(end)
    }

    /// Adds the operations of a call. The arguments are those of the layout, in its order.
    fn call(&mut self, record: &Record) -> Result<(), TraceError> {
        let (name, numbers) = (record.name, &record.numbers[..]);
        match made(record, &mut self.grids) {
            Some(Made::Communicator { parent, new, by }) => return self.calls.create(parent, new, &by),
            Some(Made::Group { .. }) => {
                self.calls.push(Op::Communicator);
                return Ok(());
            }
            None => {}
        }
        let requests = || record.arrays.first().into_iter().flatten().map(|request| handle(*request));
        self.sources(record)?;
        let flag = |is_set: bool| if is_set { Done::All } else { Done::Nothing };
        match (Function::of(name), numbers) {
            (Function::Init, _) => self.calls.push(Op::Init),
            (Function::Finalize, _) => self.calls.push(Op::Finalize),
            (Function::Send(mode), _) => {
                let (envelope, bytes, _) = self.message(record, false)?;
                self.calls.send(envelope, mode, bytes)?;
            }
            (Function::Isend(mode), _) => {
                let (envelope, bytes, request) = self.message(record, false)?;
                self.calls.isend(envelope, mode, bytes, request)?;
            }
            (Function::SendInit(mode), _) => {
                let (envelope, bytes, request) = self.message(record, false)?;
                self.calls.send_init(envelope, mode, bytes, request)?;
            }
            (Function::Recv, _) => {
                let (envelope, bytes, _) = self.message(record, true)?;
                self.calls.recv(envelope, bytes)?;
            }
            (Function::Irecv, _) => {
                let (envelope, bytes, request) = self.message(record, true)?;
                self.calls.irecv(envelope, bytes, request)?;
            }
            (Function::RecvInit, _) => {
                let (envelope, bytes, request) = self.message(record, true)?;
                self.calls.recv_init(envelope, bytes, request)?;
            }
            (
                Function::SendRecv,
                &[send_count, send_type, to, send_tag, recv_count, recv_type, from, recv_tag, communicator],
            ) => {
                let sizes =
                    [self.bytes(record, send_count, send_type)?, self.bytes(record, recv_count, recv_type)?];
                self.send_recv(record, [to, send_tag], [from, recv_tag], communicator, sizes)?;
            }
            (Function::SendRecv, &[count, datatype, to, send_tag, from, recv_tag, communicator]) => {
                let bytes = self.bytes(record, count, datatype)?;
                self.send_recv(record, [to, send_tag], [from, recv_tag], communicator, [bytes; 2])?;
            }
            (Function::Start, &[request]) if record.arrays.is_empty() => {
                self.calls.start([handle(request)].into_iter());
            }
            (Function::Start, _) => self.calls.start(requests()),
            (Function::Free, &[request]) => self.calls.free(request as Handle)?,
            (Function::Wait(Requests::One), &[request]) => {
                self.calls.wait(Requests::One, [handle(request)].into_iter(), &Done::All)?;
            }
            (Function::Test(Requests::One), &[request, is_done]) if record.arrays.is_empty() => {
                self.calls.test(Requests::One, [handle(request)].into_iter(), &flag(is_done != 0))?;
            }
            (Function::Wait(Requests::One), &[_, index]) => {
                self.calls.wait(Requests::One, requests(), &at(&[index]))?;
            }
            (Function::Test(Requests::One), &[_, index, is_done]) => {
                let done = if is_done == 0 { Done::Nothing } else { at(&[index]) };
                self.calls.test(Requests::One, requests(), &done)?;
            }
            (Function::Wait(Requests::Some), _) => {
                self.calls.wait(Requests::Some, requests(), &at(&record.arrays[1]))?;
            }
            (Function::Test(Requests::Some), _) => {
                self.calls.test(Requests::Some, requests(), &at(&record.arrays[1]))?;
            }
            (Function::Wait(Requests::All), _) => self.calls.wait(Requests::All, requests(), &Done::All)?,
            (Function::Test(Requests::All), &[_, is_done]) => {
                self.calls.test(Requests::All, requests(), &flag(is_done != 0))?;
            }
            (Function::Collective { kind, .. }, _) => self.collective(record, kind)?,
            (_, &[from, tag, communicator, ..]) if matches!(name, "MPI_Probe" | "MPI_Iprobe") => {
                let envelope =
                    Envelope { peer: source(record, from), tag, communicator: communicator as Handle };
                self.calls.probe(envelope, numbers.get(3).map(|found| *found != 0))?;
            }
            (_, &[communicator, rank]) if name == "MPI_Comm_rank" => {
                self.calls.check_rank(communicator as Handle, rank)?;
            }
            (_, &[communicator]) if name == "MPI_Comm_free" => {
                self.calls.free_communicator(communicator as Handle)
            }
            (Function::Local, _) => {
                if name == "MPI_Cancel" {
                    self.calls.leave_out(record.number, 1, CANCEL);
                }
                self.calls.push(Op::Communicator);
            }
            _ => self.calls.unmodelled()?,
        }
        Ok(())
    }

    /// Notes the sources of the messages whose receives the call completes, by its statuses.
    fn sources(&mut self, record: &Record) -> Result<(), TraceError> {
        let (requests, indices) = (record.arrays.first(), record.arrays.get(1));
        for (place, status) in record.statuses.iter().enumerate() {
            let request = match (Function::of(record.name), &record.numbers[..], requests) {
                (Function::Wait(Requests::One) | Function::Test(Requests::One), &[request, ..], None) => {
                    Some(request)
                }
                (
                    Function::Wait(Requests::One) | Function::Test(Requests::One),
                    &[_, index, ..],
                    Some(requests),
                ) => usize::try_from(index).ok().and_then(|index| requests.get(index).copied()),
                (Function::Wait(Requests::Some) | Function::Test(Requests::Some), _, Some(requests)) => {
                    let index = indices.and_then(|indices| usize::try_from(*indices.get(place)?).ok());
                    index.and_then(|index| requests.get(index).copied())
                }
                (Function::Wait(Requests::All) | Function::Test(Requests::All), _, Some(requests)) => {
                    requests.get(place).copied()
                }
                _ => None,
            };
            if let Some(request) = request.and_then(handle) {
                self.calls.heard(request, status.source)?;
            }
        }
        Ok(())
    }

    /// Returns the arguments of a call for one message: count, datatype, peer, tag, communicator, and the request if there is one.
    fn message(
        &mut self,
        record: &Record,
        is_receive: bool,
    ) -> Result<(Envelope, Bytes, Handle), TraceError> {
        let &[count, datatype, peer, tag, communicator, ..] = &record.numbers[..] else {
            unreachable!("the layout has them")
        };
        let bytes = self.bytes(record, count, datatype)?;
        let peer = if is_receive { source(record, peer) } else { destination(peer) };
        let request = record.numbers.get(5).map_or(0, |request| *request as Handle);
        Ok((Envelope { peer, tag, communicator: communicator as Handle }, bytes, request))
    }

    fn send_recv(
        &mut self,
        record: &Record,
        [to, send_tag]: [i64; 2],
        [from, recv_tag]: [i64; 2],
        communicator: i64,
        sizes: [Bytes; 2],
    ) -> Result<(), TraceError> {
        let communicator = communicator as Handle;
        let to = Envelope { peer: destination(to), tag: send_tag, communicator };
        let from = Envelope { peer: source(record, from), tag: recv_tag, communicator };
        self.calls.send_recv([to, from], sizes)
    }

    fn collective(&mut self, record: &Record, kind: CollectiveKind) -> Result<(), TraceError> {
        let (numbers, arrays) = (&record.numbers[..], &record.arrays[..]);
        let (datatype, flops) = (Datatype::BYTE, 0.0);
        let (send_type, recv_type) = (datatype, datatype);
        let size = |count: i64, of: i64| self.bytes(record, count, of).map(Bytes::get);
        let sizes = |counts: &[i64], of: &[i64]| -> Result<Box<[u64]>, TraceError> {
            let of = of.iter().cycle();
            counts.iter().zip(of).map(|(count, of)| size(*count, *of)).collect()
        };
        let (communicator, operation) = match (kind, numbers, arrays) {
            (CollectiveKind::Barrier, &[communicator], _) => (communicator, Collective::Barrier),
            (CollectiveKind::Bcast, &[count, of, root, communicator], _) => {
                (communicator, Collective::Bcast { count: size(count, of)?, root: rank(root), datatype })
            }
            (CollectiveKind::Reduce, &[count, of, _, root, communicator], _) => (
                communicator,
                Collective::Reduce { count: size(count, of)?, flops, root: rank(root), datatype },
            ),
            (CollectiveKind::Allreduce, &[count, of, _, communicator], _) => {
                (communicator, Collective::Allreduce { count: size(count, of)?, flops, datatype })
            }
            (CollectiveKind::Scan, &[count, of, _, communicator], _) => {
                (communicator, Collective::Scan { count: size(count, of)?, flops, datatype })
            }
            (CollectiveKind::Exscan, &[count, of, _, communicator], _) => {
                (communicator, Collective::Exscan { count: size(count, of)?, flops, datatype })
            }
            (CollectiveKind::ReduceScatter, &[_, of, _, communicator], [counts]) => (
                communicator,
                Collective::ReduceScatter { recv_counts: sizes(counts, &[of])?, flops, datatype },
            ),
            (
                CollectiveKind::Alltoall | CollectiveKind::Allgather,
                &[send_count, sent, recv_count, received, communicator],
                _,
            ) => {
                let (send_count, recv_count) = (size(send_count, sent)?, size(recv_count, received)?);
                (
                    communicator,
                    match kind {
                        CollectiveKind::Alltoall => {
                            Collective::Alltoall { send_count, recv_count, send_type, recv_type }
                        }
                        _ => Collective::Allgather { send_count, recv_count, send_type, recv_type },
                    },
                )
            }
            (CollectiveKind::Allgatherv, &[_, send_count, sent, received, communicator], [counts, _]) => {
                let (send_count, recv_counts) = (size(send_count, sent)?, sizes(counts, &[received])?);
                (communicator, Collective::Allgatherv { send_count, recv_counts, send_type, recv_type })
            }
            (CollectiveKind::Alltoallv, &[_, sent, received, communicator], [sends, _, receives, _]) => {
                let (send_counts, recv_counts) = (sizes(sends, &[sent])?, sizes(receives, &[received])?);
                (communicator, Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type })
            }
            // MPI_Alltoallw.
            (CollectiveKind::Alltoallv, &[_, communicator], [sends, _, sent, receives, _, received]) => {
                let (send_counts, recv_counts) = (sizes(sends, sent)?, sizes(receives, received)?);
                (communicator, Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type })
            }
            (CollectiveKind::Gather, &[_, count, of, root, communicator, ..], _) => {
                let send_count = size(count, of)?;
                let recv_count = match numbers[5..] {
                    [count, of] => size(count, of)?,
                    _ => send_count,
                };
                (
                    communicator,
                    Collective::Gather { send_count, recv_count, root: rank(root), send_type, recv_type },
                )
            }
            (CollectiveKind::Scatter, &[_, count, of, root, communicator, ..], _) => {
                let recv_count = size(count, of)?;
                let send_count = match numbers[5..] {
                    [count, of] => size(count, of)?,
                    _ => recv_count,
                };
                (
                    communicator,
                    Collective::Scatter { send_count, recv_count, root: rank(root), send_type, recv_type },
                )
            }
            (CollectiveKind::Gatherv, &[_, ranks, count, sent, root, communicator, received], _) => {
                let (send_count, root) = (size(count, sent)?, rank(root));
                // Only the root has the counts.
                let recv_counts = match arrays.first() {
                    Some(counts) => sizes(counts, &[received])?,
                    None => vec![0; ranks.max(0) as usize].into(),
                };
                (communicator, Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type })
            }
            (CollectiveKind::Scatterv, &[_, ranks, sent, count, received, root, communicator], _) => {
                let (recv_count, root) = (size(count, received)?, rank(root));
                let send_counts = match arrays.first() {
                    Some(counts) => sizes(counts, &[sent])?,
                    None => vec![0; ranks.max(0) as usize].into(),
                };
                (communicator, Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type })
            }
            _ => return self.calls.unmodelled(),
        };
        self.calls.collective(communicator as Handle, None, operation)
    }

    /// Returns the size of some elements.
    fn bytes(&self, record: &Record, count: i64, datatype: i64) -> Result<Bytes, TraceError> {
        let name = record.name;
        let wrong = |kind| self.calls.error(kind);
        let elements = u64::try_from(count).map_err(|_| wrong(DumpiError::Count { name, found: count }))?;
        if elements == 0 {
            return Ok(Bytes::new(0));
        }
        let size =
            self.datatypes.size(datatype).ok_or_else(|| wrong(DumpiError::Datatype { name, datatype }))?;
        Ok(Bytes::new(elements.saturating_mul(size)))
    }
}

/// Returns a request, or `None` for `MPI_REQUEST_NULL`.
fn handle(request: i64) -> Option<Handle> {
    (request > NULL).then_some(request as Handle)
}

/// Returns the requests with these indices, which are negative or 32766 for none.
fn at(indices: &[i64]) -> Done {
    let mut indices: Vec<usize> = indices.iter().filter_map(|index| usize::try_from(*index).ok()).collect();
    indices.sort_unstable();
    if indices.is_empty() { Done::Nothing } else { Done::Some(indices) }
}

fn rank(root: i64) -> Rank {
    Rank::new(u32::try_from(root).unwrap_or(u32::MAX))
}

/// Returns the destination of a message. `MPI_PROC_NULL` has the number of the library, which is negative.
fn destination(peer: i64) -> CommPeer {
    if peer < 0 { CommPeer::ProcNull } else { CommPeer::Rank(peer) }
}

/// Returns the source of a message. -1 is any source, and `MPI_PROC_NULL` in traces of MPICH: then the status has no source either.
fn source(record: &Record, peer: i64) -> CommPeer {
    match (peer, record.statuses.first()) {
        (0.., _) => CommPeer::Rank(peer),
        (-1, None) => CommPeer::Any { recorded: None },
        (-1, Some(status)) if status.source >= 0 => CommPeer::Any { recorded: Some(status.source) },
        _ => CommPeer::ProcNull,
    }
}
