//! Independent accesses to data with holes: ROMIO's data sieving (`ad_read_str.c`, `ad_write_str.c`).
//!
//! A read takes the file in pieces as large as the buffer, from the first byte that it wants on, with all holes in them; the next
//! piece begins with the next byte that is wanted. A write first reads such a piece, since it writes the holes, too. Where sieving is
//! switched off, each block of the view is an access.

use trace_mmap::{FileHints, FileView, NumberHint, Switch, SwitchHint};

use super::access_steps;
use super::parts::Part;
use crate::collective::steps::Schedule;
use crate::machine::{FileAccess, FileOperation};

/// Sizes of the buffers for reads and writes \[B\].
const READ_BUFFER: u64 = 4 << 20;
const WRITE_BUFFER: u64 = 512 << 10;

/// Returns the steps of an access to a part of the data of a view.
pub(crate) fn schedule<'a>(
    access: FileAccess,
    view: &'a FileView,
    data: Part,
    hints: FileHints,
) -> Schedule<'a> {
    let is_read = access.operation == FileOperation::Read;
    let (switch, size, buffer) = match is_read {
        true => (SwitchHint::DsRead, NumberHint::IndRdBufferSize, READ_BUFFER),
        false => (SwitchHint::DsWrite, NumberHint::IndWrBufferSize, WRITE_BUFFER),
    };
    if hints.switch(switch) == Switch::Disable {
        let pieces = Blocks { view, data };
        return Box::new(pieces.flat_map(move |piece| access_steps(at(access, piece))));
    }
    let pieces = Pieces { view, data, buffer: hints.number(size).unwrap_or(buffer) };
    Box::new(pieces.flat_map(move |piece| {
        let first = FileAccess { operation: FileOperation::ReadExisting, ..at(access, piece) };
        let before = (!is_read).then(|| access_steps(first));
        before.into_iter().flatten().chain(access_steps(at(access, piece)))
    }))
}

pub(super) fn at(access: FileAccess, (begin, end): Part) -> FileAccess {
    access.at(begin, end - begin)
}

/// The pieces of a file that an access with a buffer takes.
#[derive(Debug)]
struct Pieces<'a> {
    view: &'a FileView,
    /// The data that are left.
    data: Part,
    buffer: u64,
}

impl Iterator for Pieces<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (next, all) = self.data;
        if next >= all {
            return None;
        }
        let begin = self.view.position(next);
        let end = begin.saturating_add(self.buffer).min(self.view.position(all - 1) + 1);
        self.data.0 = self.view.data_before(end);
        Some((begin, end))
    }
}

/// The blocks of the data of a view.
#[derive(Debug)]
struct Blocks<'a> {
    view: &'a FileView,
    data: Part,
}

impl Iterator for Blocks<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (next, all) = self.data;
        let bytes = self.view.rest_of_block(next).min(all.checked_sub(next).filter(|left| *left > 0)?);
        self.data.0 += bytes;
        let begin = self.view.position(next);
        Some((begin, begin + bytes))
    }
}

#[cfg(test)]
mod tests {
    use trace_mmap::BlockRun;

    use super::*;

    /// Blocks of 10 bytes every 30, of which bytes 5 to 95 of the data are wanted, through a buffer of 64 bytes.
    #[test]
    fn pieces_begin_with_data() {
        let run = BlockRun { offset: 0, bytes: 10, stride: 10, count: 1 };
        let view = FileView::new(100, 30, &[run]).expect("a view");
        let pieces: Vec<Part> = Pieces { view: &view, data: (5, 95), buffer: 64 }.collect();
        // 105..169 ends within the third block, so that the rest of it begins the next piece, and that ends in a hole.
        assert_eq!(pieces, [(105, 169), (169, 233), (250, 314), (314, 375)]);
        let blocks: Vec<Part> = Blocks { view: &view, data: (5, 25) }.collect();
        assert_eq!(blocks, [(105, 110), (130, 140), (160, 165)]);
        assert_eq!(
            Blocks { view: &view, data: (5, 5) }.count()
                + Pieces { view: &view, data: (5, 5), buffer: 1 }.count(),
            0
        );
    }
}
