//! Collective accesses to files as in ROMIO (`ad_read_coll.c`, `ad_write_coll.c`, `ad_aggregate.c`).
//!
//! Two allgathers of 8 bytes tell all members the parts of the file. Unless the parts are interleaved, each member accesses its own.
//! Otherwise aggregators, by default one on each node, divide the file from the first to the last byte that anybody wants. Members
//! tell them the pieces that they want: an alltoall of their numbers, and messages of 16 bytes for each. Then an aggregator goes
//! through its part in rounds, a buffer of data in each; in each round an alltoall tells the sizes, and the data go between members
//! and aggregators. A write reads a buffer with holes first.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Collective, Datatype, NumberHint, Switch, SwitchHint};

use super::parts::{FileParts, Part};
use super::sieving::at;
use super::{access_steps, own_steps, tell_parts};
use crate::collective::alltoall;
use crate::collective::blocks::Blocks;
use crate::collective::operation::Selectable as _;
use crate::collective::steps::{Schedule, Steps as _, concatenate};
use crate::collective::{Alltoall, Member, Step};
use crate::machine::{FileAccess, FileOperation};

/// Size of the buffer of an aggregator \[B\].
const BUFFER: u64 = 16 << 20;

/// Size of the message about a piece of data \[B\].
const PIECE: u64 = 16;

/// Returns the steps of a member of a collective access.
pub(super) fn schedule<'a>(member: Member<'a>, parts: &'a FileParts, access: FileAccess) -> Schedule<'a> {
    let told = tell_parts(member);
    let is_read = access.operation == FileOperation::Read;
    let switch = parts.hints.switch(if is_read { SwitchHint::CbRead } else { SwitchHint::CbWrite });
    let takes_two_phases = match switch {
        Switch::Enable => true,
        Switch::Disable => false,
        Switch::Automatic => parts.are_interleaved(),
    };
    if parts.is_empty() {
        return told;
    }
    if !takes_two_phases {
        return Box::new(told.then(own_steps(member, parts, access)));
    }
    let run = TwoPhases::new(member, parts, access);
    // All members know the largest number of rounds from a reduction.
    static ROUNDS: Collective = Collective::Allreduce { count: 4, flops: 0.0, datatype: Datatype::BYTE };
    let agreed = crate::collective::schedule(member, &ROUNDS);
    let rounds = concatenate((0..run.rounds()).map(move |round| run.round(round)));
    Box::new(told.then(run.requests()).then(agreed).then(rounds))
}

/// A member of an access in two phases.
#[derive(Clone, Copy)]
struct TwoPhases<'a> {
    member: Member<'a>,
    parts: &'a FileParts,
    access: FileAccess,
    /// The bytes of each aggregator, from the first one that a member wants to the last one.
    domains: &'a [Part],
    buffer: u64,
}

impl<'a> TwoPhases<'a> {
    fn new(member: Member<'a>, parts: &'a FileParts, access: FileAccess) -> Self {
        let nodes = u64::from(member.layout.nodes());
        let aggregators = parts.hints.number(NumberHint::CbNodes).unwrap_or(nodes).min(nodes);
        let domains = parts.domains.get_or_init(|| domains(parts, aggregators));
        let buffer = parts.hints.number(NumberHint::CbBufferSize).unwrap_or(BUFFER);
        Self { member, parts, access, domains, buffer }
    }

    /// Returns the member that is an aggregator.
    fn aggregator(&self, number: usize) -> u32 {
        self.member.layout.leader(number as u32)
    }

    fn rounds(&self) -> u64 {
        self.domains.iter().map(|(begin, end)| (end - begin).div_ceil(self.buffer)).max().unwrap_or(0)
    }

    /// Returns the data of an aggregator in a round.
    fn window(&self, number: usize, round: u64) -> Part {
        let (begin, end) = self.domains[number];
        let begin = begin.saturating_add(round.saturating_mul(self.buffer)).min(end);
        (begin, begin.saturating_add(self.buffer).min(end))
    }

    /// Returns the number of the aggregator that this member is.
    fn own(&self) -> Option<usize> {
        (0..self.domains.len()).find(|&number| self.aggregator(number) == self.member.rank)
    }

    /// Returns an alltoall of numbers.
    fn numbers(&self) -> Schedule<'a> {
        let one = Blocks::equal(4, Datatype::BYTE);
        Alltoall::selected(self.member, alltoall::Args { sent: one, received: one })
    }

    /// Returns the steps that tell aggregators what members want.
    fn requests(self) -> Schedule<'a> {
        let size =
            move |member, number: usize| PIECE * self.parts.pieces_wanted_by(member, self.domains[number]);
        Box::new(self.numbers().then(self.exchange(true, size)))
    }

    /// Returns messages of these sizes between members and aggregators, to aggregators or from them. What a member has itself needs
    /// no message.
    fn exchange(
        self,
        to_aggregators: bool,
        size: impl Fn(u32, usize) -> u64 + Send + Copy + 'a,
    ) -> Schedule<'a> {
        let own = self.own();
        let other = move |rank: &u32| *rank != self.member.rank;
        let members = (0..self.parts.members()).filter(move |_| own.is_some()).filter(other);
        let of_members = members.map(move |rank| (rank, size(rank, own.unwrap_or(0))));
        let aggregators = (0..self.domains.len()).map(move |number| (self.aggregator(number), number));
        let of_aggregators = aggregators
            .filter(move |(rank, _)| other(rank))
            .map(move |(rank, number)| (rank, size(self.member.rank, number)));
        let receive = |(from, bytes)| Step::Irecv { from: Rank::new(from), bytes: Bytes::new(bytes) };
        let send = |(to, bytes)| Step::Isend { to: Rank::new(to), bytes: Bytes::new(bytes) };
        let is_any = |(_, bytes): &(u32, u64)| *bytes > 0;
        let (of_members, of_aggregators) = (of_members.filter(is_any), of_aggregators.filter(is_any));
        match to_aggregators {
            true => Box::new(of_members.map(receive).chain(of_aggregators.map(send)).chain([Step::WaitAll])),
            false => Box::new(of_aggregators.map(receive).chain(of_members.map(send)).chain([Step::WaitAll])),
        }
    }

    fn round(self, round: u64) -> Schedule<'a> {
        let is_read = self.access.operation == FileOperation::Read;
        let window = self.own().map(|number| self.window(number, round)).filter(|(begin, end)| begin < end);
        let wanted = window.map_or(0, |window| self.parts.wanted_by_all(window));
        let has_holes = window.is_some_and(|(begin, end)| wanted < end - begin);
        let steps = move |operation| {
            let access = window.map(|window| FileAccess { operation, ..at(self.access, window) });
            access.filter(|_| wanted > 0).into_iter().flat_map(access_steps)
        };
        let data = self.exchange(!is_read, move |member, number| {
            self.parts.wanted_by(member, self.window(number, round))
        });
        if is_read {
            return Box::new(steps(FileOperation::Read).then(self.numbers()).then(data));
        }
        let existing = steps(FileOperation::ReadExisting).filter(move |_| has_holes);
        Box::new(self.numbers().then(existing).then(data).then(steps(FileOperation::Write)))
    }
}

/// Returns what is wanted of the part of each aggregator. Their limits are those of stripes where these have a size.
fn domains(parts: &FileParts, aggregators: u64) -> Vec<Part> {
    let (begin, end) = parts.wanted();
    let size = (end - begin).div_ceil(aggregators);
    let stripe = parts.hints.number(NumberHint::StripingUnit);
    let limit = |number: u64| {
        let limit = begin.saturating_add(size.saturating_mul(number));
        let aligned = stripe.map_or(limit, |stripe| (limit + stripe / 2) / stripe * stripe);
        match number {
            0 => begin,
            number if number == aggregators => end,
            _ => aligned.clamp(begin, end),
        }
    };
    let wanted = |domain: Part| {
        let of_members = (0..parts.members()).filter_map(|member| parts.range_wanted_by(member, domain));
        let all = of_members.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        all.unwrap_or((domain.0, domain.0))
    };
    (0..aggregators).map(|number| wanted((limit(number), limit(number + 1)))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trace_mmap::FileHints;

    use super::*;

    /// 0..100 and 160..200 for three aggregators: 67 bytes each, the last of which begins with what is wanted.
    #[test]
    fn aggregators_divide_what_is_wanted() {
        let mut hints = FileHints::default();
        let parts = |hints| FileParts::new(vec![(0, 100), (160, 200)], &BTreeMap::new(), hints);
        assert_eq!(domains(&parts(hints), 3), [(0, 67), (67, 100), (160, 200)]);
        assert!(hints.set_number(NumberHint::StripingUnit, 50));
        assert_eq!(domains(&parts(hints), 3), [(0, 50), (50, 100), (160, 200)]);
        assert_eq!(
            domains(&parts(hints), 8),
            [(0, 50), (50, 50), (50, 100), (100, 100), (100, 100), (150, 150), (160, 200), (200, 200)]
        );
    }
}
