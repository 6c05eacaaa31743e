//! Parsing of sends, receives, waits and tests.

use pdes_core::{Bytes, Rank};

use crate::action::Action;
use crate::builder::RequestKey;
use crate::call::CallOp;
use crate::channel::Tag;
use crate::communicator::CommId;
use crate::structure::{Peer, RecvFrom, SendTo};
use crate::text::fields::{integer, real};
use crate::text::reader::{Reader, invalid};
use crate::text::{Field, TextError, Unsupported};

const ANY_TAG: i64 = -444;
const ANY_SOURCE: i64 = -555;
const PROC_NULL: i64 = -666;

const DESTINATION: Field = Field::new("destination");
const SOURCE: Field = Field::new("source");
const TAG: Field = Field::new("tag");
const COUNT: Field = Field::new("count");
const SEND_COUNT: Field = Field::new("send count");
const RECV_COUNT: Field = Field::new("receive count");

/// The fields of `send` and `isend`.
struct SendFields {
    /// `None` is `MPI_PROC_NULL`.
    to: Option<Rank>,
    tag: Tag,
    bytes: Bytes,
}

/// The fields of `recv` and `irecv`.
struct ReceiveFields {
    from: Peer,
    tag: Option<Tag>,
    bytes: Bytes,
}

/// The fields of `sendRecv`, except the tags.
pub(super) struct SendRecvFields {
    pub(super) to: Option<Rank>,
    pub(super) send_bytes: Bytes,
    pub(super) from: Peer,
    pub(super) recv_bytes: Bytes,
}

impl Reader<'_, '_> {
    pub(super) fn send(&mut self) -> Result<Action, TextError> {
        let SendFields { to, tag, bytes } = self.send_fields()?;
        Ok(match to {
            None => Action::ProcNull { slot: None },
            Some(peer) => Action::Send { to: self.builder.send_to(peer, tag), bytes },
        })
    }

    pub(super) fn isend(&mut self) -> Result<Action, TextError> {
        let SendFields { to, tag, bytes } = self.send_fields()?;
        let slot = self.builder.requests.post(RequestKey::send(self.builder.rank(), to, Some(tag)))?;
        Ok(match to {
            None => Action::ProcNull { slot: Some(slot) },
            Some(peer) => Action::Isend { to: self.builder.send_to(peer, tag), bytes, slot },
        })
    }

    pub(super) fn recv(&mut self) -> Result<Action, TextError> {
        let ReceiveFields { from, tag, bytes } = self.receive_fields()?;
        Ok(match from {
            Peer::ProcNull => Action::ProcNull { slot: None },
            Peer::Any { .. } => {
                self.builder.resolve_call(&CallOp::Recv { from: RecvFrom::on_world(from, tag), bytes })?
            }
            Peer::Rank(peer) => Action::Recv { from: self.builder.receive_from(peer, tag), bytes },
        })
    }

    pub(super) fn irecv(&mut self) -> Result<Action, TextError> {
        let ReceiveFields { from, tag, bytes } = self.receive_fields()?;
        let peer = match from {
            Peer::ProcNull => None,
            Peer::Rank(peer) => Some(peer),
            Peer::Any { .. } => {
                let from = RecvFrom::on_world(from, tag);
                return self.builder.resolve_call(&CallOp::Irecv { from, bytes, request: None });
            }
        };
        let slot = self.builder.requests.post(RequestKey::receive(self.builder.rank(), peer, tag))?;
        Ok(match peer {
            None => Action::ProcNull { slot: Some(slot) },
            Some(peer) => Action::Irecv { from: self.builder.receive_from(peer, tag), bytes, slot },
        })
    }

    pub(super) fn wait(&mut self) -> Result<Action, TextError> {
        let key = self.request()?;
        match self.builder.requests.complete(key) {
            Some(slot) => Ok(Action::Wait { slot }),
            None => Err(self.builder.requests.not_pending_error(self.verb.name(), key)),
        }
    }

    pub(super) fn test(&mut self) -> Result<Action, TextError> {
        let key = self.request()?;
        match self.builder.requests.rotate(key) {
            Some(slot) => Ok(Action::Test { slot }),
            None => Err(self.builder.requests.not_pending_error(self.verb.name(), key)),
        }
    }

    /// Reads `send count, destination, receive count, source, send type, receive type`, all mandatory.
    pub(super) fn send_recv(&mut self) -> Result<Action, TextError> {
        let SendRecvFields { to, send_bytes, from, recv_bytes } = self.send_recv_fields()?;
        let tag = Tag::new(0);
        let to = SendTo { peer: to, tag, communicator: CommId::WORLD };
        let from = RecvFrom::on_world(from, Some(tag));
        self.builder.resolve_call(&CallOp::SendRecv { to, send_bytes, from, recv_bytes })
    }

    pub(super) fn send_recv_fields(&mut self) -> Result<SendRecvFields, TextError> {
        let send_count = self.count(SEND_COUNT)?;
        let to = self.destination()?;
        let recv_count = self.receive_count(RECV_COUNT)?;
        let from = self.source()?;
        let send_bytes = self.typed_bytes("send type", SEND_COUNT, send_count)?;
        let recv_bytes = self.typed_bytes("receive type", RECV_COUNT, recv_count)?;
        Ok(SendRecvFields { to, send_bytes, from, recv_bytes })
    }

    /// Reads `count, destination, source, type`, of which the type is optional.
    pub(super) fn send_recv_replace_fields(&mut self) -> Result<SendRecvFields, TextError> {
        let count = self.receive_count(COUNT)?;
        let (to, from) = (self.destination()?, self.source()?);
        let datatype = self.datatype("datatype")?;
        let bytes = self.bytes(COUNT, count, datatype)?;
        Ok(SendRecvFields { to, send_bytes: bytes, from, recv_bytes: bytes })
    }

    fn send_fields(&mut self) -> Result<SendFields, TextError> {
        Ok(SendFields { to: self.destination()?, tag: self.tag()?, bytes: self.send_bytes()? })
    }

    fn receive_fields(&mut self) -> Result<ReceiveFields, TextError> {
        Ok(ReceiveFields { from: self.source()?, tag: self.tag_or_any()?, bytes: self.receive_bytes()? })
    }

    pub(super) fn send_bytes(&mut self) -> Result<Bytes, TextError> {
        let count = self.count(COUNT)?;
        let datatype = self.datatype("datatype")?;
        self.bytes(COUNT, count, datatype)
    }

    pub(super) fn receive_bytes(&mut self) -> Result<Bytes, TextError> {
        let count = self.receive_count(COUNT)?;
        let datatype = self.datatype("datatype")?;
        self.bytes(COUNT, count, datatype)
    }

    pub(super) fn tag(&mut self) -> Result<Tag, TextError> {
        let tag = self.integer_between(TAG, 0, i64::from(i32::MAX), "a tag that is not negative")?;
        Ok(Tag::new(tag as i32))
    }

    pub(super) fn destination(&mut self) -> Result<Option<Rank>, TextError> {
        match self.integer_between(DESTINATION, i64::MIN, i64::MAX, "a rank")? {
            PROC_NULL => Ok(None),
            found => self.rank_of(DESTINATION, found).map(Some),
        }
    }

    pub(super) fn source(&mut self) -> Result<Peer, TextError> {
        match self.integer_between(SOURCE, i64::MIN, i64::MAX, "a rank")? {
            PROC_NULL => Ok(Peer::ProcNull),
            ANY_SOURCE => Ok(Peer::Any { recorded: None }),
            found => self.rank_of(SOURCE, found).map(Peer::Rank),
        }
    }

    pub(super) fn tag_or_any(&mut self) -> Result<Option<Tag>, TextError> {
        let expected = "a tag that is not negative, or -444 for any";
        let found = self.next_field(TAG)?;
        any_or_tag(found).ok_or_else(|| invalid(TAG, found, expected))
    }

    fn receive_count(&mut self, field: Field) -> Result<u64, TextError> {
        let next = { self.fields }.next().and_then(real);
        match next {
            Some(count) if count < 0.0 => Err(self.unsupported(Unsupported::UnknownSize { count })),
            _ => self.count(field),
        }
    }

    fn typed_bytes(&mut self, name: &'static str, counted: Field, count: u64) -> Result<Bytes, TextError> {
        if !self.has_more() {
            self.next_field(Field::new(name))?;
        }
        let datatype = self.datatype(name)?;
        self.bytes(counted, count, datatype)
    }

    fn request(&mut self) -> Result<RequestKey, TextError> {
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        let src = self.integer_between(SOURCE, low, high, "a rank")?;
        let dst = self.integer_between(DESTINATION, low, high, "a rank")?;
        let tag = self.integer_between(TAG, low, high, "a tag")?;
        Ok(RequestKey::new(src as i32, dst as i32, tag as i32))
    }

    fn unsupported(&self, feature: Unsupported) -> TextError {
        TextError::Unsupported { action: self.verb.name(), feature }
    }
}

/// Parses the tag of a receive: `Some(None)` is `MPI_ANY_TAG`, `None` an invalid tag.
pub(super) fn any_or_tag(found: &[u8]) -> Option<Option<Tag>> {
    match integer(found)? {
        ANY_TAG => Some(None),
        tag @ 0..=0x7fff_ffff => Some(Some(Tag::new(tag as i32))),
        _ => None,
    }
}
