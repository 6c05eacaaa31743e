//! Requests in the order of arrival, each with its neighbours.

use std::collections::VecDeque;

use super::Queued;

/// Largest size of requests that go together \[B\].
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// Takes the first request, and those that touch it, or touch one that goes with it, up to 16 MiB. `O(n)` for each.
pub(super) fn pick(queue: &mut VecDeque<Queued>, _: Option<(u32, u64)>) -> Vec<Queued> {
    let Some(first) = queue.pop_front() else { return Vec::new() };
    let (mut begin, mut end, mut picked) = (first.access.offset, first.access.end(), vec![first]);
    let is_neighbour = |queued: &Queued, begin: u64, end: u64| {
        let access = queued.access;
        (access.file, access.direction) == (first.access.file, first.access.direction)
            && access.offset <= end
            && begin <= access.end()
            && end.max(access.end()) - begin.min(access.offset) <= MAX_BYTES
    };
    while let Some(index) = queue.iter().position(|queued| is_neighbour(queued, begin, end)) {
        let neighbour = queue.remove(index).expect("the queue has what was found");
        begin = begin.min(neighbour.access.offset);
        end = end.max(neighbour.access.end());
        picked.push(neighbour);
    }
    picked
}
