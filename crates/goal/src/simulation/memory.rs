//! Large tables in memory.

use bytemuck::Zeroable;
use bytemuck::allocation::zeroed_slice_box;

use crate::mapping;

/// Makes a table of zeros that is filled later.
///
/// Where hosts take turns, each access is to another page: pages of 2 MiB, which Linux gives to those who ask, keep their
/// addresses within reach of the processor.
pub(crate) fn table<T: Zeroable>(len: usize) -> Box<[T]> {
    let mut table = zeroed_slice_box(len);
    mapping::ask_for_large_pages(&mut table);
    table
}

/// Makes room for a table that grows; pages are only taken as it does.
pub(crate) fn growing_table<T>(capacity: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(capacity);
    mapping::ask_for_large_pages(table.spare_capacity_mut());
    table
}
