//! Parsing of lines with named fields, and of actions beyond SimGrid's format.

mod files;
mod roles;
mod values;
mod windows;

use trace_mmap::table::{CallKind, CollectiveKind, ReadCall};
use trace_mmap::{Action, CallOp, CommId};

use crate::text::TextError;
use crate::text::keys::{Key, Keys};
use crate::text::reader::Reader;
use crate::text::verb::Verb;

/// Reads a line that has named fields or whose action is not in SimGrid's format. Also returns whether it has extra fields.
pub(super) fn read_call(mut reader: Reader<'_, '_, '_>) -> Result<(Action, bool), TextError> {
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
pub(super) struct CallReader<'a, 'r, 's> {
    reader: Reader<'a, 'r, 's>,
    keys: Keys<'a>,
    /// Number of the name of the call among those of its row.
    number: u8,
    /// The communicator, once it was read.
    communicator: Option<CommId>,
}

impl CallReader<'_, '_, '_> {
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
        Ok(self.reader.builder.call(&op)?)
    }

    /// Reads a collective operation, or finds it by its text (without the request) among those read before.
    fn collective(&mut self, kind: CollectiveKind, is_nonblocking: bool) -> Result<Action, TextError> {
        let id = self.communicator()?;
        let (communicator, known) =
            self.reader.builder.communicator_of(id).map_err(|kind| self.call_error(kind))?;
        let size = known.group.len();
        let request = if is_nonblocking { Some(self.mandatory_request()?) } else { None };
        self.keys.finish()?;
        let text = self.canonical_text(kind, id);
        let (operation, has_extra) = match self.reader.state.collective(&text) {
            Some(known) => known,
            None => {
                self.reader.size = size;
                let new = self.reader.new_collective(kind)?;
                let has_extra = self.reader.has_more();
                let operation = self.reader.builder.add_collective(new, communicator);
                self.reader.state.add_collective(&text, operation, has_extra);
                (operation, has_extra)
            }
        };
        if !has_extra {
            self.reader.fields.by_ref().for_each(drop);
        }
        let name = self.reader.verb.name();
        Ok(self.reader.builder.collective_call(name, operation, communicator, request)?)
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
