//! Formatting of calls as time-independent text.

use std::fmt::{self, Formatter};

use pdes_core::Bytes;
use trace_mmap::table::{Named, RequestUse, Visit};
use trace_mmap::{
    BlockRun, CallOp, CommId, FileCall, FileHints, FileName, FileView, NumberHint, Peer, RecvFrom,
    RequestName, SendTo, Switch, SwitchHint, WindowCall,
};

use crate::line::{ANY_SOURCE, BYTE, PROC_NULL, peer_number, tag_number};
use crate::text::{NumberList, RankRanges};

/// Writes the name and the fields of a call: first those without a name, then the named ones.
pub(super) fn write(f: &mut Formatter<'_>, op: &CallOp) -> fmt::Result {
    f.write_str(op.name())?;
    match op {
        CallOp::SendRecv { to, send_bytes, from, recv_bytes } => {
            let (send, recv) = (send_bytes.get(), recv_bytes.get());
            write!(f, " {send} {} {recv} {} {BYTE} {BYTE}", peer_number(to.peer), source_number(from))?;
            write!(f, " stag={} rtag={}", to.tag, tag_number(from.tag))?;
            // A half with `MPI_PROC_NULL` has lost the communicator of the call.
            write_communicator(f, if to.peer.is_some() { to.communicator } else { from.communicator })?;
            write_recorded_source(f, from)
        }
        CallOp::Test { request, done } => {
            write!(f, " req={request}")?;
            let done = done.map(|done| done.then_some(*request));
            done.map_or(Ok(()), |done| write_requests(f, "done", done.as_slice()))
        }
        CallOp::Collective { operation, communicator, request } => {
            operation.write(f)?;
            write_communicator(f, *communicator)?;
            request.map_or(Ok(()), |request| write!(f, " req={request}"))
        }
        CallOp::NeighborAlltoall { communicator, to, from, request } => {
            write!(f, " {BYTE} {BYTE}")?;
            write_neighbors(f, ("to", "scounts"), to)?;
            write_neighbors(f, ("from", "rcounts"), from)?;
            write_communicator(f, *communicator)?;
            request.map_or(Ok(()), |request| write!(f, " req={request}"))
        }
        CallOp::NewCommunicator { kind, parent, new } => {
            write!(f, " comm={parent}")?;
            let Some((id, group)) = new else { return Ok(()) };
            write!(f, " new={id}")?;
            if kind.keeps_group() { Ok(()) } else { write!(f, " members={}", RankRanges(group.ranges())) }
        }
        CallOp::Window { communicator, group, request, call } => {
            call.target().map_or(Ok(()), |target| write!(f, " {target}"))?;
            call.bytes().map_or(Ok(()), |bytes| write!(f, " {}", bytes.get()))?;
            if let WindowCall::Sync { kind, .. } = call
                && kind.has_group()
            {
                write!(f, " to={}", NumberList(group.iter().map(|(rank, _)| u64::from(*rank))))?;
            }
            write!(f, " comm={communicator}")?;
            request.map_or(Ok(()), |request| write!(f, " req={request}"))?;
            if let WindowCall::Fetch { writes: false, .. } = call { f.write_str(" done=no") } else { Ok(()) }
        }
        CallOp::Unmodelled(call) => write!(f, " {call}"),
        _ => {
            let mut fields = FieldWriter { f, result: Ok(()), is_named: false };
            op.visit(&mut fields);
            fields.is_named = true;
            op.visit(&mut fields);
            fields.result
        }
    }
}

/// Writer of the fields of a call by their roles.
struct FieldWriter<'a, 'f> {
    f: &'a mut Formatter<'f>,
    result: fmt::Result,
    /// True in the second pass over the fields, for those that have a name.
    is_named: bool,
}

impl FieldWriter<'_, '_> {
    fn write(&mut self, is_named: bool, write: impl FnOnce(&mut Formatter<'_>) -> fmt::Result) {
        if is_named == self.is_named && self.result.is_ok() {
            self.result = write(self.f);
        }
    }
}

impl<'a> Visit<'a, Named> for FieldWriter<'_, '_> {
    fn destination(&mut self, to: &SendTo) {
        self.write(false, |f| write!(f, " {} {}", peer_number(to.peer), to.tag));
        self.write(true, |f| write_communicator(f, to.communicator));
    }

    fn source(&mut self, from: &RecvFrom) {
        self.write(false, |f| write!(f, " {} {}", source_number(from), tag_number(from.tag)));
        self.write(true, |f| {
            write_communicator(f, from.communicator)?;
            write_recorded_source(f, from)
        });
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.write(false, |f| write!(f, " {} {BYTE}", bytes.get()));
    }

    fn communicator(&mut self, communicator: &CommId) {
        self.write(true, |f| write_communicator(f, *communicator));
    }

    fn file(&mut self, file: &FileName) {
        self.write(false, |f| write!(f, " {}", file.as_str()));
    }

    fn file_call(&mut self, call: FileCall) {
        self.write(false, |f| match call {
            FileCall::Open { mode, .. } => write!(f, " {mode}"),
            FileCall::Close | FileCall::Sync => Ok(()),
            FileCall::Seek { offset } => write!(f, " {offset}"),
            FileCall::Access { offset: None, bytes, .. } | FileCall::SharedAccess { bytes, .. } => {
                write!(f, " {}", bytes.get())
            }
            FileCall::Access { offset: Some(offset), bytes, .. } => write!(f, " {offset} {}", bytes.get()),
        });
        if let FileCall::Open { hints, .. } = call {
            self.write(true, |f| write_hints(f, &hints));
        }
    }

    fn file_view(&mut self, view: &FileView) {
        self.write(false, |f| write_view(f, view));
    }

    fn freed_communicator(&mut self, communicator: &CommId) {
        self.write(true, |f| write!(f, " comm={communicator}"));
    }

    fn requests(&mut self, used: RequestUse, requests: &[RequestName]) {
        let key = if used == RequestUse::Done { "done" } else { "req" };
        // A request without a name is not written, but an empty list is.
        if used != RequestUse::Posted || !requests.is_empty() {
            self.write(true, |f| write_requests(f, key, requests));
        }
    }

    fn outcome(&mut self, is_yes: bool) {
        self.write(true, |f| f.write_str(if is_yes { " done=yes" } else { " done=no" }));
    }

    fn have_completed(&mut self, done: bool) {
        self.write(true, |f| f.write_str(if done { " done=all" } else { " done=-" }));
    }
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

fn write_hints(f: &mut Formatter<'_>, hints: &FileHints) -> fmt::Result {
    for hint in NumberHint::ALL {
        hints.number(hint).map_or(Ok(()), |value| write!(f, " {}={value}", hint.name()))?;
    }
    SwitchHint::ALL.into_iter().try_for_each(|hint| match hints.switch(hint) {
        Switch::Automatic => Ok(()),
        value => write!(f, " {}={}", hint.name(), value.name()),
    })
}

/// Writes the displacement of a view and, unless it has no holes, the extent and the blocks of its file type.
fn write_view(f: &mut Formatter<'_>, view: &FileView) -> fmt::Result {
    write!(f, " {}", view.displacement())?;
    if FileView::contiguous(view.displacement()).as_ref() == Some(view) {
        return Ok(());
    }
    write!(f, " {}", view.extent())?;
    view.runs().enumerate().try_for_each(|(number, BlockRun { offset, bytes, stride, count })| {
        write!(f, "{}{offset}:{bytes}", if number == 0 { ' ' } else { ',' })?;
        if count > 1 { write!(f, ":{stride}:{count}") } else { Ok(()) }
    })
}
