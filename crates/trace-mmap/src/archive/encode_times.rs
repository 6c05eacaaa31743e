//! Encoder of measured times: one column for each kind of action.

use std::io::{self, BufWriter};

use tempfile::SpooledTempFile;

use crate::archive::encode::{MAX_IN_MEMORY, Spool};
use crate::column::{ABSENT, BlockWriter, Column, ColumnBuilder};
use crate::measured::{TimedActions, nanos};
use crate::record::{ACTION_KINDS, Record};

/// Encoded measured times of a rank.
pub(crate) struct EncodedTimes {
    /// One column for each kind of action [ns].
    pub(crate) columns: Vec<Column>,
    /// Blocks of the columns.
    pub(crate) blocks: Spool,
    /// Directories of the columns, which follow the blocks, aligned to 8 bytes.
    pub(crate) directories: Vec<u8>,
}

impl EncodedTimes {
    /// Encodes the times of all actions of a rank.
    pub(crate) fn new(measured: TimedActions<'_>) -> io::Result<Self> {
        let mut blocks = BlockWriter::new(BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY)));
        let mut builders: Vec<ColumnBuilder> = Vec::new();
        builders.resize_with(ACTION_KINDS, ColumnBuilder::default);
        for (action, time) in measured {
            let bits = time.map_or(ABSENT, |time| (nanos(time) as f64).to_bits());
            builders[usize::from(Record::encode(action).kind())].push(bits, &mut blocks)?;
        }
        let mut directories = Vec::new();
        let columns = builders.into_iter().map(|builder| builder.finish(&mut blocks, &mut directories));
        let columns = columns.collect::<io::Result<Vec<_>>>()?;
        Ok(Self { columns, blocks: Spool::new(blocks.sink)?, directories })
    }
}
