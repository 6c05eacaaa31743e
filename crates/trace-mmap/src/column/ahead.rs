//! Amounts unpacked ahead of their use.

use crate::archive::{Damage, Shard};
use crate::column::block::NO_VALUE;
use crate::column::{BLOCK, Column, ColumnReader, Place};

/// Values of a column that are unpacked at once: half a block. With fewer, the processor mispredicts more of the branches
/// that lead to unpacking; more take memory, and time where many ranks take turns.
pub(crate) const AHEAD: usize = BLOCK as usize / 2;

/// The next amounts of all columns of a rank.
///
/// A lane of places for each column: one for a constant, else up to [`AHEAD`], and behind the last value a mark,
/// [`NO_VALUE`], so that taking a value does not ask whether there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead<'a> {
    lanes: Box<[Lane]>,
    values: Box<[u64]>,
    /// None where all columns are constant.
    readers: Box<[ColumnReader<'a>]>,
}

/// The places of a column.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// The next value, by its bits: whether an optional computation is there cannot be predicted, so that a cursor waits for
    /// this, and should not have to look up the place before.
    value: u64,
    /// The first place.
    first: u32,
    /// The place of the next value.
    next: u32,
    /// The place behind the last value, where the mark is.
    end: u32,
    /// 1, or 0 for a constant.
    step: u16,
    /// Number of places, without that for the mark.
    places: u16,
}

// What `Cursor` says of its size.
const _: () = assert!(size_of::<Lane>() + size_of::<ColumnReader<'_>>() + 8 <= 128);

impl Lane {
    fn new(first: u32, column: &Column) -> Self {
        match column.place {
            Place::Constant(value) => Self { value, first, next: first, end: first, step: 0, places: 1 },
            Place::Blocks(_) => {
                let places = column.len.min(AHEAD as u64) as u16;
                Self { value: NO_VALUE, first, next: first, end: first, step: 1, places }
            }
        }
    }
}

impl<'a> Ahead<'a> {
    /// Makes lanes for the columns of a rank. Nothing is unpacked yet but constants.
    pub(crate) fn new(columns: &'a [Column]) -> Self {
        let (mut lanes, mut values) = (Vec::with_capacity(columns.len()), Vec::new());
        for column in columns {
            let lane = Lane::new(values.len() as u32, column);
            let end = values.len() + usize::from(lane.places);
            match column.place {
                Place::Constant(bits) => values.push(bits),
                Place::Blocks(_) => values.resize(end + 1, NO_VALUE),
            }
            lanes.push(lane);
        }
        let needs_readers = !columns.iter().all(Column::is_constant);
        let readers = columns.iter().filter(|_| needs_readers).map(ColumnReader::new).collect();
        Self { lanes: lanes.into(), values: values.into(), readers }
    }

    /// Takes the next value of a column by its bits, or the mark where none is unpacked.
    #[inline]
    pub(crate) fn take(&mut self, column: u32) -> u64 {
        let Some(lane) = self.lanes.get_mut(column as usize) else { return NO_VALUE };
        let value = lane.value;
        lane.next += u32::from(lane.step);
        lane.value = self.values.get(lane.next as usize).copied().unwrap_or(NO_VALUE);
        value
    }

    /// Returns how many values of a column in blocks were taken.
    pub(crate) fn used(&self, column: u32) -> u64 {
        let (lane, reader) = (&self.lanes[column as usize], &self.readers[column as usize]);
        reader.unpacked - u64::from(lane.end.saturating_sub(lane.next))
    }

    /// Goes on, in a column in blocks, with the value that has this number, from 0.
    pub(crate) fn seek(&mut self, column: u32, number: u64) {
        let (lane, reader) = (&mut self.lanes[column as usize], &mut self.readers[column as usize]);
        *reader = ColumnReader::at(reader.column, number);
        (lane.next, lane.end) = (lane.first, lane.first);
        (lane.value, self.values[lane.first as usize]) = (NO_VALUE, NO_VALUE);
    }

    /// Unpacks the next values of a column of which the mark was taken, and takes the first.
    ///
    /// # Errors
    /// Where what was taken was not the mark but no amount either; where there is no further value.
    pub(crate) fn unpack(&mut self, column: u32, shard: &'a Shard, base: u64) -> Result<u64, Damage> {
        let index = column as usize;
        let (Some(lane), Some(reader)) = (self.lanes.get_mut(index), self.readers.get_mut(index)) else {
            return Err(Damage::Column);
        };
        if lane.step == 0 || lane.next != lane.end + 1 {
            return Err(Damage::Column);
        }
        let first = lane.first as usize;
        let len = reader.unpack(shard, base, &mut self.values[first..first + usize::from(lane.places)])?;
        lane.end = lane.first + len as u32;
        lane.next = lane.first + 1;
        self.values[lane.end as usize] = NO_VALUE;
        lane.value = self.values[first + 1];
        Ok(self.values[first])
    }
}
