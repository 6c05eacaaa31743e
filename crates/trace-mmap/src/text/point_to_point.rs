//! Reading sends, receives and what completes them.

use pdes_core::{Bytes, Rank};

use crate::action::{Action, SendRecv};
use crate::channel::Tag;
use crate::draft::RequestKey;
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

/// Where a message comes from.
#[derive(Clone, Copy)]
enum Source {
    Rank(Rank),
    /// `MPI_ANY_SOURCE`.
    Any,
    /// `MPI_PROC_NULL`.
    Nobody,
}

/// The fields of `send` and `isend`.
struct Sending {
    /// `None` is `MPI_PROC_NULL`.
    to: Option<Rank>,
    tag: Tag,
    bytes: Bytes,
}

/// The fields of `recv` and `irecv`.
struct Receiving {
    from: Source,
    tag: Option<Tag>,
    bytes: Bytes,
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
            Source::Nobody => Action::Null { slot: None },
            Source::Any => {
                self.rank.receive_from_any();
                Action::RecvAny { tag, bytes }
            }
            Source::Rank(peer) => Action::Recv { from: self.rank.receive_from(peer, tag), bytes },
        })
    }

    pub(super) fn irecv(&mut self) -> Result<Action, TextError> {
        let Receiving { from, tag, bytes } = self.receiving()?;
        let me = self.rank.rank();
        let key = match from {
            Source::Nobody => RequestKey::receive(me, None, tag),
            Source::Any => RequestKey::receive_from_any(me, tag),
            Source::Rank(peer) => RequestKey::receive(me, Some(peer), tag),
        };
        let slot = self.rank.requests.post(key)?;
        Ok(match from {
            Source::Nobody => Action::Null { slot: Some(slot) },
            Source::Any => {
                self.rank.receive_from_any();
                Action::IrecvAny { tag, bytes, slot }
            }
            Source::Rank(peer) => Action::Irecv { from: self.rank.receive_from(peer, tag), bytes, slot },
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

    /// Reads `send count, destination, receive count, source, send type, receive type`, all of them mandatory.
    pub(super) fn send_recv(&mut self) -> Result<Action, TextError> {
        let send_count = self.count(SEND_COUNT)?;
        let to = self.destination()?;
        let recv_count = self.receive_count(RECV_COUNT)?;
        let from = self.source()?;
        let send_bytes = self.mandatory_type("send type", SEND_COUNT, send_count)?;
        let recv_bytes = self.mandatory_type("receive type", RECV_COUNT, recv_count)?;
        let tag = Tag::new(0);
        let to = to.map(|peer| self.rank.send_to(peer, tag));
        let from = match from {
            Source::Nobody => None,
            Source::Any => return Err(self.unsupported(Unsupported::AnySource)),
            Source::Rank(peer) => Some(self.rank.receive_from(peer, Some(tag))),
        };
        Ok(Action::SendRecv(self.rank.send_recv(SendRecv { to, send_bytes, from, recv_bytes })))
    }

    fn sending(&mut self) -> Result<Sending, TextError> {
        let to = self.destination()?;
        let tag = self.whole(TAG, 0, i64::from(i32::MAX), "a tag that is not negative")?;
        let count = self.count(COUNT)?;
        let datatype = self.datatype("datatype")?;
        Ok(Sending { to, tag: Tag::new(tag as i32), bytes: self.bytes(COUNT, count, datatype)? })
    }

    fn receiving(&mut self) -> Result<Receiving, TextError> {
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

    fn source(&mut self) -> Result<Source, TextError> {
        match self.whole(SOURCE, i64::MIN, i64::MAX, "a rank")? {
            PROC_NULL => Ok(Source::Nobody),
            ANY_SOURCE => Ok(Source::Any),
            found => self.rank_of(SOURCE, found).map(Source::Rank),
        }
    }

    fn tag_or_any(&mut self) -> Result<Option<Tag>, TextError> {
        let expected = "a tag that is not negative, or -444 for any";
        let found = self.required(TAG)?;
        match integer(found) {
            Some(ANY_TAG) => Ok(None),
            Some(tag @ 0..=0x7fff_ffff) => Ok(Some(Tag::new(tag as i32))),
            _ => Err(invalid(TAG, found, expected)),
        }
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
