//! Columns: amounts of computation, apart from the programs that use them.
//!
//! A column is one amount for all its uses, or a sequence of blocks of [`BLOCK`] values, each packed in the way that is
//! shortest for it. Every amount is kept to the bit. A value may be [`ABSENT`]: the computation is left out that time,
//! so that a program is the same whether or not a tracer saw time pass between two calls.

mod ahead;
mod block;
mod builder;
mod codes;

pub(crate) use ahead::{AHEAD, Ahead};
pub(crate) use block::Block;
pub(crate) use builder::{Blocks, ColumnBuilder};

use crate::archive::{Damage, Shard};

/// Values of a full block.
pub(crate) const BLOCK: u64 = 256;

/// The bits of no amount: of a computation that is left out.
pub(crate) const ABSENT: u64 = u64::MAX;

/// Bytes of an entry of a column's directory.
pub(crate) const ENTRY: u64 = 16;

/// Where the amounts of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One amount for all uses, by its bits.
    Constant(u64),
    /// Blocks; their directory is at this offset in the data of the rank's shard.
    Blocks(u64),
}

/// A column of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Number of values.
    pub(crate) len: u64,
    /// How many of them are [`ABSENT`].
    pub(crate) absent: u64,
    pub(crate) place: Place,
}

impl Column {
    /// Returns whether all uses have the same amount.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.place, Place::Constant(_))
    }
}

/// What the columns of a rank change in the number of actions of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Computations of the program that are left out.
    pub(crate) absent: u64,
    /// Computations between the records of the program.
    pub(crate) inserted: u64,
}

impl Changes {
    /// Adds up the columns of a rank, of which the last two say what is inserted, if anything is; `None` where these two are not
    /// of one length, or sums exceed 64 bits.
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

    /// Returns the number of actions of a rank whose program has so many; `None` where that is none.
    pub(crate) fn apply(self, actions: u64) -> Option<u64> {
        actions.checked_sub(self.absent)?.checked_add(self.inserted)
    }

    /// Returns the number of actions of a rank that is being written, of whose program there are so many.
    pub(crate) fn actions(columns: &[Column], inserts: bool, of_program: u64) -> u64 {
        Self::of(columns, inserts).unwrap_or_default().apply(of_program).unwrap_or(u64::MAX)
    }
}

/// Unpacks the values of a column in order.
#[derive(Clone, Debug)]
pub(crate) struct ColumnReader<'a> {
    column: &'a Column,
    /// Values unpacked so far.
    unpacked: u64,
    /// The block of the last value that was unpacked.
    block: Option<OpenBlock<'a>>,
}

impl<'a> ColumnReader<'a> {
    /// Makes a reader before the first value.
    pub(crate) fn new(column: &'a Column) -> Self {
        Self::at(column, 0)
    }

    /// Makes a reader before the value with this number, from 0.
    pub(crate) fn at(column: &'a Column, number: u64) -> Self {
        Self { column, unpacked: number, block: None }
    }

    /// Unpacks the next values by their bits, as many as there are places, or fewer where their block ends before; `base`
    /// is where the blocks of the rank begin in the data of the shard. What comes out may be the bits of no amount.
    ///
    /// Returns how many there are, at least one where there is a place.
    ///
    /// # Errors
    /// Where the column has no more values, or a block is malformed.
    pub(crate) fn unpack(&mut self, shard: &'a Shard, base: u64, out: &mut [u64]) -> Result<usize, Damage> {
        let rest =
            self.column.len.checked_sub(self.unpacked).filter(|rest| *rest > 0).ok_or(Damage::Column)?;
        let first = self.unpacked % BLOCK;
        let in_block = rest.saturating_add(first).min(BLOCK);
        let len = (in_block - first).min(out.len() as u64);
        let out = &mut out[..len as usize];
        match (self.column.place, &self.block) {
            (Place::Constant(bits), _) => out.fill(bits),
            (Place::Blocks(_), Some(block)) if first > 0 => block.unpack(first, out)?,
            (Place::Blocks(directory), _) => {
                let entry =
                    (self.unpacked / BLOCK).checked_mul(ENTRY).and_then(|at| at.checked_add(directory));
                let block = OpenBlock::new(shard, entry.ok_or(Damage::Column)?, base, in_block)?;
                self.block.insert(block).unpack(first, out)?;
            }
        }
        self.unpacked += len;
        Ok(out.len())
    }
}

/// A block in the data.
#[derive(Clone, Debug)]
struct OpenBlock<'a> {
    block: Block,
    dictionary: &'a [u8],
    packed: &'a [u8],
}

impl<'a> OpenBlock<'a> {
    /// Finds the block of `len` values of this entry of a directory.
    fn new(shard: &'a Shard, entry: u64, base: u64, len: u64) -> Result<Self, Damage> {
        let block = Block::from_bytes(shard.bytes(entry, ENTRY)?).ok_or(Damage::Column)?;
        let place = block.place(len, base).ok_or(Damage::Column)?;
        let dictionary = shard.bytes(place.dictionary, place.codes - place.dictionary)?;
        let packed = shard.bytes_and_slack(place.codes, place.end - place.codes)?;
        Ok(Self { block, dictionary, packed })
    }

    #[inline]
    fn unpack(&self, first: u64, out: &mut [u64]) -> Result<(), Damage> {
        self.block.unpack(self.dictionary, self.packed, first, out).ok_or(Damage::Column)
    }
}
