//! Parsing of the values of named fields.

use trace_mmap::{CallError, CommId, Communicator, OpError, Peer, RequestName};

use crate::text::call::CallReader;
use crate::text::fields::integer;
use crate::text::keys::Key;
use crate::text::point_to_point::RECORDED;
use crate::text::reader::invalid;
use crate::text::{Field, TextError, list};

const REQUEST: Field = Field::new("request (req=)");
const REQUESTS: Field = Field::new("list of requests (req=)");
pub(super) const DONE: Field = Field::new("outcome (done=)");
pub(super) const COMMUNICATOR: Field = Field::new("communicator (comm=)");
pub(super) const NEW: Field = Field::new("new communicator (new=)");
pub(super) const MEMBERS: Field = Field::new("list of members (members=)");
pub(super) const SEND_TAG: Field = Field::new("tag of the send (stag=)");
pub(super) const RECV_TAG: Field = Field::new("tag of the receive (rtag=)");

impl CallReader<'_, '_, '_> {
    /// Takes the recorded source of a wildcard receive.
    pub(super) fn recorded_source(&mut self, peer: Peer) -> Result<Peer, TextError> {
        let Peer::Any { .. } = peer else { return Ok(peer) };
        let Some(found) = self.keys.take(Key::Source) else { return Ok(peer) };
        let number = integer(found).ok_or_else(|| invalid(RECORDED, found, "a rank"))?;
        Ok(Peer::Any { recorded: Some(self.reader.rank_of(RECORDED, number)?) })
    }

    pub(super) fn known_communicator(&self, id: CommId) -> Result<&Communicator, TextError> {
        let known = self.reader.builder.communicator_of(id).map_err(|kind| self.call_error(kind))?;
        Ok(known.1)
    }

    pub(super) fn request_if_named(&mut self) -> Result<Option<RequestName>, TextError> {
        let found = self.number(Key::Req, REQUEST, u64::from(u32::MAX), "the number of a request")?;
        Ok(found.map(|number| RequestName::new(number as u32)))
    }

    pub(super) fn mandatory_request(&mut self) -> Result<RequestName, TextError> {
        self.request_if_named()?.ok_or_else(|| self.missing_error(REQUEST))
    }

    pub(super) fn listed_requests(&mut self) -> Result<Vec<RequestName>, TextError> {
        self.request_list(Key::Req, REQUESTS)
    }

    pub(super) fn request_list(&mut self, key: Key, field: Field) -> Result<Vec<RequestName>, TextError> {
        let list = self.list(
            key,
            field,
            u64::from(u32::MAX),
            "a list of requests, such as 1,2 or 5-7, or - for none",
        )?;
        Ok(list.into_iter().map(|number| RequestName::new(number as u32)).collect())
    }

    pub(super) fn done_some(&mut self) -> Result<Vec<RequestName>, TextError> {
        self.request_list(Key::Done, DONE)
    }

    pub(super) fn done_one(&mut self) -> Result<Option<RequestName>, TextError> {
        let found = self.mandatory(Key::Done, DONE)?;
        match (found, list::parse_numbers(found, u64::from(u32::MAX)).as_deref()) {
            (b"-", _) => Ok(None),
            (_, Some([number])) => Ok(Some(RequestName::new(*number as u32))),
            _ => Err(invalid(DONE, found, "a request, or - for none")),
        }
    }

    pub(super) fn number(
        &mut self,
        key: Key,
        field: Field,
        max: u64,
        expected: &'static str,
    ) -> Result<Option<u64>, TextError> {
        let Some(found) = self.keys.take(key) else { return Ok(None) };
        let number =
            integer(found).and_then(|number| u64::try_from(number).ok()).filter(|number| *number <= max);
        number.map(Some).ok_or_else(|| invalid(field, found, expected))
    }

    pub(super) fn list(
        &mut self,
        key: Key,
        field: Field,
        max: u64,
        expected: &'static str,
    ) -> Result<Vec<u64>, TextError> {
        let found = self.mandatory(key, field)?;
        list::parse_numbers(found, max).ok_or_else(|| invalid(field, found, expected))
    }

    pub(super) fn mandatory(&mut self, key: Key, field: Field) -> Result<&[u8], TextError> {
        self.keys.take(key).ok_or_else(|| self.missing_error(field))
    }

    pub(super) fn missing_error(&self, field: Field) -> TextError {
        TextError::MissingField { action: self.reader.verb.name(), field }
    }

    pub(super) fn call_error(&self, kind: CallError) -> TextError {
        OpError::Call { action: self.reader.verb.name(), kind }.into()
    }
}
