//! Parsing of sends, receives, waits and tests.

use pdes_core::{Bytes, Rank};

use crate::action::Action;
use crate::channel::Tag;
use crate::communicator::CommId;
use crate::draft::RequestKey;
use crate::structure::{CallOp, Peer, RecvFrom, SendTo};
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
pub(super) struct Sending {
    /// `None` is `MPI_PROC_NULL`.
    pub(super) to: Option<Rank>,
    pub(super) tag: Tag,
    pub(super) bytes: Bytes,
}

/// The fields of `recv` and `irecv`.
pub(super) struct Receiving {
    pub(super) from: Peer,
    pub(super) tag: Option<Tag>,
    pub(super) bytes: Bytes,
}

/// The fields of `sendRecv`, except the tags.
pub(super) struct Exchanging {
    pub(super) to: Option<Rank>,
    pub(super) send_bytes: Bytes,
    pub(super) from: Peer,
    pub(super) recv_bytes: Bytes,
}

impl Reader<'_, '_> {
    pub(super) fn send(&mut self) -> Result<Action, TextError> {
        let Sending { to, tag, bytes } = self.sending()?;
        Ok(match to {
            None => Action::Null { slot: None },
            Some(peer) => Action::Send { to: self.rank.send_to(peer, tag), bytes },
        })
    }

    pub(super) fn isend(&mut self) -> Result<Action, TextError> {
        let Sending { to, tag, bytes } = self.sending()?;
        let slot = self.rank.requests.post(RequestKey::send(self.rank.rank(), to, Some(tag)))?;
        Ok(match to {
            None => Action::Null { slot: Some(slot) },
            Some(peer) => Action::Isend { to: self.rank.send_to(peer, tag), bytes, slot },
        })
    }

    pub(super) fn recv(&mut self) -> Result<Action, TextError> {
        let Receiving { from, tag, bytes } = self.receiving()?;
        Ok(match from {
            Peer::Nobody => Action::Null { slot: None },
            Peer::Any { .. } => {
                self.rank.call(&CallOp::Recv { from: RecvFrom::on_world(from, tag), bytes })?
            }
            Peer::Rank(peer) => Action::Recv { from: self.rank.receive_from(peer, tag), bytes },
        })
    }

    pub(super) fn irecv(&mut self) -> Result<Action, TextError> {
        let Receiving { from, tag, bytes } = self.receiving()?;
        let peer = match from {
            Peer::Nobody => None,
            Peer::Rank(peer) => Some(peer),
            Peer::Any { .. } => {
                let from = RecvFrom::on_world(from, tag);
                return self.rank.call(&CallOp::Irecv { from, bytes, request: None });
            }
        };
        let slot = self.rank.requests.post(RequestKey::receive(self.rank.rank(), peer, tag))?;
        Ok(match peer {
            None => Action::Null { slot: Some(slot) },
            Some(peer) => Action::Irecv { from: self.rank.receive_from(peer, tag), bytes, slot },
        })
    }

    pub(super) fn wait(&mut self) -> Result<Action, TextError> {
        let key = self.request()?;
        match self.rank.requests.complete(key) {
            Some(slot) => Ok(Action::Wait { slot }),
            None => Err(self.rank.requests.not_pending(self.verb.name(), key)),
        }
    }

    pub(super) fn test(&mut self) -> Result<Action, TextError> {
        let key = self.request()?;
        match self.rank.requests.rotate(key) {
            Some(slot) => Ok(Action::Test { slot }),
            None => Err(self.rank.requests.not_pending(self.verb.name(), key)),
        }
    }

    /// Reads `send count, destination, receive count, source, send type, receive type`, all mandatory.
    pub(super) fn send_recv(&mut self) -> Result<Action, TextError> {
        let Exchanging { to, send_bytes, from, recv_bytes } = self.exchanging()?;
        let tag = Tag::new(0);
        let to = SendTo { peer: to, tag, communicator: CommId::WORLD };
        let from = RecvFrom::on_world(from, Some(tag));
        self.rank.call(&CallOp::SendRecv { to, send_bytes, from, recv_bytes })
    }

    pub(super) fn exchanging(&mut self) -> Result<Exchanging, TextError> {
        let send_count = self.count(SEND_COUNT)?;
        let to = self.destination()?;
        let recv_count = self.receive_count(RECV_COUNT)?;
        let from = self.source()?;
        let send_bytes = self.mandatory_type("send type", SEND_COUNT, send_count)?;
        let recv_bytes = self.mandatory_type("receive type", RECV_COUNT, recv_count)?;
        Ok(Exchanging { to, send_bytes, from, recv_bytes })
    }

    /// Reads `count, destination, source, type`, of which the type is optional.
    pub(super) fn replacing(&mut self) -> Result<Exchanging, TextError> {
        let count = self.receive_count(COUNT)?;
        let (to, from) = (self.destination()?, self.source()?);
        let datatype = self.datatype("datatype")?;
        let bytes = self.bytes(COUNT, count, datatype)?;
        Ok(Exchanging { to, send_bytes: bytes, from, recv_bytes: bytes })
    }

    pub(super) fn sending(&mut self) -> Result<Sending, TextError> {
        let to = self.destination()?;
        let tag = self.whole(TAG, 0, i64::from(i32::MAX), "a tag that is not negative")?;
        let count = self.count(COUNT)?;
        let datatype = self.datatype("datatype")?;
        Ok(Sending { to, tag: Tag::new(tag as i32), bytes: self.bytes(COUNT, count, datatype)? })
    }

    pub(super) fn receiving(&mut self) -> Result<Receiving, TextError> {
        let from = self.source()?;
        let tag = self.tag_or_any()?;
        let count = self.receive_count(COUNT)?;
        let datatype = self.datatype("datatype")?;
        Ok(Receiving { from, tag, bytes: self.bytes(COUNT, count, datatype)? })
    }

    fn destination(&mut self) -> Result<Option<Rank>, TextError> {
        match self.whole(DESTINATION, i64::MIN, i64::MAX, "a rank")? {
            PROC_NULL => Ok(None),
            found => self.rank_of(DESTINATION, found).map(Some),
        }
    }

    pub(super) fn source(&mut self) -> Result<Peer, TextError> {
        match self.whole(SOURCE, i64::MIN, i64::MAX, "a rank")? {
            PROC_NULL => Ok(Peer::Nobody),
            ANY_SOURCE => Ok(Peer::Any { recorded: None }),
            found => self.rank_of(SOURCE, found).map(Peer::Rank),
        }
    }

    pub(super) fn tag_or_any(&mut self) -> Result<Option<Tag>, TextError> {
        let expected = "a tag that is not negative, or -444 for any";
        let found = self.required(TAG)?;
        any_or_tag(found).ok_or_else(|| invalid(TAG, found, expected))
    }

    fn receive_count(&mut self, field: Field) -> Result<u64, TextError> {
        let next = { self.fields }.next().and_then(real);
        match next {
            Some(count) if count < 0.0 => Err(self.unsupported(Unsupported::UnknownSize { count })),
            _ => self.count(field),
        }
    }

    fn mandatory_type(&mut self, name: &'static str, counted: Field, count: u64) -> Result<Bytes, TextError> {
        if !self.has_more() {
            self.required(Field::new(name))?;
        }
        let datatype = self.datatype(name)?;
        self.bytes(counted, count, datatype)
    }

    fn request(&mut self) -> Result<RequestKey, TextError> {
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        let src = self.whole(SOURCE, low, high, "a rank")?;
        let dst = self.whole(DESTINATION, low, high, "a rank")?;
        let tag = self.whole(TAG, low, high, "a tag")?;
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
