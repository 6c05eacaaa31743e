//! Parsing of sends, receives, waits and tests.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Action, CallOp, CommId, Peer, RecvFrom, RequestKey, SendTo, Tag};

use crate::text::fields::{integer, real};
use crate::text::reader::{MAX_BYTES, Reader, invalid, rank_below};
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
pub(super) const RECORDED: Field = Field::new("recorded source (source=)");
const TAG_OR_ANY: &str = "a tag that is not negative, or -444 for any";

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

impl Reader<'_, '_, '_> {
    pub(super) fn send(&mut self) -> Result<Action, TextError> {
        let SendFields { to, tag, bytes } = self.send_fields()?;
        Ok(self.builder.send(to, tag, bytes))
    }

    pub(super) fn isend(&mut self) -> Result<Action, TextError> {
        let SendFields { to, tag, bytes } = self.send_fields()?;
        Ok(self.builder.isend(to, tag, bytes)?)
    }

    pub(super) fn recv(&mut self) -> Result<Action, TextError> {
        let ReceiveFields { from, tag, bytes } = self.receive_fields()?;
        Ok(match from {
            Peer::ProcNull => self.builder.recv(None, tag, bytes),
            Peer::Rank(peer) => self.builder.recv(Some(peer), tag, bytes),
            Peer::Any { .. } => {
                self.builder.call(&CallOp::Recv { from: RecvFrom::on_world(from, tag), bytes })?
            }
        })
    }

    pub(super) fn irecv(&mut self) -> Result<Action, TextError> {
        let ReceiveFields { from, tag, bytes } = self.receive_fields()?;
        Ok(match from {
            Peer::ProcNull => self.builder.irecv(None, tag, bytes)?,
            Peer::Rank(peer) => self.builder.irecv(Some(peer), tag, bytes)?,
            Peer::Any { .. } => {
                let from = RecvFrom::on_world(from, tag);
                self.builder.call(&CallOp::Irecv { from, bytes, request: None })?
            }
        })
    }

    pub(super) fn wait(&mut self) -> Result<Action, TextError> {
        let key = self.request()?;
        Ok(self.builder.wait_for(key)?)
    }

    pub(super) fn test(&mut self) -> Result<Action, TextError> {
        let key = self.request()?;
        Ok(self.builder.test_for(key)?)
    }

    /// Reads `send count, destination, receive count, source, send type, receive type`, all mandatory.
    pub(super) fn send_recv(&mut self) -> Result<Action, TextError> {
        let SendRecvFields { to, send_bytes, from, recv_bytes } = self.send_recv_fields()?;
        let tag = Tag::new(0);
        let to = SendTo { peer: to, tag, communicator: CommId::WORLD };
        let from = RecvFrom::on_world(from, Some(tag));
        Ok(self.builder.call(&CallOp::SendRecv { to, send_bytes, from, recv_bytes })?)
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

    #[inline]
    pub(super) fn destination(&mut self) -> Result<Option<Rank>, TextError> {
        let found = self.integer_between(DESTINATION, i64::MIN, i64::MAX, "a rank")?;
        destination(self.builder.ranks(), found)
    }

    #[inline]
    pub(super) fn source(&mut self) -> Result<Peer, TextError> {
        let found = self.integer_between(SOURCE, i64::MIN, i64::MAX, "a rank")?;
        source(self.builder.ranks(), found)
    }

    pub(super) fn tag_or_any(&mut self) -> Result<Option<Tag>, TextError> {
        let found = self.next_field(TAG)?;
        any_or_tag(found).ok_or_else(|| invalid(TAG, found, TAG_OR_ANY))
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

#[inline]
fn destination(ranks: u32, found: i64) -> Result<Option<Rank>, TextError> {
    match found {
        PROC_NULL => Ok(None),
        found => rank_below(ranks, DESTINATION, found).map(Some),
    }
}

#[inline]
fn source(ranks: u32, found: i64) -> Result<Peer, TextError> {
    match found {
        PROC_NULL => Ok(Peer::ProcNull),
        ANY_SOURCE => Ok(Peer::Any { recorded: None }),
        found => rank_below(ranks, SOURCE, found).map(Peer::Rank),
    }
}

/// Parses the tag of a receive: `Some(None)` is `MPI_ANY_TAG`, `None` an invalid tag.
pub(super) fn any_or_tag(found: &[u8]) -> Option<Option<Tag>> {
    tag_or_any(integer(found)?)
}

fn tag_or_any(found: i64) -> Option<Option<Tag>> {
    match found {
        ANY_TAG => Some(None),
        tag @ 0..=0x7fff_ffff => Some(Some(Tag::new(tag as i32))),
        _ => None,
    }
}

/// Makes the envelope of a sent message from the numbers of the text.
pub(crate) fn send_to(ranks: u32, peer: i64, tag: i64, communicator: CommId) -> Result<SendTo, TextError> {
    let peer = destination(ranks, peer)?;
    let known = tag_or_any(tag).flatten();
    let tag = known.ok_or_else(|| invalid_number(TAG, tag, "a tag that is not negative"))?;
    Ok(SendTo { peer, tag, communicator })
}

/// Makes the envelope of a receive from the numbers of the text; `recorded` is the source of the message that a receive from any
/// source got.
pub(crate) fn recv_from(
    ranks: u32,
    peer: i64,
    tag: i64,
    communicator: CommId,
    recorded: Option<u32>,
) -> Result<RecvFrom, TextError> {
    let peer = match (source(ranks, peer)?, recorded) {
        (Peer::Any { .. }, Some(recorded)) => {
            Peer::Any { recorded: Some(rank_below(ranks, RECORDED, recorded.into())?) }
        }
        (peer, _) => peer,
    };
    let tag = tag_or_any(tag).ok_or_else(|| invalid_number(TAG, tag, TAG_OR_ANY))?;
    Ok(RecvFrom { peer, tag, communicator })
}

/// Checks the size of a message.
pub(crate) fn message_size(bytes: u64) -> Result<Bytes, TextError> {
    match bytes {
        0..=MAX_BYTES => Ok(Bytes::new(bytes)),
        _ => Err(TextError::TooManyBytes { field: COUNT, count: bytes, size: 1 }),
    }
}

/// Checks a number of 32 bits.
pub(crate) fn number(found: i64, name: &'static str) -> Result<u32, TextError> {
    let field = Field::new(name);
    u32::try_from(found).map_err(|_| invalid_number(field, found, "a number that is not negative"))
}

fn invalid_number(field: Field, found: i64, expected: &'static str) -> TextError {
    TextError::InvalidNumber { field, found: found.to_string(), expected }
}
