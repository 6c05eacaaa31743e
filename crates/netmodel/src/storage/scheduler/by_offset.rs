//! Requests in the order of their positions, in one direction (the elevator C-SCAN).

use std::collections::VecDeque;

use super::Queued;

/// Takes the request that begins first at or after the end of the last one, or else the first of all; files are in the order of their
/// numbers. `O(n)`.
pub(super) fn pick(queue: &mut VecDeque<Queued>, last: Option<(u32, u64)>) -> Vec<Queued> {
    let key = |queued: &Queued| {
        let place = (queued.access.file, queued.access.offset);
        (last.is_some_and(|last| place < last), place, queued.number)
    };
    let next = (0..queue.len()).min_by_key(|&index| key(&queue[index]));
    next.and_then(|index| queue.remove(index)).into_iter().collect()
}
