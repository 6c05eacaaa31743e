//! Exchanges along the rows and columns of a mesh of all members.

use pdes_core::Bytes;

use super::member::empty_schedule;
use super::round_peers::exchange_among;
use super::{Member, Schedule, Steps};

/// Returns exchanges along the rows of a two-dimensional mesh and then along its columns; `bytes(row length)` are the
/// message sizes of the two phases.
///
/// Source: Faraj's `2dmesh` (STAR-MPI; Faraj and Yuan, ICS 2005). The first dimension is as near to the square root of P as
/// P allows; a prime number of members, which SimGrid refuses from 5 on, is one row.
pub(super) fn in_2d<'a>(member: Member<'a>, bytes: impl FnOnce(u32) -> [Bytes; 2]) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    if size == 1 {
        return empty_schedule();
    }
    let width = row_of_2d(size);
    let row = (0..width).map(move |place| rank / width * width + place);
    let column = (0..size / width).map(move |place| place * width + rank % width);
    let but_oneself = move |&other: &u32| other != rank;
    let [in_row, in_column] = bytes(width);
    let row = row.filter(but_oneself);
    let column = column.filter(but_oneself);
    Box::new(exchange_among(row.clone(), row, in_row).then(exchange_among(column.clone(), column, in_column)))
}

/// Returns exchanges along the rows, the columns and the depth of a three-dimensional mesh with square planes; `bytes(row
/// length)` are the message sizes of the three phases.
///
/// Source: Faraj's `3dmesh` (STAR-MPI). If SimGrid finds no mesh (for 2 ranks, and where no square from P^(2/3) to P^2/9
/// divides P), the plane is the largest square that divides P, at worst 1.
pub(super) fn in_3d<'a>(member: Member<'a>, bytes: impl FnOnce(u32) -> [Bytes; 3]) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    if size == 1 {
        return empty_schedule();
    }
    let width = row_of_3d(size);
    let plane = width * width;
    let corner = rank / plane * plane;
    let but_oneself = move |&other: &u32| other != rank;
    let row = (0..width).map(move |place| rank / width * width + place).filter(but_oneself);
    let column = (0..width).map(move |place| corner + place * width + rank % width).filter(but_oneself);
    let depth = (1..size / plane).map(move |distance| member.after(distance * plane));
    let [in_row, in_column, in_depth] = bytes(width);
    let within_plane =
        exchange_among(row.clone(), row, in_row).then(exchange_among(column.clone(), column, in_column));
    Box::new(within_plane.then(exchange_among(depth.clone(), depth, in_depth)))
}

/// Returns whether SimGrid finds a two-dimensional mesh.
pub(super) fn in_2d_exists(member: Member<'_>) -> bool {
    (member.size.isqrt()..=member.size / 2).any(|side| member.size.is_multiple_of(side))
}

/// Returns whether SimGrid finds a three-dimensional mesh.
pub(super) fn in_3d_exists(member: Member<'_>) -> bool {
    (cube_root(member.size)..=member.size / 3).any(|side| is_divided_by_square(member.size, side))
}

/// Returns the row length of a two-dimensional mesh: its longer side.
fn row_of_2d(size: u32) -> u32 {
    let shorter = (1..=size.isqrt()).rev().find(|&side| size.is_multiple_of(side)).unwrap_or(1);
    size / shorter
}

/// Returns the length of the rows and columns of a three-dimensional mesh.
fn row_of_3d(size: u32) -> u32 {
    let fits = |&side: &u32| is_divided_by_square(size, side);
    let cube = cube_root(size);
    let above =
        (cube..=size / 3).take_while(|&side| u64::from(side) * u64::from(side) <= size.into()).find(fits);
    above.or_else(|| (1..cube).rev().find(fits)).unwrap_or(1)
}

fn cube_root(size: u32) -> u32 {
    (1..=1625_u64).take_while(|&side| side * side * side <= u64::from(size)).last().unwrap_or(1) as u32
}

fn is_divided_by_square(size: u32, side: u32) -> bool {
    u64::from(size).is_multiple_of(u64::from(side) * u64::from(side))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_are_as_square_as_their_size_allows() {
        assert_eq!([2, 3, 4, 6, 12, 13, 16, 18].map(row_of_2d), [2, 3, 2, 3, 4, 13, 4, 6]);
        assert_eq!([2, 3, 8, 9, 11, 16, 18, 36, 64].map(row_of_3d), [1, 1, 2, 3, 1, 2, 3, 3, 4]);
    }
}
