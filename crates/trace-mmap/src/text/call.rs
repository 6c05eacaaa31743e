//! Parsing of lines with named fields, and of actions beyond SimGrid's format.

mod roles;
mod values;

use crate::action::Action;
use crate::call::{CallError, CallKind, CallOp};
use crate::channel::Tag;
use crate::collective::CollectiveKind;
use crate::communicator::CommId;
use crate::structure::{RecvFrom, SendTo};
use crate::text::TextError;
use crate::text::keys::{Key, Keys};
use crate::text::point_to_point::{SendRecvFields, any_or_tag};
use crate::text::reader::{Reader, invalid};
use crate::text::verb::Verb;

use values::{RECV_TAG, SEND_TAG};

/// Reads a line that has named fields or whose action is not in SimGrid's format. Also returns whether it has extra fields.
pub(super) fn read_call(mut reader: Reader<'_, '_>) -> Result<(Action, bool), TextError> {
    // These actions ignore all their fields in SimGrid's format: only known named fields make a difference.
    if reader.verb.ignores_extra_fields() && !{ reader.fields }.any(|field| Key::of(field).is_some()) {
        return Ok((reader.action()?, false));
    }
    let keys = Keys::read(reader.verb.name(), reader.fields)?;
    let number = if let Verb::Call(_, number) = reader.verb { number } else { 0 };
    let reader = Reader { fields: reader.fields.positional(), ..reader };
    let mut line = CallReader { reader, keys, number, communicator: None };
    let action = line.action()?;
    line.keys.finish()?;
    Ok((action, line.reader.has_more()))
}

/// Parser of the fields of one call, with a method for each role of a field.
pub(crate) struct CallReader<'a, 'r> {
    reader: Reader<'a, 'r>,
    keys: Keys<'a>,
    /// Number of the name of the call among those of its row.
    number: u8,
    /// The communicator, once it was read.
    communicator: Option<CommId>,
}

impl CallReader<'_, '_> {
    fn action(&mut self) -> Result<Action, TextError> {
        let kind = match self.reader.verb {
            Verb::Collective(kind, is_nonblocking) => return self.collective(kind, is_nonblocking),
            Verb::Call(CallKind::Wait | CallKind::Test, _) if !self.keys.has(Key::Req) => {
                return self.reader.action();
            }
            Verb::Call(kind, _) => kind,
            // The other actions take no named fields.
            _ => return self.reader.action(),
        };
        let op = CallOp::read(kind, self)?;
        // Checked before the call changes the builder, so that an unused field is reported first.
        self.keys.finish()?;
        self.reader.builder.resolve_call(&op)
    }

    pub(crate) fn elsewhere(&self) -> ! {
        unreachable!("collective operations and unmodelled calls are not read by their fields")
    }

    pub(crate) fn send_recv(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let exchanging = match self.number {
            0 => self.reader.send_recv_fields()?,
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

    pub(crate) fn start(&mut self) -> Result<CallOp, TextError> {
        let requests = if self.number == 0 { self.requests()? } else { vec![self.mandatory_request()?] };
        Ok(CallOp::Start { requests })
    }

    pub(crate) fn test(&mut self) -> Result<CallOp, TextError> {
        let request = self.mandatory_request()?;
        let done = if self.keys.has(Key::Done) { Some(self.done_one()?) } else { None };
        if let Some(Some(other)) = done.filter(|done| done.is_some_and(|done| done != request)) {
            return Err(self.call_error(CallError::DoneNotListed { request: other }));
        }
        Ok(CallOp::Test { request, done: done.map(|done| done.is_some()) })
    }

    /// Reads a collective operation, or finds it by its text (without the request) among those read before.
    fn collective(&mut self, kind: CollectiveKind, is_nonblocking: bool) -> Result<Action, TextError> {
        let id = self.communicator()?;
        let communicator =
            self.reader.builder.communicators.find(id).map_err(|kind| self.call_error(kind))?;
        let request = if is_nonblocking { Some(self.mandatory_request()?) } else { None };
        self.keys.finish()?;
        let text = self.canonical_text(kind, id);
        let (operation, has_extra) = match self.reader.builder.find_collective(&text) {
            Some(known) => known,
            None => {
                self.reader.size = self.reader.builder.communicators.get(communicator).group.len();
                let new = self.reader.new_collective(kind)?;
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
    fn canonical_text(&self, kind: CollectiveKind, communicator: CommId) -> Vec<u8> {
        let mut text = kind.names()[0].as_bytes().to_vec();
        for field in self.reader.fields {
            text.push(b' ');
            text.extend(field);
        }
        if communicator != CommId::WORLD {
            text.extend(format!(" comm={communicator}").as_bytes());
        }
        text
    }
}
