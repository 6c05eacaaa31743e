//! Parsing of calls on files.

use pdes_core::Bytes;
use trace_mmap::table::{MAX_OFFSET, ReadCall as _};
use trace_mmap::{
    BlockRun, CallOp, FileCall, FileDirection, FileHints, FileName, FileView, NumberHint, Switch, SwitchHint,
};

use crate::text::call::CallReader;
use crate::text::keys::Key;
use crate::text::reader::invalid;
use crate::text::{Field, TextError};

const FILE: Field = Field::new("name of the file");
const MODE: Field = Field::new("flags of the file");
const RUNS: Field = Field::new("blocks of the file type");
const HINT: Field = Field::new("hint");

/// Number of the first name of a call on a file that is no access.
const OPEN: u8 = 24;

impl CallReader<'_, '_, '_> {
    pub(super) fn call_on_file(&mut self) -> Result<CallOp, TextError> {
        let (communicator, file) = (self.communicator()?, self.name_of_file()?);
        let call = if self.number < OPEN { self.access()? } else { self.other_call()? };
        let is_nonblocking = self.number < OPEN && self.number % 2 == 1;
        let request = if is_nonblocking { Some(self.mandatory_request()?) } else { None };
        Ok(CallOp::File { communicator, file, request, call })
    }

    pub(super) fn name_of_file(&mut self) -> Result<FileName, TextError> {
        let found = self.reader.next_field(FILE)?;
        let name = str::from_utf8(found).ok().and_then(FileName::new);
        name.ok_or_else(|| invalid(FILE, found, "the name of a file, in printable ASCII"))
    }

    /// Reads an access. The bits of the number of its name have its form.
    fn access(&mut self) -> Result<FileCall, TextError> {
        let has = |number: u8, bit: u8| number & bit != 0;
        let number = self.number;
        let direction = if has(number, 2) { FileDirection::Write } else { FileDirection::Read };
        if number >= 16 {
            let bytes = self.file_bytes()?;
            return Ok(FileCall::SharedAccess { is_ordered: has(number, 4), direction, bytes });
        }
        let offset = if has(number, 4) { Some(self.position("offset")?) } else { None };
        let bytes = self.file_bytes()?;
        Ok(FileCall::Access { is_collective: has(number, 8), direction, offset, bytes })
    }

    fn other_call(&mut self) -> Result<FileCall, TextError> {
        Ok(match self.number {
            OPEN => FileCall::Open { mode: self.mode_of_file()?, hints: self.hints()? },
            25 => FileCall::Close,
            26 => FileCall::Sync,
            _ => FileCall::Seek { offset: self.position("offset")? },
        })
    }

    fn mode_of_file(&mut self) -> Result<u32, TextError> {
        if !self.reader.has_more() {
            return Ok(0);
        }
        let found = self.reader.integer_between(MODE, 0, u32::MAX.into(), "the flags of MPI_File_open")?;
        Ok(found as u32)
    }

    fn hints(&mut self) -> Result<FileHints, TextError> {
        let mut hints = FileHints::default();
        for hint in NumberHint::ALL {
            let Some(key) = Key::find(hint.name().as_bytes()) else { continue };
            let expected = "a whole number from 1 to 2^31 - 1";
            let value = self.number(key, Field::new(hint.name()), FileHints::MAX, expected)?;
            if value.is_some_and(|value| !hints.set_number(hint, value)) {
                return Err(invalid(Field::new(hint.name()), b"0", expected));
            }
        }
        for hint in SwitchHint::ALL {
            let Some(key) = Key::find(hint.name().as_bytes()) else { continue };
            let Some(found) = self.keys.take(key) else { continue };
            let value = Switch::ALL.into_iter().find(|value| value.name().as_bytes() == found);
            let value = value.ok_or_else(|| invalid(HINT, found, "enable, disable or automatic"))?;
            hints.set_switch(hint, value);
        }
        Ok(hints)
    }

    /// Reads the displacement of a view and, unless it has no holes, the extent and the blocks of its file type.
    pub(super) fn view_of_file(&mut self) -> Result<FileView, TextError> {
        let displacement = self.position("displacement of the view")?;
        if !self.reader.has_more() {
            return Ok(FileView::contiguous(displacement).expect("the displacement is a position"));
        }
        let extent = self.position("extent of the file type")?;
        let found = self.reader.next_field(RUNS)?;
        let runs = str::from_utf8(found).ok().and_then(parse_runs);
        let view = runs.and_then(|runs| FileView::new(displacement, extent, &runs));
        let expected = "up to 1024 offset:bytes or offset:bytes:stride:count, sorted, without overlaps, and no longer than the extent";
        view.ok_or_else(|| invalid(RUNS, found, expected))
    }

    fn position(&mut self, name: &'static str) -> Result<u64, TextError> {
        let expected = "a position in a file, from 0 to 10^18 - 1";
        let found = self.reader.integer_between(Field::new(name), 0, MAX_OFFSET as i64, expected)?;
        Ok(found as u64)
    }

    fn file_bytes(&mut self) -> Result<Bytes, TextError> {
        self.reader.count(Field::new("number of bytes")).map(Bytes::new)
    }
}

fn parse_runs(text: &str) -> Option<Vec<BlockRun>> {
    let run = |text: &str| {
        let numbers = text.split(':').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
        match numbers[..] {
            [offset, bytes] => Some(BlockRun { offset, bytes, stride: bytes, count: 1 }),
            // One block has no stride.
            [offset, bytes, _, 1] => Some(BlockRun { offset, bytes, stride: bytes, count: 1 }),
            [offset, bytes, stride, count] => Some(BlockRun { offset, bytes, stride, count }),
            _ => None,
        }
    };
    text.split(',').map(run).collect()
}
