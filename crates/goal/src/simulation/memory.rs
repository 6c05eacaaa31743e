//! Allocation of large tables on huge pages.

use bytemuck::Zeroable;
use bytemuck::allocation::zeroed_slice_box;

use crate::mapping;

/// Allocates a table of zeros.
///
/// Hosts run in turns, so that each access is to another page. Pages of 2 MiB, which Linux gives on request, keep their
/// addresses within reach of the TLB.
pub(crate) fn zeroed_table<T: Zeroable>(len: usize) -> Box<[T]> {
    let mut table = zeroed_slice_box(len);
    mapping::advise_huge_pages(&mut table);
    table
}

/// Reserves memory for a table that grows; pages are only used as it does.
pub(crate) fn growing_table<T>(capacity: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(capacity);
    mapping::advise_huge_pages(table.spare_capacity_mut());
    table
}
