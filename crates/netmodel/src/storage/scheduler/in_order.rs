//! Requests in the order of arrival.

use std::collections::VecDeque;

use super::Queued;

/// Takes the first request.
pub(super) fn pick(queue: &mut VecDeque<Queued>, _: Option<(u32, u64)>) -> Vec<Queued> {
    queue.pop_front().into_iter().collect()
}
