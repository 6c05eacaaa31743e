//! Files. The ranks move the data of the real files themselves; here are the times.

use pdes_core::Bytes;
use trace_mmap::{Action, BlockRun, Call, FileCall, FileDirection, FileHints, FileName, FileView};

use super::RankSource;
use crate::layout::{FileKind, NONE, Operation};

/// Largest position in a file of a trace \[B\].
const MOST: u64 = 999_999_999_999_999_999;

impl RankSource<'_> {
    /// Translates a call on a file. All but accesses take their time in the exchange of the members that follows.
    pub(super) fn call_file(&mut self, operation: Operation) -> Result<(), String> {
        let Operation { flags, peer, request, bytes, source_bytes, block, count, .. } = operation;
        let communicator = self.communicator(operation)?;
        let kind = FileKind::from_number(flags);
        let kind = kind.ok_or_else(|| format!("it makes a call {flags} on a file, which there is not"))?;
        if kind == FileKind::Open {
            let name = file_name(&self.text(operation));
            self.files.insert(peer, name.ok_or("it opens a file without a name")?);
        }
        let file = self.files.get(&peer).ok_or("it names a file that it has not opened")?.clone();
        let of_file = |call| Call::File { communicator, file: file.clone(), slot: None, call };
        let (hints, mode) = (FileHints::default(), 0);
        let call = match kind {
            FileKind::Open => of_file(FileCall::Open { mode, hints }),
            FileKind::Close => of_file(FileCall::Close),
            FileKind::Sync => of_file(FileCall::Sync),
            FileKind::View => {
                let blocks: Vec<u64> = self.run.memory.numbers(block, count);
                self.run.memory.free(block);
                let view =
                    view(source_bytes, bytes, &blocks).unwrap_or_else(|| self.view_without_holes(operation));
                Call::SetView { communicator, file, view }
            }
            FileKind::Read | FileKind::Write => {
                let direction =
                    if kind == FileKind::Read { FileDirection::Read } else { FileDirection::Write };
                if source_bytes.checked_add(bytes).is_none_or(|end| end > MOST) {
                    return Err(format!("it accesses {bytes} B of a file at {source_bytes}, beyond {MOST}"));
                }
                let slot = (request != NONE).then(|| self.posted(request));
                let (offset, bytes) = (Some(source_bytes), Bytes::new(bytes));
                let call = FileCall::Access { is_collective: false, direction, offset, bytes };
                let access = self.call(Call::File { communicator, file, slot, call });
                self.actions.push_back(access);
                return Ok(());
            }
        };
        self.file_call = Some(call);
        Ok(())
    }

    /// Returns the view in place of one that a trace cannot have.
    fn view_without_holes(&self, operation: Operation) -> FileView {
        let (name, most) = (operation.name(), FileView::MAX_RUNS);
        self.run.warn(
            self.me,
            format!("{name} sets a view of more than {most} kinds of blocks, or of none: in the time of accesses it has no holes"),
        );
        FileView::contiguous(operation.source_bytes.min(MOST)).expect("the position is one of a file")
    }

    /// Makes the call on a file that its members have agreed on.
    pub(super) fn exchange_on_file(&mut self) -> Result<Action, String> {
        let call = self.file_call.take().ok_or("the members of a file exchange without a call on it")?;
        Ok(self.call(call))
    }
}

/// Returns the name of a file as traces have it; `None` if it is empty.
fn file_name(name: &str) -> Option<FileName> {
    let escape = |byte: u8| match byte {
        b'%' => "%25".to_owned(),
        byte if byte.is_ascii_graphic() => char::from(byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    FileName::new(&name.bytes().map(escape).collect::<String>())
}

/// Returns the view of a file type with these blocks, begin and size of each; `None` if it is none, or has too many kinds of blocks.
fn view(displacement: u64, extent: u64, blocks: &[u64]) -> Option<FileView> {
    let mut runs: Vec<BlockRun> = Vec::new();
    for block in blocks.chunks_exact(2) {
        let (offset, bytes) = (block[0], block[1]);
        match runs.last_mut() {
            Some(last) if last.bytes == bytes && last.count == 1 => {
                (last.stride, last.count) = (offset.checked_sub(last.offset)?, 2);
            }
            Some(last) if last.bytes == bytes && offset == last.offset + last.stride * last.count => {
                last.count += 1;
            }
            _ => runs.push(BlockRun { offset, bytes, stride: bytes, count: 1 }),
        }
    }
    FileView::new(displacement, extent, &runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_blocks_at_equal_distances_are_one_run() {
        let found = view(8, 40, &[4, 2, 10, 2, 16, 2, 20, 8]).unwrap();
        let runs: Vec<BlockRun> = found.runs().collect();
        let run = |offset, bytes, stride, count| BlockRun { offset, bytes, stride, count };
        assert_eq!(runs, [run(4, 2, 6, 3), run(20, 8, 8, 1)]);
        assert_eq!((found.displacement(), found.extent()), (8, 40));
        assert_eq!(view(0, 4, &[]), None);
    }

    #[test]
    fn names_are_printable() {
        assert_eq!(file_name("/a b%").unwrap().as_str(), "/a%20b%25");
        assert_eq!(file_name(""), None);
    }
}
