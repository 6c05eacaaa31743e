//! Collective accesses to files, by default as in SMPI (`smpi_file.hpp`): two allgathers of 8 bytes tell all members the parts of the
//! file. If the parts lie side by side, each member accesses its own. Otherwise it accesses what anybody wants of its chunk of the
//! whole, and the members exchange what they want by an alltoall of sizes and an alltoallv.
//!
//! Chunks overlap by a byte, and a part inside a chunk is not exchanged, as in SMPI. Parts with holes, which SMPI does not have, are
//! exchanged as far as they are in a chunk.

mod parts;
mod romio;
pub(crate) mod sieving;

use pdes_core::Bytes;
use trace_mmap::Datatype;

use super::blocks::Blocks;
use super::operation::Selectable;
use super::steps::{Schedule, Steps as _};
use super::{
    Allgather, Alltoall, Alltoallv, Bcast, Elements, Member, Step, allgather, alltoall, bcast, scan,
};
use crate::machine::FileAccess;
use crate::parameters::CollectiveIo;
pub(crate) use parts::{FileParts, Part};

impl FileParts {
    /// Returns the chunk of a member.
    fn chunk(&self, member: u32) -> Part {
        let (begin, end) = self.whole();
        let size = (end - begin + 1) / u64::from(self.members());
        let chunk = begin + size * u64::from(member);
        (chunk, chunk + size + 1)
    }

    /// Returns how much a member sends to another one \[B\].
    pub(super) fn sent(&self, from: u32, to: u32) -> u64 {
        let (chunk, part) = (self.chunk(from), self.of(to));
        if self.with_holes(to).is_some() {
            return self.wanted_by(to, chunk);
        }
        let begins_inside = part.0 <= chunk.0 && chunk.0 < part.1;
        let ends_inside = part.0 < chunk.1 && chunk.1 <= part.1;
        if begins_inside || ends_inside { chunk.1.min(part.1) - chunk.0.max(part.0) } else { 0 }
    }
}

/// Returns the allgathers that tell all members the first and the last position of each.
fn tell_parts(member: Member<'_>) -> Schedule<'_> {
    let told = || {
        let (sent, blocks) = (Elements::new(8, Datatype::BYTE), Blocks::equal(8, Datatype::BYTE));
        Allgather::selected(member, allgather::Args { sent, blocks })
    };
    Box::new(told().then(told()))
}

/// Returns the steps of the access of a member to its own part.
fn own_steps<'a>(member: Member<'a>, parts: &'a FileParts, access: FileAccess) -> Schedule<'a> {
    match parts.with_holes(member.rank) {
        Some((view, data)) => sieving::schedule(access, view, data, parts.hints),
        None => Box::new(access_steps(sieving::at(access, parts.of(member.rank)))),
    }
}

/// Returns the steps of a member of a collective access; `access` makes its steps on a part of the file.
pub(crate) fn schedule<'a>(
    member: Member<'a>,
    parts: &'a FileParts,
    access: FileAccess,
    io: CollectiveIo,
) -> Schedule<'a> {
    if io == CollectiveIo::Romio {
        return romio::schedule(member, parts, access);
    }
    let told = tell_parts(member);
    if parts.is_empty() {
        return told;
    }
    if parts.are_side_by_side() {
        return Box::new(told.then(own_steps(member, parts, access)));
    }
    let chunk = parts.chunk(member.rank);
    let own = access.at(chunk.0, parts.wanted_by_all(chunk));
    let size = Blocks::equal(4, Datatype::BYTE);
    let sizes = Alltoall::selected(member, alltoall::Args { sent: size, received: size });
    let sent = Blocks::OfFile { parts, member: member.rank, are_sent: true };
    let received = Blocks::OfFile { parts, member: member.rank, are_sent: false };
    let data = Alltoallv::selected(member, alltoall::Args { sent, received });
    Box::new(told.then(access_steps(own)).then(sizes).then(data))
}

/// Returns the steps of a member of a collective access in the order of ranks: a prefix sum of 8 bytes finds the parts, and after the
/// access the last rank broadcasts a byte.
pub(crate) fn ordered<'a>(
    member: Member<'a>,
    parts: &'a FileParts,
    access: FileAccess,
    io: CollectiveIo,
) -> Schedule<'a> {
    let last = bcast::Args { root: member.size - 1, data: Elements::new(1, Datatype::BYTE) };
    let positions = scan::linear(member, Bytes::new(8));
    Box::new(positions.then(schedule(member, parts, access, io)).then(Bcast::selected(member, last)))
}

/// Returns the steps of an operation on a file.
pub(crate) fn access_steps(access: FileAccess) -> impl Iterator<Item = Step> + Send {
    (0..FileAccess::MAX_STEPS)
        .filter(move |_| !access.is_nothing())
        .map(move |number| Step::Access { access, number })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trace_mmap::FileHints;

    use super::*;

    /// Four members of 10 bytes with holes of 5: the whole is 0..55, a chunk 14 bytes and one more.
    #[test]
    fn parts_with_holes_are_exchanged() {
        let parts = (0..4).map(|member| (15 * member, 15 * member + 10)).collect();
        let parts = FileParts::new(parts, &BTreeMap::new(), FileHints::default());
        assert!(!parts.are_side_by_side());
        assert_eq!(
            (0..4).map(|member| parts.chunk(member)).collect::<Vec<_>>(),
            [(0, 15), (14, 29), (28, 43), (42, 57)]
        );
        let wanted = (0..4).map(|member| parts.wanted_by_all(parts.chunk(member)));
        assert_eq!(wanted.collect::<Vec<_>>(), [10; 4]);
        // A part inside a chunk is not exchanged; 30..40 has neither end of 28..43 inside, nor has 15..25 of 14..29.
        assert_eq!((0..4).map(|to| parts.sent(0, to)).collect::<Vec<_>>(), [10, 0, 0, 0]);
        assert_eq!(parts.sent(2, 2), 0);
    }
}
