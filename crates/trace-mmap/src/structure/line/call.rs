//! Formatting of calls as time-independent text.

use std::fmt::{self, Formatter};

use pdes_core::Bytes;

use crate::call::CommunicatorCall;
use crate::communicator::CommId;
use crate::structure::line::{ANY_SOURCE, BYTE, PROC_NULL, arguments, number, tag_number};
use crate::structure::{CallOp, Peer, RecvFrom, RequestName, SendTo};
use crate::text::{List, Runs};

/// Writes the name and the fields of a call.
pub(super) fn write(f: &mut Formatter<'_>, op: &CallOp) -> fmt::Result {
    f.write_str(op.name())?;
    match op {
        CallOp::Send { to, bytes, .. } => message(f, to, *bytes),
        CallOp::Isend { to, bytes, request, .. } => {
            message(f, to, *bytes)?;
            own_request(f, *request)
        }
        CallOp::SendInit { to, bytes, request, .. } => {
            message(f, to, *bytes)?;
            own_request(f, Some(*request))
        }
        CallOp::Recv { from, bytes } => receive(f, from, *bytes),
        CallOp::Irecv { from, bytes, request } => {
            receive(f, from, *bytes)?;
            own_request(f, *request)
        }
        CallOp::RecvInit { from, bytes, request } => {
            receive(f, from, *bytes)?;
            own_request(f, Some(*request))
        }
        CallOp::SendRecv { to, send_bytes, from, recv_bytes } => {
            let (send, recv) = (send_bytes.get(), recv_bytes.get());
            write!(f, " {send} {} {recv} {} {BYTE} {BYTE}", number(to.peer), source(from))?;
            write!(f, " stag={} rtag={}", to.tag, tag_number(from.tag))?;
            communicator(f, to.communicator)?;
            recorded(f, from)
        }
        CallOp::Probe { from } => probe(f, from),
        CallOp::Iprobe { from, found } => {
            probe(f, from)?;
            yes_or_no(f, *found)
        }
        CallOp::Collective { operation, communicator, request } => {
            arguments(f, operation)?;
            self::communicator(f, *communicator)?;
            own_request(f, *request)
        }
        CallOp::NeighborAlltoall { communicator, to, from, request } => {
            write!(f, " {BYTE} {BYTE}")?;
            neighbors(f, ("to", "scounts"), to)?;
            neighbors(f, ("from", "rcounts"), from)?;
            self::communicator(f, *communicator)?;
            own_request(f, *request)
        }
        CallOp::NewCommunicator { kind, parent, new } => {
            write!(f, " comm={parent}")?;
            let Some((id, group)) = new else { return Ok(()) };
            write!(f, " new={id}")?;
            if *kind == CommunicatorCall::Dup { Ok(()) } else { write!(f, " members={}", Runs(group.runs())) }
        }
        CallOp::FreeCommunicator { communicator } => write!(f, " comm={communicator}"),
        CallOp::Unmodelled(call) => write!(f, " {call}"),
        completion => write_completion(f, completion),
    }
}

fn write_completion(f: &mut Formatter<'_>, op: &CallOp) -> fmt::Result {
    match op {
        CallOp::Start { requests: listed } | CallOp::Waitall { requests: listed } => {
            requests(f, "req", listed)
        }
        CallOp::Free { request } | CallOp::Wait { request } => own_request(f, Some(*request)),
        CallOp::Waitany { requests: listed, done } | CallOp::Testany { requests: listed, done } => {
            requests(f, "req", listed)?;
            requests(f, "done", done.as_slice())
        }
        CallOp::Waitsome { requests: listed, done } | CallOp::Testsome { requests: listed, done } => {
            requests(f, "req", listed)?;
            requests(f, "done", done)
        }
        CallOp::Test { request, done } => {
            own_request(f, Some(*request))?;
            let done = done.map(|done| done.then_some(*request));
            done.map_or(Ok(()), |done| requests(f, "done", done.as_slice()))
        }
        CallOp::Testall { requests: listed, done } => {
            requests(f, "req", listed)?;
            f.write_str(if *done { " done=all" } else { " done=-" })
        }
        CallOp::Cancel { request, cancelled } => {
            own_request(f, Some(*request))?;
            yes_or_no(f, *cancelled)
        }
        // The other calls refer to no existing request.
        _ => Ok(()),
    }
}

fn message(f: &mut Formatter<'_>, to: &SendTo, bytes: Bytes) -> fmt::Result {
    write!(f, " {} {} {} {BYTE}", number(to.peer), to.tag, bytes.get())?;
    communicator(f, to.communicator)
}

fn receive(f: &mut Formatter<'_>, from: &RecvFrom, bytes: Bytes) -> fmt::Result {
    write!(f, " {} {} {} {BYTE}", source(from), tag_number(from.tag), bytes.get())?;
    communicator(f, from.communicator)?;
    recorded(f, from)
}

fn probe(f: &mut Formatter<'_>, from: &RecvFrom) -> fmt::Result {
    write!(f, " {} {}", source(from), tag_number(from.tag))?;
    communicator(f, from.communicator)?;
    recorded(f, from)
}

fn source(from: &RecvFrom) -> i64 {
    match from.peer {
        Peer::Nobody => PROC_NULL,
        Peer::Rank(rank) => i64::from(rank.get()),
        Peer::Any { .. } => ANY_SOURCE,
    }
}

fn recorded(f: &mut Formatter<'_>, from: &RecvFrom) -> fmt::Result {
    match from.peer {
        Peer::Any { recorded: Some(rank) } => write!(f, " source={rank}"),
        _ => Ok(()),
    }
}

fn communicator(f: &mut Formatter<'_>, id: CommId) -> fmt::Result {
    if id == CommId::WORLD { Ok(()) } else { write!(f, " comm={id}") }
}

fn own_request(f: &mut Formatter<'_>, request: Option<RequestName>) -> fmt::Result {
    request.map_or(Ok(()), |request| write!(f, " req={request}"))
}

fn requests(f: &mut Formatter<'_>, key: &str, requests: &[RequestName]) -> fmt::Result {
    write!(f, " {key}={}", List(requests.iter().map(|request| u64::from(request.get()))))
}

fn neighbors(f: &mut Formatter<'_>, (ranks, counts): (&str, &str), list: &[(u32, Bytes)]) -> fmt::Result {
    write!(f, " {ranks}={}", List(list.iter().map(|(rank, _)| u64::from(*rank))))?;
    write!(f, " {counts}={}", List(list.iter().map(|(_, bytes)| bytes.get())))
}

fn yes_or_no(f: &mut Formatter<'_>, is_yes: bool) -> fmt::Result {
    f.write_str(if is_yes { " done=yes" } else { " done=no" })
}
