//! Parsing of fields by their roles in the table of calls.

use std::sync::Arc;

use pdes_core::Bytes;

use crate::call::{CallError, CallOp, CommunicatorCall, RequestUse, SendMode};
use crate::communicator::{CommId, Group};
use crate::datatype::Datatype;
use crate::structure::{RecvFrom, RequestName, SendTo};
use crate::text::call::CallReader;
use crate::text::call::values::{MEMBERS, NEW};
use crate::text::keys::Key;
use crate::text::reader::invalid;
use crate::text::{Field, TextError, list};

/// A field of requests, as its type has it.
pub(crate) trait RequestField: Sized {
    fn read(reader: &mut CallReader<'_, '_>, used: RequestUse) -> Result<Self, TextError>;
}

impl RequestField for RequestName {
    fn read(reader: &mut CallReader<'_, '_>, _: RequestUse) -> Result<Self, TextError> {
        reader.mandatory_request()
    }
}

impl RequestField for Option<RequestName> {
    fn read(reader: &mut CallReader<'_, '_>, used: RequestUse) -> Result<Self, TextError> {
        if used == RequestUse::Done { reader.done_one() } else { reader.request() }
    }
}

impl RequestField for Vec<RequestName> {
    fn read(reader: &mut CallReader<'_, '_>, used: RequestUse) -> Result<Self, TextError> {
        if used == RequestUse::Done { reader.done_some() } else { reader.requests() }
    }
}

impl CallReader<'_, '_> {
    pub(crate) fn request_field<T: RequestField>(&mut self, used: RequestUse) -> Result<T, TextError> {
        T::read(self, used)
    }

    pub(crate) fn destination(&mut self) -> Result<SendTo, TextError> {
        let communicator = self.communicator()?;
        let (peer, tag) = (self.reader.destination()?, self.reader.tag()?);
        Ok(SendTo { peer, tag, communicator })
    }

    pub(crate) fn source(&mut self) -> Result<RecvFrom, TextError> {
        let communicator = self.communicator()?;
        let (peer, tag) = (self.reader.source()?, self.reader.tag_or_any()?);
        Ok(RecvFrom { peer: self.recorded_source(peer)?, tag, communicator })
    }

    pub(crate) fn mode(&self) -> Result<SendMode, TextError> {
        Ok(SendMode::ALL[usize::from(self.number)])
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, TextError> {
        self.reader.send_bytes()
    }

    pub(crate) fn buffer(&mut self) -> Result<Bytes, TextError> {
        self.reader.receive_bytes()
    }

    fn kind(&self) -> CommunicatorCall {
        CommunicatorCall::ALL[usize::from(self.number)]
    }

    pub(crate) fn neighbor_alltoall(&mut self) -> Result<CallOp, TextError> {
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

    fn neighbors(&mut self, key: Key, name: &'static str, size: u32) -> Result<Vec<u32>, TextError> {
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

    pub(crate) fn new_communicator(&mut self) -> Result<CallOp, TextError> {
        let kind = self.kind();
        let parent = self.communicator()?;
        let new = self.number(Key::New, NEW, u64::from(u32::MAX), "the number of a communicator")?;
        let new = new.map(|id| CommId::new(id as u32));
        if kind == CommunicatorCall::Dup {
            let id = new.ok_or_else(|| self.missing_error(NEW))?;
            let group = Arc::clone(&self.known_communicator(parent)?.group);
            return Ok(CallOp::NewCommunicator { kind, parent, new: Some((id, group)) });
        }
        let members = self.keys.take(Key::Members);
        let new = match (new, members) {
            // Only members call `MPI_Comm_create_group`, so that it always returns a communicator.
            (None, None) if kind == CommunicatorCall::CreateGroup => return Err(self.missing_error(NEW)),
            (None, None) => None,
            (None, Some(_)) => return Err(self.missing_error(NEW)),
            (Some(_), None) => return Err(self.missing_error(MEMBERS)),
            (Some(id), Some(members)) => Some((id, Arc::new(self.group(members)?))),
        };
        Ok(CallOp::NewCommunicator { kind, parent, new })
    }

    fn group(&self, members: &[u8]) -> Result<Group, TextError> {
        let runs = list::parse_rank_ranges(members, self.reader.builder.ranks());
        let runs =
            runs.ok_or_else(|| invalid(MEMBERS, members, "a list of ranks, such as 0-7,12 or 0-28:4"))?;
        Group::from_ranges(&runs).map_err(|rank| self.call_error(CallError::DuplicateMember { rank }))
    }
}
