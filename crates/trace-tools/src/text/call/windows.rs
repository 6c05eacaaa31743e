//! Parsing of calls on windows.

use pdes_core::Bytes;
use trace_mmap::table::ReadCall as _;
use trace_mmap::{CallOp, WindowCall};

use crate::text::call::CallReader;
use crate::text::keys::Key;
use crate::text::{Field, TextError};

impl CallReader<'_, '_, '_> {
    pub(super) fn call_on_window(&mut self) -> Result<CallOp, TextError> {
        let communicator = self.communicator()?;
        let size = self.known_communicator(communicator)?.group.len();
        let number = self.number;
        let call = |target, bytes, writes| {
            let call = WindowCall::from_number(number, target, bytes, writes);
            call.expect("each name of the row is a call")
        };
        let has = call(0, Bytes::ZERO, true);
        let target = if has.target().is_some() { self.target(size)? } else { 0 };
        let bytes = match has.bytes() {
            Some(_) => Bytes::new(self.reader.count(Field::new("number of bytes"))?),
            None => Bytes::ZERO,
        };
        let (mut group, mut request) = (Vec::new(), None);
        if let WindowCall::Sync { kind, .. } = has
            && kind.has_group()
        {
            let ranks = self.neighbors(Key::To, "list of ranks (to=)", size)?;
            group = ranks.into_iter().map(|rank| (rank, Bytes::ZERO)).collect();
        }
        if WindowCall::needs_request(number) {
            request = Some(self.mandatory_request()?);
        }
        let writes = !has.fetches() || !self.keys.has(Key::Done) || self.outcome()?;
        Ok(CallOp::Window { communicator, group, request, call: call(target, bytes, writes) })
    }

    fn target(&mut self, size: u32) -> Result<u32, TextError> {
        let last = i64::from(size) - 1;
        let target = self.reader.integer_between(Field::new("target"), 0, last, "a rank of the window")?;
        Ok(target as u32)
    }
}
