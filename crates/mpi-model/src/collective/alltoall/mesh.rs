//! All-to-alls along the rows and columns of a mesh, as if all blocks were needed everywhere.

use super::Args;
use crate::collective::blocks::repeated;
use crate::collective::mesh::{in_2d, in_3d};
use crate::collective::{Member, Schedule};

/// Sends all blocks along the rows of a mesh, of Y ranks each, then those of a rank along its column.
///
/// Cost: 2 phases; (Y - 1) P n beta + (P - Y) n beta. Source: Faraj's `2dmesh` (STAR-MPI).
pub(in crate::collective) fn in_two_dimensions<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let block = args.sent.elements(0);
    in_2d(member, |width| [member.size, width].map(|blocks| repeated(block, blocks.into()).bytes()))
}

/// Sends all blocks along the rows of a mesh, of X ranks each, those of a row along the columns, then those of a rank along
/// the depth.
///
/// Cost: 3 phases; (X² - 1) P n beta + (P - X²) n beta. Source: Faraj's `3dmesh` (STAR-MPI).
pub(in crate::collective) fn in_three_dimensions<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let block = args.sent.elements(0);
    in_3d(member, |width| {
        let (all, width) = (u64::from(member.size), u64::from(width));
        [all, all * width, width * width].map(|blocks| repeated(block, blocks).bytes())
    })
}
