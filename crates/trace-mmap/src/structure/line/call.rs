//! Formatting of calls as time-independent text.

use std::fmt::{self, Formatter};

use pdes_core::Bytes;

use crate::call::CommunicatorCall;
use crate::communicator::CommId;
use crate::structure::line::{ANY_SOURCE, BYTE, PROC_NULL, peer_number, tag_number, write_arguments};
use crate::structure::{CallOp, Peer, RecvFrom, RequestName, SendTo};
use crate::text::{NumberList, RankRanges};

/// Writes the name and the fields of a call.
pub(super) fn write(f: &mut Formatter<'_>, op: &CallOp) -> fmt::Result {
    f.write_str(op.name())?;
    match op {
        CallOp::Send { to, bytes, .. } => write_message(f, to, *bytes),
        CallOp::Isend { to, bytes, request, .. } => {
            write_message(f, to, *bytes)?;
            write_request(f, *request)
        }
        CallOp::SendInit { to, bytes, request, .. } => {
            write_message(f, to, *bytes)?;
            write_request(f, Some(*request))
        }
        CallOp::Recv { from, bytes } => write_receive(f, from, *bytes),
        CallOp::Irecv { from, bytes, request } => {
            write_receive(f, from, *bytes)?;
            write_request(f, *request)
        }
        CallOp::RecvInit { from, bytes, request } => {
            write_receive(f, from, *bytes)?;
            write_request(f, Some(*request))
        }
        CallOp::SendRecv { to, send_bytes, from, recv_bytes } => {
            let (send, recv) = (send_bytes.get(), recv_bytes.get());
            write!(f, " {send} {} {recv} {} {BYTE} {BYTE}", peer_number(to.peer), source_number(from))?;
            write!(f, " stag={} rtag={}", to.tag, tag_number(from.tag))?;
            write_communicator(f, to.communicator)?;
            write_recorded_source(f, from)
        }
        CallOp::Probe { from } => write_probe(f, from),
        CallOp::Iprobe { from, found } => {
            write_probe(f, from)?;
            write_yes_or_no(f, *found)
        }
        CallOp::Collective { operation, communicator, request } => {
            write_arguments(f, operation)?;
            self::write_communicator(f, *communicator)?;
            write_request(f, *request)
        }
        CallOp::NeighborAlltoall { communicator, to, from, request } => {
            write!(f, " {BYTE} {BYTE}")?;
            write_neighbors(f, ("to", "scounts"), to)?;
            write_neighbors(f, ("from", "rcounts"), from)?;
            self::write_communicator(f, *communicator)?;
            write_request(f, *request)
        }
        CallOp::NewCommunicator { kind, parent, new } => {
            write!(f, " comm={parent}")?;
            let Some((id, group)) = new else { return Ok(()) };
            write!(f, " new={id}")?;
            if *kind == CommunicatorCall::Dup {
                Ok(())
            } else {
                write!(f, " members={}", RankRanges(group.ranges()))
            }
        }
        CallOp::FreeCommunicator { communicator } => write!(f, " comm={communicator}"),
        CallOp::Unmodelled(call) => write!(f, " {call}"),
        completion => write_completion(f, completion),
    }
}

fn write_completion(f: &mut Formatter<'_>, op: &CallOp) -> fmt::Result {
    match op {
        CallOp::Start { requests: listed } | CallOp::Waitall { requests: listed } => {
            write_requests(f, "req", listed)
        }
        CallOp::Free { request } | CallOp::Wait { request } => write_request(f, Some(*request)),
        CallOp::Waitany { requests: listed, done } | CallOp::Testany { requests: listed, done } => {
            write_requests(f, "req", listed)?;
            write_requests(f, "done", done.as_slice())
        }
        CallOp::Waitsome { requests: listed, done } | CallOp::Testsome { requests: listed, done } => {
            write_requests(f, "req", listed)?;
            write_requests(f, "done", done)
        }
        CallOp::Test { request, done } => {
            write_request(f, Some(*request))?;
            let done = done.map(|done| done.then_some(*request));
            done.map_or(Ok(()), |done| write_requests(f, "done", done.as_slice()))
        }
        CallOp::Testall { requests: listed, done } => {
            write_requests(f, "req", listed)?;
            f.write_str(if *done { " done=all" } else { " done=-" })
        }
        CallOp::Cancel { request, cancelled } => {
            write_request(f, Some(*request))?;
            write_yes_or_no(f, *cancelled)
        }
        // The other calls refer to no existing request.
        _ => Ok(()),
    }
}

fn write_message(f: &mut Formatter<'_>, to: &SendTo, bytes: Bytes) -> fmt::Result {
    write!(f, " {} {} {} {BYTE}", peer_number(to.peer), to.tag, bytes.get())?;
    write_communicator(f, to.communicator)
}

fn write_receive(f: &mut Formatter<'_>, from: &RecvFrom, bytes: Bytes) -> fmt::Result {
    write!(f, " {} {} {} {BYTE}", source_number(from), tag_number(from.tag), bytes.get())?;
    write_communicator(f, from.communicator)?;
    write_recorded_source(f, from)
}

fn write_probe(f: &mut Formatter<'_>, from: &RecvFrom) -> fmt::Result {
    write!(f, " {} {}", source_number(from), tag_number(from.tag))?;
    write_communicator(f, from.communicator)?;
    write_recorded_source(f, from)
}

fn source_number(from: &RecvFrom) -> i64 {
    match from.peer {
        Peer::ProcNull => PROC_NULL,
        Peer::Rank(rank) => i64::from(rank.get()),
        Peer::Any { .. } => ANY_SOURCE,
    }
}

fn write_recorded_source(f: &mut Formatter<'_>, from: &RecvFrom) -> fmt::Result {
    match from.peer {
        Peer::Any { recorded: Some(rank) } => write!(f, " source={rank}"),
        _ => Ok(()),
    }
}

fn write_communicator(f: &mut Formatter<'_>, id: CommId) -> fmt::Result {
    if id == CommId::WORLD { Ok(()) } else { write!(f, " comm={id}") }
}

fn write_request(f: &mut Formatter<'_>, request: Option<RequestName>) -> fmt::Result {
    request.map_or(Ok(()), |request| write!(f, " req={request}"))
}

fn write_requests(f: &mut Formatter<'_>, key: &str, requests: &[RequestName]) -> fmt::Result {
    write!(f, " {key}={}", NumberList(requests.iter().map(|request| u64::from(request.get()))))
}

fn write_neighbors(
    f: &mut Formatter<'_>,
    (ranks, counts): (&str, &str),
    list: &[(u32, Bytes)],
) -> fmt::Result {
    write!(f, " {ranks}={}", NumberList(list.iter().map(|(rank, _)| u64::from(*rank))))?;
    write!(f, " {counts}={}", NumberList(list.iter().map(|(_, bytes)| bytes.get())))
}

fn write_yes_or_no(f: &mut Formatter<'_>, is_yes: bool) -> fmt::Result {
    f.write_str(if is_yes { " done=yes" } else { " done=no" })
}
