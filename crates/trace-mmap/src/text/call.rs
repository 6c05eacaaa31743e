//! Parsing of lines with named fields, and of actions beyond SimGrid's format.

mod values;

use std::sync::Arc;

use pdes_core::Bytes;

use crate::action::Action;
use crate::call::{CallError, CommunicatorCall, SendMode};
use crate::channel::Tag;
use crate::communicator::{CommId, Group};
use crate::datatype::Datatype;
use crate::structure::{CallOp, RecvFrom, SendTo};
use crate::text::keys::{Key, Keys};
use crate::text::list;
use crate::text::point_to_point::{ReceiveFields, SendFields, SendRecvFields, any_or_tag};
use crate::text::reader::{Reader, invalid};
use crate::text::verb::Verb;
use crate::text::{Field, TextError};

const NEW: Field = Field::new("new communicator (new=)");
const MEMBERS: Field = Field::new("list of members (members=)");
const SEND_TAG: Field = Field::new("tag of the send (stag=)");
const RECV_TAG: Field = Field::new("tag of the receive (rtag=)");

/// Reads a line that has named fields or whose action is not in SimGrid's format. Also returns whether it has extra fields.
pub(super) fn read_call(mut reader: Reader<'_, '_>) -> Result<(Action, bool), TextError> {
    // These actions ignore all their fields in SimGrid's format: only known named fields make a difference.
    if reader.verb.ignores_extra_fields() && !{ reader.fields }.any(|field| Key::of(field).is_some()) {
        return Ok((reader.action()?, false));
    }
    let keys = Keys::read(reader.verb.name(), reader.fields)?;
    let reader = Reader { fields: reader.fields.positional(), ..reader };
    let mut line = CallReader { reader, keys };
    let action = line.action()?;
    line.keys.finish()?;
    Ok((action, line.reader.has_more()))
}

/// The fields of one line.
struct CallReader<'a, 'r> {
    reader: Reader<'a, 'r>,
    keys: Keys<'a>,
}

impl CallReader<'_, '_> {
    fn action(&mut self) -> Result<Action, TextError> {
        let verb = self.reader.verb;
        if verb.is_collective() || verb.blocking().is_some() {
            return self.collective();
        }
        if matches!(verb, Verb::Wait | Verb::Test) && !self.keys.has(Key::Req) {
            return self.reader.action();
        }
        let op = match verb {
            Verb::Probe | Verb::Iprobe => self.probe()?,
            Verb::CommSplit | Verb::CommDup | Verb::CommCreate | Verb::CommCreateGroup => {
                self.new_communicator()?
            }
            Verb::CommFree => CallOp::FreeCommunicator { communicator: self.mandatory_communicator()? },
            Verb::NeighborAlltoall
            | Verb::NeighborAlltoallv
            | Verb::IneighborAlltoall
            | Verb::IneighborAlltoallv => self.neighbor_alltoall()?,
            Verb::SendRecv | Verb::SendRecvReplace => self.send_recv()?,
            Verb::Recv | Verb::Irecv | Verb::RecvInit => self.recv()?,
            _ => match send_form(verb) {
                Some((mode, form)) => self.send(mode, form)?,
                None => self.read_completion()?,
            },
        };
        // Checked before the call changes the builder, so that an unused field is reported first.
        self.keys.finish()?;
        self.reader.builder.resolve_call(&op)
    }

    fn send(&mut self, mode: SendMode, form: SendForm) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let SendFields { to: peer, tag, bytes } = self.reader.send_fields()?;
        let to = SendTo { peer, tag, communicator };
        Ok(match form {
            SendForm::Blocking => CallOp::Send { mode, to, bytes },
            SendForm::NonBlocking => CallOp::Isend { mode, to, bytes, request: self.request()? },
            SendForm::Persistent => CallOp::SendInit { mode, to, bytes, request: self.mandatory_request()? },
        })
    }

    fn recv(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let ReceiveFields { from, tag, bytes } = self.reader.receive_fields()?;
        let from = RecvFrom { peer: self.recorded_source(from)?, tag, communicator };
        Ok(match self.reader.verb {
            Verb::Recv => CallOp::Recv { from, bytes },
            Verb::Irecv => CallOp::Irecv { from, bytes, request: self.request()? },
            _ => CallOp::RecvInit { from, bytes, request: self.mandatory_request()? },
        })
    }

    fn send_recv(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let exchanging = match self.reader.verb {
            Verb::SendRecv => self.reader.send_recv_fields()?,
            _ => self.reader.send_recv_replace_fields()?,
        };
        let SendRecvFields { to: peer, send_bytes, from, recv_bytes } = exchanging;
        let tag = self.number(Key::Stag, SEND_TAG, i32::MAX as u64, "a tag that is not negative")?;
        let tag = Tag::new(tag.unwrap_or(0) as i32);
        let to = SendTo { peer, tag, communicator };
        let tag = match self.keys.take(Key::Rtag) {
            None => Some(Tag::new(0)),
            Some(found) => any_or_tag(found)
                .ok_or_else(|| invalid(RECV_TAG, found, "a tag that is not negative, or -444 for any"))?,
        };
        let from = RecvFrom { peer: self.recorded_source(from)?, tag, communicator };
        Ok(CallOp::SendRecv { to, send_bytes, from, recv_bytes })
    }

    fn probe(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let (peer, tag) = (self.reader.source()?, self.reader.tag_or_any()?);
        let from = RecvFrom { peer: self.recorded_source(peer)?, tag, communicator };
        Ok(match self.reader.verb {
            Verb::Probe => CallOp::Probe { from },
            _ => CallOp::Iprobe { from, found: self.yes_or_no()? },
        })
    }

    /// Reads a call that refers to existing requests.
    fn read_completion(&mut self) -> Result<CallOp, TextError> {
        Ok(match self.reader.verb {
            Verb::Start => CallOp::Start { requests: vec![self.mandatory_request()?] },
            Verb::StartAll => CallOp::Start { requests: self.requests()? },
            Verb::RequestFree => CallOp::Free { request: self.mandatory_request()? },
            Verb::Cancel => {
                CallOp::Cancel { request: self.mandatory_request()?, cancelled: self.yes_or_no()? }
            }
            Verb::Wait => CallOp::Wait { request: self.mandatory_request()? },
            Verb::Test => {
                let request = self.mandatory_request()?;
                let done = if self.keys.has(Key::Done) { Some(self.done_one()?) } else { None };
                if let Some(Some(other)) = done.filter(|done| done.is_some_and(|done| done != request)) {
                    return Err(self.call_error(CallError::DoneNotListed { request: other }));
                }
                CallOp::Test { request, done: done.map(|done| done.is_some()) }
            }
            Verb::WaitAny => CallOp::Waitany { requests: self.requests()?, done: self.done_one()? },
            Verb::TestAny => CallOp::Testany { requests: self.requests()?, done: self.done_one()? },
            Verb::WaitSome => CallOp::Waitsome { requests: self.requests()?, done: self.done_some()? },
            Verb::TestSome => CallOp::Testsome { requests: self.requests()?, done: self.done_some()? },
            Verb::TestAll => CallOp::Testall { requests: self.requests()?, done: self.done_all()? },
            _ => CallOp::Waitall { requests: self.requests()? },
        })
    }

    /// Reads a collective operation, or finds it by its text (without the request) among those read before.
    fn collective(&mut self) -> Result<Action, TextError> {
        let id = self.communicator()?;
        let communicator =
            self.reader.builder.communicators.find(id).map_err(|kind| self.call_error(kind))?;
        let request = match self.reader.verb.is_collective() {
            true => None,
            false => Some(self.mandatory_request()?),
        };
        self.keys.finish()?;
        let text = self.canonical_text(id);
        let (operation, has_extra) = match self.reader.builder.find_collective(&text) {
            Some(known) => known,
            None => {
                self.reader.size = self.reader.builder.communicators.get(communicator).group.len();
                let new = self.reader.new_collective()?;
                let has_extra = self.reader.has_more();
                (self.reader.builder.insert_collective(&text, new, communicator, has_extra), has_extra)
            }
        };
        if !has_extra {
            self.reader.fields.by_ref().for_each(drop);
        }
        let action = self.reader.builder.resolve_collective(operation, communicator, request);
        action.map_err(|error| error.with_action(self.reader.verb.name()))
    }

    /// Returns the canonical text of a collective operation: blocking name, positional fields, and the communicator if it is not
    /// the world. Equal operations with different requests thus have the same text.
    fn canonical_text(&self, communicator: CommId) -> Vec<u8> {
        let verb = self.reader.verb;
        let mut text = verb.blocking().unwrap_or(verb).name().as_bytes().to_vec();
        for field in self.reader.fields {
            text.push(b' ');
            text.extend(field);
        }
        if communicator != CommId::WORLD {
            text.extend(format!(" comm={communicator}").as_bytes());
        }
        text
    }

    fn neighbor_alltoall(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let size = self.known_communicator(communicator)?.group.len();
        let request = match self.reader.verb {
            Verb::NeighborAlltoall | Verb::NeighborAlltoallv => None,
            _ => Some(self.mandatory_request()?),
        };
        let to = self.neighbors(Key::To, "list of destinations (to=)", size)?;
        let from = self.neighbors(Key::From, "list of sources (from=)", size)?;
        let (send_counts, recv_counts) = match self.reader.verb {
            Verb::NeighborAlltoall | Verb::IneighborAlltoall => {
                let send = self.reader.count(Field::new("send count"))?;
                (vec![send; to.len()], vec![self.reader.count(Field::new("receive count"))?; from.len()])
            }
            _ => (
                self.neighbor_counts(Key::Scounts, "list of send counts (scounts=)", to.len())?,
                self.neighbor_counts(Key::Rcounts, "list of receive counts (rcounts=)", from.len())?,
            ),
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

    fn new_communicator(&mut self) -> Result<CallOp, TextError> {
        let kind = match self.reader.verb {
            Verb::CommSplit => CommunicatorCall::Split,
            Verb::CommDup => CommunicatorCall::Dup,
            Verb::CommCreateGroup => CommunicatorCall::CreateGroup,
            _ => CommunicatorCall::Create,
        };
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

/// Form of a send.
#[derive(Clone, Copy)]
enum SendForm {
    Blocking,
    NonBlocking,
    Persistent,
}

/// Returns the mode and the form of a send; `None` for other actions.
fn send_form(verb: Verb) -> Option<(SendMode, SendForm)> {
    Some(match verb {
        Verb::Send => (SendMode::Standard, SendForm::Blocking),
        Verb::Ssend => (SendMode::Synchronous, SendForm::Blocking),
        Verb::Bsend => (SendMode::Buffered, SendForm::Blocking),
        Verb::Rsend => (SendMode::Ready, SendForm::Blocking),
        Verb::Isend => (SendMode::Standard, SendForm::NonBlocking),
        Verb::Issend => (SendMode::Synchronous, SendForm::NonBlocking),
        Verb::Ibsend => (SendMode::Buffered, SendForm::NonBlocking),
        Verb::Irsend => (SendMode::Ready, SendForm::NonBlocking),
        Verb::SendInit => (SendMode::Standard, SendForm::Persistent),
        Verb::SsendInit => (SendMode::Synchronous, SendForm::Persistent),
        Verb::BsendInit => (SendMode::Buffered, SendForm::Persistent),
        Verb::RsendInit => (SendMode::Ready, SendForm::Persistent),
        _ => return None,
    })
}
