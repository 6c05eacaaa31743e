//! Broadcasts to those that have arrived, who put the vector together from its parts.

use std::iter::once;

use pdes_core::{Bytes, Rank};

use super::arrival::to_rank_0;
use super::{Args, binomial_tree};
use crate::collective::arrival::{Sweep, announce, header, learn, serve_after_sweeping};
use crate::collective::member::{Elements, nothing};
use crate::collective::{Member, Schedule, Step, Steps, exchange, recv, send};

/// Numbers for which a header has room.
const ROOM: u32 = 128;

/// Rank 0 looks round three times, again from the start when it has found somebody, and scatters the vector over those
/// that it has met, who then send its parts round a ring. A vector of fewer elements than ranks goes down a binomial
/// tree.
///
/// For r rounds: 3 P looks and P alpha, and 2 P alpha + 2 r n beta. Source: STAR-MPI's `arrival_scatter`. SimGrid's calls
/// itself for ever where there are fewer elements than ranks.
pub(super) fn arrival_scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let data = args.data;
    if data.count < u64::from(member.size) {
        return binomial_tree(member, args);
    }
    if member.size == 1 {
        return nothing();
    }
    let header = header(ROOM, member);
    let served = if member.rank == 0 {
        let sweep = Sweep { times: 3, again_from: 1 };
        serve_after_sweeping(member, sweep, move |round| scatter(round.to_vec(), header, data))
    } else {
        // First who stands beside this member, then where it stands itself.
        let parts =
            move |neighbours| learn(move |[place, places]| collect(neighbours, place, places, header, data));
        Box::new(once(announce()).then(learn(parts)))
    };
    Box::new(to_rank_0(member, args).then(served))
}

/// Sends all members of a round the header, then each its part.
fn scatter<'a>(round: Vec<u32>, header: Bytes, data: Elements) -> Schedule<'a> {
    let places = round.len() as u32;
    let places_of = round.clone();
    let told = (0..places)
        .zip(round.clone())
        .map(move |(place, to)| Step::Assign { to: Rank::new(to), numbers: [place, places] });
    let headers = places_of.into_iter().map(move |to| send(to, header));
    let parts = (0..places).zip(round).map(move |(place, to)| send(to, part(data, place, places)));
    Box::new(told.chain(headers).chain(parts))
}

/// Gets the header and the own part, then exchanges parts with the neighbours in the ring.
fn collect<'a>(
    [before, after]: [u32; 2],
    place: u32,
    places: u32,
    header: Bytes,
    data: Elements,
) -> Schedule<'a> {
    let part_back = move |back| part(data, (place + places - back) % places, places);
    let rounds =
        (0..places - 1).map(move |round| exchange(after, part_back(round), before, part_back(round + 1)));
    Box::new([recv(0, header), recv(0, part_back(0))].into_iter().chain(rounds))
}

/// A part of the vector; the last one has what is left, too.
fn part(data: Elements, place: u32, places: u32) -> Bytes {
    let (each, rest) = (data.count / u64::from(places), data.count % u64::from(places));
    data.size_of(if place + 1 == places { each + rest } else { each })
}
