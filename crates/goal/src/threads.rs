//! Parallel loops over ranges of ranks.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use crate::schedule::Tables;

/// Number of operations that make another thread worthwhile: fewer take no longer than starting it. Debug builds use a
/// small number so that tests exercise threads.
const OPERATIONS_PER_THREAD: usize = if cfg!(debug_assertions) { 8 } else { 1 << 16 };

/// Divides ranks into at most `threads` ranges, as many as their operations make worthwhile.
pub(crate) fn divide_for_threads(tables: &Tables<'_>, ranks: Range<u32>, threads: usize) -> Vec<Range<u32>> {
    let parts = threads.min(tables.operation_count(&ranks) / OPERATIONS_PER_THREAD).min(ranks.len());
    divide_evenly(tables, ranks, parts.max(1))
}

/// Divides ranks into `parts` ranges of about equal numbers of operations, with at least one rank each.
pub(crate) fn divide_evenly(tables: &Tables<'_>, ranks: Range<u32>, parts: usize) -> Vec<Range<u32>> {
    let first = tables.first_node[ranks.start as usize];
    let operations = tables.operation_count(&ranks);
    let mut start = ranks.start;
    let mut ranges = Vec::with_capacity(parts);
    for number in 1..=parts {
        let share = first + (operations as u128 * number as u128 / parts as u128) as u64;
        let end = tables.first_node.partition_point(|&first| first < share) as u32;
        let last = ranks.end - (parts - number) as u32;
        let end = if number == parts { last } else { end.clamp(start + 1, last) };
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Runs `work` on each item in parallel, the first one on this thread and the others on their own threads; returns the
/// results in order.
pub(crate) fn map_parallel<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let mut items = items.into_iter();
    let Some(first) = items.next() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = items.map(|item| scope.spawn(|| work(item))).collect();
        let others = std::iter::once(work(first))
            .chain(others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        others.collect()
    })
}
