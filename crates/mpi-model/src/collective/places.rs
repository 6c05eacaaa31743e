//! Binomial reduction and broadcast among virtual ranks `0..size`; `rank` maps them to members.

use super::member::Elements;
use super::script::Script;

/// Appends this member's part of a binomial reduction to virtual rank 0.
pub(super) fn reduce(place: u32, places: u32, rank: impl Fn(u32) -> u32, data: Elements, steps: &mut Script) {
    for child in below(place, places) {
        steps.recv(rank(child), data.bytes());
    }
    if place > 0 {
        steps.send(rank(place & (place - 1)), data.bytes());
    }
}

/// Appends this member's part of a binomial broadcast from virtual rank 0.
pub(super) fn broadcast(
    place: u32,
    places: u32,
    rank: impl Fn(u32) -> u32,
    data: Elements,
    steps: &mut Script,
) {
    if place > 0 {
        steps.recv(rank(place & (place - 1)), data.bytes());
    }
    for child in below(place, places).rev() {
        steps.send(rank(child), data.bytes());
    }
}

/// Returns the children of a virtual rank in the binomial tree, nearest first.
fn below(place: u32, places: u32) -> std::vec::IntoIter<u32> {
    let levels = u32::BITS - (places - 1).leading_zeros();
    let own = if place == 0 { levels } else { place.trailing_zeros() };
    let children: Vec<u32> = (0..own).map(|bit| place | 1 << bit).filter(|&child| child < places).collect();
    children.into_iter()
}
