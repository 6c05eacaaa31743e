//! Columns: amounts of computation, apart from the programs that use them.
//!
//! A column is one amount for all its uses, or a sequence of blocks of [`BLOCK`] values, each packed in the way that is
//! shortest for it. Every amount is kept to the bit. A value may be [`ABSENT`]: the computation is left out that time,
//! so that a program is the same whether or not a tracer saw time pass between two calls.

mod block;
mod builder;

pub(crate) use block::{Block, Packing};
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

/// What a constant is read from: codes of no bits.
const NO_CODES: &[u8] = &[0; 8];

/// Reads the values of a column in order.
#[derive(Clone, Debug)]
pub(crate) struct ColumnReader<'a> {
    column: Column,
    /// Values of the blocks opened so far.
    opened: u64,
    /// Values left in the open block.
    left: u32,
    block: Block,
    mask: u64,
    /// Offset of the next code in `packed`, in bits.
    bit: u64,
    packed: &'a [u8],
    dictionary: &'a [u8],
}

impl<'a> ColumnReader<'a> {
    pub(crate) fn new(column: Column) -> Self {
        let base = match column.place {
            Place::Constant(bits) => bits,
            Place::Blocks(_) => 0,
        };
        let block = Block { base, ..Block::default() };
        Self { column, opened: 0, left: 0, block, mask: 0, bit: 0, packed: NO_CODES, dictionary: &[] }
    }

    /// Returns the bits of the next value of the open block, which may be those of no amount; `None` where none is left,
    /// or where the block is malformed.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let start = (self.bit / 8) as usize;
        let word = u64::from_le_bytes(*self.packed.get(start..)?.first_chunk()?);
        let code = word >> (self.bit % 8) & self.mask;
        self.bit += u64::from(self.block.width);
        match self.block.packing {
            Packing::Dictionary => block::take(self.dictionary, 64 * code, 64),
            _ => self.block.decode(code),
        }
    }

    /// Opens the next block; `base` is where the blocks of the rank begin in the data of the shard.
    ///
    /// # Errors
    /// Where values are left, so that the open block is malformed; where there is no further block.
    #[cold]
    pub(crate) fn open_block(&mut self, shard: &'a Shard, base: u64) -> Result<(), Damage> {
        let rest = self.column.len.checked_sub(self.opened).filter(|rest| *rest > 0 && self.left == 0);
        let rest = rest.ok_or(Damage::Column)?;
        let Place::Blocks(directory) = self.column.place else {
            // In parts of less than 2^32 uses, so that the count fits.
            self.left = rest.min(u64::from(u32::MAX)) as u32;
            self.opened += u64::from(self.left);
            return Ok(());
        };
        let entry = directory.checked_add(self.opened / BLOCK * ENTRY).ok_or(Damage::Column)?;
        self.block = Block::from_bytes(shard.bytes(entry, ENTRY)?).ok_or(Damage::Column)?;
        self.left = rest.min(BLOCK) as u32;
        self.opened += u64::from(self.left);
        let place = self.block.place(u64::from(self.left), base).ok_or(Damage::Column)?;
        self.dictionary = shard.bytes(place.dictionary, place.codes - place.dictionary)?;
        self.packed = shard.bytes_and_slack(place.codes, place.end - place.codes)?;
        self.mask = block::mask(self.block.width);
        self.bit = 0;
        Ok(())
    }
}
