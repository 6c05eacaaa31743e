//! Allgathers along the rows and columns of a mesh: 2 or 3 phases, and (P - 1) n beta.

use super::Args;
use crate::collective::blocks::repeated;
use crate::collective::mesh::{in_2d, in_3d};
use crate::collective::{Member, Schedule};

/// Exchanges blocks along the rows of a mesh, then whole rows along its columns. Source: Faraj's `2dmesh` (STAR-MPI).
pub(in crate::collective) fn in_two_dimensions<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    in_2d(member, |width| [1, width.into()].map(|blocks| repeated(args.sent, blocks).bytes()))
}

/// Exchanges blocks along the rows of a mesh, then whole rows along its columns, then whole planes. Source: Faraj's
/// `3dmesh` (STAR-MPI).
pub(in crate::collective) fn in_three_dimensions<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    in_3d(member, |width| {
        let width = u64::from(width);
        [1, width, width * width].map(|blocks| repeated(args.sent, blocks).bytes())
    })
}
