//! Collective accesses to files, as in SMPI (`smpi_file.hpp`): two allgathers of 8 bytes tell all members the parts of the file. If the
//! parts lie side by side, each member accesses its own. Otherwise it accesses what anybody wants of its chunk of the whole, and the
//! members exchange what they want by an alltoall of sizes and an alltoallv.
//!
//! Chunks overlap by a byte, and a part inside a chunk is not exchanged, as in SMPI.

use pdes_core::Bytes;
use trace_mmap::Datatype;

use super::blocks::Blocks;
use super::operation::Selectable;
use super::steps::{Schedule, Steps as _};
use super::{
    Allgather, Alltoall, Alltoallv, Bcast, Elements, Member, Step, allgather, alltoall, bcast, scan,
};
use crate::machine::FileAccess;

/// Part of a file \[B\]: begin and end.
pub(crate) type Part = (u64, u64);

/// The parts of a file that the members of a communicator access together.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileParts {
    parts: Vec<Part>,
    /// The parts without overlaps, sorted.
    union: Vec<Part>,
}

impl FileParts {
    /// Creates the parts of the members, in their order.
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        let mut sorted: Vec<Part> = parts.iter().copied().filter(|(begin, end)| begin < end).collect();
        sorted.sort_unstable();
        let mut union: Vec<Part> = Vec::new();
        for (begin, end) in sorted {
            match union.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => union.push((begin, end)),
            }
        }
        Self { parts, union }
    }

    /// Returns the number of members.
    pub(super) fn members(&self) -> u32 {
        self.parts.len() as u32
    }

    /// Returns the part of a member.
    pub(crate) fn of(&self, member: u32) -> Part {
        self.parts[member as usize]
    }

    /// Returns whether the members want nothing.
    fn is_empty(&self) -> bool {
        self.union.is_empty()
    }

    /// Returns begin and end of the whole, empty parts included.
    fn whole(&self) -> Part {
        let begin = self.parts.iter().map(|part| part.0).min();
        let end = self.parts.iter().map(|part| part.1).max();
        begin.zip(end).unwrap_or_default()
    }

    /// Returns whether the parts lie side by side, at least by their sizes.
    fn are_side_by_side(&self) -> bool {
        let (begin, end) = self.whole();
        let wanted: u64 = self.parts.iter().map(|part| part.1 - part.0).sum();
        self.parts.len() == 1 || end - begin == wanted
    }

    /// Returns the chunk of a member.
    fn chunk(&self, member: u32) -> Part {
        let (begin, end) = self.whole();
        let size = (end - begin + 1) / self.parts.len() as u64;
        let chunk = begin + size * u64::from(member);
        (chunk, chunk + size + 1)
    }

    /// Returns how much anybody wants of the chunk of a member \[B\].
    fn wanted_of_chunk(&self, member: u32) -> u64 {
        let (begin, end) = self.chunk(member);
        let common = |part: &Part| part.1.min(end).saturating_sub(part.0.max(begin));
        let first = self.union.partition_point(|part| part.1 <= begin);
        self.union[first..].iter().take_while(|part| part.0 < end).map(common).sum()
    }

    /// Returns how much a member sends to another one \[B\].
    pub(super) fn sent(&self, from: u32, to: u32) -> u64 {
        let (chunk, part) = (self.chunk(from), self.of(to));
        let begins_inside = part.0 <= chunk.0 && chunk.0 < part.1;
        let ends_inside = part.0 < chunk.1 && chunk.1 <= part.1;
        if begins_inside || ends_inside { chunk.1.min(part.1) - chunk.0.max(part.0) } else { 0 }
    }
}

/// Returns the steps of a member of a collective access; `access` makes its steps on a part of the file.
pub(crate) fn schedule<'a>(member: Member<'a>, parts: &'a FileParts, access: FileAccess) -> Schedule<'a> {
    let told = || {
        let (sent, blocks) = (Elements::new(8, Datatype::BYTE), Blocks::equal(8, Datatype::BYTE));
        Allgather::selected(member, allgather::Args { sent, blocks })
    };
    let told = told().then(told());
    let (begin, end) = parts.of(member.rank);
    if parts.is_empty() {
        return Box::new(told);
    }
    if parts.are_side_by_side() {
        return Box::new(told.then(access_steps(access.at(begin, end - begin))));
    }
    let own = access.at(parts.chunk(member.rank).0, parts.wanted_of_chunk(member.rank));
    let size = Blocks::equal(4, Datatype::BYTE);
    let sizes = Alltoall::selected(member, alltoall::Args { sent: size, received: size });
    let sent = Blocks::OfFile { parts, member: member.rank, are_sent: true };
    let received = Blocks::OfFile { parts, member: member.rank, are_sent: false };
    let data = Alltoallv::selected(member, alltoall::Args { sent, received });
    Box::new(told.then(access_steps(own)).then(sizes).then(data))
}

/// Returns the steps of a member of a collective access in the order of ranks: a prefix sum of 8 bytes finds the parts, and after the
/// access the last rank broadcasts a byte.
pub(crate) fn ordered<'a>(member: Member<'a>, parts: &'a FileParts, access: FileAccess) -> Schedule<'a> {
    let last = bcast::Args { root: member.size - 1, data: Elements::new(1, Datatype::BYTE) };
    let positions = scan::linear(member, Bytes::new(8));
    Box::new(positions.then(schedule(member, parts, access)).then(Bcast::selected(member, last)))
}

/// Returns the steps of an operation on a file.
pub(crate) fn access_steps(access: FileAccess) -> impl Iterator<Item = Step> + Send {
    (0..FileAccess::MAX_STEPS)
        .filter(move |_| !access.is_nothing())
        .map(move |number| Step::Access { access, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four members of 10 bytes with holes of 5: the whole is 0..55, a chunk 14 bytes and one more.
    #[test]
    fn parts_with_holes_are_exchanged() {
        let parts = FileParts::new((0..4).map(|member| (15 * member, 15 * member + 10)).collect());
        assert!(!parts.are_side_by_side());
        assert_eq!(
            (0..4).map(|member| parts.chunk(member)).collect::<Vec<_>>(),
            [(0, 15), (14, 29), (28, 43), (42, 57)]
        );
        assert_eq!((0..4).map(|member| parts.wanted_of_chunk(member)).collect::<Vec<_>>(), [10; 4]);
        // A part inside a chunk is not exchanged; 30..40 has neither end of 28..43 inside, nor has 15..25 of 14..29.
        assert_eq!((0..4).map(|to| parts.sent(0, to)).collect::<Vec<_>>(), [10, 0, 0, 0]);
        assert_eq!(parts.sent(2, 2), 0);
        let all = FileParts::new(vec![(0, 10), (5, 30), (30, 30), (40, 41)]);
        assert_eq!(all.union, [(0, 30), (40, 41)]);
        assert!(FileParts::new(vec![(10, 20), (0, 10)]).are_side_by_side());
        assert!(FileParts::new(vec![(7, 7); 3]).is_empty());
    }
}
