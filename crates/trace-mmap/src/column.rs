//! Columns: amounts of computations, stored apart from the programs that use them.
//!
//! A column is one amount for all its uses, or a sequence of blocks of [`BLOCK_VALUES`] values, each in its shortest encoding.
//! Amounts are kept to the bit. A value may be [`ABSENT`], which leaves the computation out that time, so that a program is
//! the same whether or not a tracer saw time pass between two calls.

mod block;
mod builder;
mod codes;
mod prefetch;

pub(crate) use block::Block;
pub(crate) use builder::{BlockWriter, ColumnBuilder};
pub(crate) use prefetch::{PREFETCHED_VALUES, PrefetchedColumns};

use crate::archive::{Damage, Shard};

/// Number of values of a full block.
pub(crate) const BLOCK_VALUES: u64 = 256;

/// Value that stands for an absent computation; not the bits of an amount.
pub(crate) const ABSENT: u64 = u64::MAX;

/// Size of an entry of the directory of a column [B].
pub(crate) const ENTRY_BYTES: u64 = 16;

/// Storage of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ColumnStorage {
    /// One amount for all uses; its bits.
    Constant(u64),
    /// Blocks; offset of their directory in the data of the shard [B].
    Blocks(u64),
}

/// A column of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Column {
    /// Number of values.
    pub(crate) len: u64,
    /// Number of values that are [`ABSENT`].
    pub(crate) absent: u64,
    pub(crate) storage: ColumnStorage,
}

impl Column {
    /// Returns whether the column is one amount for all uses.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.storage, ColumnStorage::Constant(_))
    }
}

/// Changes of the number of actions of a program by the columns of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActionCountChanges {
    /// Number of absent executions of optional computations.
    pub(crate) absent: u64,
    /// Number of computations inserted between the records of the program.
    pub(crate) inserted: u64,
}

impl ActionCountChanges {
    /// Sums over the columns of a rank; with `inserts` the last two hold the inserted computations. Returns `None` if these two
    /// differ in length or have absent values, or if sums exceed 64 bits.
    pub(crate) fn of(columns: &[Column], inserts: bool) -> Option<Self> {
        let absent = columns.iter().try_fold(0_u64, |sum, column| sum.checked_add(column.absent))?;
        let inserted = match columns {
            _ if !inserts => 0,
            [.., gaps, amounts] if gaps.len == amounts.len && gaps.absent == 0 && amounts.absent == 0 => {
                gaps.len
            }
            _ => return None,
        };
        Some(Self { absent, inserted })
    }

    /// Returns the number of actions of a rank whose program has `actions`; `None` if it is out of range.
    pub(crate) fn apply(self, actions: u64) -> Option<u64> {
        actions.checked_sub(self.absent)?.checked_add(self.inserted)
    }

    /// Returns the number of actions of a rank that is being written, whose program has `of_program` actions; saturates.
    pub(crate) fn saturating_actions(columns: &[Column], inserts: bool, of_program: u64) -> u64 {
        Self::of(columns, inserts).unwrap_or_default().apply(of_program).unwrap_or(u64::MAX)
    }
}

/// Sequential decoder of a column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnReader<'a> {
    column: &'a Column,
    /// Number of values decoded so far.
    position: u64,
    /// Block of the last decoded value.
    block: Option<OpenBlock<'a>>,
}

impl<'a> ColumnReader<'a> {
    /// Creates a reader before the first value.
    pub(crate) fn new(column: &'a Column) -> Self {
        Self::at(column, 0)
    }

    /// Creates a reader before the value `number`, from 0.
    pub(crate) fn at(column: &'a Column, number: u64) -> Self {
        Self { column, position: number, block: None }
    }

    /// Decodes the bits of the next values into `out`, up to the end of their block. `base` is the offset of the rank's blocks
    /// in the data of the shard [B]. Values need not be the bits of an amount.
    ///
    /// Returns the number of values, which is at least one unless `out` is empty.
    ///
    /// # Errors
    /// Fails if the column has no more values or a block is malformed.
    pub(crate) fn unpack(&mut self, shard: &'a Shard, base: u64, out: &mut [u64]) -> Result<usize, Damage> {
        let rest =
            self.column.len.checked_sub(self.position).filter(|rest| *rest > 0).ok_or(Damage::Column)?;
        let first = self.position % BLOCK_VALUES;
        let in_block = rest.saturating_add(first).min(BLOCK_VALUES);
        let len = (in_block - first).min(out.len() as u64);
        let out = &mut out[..len as usize];
        match (self.column.storage, &self.block) {
            (ColumnStorage::Constant(bits), _) => out.fill(bits),
            (ColumnStorage::Blocks(_), Some(block)) if first > 0 => block.unpack(first, out)?,
            (ColumnStorage::Blocks(directory), _) => {
                let entry = (self.position / BLOCK_VALUES)
                    .checked_mul(ENTRY_BYTES)
                    .and_then(|at| at.checked_add(directory));
                let block = OpenBlock::new(shard, entry.ok_or(Damage::Column)?, base, in_block)?;
                self.block.insert(block).unpack(first, out)?;
            }
        }
        self.position += len;
        Ok(out.len())
    }
}

/// A block with its bytes.
#[derive(Clone, Debug)]
struct OpenBlock<'a> {
    block: Block,
    dictionary: &'a [u8],
    codes: &'a [u8],
}

impl<'a> OpenBlock<'a> {
    /// Opens the block of `len` values whose directory entry is at `entry`.
    fn new(shard: &'a Shard, entry: u64, base: u64, len: u64) -> Result<Self, Damage> {
        let block = Block::from_bytes(shard.bytes(entry, ENTRY_BYTES)?).ok_or(Damage::Column)?;
        let place = block.extent(len, base).ok_or(Damage::Column)?;
        let dictionary = shard.bytes(place.dictionary, place.codes - place.dictionary)?;
        let packed = shard.bytes_with_padding(place.codes, place.end - place.codes)?;
        Ok(Self { block, dictionary, codes: packed })
    }

    #[inline]
    fn unpack(&self, first: u64, out: &mut [u64]) -> Result<(), Damage> {
        self.block.unpack(self.dictionary, self.codes, first, out).ok_or(Damage::Column)
    }
}
