//! Broadcast by scatter and allgather among the members that have arrived.

use std::iter::once;

use pdes_core::{Bytes, Rank};

use super::arrival::to_rank_0;
use super::{Args, binomial_tree};
use crate::collective::arrival::{
    SweepStrategy, announce, header, serve_after_sweeps, with_received_numbers,
};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::{Member, Schedule, Step, Steps, exchange, recv, send};

/// Capacity of a header in numbers.
const HEADER_CAPACITY: u32 = 128;

/// Rank 0 polls in three sweeps, restarted whenever it has found a rank, and scatters the vector over those that it has
/// found, which then exchange its parts round a ring. A vector of fewer elements than ranks is broadcast down a binomial
/// tree.
///
/// Cost for r rounds: 3 P polls and P alpha, and 2 P alpha + 2 r n beta. Source: STAR-MPI's `arrival_scatter`. SimGrid's
/// recurses for ever if there are fewer elements than ranks.
pub(super) fn arrival_scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let data = args.data;
    if data.count < u64::from(member.size) {
        return binomial_tree(member, args);
    }
    if member.size == 1 {
        return empty_schedule();
    }
    let header = header(HEADER_CAPACITY, member);
    let served = if member.rank == 0 {
        let sweep = SweepStrategy { sweeps: 3, restart_from: 1 };
        serve_after_sweeps(member, sweep, move |round| scatter(round.to_vec(), header, data))
    } else {
        // The first pair of numbers is the neighbours, the second this member's index in the round and the size of the
        // round.
        let parts = move |neighbours| {
            with_received_numbers(move |[index, places]| collect(neighbours, index, places, header, data))
        };
        Box::new(once(announce()).then(with_received_numbers(parts)))
    };
    Box::new(to_rank_0(member, args).then(served))
}

/// Sends the header to all members of a round, then its part to each.
fn scatter<'a>(round: Vec<u32>, header: Bytes, data: Elements) -> Schedule<'a> {
    let places = round.len() as u32;
    let places_of = round.clone();
    let told = (0..places)
        .zip(round.clone())
        .map(move |(index, to)| Step::SendOutOfBand { to: Rank::new(to), numbers: [index, places] });
    let headers = places_of.into_iter().map(move |to| send(to, header));
    let parts = (0..places).zip(round).map(move |(index, to)| send(to, part(data, index, places)));
    Box::new(told.chain(headers).chain(parts))
}

/// Receives the header and this member's part, then exchanges parts with the neighbours in the ring.
fn collect<'a>(
    [before, after]: [u32; 2],
    index: u32,
    places: u32,
    header: Bytes,
    data: Elements,
) -> Schedule<'a> {
    let part_back = move |back| part(data, (index + places - back) % places, places);
    let rounds =
        (0..places - 1).map(move |round| exchange(after, part_back(round), before, part_back(round + 1)));
    Box::new([recv(0, header), recv(0, part_back(0))].into_iter().chain(rounds))
}

/// Returns the size of a part of the vector; the last part has the remainder, too.
fn part(data: Elements, index: u32, places: u32) -> Bytes {
    let (each, rest) = (data.count / u64::from(places), data.count % u64::from(places));
    data.size_of(if index + 1 == places { each + rest } else { each })
}
