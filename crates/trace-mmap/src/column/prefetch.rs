//! Prefetch buffers of the columns of a rank: amounts are unpacked ahead of their use.

use crate::archive::{Damage, Shard};
use crate::column::block::NO_VALUE;
use crate::column::{BLOCK_VALUES, Column, ColumnReader, ColumnStorage};

/// Number of values of a column that are unpacked at once: half a block. With fewer, the processor mispredicts more of the
/// branches to unpacking; more take memory, and time when many ranks alternate.
pub(crate) const PREFETCHED_VALUES: usize = BLOCK_VALUES as usize / 2;

/// Prefetched amounts of all columns of a rank.
///
/// Each column has a lane of the buffer: one place for a constant, else up to [`PREFETCHED_VALUES`]. After the last value stands a
/// sentinel, [`NO_VALUE`], so that reading a value needs no test whether there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefetchedColumns<'a> {
    lanes: Box<[Lane]>,
    values: Box<[u64]>,
    /// A reader for each column; empty if all columns are constant.
    readers: Box<[ColumnReader<'a>]>,
}

/// The lane of a column in the buffer.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// Bits of the next value. The processor cannot predict whether an optional computation is absent, so that a cursor waits
    /// for this value; the copy here saves it one dependent load.
    value: u64,
    /// Index of the first place.
    first: u32,
    /// Index of the next value.
    next: u32,
    /// Index after the last value, where the sentinel is.
    end: u32,
    /// Increment of `next` per value: 1, or 0 for a constant.
    step: u16,
    /// Number of places, without that of the sentinel.
    capacity: u16,
}

// The documentation of `Cursor` promises this size.
const _: () = assert!(size_of::<Lane>() + size_of::<ColumnReader<'_>>() + 8 <= 128);

impl Lane {
    fn new(first: u32, column: &Column) -> Self {
        match column.storage {
            ColumnStorage::Constant(value) => {
                Self { value, first, next: first, end: first, step: 0, capacity: 1 }
            }
            ColumnStorage::Blocks(_) => {
                let places = column.len.min(PREFETCHED_VALUES as u64) as u16;
                Self { value: NO_VALUE, first, next: first, end: first, step: 1, capacity: places }
            }
        }
    }
}

impl<'a> PrefetchedColumns<'a> {
    /// Creates lanes for the columns of a rank. Blocks are not unpacked yet.
    pub(crate) fn new(columns: &'a [Column]) -> Self {
        let (mut lanes, mut values) = (Vec::with_capacity(columns.len()), Vec::new());
        for column in columns {
            let lane = Lane::new(values.len() as u32, column);
            let end = values.len() + usize::from(lane.capacity);
            match column.storage {
                ColumnStorage::Constant(bits) => values.push(bits),
                ColumnStorage::Blocks(_) => values.resize(end + 1, NO_VALUE),
            }
            lanes.push(lane);
        }
        let needs_readers = !columns.iter().all(Column::is_constant);
        let readers = columns.iter().filter(|_| needs_readers).map(ColumnReader::new).collect();
        Self { lanes: lanes.into(), values: values.into(), readers }
    }

    /// Takes the bits of the next value of a column, or the sentinel if no value is unpacked.
    #[inline]
    pub(crate) fn take(&mut self, column: u32) -> u64 {
        let Some(lane) = self.lanes.get_mut(column as usize) else { return NO_VALUE };
        let value = lane.value;
        lane.next += u32::from(lane.step);
        lane.value = self.values.get(lane.next as usize).copied().unwrap_or(NO_VALUE);
        value
    }

    /// Returns the number of values taken from a column in blocks.
    pub(crate) fn taken(&self, column: u32) -> u64 {
        let (lane, reader) = (&self.lanes[column as usize], &self.readers[column as usize]);
        reader.position - u64::from(lane.end.saturating_sub(lane.next))
    }

    /// Moves a column in blocks to the value `number`, from 0.
    pub(crate) fn seek(&mut self, column: u32, number: u64) {
        let (lane, reader) = (&mut self.lanes[column as usize], &mut self.readers[column as usize]);
        *reader = ColumnReader::at(reader.column, number);
        (lane.next, lane.end) = (lane.first, lane.first);
        (lane.value, self.values[lane.first as usize]) = (NO_VALUE, NO_VALUE);
    }

    /// Unpacks the next values of a column whose sentinel was taken, and takes the first.
    ///
    /// # Errors
    /// Fails if the value taken was not the sentinel but a stored value that is not an amount, or if there is no further value.
    pub(crate) fn refill_and_take(
        &mut self,
        column: u32,
        shard: &'a Shard,
        base: u64,
    ) -> Result<u64, Damage> {
        let index = column as usize;
        let (Some(lane), Some(reader)) = (self.lanes.get_mut(index), self.readers.get_mut(index)) else {
            return Err(Damage::Column);
        };
        if lane.step == 0 || lane.next != lane.end + 1 {
            return Err(Damage::Column);
        }
        let first = lane.first as usize;
        let len = reader.unpack(shard, base, &mut self.values[first..first + usize::from(lane.capacity)])?;
        lane.end = lane.first + len as u32;
        lane.next = lane.first + 1;
        self.values[lane.end as usize] = NO_VALUE;
        lane.value = self.values[first + 1];
        Ok(self.values[first])
    }
}
