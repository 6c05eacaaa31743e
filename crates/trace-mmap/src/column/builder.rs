//! Builder of columns while a rank is encoded.

use std::io::{self, Write};

use crate::column::{ABSENT, BLOCK_VALUES, Block, Column, ColumnStorage, ENTRY_BYTES};

/// Builder of one column.
#[derive(Debug, Default)]
pub(crate) struct ColumnBuilder {
    len: u64,
    absent: u64,
    values: Vec<u64>,
    directory: Vec<Block>,
}

/// Writer of encoded blocks, with their total length [B].
pub(crate) struct BlockWriter<W> {
    pub(crate) sink: W,
    pub(crate) len: u64,
    pub(crate) buffer: Vec<u8>,
}

impl<W: Write> BlockWriter<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self { sink, len: 0, buffer: Vec::new() }
    }

    fn append(&mut self, values: &[u64]) -> io::Result<Block> {
        self.buffer.clear();
        let block = Block { offset: self.len, ..Block::pack(values, &mut self.buffer) };
        self.sink.write_all(&self.buffer)?;
        self.len += self.buffer.len() as u64;
        Ok(block)
    }
}

impl ColumnBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the bits of an amount, or [`ABSENT`].
    #[inline]
    pub(crate) fn push(&mut self, value: u64, blocks: &mut BlockWriter<impl Write>) -> io::Result<()> {
        self.len += 1;
        self.absent += u64::from(value == ABSENT);
        self.values.push(value);
        if self.values.len() as u64 == BLOCK_VALUES { self.flush(blocks) } else { Ok(()) }
    }

    #[cold]
    fn flush(&mut self, blocks: &mut BlockWriter<impl Write>) -> io::Result<()> {
        let block = blocks.append(&self.values)?;
        self.directory.push(block);
        self.values.clear();
        Ok(())
    }

    /// Completes the column. If not all values are equal, or some are absent, appends its directory to `directories`; the column
    /// then holds the offset there.
    pub(crate) fn finish(
        mut self,
        blocks: &mut BlockWriter<impl Write>,
        directories: &mut Vec<u8>,
    ) -> io::Result<Column> {
        if !self.values.is_empty() {
            self.flush(blocks)?;
        }
        let (len, absent) = (self.len, self.absent);
        let constant =
            self.directory.first().filter(|first| first.width == 0 && absent == 0).map(|first| first.base);
        let is_same = |block: &Block| block.width == 0 && Some(block.base) == constant;
        if let Some(bits) = constant.filter(|_| self.directory.iter().all(is_same)) {
            return Ok(Column { len, absent, storage: ColumnStorage::Constant(bits) });
        }
        let place = ColumnStorage::Blocks(directories.len() as u64);
        debug_assert_eq!(directories.len() as u64 % ENTRY_BYTES, 0);
        directories.extend(self.directory.iter().flat_map(|block| block.to_bytes()));
        Ok(Column { len, absent, storage: place })
    }
}
