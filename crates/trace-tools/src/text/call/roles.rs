//! Parsing of fields by their roles in the table of calls.

use std::sync::Arc;

use pdes_core::Bytes;
use trace_mmap::table::{ReadCall, RequestUse};
use trace_mmap::{
    CallError, CallOp, CommId, CommunicatorCall, Datatype, FileName, FileView, Group, RecvFrom, RequestName,
    SendMode, SendTo, Tag,
};

use crate::text::call::CallReader;
use crate::text::call::values::{COMMUNICATOR, DONE, MEMBERS, NEW, RECV_TAG, SEND_TAG};
use crate::text::keys::Key;
use crate::text::point_to_point::{SendRecvFields, any_or_tag};
use crate::text::reader::invalid;
use crate::text::{Field, TextError, list};

impl ReadCall for CallReader<'_, '_, '_> {
    type Error = TextError;

    fn destination(&mut self) -> Result<SendTo, TextError> {
        let communicator = self.communicator()?;
        let (peer, tag) = (self.reader.destination()?, self.reader.tag()?);
        Ok(SendTo { peer, tag, communicator })
    }

    fn source(&mut self) -> Result<RecvFrom, TextError> {
        let communicator = self.communicator()?;
        let (peer, tag) = (self.reader.source()?, self.reader.tag_or_any()?);
        Ok(RecvFrom { peer: self.recorded_source(peer)?, tag, communicator })
    }

    fn mode(&mut self) -> Result<SendMode, TextError> {
        Ok(SendMode::ALL[usize::from(self.number)])
    }

    fn bytes(&mut self) -> Result<Bytes, TextError> {
        self.reader.send_bytes()
    }

    fn buffer(&mut self) -> Result<Bytes, TextError> {
        self.reader.receive_bytes()
    }

    fn neighbor_alltoall(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let size = self.known_communicator(communicator)?.group.len();
        let (is_uniform, is_nonblocking) = (self.number >= 2, self.number % 2 == 1);
        let request = if is_nonblocking { Some(self.mandatory_request()?) } else { None };
        let to = self.neighbors(Key::To, "list of destinations (to=)", size)?;
        let from = self.neighbors(Key::From, "list of sources (from=)", size)?;
        let (send_counts, recv_counts) = if is_uniform {
            let send = self.reader.count(Field::new("send count"))?;
            (vec![send; to.len()], vec![self.reader.count(Field::new("receive count"))?; from.len()])
        } else {
            (
                self.neighbor_counts(Key::Scounts, "list of send counts (scounts=)", to.len())?,
                self.neighbor_counts(Key::Rcounts, "list of receive counts (rcounts=)", from.len())?,
            )
        };
        let (send_type, recv_type) = self.reader.types(&send_counts, &recv_counts)?;
        let with_bytes = |ranks: Vec<u32>, counts: Vec<u64>, datatype: Datatype| {
            let bytes = |count: u64| Bytes::new(datatype.size().get() * count);
            ranks.into_iter().zip(counts).map(|(rank, count)| (rank, bytes(count))).collect()
        };
        let (to, from) = (with_bytes(to, send_counts, send_type), with_bytes(from, recv_counts, recv_type));
        Ok(CallOp::NeighborAlltoall { communicator, to, from, request })
    }

    fn new_communicator(&mut self) -> Result<CallOp, TextError> {
        let kind = self.kind();
        let parent = self.communicator()?;
        let new = self.number(Key::New, NEW, u64::from(u32::MAX), "the number of a communicator")?;
        let new = new.map(|id| CommId::new(id as u32));
        if kind.keeps_group() {
            let id = new.ok_or_else(|| self.missing_error(NEW))?;
            let group = Arc::clone(&self.known_communicator(parent)?.group);
            return Ok(CallOp::NewCommunicator { kind, parent, new: Some((id, group)) });
        }
        let members = self.keys.take(Key::Members);
        let new = match (new, members) {
            // Only members call `MPI_Comm_create_group`, so that it always returns a communicator.
            (None, None) if matches!(kind, CommunicatorCall::CreateGroup | CommunicatorCall::Define) => {
                return Err(self.missing_error(NEW));
            }
            (None, None) => None,
            (None, Some(_)) => return Err(self.missing_error(NEW)),
            (Some(_), None) => return Err(self.missing_error(MEMBERS)),
            (Some(id), Some(members)) => Some((id, Arc::new(self.group(members)?))),
        };
        Ok(CallOp::NewCommunicator { kind, parent, new })
    }

    fn request(&mut self, _: RequestUse) -> Result<RequestName, TextError> {
        self.mandatory_request()
    }

    fn optional_request(&mut self, used: RequestUse) -> Result<Option<RequestName>, TextError> {
        if used == RequestUse::Done { self.done_one() } else { self.request_if_named() }
    }

    fn requests(&mut self, used: RequestUse) -> Result<Vec<RequestName>, TextError> {
        if used == RequestUse::Done { self.done_some() } else { self.listed_requests() }
    }

    fn communicator(&mut self) -> Result<CommId, TextError> {
        if let Some(communicator) = self.communicator {
            return Ok(communicator);
        }
        let max = u64::from(u32::MAX);
        let found = self.number(Key::Comm, COMMUNICATOR, max, "the number of a communicator")?;
        Ok(*self.communicator.insert(CommId::new(found.unwrap_or(0) as u32)))
    }

    fn freed_communicator(&mut self) -> Result<CommId, TextError> {
        if self.keys.has(Key::Comm) { self.communicator() } else { Err(self.missing_error(COMMUNICATOR)) }
    }

    fn have_completed(&mut self) -> Result<bool, TextError> {
        match self.mandatory(Key::Done, DONE)? {
            b"all" => Ok(true),
            b"-" => Ok(false),
            found => Err(invalid(DONE, found, "all, or - for none")),
        }
    }

    fn file_call(&mut self) -> Result<CallOp, TextError> {
        self.call_on_file()
    }

    fn window_call(&mut self) -> Result<CallOp, TextError> {
        self.call_on_window()
    }

    fn file(&mut self) -> Result<FileName, TextError> {
        self.name_of_file()
    }

    fn file_view(&mut self) -> Result<FileView, TextError> {
        self.view_of_file()
    }

    fn outcome(&mut self) -> Result<bool, TextError> {
        match self.mandatory(Key::Done, DONE)? {
            b"yes" => Ok(true),
            b"no" => Ok(false),
            found => Err(invalid(DONE, found, "yes or no")),
        }
    }

    fn send_recv(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let exchanging = match self.number {
            0 => self.reader.send_recv_fields()?,
            _ => self.reader.send_recv_replace_fields()?,
        };
        let SendRecvFields { to, send_bytes, from, recv_bytes } = exchanging;
        let tag = self.number(Key::Stag, SEND_TAG, i32::MAX as u64, "a tag that is not negative")?;
        let tag = Tag::new(tag.unwrap_or(0) as i32);
        let to = SendTo { peer: to, tag, communicator };
        let tag = match self.keys.take(Key::Rtag) {
            None => Some(Tag::new(0)),
            Some(found) => any_or_tag(found)
                .ok_or_else(|| invalid(RECV_TAG, found, "a tag that is not negative, or -444 for any"))?,
        };
        let from = RecvFrom { peer: self.recorded_source(from)?, tag, communicator };
        Ok(CallOp::SendRecv { to, send_bytes, from, recv_bytes })
    }

    fn start(&mut self) -> Result<CallOp, TextError> {
        let requests =
            if self.number == 0 { self.listed_requests()? } else { vec![self.mandatory_request()?] };
        Ok(CallOp::Start { requests })
    }

    fn test(&mut self) -> Result<CallOp, TextError> {
        let request = self.mandatory_request()?;
        let done = if self.keys.has(Key::Done) { Some(self.done_one()?) } else { None };
        if let Some(Some(other)) = done.filter(|done| done.is_some_and(|done| done != request)) {
            return Err(self.call_error(CallError::DoneNotListed { request: other }));
        }
        Ok(CallOp::Test { request, done: done.map(|done| done.is_some()) })
    }
}

impl CallReader<'_, '_, '_> {
    fn kind(&self) -> CommunicatorCall {
        CommunicatorCall::ALL[usize::from(self.number)]
    }

    pub(super) fn neighbors(
        &mut self,
        key: Key,
        name: &'static str,
        size: u32,
    ) -> Result<Vec<u32>, TextError> {
        let max = u64::from(size) - 1;
        let ranks = self.list(key, Field::new(name), max, "a list of ranks of the communicator")?;
        Ok(ranks.into_iter().map(|rank| rank as u32).collect())
    }

    fn neighbor_counts(
        &mut self,
        key: Key,
        name: &'static str,
        expected: usize,
    ) -> Result<Vec<u64>, TextError> {
        let counts = self.list(key, Field::new(name), 1 << 48, "a list of counts up to 2^48")?;
        let (action, key, found) = (self.reader.verb.name(), key.name(), counts.len());
        if found == expected {
            Ok(counts)
        } else {
            Err(TextError::ListLength { action, key, found, expected })
        }
    }

    fn group(&self, members: &[u8]) -> Result<Group, TextError> {
        let runs = list::parse_rank_ranges(members, self.reader.builder.ranks());
        let runs =
            runs.ok_or_else(|| invalid(MEMBERS, members, "a list of ranks, such as 0-7,12 or 0-28:4"))?;
        Group::from_ranges(&runs).map_err(|rank| self.call_error(CallError::DuplicateMember { rank }))
    }
}
