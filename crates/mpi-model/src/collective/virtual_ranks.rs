//! Binomial reduction and broadcast among virtual ranks `0..size`; `rank` maps them to members.

use super::member::Elements;
use super::schedule_builder::ScheduleBuilder;

/// Appends this member's part of a binomial reduction to virtual rank 0.
pub(super) fn reduce(
    vrank: u32,
    size: u32,
    rank: impl Fn(u32) -> u32,
    data: Elements,
    steps: &mut ScheduleBuilder,
) {
    for child in children(vrank, size) {
        steps.recv(rank(child), data.bytes());
    }
    if vrank > 0 {
        steps.send(rank(vrank & (vrank - 1)), data.bytes());
    }
}

/// Appends this member's part of a binomial broadcast from virtual rank 0.
pub(super) fn broadcast(
    vrank: u32,
    size: u32,
    rank: impl Fn(u32) -> u32,
    data: Elements,
    steps: &mut ScheduleBuilder,
) {
    if vrank > 0 {
        steps.recv(rank(vrank & (vrank - 1)), data.bytes());
    }
    for child in children(vrank, size).rev() {
        steps.send(rank(child), data.bytes());
    }
}

/// Returns the children of a virtual rank in the binomial tree, nearest first.
fn children(vrank: u32, size: u32) -> std::vec::IntoIter<u32> {
    let levels = u32::BITS - (size - 1).leading_zeros();
    let own = if vrank == 0 { levels } else { vrank.trailing_zeros() };
    let children: Vec<u32> = (0..own).map(|bit| vrank | 1 << bit).filter(|&child| child < size).collect();
    children.into_iter()
}
